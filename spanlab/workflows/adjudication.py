"""Adjudication: who decides in which order, and items on which all agree, decided at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias
from uuid import uuid4

from spanlab.errors import UsageError
from spanlab.extents import merge
from spanlab.oplog import (
    CitedQuote,
    ClaimMark,
    Operation,
    ReplaceClaims,
    ReplaceSpans,
    Respond,
    ReviewState,
    SetStatus,
    SuggestionMark,
    Undo,
)
from spanlab.schema import (
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
from spanlab.storage import SentOperation, Store
from spanlab.workflows.blind import ADJUDICATED, has_reviewed
from spanlab.workflows.traces import suggestions

STATES = {"All": None, "Not decided": Status.NOT_ANNOTATED, "Decided": Status.DONE}


def check_adjudicator(summary: DatasetSummary, name: str) -> None:
    """Check that a person may see what others said of a dataset, to decide.

    Raises:
        UsageError: the dataset is reviewed blind, and this person is one of its reviewers.
    """
    settings = summary.settings
    if settings.always_blind and (has_reviewed(summary, name) or name in settings.assigned_to):
        raise UsageError(
            f"“{name}” reviews this dataset, and blind: somebody else decides, or its settings on "
            "the Datasets page show reviewers what other people marked"
        )


@dataclass(frozen=True, kw_only=True)
class AdjudicationQueue:
    """The items to decide, most disagreement first.

    ``target`` names the gold labels that decisions become; ``state``, one of ``STATES``, is the
    items' under that name. At least ``least`` people have finished them, in ``lang`` or in any.
    """

    target: str = ADJUDICATED
    state: str = "All"
    least: int = 2
    lang: str | None = None

    @property
    def query(self) -> QueueQuery:
        """The same as a query of the store, in which the gold labels stand for the reviewer."""
        return QueueQuery(
            reviewer=self.target,
            status=STATES[self.state],
            min_annotators=self.least or None,
            lang=self.lang,
            order="disagreement",
        )

    @property
    def described(self) -> str:
        """What is decided, in one line."""
        people = "1 person" if self.least == 1 else f"{self.least} people"
        least = f"finished by {people} or more" if self.least else None
        parts = [f"written to “{self.target}”", self.lang, least]
        return " · ".join(part for part in parts if part)


_CHUNK = 200  # items that are read at a time
_SOURCE = "majority"  # all of them are more than half


# Responses that are told apart: names and values in the order of the questions.
_Given: TypeAlias = tuple[tuple[str, Response], ...]
_Marked: TypeAlias = frozenset[tuple[int, int, tuple[str | None, _Given]]]


@dataclass(frozen=True)
class AgreedItem:
    """An item that nobody has decided and on which at least two agree; what they say of it.

    ``base`` is how many operations its log has.
    """

    item_id: str
    base: int
    operations: tuple[Operation, ...]
    n_spans: int


@dataclass(frozen=True)
class TakenItems:
    """Items decided by one action: their ids, how long their logs were before and are since."""

    dataset: str
    target: str
    author: str
    items: tuple[tuple[str, int, int], ...]


def agreed_items(store: Store, dataset: str, queue: AdjudicationQueue) -> list[AgreedItem]:
    """Return the undecided items of a queue on which all who finished them say the same.

    These are people, or where no person has, detectors; at least two. They agree if they mark the
    same characters with the same labels, give the same claims the same verdicts, and respond the
    same to what the dataset asks, texts aside, which are not taken. An item whose decision somebody
    has begun is left out, as is one without a response that Done is refused without.

    Raises:
        NotFoundError: there is no such dataset.
    """
    query = replace(queue.query, status=Status.NOT_ANNOTATED)
    positions = store.positions(dataset, query)
    settings = store.settings(dataset)
    found = []
    for first in range(0, len(positions), _CHUNK):
        for record in store.records_at(dataset, positions[first : first + _CHUNK]):
            said = _agreed(record, settings)
            if said is None:
                continue
            review = store.review(dataset, record.item.id, queue.target, AnnotatorKind.GOLD)
            if review.state == ReviewState():
                found.append(AgreedItem(record.item.id, review.version, *said))
    return found


def take_agreed(
    store: Store, dataset: str, target: str, author: str, agreed: Iterable[AgreedItem]
) -> TakenItems:
    """Decide items as everybody says, in the name of ``author``, and say which were.

    An item whose decision somebody has begun meanwhile is left as it is.
    """
    version = len(store.settings(dataset).guidelines)
    writer = _ItemWriter(store, dataset, target, author, version)
    taken = [
        (item.item_id, item.base, item.base + len(item.operations))
        for item in agreed
        if writer.write(item.item_id, item.base, item.operations)
    ]
    return TakenItems(dataset, target, author, tuple(taken))


def take_back(store: Store, taken: TakenItems) -> int:
    """Undo what ``take_agreed`` did, and return of how many items.

    Items that somebody has changed since stay as they are.
    """
    writer = _ItemWriter(store, taken.dataset, taken.target, taken.author, 0)
    return sum(
        writer.write(item_id, now, [Undo()] * (now - before))
        for item_id, before, now in taken.items
    )


class _ItemWriter:
    """Writes of one session to the logs of gold labels."""

    def __init__(
        self, store: Store, dataset: str, target: str, author: str, guidelines: int
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
                    self._session,
                    self._seq,
                    base + number,
                    operation,
                    self._author,
                    self._guidelines,
                )
            )
        dataset, target = self._log
        return not self._store.apply(dataset, item_id, target, writes).refused


def _agreed(record: Record, settings: DatasetSettings) -> tuple[tuple[Operation, ...], int] | None:
    """Return what everybody says of an item as operations, and how many spans that are."""
    voters = _voters(record)
    answer = record.item.answer
    if len(voters) < 2:
        return None
    if len({_marked(voter, answer, settings) for voter in voters}) > 1:
        return None
    given = {_given(voter.responses, settings.questions) for voter in voters}
    if len(given) > 1 or (settings.unanswered == "refused" and settings.missing(voters[0])):
        return None
    if len({frozenset(map(_judged, voter.claims)) for voter in voters}) > 1:
        return None
    marks = tuple(_marks(voters, answer, settings))
    operations: list[Operation] = [ReplaceSpans(spans=_ids(marks), marks=marks)]
    claims = tuple(_claim_marks(voters))
    if claims:
        operations.append(ReplaceClaims(claims=_ids(claims), marks=claims))
    for name, response in given.pop():
        operations.append(Respond(question=name, response=response))
    operations.append(SetStatus(status=Status.DONE))
    return tuple(operations), len(marks)


def _voters(record: Record) -> list[Annotation]:
    done = [each for each in record.annotations if each.status is Status.DONE]
    people = [each for each in done if each.kind is AnnotatorKind.PERSON]
    return people or [each for each in done if each.kind is AnnotatorKind.DETECTOR]


def _marked(voter: Annotation, answer: str, settings: DatasetSettings) -> _Marked:
    """Return the stretches that somebody takes for hallucinated, by label and attributes."""
    spans = [
        (span, (span.label, _given(span.attributes, settings.attributes)))
        for span in _hard_spans(voter, answer)
    ]
    kinds = {kind for _, kind in spans}
    return frozenset(
        (start, end, kind)
        for kind in kinds
        for start, end in merge(span for span, its in spans if its == kind)
    )


def _given(responses: Responses, questions: Sequence[Question]) -> _Given:
    """Return what of the responses the questions allow, without texts."""
    return tuple(
        (asked.name, responses[asked.name])
        for asked in questions
        if asked.kind != "text" and asked.is_answered_in(responses)
    )


def _hard_spans(voter: Annotation, answer: str) -> list[Span]:
    return [each.span for each in suggestions(voter, answer) if each.likely]


def _marks(
    voters: list[Annotation], answer: str, settings: DatasetSettings
) -> Iterator[SuggestionMark]:
    names = tuple(voter.annotator for voter in voters)
    spans = [span for voter in voters for span in _hard_spans(voter, answer)]
    marked = _marked(voters[0], answer, settings)
    by_place = sorted(marked, key=lambda one: (one[:2], one[2][0] or ""))
    for start, end, (label, attributes) in by_place:
        over = (span for span in spans if start <= span.start and span.end <= end)
        yield SuggestionMark(
            source=_SOURCE,
            start=start,
            end=end,
            label=label,
            voters=names,
            attributes=dict(attributes),
            evidence=_cited(
                quote for span in over if span.label == label for quote in span.evidence
            ),
        )


def _judged(claim: Claim) -> tuple[str, int | None, int | None, str | None]:
    place = (claim.source.start, claim.source.end) if claim.source else (None, None)
    return (claim.text, *place, claim.verdict)


def _claim_marks(voters: list[Annotation]) -> Iterator[ClaimMark]:
    names = tuple(voter.annotator for voter in voters)
    first = {_judged(claim): claim for claim in voters[0].claims}
    for key, claim in first.items():
        same = [each for voter in voters for each in voter.claims if _judged(each) == key]
        yield ClaimMark(
            suggested_by=_SOURCE,
            voters=names,
            text=claim.text,
            source=claim.source and Interval(start=claim.source.start, end=claim.source.end),
            verdict=claim.verdict,
            evidence=_cited(quote for each in same for quote in each.evidence),
            error_stages=tuple(
                dict.fromkeys(stage for each in same for stage in each.error_stages)
            ),
        )


def _cited(quotes: Iterable[Evidence]) -> tuple[CitedQuote, ...]:
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
    return tuple({(one.passage, one.start, one.end): one for one in cited}.values())


def _ids(marks: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(str(uuid4()) for _ in marks)
