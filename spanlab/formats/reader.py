"""The base class of format readers, and what they share: texts, passages, errors by line."""

from __future__ import annotations

import ast
import io
import math
import re
import tokenize
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from typing import Annotated, Any, BinaryIO, ClassVar, Final, NamedTuple, TypeGuard

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticSerializationError, from_json, to_json

from spanlab.base.errors import WRONG, InputError
from spanlab.base.fields import message_of
from spanlab.base.options import Option, OptionModel, options_in
from spanlab.doors import Export
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.vocabulary import named_by, words_in
from spanlab.output.figures import counted, named_ids
from spanlab.schema import UNDETERMINED, DatasetSettings, Item, Passage, Record

_NAMED: Final = 5  # so many ids are named in a remark


class FormatReader(ABC):
    """Reads one file of a format; by default a row is a line, and nothing is left out.

    Attributes:
        signatures: fields that records of the format have, and those of other formats lack: all of
            one of these sets.
        in_tables: whether a table with these columns is of the format, too; ``in_parquet``
            whether one in Parquet is.
        before: formats whose records may have these fields among theirs.
        own_options: what can be set for this format alone.
        second_file: the name of a file that is read beside the others, never by itself.
        maps_columns: whether its columns, or data fields, have no fixed names.
        reads_folders: whether a folder may be read; ``folder`` says what one of the format holds,
            and who names the file ``main_file`` in one means all of it.
    """

    signatures: ClassVar[tuple[frozenset[str], ...]] = ()
    in_tables: ClassVar[bool] = False
    in_parquet: ClassVar[bool] = False
    before: ClassVar[frozenset[str]] = frozenset()
    own_options: ClassVar[type[OptionModel]] = OptionModel
    maps_columns: ClassVar[bool] = False
    reads_folders: ClassVar[bool] = False
    second_file: ClassVar[str] = ""
    folder: ClassVar[str] = ""
    main_file: ClassVar[str] = ""

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        self._file = file
        self._options = options
        self._own = self.own_options.of(None, **options.own)
        self._counts: dict[tuple[str, str], list[str]] = {}  # what is said → the names it is of

    @classmethod
    def owns(cls, file: InputFile) -> bool:
        """Say whether a file that is no text, or a folder, is one of the format."""
        return False

    @classmethod
    def recognises(cls, record: Mapping[str, object]) -> bool:
        """Say whether a record, the first of a file, has the fields of the format."""
        return any(signature <= record.keys() for signature in cls.signatures)

    def asked(self) -> tuple[Option, ...]:
        """Return which own options people are asked for this file, as it is read by now."""
        return options_in(self.own_options)

    def rows(self) -> Iterator[FileRow]:
        """Yield what the file holds.

        Raises:
            InputError: it cannot be read on.
        """
        return self._file.rows()

    def record(self, row: FileRow) -> Record:
        """Return the record of a row.

        Raises:
            InputError: names the field, what was found and what would be right.
        """
        try:
            return self._record(row)
        except ValidationError as error:
            raise self._problem(error) from None

    def keeps_answer(self, record: Record) -> bool:
        """Say whether an answer stays as it stands, with reasoning that may be before it."""
        return False

    def finish(self) -> None:
        """Say what was read otherwise than it stands, once the file is read."""
        for remark in filter(None, chain(self._remarks(), self._counted())):
            self._options.on_warning(f"{self._file.name}: {remark}")

    def _remarks(self) -> Iterator[str]:
        """Yield what to say of the file; nothing is said of most."""
        return iter(())

    def _counted(self) -> Iterator[str]:
        for (what, said), names in self._counts.items():
            named = named_ids(list(dict.fromkeys(filter(None, names))), _NAMED)
            told = said.replace("{n}", counted(len(names), what))
            yield f"{told}: {named}" if named else told

    def count(self, what: str, said: str, *names: str, n: int | None = None) -> None:
        """Have a remark said once the file is read, with more for each call.

        Args:
            what: one of what is counted.
            said: what is said of all, with {n} for "3 items".
            names: which they are, "" for one without a name.
            n: how many they are, where they have no names.
        """
        found = [""] * n if n is not None else names
        if found:
            self._counts.setdefault((what, said), []).extend(found)

    @property
    def fields(self) -> Mapping[str, str]:
        """Which field of ours each of the file's was read as, by its path, as far as it is known.

        What is not said here is told from the records; see ``field_report``.
        """
        return {}

    def source(self, row: FileRow) -> Any:
        """Return what a row is made of as it stands in the file: an object, or a list of several.

        Raises:
            ValueError: it is not JSON.
        """
        return from_json(row.beginning)

    @property
    def sources(self) -> Mapping[str, str]:
        """What the file calls a field of its rows, where a row is made of several fields."""
        return {}

    @property
    def around(self) -> Mapping[str, str]:
        """What became of what stands in the file beside its rows, by its name."""
        return {}

    @abstractmethod
    def _record(self, row: FileRow) -> Record:
        """Return the record of a row; what the validator refuses is told by ``_problem``."""

    def _problem(self, error: ValidationError) -> InputError:
        return input_error(error)


