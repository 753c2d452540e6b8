"""Local encoders: items in batches beside one by one, the cost around the network, and memory.

The network has random weights, so it says nothing of quality: it is as large as a small encoder
(``SMALL``: 2 layers of 128), or about as a BERT of six layers (``MEDIUM``: 6 layers of 384).
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))
import tiny_encoders as tiny

from spanlab.detection import DetectorSpec, detector
from spanlab.schema import Item, Passage
from spanlab.systems.encoder.detector import EncoderDetector

_ITEMS = 1000


class Size(NamedTuple):
    """How large a network is."""

    layers: int
    width: int


SMALL, MEDIUM = Size(2, 128), Size(6, 384)


def main() -> None:
    """Print all figures."""
    print("\n# local encoders: batches, overhead, memory")
    with tempfile.TemporaryDirectory() as folder:
        small = _loaded(Path(folder) / "small", SMALL)
        items = [_item(number) for number in range(_ITEMS)]
        small.annotate_all(items[:64])  # loads what is loaded once
        alone = min(_seconds(lambda: [small.annotate(each) for each in items]) for _ in range(2))
        parts = [items[at : at + small.batch] for at in range(0, _ITEMS, small.batch)]
        together = min(
            _seconds(lambda: [small.annotate_all(each) for each in parts]) for _ in range(2)
        )
        print(
            f"{_ITEMS:,} items one by one {alone:.2f} s, in batches {together:.2f} s: "
            f"{alone / together:.1f} times as fast"
        )
        medium = _loaded(Path(folder) / "medium", MEDIUM)
        _print_overhead(medium)
        before = _peak()
        for _ in range(2):
            for each in parts:
                small.annotate_all(each)
        print(f"memory of three times as many items: {_peak() - before:.0f} MiB more at the peak")


def _print_overhead(made: EncoderDetector) -> None:
    words = random.Random(3).choices(tiny.WORDS, k=470)
    one = Item(
        id="i",
        lang="en",
        question="when ?",
        answer=" ".join(words[:120]),
        passages=(Passage(text=" ".join(words[120:440])),),
    )
    (piece,) = made.tokenizing.read(
        lambda shown: made.format.render(one.question, shown), [one.passages[0].text], one.answer
    )
    (row,) = piece.rows
    rated = made.network.rate([row])
    idle = replace(made, network=cast(Any, _Idle(rated)))
    made.annotate(one)
    forward = min(_seconds(lambda: made.network.rate([row])) for _ in range(15))
    around = min(_seconds(lambda: idle.annotate(one)) for _ in range(15))
    print(
        f"an item of {len(row.ids)} tokens: the network {1000 * forward:.1f} ms, all else "
        f"{1000 * around:.1f} ms: {100 * around / forward:.1f} % more"
    )


class _Idle:
    """A network that has rated already."""

    def __init__(self, rated: object) -> None:
        self._rated = rated

    def rate(self, _rows: object, _batch: int = 0) -> object:
        return self._rated


def _loaded(folder: Path, size: Size) -> EncoderDetector:
    tokenizer = tiny.word_piece()
    tiny.write(folder, network(size, tokenizer.get_vocab_size()), tokenizer)
    made = detector(
        DetectorSpec(detector="encoder", options={"model": str(folder), "format": "pair"})
    )
    assert isinstance(made, EncoderDetector)
    return made


def _item(number: int) -> Item:
    draw = random.Random(number)
    words = draw.choices(tiny.WORDS, k=60)
    answer, passage = " ".join(words[: draw.randint(4, 12)]), " ".join(words[20:50])
    return Item(
        id=str(number),
        lang="en",
        question="when ?",
        answer=answer,
        passages=(Passage(text=passage),),
    )


def _seconds(work: Callable[[], object]) -> float:
    begun = time.perf_counter()
    work()
    return time.perf_counter() - begun


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def network(size: Size, vocabulary: int) -> onnx.GraphProto:
    """Return a transformer of random weights that classifies tokens into two."""
    draw = np.random.default_rng(1)
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, np.ndarray] = {
        "scale": np.array(size.width**-0.5, np.float32),
        "minus": np.array(-1e4, np.float32),
        "one": np.array(1, np.float32),
        "axis": np.array([1], np.int64),
    }

    def matrix(name: str, *shape: int) -> str:
        weights[name] = draw.normal(0, 0.05, shape).astype(np.float32)
        return name

    def node(kind: str, inputs: Sequence[str], output: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [output], **attributes))
        return output

    node("Cast", ["attention_mask"], "mask", to=TensorProto.FLOAT)
    node("Sub", ["one", "mask"], "padded")
    node("Mul", ["padded", "minus"], "low")
    node("Unsqueeze", ["low", "axis"], "bias")
    x = node("Gather", [matrix("table", vocabulary, size.width), "input_ids"], "x")
    for layer in range(size.layers):
        q, k, v = (
            node("MatMul", [x, matrix(f"{part}{layer}w", size.width, size.width)], f"{part}{layer}")
            for part in "qkv"
        )
        turned = node("Transpose", [k], f"t{layer}", perm=[0, 2, 1])
        scores = node("Mul", [node("MatMul", [q, turned], f"s{layer}"), "scale"], f"u{layer}")
        share = node("Softmax", [node("Add", [scores, "bias"], f"m{layer}")], f"p{layer}", axis=-1)
        x = node("Add", [x, node("MatMul", [share, v], f"a{layer}")], f"y{layer}")
        inner = node(
            "Relu",
            [node("MatMul", [x, matrix(f"in{layer}", size.width, 4 * size.width)], f"h{layer}")],
            f"r{layer}",
        )
        x = node(
            "Add",
            [
                x,
                node(
                    "MatMul",
                    [inner, matrix(f"out{layer}", 4 * size.width, size.width)],
                    f"o{layer}",
                ),
            ],
            f"z{layer}",
        )
    node("MatMul", [x, matrix("head", size.width, 2)], "logits")
    given = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"])
        for name in ("input_ids", "attention_mask")
    ]
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["b", "t", 2])
    return helper.make_graph(
        nodes,
        "random",
        given,
        [out],
        [numpy_helper.from_array(each, name) for name, each in weights.items()],
    )


if __name__ == "__main__":
    main()
