"""The annotation database: datasets, annotations, review logs and queues behind one Store."""

from spanlab.oplog.operations import RefusedOperation, Review, SentOperation, WriteReply
from spanlab.schema import (
    COLOUR_NAMES,
    LABEL_SETS,
    AnnotatorSummary,
    AssignedShare,
    DatasetSettings,
    DatasetSummary,
    Order,
    QueueCursor,
    QueuePage,
    QueuePlace,
    QueueQuery,
    QueueRow,
    SpanLabel,
    UndecidedRule,
)
from spanlab.storage.api_jobs import StoredJob
from spanlab.storage.store import Store

__all__ = [
    "COLOUR_NAMES",
    "LABEL_SETS",
    "AnnotatorSummary",
    "AssignedShare",
    "DatasetSettings",
    "DatasetSummary",
    "Order",
    "QueueCursor",
    "QueuePage",
    "QueuePlace",
    "QueueQuery",
    "QueueRow",
    "RefusedOperation",
    "Review",
    "SentOperation",
    "SpanLabel",
    "Store",
    "StoredJob",
    "UndecidedRule",
    "WriteReply",
]
