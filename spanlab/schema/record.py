"""What is said of an item: spans, claims, annotations, and the record of them all."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import Field, model_validator

from spanlab.base.fields import FrozenModel, Name, Offset, Probability, unique
from spanlab.schema.item import Item
from spanlab.schema.questions import Responses
from spanlab.schema.trace import PassageQuote, Step, TraceStep, Verdict

Stance = Literal["supports", "refutes", "closest"]


class _Quote(FrozenModel):
    """Characters ``[start, end)`` of some text, with the text itself."""

    start: Offset
    end: Offset
    text: str

    @model_validator(mode="after")
    def _length_is_right(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"end {self.end} must be greater than start {self.start}")
        if len(self.text) != self.end - self.start:
            raise ValueError(
                f"text {self.text[:40]!r} has {len(self.text)} characters, "
                f"offsets [{self.start}, {self.end}) have {self.end - self.start}"
            )
        return self

    def fits(self, whole: str) -> bool:
        """Say whether ``whole`` has exactly this text at these offsets."""
        return whole[self.start : self.end] == self.text


class Evidence(_Quote):
    """A quoted part of one of the item's passages.

    ``passage`` is the 0-based index of the passage. ``stance`` says what the quote does to the
    span or claim it is tied to; ``closest`` means only that nothing in the passages comes closer.
    """

    passage: Offset
    stance: Stance = "closest"
    note: str | None = None


class Span(_Quote):
    """Characters ``[start, end)`` of the answer that may be hallucinated.

    ``prob`` in [0, 1] is the proportion of annotators that mark them (1.0 for one person's mark);
    ``source`` names the annotator that suggested the span, if it was a suggestion. Where it was
    made from the marks of several, as by a majority, ``voters`` are these annotators.
    ``attributes`` are responses to what the dataset asks of each span, by name.
    """

    prob: Probability = 1.0
    label: Name | None = None
    note: str | None = None
    source: Name | None = None
    voters: tuple[Name, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    attributes: Responses = Field(default_factory=dict)

    @classmethod
    def of(
        cls,
        answer: str,
        start: int,
        end: int,
        *,
        prob: float = 1.0,
        label: str | None = None,
        evidence: tuple[Evidence, ...] = (),
    ) -> Self:
        """Build the span ``[start, end)`` of ``answer``, quoting it.

        Raises:
            pydantic.ValidationError: the offsets are empty, reversed or outside the answer.
        """
        text = answer[start:end] if 0 <= start <= end else ""
        return cls(start=start, end=end, text=text, prob=prob, label=label, evidence=evidence)

    def __hash__(self) -> int:
        """Hash what tells spans apart, as mappings have no hash."""
        return hash((self.start, self.end, self.text, self.label, self.source))


class Interval(FrozenModel):
    """Characters ``[start, end)`` without anything said about them."""

    start: Offset
    end: Offset

    @model_validator(mode="after")
    def _is_not_empty(self) -> Self:
        if self.end <= self.start:
            raise ValueError(f"end {self.end} must be greater than start {self.start}")
        return self


class Claim(FrozenModel):
    """A self-contained statement taken from the answer; ``source`` quotes where it came from.

    ``prob`` is how sure the verdict is, ``note`` why it was given or, where there is none, why it
    could not be. ``error_stages`` are the stages of the item's process where what is not supported
    came in. ``suggested_by`` names the annotator whose claim a person took over; where it was taken
    from several, as by a majority, ``voters`` are those who gave its verdict.
    """

    text: str
    source: Span | None = None
    verdict: Verdict | None = None
    prob: Probability | None = None
    evidence: tuple[Evidence, ...] = ()
    note: str | None = None
    error_stages: tuple[str, ...] = ()
    suggested_by: Name | None = None
    voters: tuple[Name, ...] = ()


# What a script may write for the members of the enums below; lists stand for tuples everywhere.
KindName = Literal["person", "detector", "vote", "gold"]
StatusName = Literal["not-annotated", "done", "failed", "skipped"]


class Status(StrEnum):
    """What has become of an item under one annotator; four different states, everywhere."""

    NOT_ANNOTATED = "not-annotated"  # nobody has finished it; spans may exist as a draft
    DONE = "done"  # finished; without spans it means "checked, nothing hallucinated"
    FAILED = "failed"  # the attempt broke; `note` says why
    SKIPPED = "skipped"  # the annotator chose to leave it


class AnnotatorKind(StrEnum):
    """What sort of annotator made an annotation."""

    PERSON = "person"
    DETECTOR = "detector"
    VOTE = "vote"
    GOLD = "gold"


class Annotation(FrozenModel):
    """What one annotator says of one item.

    ``hard`` is the annotator's own decision which characters are hallucinated; ``None`` means
    those with probability > 0.5. ``rejected`` are suggestions that a person refused,
    ``rejected_claims`` claims whose verdict a person refused. ``voters`` are the annotators behind
    a vote, ``decided_by`` is the person who adjudicated: who made these labels from those of
    others. ``note`` is a remark on the whole, or why it failed. ``trace`` tells what a detector
    did, step by step. ``guidelines`` is the version of the dataset's guidelines that a person had.
    ``responses`` are those to what the dataset asks of each answer, by name.

    ``answer_hallucinated`` is what the annotator said of the answer as a whole, None if nothing;
    ``answer_prob`` in [0, 1] is how likely the answer is hallucinated, where the annotator has a
    number of its own for that. ``hallucinated`` and ``hallucination_prob`` put these together with
    the spans.
    """

    annotator: Name
    kind: AnnotatorKind
    status: Status = Status.DONE
    answer_hallucinated: bool | None = None
    answer_prob: Probability | None = None
    spans: tuple[Span, ...] = ()
    hard: tuple[Interval, ...] | None = None
    rejected: tuple[Span, ...] = ()
    claims: tuple[Claim, ...] = ()
    rejected_claims: tuple[Claim, ...] = ()
    voters: tuple[Name, ...] = ()
    decided_by: Name | None = None
    note: str | None = None
    trace: tuple[Step, ...] = ()
    guidelines: Annotated[int, Field(ge=1)] | None = None
    responses: Responses = Field(default_factory=dict)

    if TYPE_CHECKING:

        def __init__(  # noqa: PLR0913 - the fields, as a script may give them
            self,
            *,
            annotator: str,
            kind: AnnotatorKind | KindName,
            status: Status | StatusName = ...,
            answer_hallucinated: bool | None = ...,
            answer_prob: float | None = ...,
            spans: Iterable[Span] = ...,
            hard: Iterable[Interval] | None = ...,
            rejected: Iterable[Span] = ...,
            claims: Iterable[Claim] = ...,
            rejected_claims: Iterable[Claim] = ...,
            voters: Iterable[str] = ...,
            decided_by: str | None = ...,
            note: str | None = ...,
            trace: Iterable[Step] = ...,
            guidelines: int | None = ...,
            responses: Mapping[str, int | str] = ...,
        ) -> None: ...

    def __hash__(self) -> int:
        """Hash what tells annotations apart, as mappings have no hash."""
        return hash((self.annotator, self.kind, self.status, self.spans))

    @model_validator(mode="after")
    def _failure_has_a_reason(self) -> Self:
        if self.status is Status.FAILED and not self.note:
            raise ValueError("a failed annotation needs a note that says why")
        return self

    @property
    def hallucinated(self) -> bool | None:
        """The verdict on the whole answer; None where the annotation is not finished.

        Marked characters decide; without any, what was said of the answer does. An annotation that
        is finished, marks nothing and says nothing means that nothing is hallucinated.
        """
        if self.status is not Status.DONE:
            return None
        return self._marks_characters or bool(self.answer_hallucinated)

    @property
    def hallucination_prob(self) -> float | None:
        """How likely the answer is hallucinated, in [0, 1]; None where it is not finished.

        It is the annotation's own ``answer_prob``; else that of its likeliest span; without spans 1
        for a hallucinated answer and 0 for any other.
        """
        if self.status is not Status.DONE:
            return None
        if self.answer_prob is not None:
            return self.answer_prob
        if self.spans:
            return max([span.prob for span in self.spans])
        return float(bool(self.answer_hallucinated))

    @property
    def is_verdict_only(self) -> bool:
        """Whether it says of the whole answer what it says, and marks no place in it."""
        return self.answer_hallucinated is not None and not self.spans and not self.hard

    def is_claim_of_whole(self, item: Item) -> bool:
        """Say whether this is what whole-answer labels once became: a claim that is the answer."""
        claims = self.claims
        return (
            self.kind is AnnotatorKind.GOLD
            and self.answer_hallucinated is None
            and not (self.spans or self.hard)
            and len(claims) == 1
            and (claims[0].text, claims[0].verdict, claims[0].source)
            == (item.answer, "not-supported", None)
        )

    @property
    def contradicts_itself(self) -> bool:
        """Whether it calls the whole answer right and marks characters of it."""
        return self.answer_hallucinated is False and self._marks_characters

    @property
    def _marks_characters(self) -> bool:
        if self.hard is not None:
            return bool(self.hard)
        return any(span.prob > 0.5 for span in self.spans)

    def check(self, item: Item) -> None:
        """Check that every quote of this annotation is where it says it is in ``item``.

        Raises:
            ValueError: names the field, what it quotes and what stands there.
        """
        answer = item.answer
        for name, spans in (("spans", self.spans), ("rejected", self.rejected)):
            for index, span in enumerate(spans):
                # Most spans are right and bare; naming each would double the cost of a read.
                if span.evidence or answer[span.start : span.end] != span.text:
                    _check_span(span, item, f"{name}.{index}")
        for name, claims in (("claims", self.claims), ("rejected_claims", self.rejected_claims)):
            for index, claim in enumerate(claims):
                if claim.source is not None:
                    _check_span(claim.source, item, f"{name}.{index}.source")
                _check_evidence(claim.evidence, item, f"{name}.{index}")
        for index, interval in enumerate(self.hard or ()):
            _check_end(interval.end, item, f"hard.{index}")
        for index, step in enumerate(self.trace):
            _check_step(step, item, f"trace.{index}")


class Record(FrozenModel):
    """An item with everything that annotators have said of it.

    Raises:
        pydantic.ValidationError: a quote is not where it says it is, or two annotations are signed
            alike.
    """

    item: Item
    annotations: tuple[Annotation, ...] = ()

    if TYPE_CHECKING:

        def __init__(self, *, item: Item, annotations: Iterable[Annotation] = ...) -> None: ...

    @model_validator(mode="after")
    def _annotations_fit(self) -> Self:
        _check_fit(self.item, self.annotations)
        return self

    @staticmethod
    def of_valid(item: Item, annotations: tuple[Annotation, ...]) -> Record:
        """Return the record of parts that were validated one by one; only their fit is checked.

        The constructor would run the parts' own checks again, which doubles the cost of a read.

        Raises:
            pydantic.ValidationError: as the constructor.
        """
        try:
            _check_fit(item, annotations)
        except ValueError:
            return Record(item=item, annotations=annotations)  # says it in the validator's words
        return Record.model_construct(item=item, annotations=annotations)

    def by(self, annotator: str) -> Annotation | None:
        """Return the annotation of ``annotator``, or None if it has not annotated this item."""
        for annotation in self.annotations:
            if annotation.annotator == annotator:
                return annotation
        return None

    @property
    def finished(self) -> tuple[Annotation, ...]:
        """The annotations that are done, neither begun only nor skipped nor failed."""
        return tuple(a for a in self.annotations if a.status is Status.DONE)

    @property
    def placed(self) -> tuple[Annotation, ...]:
        """The finished annotations that say what is hallucinated in it: see ``placed_in``."""
        return placed_in(self.finished)


def placed_in(annotations: Sequence[Annotation]) -> tuple[Annotation, ...]:
    """Return those annotations of an item that say which of its characters are hallucinated.

    Who calls the answer right as a whole says so beside another of the kind who marks places: else
    they may not be asked for places. Who calls it hallucinated does not say where.
    """
    asked = {one.kind for one in annotations if not one.is_verdict_only}
    return tuple(
        one
        for one in annotations
        if not one.is_verdict_only or (one.kind in asked and not one.hallucinated)
    )


def _check_fit(item: Item, annotations: tuple[Annotation, ...]) -> None:
    unique((annotation.annotator for annotation in annotations), "annotator")
    for index, annotation in enumerate(annotations):
        try:
            annotation.check(item)
        except ValueError as error:
            raise ValueError(f"annotations.{index}.{error}") from error


def _check_end(end: int, item: Item, field: str) -> None:
    if end > len(item.answer):
        raise ValueError(f"{field}: end {end} is past the answer's {len(item.answer)} characters")


def _check_step(step: Step, item: Item, field: str) -> None:
    for place in getattr(step, "places", ()):
        _check_end(place.end, item, field)
    for quote in step.quoted().values() if isinstance(step, TraceStep) else ():
        _check_read(quote, item, field)


def _check_read(quote: PassageQuote, item: Item, field: str) -> None:
    passages = item.passages
    if quote.passage >= len(passages) or quote.end > len(passages[quote.passage].text):
        raise ValueError(f"{field}: no passage {quote.passage} has {quote.end} characters")


def _check_span(span: Span, item: Item, field: str) -> None:
    if not span.fits(item.answer):
        there = item.answer[span.start : span.end]
        raise ValueError(
            f"{field}: quotes {span.text[:60]!r} at [{span.start}, {span.end}), "
            f"but the answer has {there[:60]!r} there"
        )
    _check_evidence(span.evidence, item, field)


def _check_evidence(quotes: tuple[Evidence, ...], item: Item, field: str) -> None:
    for index, quote in enumerate(quotes):
        if quote.passage >= len(item.passages):
            raise ValueError(
                f"{field}.evidence.{index}: passage {quote.passage} does not exist, "
                f"the item has {len(item.passages)}"
            )
        whole = item.passages[quote.passage].text
        if not quote.fits(whole):
            there = whole[quote.start : quote.end]
            raise ValueError(
                f"{field}.evidence.{index}: quotes {quote.text[:60]!r}, "
                f"but passage {quote.passage} has {there[:60]!r} there"
            )
