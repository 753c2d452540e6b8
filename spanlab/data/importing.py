"""Imports of files into a dataset, and the samples that come with spanlab."""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Final, Literal, NamedTuple, Self

from pydantic import field_validator

from spanlab.base.errors import InputError, NotFoundError
from spanlab.base.options import option
from spanlab.base.runtime import rarely_collected
from spanlab.formats import ReadOptions, RejectedRecord, dumps, read_placed
from spanlab.formats.field_report import LEFT_OUT
from spanlab.formats.limits import longest, record_limit, too_large
from spanlab.formats.read_options import ControlTally
from spanlab.formats.reader import language
from spanlab.formats.wrongs import Kinds, repeated_id, told_together
from spanlab.output.figures import counted
from spanlab.schema import (
    UNDETERMINED,
    DatasetSettings,
    Item,
    MeasurementPlan,
    Question,
    Record,
    Status,
)
from spanlab.text.languages import LanguageGuess

if TYPE_CHECKING:
    from spanlab.detection.request import RunRequest
    from spanlab.storage import Store


DATASET = "samples"
TOUR = "tour"
_TOUR_ITEMS = tuple(f"sample-en-{number}" for number in (7, 2, 5, 9, 8, 10, 1, 3))
_TOUR_SEED = 62  # the sample begins with errors that the passages refute
_DETECTOR = "offline"
_SAMPLES = Path(__file__).resolve().parents[1] / "samples.jsonl"
_PERSONS = ("synthetic-annotator-1", "synthetic-annotator-2", "synthetic-annotator-3")
_VOTE = "vote"
_TAG = re.compile(r"[a-z]{2,3}(-[A-Za-z0-9]{1,8})*")  # as ISO 639 has codes: not "english"
_SHOWN_IDS = 3  # that are named in a remark


def prepare_samples(store: Store, on_progress: Callable[[int], None] | None = None) -> None:
    """Import the samples and let their annotators vote, each only once.

    Args:
        store: the annotation database.
        on_progress: called now and then with the number of items done in the current step.
    """
    from spanlab.scoring.votes import vote_dataset

    summary = next((d for d in store.datasets() if d.name == DATASET), None)
    if summary is None:
        import_files(store, [_SAMPLES], DATASET, on_progress=on_progress)
        # The detector marks them next. A visitor's reviews do not count: theirs begin with item 1.
        plan = MeasurementPlan(annotator=_DETECTOR, reviewers=_PERSONS)
        store.change_settings(DATASET, lambda old: old.model_copy(update={"measurement": plan}))
    if summary is None or _VOTE not in {annotator.name for annotator in summary.annotators}:
        vote_dataset(store, DATASET, _PERSONS, name=_VOTE, on_progress=on_progress)


def detection_of_samples() -> RunRequest:
    """Return the run that marks spans in the samples, for a job."""
    from spanlab.detection import spec_of
    from spanlab.detection.request import RunRequest

    return RunRequest(dataset=DATASET, detectors=(spec_of(_DETECTOR),))


def prepare_tour(store: Store) -> str | None:
    """Make the dataset of the tour once, from some samples and what the detector marked in them.

    It has nobody else's annotations, and a measurement of its own.

    Returns:
        Its name; None where the samples are missing or the detector has not finished them.
    """
    names = {summary.name for summary in store.datasets()}
    if TOUR in names:
        return TOUR
    if DATASET not in names:
        return None
    records = []
    for item_id in _TOUR_ITEMS:
        record = store.record(DATASET, item_id)
        marks = record.by(_DETECTOR)
        if marks is None or marks.status is not Status.DONE:
            return None
        records.append(Record.of_valid(record.item, (marks,)))
    store.import_records(TOUR, records)
    plan = MeasurementPlan(annotator=_DETECTOR, seed=_TOUR_SEED, show_suggestions=True)
    store.change_settings(TOUR, lambda old: old.model_copy(update={"measurement": plan}))
    return TOUR


