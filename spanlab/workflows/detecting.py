"""Detectors over items: from a dataset, a file or memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import lru_cache
from itertools import islice
from multiprocessing import get_context
from typing import TYPE_CHECKING

from spanlab.detectors import DETECTORS, Detector, detector
from spanlab.errors import SpanlabError
from spanlab.schema import Annotation, Item, Kind, Record, Status

if TYPE_CHECKING:
    from spanlab.storage import Store

__all__ = [
    "DETECTORS",
    "annotate_dataset",
    "annotate_items",
    "annotate_records",
    "unfinished",
    "with_annotation",
]

_CHUNK = 16  # items that a worker process takes at once: enough to hide the hand-over
_SAVE_EVERY = 100  # annotations a transaction: a stop loses at most these


def annotate_items(
    items: Iterable[Item], name: str, *, concurrency: int = 1
) -> Iterator[Annotation]:
    """Run a detector over items, in order, holding only a few of them in memory.

    Args:
        items: what to annotate.
        name: a registered detector.
        concurrency: number of processes, 1 or more; 1 stays in this process.

    Yields:
        One annotation an item; a detector's own error becomes a failed annotation with the reason.

    Raises:
        UsageError: no detector has this name.
    """
    _detector(name)  # an unknown name is refused before any work
    if concurrency == 1:
        for item in items:
            yield _attempt(name, item)
        return
    source = iter(items)
    running: deque[Future[list[Annotation]]] = deque()
    with ProcessPoolExecutor(concurrency, mp_context=get_context("spawn")) as pool:
        while True:
            while len(running) < 2 * concurrency and (chunk := list(islice(source, _CHUNK))):
                running.append(pool.submit(_attempt_all, name, chunk))
            if not running:
                return
            yield from running.popleft().result()


def annotate_records(
    records: Iterable[Record], name: str, *, concurrency: int = 1
) -> Iterator[Record]:
    """Run a detector over records and put its annotation in place of its earlier one, if any."""
    waiting: deque[Record] = deque()

    def items() -> Iterator[Item]:
        for record in records:
            waiting.append(record)
            yield record.item

    for annotation in annotate_items(items(), name, concurrency=concurrency):
        yield with_annotation(waiting.popleft(), annotation)


def annotate_dataset(
    store: Store,
    dataset: str,
    name: str,
    *,
    concurrency: int = 1,
    limit: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> int:
    """Annotate the items of a dataset that this detector has not finished, saving as it goes.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        name: a registered detector.
        concurrency: number of processes, 1 or more.
        limit: at most so many items; None for all.
        on_progress: called after each save with the number of items annotated so far.

    Returns:
        How many items were annotated; 0 if all had been.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: no detector has this name.
    """
    todo = unfinished(store, dataset, name)[:limit]
    items = (store.record(dataset, item_id).item for item_id in todo)
    results = zip(todo, annotate_items(items, name, concurrency=concurrency), strict=True)
    done = 0
    while batch := list(islice(results, _SAVE_EVERY)):
        store.save_annotations(dataset, batch)
        done += len(batch)
        if on_progress is not None:
            on_progress(done)
    return done


def unfinished(store: Store, dataset: str, name: str) -> list[str]:
    """Return the ids that a detector has not annotated yet or failed on, in import order."""
    finished = (Status.DONE, Status.SKIPPED)
    return [
        record.item.id
        for record in store.records(dataset, annotators=[name])
        if not any(a.annotator == name and a.status in finished for a in record.annotations)
    ]


def with_annotation(record: Record, annotation: Annotation) -> Record:
    """Return the record with this annotation instead of the same annotator's earlier one."""
    others = (a for a in record.annotations if a.annotator != annotation.annotator)
    return Record(item=record.item, annotations=(*others, annotation))


@lru_cache(maxsize=8)
def _detector(name: str) -> Detector:
    return detector(name)


def _attempt(name: str, item: Item) -> Annotation:
    try:
        return _detector(name).annotate(item)
    except SpanlabError as error:
        return Annotation(
            annotator=name, kind=Kind.DETECTOR, status=Status.FAILED, note=str(error) or repr(error)
        )


def _attempt_all(name: str, items: list[Item]) -> list[Annotation]:
    return [_attempt(name, item) for item in items]
