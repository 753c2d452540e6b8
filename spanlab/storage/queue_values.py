"""The numbers that queues filter and order by, worked out from items and annotations, and kept.

They stand in columns of the tables ``annotations`` and ``queue_values`` (see tables.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import Connection, bindparam, select, update

from spanlab.schema import Annotation, AnnotatorKind, Item, Status
from spanlab.storage.tables import annotated, annotators, queue_values
from spanlab.text.labels import disagreement

Values = dict[str, Any]  # by the name of the column


class AnnotationValues(NamedTuple):
    """The numbers of an annotation.

    ``prob`` is its highest span probability, 0 without spans and None where it is not finished;
    ``n_labels`` counts the different labels of its spans.
    """

    kind: AnnotatorKind
    status: Status
    prob: float | None
    n_labels: int
    n_claims: int

    @property
    def decides(self) -> bool:
        """Whether it can agree or disagree with others."""
        # Not "in" a set: it would hash enums, which takes longer than all the rest.
        return self.status is Status.DONE and (
            self.kind is AnnotatorKind.PERSON or self.kind is AnnotatorKind.DETECTOR
        )

    def columns(self) -> Values:
        """Return what stands beside the JSON of the annotation."""
        return {
            "status": self.status.value,
            "prob": self.prob,
            "n_labels": self.n_labels,
            "n_claims": self.n_claims,
        }


def annotation_values(annotation: Annotation) -> AnnotationValues:
    """Return the numbers of one annotation."""
    spans, status = annotation.spans, annotation.status
    highest = None
    if status is Status.DONE:
        highest = max([span.prob for span in spans]) if spans else 0.0
    n_labels = len({span.label for span in spans} - {None}) if spans else 0
    return AnnotationValues(
        annotation.kind, status, prob=highest, n_labels=n_labels, n_claims=len(annotation.claims)
    )


def position_values(
    item: Item, annotations: Sequence[Annotation], numbers: Sequence[AnnotationValues]
) -> Values:
    """Return the row of an item in ``queue_values``, but for its place, from all annotations."""
    return {
        "lang": item.lang,
        "n_passages": len(item.passages),
        **counted_values(numbers),
        **disputed_values(
            [
                annotation
                for annotation, own in zip(annotations, numbers, strict=True)
                if own.decides
            ]
        ),
    }


def counted_values(numbers: Iterable[AnnotationValues]) -> Values:
    """Return the columns of an item that follow from the numbers of all its annotations.

    ``n_people`` counts the persons who have finished it, ``max_prob`` is the highest of finished
    detectors, None without one. Labels and claims are the most of any annotator; of any detector
    for those who review blind.
    """
    n_people, max_prob = 0, None
    n_labels = n_claims = detector_labels = detector_claims = 0
    for kind, status, prob, labels, claims in numbers:
        n_labels, n_claims = max(n_labels, labels), max(n_claims, claims)
        if kind is AnnotatorKind.DETECTOR:
            detector_labels = max(detector_labels, labels)
            detector_claims = max(detector_claims, claims)
            if prob is not None:
                max_prob = prob if max_prob is None else max(max_prob, prob)
        elif kind is AnnotatorKind.PERSON and status is Status.DONE:
            n_people += 1
    return {
        "n_people": n_people,
        "max_prob": max_prob,
        "n_labels": n_labels,
        "n_claims": n_claims,
        "detector_labels": detector_labels,
        "detector_claims": detector_claims,
    }


def disputed_values(deciding: Sequence[Annotation]) -> Values:
    """Return how much those who decided disagree, and detectors alone; None for less than two."""
    detectors = [annotation for annotation in deciding if annotation.kind is AnnotatorKind.DETECTOR]
    score = disagreement(deciding) if len(deciding) > 1 else None
    alone = score
    if len(detectors) < len(deciding):
        alone = disagreement(detectors) if len(detectors) > 1 else None
    return {"disagreement": score, "detector_disagreement": alone}


@dataclass(frozen=True)
class StoredAnnotation:
    """The stored annotation of an item by one annotator."""

    place: int
    values: AnnotationValues
    json: str

    def annotation(self) -> Annotation:
        """Return the annotation itself."""
        return Annotation.model_validate_json(self.json)


def update_values(
    connection: Connection,
    dataset: int,
    annotations: Mapping[int, Mapping[int, StoredAnnotation]],
    disputed: Collection[int],
) -> None:
    """Write the values of items anew that follow from all their annotations.

    Args:
        connection: in a transaction that may write; the items' rows must be locked.
        dataset: its number.
        annotations: the items' annotations by position and annotator.
        disputed: the positions where the disagreement may have changed: they take longer.
    """
    counted, decided = [], []
    for position, by_annotator in annotations.items():
        at = {"at": position}
        counted.append(at | counted_values(stored.values for stored in by_annotator.values()))
        if position in disputed:
            deciding = [
                stored.annotation() for stored in by_annotator.values() if stored.values.decides
            ]
            decided.append(at | disputed_values(deciding))
    updating = update(queue_values).where(
        queue_values.c.dataset_id == dataset, queue_values.c.position == bindparam("at")
    )
    for rows in (counted, decided):
        if rows:
            connection.execute(
                updating.values({name: bindparam(name) for name in rows[0].keys() - {"at"}}), rows
            )


def stored_at(
    connection: Connection, dataset: int, positions: Sequence[int]
) -> dict[int, dict[int, StoredAnnotation]]:
    """Return the stored annotations at ``positions`` by position and annotator."""
    by_position: dict[int, dict[int, StoredAnnotation]] = {position: {} for position in positions}
    rows = connection.execute(
        select(annotated, annotators.c.kind)
        .join(annotators)
        .where(annotated.c.dataset_id == dataset, annotated.c.position.in_(by_position))
    )
    for row in rows:
        kind, status = AnnotatorKind(row.kind), Status(row.status)
        values = AnnotationValues(
            kind, status, prob=row.prob, n_labels=row.n_labels, n_claims=row.n_claims
        )
        by_position[row.position][row.annotator_id] = StoredAnnotation(row.place, values, row.json)
    return by_position
