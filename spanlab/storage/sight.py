"""Whose annotations somebody sees of a dataset: all of them, or as one who reviews it blind.

Who only annotates sees no items but those of a list of their own, where there are lists.

To blind reviewers these are left out: annotations of other people with their spans, status and
comments, gold labels (as a rule people's, too), votes with a person among the voters, and all
traces of these. Their queues know of no disagreement, labels and claims but those of detectors and
their own, and find by a search only what these said (``QueueQuery.blind``). Where they cannot
choose, no queue asks who has finished an item, as check items would be told by it.

What somebody's role leaves out says ``access.CheckedDataset.sight``, and what those who may read
everything do not see while they review, ``worklists.sight.sight_of``.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from spanlab.schema import Annotation, AnnotatorKind, DatasetSummary, QueueQuery, Record


@dataclass(frozen=True)
class Sight:
    """What somebody sees of a dataset.

    ``name`` is what they are called there, None where they see all that was said and done. If
    ``blind``, what other people said is left out; with ``shown_when_done`` only of items that they
    have not finished themselves. ``names_shown`` tells whether they know who the others are. If
    ``listed``, there are no items for them but those of their own list.
    """

    name: str | None = None
    blind: bool = False
    shown_when_done: bool = False
    names_shown: bool = False
    listed: bool = False

    def concerns(self, person: str) -> bool:
        """Return whether they may know how far a person is."""
        return self.name in {None, person}

    def sees(self, annotator: str, kind: AnnotatorKind) -> bool:
        """Return whether they may know of an annotator."""
        if not self.blind or self.names_shown or (annotator, kind) == self._own:
            return True
        return kind in {AnnotatorKind.DETECTOR, AnnotatorKind.VOTE}

    def record(self, record: Record, annotators: Collection[str] | None = None) -> Record:
        """Return a record with what they see of it, and of that what these annotators said."""
        if not self.blind:
            return record
        is_done = any((each.annotator, each.kind) == self._own for each in record.finished)
        if not (self.shown_when_done and is_done):
            record = without_others(record, self.name or "")
        if annotators is None:
            return record
        named = tuple(a for a in record.annotations if a.annotator in annotators)
        return record.model_copy(update={"annotations": named})

    def query(self, query: QueueQuery) -> QueueQuery:
        """Return a query that selects and orders by what they see."""
        if self.listed:  # a list has no share of others
            query = replace(query, listed=True, share=None)
        return replace(query, blind=True, reviewer=self.name or "") if self.blind else query

    def summary(self, summary: DatasetSummary) -> DatasetSummary:
        """Return a summary of the dataset without the annotators of whom they may not know."""
        seen = (each for each in summary.annotators if self.sees(each.name, each.kind))
        return replace(summary, annotators=tuple(seen))

    @property
    def _own(self) -> tuple[str | None, AnnotatorKind]:
        return self.name, AnnotatorKind.PERSON


EVERYTHING: Final = Sight()


def without_others(record: Record, reviewer: str) -> Record:
    """Return ``record`` with annotations by detectors and ``reviewer``, and votes of detectors."""
    annotations = tuple(
        annotation
        for annotation in record.annotations
        if (annotation.annotator == reviewer and annotation.kind is AnnotatorKind.PERSON)
        or _is_of_detectors(record, annotation)
    )
    return record.model_copy(update={"annotations": annotations})


def _is_of_detectors(record: Record, annotation: Annotation) -> bool:
    """Return whether an annotation is by a detector, or a vote of detectors alone."""
    if annotation.kind is not AnnotatorKind.VOTE:
        return annotation.kind is AnnotatorKind.DETECTOR
    kinds = {annotation.annotator: annotation.kind for annotation in record.annotations}
    return bool(annotation.voters) and all(
        kinds.get(voter) is AnnotatorKind.DETECTOR for voter in annotation.voters
    )
