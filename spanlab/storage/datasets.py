"""Datasets and their annotators: summaries, tables, label sets, questions and names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256
from io import RawIOBase
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, cast

from pydantic import ValidationError

from spanlab import doors
from spanlab.base.errors import InputError, NotFoundError, UsageError
from spanlab.base.fields import FrozenModel, message_of
from spanlab.base.names import alike, check_typed
from spanlab.formats import write
from spanlab.formats.known.labelstudio_writer import labeling_config, questions_in_config
from spanlab.output.tables import ITEMS, Column, ResultTable, columns_of
from spanlab.schema import (
    COLOUR_NAMES,
    LABEL_SETS,
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    DatasetSummary,
    Permission,
    Question,
    Record,
    SpanLabel,
    Status,
)
from spanlab.storage import Store
from spanlab.storage.annotators import gold_name

_DATASET = Column(key="dataset", title="Dataset")


def open_store() -> Store:
    """Open the annotation database that the environment names, brought up to date first.

    Returns:
        The store, for any number of threads; the caller closes it.
    """
    return Store.open()


def label_set(name: str) -> tuple[SpanLabel, ...]:
    """Return a label set that ships with spanlab.

    Raises:
        UsageError: there is none of this name; names those that there are.
    """
    for set_name, labels in LABEL_SETS.items():
        if set_name.casefold() == name.casefold():
            return labels
    raise UsageError(f"no label set named {name!r}; available: {', '.join(LABEL_SETS)}")


class _QuestionFile(FrozenModel):
    """The fields of a file of questions."""

    attributes: tuple[Question, ...] = ()
    questions: tuple[Question, ...] = ()
    unanswered: Literal["refused", "told"] = "refused"


def questions_of(text: str, file: Path) -> dict[str, Any]:
    """Read the questions about each span and each answer, as settings of a dataset.

    Args:
        text: JSON with lists of ``Question`` as ``attributes`` and ``questions``, and how Done
            takes required ones as ``unanswered``; or a labelling configuration of Label Studio.
        file: where it is from, for messages.

    Raises:
        InputError: it is something else; names the file and the field.
    """
    try:
        if text.lstrip().startswith("<"):
            return dict(questions_in_config(text))
        return dict(_QuestionFile.model_validate_json(text))
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or None
        raise InputError(message_of(first), file=file, field=field) from error
    except UsageError as error:
        raise InputError(str(error), file=file) from error


def label_studio_config(store: Store, dataset: str) -> str:
    """Return the labelling configuration that a dataset's export for Label Studio needs, as XML.

    Raises:
        NotFoundError: there is no such dataset.
    """
    return labeling_config(summary_of(store, dataset).settings, store.labels(dataset))


def colour_of(text: str) -> str | None:
    """Return a colour that somebody typed as ``#rrggbb``, None for an empty text.

    Args:
        text: as ``#rrggbb``, ``#rgb`` or a name that web pages know, in any case.

    Raises:
        UsageError: it is none of these; says what would be right.
    """
    typed = text.strip().lower()
    if not typed:
        return None
    digits = COLOUR_NAMES.get(typed, typed.removeprefix("#") if typed.startswith("#") else "")
    if len(digits) == 3:
        digits = "".join(2 * digit for digit in digits)
    if len(digits) != 6 or not set(digits) <= set("0123456789abcdef"):
        raise UsageError(
            f"“{text}” is not a colour: type #rrggbb, such as #008080, or a name such as teal"
        )
    return f"#{digits}"


def dataset_tables(summaries: Sequence[DatasetSummary]) -> tuple[ResultTable, ...]:
    """Return a table of datasets with their settings, and one of the progress of annotators."""
    states = (Status.DONE, Status.SKIPPED, Status.FAILED, Status.NOT_ANNOTATED)
    datasets = ResultTable(
        key="datasets",
        title="Datasets",
        columns=(
            _DATASET,
            ITEMS,
            *columns_of("text", "Languages", "Settings"),
        ),
        rows=tuple(
            (
                summary.name,
                summary.n_items,
                " ".join(f"{lang}:{count}" for lang, count in summary.languages.items()),
                _settings_in_words(summary.settings, summary.digest),
            )
            for summary in summaries
        ),
        empty="no datasets yet: spanlab import FILE --dataset NAME",
    )
    annotators = ResultTable(
        key="annotators",
        title="Annotators, with the number of items of each status",
        columns=(
            _DATASET,
            *columns_of("text", "Annotator", "Kind"),
            *(
                Column(
                    key=state.value, title=state.value.replace("-", " ").capitalize(), unit="count"
                )
                for state in states
            ),
        ),
        rows=tuple(
            (summary.name, a.name, a.kind.value, *(a.counts.get(state, 0) for state in states))
            for summary in summaries
            for a in summary.annotators
        ),
    )
    return (datasets, annotators) if annotators.rows else (datasets,)


def _settings_in_words(settings: DatasetSettings, digest: str | None) -> str:
    parts = [
        *([] if digest is None else [f"SHA-256 {digest or 'not worked out'}"]),
        f"undecided suggestions: {settings.undecided}",
        f"labels: {len(settings.labels)}",
        *(
            f"{noun}: {', '.join(question.name for question in questions)}"
            for noun, questions in (
                ("attributes", settings.attributes),
                ("questions", settings.questions),
            )
            if questions
        ),
        f"people per item: {settings.overlap or 'any number'}",
    ]
    if settings.assigned_to:
        parts.append(f"assigned to: {', '.join(settings.assigned_to)}")
    if settings.guidelines_now:
        parts.append(f"guidelines: version {len(settings.guidelines)}")
    return "; ".join(parts)


def rename_annotator(store: Store, dataset: str, annotator: str, new: str) -> None:
    """Give an annotator of a dataset another name.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        UsageError: the new name is empty, too long or has control characters, or it is that of a
            detector that is installed.
        StoreError: the new name is taken, or an import is under way.
    """
    summary = summary_of(store, dataset)
    kind = summary.kinds.get(annotator)
    if kind is not AnnotatorKind.DETECTOR:
        _check_annotator(new)
    if kind is not AnnotatorKind.PERSON and new in summary.settings.assigned_to:
        raise UsageError(f"“{new}” is a person to whom items are assigned: choose another name")
    store.rename_annotator(dataset, annotator, new)


def copy_as_gold(store: Store, dataset: str, annotator: str, name: str | None = None) -> int:
    """Copy what an annotator of a dataset finished as gold labels of a name of their own.

    The annotator stays, and goes on under its name. Copied again, the copies are replaced.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        annotator: a person, or gold labels.
        name: what the copies are called; None for ``gold_name``.

    Returns:
        How many items have a copy.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        UsageError: it is no person and no gold labels, or the name is none, the annotator's own or
            one of other gold labels.
        StoreError: somebody who is no gold labels has the name, or an import is under way.
    """
    store.require(Permission.MANAGE, dataset)
    name = gold_name(annotator) if name is None else name
    summary = summary_of(store, dataset)
    check_annotators(summary, [annotator])
    if summary.kinds[annotator] not in {AnnotatorKind.PERSON, AnnotatorKind.GOLD}:
        raise UsageError(
            f"{annotator!r} is a {summary.kinds[annotator].value}: what people said can be gold "
            "labels; a vote or a detector is compared with them"
        )
    if name == annotator:
        raise UsageError(f"the copy of {annotator!r} needs a name of its own")
    _check_annotator(name)
    if summary.kinds.get(name) is AnnotatorKind.GOLD and copied_from(summary, name) != annotator:
        raise UsageError(
            f"{name!r} are gold labels of {summary.name!r} already, and no copy of {annotator!r}: "
            f"use another name, such as {gold_name(annotator)!r}"
        )
    copied = {"annotator": name, "kind": AnnotatorKind.GOLD}
    copies = [
        (record.item.id, annotation.model_copy(update=copied))
        for record in store.records(dataset, annotators=[annotator])
        for annotation in record.finished
    ]
    n_copied = store.save_annotations(dataset, copies, whole=True)

    def keep_source(settings: DatasetSettings) -> DatasetSettings:
        sources = {**dict(settings.gold_copies), name: annotator}
        return settings.model_copy(update={"gold_copies": tuple(sources.items())})

    store.change_settings(dataset, keep_source)
    return n_copied


def copied_from(summary: DatasetSummary, gold: str) -> str | None:
    """Return whose annotations gold labels are a copy of; None if they are none.

    Of copies made before 1.1 the usual name says so.
    """
    stored = dict(summary.settings.gold_copies).get(gold)
    usual = (name for name in summary.names_of(AnnotatorKind.PERSON) if gold_name(name) == gold)
    return stored or next(usual, None)


def describe_undoing_gold(summary: DatasetSummary, gold: str) -> str:
    """Describe what becomes of gold labels that are to be no gold labels any more."""
    source = copied_from(summary, gold)
    if source is None:
        return f"{gold} will count as a person, no longer as gold labels."
    return (
        f"{gold} is a copy of what {source} finished. It will be deleted, with what was decided "
        f"under this name in Adjudicate. {source} stays as it is."
    )


def undo_gold(store: Store, dataset: str, gold: str) -> str:
    """Delete gold labels that are a copy, and make others a person; return what was done.

    Raises:
        NotFoundError: there is no such dataset, or nobody of this name has annotated it.
        UsageError: these are no gold labels.
    """
    summary = summary_of(store, dataset)
    source = copied_from(summary, gold)
    if source is None or summary.kinds.get(gold) is not AnnotatorKind.GOLD:
        store.set_person(dataset, gold)
        return f"{gold} counts as a person in {dataset}."
    store.remove_annotator(dataset, gold)
    return f"{gold}, a copy of what {source} finished, was deleted from {dataset}."


_LOOKED_AT: Final = 200  # items of a dataset, which are mostly of one kind


def claims_of_whole(store: Store, summary: DatasetSummary) -> tuple[str, ...]:
    """Return the gold labels of a dataset in which claims were made of whole-answer labels."""
    gold = summary.names_of(AnnotatorKind.GOLD)
    records = islice(store.records(summary.name, annotators=gold), _LOOKED_AT) if gold else ()
    names = (
        annotation.annotator
        for record in records
        for annotation in record.annotations
        if annotation.is_claim_of_whole(record.item)
    )
    return tuple(dict.fromkeys(names))


def make_verdicts(store: Store, dataset: str, annotator: str) -> tuple[int, int]:
    """Make verdicts of the claims that earlier versions made of whole-answer labels.

    Where the annotator has such claims and marks nothing anywhere, finished annotations that say
    nothing are verdicts, too: that the answer is not hallucinated.

    Returns:
        How many answers are called hallucinated now, and how many are not.

    Raises:
        NotFoundError: there is no such dataset or annotator.
        StoreError: somebody has reviewed one of the items under this name; nothing is changed.
    """
    store.require(Permission.MANAGE, dataset)
    check_annotators(summary_of(store, dataset), [annotator])
    wrong: list[str] = []
    silent: list[str] = []
    marks_places = False
    for record in store.records(dataset, annotators=[annotator]):
        for one in record.finished:
            marks_places |= bool(one.spans or one.hard)
            if one.is_claim_of_whole(record.item):
                wrong.append(record.item.id)
            elif not (one.spans or one.hard or one.claims or one.answer_hallucinated):
                silent.append(record.item.id)
    right = silent if wrong and not marks_places else []
    called = dict.fromkeys(right, False) | dict.fromkeys(wrong, True)

    def converted() -> Iterator[tuple[str, Annotation]]:
        for item, is_wrong in called.items():
            one = store.record(dataset, item).by(annotator)
            assert one is not None
            said = {"claims": (), "answer_hallucinated": is_wrong}
            yield item, one.model_copy(update=said)

    store.save_annotations(dataset, converted(), whole=True)
    return len(wrong), len(right)


def _check_annotator(name: str) -> None:
    """Check that an annotator that is no detector may be called so.

    Raises:
        UsageError: it is no name, has a character that is not drawn, or looks like a detector's.
    """
    check_typed(name, "an annotator")
    if alike(name, doors.names("detectors")):
        raise UsageError(f"“{name}” is the name of a detector: choose another")


def summary_of(store: Store, dataset: str) -> DatasetSummary:
    """Return the summary of a dataset.

    Raises:
        NotFoundError: there is none of this name; the message lists those that exist.
    """
    summaries = store.datasets(versions=True)
    for summary in summaries:
        if summary.name == dataset:
            return summary
    raise NotFoundError(
        f"no dataset named {dataset!r}; available: {_list_names(s.name for s in summaries)}"
    )


def check_annotators(summary: DatasetSummary, annotators: Iterable[str]) -> None:
    """Check that a dataset has all of these annotators.

    Raises:
        NotFoundError: names the missing ones and lists those that exist.
    """
    kinds = summary.kinds
    missing = [annotator for annotator in annotators if annotator not in kinds]
    if missing:
        raise NotFoundError(
            f"dataset {summary.name!r} has no annotator {', '.join(map(repr, missing))}; "
            f"available: {_list_names(kinds)}"
        )


def _list_names(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none yet"


_REPORT_EVERY = 1000  # items between two calls of `on_progress`


def digest_of(store: Store, dataset: str, on_progress: Callable[[int], None] | None = None) -> str:
    """Return the SHA-256 of a dataset's export in spanlab's own format."""
    stream, settings = _DigestStream(), summary_of(store, dataset).settings
    records = with_progress(store.records(dataset), on_progress)
    write(records, cast(BinaryIO, stream), title=dataset, settings=settings)
    return stream.digest.hexdigest()


class _DigestStream(RawIOBase):
    """Keeps nothing of what is written but its digest."""

    def __init__(self) -> None:
        super().__init__()
        self.digest = sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.digest.update(data)
        return len(data)


def with_progress(
    records: Iterable[Record],
    on_progress: Callable[[int], None] | None,
    every: int = _REPORT_EVERY,
) -> Iterator[Record]:
    """Yield ``records``, and call ``on_progress`` with their number after ``every`` so many."""
    for count, record in enumerate(records, start=1):
        yield record
        if on_progress is not None and count % every == 0:
            on_progress(count)


def has_item(store: Store, dataset: str, item_id: str) -> bool:
    """Return whether the dataset is there and has an item of this id."""
    try:
        store.positions_of(dataset, [item_id])
    except NotFoundError:
        return False
    return True
