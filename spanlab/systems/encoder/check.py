"""Checks a checkpoint with built-in probes: `spanlab encoder check`."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pydantic import JsonValue

from spanlab.base.errors import SpanlabError
from spanlab.detection import DetectorSpec, detector
from spanlab.networks.checkpoint import Checkpoint, open_checkpoint
from spanlab.networks.classifier import OnnxClassifier, Task, open_session
from spanlab.networks.devices import DeviceOptions
from spanlab.networks.tokenizing import CheckpointTokenizer, TokenWindow
from spanlab.schema import Item, Passage
from spanlab.systems.encoder.detector import EncoderDetector
from spanlab.systems.encoder.verifier import JudgedStatement, SentenceDetector

_SPEED: Final = 512  # tokens
_CLASSIFIES: Final[Mapping[Task, str]] = {"tokens": "every token", "texts": "pairs of texts"}


class _Probe(NamedTuple):
    """A passage, an answer it supports, and the same with one word changed."""

    lang: str
    passage: str
    question: str
    answer: str
    right: str
    wrong: str


_PROBES: Final = (
    _Probe(
        "en",
        "The lighthouse of Arholma was built in 1768 by the merchant Anna Berg. It is 14 metres "
        "high and painted white.",
        "When was the lighthouse built?",
        "The lighthouse was built in {}.",
        "1768",
        "1931",
    ),
    _Probe(
        "de",
        "Der Leuchtturm von Arholma wurde 1768 von der Kauffrau Anna Berg gebaut. Er ist 14 Meter "
        "hoch und weiß gestrichen.",
        "Welche Farbe hat der Leuchtturm?",
        "Der Leuchtturm ist {} gestrichen.",
        "weiß",
        "schwarz",
    ),
    _Probe(
        "zh",
        "阿霍尔马灯塔由商人安娜·贝里于1768年建造。灯塔高14米，涂成白色。",
        "灯塔有多高？",
        "灯塔高{}米。",
        "14",
        "90",
    ),
)
_SCRIPTS: Final[Mapping[str, str]] = {
    "Latin": "façade e\u0301 ﬁn",
    "Cyrillic": "башня",
    "Greek": "πύργος",
    "Arabic": "بُنِيَ ١٨٨٩",
    "Hebrew": "הַמִּגְדָּל",
    "Devanagari": "मीनार १८",
    "Bengali": "মিনার",
    "Thai": "หอคอย",
    "Chinese": "铁塔𠀋",
    "Japanese": "塔ガが",
    "Korean": "탑은",
    "emoji": "👩‍👩‍👧 🇫🇷",
}


@dataclass(frozen=True)
class ProbeResult:
    """How probable it is in [0, 1] that the right word, and the wrong one, is hallucinated."""

    lang: str
    right: str
    wrong: str
    of_right: float
    of_wrong: float


@dataclass(frozen=True)
class EncoderCheck:
    """The result of checking a checkpoint.

    ``classifies`` is "every token" or "pairs of texts"; ``supported`` are the numbers of the labels
    that mean so. ``scripts`` are those in which a token lost a character (none, if all is well).
    ``seconds`` is the time for ``tokens`` tokens at once: 512, or as many as it takes.
    """

    checkpoint: Checkpoint
    digest: str
    classifies: str
    labels: tuple[str, ...]
    supported: frozenset[int]
    window: int
    probes: tuple[ProbeResult, ...]
    scripts: tuple[str, ...]
    tokens: int
    seconds: float


def check_encoder(name: str, options: Mapping[str, JsonValue]) -> EncoderCheck:
    """Load a checkpoint, and check its labels, its tokenizer, its speed and some answers.

    Args:
        name: a folder, or a fetched checkpoint's name.
        options: of the detectors ``encoder`` or ``encoder-nli``, whichever the network is for.

    Raises:
        InputError: it is missing, damaged, unsuitable or unsafe.
        UsageError: an option does not fit.
    """
    detector_of_network = _load_detector(name, options)
    loaded = (
        detector_of_network
        if isinstance(detector_of_network, EncoderDetector)
        else detector_of_network.verifier
    )
    network = loaded.network
    rows, seconds = _measure_speed(network, loaded.tokenizing)
    return EncoderCheck(
        checkpoint=loaded.checkpoint,
        digest=loaded.digest,
        classifies=_CLASSIFIES[network.task],
        labels=network.labels,
        supported=loaded.supported,
        window=loaded.tokenizing.limit,
        probes=tuple(_run_probe(detector_of_network, probe) for probe in _PROBES),
        scripts=tuple(_lossy_scripts(loaded.tokenizing)),
        tokens=rows,
        seconds=seconds,
    )


def _load_detector(
    name: str, options: Mapping[str, JsonValue]
) -> EncoderDetector | SentenceDetector:
    """Load the detector that a network is for: its logits have three dimensions, or two."""
    path = open_checkpoint(name, str(options.get("weights", ""))).weights
    ranks = {len(output.shape) for output in open_session(path, DeviceOptions()).outputs}
    kind = "encoder" if 3 in ranks else "encoder-nli"
    built = detector(DetectorSpec(detector=kind, options={"model": name, **options}))
    if isinstance(built, EncoderDetector | SentenceDetector):
        return built
    raise TypeError(f"{kind} is made by another package")


def _run_probe(detector: EncoderDetector | SentenceDetector, probe: _Probe) -> ProbeResult:
    right, wrong = (_doubt(detector, probe, word) for word in (probe.right, probe.wrong))
    return ProbeResult(probe.lang, probe.right, probe.wrong, of_right=right, of_wrong=wrong)


def _doubt(detector: EncoderDetector | SentenceDetector, probe: _Probe, word: str) -> float:
    """Return the probability that a word, or the sentence with it, is hallucinated."""
    answer = probe.answer.format(word)
    if isinstance(detector, SentenceDetector):
        (ruling,) = detector.verifier.judge([JudgedStatement(answer, (probe.passage,))])
        if isinstance(ruling, SpanlabError):
            raise ruling
        return 1.0 - ruling.support
    passages = (Passage(text=probe.passage),)
    item = Item(
        id="probe", lang=probe.lang, question=probe.question, answer=answer, passages=passages
    )
    (read,) = detector.rate([item])
    if isinstance(read, SpanlabError):
        raise read
    start = answer.index(word)
    inside = (
        prob
        for place, prob in zip(read.words.places, read.words.probs.tolist(), strict=True)
        if place.start < start + len(word) and start < place.end
    )
    return max(inside, default=0.0)


def _lossy_scripts(tokenizing: CheckpointTokenizer) -> Iterator[str]:
    """Yield the scripts in which some visible character is in no token."""
    for script, text in _SCRIPTS.items():
        covered = {at for start, end in tokenizing.places(text) for at in range(start, end)}
        if any(at not in covered for at, letter in enumerate(text) if not letter.isspace()):
            yield script


def _measure_speed(network: OnnxClassifier, tokenizing: CheckpointTokenizer) -> tuple[int, float]:
    """Return how many tokens were rated at once, and the seconds it took, best of three."""
    token = tokenizing.pair("a", "b").ids[0]
    size = min(_SPEED, tokenizing.limit)
    row = TokenWindow([token] * size, [0] * size, {})
    times = list[float]()
    for _ in range(3):
        begun = time.perf_counter()
        network.rate([row])
        times.append(time.perf_counter() - begun)
    return size, min(times)
