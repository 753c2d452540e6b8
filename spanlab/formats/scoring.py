"""Labels to score, and whose annotation of a record counts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from pydantic import ValidationError

from spanlab.base.errors import InputError
from spanlab.formats.detect import detect
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.known.mushroom import LabelsLine
from spanlab.formats.read_options import ReadOptions, RejectedRecord
from spanlab.formats.reader import input_error, language
from spanlab.formats.readers import PlacedRecord, read_placed
from spanlab.schema import (
    UNDETERMINED,
    Annotation,
    AnnotatorKind,
    Claim,
    Record,
    Status,
    relations_of,
)
from spanlab.text.extents import Extent, merge
from spanlab.text.labels import ItemLabels, SoftLabel, flatten, harden, labels_of

_LANGUAGE_IN_ID = re.compile(r"^[a-z]+-([a-z]{2,3})-")


class PlacedLabels(NamedTuple):
    """Labels, where they stand in their file, as in ``PlacedRecord``, and the answer, if any."""

    labels: ItemLabels
    line: int
    unit: str = "line"
    answer: str | None = None


def read_labels(
    path: Path,
    *,
    format: str = "auto",
    annotator: str | None = None,
    role: Role = "gold",
) -> Iterator[ItemLabels]:
    """Yield the labels of a file's items: Mu-SHROOM with or without answers, or any other format.

    Items that the annotator has not finished (or failed on) are left out, so that a scorer can
    report them as missing.

    Args:
        path: the file.
        format: one of ``formats()`` or "auto".
        annotator: whose labels; by default a Mu-SHROOM file's own, and in the other formats those
            that ``role`` asks for.
        role: "gold" prefers the gold labels; "prediction" the only detector or vote, then the only
            person.

    Raises:
        InputError: a record is wrong, or it is not clear whose labels are meant.
        UsageError: there is no format of that name.
    """
    placed = read_placed_labels(path, format=format, annotator=annotator, role=role)
    return (placed_labels.labels for placed_labels in placed)


def read_placed_labels(
    path: Path,
    *,
    format: str = "auto",
    annotator: str | None = None,
    role: Role = "gold",
    on_wrong: OnWrong | None = None,
    options: ReadOptions | None = None,
) -> Iterator[PlacedLabels]:
    """Yield what ``read_labels`` yields, each with its place in the file.

    ``on_wrong`` is called with the error of each record that is wrong, and reading goes on; without
    it the first one is raised. ``options`` say how else than by their format files are read.
    """
    options = options or ReadOptions(format=format)
    name = options.format
    if name == "auto":
        name = detect(path, encoding=options.encoding)
    if name == "mushroom" and not (options.columns or options.own):
        file = InputFile(path, str(path), encoding=options.encoding)
        if annotator is None or _is_submission(file):  # a submission has one annotator, unnamed
            return _mushroom(file, on_wrong)
    return _other_labels(path, annotator, role, on_wrong, options)


class PlacedClaims(NamedTuple):
    """The claims of an item, and where it stands in its file, as in ``PlacedRecord``."""

    item: str
    claims: tuple[Claim, ...]
    line: int
    unit: str = "line"


def read_placed_claims(
    path: Path,
    *,
    annotator: str | None = None,
    role: Role = "gold",
    on_wrong: OnWrong | None = None,
) -> Iterator[PlacedClaims]:
    """Yield the claims of a file's items; items without any, or that nobody finished, are left out.

    Args:
        path: the file.
        annotator: whose claims; by default of whom ``role`` asks for, as in ``read_labels``.
        role: as in ``read_labels``.
        on_wrong: as in ``read_placed_labels``.

    Raises:
        InputError: a record is wrong, or it is not clear whose claims are meant.
    """
    for (record, line, unit), finished in finished_in(path, annotator, role, on_wrong):
        if finished.claims:
            yield PlacedClaims(record.item.id, finished.claims, line, unit)


class _ScoredLine(LabelsLine):
    """A line of a submission or of a published file, as far as a scorer looks at it."""

    model_input: str = ""
    model_output_text: str | None = None

    def labels(self) -> ItemLabels:
        """Return the labels. Where soft ones overlap the last wins, as in the official scorer."""
        if self.soft_labels is None and self.hard_labels is None:
            raise InputError("there are no labels", expected="soft_labels and hard_labels")
        hard = [Extent(start, end) for start, end in self.hard_labels or ()]
        soft = [SoftLabel(s.start, s.end, s.prob) for s in self.soft_labels or ()]
        length = None if self.model_output_text is None else len(self.model_output_text)
        _check("hard_labels", hard, length)
        _check("soft_labels", [Extent(s.start, s.end) for s in soft], length)
        if self.soft_labels is None:
            soft = [SoftLabel(start, end, 1.0) for start, end in hard]
        if self.hard_labels is None:
            hard = harden(flatten(soft, overlap="last"))
        return ItemLabels(
            id=self.id,
            lang=_language(self.lang, self.id),
            soft=tuple(flatten(soft, overlap="last")),
            hard=tuple(merge(hard)),
            raters=tuple(self._raters(length)),
            length=length,
            relations=relations_of(self.model_input, self.model_output_text or ""),
        )

    def _raters(self, length: int | None) -> Iterator[tuple[Extent, ...]]:
        # One published raw span ends a character past its answer, and is clipped.
        limit = None if length is None else length + 1
        for annotator, places in (self.annotations or {}).items():
            extents = [Extent(start, end) for start, end in places]
            _check(f"annotations.{annotator}", extents, limit)
            if length is not None:
                extents = [Extent(start, min(end, length)) for start, end in extents]
            yield tuple(merge(extents))


def _mushroom(file: InputFile, on_wrong: OnWrong | None) -> Iterator[PlacedLabels]:
    for row in file.rows():
        try:
            labels, answer = _labels(row, file)
        except InputError as error:
            if on_wrong is None:
                raise
            on_wrong(error)
        else:
            yield PlacedLabels(labels, row.line, row.unit, answer)


def _is_submission(file: InputFile) -> bool:
    first_row = next(iter(file.rows()), None)
    return first_row is not None and b"model_output_text" not in first_row.raw


def _labels(row: FileRow, file: InputFile) -> tuple[ItemLabels, str | None]:
    try:
        scored = _ScoredLine.model_validate_json(row.raw)
        return scored.labels(), scored.model_output_text
    except ValidationError as error:
        raise input_error(error).at(file=file.name, line=row.line, unit=row.unit) from None
    except InputError as error:
        raise error.at(file=file.name, line=row.line, unit=row.unit) from None


def _other_labels(
    path: Path, annotator: str | None, role: Role, on_wrong: OnWrong | None, options: ReadOptions
) -> Iterator[PlacedLabels]:
    for (record, line, unit), finished in finished_in(path, annotator, role, on_wrong, options):
        labels = labels_of(record, finished.annotator)
        yield PlacedLabels(labels, line, unit, record.item.answer)


def finished_in(
    path: Path,
    annotator: str | None,
    role: Role,
    on_wrong: OnWrong | None = None,
    options: ReadOptions | None = None,
) -> Iterator[tuple[PlacedRecord, Annotation]]:
    """Yield the records of a file that an annotator has finished, with the annotation.

    Args:
        path: the file.
        annotator: whose; None chooses, see ``AnnotatorChooser``.
        role: what None chooses.
        on_wrong: as in ``read_placed_labels``.
        options: how to read it.

    Raises:
        InputError: a record is wrong, or it is not clear whose annotation is meant.
    """

    def reject(left_out: RejectedRecord) -> None:
        if left_out.error is not None and left_out.kind and on_wrong is not None:
            on_wrong(left_out.error)

    callbacks = {"on_warning": _ignore_remark, "on_reject": reject if on_wrong else None}
    options = (options or ReadOptions()).model_copy(update=callbacks)
    chooser = AnnotatorChooser(annotator, role)
    for placed in read_placed(path, options):
        try:
            finished = chooser.done(placed.record)
        except InputError as error:
            raise error.at(file=str(path), line=placed.line, unit=placed.unit) from None
        if finished is not None:
            yield placed, finished


def _ignore_remark(_remark: str) -> None:
    """Keep the remarks of a reader to itself: they are for those who import."""


def _language(lang: str | None, item_id: str) -> str:
    if lang is not None:
        return language(lang)
    match = _LANGUAGE_IN_ID.match(item_id)
    return match[1] if match else UNDETERMINED


def _check(field: str, extents: list[Extent], length: int | None) -> None:
    for index, (start, end) in enumerate(extents):
        if start > end or (length is not None and end > length):
            raise InputError(
                "the offsets are not a part of the answer",
                field=f"{field}.{index}",
                found=[start, end],
                expected="start <= end" + ("" if length is None else f" <= {length}"),
            )


Role = Literal["gold", "prediction"]
OnWrong = Callable[[InputError], None]

# Who is meant, the first tier that is there at all deciding.
_TIERS: dict[Role, tuple[frozenset[AnnotatorKind], ...]] = {
    "gold": (
        frozenset({AnnotatorKind.GOLD}),
        frozenset({AnnotatorKind.DETECTOR, AnnotatorKind.VOTE, AnnotatorKind.PERSON}),
    ),
    "prediction": (
        frozenset({AnnotatorKind.DETECTOR, AnnotatorKind.VOTE}),
        frozenset({AnnotatorKind.PERSON}),
        frozenset({AnnotatorKind.GOLD}),
    ),
}


class AnnotatorChooser:
    """Picks one annotator's finished annotations out of the records of a file.

    Args:
        annotator: whose; None chooses, and keeps to the same name in the whole file.
        role: what None chooses: "gold" the gold labels, else the only annotator; "prediction" the
            only detector or vote, else the only person, else the gold labels.
    """

    def __init__(self, annotator: str | None, role: Role) -> None:
        self._tiers = () if annotator is not None else _TIERS[role]
        self._chosen = annotator

    def done(self, record: Record) -> Annotation | None:
        """Return the finished annotation, or None if this item has none.

        A failed or skipped annotation is not "nothing found", so it is None too.

        Raises:
            InputError: nobody was named and several annotators could be meant.
        """
        self._look(record)
        annotation = None if self._chosen is None else record.by(self._chosen)
        if annotation is None or annotation.status is not Status.DONE:
            return None
        return annotation

    def _look(self, record: Record) -> None:
        for index, kinds in enumerate(self._tiers):
            names = [a.annotator for a in record.annotations if a.kind in kinds]
            if not names:
                continue
            if self._chosen is None and len(names) == 1:
                self._chosen = names[0]
                # Lower tiers no longer matter; a rival of this or a higher one would.
                self._tiers = self._tiers[: index + 1]
                return
            rivals = [name for name in names if name != self._chosen]
            if rivals:
                names_so_far = [] if self._chosen is None else [self._chosen]
                raise InputError(
                    f"item {record.item.id!r}: it is not clear whose annotation is meant",
                    found=", ".join([*names_so_far, *rivals]),
                    expected="the name of one annotator",
                )
