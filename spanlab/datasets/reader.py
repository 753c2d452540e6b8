"""The base class of format readers, and what they share: texts, passages, errors by line."""

from __future__ import annotations

import ast
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    JsonValue,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import PydanticSerializationError, from_json, to_json

from spanlab.datasets.files import FileRow, InputFile
from spanlab.datasets.read_options import ReadOptions
from spanlab.errors import InputError
from spanlab.schema import UNDETERMINED, Item, Passage, Record


class FormatReader(ABC):
    """Reads one file of a format; by default a row is a line, and nothing is left out."""

    reads_folders = False

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        self._file = file
        self._options = options

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

    def finish(self) -> None:  # noqa: B027 - most formats leave nothing out
        """Say what was read otherwise than it stands, once the file is read."""

    @abstractmethod
    def _record(self, row: FileRow) -> Record:
        """Return the record of a row; what the validator refuses is told by ``_problem``."""

    def _problem(self, error: ValidationError) -> InputError:
        return input_error(error)


GROUP = "spanlab.formats"  # of entry points; each is a ``FormatEntry``


@dataclass(frozen=True)
class FormatEntry:
    """A format that a package brings.

    Args:
        reader: a ``FormatReader``; None for what is only written.
        chunks: yields the bytes of each record, a chunk each; None for what is only read.
    """

    reader: type[FormatReader] | None = None
    chunks: Callable[[Iterable[Record]], Iterator[bytes]] | None = None


# Where a passage has its text, and what it is called, in other people's words.
_TEXTS = (
    "text",
    "content",
    "page_content",
    "pageContent",
    "passage",
    "document",
    "chunk",
    "snippet",
)

_TITLES = ("title", "name", "source", "file_name")
_LONGEST = 1 << 20  # characters of a list as Python prints it


def _object(value: object) -> object:
    if isinstance(value, str):
        return {"text": value}
    if not isinstance(value, dict) or "text" in value or not has_text(value):
        return value
    inner = value.get("metadata")
    about = {**(inner if isinstance(inner, dict) else {}), **value}
    titles = (about[name] for name in _TITLES if isinstance(about.get(name), str))
    details = {name: about[name] for name in ("url", "date") if isinstance(about.get(name), str)}
    text = next(value[name] for name in _TEXTS if isinstance(value.get(name), str))
    return {"text": text, "title": next(titles, None), **details}


def has_text(value: object) -> bool:
    """Say whether a JSON value is a text, or an object with one where passages have theirs."""
    if isinstance(value, dict):
        return any(isinstance(value.get(name), str) for name in _TEXTS)
    return isinstance(value, str)


def parse_list(value: Any) -> Any:
    """Return the list that a text is in JSON or as Python prints it; other values as they are."""
    if not (isinstance(value, str) and value.lstrip().startswith("[")):
        return value
    try:
        return from_json(value)
    except ValueError:
        pass
    try:
        parsed = ast.literal_eval(value.strip()) if len(value) <= _LONGEST else value
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return value
    return parsed if isinstance(parsed, list) else value


class _GivenPassage(BaseModel):
    """A passage; what else is said of it (a rank, a score) is left alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    text: str
    title: str | None = None
    url: str | None = None
    date: str | None = None


GivenPassages = tuple[Annotated[_GivenPassage, BeforeValidator(_object)], ...]
_PASSAGES: TypeAdapter[GivenPassages] = TypeAdapter(GivenPassages)


def ours(passages: GivenPassages) -> tuple[Passage, ...]:
    """Return the passages as our own."""
    return tuple(Passage(**fields.model_dump()) for fields in passages)


def passages_of(value: Any, field: str) -> tuple[Passage, ...]:
    """Return the passages in a JSON value: a text, an object or a list of these.

    None and a blank text have none.

    Raises:
        InputError: it is something else; names the part of ``field``.
    """
    if value is None or (isinstance(value, str) and not value.strip()):
        return ()
    try:
        passages = _PASSAGES.validate_python(value if isinstance(value, list) else [value])
    except ValidationError as error:
        raise within(input_error(error), field) from None
    return ours(passages)


def text_of(value: JsonValue) -> str | None:
    """Return a JSON value as a text: what is no text as JSON, None as None."""
    return value if isinstance(value, str) or value is None else to_json(value).decode()


def language(tag: str | None) -> str:
    """Return a language tag in our form: "EN" is "en", "zh_CN" is "zh-CN", none is "und"."""
    primary, *subtags = (tag or UNDETERMINED).replace("_", "-").split("-")
    return "-".join([primary.lower(), *subtags])


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
_SHOULD = re.compile(r"^(?:Input|String|Value|Tuple|List|Dictionary) should (?:be )?")
_NOT_FINITE = (b"NaN", b"Infinity")


def input_error(error: ValidationError) -> InputError:
    """Return the first thing that ``error`` complains of as an ``InputError``.

    The field is the dotted path of the validated JSON; file and line are for the caller to add.
    """
    problem = error.errors(include_url=False)[0]
    field = _BRANCH.sub("process", ".".join(str(key) for key in problem["loc"])) or None
    match problem["type"]:
        case "json_invalid":
            return InputError(problem["msg"].replace("Invalid JSON", "not valid JSON"))
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
                "the value is wrong",
                field=field,
                found=problem["input"],
                expected=_SHOULD.sub("", problem["msg"]),
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
        raise InputError("the value is wrong", field=field, found=value, expected="a finite number")
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
