"""Adjudication: the queue of items to decide, and items on which all agree, decided at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import uuid4

from spanlab.base.errors import UsageError
from spanlab.oplog.answer_operations import ClaimMark, ReplaceClaims, Respond
from spanlab.oplog.operations import Operation, ReplaceSpans, SentOperation, SetStatus, Undo
from spanlab.oplog.state import CitedQuote, ReviewState, SuggestionMark
from spanlab.output.figures import counted
from spanlab.schema import (
    ADJUDICATED,
    Annotation,
    AnnotatorKind,
    Claim,
    DatasetSettings,
    DatasetSummary,
    Evidence,
    Interval,
    Question,
    QueueQuery,
    Record,
    Response,
    Responses,
    Span,
    Status,
)
from spanlab.storage import Store
from spanlab.text.extents import merge
from spanlab.text.suggestions import suggestions
from spanlab.worklists import paging, sight

STATES = {"All": None, "Not decided": Status.NOT_ANNOTATED, "Decided": Status.DONE}


def check_adjudicator(store: Store, summary: DatasetSummary, name: str) -> None:
    """Check that a person may adjudicate a dataset, and so see the annotations of others.

    Raises:
        UsageError: the dataset is reviewed blind, and this person has items left to review.
    """
    if summary.settings.is_blind and sight.sight_of(store, summary.name, name).blind:
        n_left = counted(sight.n_undecided(store, summary.name, name), "item")
        raise UsageError(
            f"“{name}” reviews this dataset blind and has {n_left} left; adjudication shows what "
            "others marked. Review these first, or let somebody adjudicate who does not review."
        )


@dataclass(frozen=True, kw_only=True)
class AdjudicationQueue:
    """The items to decide, most disagreement first, those on which people are unanimous last.

    ``target`` names the gold labels that decisions become; ``state``, one of ``STATES``, is the
    items' under that name. At least ``least`` people have finished them, in ``lang`` or in any.
    """

    target: str = ADJUDICATED
    state: str = "All"
    least: int = 2
    lang: str | None = None

    @property
    def query(self) -> QueueQuery:
        """The query of the store for these items; its reviewer is the name of the gold labels."""
        return QueueQuery(
            reviewer=self.target,
            status=STATES[self.state],
            min_annotators=self.least or None,
            lang=self.lang,
            order="disputed",
        )

    @property
    def described(self) -> str:
        """The settings of the queue in one line."""
        people = "1 person" if self.least == 1 else f"{self.least} people"
        finished_by = f"finished by {people} or more" if self.least else None
        parts = [f"Saved as “{self.target}”", self.lang, finished_by]
        return " · ".join(part for part in parts if part)


_CHUNK = 200  # items that are read at a time
_SOURCE = "majority"  # all of them are more than half


# Responses that are told apart: names and values in the order of the questions.
_Responses: TypeAlias = tuple[tuple[str, Response], ...]
_Marked: TypeAlias = frozenset[tuple[int, int, tuple[str | None, _Responses]]]


@dataclass(frozen=True)
class AgreedItem:
    """An undecided item on which at least two annotators agree, with their annotation.

    ``operations`` write that annotation; ``base`` is how many operations the item's log has.
    """

    item_id: str
    base: int
    operations: tuple[Operation, ...]
    n_spans: int


@dataclass(frozen=True)
class TakenItems:
    """Items that one action decided: ids, and the lengths of their logs before and after it."""

    dataset: str
    target: str
    author: str
    items: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Agreement:
    """The items that can be decided at once, and why others with the same marks cannot.

    ``left`` counts these by their reasons.
    """

    items: tuple[AgreedItem, ...]
    left: Mapping[str, int]


def agreed_items(store: Store, dataset: str, queue: AdjudicationQueue) -> Agreement:
    """Return the undecided items of a queue on which all who finished them agree.

    These are people, or where no person has, detectors; at least two. They agree if they mark the
    same characters with the same labels, give the same claims the same verdicts, and respond the
    same to what the dataset asks, texts aside, which are not taken. An item whose decision somebody
    has begun is left out, as is one without a response that Done is refused without.

    Raises:
        NotFoundError: there is no such dataset.
    """
    query = replace(queue.query, status=Status.NOT_ANNOTATED)
    positions = paging.positions(store, dataset, query)
    settings = store.settings(dataset)
    agreed = []
    left = Counter[str]()
    for first in range(0, len(positions), _CHUNK):
        for record in store.records_at(dataset, positions[first : first + _CHUNK]):
            voters = _voters(record)
            if not _mark_the_same(voters, record.item.answer, settings):
                continue
            review = store.review(dataset, record.item.id, queue.target, AnnotatorKind.GOLD)
            reason = _reason_to_leave(voters, settings)
            if review.state != ReviewState():
                reason = "their decision has been begun"
            if reason is not None:
                left[reason] += 1
                continue
            operations, n_spans = _decision(voters, record.item.answer, settings)
            agreed.append(AgreedItem(record.item.id, review.version, operations, n_spans))
    return Agreement(tuple(agreed), left)


def take_agreed(
    store: Store, dataset: str, target: str, author: str, agreed: Iterable[AgreedItem]
) -> TakenItems:
    """Decide items as their annotators agree, in the name of ``author``.

    An item whose decision somebody has begun meanwhile is left as it is.

    Returns:
        The items that were decided, for ``take_back``.
    """
    version = len(store.settings(dataset).guidelines)
    writer = _ItemWriter(store, dataset, target, author=author, guidelines=version)
    taken_items = [
        (item.item_id, item.base, item.base + len(item.operations))
        for item in agreed
        if writer.write(item.item_id, item.base, item.operations)
    ]
    return TakenItems(dataset, target, author, tuple(taken_items))


def take_back(store: Store, taken_items: TakenItems) -> int:
    """Undo decisions of ``take_agreed``; return the number of items that were undone.

    Items that somebody has changed since stay as they are.
    """
    writer = _ItemWriter(
        store, taken_items.dataset, taken_items.target, author=taken_items.author, guidelines=0
    )
    return sum(
        writer.write(item_id, length, [Undo()] * (length - before))
        for item_id, before, length in taken_items.items
    )


class _ItemWriter:
    """Writes of one session to the logs of gold labels."""

    def __init__(
        self, store: Store, dataset: str, target: str, *, author: str, guidelines: int
    ) -> None:
        self._store = store
        self._log = (dataset, target)
        self._author = author
        self._guidelines = guidelines
        self._session = str(uuid4())
        self._seq = 0

    def write(self, item_id: str, base: int, operations: Iterable[Operation]) -> bool:
        """Append operations to an item's log of ``base`` operations; False if it has grown."""
        writes = []
        for number, operation in enumerate(operations):
            self._seq += 1
            writes.append(
                SentOperation(
                    session=self._session,
                    seq=self._seq,
                    base=base + number,
                    operation=operation,
                    author=self._author,
                    guidelines=self._guidelines,
                )
            )
        dataset, target = self._log
        return not self._store.apply(dataset, item_id, target, writes).refused


