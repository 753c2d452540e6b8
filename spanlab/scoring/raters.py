"""Annotators beside each other: whether their responses agree, and whose marks to rely on.

Reliability without knowing the truth is Dawid & Skene, "Maximum Likelihood Estimation of Observer
Error-Rates Using the EM Algorithm" (Applied Statistics 28, 1979), for marks that are there or not.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, NamedTuple

import krippendorff
import numpy as np
from numpy.typing import NDArray

from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    Question,
    Record,
    Response,
    Span,
)


@dataclass(frozen=True)
class ResponseAgreement:
    """Krippendorff's alpha on the ``n`` answers or spans with two or more responses.

    ``alpha`` is None where it is undefined: nothing has two responses, or all of them are one.
    """

    n: int
    alpha: float | None


def response_agreement(
    units: Iterable[Sequence[Response]], *, ordinal: bool = False
) -> ResponseAgreement:
    """Measure the agreement on one question.

    Args:
        units: for each answer or span the responses to it, one for each annotator.
        ordinal: whether responses are values of a scale, of which close ones differ less
            (Krippendorff 2011); else each differs from each other as much.
    """
    counts = [Counter(unit) for unit in units if len(unit) > 1]
    if ordinal:
        values: list[Response] = sorted(
            {value for c in counts for value in c if type(value) is int}
        )
    else:
        values = list(dict.fromkeys(value for count in counts for value in count))
    if len(values) < 2:
        return ResponseAgreement(len(counts), None)
    table = np.array([[count[value] for value in values] for count in counts])
    level: Literal["ordinal", "nominal"] = "ordinal" if ordinal else "nominal"
    alpha = krippendorff.alpha(value_counts=table, level_of_measurement=level)
    return ResponseAgreement(len(counts), float(alpha))


def matched_spans(annotations: Iterable[Annotation]) -> Iterator[Mapping[str, Span]]:
    """Match the spans of an item's annotators: those of one label that overlap are the same.

    Spans also match that overlap through others. Where several of one annotator do, the longest
    stands for them.

    Yields:
        For each such group the span of each annotator that has one in it.
    """
    marked = [
        (annotation.annotator, span) for annotation in annotations for span in annotation.spans
    ]
    marked.sort(key=lambda pair: (pair[1].label or "", pair[1].start))
    for _, same in groupby(marked, key=lambda pair: pair[1].label):
        group: dict[str, Span] = {}
        end = 0
        for name, span in same:
            if span.start >= end and group:
                yield group
                group = {}
            group[name] = max(group.get(name, span), span, key=_length)
            end = max(end, span.end)
        yield group


def _length(span: Span) -> int:
    return span.end - span.start


MATCHED: Final = (
    "For attributes, n counts spans. Spans with the same label that overlap, directly or through "
    "others, count as one; if an annotator has several, the longest is used."
)
ALPHAS: Final = (
    "Choices are compared as equal or not, scales by rank (ordinal); texts are left out."
)


@dataclass(frozen=True)
class QuestionAgreement:
    """Agreement on a question, or on an attribute of matched spans (see ``matched_spans``)."""

    question: Question
    of_spans: bool
    persons: ResponseAgreement
    independent: ResponseAgreement

    @property
    def line(self) -> str:
        """What is agreed on, in words."""
        what = "attribute" if self.of_spans else "question"
        return f"{what}: {self.question.shown} ({self.question.kind})"


class ResponseTally:
    """Collects responses item by item: of choices and scales, by those who finished."""

    def __init__(self, kinds: Mapping[str, AnnotatorKind], settings: DatasetSettings) -> None:
        self._kinds = kinds
        questions = [(attribute, True) for attribute in settings.attributes]
        questions += [(question, False) for question in settings.questions]
        self._questions = [
            (question, of_spans) for question, of_spans in questions if question.kind != "text"
        ]
        self._units: dict[str, list[dict[str, Response]]] = defaultdict(list)

    def add(self, record: Record) -> None:
        """Take in an item."""
        if not self._questions:
            return
        finished = record.finished
        of_item = {annotation.annotator: annotation.responses for annotation in finished}
        matched = list(matched_spans(finished))
        for question, of_spans in self._questions:
            spans = (
                {name: span.attributes for name, span in group.items()}
                for group in matched
                if question.is_asked_of(next(iter(group.values())).label)
            )
            for by_annotator in spans if of_spans else [of_item]:
                fitting = {
                    name: responses[question.name]
                    for name, responses in by_annotator.items()
                    if question.is_answered_in(responses)
                }
                if len(fitting) > 1:
                    self._units[question.name].append(fitting)

    def result(self) -> tuple[QuestionAgreement, ...]:
        """Return the agreement on each question, attributes first."""
        people = (AnnotatorKind.PERSON,)
        both = (AnnotatorKind.PERSON, AnnotatorKind.DETECTOR)
        return tuple(
            QuestionAgreement(
                question,
                of_spans,
                self._agreement(question, people),
                self._agreement(question, both),
            )
            for question, of_spans in self._questions
        )

    def _agreement(self, question: Question, kinds: tuple[AnnotatorKind, ...]) -> ResponseAgreement:
        units = (
            [response for name, response in unit.items() if self._kinds.get(name) in kinds]
            for unit in self._units[question.name]
        )
        return response_agreement(units, ordinal=question.kind == "scale")


Array = NDArray[np.float64]
_ROUNDS: Final = 500
_CLOSE: Final = 1e-9


class RaterModel(NamedTuple):
    """Each rater's sensitivity and specificity, the share of marks that are true, posteriors."""

    sensitivity: Array
    specificity: Array
    prevalence: float
    posterior: Array


