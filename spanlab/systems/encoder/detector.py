"""``encoder``: a classifier of tokens rates every word of an answer beside its passages.

After Kovács and Recski 2025, "LettuceDetect: A Hallucination Detection Framework for RAG
Applications" (ModernBERT and EuroBERT as classifiers of tokens). 1. Question and passages become
the first text in the format of the checkpoint, the answer is the second. 2. What is longer than the
window is read in windows that overlap (``tokenizing``). 3. The network gives every token of the
answer the probabilities of its labels; of several windows, a token is supported if any of them
supports it, or by their mean. 4. Tokens become words, and words spans (``words``).

Deviations: the paper's code rates a token by the window that doubts it most, this one by the
window that supports it most, as evidence stands in one place; a token that spans two words counts
for both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError, SpanlabError, UsageError
from spanlab.detection.base import DetectorKit, failed
from spanlab.networks.checkpoint import Checkpoint, open_checkpoint
from spanlab.networks.checkpoint_facts import supported_labels
from spanlab.networks.classifier import OnnxClassifier, load
from spanlab.networks.tokenizing import CheckpointTokenizer, TokenizedPiece, rows_of
from spanlab.schema import Annotation, AnnotatorKind, Interval, Item, RemarkStep, Span
from spanlab.systems.encoder import WINDOW, EncoderOptions, FormatName, TokenOptions
from spanlab.systems.encoder.words import RatedWords, WordCalibration, marked, rate_words
from spanlab.text.extents import Extent

NAME: Final = "encoder"
NOTED: Final = "spanlab"  # the field of config.json in which `spanlab encoder train` says how
NO_PASSAGES: Final = "no passages were given: the checkpoint read the answer beside nothing"


class WordRatings(NamedTuple):
    """The words of an item with uncalibrated probabilities, and how they were read."""

    words: RatedWords
    pieces: int
    windows: int


@dataclass(frozen=True)
class EncoderDetector:
    """Marks what a classifier of tokens doubts; any number of threads may share it."""

    options: TokenOptions
    checkpoint: Checkpoint
    network: OnnxClassifier
    tokenizing: CheckpointTokenizer
    supported: frozenset[int]
    format: PromptFormat
    calibration: WordCalibration | None
    digest: str
    name: str = NAME

    @property
    def batch(self) -> int:
        """How many items it takes at once."""
        return 4 * self.options.batch  # enough to find some of about equal length

    def annotate(self, item: Item) -> Annotation:
        """Mark an item's answer; see ``annotate_all``.

        Raises:
            InputError: the item cannot be read, or the network breaks on it.
        """
        (read,) = self.rate([item])
        if isinstance(read, SpanlabError):
            raise read
        return self._annotation(item, read)

    def annotate_all(self, items: Sequence[Item]) -> list[Annotation]:
        """Mark answers, in their order.

        Returns:
            Done annotations, without spans where nothing is doubted, or failed ones that say what
            of the item cannot be read. The trace says which checkpoint read what.

        Raises:
            InputError: the network breaks on the items.
        """
        return [
            failed(self.name, read)
            if isinstance(read, SpanlabError)
            else self._annotation(item, read)
            for item, read in zip(items, self.rate(items), strict=True)
        ]

    def rate(self, items: Sequence[Item]) -> list[WordRatings | SpanlabError]:
        """Return the rated words of items, or why an item cannot be read.

        Raises:
            InputError: the network breaks on the items.
        """
        cut = [read_item(self.tokenizing, self._prompt(item), item) for item in items]
        rated = iter(self.network.rate(rows_of(cut), self.options.batch))
        ratings: list[WordRatings | SpanlabError] = []
        for item, pieces in zip(items, cut, strict=True):
            if isinstance(pieces, SpanlabError):
                ratings.append(pieces)
                continue
            tokens: list[tuple[Extent, float]] = []
            for piece in pieces:
                tokens += self._doubts(piece, [next(rated) for _ in piece.rows])
            windows = max((len(piece.rows) for piece in pieces), default=0)
            words = rate_words(item.answer, item.lang, tokens)
            ratings.append(WordRatings(words, len(pieces), windows))
        return ratings

    def _prompt(self, item: Item) -> PromptFormat:
        """Return what the checkpoint reads before an item's answer."""
        trained = self.format is FORMATS["lettucedetect"]
        return in_language(item.lang) if trained else self.format

    def _doubts(
        self, piece: TokenizedPiece, rated: list[NDArray[np.float32]]
    ) -> list[tuple[Extent, float]]:
        """Return each token's characters in the answer, and how probable it is hallucinated."""
        supporting = sorted(self.supported)
        support = np.array(
            [
                probs[list(row.places)][:, supporting].sum(axis=1)
                for row, probs in zip(piece.rows, rated, strict=True)
            ]
        )
        joined = support.max(axis=0) if self.options.windows == "any" else support.mean(axis=0)
        doubts = np.clip(1.0 - joined.astype(np.float64), 0.0, 1.0).tolist()
        return [
            (Extent(piece.start + place.start, piece.start + place.end), doubt)
            for place, doubt in zip(piece.rows[0].places.values(), doubts, strict=True)
        ]

    def _annotation(self, item: Item, read: WordRatings) -> Annotation:
        options, words = self.options, read.words
        threshold = options.threshold
        if self.calibration is not None:
            words = words._replace(probs=self.calibration.apply(words.probs))
            threshold = self.calibration.threshold if threshold is None else threshold
        threshold = 0.5 if threshold is None else threshold
        extents = marked(item.answer, words, min(options.floor, threshold), threshold)
        remarks = [
            RemarkStep(text=text)
            for text in (self._provenance(item), _reading(read.pieces, read.windows))
            if text
        ]
        return Annotation(
            annotator=self.name,
            kind=AnnotatorKind.DETECTOR,
            spans=tuple(
                Span.of(item.answer, extent.start, extent.end, prob=extent.prob)
                for extent in extents
            ),
            hard=tuple(
                Interval(start=extent.start, end=extent.end) for extent in extents if extent.hard
            ),
            note=None if any(passage.text.strip() for passage in item.passages) else NO_PASSAGES,
            trace=tuple(remarks),
        )

    def _provenance(self, item: Item) -> str:
        prompt = self._prompt(item)
        prompt_text = prompt.text if item.question.strip() else prompt.unasked
        learnt = self.calibration
        calibrated = f"; calibrated by {learnt.method}" if learnt else ""
        return (
            f"checkpoint {self.checkpoint.name}, {self.checkpoint.weights.name} with SHA-256 "
            f"{self.digest}{calibrated}; it read the answer after: {prompt_text}"
        )