LANGUAGES: Final = named_by("languages")  # a language's name or code → its tag


class Preamble(bytes):
    """A chunk that stands before a record and is none."""


class WrittenDataset(NamedTuple):
    """What a dataset that is written is called, and its settings."""

    title: str
    settings: DatasetSettings


@dataclass(frozen=True)
class FormatEntry:
    """A format; files are known by what its reader recognises.

    Args:
        reader: a ``FormatReader``; None for what is only written.
        chunks: yields the bytes of each record, a chunk each; None for what is only read.
        asks: whether ``chunks`` gets the dataset's settings, too.
        whole: writes all records into a stream, and returns how many, where chunks will not do.
        around: what stands before all chunks, between two, and behind all.
        of_one: whether it holds one annotator's labels, of items that they have finished.
        endings: of files that nobody names another format for.
        export: how it is offered for whole datasets.
        name: what ``--format`` calls it; that of a package has the name of its entry point.
        title: what it is called on screen.
        order: where it stands among the others.
    """

    reader: type[FormatReader] | None = None
    chunks: Callable[..., Iterator[bytes]] | None = None
    asks: bool = False
    whole: Callable[[Iterable[Record], BinaryIO, WrittenDataset], int] | None = None
    around: tuple[bytes, bytes, bytes] = (b"", b"", b"")
    of_one: bool = False
    endings: tuple[str, ...] = ()
    export: Export | None = None
    name: str = ""
    title: str = ""
    order: int = 1000

    @property
    def is_written(self) -> bool:
        """Whether there is a writer."""
        return self.chunks is not None or self.whole is not None


class NoAnswer(InputError):  # noqa: N818 - not a mistake in the file: a call of it failed
    """A record of a model's call that gave no answer: it is left out and counted, not refused."""


# Where a passage has its text, and what it is called, in other people's words.
_TEXTS: Final = words_in("passages", "texts")

_TITLES = ("title", "document_title", "name", "source", "file_name", "filename")
_LONGEST = 1 << 20  # characters of a list as Python prints it
_NOTHING = frozenset(("", "none", "nan", "null", "nat", "<na>"))  # a cell that is missing


def is_missing(value: object) -> bool:
    """Say whether a value is none: null, an empty text, or what programs write in its place."""
    return value is None or (isinstance(value, str) and value.strip().lower() in _NOTHING)


def as_passage(value: object) -> object:
    """Return what a passage is in other people's words as ``{"text", "title", "url", "date"}``.

    That is a text, an object that has one (also inside, as LlamaIndex's nodes), or a text with its
    score; anything else is returned as it is, for the validator to refuse.
    """
    if isinstance(value, str):
        return {"text": value}
    if is_scored(value):
        return as_passage(next(part for part in value if not isinstance(part, int | float)))
    if not isinstance(value, dict) or isinstance(value.get("text"), str) or not has_text(value):
        return value
    inner = value.get("metadata")
    about = {**(inner if isinstance(inner, dict) else {}), **value}
    titles = (about[name] for name in _TITLES if isinstance(about.get(name), str))
    details = {name: about[name] for name in ("url", "date") if isinstance(about.get(name), str)}
    text = next(value[name] for name in _TEXTS if has_text(value.get(name)))
    inside = as_passage(text)
    return {"title": next(titles, None), **details, **(inside if isinstance(inside, dict) else {})}


