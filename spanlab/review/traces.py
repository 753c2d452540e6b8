"""Traces for the editor."""

from __future__ import annotations

from dataclasses import dataclass

from spanlab.base.errors import NotFoundError
from spanlab.schema import Annotation, Claim, Evidence, Item, Span
from spanlab.storage import Store


@dataclass(frozen=True)
class TracedAnnotation:
    """An annotation with its trace, and the item that it is of."""

    item: Item
    annotation: Annotation

    def evidence(self) -> tuple[Evidence, ...]:
        """Return all evidence of its spans and claims, each quote once."""
        annotation = self.annotation
        told: tuple[Span | Claim, ...] = (*annotation.spans, *annotation.claims)
        return tuple(dict.fromkeys(quote for part in told for quote in part.evidence))


def traced_annotation(
    store: Store, dataset: str, item_id: str, annotator: str
) -> TracedAnnotation | None:
    """Return an annotation with its trace; None if it or its item is gone."""
    try:
        record = store.record(dataset, item_id)
    except NotFoundError:
        return None
    annotation = record.by(annotator)
    return None if annotation is None else TracedAnnotation(record.item, annotation)
