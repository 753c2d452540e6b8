"""The annotation database: datasets, annotations, review logs and queues behind one Store."""

from spanlab.oplog.operations import Applied, Refusal, Review, Write
from spanlab.schema import (
    COLOUR_NAMES,
    LABEL_SETS,
    AnnotatorSummary,
    Cursor,
    DatasetSettings,
    DatasetSummary,
    Label,
    Order,
    Page,
    QueueQuery,
    QueueRow,
    Share,
    Standing,
    Undecided,
)
from spanlab.storage.api_jobs import StoredJob
from spanlab.storage.assignment import Finished, PersonProgress, PlanProgress
from spanlab.storage.store import Store

__all__ = [
    "COLOUR_NAMES",
    "LABEL_SETS",
    "AnnotatorSummary",
    "Applied",
    "Cursor",
    "DatasetSettings",
    "DatasetSummary",
    "Finished",
    "Label",
    "Order",
    "Page",
    "PersonProgress",
    "PlanProgress",
    "QueueQuery",
    "QueueRow",
    "Refusal",
    "Review",
    "Share",
    "Standing",
    "Store",
    "StoredJob",
    "Undecided",
    "Write",
]