def read_item(
    tokenizing: CheckpointTokenizer, prompt: PromptFormat, item: Item
) -> list[TokenizedPiece] | SpanlabError:
    """Return an item as rows for a network, or why its passages have no room beside the answer."""
    passages = [passage.text for passage in item.passages if passage.text.strip()]
    try:
        return tokenizing.read(
            lambda shown: prompt.render(item.question, shown), passages, item.answer
        )
    except SpanlabError as error:
        return error


def create(kit: DetectorKit) -> EncoderDetector:
    """Load the detector that the specification's options describe.

    Raises:
        InputError: the checkpoint is missing, damaged, unsuitable or unsafe.
        UsageError: a package or device is missing, or an option does not fit.
    """
    options = TokenOptions.model_validate(kit.spec.options)
    checkpoint = open_checkpoint(options.model, options.weights)
    format_ = format_of(options.format or noted_format(checkpoint), options.template, options.label)
    tokenizing = tokenizing_of(checkpoint, options)
    network = load(checkpoint, "tokens", options.running)
    supported = supported_labels(network.labels, options.supported, checkpoint.folder)
    digest = checkpoint.digest()
    learnt = _calibration(Path(options.calibration), digest) if options.calibration else None
    return EncoderDetector(
        options, checkpoint, network, tokenizing, supported, format_, learnt, digest
    )


def _calibration(path: Path, digest: str) -> WordCalibration:
    calibration = WordCalibration.read(path)
    if calibration.sha256 and calibration.sha256 != digest:
        raise InputError(
            "the calibration was learnt for other weights",
            file=path,
            found=f"{calibration.checkpoint} with SHA-256 {calibration.sha256[:12]}…",
            expected=f"SHA-256 {digest[:12]}…: calibrate again",
        )
    return calibration


def noted_format(checkpoint: Checkpoint) -> FormatName:
    """Return the format that a checkpoint's configuration notes, by default LettuceDetect's."""
    noted = checkpoint.config.get(NOTED)
    name = noted.get("format") if isinstance(noted, dict) else None
    return "pair" if name == "pair" else "lettucedetect"


