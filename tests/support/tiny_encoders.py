"""Checkpoints of a few kilobytes whose every probability is known by hand.

``write`` makes a folder with a real ONNX model and a real tokenizer:

- ``table``: a token's logits stand in a table; ``RATED`` tokens are hallucinated with .9, others
  with .1, whatever stands around them.
- ``copied``: a token is supported with .9 if it stands in the first text, and with .1 if not.
- ``entailed``: a statement is entailed with ``ENTAILED`` if all its tokens stand in the first text,
  contradicted if it says "not", else neutral.

``write_rewriter`` makes one of sequences: whatever it reads, it writes the same text.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

HALF_LOGIT = math.log(9) / 2  # softmax([x, -x]) is .9 and .1
SURE = 3.0
ENTAILED = math.exp(SURE) / (math.exp(SURE) + 1 + math.exp(-SURE))  # of logits SURE, 0, -SURE
LABELS = ("supported", "hallucinated")
NLI_LABELS = ("entailment", "neutral", "contradiction")
WORDS = tuple(
    word
    for line in (
        "the tower was built in 1889 by eiffel and is not 1984 tall iron of paris stands by river",
        "who when ? . , : passage question",
    )
    for word in line.split(" ")
)


def word_piece(words: Sequence[str] = WORDS) -> Tokenizer:
    """Return a WordPiece tokenizer with BERT's template; unknown words become their letters."""
    letters = [chr(code) for code in range(33, 127)]
    vocabulary = dict.fromkeys(["[PAD]", "[UNK]", "[CLS]", "[SEP]", *words, *letters])
    vocabulary |= dict.fromkeys(f"##{letter}" for letter in letters)
    ids = {token: number for number, token in enumerate(vocabulary)}
    made = Tokenizer(models.WordPiece(ids, unk_token="[UNK]"))
    made.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    made.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", ids["[CLS]"]), ("[SEP]", ids["[SEP]"])],
    )
    return made


def byte_level() -> Tokenizer:
    """Return a byte-level BPE tokenizer, one token a byte, but for " t" and "th"."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = ["<s>", "<pad>", "</s>", *alphabet, "Ġt", "th"]
    ids = {token: number for number, token in enumerate(names)}
    made = Tokenizer(models.BPE(ids, [("Ġ", "t"), ("t", "h")]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>",
        pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)],
    )
    return made


def unigram() -> Tokenizer:
    """Return a Unigram tokenizer as SentencePiece's are: compatibility forms, spaces as ▁."""
    pieces = ["▁", "▁the", "▁tower", "▁in", "er", *(chr(code) for code in range(97, 123))]
    scored = [
        ("<unk>", 0.0),
        ("</s>", 0.0),
        *((piece, -1.0 - at) for at, piece in enumerate(pieces)),
    ]
    made = Tokenizer(models.Unigram(scored, unk_id=0, byte_fallback=False))
    made.normalizer = normalizers.NFKC()
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.post_processor = processors.TemplateProcessing(
        single="$A </s>", pair="$A </s> $B </s>", special_tokens=[("</s>", 1)]
    )
    return made


def write(
    folder: Path,
    graph: onnx.GraphProto | None = None,
    tokenizer: Tokenizer | None = None,
    labels: Sequence[str] | None = LABELS,
    **config: Any,
) -> Path:
    """Write a checkpoint, and return its folder."""
    tokenizer = tokenizer or word_piece()
    folder.mkdir(parents=True, exist_ok=True)
    size = tokenizer.get_vocab_size()
    save(folder / "model.onnx", graph or table(tokenizer, ["1984"]))
    tokenizer.save(str(folder / "tokenizer.json"))
    said = {"model_type": "bert", "vocab_size": size, "max_position_embeddings": 512} | config
    if labels is not None:
        said["id2label"] = {str(number): label for number, label in enumerate(labels)}
    (folder / "config.json").write_text(json.dumps(said))
    return folder


def save(path: Path, graph: onnx.GraphProto, domains: Iterable[str] = ()) -> None:
    """Write a model of a graph."""
    opsets = [helper.make_opsetid("", 17), *(helper.make_opsetid(each, 1) for each in domains)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    path.write_bytes(model.SerializeToString())


def table(tokenizer: Tokenizer, rated: Iterable[str]) -> onnx.GraphProto:
    """Return a graph that looks up every token's logits."""
    logits = np.tile(
        np.array([HALF_LOGIT, -HALF_LOGIT], np.float32), (tokenizer.get_vocab_size(), 1)
    )
    for token in rated:
        logits[tokenizer.token_to_id(token)] *= -1
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["logits"])]
    return _graph(nodes, {"table": logits}, ["input_ids", "attention_mask"], ["b", "t", 2])


def multiplied(tokenizer: Tokenizer, rated: Iterable[str]) -> onnx.GraphProto:
    """Return a graph that says what ``table`` does by a multiplication, which can be quantised."""
    kinds = np.tile(np.array([1, 0], np.float32), (tokenizer.get_vocab_size(), 1))
    for token in rated:
        kinds[tokenizer.token_to_id(token)] = [0, 1]
    weights = np.array([[HALF_LOGIT, -HALF_LOGIT], [-HALF_LOGIT, HALF_LOGIT]], np.float32)
    nodes = [
        helper.make_node("Gather", ["kinds", "input_ids"], ["kind"]),
        helper.make_node("MatMul", ["kind", "weights"], ["logits"]),
    ]
    constants = {"kinds": kinds, "weights": weights}
    return _graph(nodes, constants, ["input_ids", "attention_mask"], ["b", "t", 2])