def is_scored(value: object) -> TypeGuard[list[Any]]:
    """Say whether a value is a passage with its score behind it, or before it."""
    if not (isinstance(value, list) and len(value) == 2):
        return False
    return sum(isinstance(part, int | float) for part in value) == 1


def has_text(value: object) -> bool:
    """Say whether a JSON value is a text, or an object with one where passages have theirs."""
    if isinstance(value, dict):
        return any(has_text(value[name]) for name in _TEXTS if name in value)
    return isinstance(value, str)


def says_nothing(value: object) -> bool:
    """Say whether a passage has a place for its text and none in it."""
    if isinstance(value, dict):
        texts = [value[name] for name in _TEXTS if name in value]
        return bool(texts) and all(text is None for text in texts)
    return value is None or (isinstance(value, str) and not value.strip())


def whole(value: Any) -> Any:
    """Return a whole number that is written as 3.0 as 3; any other value as it is."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def parse_object(value: Any) -> Any:
    """Return the object that a text is in JSON, or as models write it; any other value as it is.

    They put it between fences, leave out the quotation marks of a word, or write it as Python does.
    """
    if not (isinstance(value, str) and value.lstrip().startswith(("{", "```"))):
        return value
    text = _FENCED.sub(r"\1", value.strip())
    with suppress(ValueError):
        parsed = from_json(text, allow_inf_nan=False)
        return parsed if isinstance(parsed, dict) else value
    for written in (text, _BARE.sub(r'"\g<bare>"', text)):
        listed = parse_list(f"[{written}]")
        if isinstance(listed, list) and isinstance(listed[0], dict):
            return listed[0]
    return value


_FENCED: Final = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL | re.IGNORECASE)
_BARE: Final = re.compile(r"(?<=:)\s*(?P<bare>(?!(?:true|false|null)\b)[A-Za-z]+)(?=\s*[,}])")


def parse_list(value: Any) -> Any:
    """Return the list that a text is, in JSON or as Python or numpy print it; others as they are.

    Python's own form may hold ``nan``, ``array([…])`` and objects with a text, such as LangChain's
    ``Document(page_content='…')``, which become JSON's objects.
    """
    if not (isinstance(value, str) and value.lstrip().startswith(("[", "(", "array(["))):
        return value
    try:
        return from_json(value)
    except ValueError:
        pass
    try:
        tree = ast.parse(value.strip(), mode="eval") if len(value) <= _LONGEST else None
        parsed = value if tree is None else _printed(tree.body, value.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return parsed if isinstance(parsed, list) else value


_WORDS = {"nan": None, "inf": None, "NaN": None, "null": None, "true": True, "false": False}


def _printed(node: ast.expr, source: str) -> Any:
    """Return the value that an expression prints; ValueError for one that is no plain value."""
    match node:
        case ast.List(elts=parts) | ast.Tuple(elts=parts) | ast.Set(elts=parts):
            return [text for part in parts for text in _side_by_side(part, source)]
        case ast.Dict(keys=keys, values=values):
            pairs = zip(keys, values, strict=True)
            return {
                str(_printed(key, source)): _printed(value, source) for key, value in pairs if key
            }
        case ast.Name(id=word) if word in _WORDS:
            return _WORDS[word]
        case (  # such as np.float64(0.5)
            ast.Call(func=ast.Name(id="array"), args=[inner, *_])
            | ast.Call(args=[inner], keywords=[])
        ):
            return _printed(inner, source)
        case ast.Call(args=[], keywords=named) if named:
            return {word.arg: _printed(word.value, source) for word in named if word.arg}
    return ast.literal_eval(node)


def _side_by_side(node: ast.expr, source: str) -> Iterator[Any]:
    """Yield the elements that an element is: numpy prints no commas, so texts join in Python."""
    printed = ast.get_source_segment(source, node) or ""
    is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    if not is_text or not re.search(r"""['"]\s+['"]""", printed):
        yield _printed(node, source)
        return
    tokens = tokenize.generate_tokens(io.StringIO(f"({printed})").readline)
    yield from (ast.literal_eval(part.string) for part in tokens if part.type == tokenize.STRING)