class ImportOptions(ReadOptions):
    """How files are read into a dataset."""

    skip_bad: bool = option(
        False,
        title="If a record is invalid",
        help="Leave out bad records and write them to a file with the reasons; or import nothing, "
        "and name file, line and field.",
        flags="--skip-bad/--strict",
        titles={"false": "Import nothing", "true": "Leave it out"},
    )
    same_ids: Literal["refuse", "number"] = option(
        "refuse",
        title="If two records have one id",
        help="Records with the same id: import nothing, or add a number to the id. For answers of "
        "several models to one question the model's name is added in any case.",
        titles={"refuse": "Import nothing", "number": "Number them"},
    )
    system: str | None = option(
        None,
        title="System name",
        help="The files are predictions of this system, for items that the dataset has. They "
        "replace earlier ones under this name.",
        flags="--as --system",
        placeholder="for example my-system",
    )
    model: str | None = option(
        None,
        title="Model",
        help="The model that wrote the answers, for records that do not name theirs. Results are "
        "grouped by it.",
        placeholder="for example gpt-5-mini",
    )
    lang: str | None = option(
        None,
        title="Language",
        help="Language of items that do not state theirs, such as en or pt-BR; und if unknown. By "
        "default it is guessed from the words of the first items.",
        placeholder="guessed from the text",
    )

    @field_validator("lang")
    @classmethod
    def _check_lang(cls, tag: str | None) -> str | None:
        if tag and not _TAG.fullmatch(tag.strip().replace("_", "-").lower()):
            raise ValueError(f"{tag!r} is not a language tag such as en or pt-BR")
        return language(tag) if tag else None


OnReject = Callable[[RejectedRecord], None]
Progress = Callable[[int], None]  # called with the number of items done so far


@dataclass(frozen=True)
class ImportResult:
    """The result of an import: items stored, remarks of the reader, records that were left out.

    ``missing`` says how many items have no passages, and how many no question; empty if all have
    them. ``fields`` says for each field of the files what it became.
    """

    items: int
    warnings: tuple[str, ...]
    rejects: tuple[RejectedRecord, ...]
    missing: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)


def describe_fields(fields: Mapping[str, str]) -> str:
    """Return in one line what the fields of files became; empty if that is not known."""
    kept = [(name, kind) for name, kind in fields.items() if kind not in _LAST]
    told = [f"{names} → {kind}" for names, kind in _folded(kept)]
    for last in _LAST:
        named = [(name, kind) for name, kind in fields.items() if kind == last]
        told += [f"{', '.join(names for names, _ in _folded(named))} → {last}"] if named else []
    return "; ".join(told)


_LAST: Final = ("meta", LEFT_OUT)
_NAMED_APART: Final = 3  # so many fields of one object; more of one kind are a number


