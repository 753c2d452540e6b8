"""Blind review: whose annotations a reviewer may see, and the names that reviewers may have.

Left out are annotations of other people with their spans, status and comments, gold labels (as a
rule people's, too), votes with a person among the voters, and all traces of these. Queues of blind
reviewers know of no disagreement, labels and claims but those of detectors and their own, and find
by a search only what these said (``QueueQuery.blind``). That a second
annotator is needed stays known: it says who has finished an item, not what they said.

Where a dataset's settings leave no choice (``always_blind``), the same goes for whatever else shows
its annotations in the browser: comparisons, figures, exports and reports read a ``BlindStore``.
That is about reviewers: who does not review a dataset, but leads, adjudicates or views it, sees all
of it, and so does who has decided all of their own items.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from spanlab.base.errors import UsageError
from spanlab.base.fields import check_name
from spanlab.oplog.operations import Review
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AnnotatorSummary,
    DatasetSettings,
    DatasetSummary,
    Permission,
    QueuePage,
    QueuePlace,
    QueueQuery,
    Record,
    Status,
)
from spanlab.schema.progress import FinishedItem
from spanlab.storage import Store
from spanlab.storage.annotators import reserved_names
from spanlab.storage.campaigns import KnownItems
from spanlab.storage.datasets import check_annotators, summary_of


def without_others(record: Record, reviewer: str) -> Record:
    """Return ``record`` with annotations by detectors and ``reviewer``, and votes of detectors."""
    annotations = tuple(
        annotation
        for annotation in record.annotations
        if (annotation.annotator == reviewer and annotation.kind is AnnotatorKind.PERSON)
        or is_of_detectors(record, annotation)
    )
    return record.model_copy(update={"annotations": annotations})


def is_of_detectors(record: Record, annotation: Annotation) -> bool:
    """Return whether an annotation is by a detector, or a vote of detectors alone."""
    if annotation.kind is not AnnotatorKind.VOTE:
        return annotation.kind is AnnotatorKind.DETECTOR
    kinds = {annotation.annotator: annotation.kind for annotation in record.annotations}
    return bool(annotation.voters) and all(
        kinds.get(voter) is AnnotatorKind.DETECTOR for voter in annotation.voters
    )


def seen_by(store: Store, summary: DatasetSummary, reviewer: str) -> Store:
    """Return the store from which a person may read a dataset.

    Args:
        store: the annotation database.
        summary: the dataset's summary.
        reviewer: the person's name; one that no person can have counts as nobody's.

    Returns:
        ``store`` itself, or a ``BlindStore`` while the person must not see what others marked.
    """
    if sees_others(store, summary, reviewer):
        return store
    try:
        check_reviewer(summary, reviewer)
    except UsageError:
        reviewer = ""
    return BlindStore(store, reviewer, summary.settings)


def sees_others(store: Store, summary: DatasetSummary, name: str) -> bool:
    """Return whether a person may see what others marked in a dataset, outside of Review.

    In a dataset that is always reviewed blind these are the people with the right to read it who do
    not review it, or have decided all items of theirs. Who gives no name of a person could be
    anybody, and sees nothing of others.
    """
    if not summary.settings.always_blind:
        return True
    summary = summary_of(store, summary.name)  # with all annotators: a page may know of fewer
    try:
        check_reviewer(summary, name)
    except UsageError:
        return False
    if not store.may(Permission.READ, summary.name):
        return False
    reviews = has_reviewed(summary, name) or name in summary.settings.assigned_to
    return not (reviews and n_undecided(store, summary.name, name))


def n_undecided(store: Store, dataset: str, reviewer: str) -> int:
    """Return how many items somebody has still to decide: of their part of a plan, else of all."""
    part, known = store.part(dataset, reviewer), store.settings(dataset).known
    given = store.known_items(dataset, reviewer) if known else KnownItems(0, ())
    n_known = sum(item.status is Status.NOT_ANNOTATED for item in given.given)
    if part is not None:  # a plan may give this person nothing
        return n_known + (part.left if part.assigned is not None else 0)
    n_left = store.counts(dataset, reviewer).get(Status.NOT_ANNOTATED, 0)
    if known is None:
        return n_left
    n_decided = len(given.given) - n_known
    return n_known + n_left - (given.total - n_decided)  # of which a person is given few


def reviewed_by(store: Store, dataset: str, *, many: bool = False) -> Store:
    """Return the store from which the actor of a store is to review a dataset.

    Args:
        store: the annotation database, bound to an actor.
        dataset: name of the dataset.
        many: whether many records are read: then a reviewer gets a ``BlindStore`` in any case.

    Returns:
        ``store`` itself for the owner and for actors who may read the annotations of others.
    """
    own_name = store.own_name(dataset)
    if own_name is None or store.may(Permission.READ, dataset):
        return store
    settings = store.settings(dataset)
    return BlindStore(store, own_name, settings) if many or settings.always_blind else store


class BlindStore(Store):
    """The annotation database without annotations by other people than ``reviewer``.

    These people are not among the annotators, either. The settings may show their annotations of
    items that ``reviewer`` has finished.
    """

    def __init__(self, store: Store, reviewer: str, settings: DatasetSettings) -> None:
        super().__init__(store.database, store.actor)
        self.reader = (reviewer, settings.shown_when_done)
        self._reviewer, self._shown_when_done = self.reader

    def datasets(self, *, versions: bool = False) -> list[DatasetSummary]:
        """Return all datasets, with those of their annotators that may be seen."""
        return [
            replace(summary, annotators=tuple(filter(self._may_see, summary.annotators)))
            for summary in super().datasets(versions=versions)
        ]

    def records(self, dataset: str, *, annotators: Sequence[str] | None = None) -> Iterator[Record]:
        """Yield the records with the annotations that may be seen."""
        if annotators is not None:
            summaries = self.datasets(versions=True)
            check_annotators(next(s for s in summaries if s.name == dataset), annotators)
        for record in map(self._hide_others, super().records(dataset)):
            if annotators is None:
                yield record
            else:
                named = tuple(a for a in record.annotations if a.annotator in annotators)
                yield record.model_copy(update={"annotations": named})

    def record(self, dataset: str, item_id: str) -> Record:
        """Return one record with the annotations that may be seen."""
        return self._hide_others(super().record(dataset, item_id))

    def records_at(self, dataset: str, positions: Sequence[int]) -> list[Record]:
        """Return the records at these positions with the annotations that may be seen."""
        return [self._hide_others(record) for record in super().records_at(dataset, positions)]

    def page(self, dataset: str, query: QueueQuery) -> QueuePage:
        """Return rows of a queue as this person sees it."""
        return super().page(dataset, self._make_blind(query))

    def neighbour(self, dataset: str, query: QueueQuery, item_id: str, step: int = 1) -> str | None:
        """Return the next or previous item's id in a queue as this person sees it."""
        return super().neighbour(dataset, self._make_blind(query), item_id, step)

    def standing(self, dataset: str, query: QueueQuery, item_id: str) -> QueuePlace:
        """Return an item's number in a queue as this person sees it."""
        return super().standing(dataset, self._make_blind(query), item_id)

    def positions(self, dataset: str, query: QueueQuery) -> list[int]:
        """Return the positions of all items that pass the filter for this person."""
        return super().positions(dataset, self._make_blind(query))

    def review(
        self, dataset: str, item_id: str, reviewer: str, kind: AnnotatorKind = AnnotatorKind.PERSON
    ) -> Review:
        """Return a review of one item, with the annotations that may be seen."""
        review_of_item = super().review(dataset, item_id, reviewer, kind)
        return replace(review_of_item, record=self._hide_others(review_of_item.record))

    def finished(self, dataset: str) -> tuple[FinishedItem, ...]:
        """Return the items that this person has finished."""
        return tuple(item for item in super().finished(dataset) if item.annotator == self._reviewer)

    def labels(self, dataset: str, reviewer: str | None = None) -> tuple[str, ...]:
        """Return the span labels that this person has used."""
        return super().labels(dataset, self._reviewer)

    def _make_blind(self, query: QueueQuery) -> QueueQuery:
        return replace(query, blind=True, reviewer=self._reviewer)

    def _hide_others(self, record: Record) -> Record:
        own_finished = (self._reviewer, AnnotatorKind.PERSON, Status.DONE)
        signatures = ((a.annotator, a.kind, a.status) for a in record.annotations)
        if self._shown_when_done and own_finished in signatures:
            return record
        return without_others(record, self._reviewer)

    def _may_see(self, annotator: AnnotatorSummary) -> bool:
        is_shown = (
            annotator.kind in {AnnotatorKind.DETECTOR, AnnotatorKind.VOTE} or self._shown_when_done
        )
        return is_shown or (annotator.name, annotator.kind) == (
            self._reviewer,
            AnnotatorKind.PERSON,
        )


_WORDS = {
    AnnotatorKind.DETECTOR: "a detector",
    AnnotatorKind.VOTE: "a vote",
    AnnotatorKind.GOLD: "gold labels",
}


def has_reviewed(summary: DatasetSummary, name: str) -> bool:
    """Return whether a person of this name has annotated the dataset."""
    return name in summary.names_of(AnnotatorKind.PERSON)


def check_reviewer(summary: DatasetSummary, name: str) -> None:
    """Check that a person may review a dataset under ``name``.

    A detector that is installed keeps its name in every dataset, or its results could not be
    stored there later. Upper and lower case make no difference; a person who has annotated the
    dataset already goes on.

    Raises:
        UsageError: it is no name, or one of a detector, a vote or gold labels.
    """
    check_name(name, "a reviewer")
    if has_reviewed(summary, name):
        return
    reserved = reserved_names() | {
        annotator.name.casefold(): annotator.kind
        for annotator in summary.annotators
        if annotator.kind is not AnnotatorKind.PERSON
    }
    kind = reserved.get(name.casefold())
    if kind is not None:
        raise UsageError(
            f"the name “{name}” belongs to {_WORDS[kind]}: use another, such as your own name"
        )
