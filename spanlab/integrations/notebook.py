"""The few functions that a notebook or script needs, on lists of records in memory."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass
from html import escape
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from pydantic import BaseModel, Field, ValidationError
from pydantic_core import to_json

from spanlab.base.errors import InputError, UsageError
from spanlab.base.fields import storable
from spanlab.base.options import problem
from spanlab.base.redaction import visible
from spanlab.data.import_files import in_folders
from spanlab.data.importing import ImportOptions, state_missing
from spanlab.data.report import write_report
from spanlab.detection import Detector, DetectorSpec, EnsembleSpec, LocalDetector, Spec
from spanlab.detection.checking import is_address, read_passage, require_answer
from spanlab.detection.file_run import FileRun
from spanlab.detection.request import (
    FOR_A_DATASET,
    RunLimits,
    RunOptions,
    RunRequest,
)
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.formats import ReadOptions, read_placed, write
from spanlab.formats.files import IN_MEMORY, InputFile, replacing
from spanlab.formats.hub import PREFIX, fetch_dataset
from spanlab.formats.reader import passages_of
from spanlab.formats.writers import format_of, select_annotator
from spanlab.formats.wrongs import repeated_id, told_together
from spanlab.integrations.functions import (
    AsyncFunctionDetector,
    FunctionDetector,
    SpanFunction,
)
from spanlab.integrations.keywords import in_keywords, python_door
from spanlab.integrations.notebook_results import kinds_of, records_alone
from spanlab.integrations.pushing import PushReport, PushRequest, TraceHome, push_verdicts
from spanlab.output.marked_text import fragment_html, marked_text
from spanlab.schema import (
    UNDETERMINED,
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    Item,
    Passage,
    Question,
    Record,
    Response,
    Span,
    Status,
    unique,
)
from spanlab.scoring.votes import Cleanup, vote_records
from spanlab.text.languages import LanguageGuess, language_of
from spanlab.text.thoughts import without_thoughts

if TYPE_CHECKING:
    import pandas as pd


class HasPageContent(Protocol):
    """A document of LangChain."""

    @property
    def page_content(self) -> str:
        """The text."""


class HasText(Protocol):
    """A node of LlamaIndex, and what else names its text so."""

    @property
    def text(self) -> str:
        """The text."""


AnyPassage: TypeAlias = str | Passage | Mapping[str, Any] | HasPageContent | HasText
AnyDetector: TypeAlias = str | DetectorSelection | Spec | Detector | LocalDetector | SpanFunction
_CHOICES = DetectorSelection | DetectorSpec | EnsembleSpec
_ROWS = "rows"  # what errors call rows in memory
_LONGEST_NAME: Final = 1_000  # characters of a file's name


class MarkedAnnotation(Annotation):
    """An annotation that knows its answer: it prints as text with its spans marked."""

    answer: str = Field("", exclude=True, repr=False)

    def __str__(self) -> str:
        return self._failure or visible(marked_text(self.answer, self))

    def to_pandas(self) -> pd.DataFrame:
        """Return a frame with a row for each marked span."""
        import pandas as pd

        rows = [span.model_dump(mode="json") for span in self.spans]
        return pd.DataFrame(rows, columns=[*Span.model_fields])

    def _repr_html_(self) -> str:
        failure = self._failure
        return f"<p>{escape(failure)}</p>" if failure else fragment_html(self.answer, self)

    @property
    def _failure(self) -> str:
        is_open = self.status in {Status.FAILED, Status.SKIPPED}
        return visible(f"{self.annotator} {self.status}: {self.note}") if is_open else ""


@python_door
def load(
    *sources: str | Path | Iterable[Any],
    lang: str | None = None,
    **options: object,
) -> list[Record]:
    """Read records from files of any supported format, or from rows in memory.

    Args:
        sources: paths, lists of dicts, DataFrames, datasets of Hugging Face, or addresses of
            datasets at its Hub (``hf://ORGANISATION/NAME``, the extra ``hub``), read in order.
            Columns are known by their usual names (answer, response, output; question, prompt;
            passages, contexts; label, …) unless ``columns`` says otherwise.
        lang: the language of records that state none, as a BCP 47 tag; None tells it from their
            texts where nearly all are in one, else it stays "und".
        **options: those of `spanlab import` that say how files are read, such as
            ``format="csv", contexts="contexts/", columns={"answer": "reply"}, turns="all"``; a
            column may be a path of fields.

    Returns:
        All records, possibly none.

    Raises:
        InputError: names file, line or row, field, what was found and what would be right.
        UsageError: there is no such format, an address is wrong, or ``huggingface_hub`` is missing.
    """
    reading = ReadOptions.checked(options)
    warn = reading.on_warning
    reading = reading.model_copy(update={"on_warning": lambda text: warn(in_keywords(text))})
    return _in_language([record for source in sources for record in _read(source, reading)], lang)


def _in_language(records: list[Record], lang: str | None = None) -> list[Record]:
    """Return records with the language that they do not state; None tells it from the texts."""
    guess = LanguageGuess()
    for record in records:
        guess.add(record.item)
    stated = state_missing(None, ImportOptions.of(lang=lang).lang or guess.tag)
    return [record.model_copy(update={"item": stated(record.item)}) for record in records]


def _read(source: str | Path | Iterable[Any], options: ReadOptions) -> Iterable[Record]:
    if not isinstance(source, str | Path):
        return _read_rows(source, options)
    if str(source).startswith(PREFIX):
        paths = fetch_dataset(str(source))
    else:
        paths = in_folders([Path(source)])
    try:
        return list(_of_new_ids(paths, options))
    except InputError as error:
        raise told_together(error, paths, options, _taken_id) from error.__cause__


def _read_rows(source: Iterable[Any], options: ReadOptions) -> Iterator[Record]:
    """Read rows as if they were lines of a file: whatever is known of files is known of them."""
    lines = b"".join(_line(number, row) for number, row in enumerate(_rows_of(source), start=1))
    if not lines:
        return
    file = InputFile(IN_MEMORY, _ROWS, data=lines, unit="row")
    try:
        yield from _of_new_ids([file], options)
    except InputError as error:
        raise told_together(error, [file], options, _taken_id) from error.__cause__


def _of_new_ids(files: Iterable[Path | InputFile], options: ReadOptions) -> Iterator[Record]:
    """Yield the records of files; raises InputError for an id that one of the same model has."""
    seen: set[tuple[str, str]] = set()
    for file in files:
        for record, line, unit in read_placed(file, options):
            key = (record.item.id, str(record.item.meta.get("model")))
            if key in seen:
                name = file.name if isinstance(file, InputFile) else str(file)
                raise _taken_id(record.item.id).at(file=name, line=line, unit=unit)
            seen.add(key)
            yield record


def _taken_id(name: str) -> InputError:
    return repeated_id(name, "every id once; records without one are numbered")


def _line(number: int, row: Any) -> bytes:
    cells = _fields_of(row)
    if cells is None:
        raise InputError(
            "a row is not a dict",
            found=type(row).__name__,
            expected="a list of dicts, such as {'question': …, 'answer': …}; a path as a text of "
            "its own",
        ).at(file=_ROWS, line=number, unit="row")
    for name, value in cells.items():
        if isinstance(value, bytes) and not _is_text(value):
            raise InputError(
                "these bytes are no text", field=name, found=value[:20], expected="UTF-8"
            ).at(file=_ROWS, line=number, unit="row")
    return to_json(_plain(cells), inf_nan_mode="null", fallback=_to_json_value) + b"\n"


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _rows_of(source: Any) -> Iterable[Any]:
    """Return the rows of a frame or table, or what else holds rows; one dict alone is one."""
    if isinstance(source, Mapping):
        return [source]
    if hasattr(source, "collect"):  # a frame of polars that is not computed yet
        source = source.collect()
    if hasattr(source, "to_dicts"):  # one that is
        return source.to_dicts()  # type: ignore[no-any-return]
    if hasattr(source, "to_pylist"):  # a table of Arrow
        return source.to_pylist()  # type: ignore[no-any-return]
    if not hasattr(source, "to_dict"):
        if not isinstance(source, Iterable):
            raise UsageError(f"expected rows, a frame or a path, found {source!r}")
        return source
    if not hasattr(source, "columns"):  # a row of pandas
        return [source.to_dict()]
    is_named = all(name is not None for name in source.index.names)
    return (source.reset_index() if is_named else source).to_dict("records")  # type: ignore[no-any-return]


def _fields_of(row: Any) -> dict[str, Any] | None:
    """Return the fields of a row: a dict, or an object of a class that says its fields."""
    if isinstance(row, Mapping):
        return dict(row)
    if is_dataclass(row) and not isinstance(row, type):
        return {field.name: getattr(row, field.name) for field in fields(row)}
    if hasattr(row, "_asdict"):  # a named tuple
        return dict(row._asdict())
    return dict(row) if isinstance(row, BaseModel) and not isinstance(row, Record) else None


def _plain(value: Any) -> Any:
    """Return a value with missing dates as None, and halves of emoji replaced: JSON has neither."""
    if isinstance(value, Mapping):
        return {storable(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return None if type(value).__name__ in ("NaTType", "NAType") else storable(value)


def _to_json_value(value: Any) -> Any:
    """Return a value of a frame, or an object, as JSON: arrays as lists, documents as passages."""
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return _plain(_document(value) or str(value))


def _document(value: Any) -> dict[str, Any] | None:
    """Return a document of a framework as a passage, None for another object."""
    if hasattr(value, "node"):  # LlamaIndex's with its score
        return _document(value.node)
    for name in ("page_content", "text", "content"):  # LangChain's, LlamaIndex's, Haystack's
        if isinstance(text := getattr(value, name, None), str):
            about = getattr(value, "metadata", None)
            return {"text": text, "metadata": about if isinstance(about, Mapping) else None}
    return None


@python_door
def detect(
    answer: str,
    *,
    question: str | None = "",
    passages: AnyPassage | Iterable[AnyPassage] | None = (),
    lang: str | None = "und",
    detector: AnyDetector = "offline",
    **options: object,
) -> MarkedAnnotation:
    """Return what a detector says of one answer; it prints as text with its spans marked.

    Args:
        answer: the text to check. Reasoning in tags before it is not judged: places are those in
            the result's ``answer``, which is without it.
        question: what was asked, if anything.
        passages: the evidence: texts, passages, dicts with text, title, url and date, or a
            framework's documents, which have ``page_content`` or ``text``.
        lang: the answer's language as a BCP 47 tag; "und" or None tells it from the texts.
        detector: as for ``annotate``, one.
        **options: as for ``annotate``.

    Raises:
        InputError: a passage or the language is not what it should be.
        UsageError: there is no answer, several detectors are named, no detector or option has this
            name, or something it needs is missing.
        BudgetError: the budget is used up.
        ConfigurationError: key, address or name of the model is wrong.
    """
    require_answer(answer)
    if isinstance(detector, Sequence) and not isinstance(detector, str):
        raise UsageError("detect and check take one detector; annotate takes several")
    said, thoughts = without_thoughts(answer)
    told = passages_in(passages)
    if lang in {None, UNDETERMINED}:
        lang = language_of(f"{question or ''} {said}", *(passage.text for passage in told))
    try:
        item = Item(
            id="answer",
            lang=lang,
            question=storable(question or ""),
            answer=storable(said),
            meta=dict(thoughts),
            passages=told,
        )
    except ValidationError as error:
        raise InputError(f"detect: {problem(error)}") from None
    (record,) = annotate([Record(item=item)], detector, **options)
    annotation = record.annotations[-1]
    return MarkedAnnotation.model_construct(**dict(annotation), answer=item.answer)


@python_door
def check(
    answer: str,
    passages: AnyPassage | Path | Iterable[AnyPassage | Path] | None = (),
    **options: Any,
) -> MarkedAnnotation:
    """Return what a detector says of one answer, as `spanlab check` does: files and pages are read.

    Args:
        answer: the text to check.
        passages: as for ``detect``; a ``Path`` is a text file or a PDF, and a text that is
            nothing but an address is a public web page.
        **options: the others of ``detect``: ``question``, ``lang``, ``detector`` and its options.

    Raises:
        PageError: a page or PDF cannot be read, or an address is not public.
        InputError: a file cannot be read; or as for ``detect``, as are the other errors.
    """
    several: list[Any] = [passages] if isinstance(passages, Path) else _plain_passages(passages)
    for passage in several:
        if isinstance(passage, str) and _is_file(passage):
            warnings.warn(
                f"check: {passage!r} is taken for a text, and is a file's name, too: "
                f"Path({passage!r}) reads the file",
                stacklevel=3,
            )
    read = [
        read_passage(passage)
        if isinstance(passage, Path) or (isinstance(passage, str) and is_address(passage))
        else passage
        for passage in several
    ]
    return detect(answer, passages=read, **options)


def _is_file(text: str) -> bool:
    """Say whether a text may be meant as a file: it is the name of one, and nothing else."""
    if len(text) > _LONGEST_NAME or len(text.splitlines()) != 1:
        return False
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False


def passages_in(passages: AnyPassage | Iterable[AnyPassage] | None) -> tuple[Passage, ...]:
    """Return one passage or several, as ``detect`` takes them; raises InputError for others."""
    return passages_of(_plain(_plain_passages(passages)), "passages")


def _plain_passages(passages: Any) -> list[Any]:
    """Return one passage or several as texts and dicts; none for None."""
    if passages is None:
        return []
    is_one = isinstance(passages, str | Mapping) or _document(passages) is not None
    passages = [passages] if is_one else passages
    several = [*passages] if isinstance(passages, Iterable) else [None]
    if any(passage is None for passage in several):
        raise InputError(f"passages: expected texts, dicts or documents, found {passages!r}")
    return [
        passage.model_dump() if isinstance(passage, Passage) else _document(passage) or passage
        for passage in several
    ]


@python_door
def annotate(
    records: Iterable[Record | Mapping[str, Any]],
    detector: AnyDetector | Sequence[AnyDetector] = "offline",
    **options: object,
) -> list[Record]:
    """Return the records with the annotations of one or several detectors added or renewed.

    It may be called from a notebook, whose event loop already runs.

    Args:
        records: what to annotate; dicts, frames and the like are read as ``load`` reads them.
        detector: a detector's or ensemble's name or specification, a `DetectorSelection` of one, a
            function, also async, from an item to what it finds (spans, pairs of start and end with
            a probability behind them or not, dicts with `start` and `end`, texts of the answer,
            None), an object with `name` and `annotate(item)` or `async detect(item)`; or a list of
            these.
        **options: for detectors by name, those of `spanlab annotate` with underscores, such as
            ``model="gpt-4o-mini", search="brave", max_calls=500``, and ``retriever``, a
            specification; for the others ``concurrency``, ``budget``, the limits of a
            budget and ``events``. One budget holds for all that are named. For detectors that ask
            no model ``concurrency`` is the number of processes (None: 1), for the others that of
            items annotated at once (None: 32).

    Raises:
        UsageError: no detector or option has this name, two sign alike, or something that is
            needed is missing.
        BudgetError: the budget is used up; what was paid for is in the cache of answers.
        ConfigurationError: key, address or name of the model is wrong.
        InputError: detectors failed on all of several records; has the reason of one.
    """
    detectors: list[Any] = [detector]
    if isinstance(detector, Sequence) and not isinstance(detector, str):
        detectors = list(detector)
    if not detectors:
        raise UsageError("annotate: no detector is named")
    limits, specs = _limits_and_specs(detectors, options)
    own = [_as_detector(value) for value in detectors if not isinstance(value, str | _CHOICES)]
    request = RunRequest.of(limits, detectors=specs) if specs else None
    try:
        names = () if request is None else request.annotators
        unique([*names, *(own_detector.name for own_detector in own)], "annotator")
    except ValueError as error:
        named = "; a function has the name that `def` gives it, or its `__name__`" if own else ""
        raise UsageError(f"annotate: {error}{named}") from None
    runs = [] if request is None else [FileRun.of(request)]
    count = None if specs else limits.concurrency
    runs += [FileRun.own(own_detector, count, events=limits.events) for own_detector in own]
    annotated = _as_records(records, limits.limit)
    for run in runs:
        annotated = list(_annotate_all(run, annotated))
        failed, items = run.outcomes.failed, run.outcomes.items
        reason = next(iter(run.outcomes.examples.values()), "")
        if failed == items > 1:
            raise InputError(f"annotate: all {failed:,} records failed, the first one by: {reason}")
        if failed and items > 1:
            told = f"annotate: {failed:,} of {items:,} records failed, the first one by: {reason}"
            warnings.warn(told, stacklevel=3)
    return annotated


def _as_records(rows: Iterable[Any], limit: int | None) -> list[Record]:
    """Return the first records, read from rows where they are none."""
    # Of a frame and of columns by name, the iterator gives names.
    if hasattr(rows, "columns") or isinstance(rows, Mapping) or not isinstance(rows, Iterable):
        return _in_language(list(islice(_read_rows(rows, ReadOptions()), limit)))
    first_rows = list(islice(rows, limit))
    if all(isinstance(row, Record) for row in first_rows):
        return first_rows
    return _in_language(list(_read_rows(first_rows, ReadOptions())))


def _limits_and_specs(
    detectors: Sequence[Any], options: Mapping[str, object]
) -> tuple[RunLimits, list[Spec]]:
    """Return the limits that options set, and the specifications of names and choices."""
    names = tuple(detector for detector in detectors if isinstance(detector, str))
    specs: list[Spec] = []
    limits: RunLimits
    if names:
        limits = chosen = RunOptions.checked({"detectors": names, **options})
        specs += specifications(chosen)
    else:
        try:
            limits = RunLimits.checked(options)
        except UsageError as error:
            also = "what a detector works with goes with its name, or into its specification"
            raise UsageError(f"{error}; {also}") from None
    limits.refuse(FOR_A_DATASET)
    for choice in detectors:
        if isinstance(choice, DetectorSelection):
            specs += specifications(choice)
        elif isinstance(choice, DetectorSpec | EnsembleSpec):
            specs.append(choice)
    return limits, specs


def _as_detector(candidate: Any) -> Detector | LocalDetector:
    """Return an object as a detector: as it is, or a function as a detector of its name."""
    if hasattr(candidate, "name") and (
        hasattr(candidate, "annotate") or hasattr(candidate, "detect")
    ):
        detector: Detector | LocalDetector = candidate
        return detector
    if callable(candidate):
        name = getattr(candidate, "__name__", type(candidate).__name__)
        if inspect.iscoroutinefunction(candidate):
            return AsyncFunctionDetector(name, candidate)
        return FunctionDetector(name, candidate)
    raise UsageError(f"{candidate!r} is not a detector: give a name, a function or a detector")


def _annotate_all(run: FileRun, records: Iterable[Record]) -> Iterator[Record]:
    for record in run.annotate(records):
        if run.spent is not None:
            raise run.spent
        yield record


@python_door
def vote(
    records: Iterable[Record],
    annotators: Sequence[str] | None = None,
    *,
    name: str = "vote",
    cleanup: Cleanup = "none",
) -> list[Record]:
    """Return the records with a vote added: the share of annotators that mark each character.

    Args:
        records: what to vote on.
        annotators: who votes; None for all persons, or all detectors where there are none.
        name: what the vote is called.
        cleanup: "mushroom" trims raw spans as SemEval-2025 Task 3 did.

    Returns:
        The records, with a vote where one of these has finished the item.

    Raises:
        UsageError: the name cannot name an annotator, or somebody who is no vote has it.
    """
    records = list(records_alone(records))
    if annotators is None:
        kinds = kinds_of(records)
        if AnnotatorKind.PERSON not in kinds.values():
            annotators = [name for name in kinds if kinds[name] is AnnotatorKind.DETECTOR]
    return list(vote_records(records, annotators=annotators, name=name, cleanup=cleanup))


@python_door
def save(
    records: Iterable[Record],
    path: str | Path,
    *,
    format: str | None = None,
    annotator: str | None = None,
) -> int:
    """Write records to a file, which appears only when it is complete.

    Args:
        records: what to write.
        path: the file to write or replace.
        format: "spanlab" (lossless), mushroom, labelstudio, averitec, claims, csv, parquet,
            huggingface or html; None goes by the path's ending: .jsonl, .csv, .parquet, .zip or
            .html, which is the page of ``spanlab.plot``.
        annotator: only this annotator's annotations; None for all.

    Returns:
        The number of records written.

    Raises:
        UsageError: there is no such format, or the path's ending says none.
        InputError: the file cannot be written, or the format needs one annotator to be named.
    """
    target, settings, records = Path(path), None, records_alone(records)
    written_as = format or format_of(target, more={".html": "html"})
    if written_as == "html":
        with replacing(target) as stream:
            return write_report(select_annotator(records, annotator), stream, "spanlab")
    if written_as in _TABLES:
        records = list(records)
        settings = DatasetSettings(questions=_questions_of(records))
    return write(records, target, format=format, annotator=annotator, settings=settings)


_TABLES: Final = ("csv", "parquet", "huggingface")  # with a column for each question


def _questions_of(records: Iterable[Record]) -> tuple[Question, ...]:
    """Return questions that what is responded in records may answer; tables need them."""
    given: dict[str, list[Response]] = {}
    for record in records:
        for annotation in record.annotations:
            for name, response in annotation.responses.items():
                given.setdefault(name, []).append(response)
    questions = []
    for name, responses in given.items():
        numbers = [response for response in responses if isinstance(response, int)]
        if len(numbers) == len(responses):
            low, high = min(1, *numbers), max(5, *numbers)
            questions.append(Question(name=name, kind="scale", low=low, high=high))
        else:
            questions.append(Question(name=name, kind="text"))
    return tuple(questions)


@python_door
def push(
    records: Iterable[Record],
    annotator: str,
    *,
    to: TraceHome,
    url: str,
    timeout: float = 30.0,
) -> PushReport:
    """Send what an annotator says of records back to where their traces live.

    Each gets a score "hallucination" there, the share of the answer's characters that the
    annotator marks as hallucinated, with the spans in its metadata. What is pushed again replaces
    what was. Keys are in the environment, see `spanlab push`.

    Args:
        records: those read from traces; others are counted and left out.
        annotator: whose annotations.
        to: "phoenix", "langfuse" or "mlflow".
        url: the address of the server.
        timeout: seconds that a request may take.

    Returns:
        How many were pushed and left out, and for each that failed the status and the reason.

    Raises:
        UsageError: the address is none, or a key is missing or unusable.
    """
    return push_verdicts(records_alone(records), PushRequest(annotator, to, url, timeout))