def _folded(fields: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield names with their kinds; many of one object and kind, such as ids as keys, as one."""
    groups: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    for name, kind in fields:
        parent = name.rpartition(".")[0]
        groups[parent, kind, "" if parent else name].append(name)
    for (parent, kind, _), names in groups.items():
        if len(names) > _NAMED_APART:
            yield f"{names[0]} and {len(names) - 1:,} more of {parent}", kind
        else:
            yield from ((name, kind) for name in names)


@dataclass
class _ImportLog:
    warnings: list[str] = field(default_factory=list)
    rejects: list[RejectedRecord] = field(default_factory=list)
    size: int = 0  # characters of the rejects
    n_rejects: int = 0
    first: str = ""  # reason of a reject
    fields: dict[str, str] = field(default_factory=dict)

    asked: dict[str, Any] = field(default_factory=dict)  # questions that the files bring

    def keep_fields(self, _: str, fields: Mapping[str, str]) -> None:
        """Keep what the fields of a file became; files of one import are mostly alike."""
        for name, kind in fields.items():
            known = self.fields.setdefault(name, kind)
            if kind not in known:
                self.fields[name] = f"{known} or {kind}"

    def keep(self, left_out: RejectedRecord) -> None:
        """Keep a reject; all of them together may take as much memory as one record."""
        self.size += len(left_out.raw) + len(left_out.reason)
        if self.size > longest(record_limit()):
            rejected = f"what was left out up to here ({len(self.rejects):,} records)"
            raise too_large(rejected, record_limit(), file=left_out.file, line=left_out.line)
        self.rejects.append(left_out)

    def counting(self, on_reject: OnReject) -> OnReject:
        """Return a function that counts a rejected record and calls ``on_reject``."""

        def reject(left_out: RejectedRecord) -> None:
            self.n_rejects += 1
            self.first = self.first or left_out.reason
            on_reject(left_out)

        return reject


def import_files(
    store: Store,
    files: Sequence[Path],
    dataset: str,
    options: ImportOptions | None = None,
    *,
    questions: Mapping[str, Any] | None = None,
    on_progress: Progress | None = None,
) -> ImportResult:
    """Read files into a dataset, which is made if it does not exist.

    A dataset without questions gets those that the files have responses to.

    Args:
        store: the annotation database.
        files: at least one file, read in the order given.
        dataset: the dataset's name; items are added behind those it has.
        options: how to read them, and whether to leave wrong records out, instead of importing
            nothing at all. They go to ``on_reject``; without it they are in the result.
        questions: the questions to ask instead, as settings of a dataset; see ``questions_of``.
        on_progress: called now and then with the number of items read.

    Raises:
        InputError: a record is wrong or an id is repeated (strict), no record is left when the
            wrong ones are, or these are too many to be returned; nothing was imported.
    """
    log, tally = _ImportLog(), ControlTally()
    import_options = options or ImportOptions()
    on_reject = (
        log.counting(import_options.on_reject or log.keep) if import_options.skip_bad else None
    )
    callbacks = {
        "on_warning": log.warnings.append,
        "on_reject": on_reject,
        "on_response": tally.add,
        "on_fields": log.keep_fields,
        "on_questions": log.asked.update,
    }
    chosen = import_options.model_copy(update=callbacks)
    places = _RecordPositions(files, chosen)

    other_ids = _OtherIds(numbered=import_options.same_ids == "number")

    def on_taken(index: int, record: Record) -> Record | None:
        is_again = import_options.same_ids == "refuse" and _has_answer(store, dataset, record.item)
        if not is_again and (renamed := other_ids.next(index, record)) is not None:
            return renamed
        file, line, unit = places.of(index)
        error = taken_id(other_ids.first_id(index, record))
        error = error.at(file=file, line=line, unit=unit)
        if on_reject is None:
            raise error
        raw = dumps(record).decode().rstrip("\n")
        on_reject(RejectedRecord(file, line, str(error), raw, error.kind))
        return None

    records = _with_stated(_require_records(places.records(), log), import_options, log)
    try:
        with rarely_collected():
            count = store.import_records(dataset, records, on_progress, on_taken)
    except InputError as error:
        if on_reject is not None:
            raise
        raise all_wrong(error, files, import_options) from error.__cause__
    shown_questions, unclear = tally.questions()
    _set_questions(store, dataset, questions or log.asked or shown_questions, log)
    if unclear and not questions:
        log.warnings.append(
            f"its responses do not show what these ask: {', '.join(unclear)}; the labelling "
            f"configuration does: spanlab datasets {dataset} --questions FILE"
        )
    log.warnings += other_ids.remarks()
    if places.n_again:
        log.warnings.append(
            f"{counted(places.n_again, 'answer')} stood in a file before, to the same question: "
            "each is an item of its own, with the labels of its file; where such files have the "
            "same ids, --join adds the labels of one to the items of the other"
        )
    missing = words_on_missing(places.without_passages, places.without_question, count)
    return ImportResult(count, tuple(log.warnings), tuple(log.rejects), missing, log.fields)


def _has_answer(store: Store, dataset: str, item: Item) -> bool:
    """Return whether a dataset has this very answer: its file is imported once more."""
    try:
        stored = store.record(dataset, item.id).item
    except NotFoundError:
        return False
    return (stored.answer, stored.meta.get("model")) == (item.answer, item.meta.get("model"))


def taken_id(name: str) -> InputError:
    """Return the error of an id that another item has."""
    return repeated_id(
        name,
        "ids that are new to the dataset; --join adds the annotations to the items that are there, "
        "--same-ids number puts a number behind such an id, --skip-bad leaves its record out",
    )


def all_wrong(error: InputError, files: Sequence[Path], options: ImportOptions) -> InputError:
    """Return the error that ended an import with what else is wrong in the files."""
    return told_together(error, files, options, taken_id if options.same_ids == "refuse" else None)


def _set_questions(
    store: Store, dataset: str, settings_asked: Mapping[str, Any], log: _ImportLog
) -> None:
    """Give a dataset questions, if it has none yet."""
    questions: tuple[Question, ...] = (*settings_asked["attributes"], *settings_asked["questions"])
    names = [question.name for question in questions]

    def change(settings: DatasetSettings) -> DatasetSettings:
        if settings.attributes or settings.questions:
            return settings
        log.warnings.append(f"{dataset!r} now asks: {', '.join(names)}")
        return settings.model_copy(update=dict(settings_asked))

    if names:
        store.change_settings(dataset, change)


def _require_records(records: Iterator[Record], log: _ImportLog) -> Iterator[Record]:
    """Yield the records; raise InputError where all were left out: the dataset would be empty."""
    first = next(records, None)
    if first is None and log.n_rejects:
        raise InputError(
            f"no record can be imported: {log.n_rejects:,} of {log.n_rejects:,} are wrong",
            found=log.first,
            expected="at least one record that is right",
        )
    if first is not None:
        yield first
        yield from records


def _with_stated(
    records: Iterator[Record], options: ImportOptions, log: _ImportLog
) -> Iterator[Record]:
    """Yield the records with the model and the language that they do not state themselves.

    The first records are read before any is yielded, as the language is guessed from them.
    """
    guess, first = LanguageGuess(), []
    for record in records if options.lang is None else ():
        first.append(record)
        guess.add(record.item)
        if guess.is_full:
            break
    if options.lang is None and guess.is_needed:
        log.warnings.append(guess.told)
    stated = state_missing(options.model, options.lang or guess.tag)
    yield from (
        record.model_copy(update={"item": stated(record.item)}) for record in chain(first, records)
    )


def state_missing(model: str | None, lang: str) -> Callable[[Item], Item]:
    """Return a function that gives an item the model and language that it does not state."""

    def stated(item: Item) -> Item:
        changes: dict[str, Any] = {}
        if item.lang == UNDETERMINED != lang:
            changes["lang"] = lang
        if model and "model" not in item.meta:
            changes["meta"] = {**item.meta, "model": model}
        return item.model_copy(update=changes) if changes else item

    return stated


class _OtherIds:
    """Ids for records whose own is taken: with the model's name, or a number, behind it."""

    def __init__(self, *, numbered: bool) -> None:
        self._numbered = numbered
        self._last = (-1, "")  # the record that is being named, and its own id
        self._counts: Counter[str] = Counter()
        self._first: list[str] = []  # examples of new ids
        self._n = 0

    def first_id(self, index: int, record: Record) -> str:
        """Return the id that a record came with, whatever it is called by now."""
        return self._last[1] if self._last[0] == index else record.item.id

    def next(self, index: int, record: Record) -> Record | None:
        """Return a record under the next id that may be free; None if there is none."""
        is_first = self._last[0] != index
        own = self.first_id(index, record)
        self._last = (index, own)
        model = record.item.meta.get("model")
        if is_first and isinstance(model, str) and not self._numbered:
            name = f"{own}-{model}"
        elif self._numbered:
            self._counts[own] += 1
            name = f"{own}-{self._counts[own] + 1}"
        else:
            return None
        if is_first:
            self._n += 1
            self._first += [name] if len(self._first) < _SHOWN_IDS else []
        return record.model_copy(update={"item": record.item.model_copy(update={"id": name})})

    def remarks(self) -> list[str]:
        """Return what to say of the records that got another id."""
        if not self._n:
            return []
        more = ", …" if self._n > len(self._first) else ""
        return [
            f"{counted(self._n, 'item')} had the id of another and got "
            f"{'a number' if self._numbered else 'the model'} behind it: "
            f"{', '.join(self._first)}{more}"
        ]


class _RecordPosition(NamedTuple):
    file: str
    line: int
    unit: str


_COMPARED = 100_000  # answers that are looked for in other files: 10 MB


class _RecordPositions:
    """The lines of an import's records, at the cost of eight bytes a record."""

    def __init__(self, files: Sequence[Path], options: ReadOptions) -> None:
        self._files = files
        self._options = options
        self._starts: list[int] = []  # number of each file's first record
        self._units: dict[int, str] = {}  # file → what its lines are, if it has any record
        self._lines = array("Q")
        self.without_passages = self.without_question = self.n_again = 0
        self._answers: dict[int, int] = {}  # hash of an answer and its question → its first file

    def records(self) -> Iterator[Record]:
        """Yield the records of all files."""
        for number, file in enumerate(self._files):
            self._starts.append(len(self._lines))
            for placed in read_placed(file, self._options):
                self._units[number] = placed.unit
                self._lines.append(placed.line)
                self.without_passages += has_no_evidence(placed.record.item)
                self.without_question += not placed.record.item.question.strip()
                self.n_again += self._is_again(placed.record.item, number)
                yield placed.record

    def _is_again(self, item: Item, file: int) -> bool:
        """Say whether an answer stood in a file before, by the first ones of several files."""
        if len(self._files) == 1 or not item.answer:
            return False
        key = hash((item.question, item.answer, str(item.meta.get("model"))))
        first = self._answers.get(key, file)
        if len(self._answers) < _COMPARED:
            self._answers.setdefault(key, file)
        return first != file

    def of(self, index: int) -> _RecordPosition:
        """Return the place of the record that came ``index``-th, counted from 0."""
        number = bisect_right(self._starts, index) - 1
        file = self._options.name or str(self._files[number])
        return _RecordPosition(file, self._lines[index], self._units[number])


def words_on_missing(no_passages: int, no_question: int, items: int) -> str:
    """Say how many items have no passages, and how many no question; empty if all have both.

    Args:
        no_passages: items without evidence; at most ``items`` are told of.
        no_question: items without a question.
        items: all items.
    """
    told = []
    if no_passages and items:
        which, these = f"{no_passages:,} of {items:,} items have no", "these"
        if no_passages >= items:
            which, these = f"None of {counted(items, 'item')} has", "their"
        told.append(
            f"{which} passages: detectors have nothing to check {these} answers against, unless "
            "they search for it. Give passages in a column of the file, or as contexts."
        )
    if no_question and items:
        which = f"{no_question:,} of {items:,} items have no question"
        if no_question >= items:
            which = f"None of {counted(items, 'item')} has a question"
        told.append(f"{which}: what was asked is not known to reviewers and detectors.")
    return " ".join(told)


def has_no_evidence(item: Item) -> bool:
    """Say whether an item has no text to check its answer against, in passages or a process."""
    nodes = getattr(item.process, "nodes", None)
    return not item.passages and (item.process is None or (nodes is not None and len(nodes) < 2))


def rejects_as_jsonl(rejects: Sequence[RejectedRecord]) -> str:
    """Return rejected records as JSONL with the fields file, line, reason and raw."""
    return "".join(map(_as_line, rejects))


class RejectsFile:
    """Writes rejected records to a file as they come, in the lines of ``rejects_as_jsonl``.

    The file is made, or replaced, when the first one comes; ``count`` is their number so far,
    ``kinds`` what is wrong with them.
    """

    def __init__(self, target: Path) -> None:
        self.count = 0
        self.kinds = Kinds()
        self._target = target
        self._stack = ExitStack()
        self._stream: IO[str] | None = None

    def add(self, reject: RejectedRecord) -> None:
        """Write a rejected record.

        Raises:
            InputError: the file cannot be written.
        """
        try:
            if self._stream is None:
                stream = self._target.open("w", encoding="utf-8")
                self._stream = self._stack.enter_context(stream)
            self._stream.write(_as_line(reject))
            self._stream.flush()
        except OSError as error:
            raise InputError(
                f"the rejects cannot be written: {error.strerror}", file=self._target
            ) from error
        self.count += 1
        self.kinds.add(reject)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def _as_line(reject: RejectedRecord) -> str:
    fields = {"file": reject.file, "line": reject.line, "reason": reject.reason, "raw": reject.raw}
    return json.dumps(fields, ensure_ascii=False) + "\n"
