"""Annotators of a dataset: registration under one name and kind, and counts per status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from sqlalchemy import Connection, bindparam, func, insert, select, update

from spanlab.errors import StoreError
from spanlab.schema import Annotation, Kind, Status
from spanlab.storage.catalog import Annotator, Dataset, annotators_of
from spanlab.storage.engine import insert_new
from spanlab.storage.tables import annotators, datasets, labels

_COUNTED = {Status.DONE: "n_done", Status.FAILED: "n_failed", Status.SKIPPED: "n_skipped"}
_COUNTS = ("n_annotations", *_COUNTED.values())


class Tally:
    """Changes to the counts of a dataset's annotators, gathered for one write."""

    def __init__(self) -> None:
        self._changes: Counter[tuple[int, str]] = Counter()

    def move(self, annotator: int, before: Status | None, after: Status) -> None:
        """Count an annotation that had the status ``before`` (None: it is new) as ``after``."""
        if before is None:
            self._changes[annotator, "n_annotations"] += 1
        if before in _COUNTED:
            self._changes[annotator, _COUNTED[before]] -= 1
        if after in _COUNTED:
            self._changes[annotator, _COUNTED[after]] += 1

    def write(self, connection: Connection, dataset: int) -> None:
        """Add the changes to the stored counts."""
        rows = [
            {"of": dataset, "who": who}
            | {f"more_{name}": self._changes[who, name] for name in _COUNTS}
            for who in sorted({who for (who, _), change in self._changes.items() if change})
        ]
        if rows:
            more = {name: annotators.c[name] + bindparam(f"more_{name}") for name in _COUNTS}
            one = (annotators.c.dataset_id == bindparam("of"), annotators.c.id == bindparam("who"))
            connection.execute(update(annotators).where(*one).values(more), rows)


def register(connection: Connection, dataset: Dataset, name: str, kind: Kind) -> Annotator:
    """Return the annotator ``name`` of ``dataset``, entering it if it is new.

    Raises:
        StoreError: the name belongs to an annotator of another kind.
    """
    known = annotators_of(connection, dataset.id).get(name)
    if known is None:
        # Numbers are given out one at a time: whoever holds the dataset's row gives the next.
        held = select(datasets.c.id).where(datasets.c.id == dataset.id)
        connection.execute(held.with_for_update(key_share=True))
        known = annotators_of(connection, dataset.id).get(name)
    if known is None:
        query = select(func.coalesce(func.max(annotators.c.id) + 1, 0))
        number = connection.execute(query.where(annotators.c.dataset_id == dataset.id)).scalar_one()
        row = {"dataset_id": dataset.id, "id": number, "name": name, "kind": kind.value}
        connection.execute(insert(annotators).values(row | dict.fromkeys(_COUNTS, 0)))
        return Annotator(number, name, kind)
    if known.kind is not kind:
        raise StoreError(
            f"{name!r} is a {known.kind.value} in {dataset.name!r} and cannot be a {kind.value} "
            "too: choose another annotator name"
        )
    return known


def labels_of(annotation: Annotation) -> list[str]:
    """Return the labels of an annotation's spans, each once, in alphabetical order."""
    return sorted({span.label for span in annotation.spans if span.label is not None})


def add_labels(connection: Connection, dataset: int, names: Iterable[str]) -> None:
    """Enter those of ``names`` that spans of ``dataset`` have not used before."""
    used = labels.c.dataset_id == dataset
    known = set(connection.execute(select(labels.c.label).where(used)).scalars())
    rows = [
        {"dataset_id": dataset, "label": name, "place": len(known) + more}
        for more, name in enumerate(name for name in dict.fromkeys(names) if name not in known)
    ]
    if rows:
        connection.execute(insert_new(connection, labels), rows)
