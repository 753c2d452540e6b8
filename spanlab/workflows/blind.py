"""Who reviews what, and what a reviewer who has not finished may not see.

Left out are annotations of other people with their spans, status and comments, gold labels (as a
rule people's, too), votes with a person among the voters, and all traces of these. Queues of blind
reviewers know of no disagreement, labels and claims but those of detectors and their own, and find
by a search only what these said (``QueueQuery.blind``). That a second
annotator is needed stays known: it says who has finished an item, not what they said.

Where a dataset's settings leave no choice (``always_blind``), the same goes for whatever else shows
its annotations in the browser: comparisons, figures, exports and reports read a ``BlindStore``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import TypeAdapter, ValidationError

from spanlab.detectors import installed
from spanlab.errors import UsageError
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AnnotatorSummary,
    DatasetSettings,
    DatasetSummary,
    Name,
    Permission,
    QueuePage,
    QueuePlace,
    QueueQuery,
    Record,
    Status,
)
from spanlab.storage import FinishedItem, Review, Store
from spanlab.workflows.datasets import check_annotators


def without_others(record: Record, reviewer: str) -> Record:
    """Return ``record`` with what its detectors and ``reviewer`` said, and votes of detectors."""
    kept = tuple(
        each
        for each in record.annotations
        if (each.annotator == reviewer and each.kind is AnnotatorKind.PERSON)
        or is_of_detectors(record, each)
    )
    return record.model_copy(update={"annotations": kept})


def is_of_detectors(record: Record, annotation: Annotation) -> bool:
    """Return whether only detectors are behind an annotation; a voter that is unknown is none."""
    if annotation.kind is not AnnotatorKind.VOTE:
        return annotation.kind is AnnotatorKind.DETECTOR
    kinds = {each.annotator: each.kind for each in record.annotations}
    return bool(annotation.voters) and all(
        kinds.get(voter) is AnnotatorKind.DETECTOR for voter in annotation.voters
    )


def seen_by(store: Store, summary: DatasetSummary, reviewer: str) -> Store:
    """Return the store that a person is to read a dataset from: of a locked one a ``BlindStore``.

    Args:
        store: the annotation database.
        summary: of the dataset, as the store has it.
        reviewer: the person; a name that cannot be a person's is nobody's.
    """
    if not summary.settings.always_blind:
        return store
    try:
        check_reviewer(summary, reviewer)
    except UsageError:
        reviewer = ""
    return BlindStore(store, reviewer, summary.settings)


def reviewed_by(store: Store, dataset: str, *, many: bool = False) -> Store:
    """Return the store from which who acts is to review a dataset.

    Args:
        store: the annotation database, bound to who acts.
        dataset: the dataset.
        many: whether many records are read, of which they see their own alone in any case.

    Returns:
        ``store`` itself for the owner and for who may read what others said.
    """
    own = store.own_name(dataset)
    if own is None or store.may(Permission.READ, dataset):
        return store
    settings = store.settings(dataset)
    return BlindStore(store, own, settings) if many or settings.always_blind else store


class BlindStore(Store):
    """The annotation database without what other people than ``reviewer`` said.

    Those who said it are not among the annotators, either, unless the settings show what they said
    of items that ``reviewer`` has finished.
    """

    def __init__(self, store: Store, reviewer: str, settings: DatasetSettings) -> None:
        super().__init__(store.database, store.actor)
        self.reader = (reviewer, settings.shown_when_done)
        self._reviewer, self._shown_when_done = self.reader

    def datasets(self, *, versions: bool = False) -> list[DatasetSummary]:
        """Return all datasets, of their annotators those that may be seen."""
        return [
            replace(summary, annotators=tuple(filter(self._may_see, summary.annotators)))
            for summary in super().datasets(versions=versions)
        ]

    def records(self, dataset: str, *, annotators: Sequence[str] | None = None) -> Iterator[Record]:
        """Yield the records; whose votes may be seen depends on all annotations of an item."""
        if annotators is not None:
            summary = next(each for each in self.datasets(versions=True) if each.name == dataset)
            check_annotators(summary, annotators)
        for record in map(self._seen, super().records(dataset)):
            kept = [each for each in record.annotations if each.annotator in (annotators or ())]
            named = record.model_copy(update={"annotations": tuple(kept)})
            yield record if annotators is None else named

    def record(self, dataset: str, item_id: str) -> Record:
        """Return one item."""
        return self._seen(super().record(dataset, item_id))

    def records_at(self, dataset: str, positions: Sequence[int]) -> list[Record]:
        """Return the records at these places."""
        return [self._seen(record) for record in super().records_at(dataset, positions)]

    def page(self, dataset: str, query: QueueQuery) -> QueuePage:
        """Return rows of a queue, which is blind."""
        return super().page(dataset, self._blind(query))

    def neighbour(self, dataset: str, query: QueueQuery, item_id: str, step: int = 1) -> str | None:
        """Return the next or previous item's id in a queue, which is blind."""
        return super().neighbour(dataset, self._blind(query), item_id, step)

    def standing(self, dataset: str, query: QueueQuery, item_id: str) -> QueuePlace:
        """Return which item of a queue one is; the queue is blind."""
        return super().standing(dataset, self._blind(query), item_id)

    def positions(self, dataset: str, query: QueueQuery) -> list[int]:
        """Return the places of all items that pass the filter, which is blind."""
        return super().positions(dataset, self._blind(query))

    def review(
        self, dataset: str, item_id: str, reviewer: str, kind: AnnotatorKind = AnnotatorKind.PERSON
    ) -> Review:
        """Return a review of one item, with what may be seen of it."""
        found = super().review(dataset, item_id, reviewer, kind)
        return replace(found, record=self._seen(found.record))

    def finished(self, dataset: str) -> tuple[FinishedItem, ...]:
        """Return which items this person finished."""
        return tuple(each for each in super().finished(dataset) if each.annotator == self._reviewer)

    def labels(self, dataset: str, reviewer: str | None = None) -> tuple[str, ...]:
        """Return the span labels that this person has used."""
        return super().labels(dataset, self._reviewer)

    def _blind(self, query: QueueQuery) -> QueueQuery:
        return replace(query, blind=True, reviewer=self._reviewer)

    def _seen(self, record: Record) -> Record:
        mine = (self._reviewer, AnnotatorKind.PERSON, Status.DONE)
        done = ((each.annotator, each.kind, each.status) for each in record.annotations)
        if self._shown_when_done and mine in done:
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


