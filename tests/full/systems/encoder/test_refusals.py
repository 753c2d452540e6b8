"""What is wrong with a checkpoint is said before anything of it is run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tiny_encoders as tiny
from onnx import helper, numpy_helper

from spanlab.base.errors import InputError
from spanlab.base.runtime import wait
from spanlab.detection import DetectorSpec, build
from spanlab.networks import classifier, tokenizing
from spanlab.schema import Item, Status


def _hostile_tokenizer(**rules: object) -> Callable[[Path], object]:
    def spoil(folder: Path) -> None:
        path = folder / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | rules))

    return spoil


def _doubled(times: int) -> dict[str, object]:
    double = {"type": "Replace", "pattern": {"String": "t"}, "content": "tt"}
    return {"type": "Sequence", "normalizers": [double] * times}


def _matrices(seed: str) -> Callable[[Path], object]:
    """300 products of matrices, of what is given or of constants."""

    def spoil(folder: Path) -> None:
        tokenizer = tiny.word_piece()
        graph = tiny.table(tokenizer, [])
        graph.node[0].output[0] = "found"
        shape = numpy_helper.from_array(np.array([4000, 4000], np.int64), "shape")
        graph.initializer.extend(
            [shape, numpy_helper.from_array(np.array(0, np.float32), "nought")]
        )
        made = helper.make_node("ReduceMin", [seed], ["least"], keepdims=0)
        graph.node.extend([made, helper.make_node("Expand", ["least", "shape"], ["m0"])])
        for number in range(300):
            given = [f"m{number}", f"m{number}"]
            graph.node.append(helper.make_node("MatMul", given, [f"m{number + 1}"]))
        graph.node.append(helper.make_node("ReduceMax", ["m300"], ["one"], keepdims=0))
        graph.node.append(helper.make_node("Mul", ["one", "nought"], ["none"]))
        graph.node.append(helper.make_node("Add", ["found", "none"], ["logits"]))
        tiny.save(folder / "model.onnx", graph)

    return spoil


# What is done to a checkpoint, and how loading it or its first item fails.
HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "normalizers that double a text forty times": (
        _hostile_tokenizer(normalizer=_doubled(40)),
        r"tokenizer\.json: the tokenizer broke: it (takes more than|ends the process)",
    ),
    "an expression that gives up in a panic": (
        _hostile_tokenizer(
            pre_tokenizer={
                "type": "Split",
                "pattern": {"Regex": "(t|tt)+$x|(t*)*b"},
                "behavior": "Isolated",
                "invert": False,
            }
        ),
        "the tokenizer broke: (PanicException|it takes more than)",
    ),
    "pieces of no length, another panic": (
        _hostile_tokenizer(pre_tokenizer={"type": "FixedLength", "length": 0}),
        "the tokenizer broke: PanicException",
    ),
    "a table that panics when it is loaded": (
        _hostile_tokenizer(normalizer={"type": "Precompiled", "precompiled_charsmap": "AAAAAQ=="}),
        "the tokenizer broke: PanicException",
    ),
    "products of matrices as it runs": (
        _matrices("found"),
        r"model\.onnx: the model broke: it takes more than",
    ),
    "products of constants as it is loaded": (
        _matrices("table"),
        r"model\.onnx: the model broke: it takes more than",
    ),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_checkpoint_fails_alone_with_the_reason(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the command's way; a sound checkpoint beside it works on."""
    spoil, reason = HOSTILE[name]
    folder = tiny.write(tmp_path / "hostile")
    spoil(folder)
    item = Item(id="i", lang="en", answer="the " + "t" * 40)
    with monkeypatch.context() as limits:
        limits.setattr(tokenizing, "_SECONDS", 1.0)
        limits.setattr(classifier, "_SECONDS", 1.0)
        limits.setattr(classifier, "_SECONDS_OF_TOKEN", 0.0)
        limits.setattr(classifier, "LOADING_SECONDS", 1.0)
        try:
            spec = DetectorSpec(detector="encoder", options={"model": str(folder)})
            finding = wait(build(spec).detect(item))
        except InputError as error:  # already as it was loaded
            said = str(error)
        else:
            assert finding.annotation.status is Status.FAILED
            said = finding.annotation.note or ""
    assert re.search(reason, said)
    sound = DetectorSpec(detector="encoder", options={"model": str(tiny.write(tmp_path / "sound"))})
    assert wait(build(sound).detect(item)).annotation.status is Status.DONE
