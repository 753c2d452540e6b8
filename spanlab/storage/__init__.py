"""The annotation database: datasets, annotations, review logs and queues behind one Store."""

from spanlab.storage.catalog import AnnotatorSummary, DatasetSummary, Undecided
from spanlab.storage.queue import Cursor, Page, QueueQuery, QueueRow
from spanlab.storage.store import Store
from spanlab.storage.writes import Applied, Refusal, Review, Write

__all__ = [
    "AnnotatorSummary",
    "Applied",
    "Cursor",
    "DatasetSummary",
    "Page",
    "QueueQuery",
    "QueueRow",
    "Refusal",
    "Review",
    "Store",
    "Undecided",
    "Write",
]
