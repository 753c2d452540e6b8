"""The same items annotated elsewhere: their annotations join those that a dataset has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from spanlab.base.errors import InputError
from spanlab.data.predictions import (
    JoinedPredictions,
    count_reviews,
    other_answer,
    without_evidence,
)
from spanlab.formats import ReadOptions, read_placed
from spanlab.formats.wrongs import Wrongs, repeated_id, told_together
from spanlab.schema import Annotation, AnnotatorKind, Item, Permission, Record
from spanlab.storage.datasets import summary_of

if TYPE_CHECKING:
    from spanlab.storage import Store


def join_annotations(
    store: Store,
    files: Sequence[Path],
    dataset: str,
    options: ReadOptions | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> JoinedPredictions:
    """Store what people and detectors say in files of items that a dataset has, under their names.

    Items are joined by their id, and must have equal answers. Earlier annotations under the same
    name are replaced; nothing else of an item changes.

    Args:
        store: the annotation database.
        files: records with annotations, in any readable format.
        dataset: an existing dataset.
        options: how to read them.
        on_progress: called now and then with the number of items looked at.

    Returns:
        How many annotations were stored, and the ids that the dataset does not have.

    Raises:
        InputError: an id occurs twice, answers differ, or none is of this dataset; nothing was
            stored.
        NotFoundError: there is no such dataset.
        StoreError: an annotator has another kind there.
    """
    store.require(Permission.MANAGE, dataset)
    reading = options or ReadOptions()
    try:
        coming = _records(files, reading)
    except InputError as error:
        raise told_together(error, files, reading) from error.__cause__
    kinds = summary_of(store, dataset).kinds
    people = [name for name, kind in kinds.items() if kind is AnnotatorKind.PERSON]
    pairs: list[tuple[str, Annotation]] = []
    wrongs = Wrongs()
    n_found = n_replaced = 0
    for number, record in enumerate(store.records(dataset, annotators=people), start=1):
        item = record.item
        if (placed := coming.pop(item.id, None)) is not None:
            n_found += 1
            same = placed.record
            if same.item.answer != item.answer:
                wrong = other_answer(item.id, same.item.answer, item.answer)
                wrongs.add(wrong.at(file=placed.file, line=placed.line, unit=placed.unit))
            pairs += [(item.id, each) for each in _fitting(same, item)]
            n_replaced += count_reviews(record, [each.annotator for each in same.annotations])
        if on_progress is not None and number % 100 == 0:
            on_progress(number)
    wrongs.check()
    if not n_found:
        raise InputError(
            f"none of these items is in {dataset!r}",
            found=", ".join(map(repr, list(coming)[:3])) or "no item",
            expected="the ids that the dataset has",
        )
    return JoinedPredictions(store.save_annotations(dataset, pairs), tuple(coming), n_replaced)


class _ComingRecord(NamedTuple):
    record: Record
    line: int
    unit: str
    file: str


def _records(files: Sequence[Path], options: ReadOptions) -> dict[str, _ComingRecord]:
    records: dict[str, _ComingRecord] = {}
    for file in files:
        for placed in read_placed(file, options):
            if placed.record.item.id in records:
                error = repeated_id(placed.record.item.id, "every id once over all files")
                raise error.at(file=str(file), line=placed.line, unit=placed.unit)
            records[placed.record.item.id] = _ComingRecord(*placed, str(file))
    return records


def _fitting(record: Record, item: Item) -> Iterator[Annotation]:
    """Yield the annotations of a record, without quotes where the item has other passages."""
    for annotation in record.annotations:
        bare: Mapping[str, object] = {}
        if record.item.passages != item.passages:
            bare = without_evidence(annotation)
        yield annotation.model_copy(update=bare)