class _GivenPassage(BaseModel):
    """A passage; what else is said of it (a rank, a score) is left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    title: str | None = None
    url: str | None = None
    date: str | None = None


GivenPassages = tuple[Annotated[_GivenPassage, BeforeValidator(as_passage)], ...]
_PASSAGES: TypeAdapter[GivenPassages] = TypeAdapter(GivenPassages)


def ours(passages: GivenPassages) -> tuple[Passage, ...]:
    """Return the passages as our own."""
    return tuple(Passage(**fields.model_dump()) for fields in passages)


def out_of_list(value: Any) -> Any:
    """Return passages that are packed together as a list; any other value as it is.

    That is the one list in a list, as vector databases answer; the columns of a table, ``{"text":
    […], "title": […]}``; and titles with their sentences, ``[[title, [sentence, …]], …]``.
    """
    if isinstance(value, dict):
        texts: list[Any] = next((value[n] for n in _TEXTS if isinstance(value.get(n), list)), [])
        columns = {
            name: column
            for name, column in value.items()
            if isinstance(column, list) and len(column) == len(texts)
        }
        if texts and not has_text(value):
            rows = zip(*columns.values(), strict=True)
            return [dict(zip(columns, map(_joined, row), strict=True)) for row in rows]
        if not has_text(value):
            return _held_in(value) or value
    if not isinstance(value, list):
        return value
    if value and all(map(_is_titled, value)):
        return [{"title": title, "text": _joined(sentences)} for title, sentences in value]
    is_one = len(value) == 1 and isinstance(value[0], list)
    return value[0] if is_one and not is_scored(value[0]) else value


# Where replies of vector stores and searches have what they found.
_FINDS: Final = frozenset(words_in("passages", "found"))


def _held_in(value: Mapping[str, Any]) -> list[Any]:
    """Return the passages in a reply of a vector store, or in the lists found for some queries."""
    found = {name: out_of_list(inner) for name, inner in value.items() if name in _FINDS}
    found = found or {name: inner for name, inner in value.items() if " " in name.strip()}
    if not all(isinstance(inner, list) and all(map(_is_found, inner)) for inner in found.values()):
        return []
    return [part for inner in found.values() for part in inner]


def _is_found(value: Any) -> bool:
    """Say whether a value is a passage, and no id."""
    return " " in value if isinstance(value, str) else has_text(as_passage(value))


def _is_titled(value: Any) -> bool:
    is_pair = isinstance(value, list) and len(value) == 2 and isinstance(value[0], str)
    return is_pair and isinstance(value[1], list) and all(isinstance(s, str) for s in value[1])


def _joined(value: Any) -> Any:
    """Return the sentences of a text as one text; any other value as it is."""
    are_sentences = isinstance(value, list) and all(isinstance(part, str) for part in value)
    return " ".join(map(str.strip, value)) if are_sentences else value


def passages_of(value: Any, field: str) -> tuple[Passage, ...]:
    """Return the passages in a JSON value: a text, an object or a list of these.

    None and a blank text have none, and a passage without a text says nothing. The one list in a
    list, as vector databases answer one query, is that list.

    Raises:
        InputError: it is something else; names the part of ``field``.
    """
    value = out_of_list(value)
    parts = value if isinstance(value, list) else [value]
    try:
        passages = _PASSAGES.validate_python([part for part in parts if not says_nothing(part)])
    except ValidationError as error:
        raise within(input_error(error), field) from None
    return ours(passages)


def text_of(value: JsonValue) -> str | None:
    """Return a JSON value as a text: what is no text as JSON, None as None."""
    return value if isinstance(value, str) or value is None else to_json(value).decode()


def language(tag: str | None) -> str:
    """Return a language as a tag in our form: "EN", "eng" and "English" are "en", none is "und"."""
    primary, *subtags = (tag or UNDETERMINED).strip().replace("_", "-").split("-")
    return "-".join([LANGUAGES.get(primary.lower(), primary.lower()), *subtags])


def checked(item: Item) -> Item:
    """Return ``item`` if it can be written again.

    Raises:
        InputError: its meta holds something that JSON has no word for.
    """
    if item.meta:
        check_meta(item.meta, field="")
    return item


_PLACED = re.compile(r"([a-z_]+(?:\.\w+)+): (.+)", re.DOTALL)
_BRANCH = re.compile(r"^process\.(?:own|shared)\b")  # the kind of process is in no file
_OTHER_ENCODING = "UTF-8; --encoding NAME reads another, such as windows-1252 or cp932"
_NOT_FINITE = (b"NaN", b"Infinity")


def input_error(error: ValidationError) -> InputError:
    """Return the first thing that ``error`` complains of as an ``InputError``.

    The field is the dotted path of the validated JSON; file and line are for the caller to add.
    """
    problem = error.errors(include_url=False)[0]
    field = _BRANCH.sub("process", ".".join(str(key) for key in problem["loc"])) or None
    match problem["type"]:
        case "json_invalid":
            words = message_of(problem).replace("Invalid JSON", "not valid JSON")
            return InputError(words, expected=_OTHER_ENCODING if "unicode" in words else None)
        case "missing":
            return InputError("the field is missing", field=field, found=_keys(problem["input"]))
        case "extra_forbidden":
            return InputError(
                "there is no such field",
                field=field,
                found=problem["input"],
                expected="other things go into meta",
            )
        case "value_error":
            return _complaint(str(problem["ctx"]["error"]), field, problem["input"])
        case _:
            return InputError(
                WRONG,
                field=field,
                found=problem["input"],
                expected=message_of(problem).removeprefix("it should ").removeprefix("be "),
            )


def within(problem: InputError, field: str) -> InputError:
    """Return ``problem`` with its field as a part of ``field``."""
    return InputError(
        problem.what,
        file=problem.file,
        line=problem.line,
        field=".".join(filter(None, (field, problem.field))),
        found=problem.found,
        expected=problem.expected,
    )


def check_meta(meta: dict[str, JsonValue], field: str = "meta") -> None:
    """Check that ``meta`` can be written as JSON, which has no NaN, infinity or lone surrogate.

    Args:
        meta: what was read.
        field: where it stands in the file; empty for its top.

    Raises:
        InputError: names the field.
    """
    try:
        data = to_json(meta)
    except PydanticSerializationError as error:
        raise InputError(
            f"cannot be written as JSON: {error}", field=field or None, expected="Unicode text"
        ) from error
    if any(word in data for word in _NOT_FINITE):
        _find_not_finite(meta, field)


def _find_not_finite(value: JsonValue, field: str) -> None:
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(WRONG, field=field, found=value, expected="a finite number")
    if isinstance(value, list):
        value = {str(index): inner for index, inner in enumerate(value)}
    for key, inner in value.items() if isinstance(value, dict) else ():
        _find_not_finite(inner, f"{field}.{key}" if field else key)


def _complaint(message: str, field: str | None, value: Any) -> InputError:
    """Split a message of our own validators, which may begin with a path, from its path."""
    placed = _PLACED.fullmatch(message)
    if placed and field is None:
        return InputError(placed[2], field=placed[1])
    return InputError(message, field=field, found=value if field else None)


def _keys(value: object) -> object:
    return f"the fields {', '.join(map(repr, value))}" if isinstance(value, dict) else value
