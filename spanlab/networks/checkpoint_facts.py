"""What a checkpoint says of itself, read without running it: its graph, and what its classes mean.

An ONNX file is read as the protocol buffer that it is, by the field numbers of ``onnx.proto``:
operators, and files that it refers to. Weights are stepped over, so that a large file takes no more
time than its graph. Classes mean what the configuration calls them.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from spanlab.base.errors import InputError, unreadable

# Messages that may hold others, with the numbers of the fields that do.
_INSIDE: Final[dict[str, dict[int, str]]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {13: "entry"},
}
_DOMAIN: Final = {"node": 7, "function": 10}
_NAMED: Final = {"node": 4, "function": 1}
_MOST: Final = 2_000_000  # messages: a large model has some thousands
# Operators of exports of encoders and sequence models, by domain: those of transformers' exporters
# in any version, quantised, and fused by onnxruntime's optimiser. None repeats a graph. As texts
# (SIM905), since a list of 160 names would take a line for each.
OPERATORS: Final[dict[str, frozenset[str]]] = {
    "": frozenset(
        "Abs Add And ArgMax ArgMin Attention BatchNormalization BitwiseAnd BitwiseNot "  # noqa: SIM905 - one text, see above
        "BitwiseOr Cast CastLike Ceil Celu Clip Compress Concat ConcatFromSequence Constant "
        "ConstantOfShape Conv ConvInteger Cos CumSum DequantizeLinear Div Dropout "
        "DynamicQuantizeLinear Einsum Elu Equal Erf Exp Expand EyeLike Flatten Floor Gather "
        "GatherElements GatherND Gelu Gemm GlobalAveragePool Greater GreaterOrEqual "
        "GroupNormalization HardSigmoid HardSwish Hardmax Identity If InstanceNormalization "
        "IsInf IsNaN LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax "
        "LpNormalization MatMul MatMulInteger Max MaxPool Mean MeanVarianceNormalization Min "
        "Mish Mod Mul Neg NonZero Not OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul "
        "QuantizeLinear RMSNormalization Range Reciprocal ReduceL1 ReduceL2 ReduceLogSum "
        "ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum ReduceSumSquare "
        "Relu Reshape RotaryEmbedding Round Scatter ScatterElements ScatterND Selu SequenceAt "
        "SequenceConstruct Shape Sigmoid Sign SimplifiedLayerNormalization Sin Size Slice "
        "Softmax Softplus Softsign Split SplitToSequence Sqrt Squeeze Sub Sum Swish Tanh "
        "ThresholdedRelu Tile TopK Transpose Trilu Unsqueeze Where Xor".split()
    ),
    "com.microsoft": frozenset(
        "Attention BiasAdd BiasDropout BiasGelu BiasSoftmax BiasSplitGelu DequantizeLinear "  # noqa: SIM905 - one text, see above
        "DynamicQuantizeMatMul EmbedLayerNormalization FastGelu FusedConv FusedGemm "
        "FusedMatMul FusedMatMulActivation GatedRelativePositionBias GatherBlockQuantized Gelu "
        "GemmFastGelu GroupQueryAttention LongformerAttention MatMulBnb4 MatMulInteger16 "
        "MatMulIntegerToFloat MatMulNBits MultiHeadAttention PackedAttention "
        "PackedMultiHeadAttention QAttention QEmbedLayerNormalization QGemm QLinearAdd "
        "QLinearConcat QLinearLeakyRelu QLinearMul QLinearReduceMean QLinearSigmoid "
        "QLinearSoftmax QLinearWhere QOrderedAttention QOrderedGelu QOrderedLayerNormalization "
        "QOrderedLongformerAttention QOrderedMatMul QuantizeLinear QuickGelu "
        "RelativePositionBias RemovePadding RestorePadding RotaryEmbedding "
        "SkipLayerNormalization SkipSimplifiedLayerNormalization TransposeMatMul Trilu".split()
    ),
}
_DAMAGED: Final = "this is not an ONNX model, or a damaged one"


class OnnxOperator(NamedTuple):
    """An operator by its domain ("" is ONNX's own) and name."""

    domain: str
    name: str


class OnnxFacts(NamedTuple):
    """The operators that a model uses and does not define itself, and its files of weights."""

    operators: frozenset[OnnxOperator]
    external: frozenset[str]


def facts(path: Path) -> OnnxFacts:
    """Return what an ONNX file is made of.

    Raises:
        InputError: it cannot be read, or is no ONNX model.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _facts(data)
    except OSError as error:
        raise unreadable(path, error) from error
    except (ValueError, IndexError):  # an empty file has nothing to map
        raise InputError(_DAMAGED, file=path, expected="a file that an ONNX export wrote") from None


def _facts(data: mmap.mmap) -> OnnxFacts:
    used, defined, external = set[OnnxOperator](), set[OnnxOperator](), set[str]()
    waiting = [("model", 0, len(data))]
    seen = graphs = 0
    while waiting:
        kind, start, end = waiting.pop()
        inside, words = _INSIDE.get(kind, {}), dict[int, str]()
        for number, begin, stop in _fields(data, start, end):
            if number in inside:
                waiting.append((inside[number], begin, stop))
            elif number in {1, 2, _DOMAIN.get(kind), _NAMED.get(kind)} and stop - begin < 4096:
                words[number] = data[begin:stop].decode("utf-8", "replace")
        seen, graphs = seen + 1, graphs + (kind == "graph")
        if seen > _MOST:
            raise ValueError("too many parts")
        if kind in _NAMED:
            operator = OnnxOperator(words.get(_DOMAIN[kind], ""), words.get(_NAMED[kind], ""))
            (used if kind == "node" else defined).add(operator)
        elif kind == "entry" and words.get(1) == "location":
            external.add(words.get(2, ""))
    if not graphs or not used:
        raise ValueError("no graph")
    return OnnxFacts(frozenset(used - defined), frozenset(external))


def _fields(data: mmap.mmap, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Yield number, begin and end of the fields of a message that hold bytes."""
    while at < end:
        key, at = _varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == 0:
            _, at = _varint(data, at)
        elif wire in {1, 5}:
            at += 8 if wire == 1 else 4
        elif wire == 2:
            size, at = _varint(data, at)
            if at + size > end:
                raise ValueError("a field is longer than what holds it")
            yield number, at, at + size
            at += size
        else:
            raise ValueError(f"wire type {wire}")
    if at != end:
        raise ValueError("a field is longer than what holds it")


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


_SUPPORTED: Final = frozenset(
    (
        "supported",
        "support",
        "supports",
        "entailment",
        "entail",
        "entailed",
        "consistent",
        "factual",
        "faithful",
        "grounded",
        "correct",
    )
)
_REFUTED: Final = frozenset(
    ("contradiction", "contradict", "contradicted", "contradictory", "refuted", "refutes")
)
_UNSUPPORTED: Final = _REFUTED | {
    "baseless",
    "hallucinated",
    "hallucination",
    "inconsistent",
    "incorrect",
    "neutral",
    "nonfactual",
    "not_entailment",
    "not_enough_info",
    "not_factual",
    "not_supported",
    "unfaithful",
    "ungrounded",
    "unsupported",
}
_GENERIC: Final = re.compile(r"(label_)?\d+")


def supported_labels(labels: Sequence[str], setting: str, place: str | Path) -> frozenset[int]:
    """Return which classes mean that something is supported.

    Args:
        labels: the classes in order.
        setting: their names or numbers, parted by commas; empty to go by what they are called.
        place: the checkpoint, for the message.

    Raises:
        InputError: a name is none of them, all or none are meant, or names do not tell.
    """
    plain_labels = [_plain(label) for label in labels]
    if setting.strip():
        wanted = [part.strip() for part in setting.split(",") if part.strip()]
        supported = frozenset(_index(part, labels, place) for part in wanted)
    else:
        supported = frozenset(at for at, label in enumerate(plain_labels) if label in _SUPPORTED)
        others = [label for label in plain_labels if label not in _SUPPORTED]
        if not supported or not _UNSUPPORTED.issuperset(others):
            raise InputError(
                "it is not known which labels mean “supported”",
                file=place,
                found=", ".join(labels) or "no labels",
                expected="supported=LABEL"
                + (
                    " (LettuceDetect: LABEL_0; MiniCheck: 1)"
                    if all(map(_GENERIC.fullmatch, plain_labels))
                    else ""
                ),
            )
    if not supported or len(supported) == len(labels):
        raise InputError(
            "some labels have to mean “supported” and some not",
            file=place,
            found=", ".join(labels),
        )
    return supported


def refuted_labels(labels: Iterable[str]) -> frozenset[int]:
    """Return which classes mean that a text contradicts a statement; empty if none is called so."""
    return frozenset(at for at, label in enumerate(labels) if _plain(label) in _REFUTED)


def _plain(label: str) -> str:
    return re.sub(r"[\s-]+", "_", label.strip().casefold())


def _index(part: str, labels: Sequence[str], place: str | Path) -> int:
    for at, label in enumerate(labels):
        if _plain(label) == _plain(part):
            return at
    if part.isdecimal() and int(part) < len(labels):
        return int(part)
    raise InputError(
        "there is no such label", file=place, found=part, expected=f"one of {', '.join(labels)}"
    )
