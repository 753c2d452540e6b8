"""Imports of a system's predictions for items that a dataset has."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from spanlab.base.errors import InputError
from spanlab.base.inbound import one_line
from spanlab.formats import ReadOptions, detect, read_placed_labels
from spanlab.formats.scoring import OnWrong, finished_in
from spanlab.formats.wrongs import Wrongs, repeated_id
from spanlab.output.figures import counted
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Interval,
    Item,
    Permission,
    Record,
    Retrieval,
    Span,
    joined,
)
from spanlab.scoring.averitec_files import claim_id
from spanlab.storage.datasets import summary_of
from spanlab.text.labels import ItemLabels

if TYPE_CHECKING:
    from spanlab.storage import Store

_SHOWN: Final = 60  # characters of an answer in a message


@dataclass(frozen=True)
class JoinedPredictions:
    """How many annotations were stored, and the ids that the dataset does not have.

    ``replaced`` are the finished reviews of people that it had before under the same names.
    """

    items: int
    unmatched: tuple[str, ...]
    replaced: int

    @property
    def replaced_in_words(self) -> str:
        """What to say of the reviews that are no longer there; empty if there were none."""
        if not self.replaced:
            return ""
        return f"This replaced {counted(self.replaced, 'finished review')} that the dataset had"


def count_reviews(record: Record, names: Collection[str]) -> int:
    """Return how many finished reviews of people called ``names`` a record has."""
    return sum(
        review.kind is AnnotatorKind.PERSON and review.annotator in names
        for review in record.finished
    )


def other_answer(item: str, given: str, stored: str) -> InputError:
    """Return the error of marks in an answer that is not the one that the dataset has."""
    pairs = enumerate(zip(given, stored, strict=False))
    n_same = next((at for at, (one, other) in pairs if one != other), min(len(given), len(stored)))
    start = n_same - _SHOWN // 4 if n_same > _SHOWN // 2 else 0  # shows where they differ
    given, stored = ("…" * (start > 0) + one_line(text[start:], _SHOWN) for text in (given, stored))
    return InputError(
        f"item {item!r} has another answer in the dataset, “{stored}”",
        field="answer",
        found=given,
        expected="the same answers under the same ids",
    )


class _PlacedPrediction(NamedTuple):
    """Labels, or a record with its annotation, and where they are in the file.

    ``answer`` is what they mark, None in a file without answers. ``counted`` says that its id is
    that of AVeriTeC's files, which items may have under another.
    """

    content: ItemLabels | tuple[Item, Annotation]
    file: str
    line: int
    unit: str
    answer: str | None
    counted: bool = False

    def place(self, error: InputError) -> InputError:
        return error.at(file=self.file, line=self.line, unit=self.unit)


class _PredictedItem(NamedTuple):
    """Annotations of an item, which has the pages that they quote and nothing else."""

    item: Item
    annotations: tuple[Annotation, ...]


def import_predictions(  # noqa: PLR0913 - as the command has them
    store: Store,
    files: Sequence[Path],
    dataset: str,
    name: str,
    *,
    kind: AnnotatorKind = AnnotatorKind.DETECTOR,
    options: ReadOptions | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> JoinedPredictions:
    """Store what a system predicted, or a person marked, for items that are there.

    Items are joined by their id; earlier predictions under the same name are replaced.

    Args:
        store: the annotation database.
        files: predictions in any readable format, with answers or without. Those of AVeriTeC's
            shared task are joined by ``claim_id``, and the pages that they quote are kept.
        dataset: an existing dataset.
        name: the annotator that they become.
        kind: what the annotator is.
        options: how to read the files.
        on_progress: called now and then with the number of items looked at.

    Raises:
        InputError: a prediction is wrong, occurs twice or does not fit its item's answer, or none
            is of this dataset; nothing was stored.
        NotFoundError: there is no such dataset.
        StoreError: somebody of another kind has this name.
    """
    store.require(Permission.MANAGE, dataset)
    kinds = summary_of(store, dataset).kinds
    wrongs = Wrongs()
    predictions = _predictions(files, options or ReadOptions(), wrongs)
    pairs: list[tuple[str, Annotation]] = []
    quoting: list[_PredictedItem] = []
    known = [name] if kinds.get(name) is AnnotatorKind.PERSON else []
    replaced = 0
    for number, record in enumerate(store.records(dataset, annotators=known), start=1):
        item = record.item
        prediction = _take_prediction(predictions, item)
        if prediction is not None:
            replaced += count_reviews(record, known)
            fitted = _fit_to_item(prediction, item, name)
            if isinstance(fitted, InputError):
                wrongs.add(fitted)
            elif isinstance(fitted, _PredictedItem):
                said = tuple(each.model_copy(update={"kind": kind}) for each in fitted.annotations)
                quoting.append(fitted._replace(annotations=said))
            else:
                pairs.append((item.id, fitted.model_copy(update={"kind": kind})))
        if on_progress is not None and number % 100 == 0:
            on_progress(number)
    wrongs.check()
    if not (pairs or quoting):
        raise InputError(
            f"none of these predictions is of an item in {dataset!r}",
            found=", ".join(map(repr, list(predictions)[:3])) or "no finished prediction",
            expected="the ids that the dataset has",
        )
    stored = store.save_annotations(dataset, pairs) + store.save_findings(dataset, quoting)
    return JoinedPredictions(stored, tuple(predictions), replaced)


def _take_prediction(
    predictions: dict[str, _PlacedPrediction], item: Item
) -> _PlacedPrediction | None:
    """Remove the prediction of an item from ``predictions``, and return it; None for none."""
    if item.id in predictions:
        return predictions.pop(item.id)
    prediction = predictions.get(number := claim_id(item))
    return predictions.pop(number) if prediction is not None and prediction.counted else None


def _predictions(
    files: Sequence[Path], options: ReadOptions, wrongs: Wrongs
) -> dict[str, _PlacedPrediction]:
    predictions: dict[str, _PlacedPrediction] = {}
    for file in files:
        is_told = options.format == "auto"
        name = detect(file, encoding=options.encoding) if is_told else options.format
        read = _READING.get(name, _records)
        for item_id, prediction in read(file, options, wrongs.add):
            if item_id in predictions:
                wrongs.add(prediction.place(repeated_id(item_id, "every id once over all files")))
            predictions[item_id] = prediction
    return predictions


def _labels(
    file: Path, options: ReadOptions, on_wrong: OnWrong
) -> Iterator[tuple[str, _PlacedPrediction]]:
    """Yield the labels of a submission, which comes without its answers."""
    for labels, line, unit, answer in read_placed_labels(
        file, role="prediction", on_wrong=on_wrong, options=options
    ):
        yield labels.id, _PlacedPrediction(labels, str(file), line, unit, answer)


def _records(
    file: Path, options: ReadOptions, on_wrong: OnWrong
) -> Iterator[tuple[str, _PlacedPrediction]]:
    finished = finished_in(file, None, "prediction", on_wrong, options)
    for (record, line, unit), annotation in finished:
        content = (record.item, annotation)
        placed = _PlacedPrediction(content, str(file), line, unit, record.item.answer)
        yield record.item.id, placed


def _records_by_number(
    file: Path, options: ReadOptions, on_wrong: OnWrong
) -> Iterator[tuple[str, _PlacedPrediction]]:
    for item_id, prediction in _records(file, options, on_wrong):
        yield item_id, prediction._replace(counted=True)


_READING: Final = {"mushroom": _labels, "averitec": _records_by_number}


def _fit_to_item(
    prediction: _PlacedPrediction, item: Item, name: str
) -> Annotation | _PredictedItem | InputError:
    """Return a prediction as an annotation of the dataset's item, or with the pages it quotes.

    One that was made for another answer is returned as an error, to be told with the others.
    """
    predicted = prediction.content
    if prediction.answer not in {None, item.answer}:
        return prediction.place(other_answer(item.id, str(prediction.answer), item.answer))
    if isinstance(predicted, ItemLabels):
        ends = [*(each.end for each in predicted.soft), *(each.end for each in predicted.hard)]
        if max(ends, default=0) <= len(item.answer):
            return _annotation(predicted, item.answer, name)
        return prediction.place(
            InputError(
                "the prediction was made for another answer",
                field="soft_labels",
                found=f"item {item.id!r}, whose answer has {len(item.answer):,} characters here",
                expected="spans of the answer that the dataset has",
            )
        )
    predicted_item, annotation = predicted
    changes: Mapping[str, object] = {
        "annotator": name,
        "kind": AnnotatorKind.DETECTOR,
        "voters": (),
    }
    if prediction.counted:
        bare = item.model_copy(update={"passages": (), "retrievals": (), "citations": ()})
        read = joined(bare, Retrieval(retriever=name, query=item.answer), predicted_item.passages)
        return _PredictedItem(read, (annotation.model_copy(update=changes),))
    if predicted_item.passages != item.passages:
        changes = {**changes, **without_evidence(annotation)}
    return annotation.model_copy(update=changes)


def _annotation(labels: ItemLabels, answer: str, name: str) -> Annotation:
    hard = tuple(Interval(start=start, end=end) for start, end in labels.hard)
    spans = tuple(Span.of(answer, label.start, label.end, prob=label.prob) for label in labels.soft)
    return Annotation(annotator=name, kind=AnnotatorKind.DETECTOR, spans=spans, hard=hard)


def without_evidence(annotation: Annotation) -> Mapping[str, object]:
    """Return the fields of an annotation without quotes: the item lacks their passages."""
    bare = {"evidence": ()}
    return {
        "spans": tuple(span.model_copy(update=bare) for span in annotation.spans),
        "rejected": (),
        "claims": tuple(claim.model_copy(update=bare) for claim in annotation.claims),
        "rejected_claims": (),
        "trace": (),
    }