_NAME: TypeAdapter[str] = TypeAdapter(Name)
ADJUDICATED = "adjudicated"  # the usual name of labels that were decided from those of others
_WORDS = {
    AnnotatorKind.DETECTOR: "a detector",
    AnnotatorKind.VOTE: "a vote",
    AnnotatorKind.GOLD: "gold labels",
}


def has_reviewed(summary: DatasetSummary, name: str) -> bool:
    """Return whether a person of this name has annotated the dataset."""
    return any(
        each.name == name and each.kind is AnnotatorKind.PERSON for each in summary.annotators
    )


def check_reviewer(summary: DatasetSummary, name: str) -> None:
    """Check that a person may review a dataset under ``name``.

    A detector that is installed keeps its name in every dataset, or its results could not be
    stored there later. Upper and lower case make no difference; a person who has annotated the
    dataset already goes on.

    Raises:
        UsageError: it is no name, or one of a detector, a vote or gold labels.
    """
    try:
        _NAME.validate_python(name)
    except ValidationError as error:
        raise UsageError(
            f"{name!r} cannot name a reviewer: 1 to 200 characters without control characters"
        ) from error
    if has_reviewed(summary, name):
        return
    reserved = {kind.value: kind for kind in _WORDS} | {ADJUDICATED: AnnotatorKind.GOLD}
    reserved |= {detector.casefold(): AnnotatorKind.DETECTOR for detector in installed()}
    reserved |= {
        each.name.casefold(): each.kind
        for each in summary.annotators
        if each.kind is not AnnotatorKind.PERSON
    }
    kind = reserved.get(name.casefold())
    if kind is not None:
        raise UsageError(
            f"“{name}” is the name of {_WORDS[kind]} and cannot be a reviewer's: "
            "choose another, such as your own name"
        )
