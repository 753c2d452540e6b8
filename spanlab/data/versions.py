"""Versions of datasets, which never change, and what differs between two datasets or versions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Final

from spanlab.base.errors import UsageError
from spanlab.output.tables import Column, ResultTable, columns_of
from spanlab.schema import Annotation, Item, Record, Span
from spanlab.storage import Store
from spanlab.storage.datasets import digest_of, summary_of

_SHOWN: Final = 50  # changes in a table; --json has all
_SPANS: Final = 5  # of them in a cell
_LONGEST: Final = 40  # characters of a span in a cell


def snapshot(
    store: Store, dataset: str, name: str, on_progress: Callable[[int], None] | None = None
) -> str:
    """Keep a dataset as it is now under ``DATASET@NAME``, which never changes.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        name: what the version is called, without @.
        on_progress: called now and then with the number of items that were hashed.

    Returns:
        The SHA-256 of its export in spanlab's own format, as hexadecimal digits.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: the dataset is a version itself, or ``name`` cannot name one.
        StoreError: there is a version of this name.
    """
    if not name or "@" in name:
        raise UsageError(f"{name!r} cannot name a version: some characters without @")
    version = f"{dataset}@{name}"
    if summary_of(store, dataset).digest is not None:
        raise UsageError(f"{dataset!r} is a version itself")
    store.freeze_dataset(dataset, version)
    try:
        digest = digest_of(store, version, on_progress)
        store.seal_version(version, digest)
    except BaseException:
        store.delete_dataset(version)
        raise
    return digest


@dataclass(frozen=True)
class AnnotationChange:
    """How one annotator's annotation of an item differs: ``a`` and ``b`` are states, or None.

    ``only_a`` and ``only_b`` are spans; without any the rest differs, such as a comment.
    """

    item: str
    annotator: str
    a: str | None
    b: str | None
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]


@dataclass(frozen=True)
class DatasetDiff:
    """What differs between the datasets called ``a`` and ``b``; items are named by their ids."""

    a: str
    b: str
    n_same: int
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    changed: tuple[str, ...]
    annotations: tuple[AnnotationChange, ...]

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the counts of items, and the annotations that differ, with their spans."""
        changes = self.annotations
        counts = {
            f"only in {self.a}": len(self.only_a),
            f"only in {self.b}": len(self.only_b),
            "with another question, answer or evidence": len(self.changed),
            "with other annotations": len({change.item for change in changes}),
            "the same": self.n_same,
        }
        items = ResultTable(
            key="items",
            title=f"Items of {self.a} and {self.b}",
            columns=(Column(key="what", title="Items"), *columns_of("count", "Number")),
            rows=tuple(counts.items()),
        )
        unlisted = len(changes) - _SHOWN
        listed = ResultTable(
            key="changes",
            title=f"What differs: A is {self.a}, B is {self.b}",
            columns=tuple(columns_of("text", "Item", "Annotator", "In A", "In B")),
            rows=tuple(
                (
                    change.item,
                    change.annotator,
                    _in_words(change.a, change.only_a),
                    _in_words(change.b, change.only_b),
                )
                for change in changes[:_SHOWN]
            ),
            remarks=(f"and {unlisted:,} more: --json has all of them",) if unlisted > 0 else (),
            empty="all annotations are the same",
        )
        return (items, listed)

    def figures(self) -> dict[str, Any]:
        """Return all differences as JSON."""
        return asdict(self)


def diff_datasets(store: Store, a: str, b: str) -> DatasetDiff:
    """Compare two datasets or versions; items are joined by id.

    Args:
        store: the annotation database.
        a: a dataset, or a version as ``DATASET@NAME``; what it has is kept in memory, without
            texts of items.
        b: the other one.

    Raises:
        NotFoundError: one of them does not exist.
    """
    records_a = {record.item.id: _keep_record(record) for record in store.records(a)}
    n_same, only_b, changed = 0, list[str](), list[str]()
    changes: list[AnnotationChange] = []
    for record in store.records(b):
        before = records_a.pop(record.item.id, None)
        if before is None:
            only_b.append(record.item.id)
            continue
        after = _keep_record(record)
        if before.digest != after.digest:
            changed.append(record.item.id)
        differing = list(_changes(record.item.id, before, after))
        changes += differing
        n_same += before.digest == after.digest and not differing
    return DatasetDiff(
        a,
        b,
        n_same=n_same,
        only_a=tuple(records_a),
        only_b=tuple(only_b),
        changed=tuple(changed),
        annotations=tuple(changes),
    )


@dataclass(frozen=True)
class _KeptAnnotation:
    state: str
    spans: tuple[str, ...]
    digest: bytes


@dataclass(frozen=True)
class _KeptRecord:
    digest: bytes
    annotations: dict[str, _KeptAnnotation]


def _keep_record(record: Record) -> _KeptRecord:
    annotations = {
        annotation.annotator: _KeptAnnotation(
            annotation.status.value,
            tuple(map(_span, annotation.spans)),
            _digest(annotation, "trace"),
        )
        for annotation in record.annotations
    }
    return _KeptRecord(_digest(record.item, "process"), annotations)


def _digest(part: Item | Annotation, without: str) -> bytes:
    return sha256(part.model_dump_json(exclude={without}).encode()).digest()


def _span(span: Span) -> str:
    text = span.text if len(span.text) <= _LONGEST else f"{span.text[:_LONGEST]}…"
    label = "" if span.label is None else f" {span.label}"
    return f"{span.start}–{span.end} “{text}”{label} {span.prob:g}"


def _changes(item: str, before: _KeptRecord, after: _KeptRecord) -> Iterator[AnnotationChange]:
    for name in dict.fromkeys((*before.annotations, *after.annotations)):
        a, b = before.annotations.get(name), after.annotations.get(name)
        if a != b:
            spans_a, spans_b = (annotation.spans if annotation else () for annotation in (a, b))
            yield AnnotationChange(
                item,
                name,
                a=a.state if a else None,
                b=b.state if b else None,
                only_a=tuple(span for span in spans_a if span not in spans_b),
                only_b=tuple(span for span in spans_b if span not in spans_a),
            )


def _in_words(state: str | None, spans: tuple[str, ...]) -> str:
    if state is None:
        return "nothing"
    and_more = f"; and {len(spans) - _SPANS} more" if len(spans) > _SPANS else ""
    return "; ".join((state, *spans[:_SPANS])) + and_more
