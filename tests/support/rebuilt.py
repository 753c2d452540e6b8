"""Reviews held against their logs."""

from __future__ import annotations

from spanlab.oplog.operations import replay
from spanlab.oplog.state import ReviewState
from spanlab.schema import AnnotatorKind
from spanlab.storage import Store


def rebuilt(
    store: Store,
    dataset: str,
    item_id: str,
    reviewer: str,
    kind: AnnotatorKind = AnnotatorKind.PERSON,
) -> ReviewState:
    """Return a review's state as its snapshot and log alone give it."""
    review = store.review(dataset, item_id, reviewer, kind)
    return replay(review.record.item, review.snapshot, review.operations)
