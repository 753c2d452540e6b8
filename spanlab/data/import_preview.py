"""A preview of an import: the first records of files, before anything is stored."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from spanlab.base.errors import InputError
from spanlab.data.importing import (
    ImportOptions,
    all_wrong,
    describe_fields,
    has_no_evidence,
    state_missing,
    taken_id,
    words_on_missing,
)
from spanlab.formats import ReadOptions, RejectedRecord, detect, read_placed
from spanlab.formats.registry import options_of
from spanlab.formats.wrongs import Kinds
from spanlab.output.figures import counted
from spanlab.output.tables import ResultTable, fact_table
from spanlab.schema import AnnotatorKind, Item, Record
from spanlab.schema.stages import stages_of
from spanlab.text.languages import LanguageGuess, in_a_terminal

_SHOWN = 3
_PASSAGES = 3  # of an item that are shown
_LONGEST = 100  # characters of a text that are shown
_LOOKED_AT = 500  # records, so that a preview takes a moment
_CHARACTERS = 20_000_000
_REJECTS = 20


@dataclass(frozen=True)
class ImportPreview:
    """The first records of files, as an import would store them.

    Attributes:
        formats: of the files, as they were recognised or named.
        items: the first three.
        read: how many records were looked at.
        is_all: whether that is all there are.
        with_passages: how many of them have passages.
        without_question: how many of them have no question.
        annotators: whose annotations are among them, by name, with how many.
        rejects: records that are wrong, where these are left out.
        fields: what each field of the files became.
        remarks: what the readers said of the files.
    """

    formats: tuple[str, ...]
    items: tuple[Item, ...]
    read: int
    is_all: bool
    with_passages: int
    annotators: tuple[tuple[str, AnnotatorKind, int], ...]
    without_question: int = 0
    rejects: tuple[RejectedRecord, ...] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()

    @property
    def warning(self) -> str:
        """A warning if records lack passages or questions; empty if none does."""
        return words_on_missing(self.read - self.with_passages, self.without_question, self.read)

    @property
    def wrong(self) -> list[str]:
        """What is wrong with the records that are left out, a line for each kind."""
        return Kinds(self.rejects).lines()

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the recognised format, what records have and lack, and the first of them."""
        annotators = ", ".join(f"{name} ({kind}, {n:,})" for name, kind, n in self.annotators)
        among = "" if self.is_all else "the first "
        facts = {
            "format": ", ".join(self.formats),
            "annotators": annotators or "none",
            "passages": f"in {self.with_passages:,} of {among}{counted(self.read, 'item')}",
        }
        if options := options_of(*self.formats):
            facts["options"] = ", ".join(option.flags[-1] for option in options)
        if self.fields:
            facts["fields"] = describe_fields(self.fields)
        if self.remarks:
            facts["remarks"] = "; ".join(map(in_a_terminal, self.remarks))
        if self.rejects:
            bad = counted(len(self.rejects), "bad record")
            facts["left out"] = f"{bad}: {' — '.join(self.wrong)}"
        items = (fact_table("item", "", _facts_of(item)) for item in self.items)
        return (fact_table("files", "", facts), *items)


def _facts_of(item: Item) -> dict[str, str]:
    passages = [passage.text for passage in item.passages]
    numbered = enumerate(passages[:_PASSAGES], start=1)
    facts = {
        "id": item.id,
        "language": item.lang,
        "question": item.question,
        "answer": item.answer,
        **{f"passage {number}": text for number, text in numbered},
    }
    if len(passages) > _PASSAGES:
        facts[""] = f"and {len(passages) - _PASSAGES:,} more passages"
    if stages := stages_of(item):
        facts["process"] = ", ".join(f"{name}: {size:,}" for name, size in stages.sizes.items())
    if item.meta:
        facts["meta"] = ", ".join(item.meta)
    return {name: _shorten(text) for name, text in facts.items()}


def _shorten(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[: _LONGEST - 1]}…"


def preview_import(files: Sequence[Path], options: ImportOptions | None = None) -> ImportPreview:
    """Read the first records of files as an import would, and store nothing.

    Args:
        files: at least one file.
        options: as an import gets them.

    Raises:
        InputError: a record is wrong, or a file's format is not recognised.
    """
    chosen = options or ImportOptions()
    counts = _PreviewCounts()
    on_reject = counts.reject if chosen.skip_bad else None
    fields: dict[str, str] = {}
    remarks: list[str] = []
    callbacks = {
        "on_warning": remarks.append,
        "on_reject": on_reject,
        "on_fields": lambda _, of_file: fields.update(of_file),
    }
    chosen = chosen.model_copy(update=callbacks)
    formats = tuple(dict.fromkeys(_format_of(file, chosen) for file in files))
    try:
        for file in files:
            # Closed also where a preview has seen enough, as a reader says then what it read.
            with closing(read_placed(file, chosen)) as placed_records:
                for placed in placed_records:
                    item = placed.record.item
                    if chosen.same_ids == "refuse" and not on_reject and counts.is_repeated(item):
                        name = chosen.name or str(file)
                        raise taken_id(item.id).at(file=name, line=placed.line, unit=placed.unit)
                    counts.add(placed.record)
        is_all = True
    except InputError as error:
        if on_reject is not None:
            raise
        raise all_wrong(error, files, chosen) from error.__cause__
    except _PreviewEnd:
        is_all = False
    if chosen.lang is None and counts.guess.is_needed:
        remarks.append(counts.guess.told)
    stated = state_missing(chosen.model, chosen.lang or counts.guess.tag)
    return ImportPreview(
        formats=formats,
        items=tuple(map(stated, counts.items)),
        read=counts.read,
        is_all=is_all,
        with_passages=counts.read - counts.without_passages,
        without_question=counts.without_question,
        annotators=tuple((name, kind, n) for (name, kind), n in counts.annotators.items()),
        rejects=tuple(counts.rejects),
        fields=fields,
        remarks=tuple(remarks),
    )


class _PreviewEnd(Exception):  # noqa: N818 - no error: ends the reading
    """A preview has looked at enough records."""


@dataclass
class _PreviewCounts:
    items: list[Item] = field(default_factory=list)
    read: int = 0
    without_passages: int = 0
    without_question: int = 0
    characters: int = 0
    annotators: Counter[tuple[str, AnnotatorKind]] = field(default_factory=Counter)
    rejects: list[RejectedRecord] = field(default_factory=list)
    seen: set[str] = field(default_factory=set)
    guess: LanguageGuess = field(default_factory=LanguageGuess)

    def is_repeated(self, item: Item) -> bool:
        """Say whether another item has this id, and an import would not put a model behind it."""
        known = item.id in self.seen and "model" not in item.meta
        self.seen.add(item.id)
        return known

    def add(self, record: Record) -> None:
        if self.read == _LOOKED_AT or self.characters > _CHARACTERS:
            raise _PreviewEnd
        self.read += 1
        self.guess.add(record.item)
        self.items += [record.item] if len(self.items) < _SHOWN else []
        self.without_passages += has_no_evidence(record.item)
        self.without_question += not record.item.question.strip()
        self.characters += len(record.item.answer)
        self.characters += sum(len(passage.text) for passage in record.item.passages)
        self.annotators.update(
            (annotation.annotator, annotation.kind) for annotation in record.annotations
        )

    def reject(self, left_out: RejectedRecord) -> None:
        self.rejects.append(left_out)
        if len(self.rejects) == _REJECTS:
            raise _PreviewEnd


def _format_of(file: Path, options: ReadOptions) -> str:
    if options.format != "auto":
        return options.format
    return detect(file, options.name, options.encoding)