def _mark_the_same(voters: list[Annotation], answer: str, settings: DatasetSettings) -> bool:
    """Say whether at least two annotators mark the same, or all that nothing can be marked."""
    return (
        len(voters) > 1
        and len({_marked_stretches(voter, answer, settings) for voter in voters}) == 1
        and len({voter.hallucinated for voter in voters}) == 1
    )


def _reason_to_leave(voters: list[Annotation], settings: DatasetSettings) -> str | None:
    """Return why the same marks of annotators do not decide an item; None if they do."""
    if len({_closed_responses(voter.responses, settings.questions) for voter in voters}) > 1:
        return "their responses differ"
    if settings.unanswered == "refused" and settings.missing(voters[0]):
        return "a required response is missing"
    if len({frozenset(map(_claim_key, voter.claims)) for voter in voters}) > 1:
        return "their claims differ"
    return None


def _decision(
    voters: list[Annotation], answer: str, settings: DatasetSettings
) -> tuple[tuple[Operation, ...], int]:
    """Return the annotation on which all agree as operations, and its number of spans."""
    marks = tuple(_suggestion_marks(voters, answer, settings))
    operations: list[Operation] = [ReplaceSpans(spans=_new_ids(marks), marks=marks)]
    claims = tuple(_claim_marks(voters))
    if claims:
        operations.append(ReplaceClaims(claims=_new_ids(claims), marks=claims))
    for name, response in _closed_responses(voters[0].responses, settings.questions):
        operations.append(Respond(question=name, response=response))
    is_unplaced = bool(voters[0].hallucinated) and not marks
    operations.append(SetStatus(status=Status.DONE, hallucinated=is_unplaced or None))
    return tuple(operations), len(marks)