def tokenizing_of(checkpoint: Checkpoint, options: EncoderOptions) -> CheckpointTokenizer:
    """Read a checkpoint's tokenizer, with the window that options choose.

    Raises:
        InputError: it is missing, damaged or another checkpoint's.
    """
    window = min(options.window or WINDOW, checkpoint.positions)
    vocabulary = checkpoint.config.get("vocab_size")
    return CheckpointTokenizer.of(checkpoint.tokenizer(), window, vocabulary)


def _reading(pieces: int, windows: int) -> str:
    parts = []
    if pieces > 1:
        parts.append(f"the answer was read in {pieces} pieces")
    if windows > 1:
        parts.append(f"the passages were read in up to {windows} windows that overlap")
    return "; ".join(parts)


# The languages besides English that LettuceDetect's checkpoints were trained in, with the word
# that stands before each passage's number; the file of Chinese is called otherwise.
_PASSAGE: Final = {
    "de": "Passage",
    "es": "pasaje",
    "fr": "passage",
    "hu": "szövegrészlet",
    "it": "brano",
    "pl": "fragment",
    "zh": "段落",
}
_FILES: Final = {"zh": "cn"}
_THEIRS: Final = {
    "question": "question",
    "context": "passages",
    "text": "passages",
    "num_passages": "count",
}
_PLACE: Final = re.compile(r"\{(question|passages|count)\}")


class PromptFormat(NamedTuple):
    """A text with ``{question}``, ``{passages}`` and ``{count}`` in it.

    ``unasked`` is the text for items without a question. ``label`` stands before each passage,
    with its number for ``{number}``.
    """

    text: str
    unasked: str
    label: str = ""

    def render(self, question: str, passages: Sequence[str]) -> str:
        """Return the text for a question and passages; nothing in them is read as a place."""
        shown = (
            self.label.replace("{number}", str(number)) + passage
            for number, passage in enumerate(passages, start=1)
        )
        values = {"question": question, "passages": "\n".join(shown), "count": str(len(passages))}
        template = self.text if question.strip() else self.unasked
        return _PLACE.sub(lambda match: values[match[1]], template)


# The prompts of RAGTruth (Niu et al. 2024), on whose inputs LettuceDetect's checkpoints were
# trained (Kovács and Recski 2025): a checkpoint is to read what it has learnt to read.
FORMATS: Final[dict[FormatName, PromptFormat]] = {
    "lettucedetect": PromptFormat(
        "Briefly answer the following question:\n{question}\nBear in mind that your response "
        "should be strictly based on the following {count} passages:\n{passages}\nIn case the "
        "passages do not contain the necessary information to answer the question, please reply "
        'with: "Unable to answer based on given passages."\noutput:',
        "Summarize the following text:\n{passages}\noutput:",
        "passage {number}: ",
    ),
    "pair": PromptFormat("{question}\n{passages}", "{passages}"),
}


def in_language(lang: str) -> PromptFormat:
    """Return LettuceDetect's prompt in a language; in English where there is none.

    The checkpoints in other languages learnt prompts of their own, which LettuceDetect's package
    brings: they are read from there where it is installed, and nothing of it is imported.

    Args:
        lang: BCP 47 tag of an item.
    """
    word = _PASSAGE.get(code := lang.partition("-")[0].lower())
    package = find_spec("lettucedetect") if word else None
    if word is None or package is None or not package.submodule_search_locations:
        return FORMATS["lettucedetect"]
    folder = Path(package.submodule_search_locations[0]) / "prompts"
    files = (f"{kind}_prompt_{_FILES.get(code, code)}.txt" for kind in ("qa", "summary"))
    try:
        question_prompt, summary = ((folder / file).read_text(encoding="utf-8") for file in files)
    except OSError:
        return FORMATS["lettucedetect"]
    return PromptFormat(_places(question_prompt), _places(summary), f"{word} {{number}}: ")


def _places(template: str) -> str:
    """Return one of LettuceDetect's templates with our names of its places."""
    for theirs, ours in _THEIRS.items():
        template = template.replace(f"${{{theirs}}}", f"{{{ours}}}")
    return template


def format_of(name: FormatName, template: str, label: str = "") -> PromptFormat:
    """Return a format by name, or that of an own template.

    Args:
        name: one of ``FORMATS``.
        template: an own text; empty for the format that is named.
        label: what stands before each passage in an own template.

    Raises:
        UsageError: the template has no place for passages.
    """
    if not template:
        return FORMATS[name]
    if "{passages}" not in template:
        raise UsageError(
            f"the template {template[:60]!r} has no {{passages}} (it may have {{question}}, "
            "{passages} and {count})"
        )
    return PromptFormat(template, template, label)
