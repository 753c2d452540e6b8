"""The annotation database: datasets, annotations, review logs and queues behind one Store."""

from spanlab.storage.store import Store

__all__ = ["Store"]
