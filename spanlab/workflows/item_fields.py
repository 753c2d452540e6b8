"""Fields of items by which a dataset is divided: its language, its labels, what its meta says."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from spanlab.errors import UsageError
from spanlab.extents import intersection
from spanlab.labels import hard_of
from spanlab.schema import Annotation, Interval, Item, Record
from spanlab.storage import Store

NOTHING_THERE: Final = "(none)"
LABEL: Final = "label"
Values: TypeAlias = Callable[[Record], Iterable[tuple[str, Record]]]  # by value, what counts
_MODEL: Final = {"model", "modelid", "modelname", "llm", "generator"}  # letters of a field's name


def fields_of(store: Store, dataset: str) -> tuple[str, ...]:
    """Return the fields by which a dataset's items can be grouped, as its first item has them."""
    first = next(iter(store.records(dataset)), None)
    labels = (LABEL,) if store.labels(dataset) else ()
    return ("lang", *(() if first is None else _paths(first.item.meta, "meta")), *labels)


def model_field(fields: Sequence[str]) -> str | None:
    """Return the field that looks most like the name of the model that answered, None for none."""

    def unlike(field: str) -> int:
        above, last = (re.sub(r"[^a-z]", "", part) for part in field.casefold().split(".")[-2:])
        if last in _MODEL:
            return 0
        if above in _MODEL and last in {"name", "id"}:
            return 1
        return 2 if any(name in last for name in _MODEL) else 3

    shortest = min((field for field in fields if "." in field), key=unlike, default=None)
    return None if shortest is None or unlike(shortest) > 2 else shortest


def values_of(field: str, labels: Sequence[str] = ()) -> Values:
    """Return what divides a record by a field: the values it has, and what counts for each.

    Args:
        field: "lang", a path into the items' meta such as "meta.model_id", or "label".
        labels: of the spans, where the field is "label".

    Raises:
        UsageError: there is no such field.
    """
    return _by_label(labels) if field == LABEL else _by_field(field)


def _by_label(labels: Sequence[str]) -> Values:
    """Return what parts a record into the spans of each label."""

    def parts(record: Record) -> Iterable[tuple[str, Record]]:
        for label in labels:
            said = tuple(_only(annotation, label) for annotation in record.annotations)
            yield label, record.model_copy(update={"annotations": said})

    return parts


def _only(annotation: Annotation, label: str) -> Annotation:
    spans = tuple(span for span in annotation.spans if span.label == label)
    hard = intersection(hard_of(annotation), spans)
    kept = tuple(Interval(start=start, end=end) for start, end in hard)
    return annotation.model_copy(update={"spans": spans, "hard": kept, "claims": ()})


def _by_field(field: str) -> Values:
    read = _reader(field)
    return lambda record: [(read(record.item), record)]


def _reader(field: str) -> Callable[[Item], str]:
    if field == "lang":
        return lambda item: item.lang
    head, *path = field.split(".")
    if head != "meta" or not path:
        raise UsageError(
            f"no field {field!r} to group by: it is lang, label or a path such as meta.model"
        )

    def read(item: Item) -> str:
        value: object = item.meta
        for part in path:
            value = value.get(part) if isinstance(value, dict) else None
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        return NOTHING_THERE if value is None else text.strip() or NOTHING_THERE

    return read


def _paths(meta: Mapping[str, object], head: str) -> Iterable[str]:
    for name, value in meta.items():
        if isinstance(value, dict):
            yield from _paths(value, f"{head}.{name}")
        elif isinstance(value, str | int | bool):
            yield f"{head}.{name}"