def dawid_skene(
    marks: Array,
    counts: Array,
    prior: float = 1.0,
    truth: Array | None = None,
    begin: Array | None = None,
) -> RaterModel:
    """Estimate raters and truth together by expectation maximisation.

    It begins at the majority, or at what known units show of the raters: a majority that errs alike
    is taken for right only where nothing is known.

    Args:
        marks: a row for each kind of unit, a column for each rater: 1 marked, 0 not, NaN unseen.
        counts: how many units of each kind there are.
        prior: units that each rater is thought to have had right and wrong before, so that few
            marks are no certainty; 0 for maximum likelihood.
        truth: for each kind of unit 1 or 0 where it is known, else NaN; it stays as it is.
        begin: the posterior of nearly the same units, to begin at.

    Returns:
        Of the two solutions that mirror each other that in which most raters beat chance, or that
        which the known units say.
    """
    seen = ~np.isnan(marks)
    yes = np.where(seen, marks, 0.0)
    no = np.where(seen, 1 - yes, 0.0)
    truth = np.full(len(marks), np.nan) if truth is None else truth
    known = ~np.isnan(truth)
    majority = yes.sum(1) / np.maximum(seen.sum(1), 1)
    posterior = np.where(known, truth, majority if begin is None else begin)
    # The first round looks at known units alone, if there are any.
    looked_at = counts * known if known.any() and begin is None else counts
    for _ in range(_ROUNDS):
        true, false = looked_at * posterior, looked_at * (1 - posterior)
        looked_at = counts
        sensitivity = (true @ yes + prior) / np.maximum(true @ seen + 2 * prior, 1e-300)
        specificity = (false @ no + prior) / np.maximum(false @ seen + 2 * prior, 1e-300)
        prevalence = true.sum() / max((true + false).sum(), 1e-300)
        sens, spec, share = (
            np.clip(value, _CLOSE, 1 - _CLOSE) for value in (sensitivity, specificity, prevalence)
        )
        odds = yes @ np.log(sens / (1 - spec)) + no @ np.log((1 - sens) / spec)
        updated = 1 / (1 + np.exp(-np.clip(odds + np.log(share / (1 - share)), -500, 500)))
        updated = np.where(known, truth, updated)
        moved = abs(updated - posterior).max()
        posterior = updated
        if moved < _CLOSE:
            break
    return RaterModel(sensitivity, specificity, float(prevalence), posterior)