def copied() -> onnx.GraphProto:
    """Return a graph that supports the tokens of the first text."""
    nodes = [
        *_hits(),
        helper.make_node("Mul", ["hits", "twice"], ["raised"]),
        helper.make_node("Sub", ["raised", "half"], ["positive"]),
        helper.make_node("Neg", ["positive"], ["negative"]),
        helper.make_node("Unsqueeze", ["positive", "two"], ["p"]),
        helper.make_node("Unsqueeze", ["negative", "two"], ["n"]),
        helper.make_node("Concat", ["p", "n"], ["logits"], axis=2),
    ]
    constants = _HITS | {"half": np.float32(HALF_LOGIT), "twice": np.float32(2 * HALF_LOGIT)}
    return _graph(
        nodes, constants, ["input_ids", "attention_mask", "token_type_ids"], ["b", "t", 2]
    )


def entailed(tokenizer: Tokenizer) -> onnx.GraphProto:
    """Return a graph that compares the tokens of two texts."""
    nodes = [
        *_hits(),
        # All of the second text: 1 - type of the first text, which counts as found.
        helper.make_node("Max", ["hits", "in_first"], ["found"]),
        helper.make_node("ReduceMin", ["found"], ["all"], axes=[1], keepdims=1),
        helper.make_node("Equal", ["input_ids", "not_id"], ["is_not"]),
        helper.make_node("Cast", ["is_not"], ["nots"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["token_type_ids"], ["second"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["nots", "second"], ["said"]),
        helper.make_node("ReduceMax", ["said"], ["denied"], axes=[1], keepdims=1),
        *(
            node
            for name in ("all", "denied")
            for node in (
                helper.make_node("Mul", [name, "twice"], [f"{name}2"]),
                helper.make_node("Sub", [f"{name}2", "half"], [f"{name}3"]),
            )
        ),
        helper.make_node("Mul", ["all3", "zero"], ["neutral"]),
        helper.make_node("Concat", ["all3", "neutral", "denied3"], ["logits"], axis=1),
    ]
    constants: dict[str, Any] = _HITS | {
        "half": np.float32(SURE),
        "twice": np.float32(2 * SURE),
        "zero": np.float32(0),
        "not_id": np.int64(tokenizer.token_to_id("not") or 0),
    }
    return _graph(nodes, constants, ["input_ids", "attention_mask", "token_type_ids"], ["b", 3])


_HITS: dict[str, Any] = {
    "one": np.array([1], np.int64),
    "two": np.array([2], np.int64),
    "unit": np.float32(1),
}


def _hits() -> list[onnx.NodeProto]:
    """Return nodes that find which tokens stand in the first text, and which are of it or pad."""
    return [
        helper.make_node("Cast", ["attention_mask"], ["mask"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["token_type_ids"], ["types"], to=TensorProto.FLOAT),
        helper.make_node("Sub", ["unit", "types"], ["in_first"]),
        helper.make_node("Mul", ["in_first", "mask"], ["first"]),
        helper.make_node("Unsqueeze", ["input_ids", "two"], ["down"]),
        helper.make_node("Unsqueeze", ["input_ids", "one"], ["across"]),
        helper.make_node("Equal", ["down", "across"], ["same"]),
        helper.make_node("Cast", ["same"], ["alike"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["first", "one"], ["firsts"]),
        helper.make_node("Mul", ["alike", "firsts"], ["met"]),
        helper.make_node("ReduceMax", ["met"], ["hits"], axes=[2], keepdims=0),
    ]


def _graph(
    nodes: Sequence[onnx.NodeProto],
    constants: Mapping[str, Any],
    inputs: Sequence[str],
    shape: Sequence[str | int],
) -> onnx.GraphProto:
    given = [helper.make_tensor_value_info(name, TensorProto.INT64, ["b", "t"]) for name in inputs]
    out = helper.make_tensor_value_info("logits", TensorProto.FLOAT, shape)
    weights = [numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items()]
    return helper.make_graph(nodes, "tiny", given, [out], weights)


def write_rewriter(folder: Path, written: str) -> Path:
    """Write a sequence-to-sequence checkpoint that turns every text into ``written``.

    After the n-th token of the text comes the n+1-th, as a table has it; so no token occurs twice.
    """
    tokenizer = word_piece()
    ids = [tokenizer.token_to_id(word) for word in written.split()]
    start, end = tokenizer.token_to_id("[CLS]"), tokenizer.token_to_id("[SEP]")
    logits = np.zeros((tokenizer.get_vocab_size(),) * 2, np.float32)
    for before, after in pairwise([start, *ids, end]):
        logits[before, after] = 1
    write(
        folder,
        None,
        tokenizer,
        None,
        model_type="t5",
        decoder_start_token_id=start,
        eos_token_id=end,
    )
    (folder / "model.onnx").unlink()
    states = helper.make_tensor_value_info("states", TensorProto.FLOAT, ["b", "t", 1])
    read = [
        helper.make_node("Cast", ["input_ids"], ["wide"], to=TensorProto.FLOAT),
        helper.make_node("Unsqueeze", ["wide", "two"], ["states"]),
    ]
    encoder = _graph(read, {"two": _HITS["two"]}, ["input_ids", "attention_mask"], ["b", "t", 2])
    del encoder.output[:]
    encoder.output.append(states)
    save(folder / "encoder_model.onnx", encoder)
    looked_up = [helper.make_node("Gather", ["table", "input_ids"], ["logits"])]
    inputs = ["input_ids", "encoder_attention_mask"]
    decoder = _graph(looked_up, {"table": logits}, inputs, ["b", "t", len(logits)])
    decoder.input.append(
        helper.make_tensor_value_info("encoder_hidden_states", TensorProto.FLOAT, ["b", "s", 1])
    )
    save(folder / "decoder_model.onnx", decoder)
    return folder