def _voters(record: Record) -> list[Annotation]:
    people = [a for a in record.finished if a.kind is AnnotatorKind.PERSON]
    return people or [a for a in record.finished if a.kind is AnnotatorKind.DETECTOR]


def _marked_stretches(voter: Annotation, answer: str, settings: DatasetSettings) -> _Marked:
    """Return the stretches that an annotator marks, merged by label and attributes."""
    spans = [
        (span, (span.label, _closed_responses(span.attributes, settings.attributes)))
        for span in _hard_spans(voter, answer)
    ]
    kinds = {kind for _, kind in spans}
    return frozenset(
        (start, end, kind)
        for kind in kinds
        for start, end in merge(span for span, span_kind in spans if span_kind == kind)
    )


def _closed_responses(responses: Responses, questions: Sequence[Question]) -> _Responses:
    """Return the responses that the questions allow, without texts, in the questions' order."""
    return tuple(
        (question.name, responses[question.name])
        for question in questions
        if question.kind != "text" and question.is_answered_in(responses)
    )


def _hard_spans(voter: Annotation, answer: str) -> list[Span]:
    return [suggestion.span for suggestion in suggestions(voter, answer) if suggestion.likely]


def _suggestion_marks(
    voters: list[Annotation], answer: str, settings: DatasetSettings
) -> Iterator[SuggestionMark]:
    names = tuple(voter.annotator for voter in voters)
    spans = [span for voter in voters for span in _hard_spans(voter, answer)]
    marked = _marked_stretches(voters[0], answer, settings)
    by_place = sorted(marked, key=lambda mark: (mark[:2], mark[2][0] or ""))
    for start, end, (label, attributes) in by_place:
        over = (span for span in spans if start <= span.start and span.end <= end)
        yield SuggestionMark(
            source=_SOURCE,
            start=start,
            end=end,
            label=label,
            voters=names,
            attributes=dict(attributes),
            evidence=_unique_quotes(
                quote for span in over if span.label == label for quote in span.evidence
            ),
        )


def _claim_key(claim: Claim) -> tuple[str, int | None, int | None, str | None]:
    place = (claim.source.start, claim.source.end) if claim.source else (None, None)
    return (claim.text, *place, claim.verdict)


def _claim_marks(voters: list[Annotation]) -> Iterator[ClaimMark]:
    names = tuple(voter.annotator for voter in voters)
    first = {_claim_key(claim): claim for claim in voters[0].claims}
    for key, claim in first.items():
        same_claims = [
            claim for voter in voters for claim in voter.claims if _claim_key(claim) == key
        ]
        yield ClaimMark(
            suggested_by=_SOURCE,
            voters=names,
            text=claim.text,
            source=claim.source and Interval(start=claim.source.start, end=claim.source.end),
            verdict=claim.verdict,
            evidence=_unique_quotes(quote for claim in same_claims for quote in claim.evidence),
            error_stages=tuple(
                dict.fromkeys(stage for claim in same_claims for stage in claim.error_stages)
            ),
        )


def _unique_quotes(quotes: Iterable[Evidence]) -> tuple[CitedQuote, ...]:
    cited = (
        CitedQuote(
            passage=quote.passage,
            start=quote.start,
            end=quote.end,
            stance=quote.stance,
            note=quote.note,
        )
        for quote in quotes
    )
    return tuple({(quote.passage, quote.start, quote.end): quote for quote in cited}.values())


def _new_ids(marks: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(str(uuid4()) for _ in marks)
