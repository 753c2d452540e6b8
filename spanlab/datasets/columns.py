"""Columns of other people's tables and paths into their JSON, mapped to our fields.

Names are compared by their words: ``LLM_output``, ``llmOutput`` and ``LLM output`` are one name.
The table of names is here; what holds no text is no answer, whatever it is called.

A path goes through objects by their keys and through lists by a number, or by a key of all their
elements. A key that itself holds dots is found as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

from spanlab.datasets.cells import answers_in, is_chat, is_message
from spanlab.datasets.reader import has_text, parse_list
from spanlab.errors import InputError, UsageError

_MODEL: Final = (
    *("llm", "model", "ai", "assistant", "bot", "agent", "generated", "actual", "predicted"),
    *("hallucinated", "chatgpt", "gpt"),
)

_ANSWERS: Final = ("answer", "response", "output", "completion", "reply", "summary", "text")
_PERSON: Final = ("user", "human", "customer")
_QUESTIONS: Final = ("question", "query", "prompt", "request", "instruction", "input", "message")

_FOUND: Final = (
    *("retrieved", "retrieval", "source", "context", "wiki", "search", "supporting", "evidence"),
)

_PASSAGES: Final = (
    *("passages", "passage", "contexts", "context", "documents", "document", "docs", "doc"),
    *("chunks", "chunk", "nodes", "texts", "text", "results", "snippets"),
)


def _cross(owners: Sequence[str], nouns: Sequence[str]) -> tuple[str, ...]:
    return tuple(f"{owner} {noun}" for noun in nouns for owner in owners)


# Names by their words, the likeliest first: one that says whose it is before one that does not,
# as what stands beside "llm answer" as "answer" is the right one.
COMMON: Final[dict[str, tuple[str, ...]]] = {
    "id": ("id", "item id", "example id", "sample id", "question id", "uid", "index", "idx"),
    "lang": ("lang", "language"),
    "messages": (
        *("messages", "conversations", "conversation", "chat", "dialogue", "dialog", "turns"),
        *("user input", "input"),
    ),
    "question": (
        *_cross(_PERSON, _QUESTIONS),
        *("question", "query", "prompt", "instruction", "model input", "input"),
        *("dialogue history", "prompt raw"),
    ),
    "answer": (
        "model output text",
        *_cross(_MODEL, _ANSWERS),
        *("answer", "response", "output", "reply", "hypothesis", "generation", "completion"),
        *("summary", "prediction", "choices message content", "text"),
    ),
    "passages": (
        *_cross(_FOUND, _PASSAGES),
        *("passages", "passage", "contexts", "context", "documents", "document", "docs"),
        *("source", "sources", "evidence", "knowledge", "article", "reference contexts"),
    ),
    "spans": (
        *("spans", "soft labels", "hallucinations", "hallucination spans", "labels"),
        *("hard labels", "label"),
    ),
}

_KNOWN: Final = {"answer": "answer or response or output or LLM output"}  # as an error names them
FIELDS: Final = ("id", "lang", "question", "answer", "passages", "spans", "messages")

# What stands in these is said of an answer, and is not one.
_ASIDE: Final = frozenset(
    ("expected", "reference", "gold", "golden", "grading", "score", "scores", "metric", "metrics")
)

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[\W_]+")
_TAG = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*")


def words_of(name: str) -> str:
    """Return the words of a column's name in small letters, with a space between."""
    return " ".join(_BETWEEN.split(_CAMEL.sub(" ", name).lower())).strip()


def map_columns(
    paths_found: Sequence[str],
    user_columns: Mapping[str, str] | None,
    *,
    needed: str | None = "answer",
    samples: Sequence[Mapping[str, Any]] = (),
) -> dict[str, str]:
    """Return for each of our fields the column that holds it.

    Args:
        paths_found: the columns that are there.
        user_columns: what the user said; the remaining fields are found by common names.
        needed: the field that must be there, where a chat stands for the answer; None for none.
        samples: some records, by what stands in which a column is no guess for a field.

    Raises:
        UsageError: the user names a field that we do not have.
        InputError: a column that the user names, or that of ``needed``, is not there.
    """
    mapping: dict[str, str] = {}
    for field, column in (user_columns or {}).items():
        if field not in COMMON:
            raise UsageError(
                f"no field {field!r} to map a column to; known are {', '.join(FIELDS)}"
            )
        if column not in paths_found and any_element(column) not in paths_found:
            raise InputError(
                f"there is no column {column!r} for {field}",
                found=_list_columns(paths_found),
                expected="one of these columns",
            )
        mapping[field] = column
    for field in COMMON:
        used_columns = mapping.values()
        free = [
            path
            for path in paths_found
            if not any(f"{path}.".startswith(f"{t}.") for t in used_columns)
        ]
        if field not in mapping and (guess := _guess(field, free, samples)) is not None:
            mapping[field] = guess
    if needed is not None and needed not in mapping and "messages" not in mapping:
        raise InputError(
            f"no column for {needed}",
            found=_list_columns(paths_found),
            expected=f"one named {_KNOWN[needed]}, or a mapping {needed}=COLUMN",
        )
    return mapping


def _list_columns(columns: Sequence[str]) -> str:
    return f"the columns {', '.join(map(repr, columns))}"


def _guess(
    field: str, paths_found: Sequence[str], samples: Sequence[Mapping[str, Any]]
) -> str | None:
    """Return the column that is likeliest a field's; None if none is likely."""
    names = list(_names(paths_found, inside=field not in {"id", "lang"}))
    for name in COMMON[field]:
        for words, column in names:
            if words == name and _can_hold(field, column, samples):
                return column
    return None


def _names(columns: Sequence[str], *, inside: bool) -> Iterator[tuple[str, str]]:
    """Yield columns by the words of their paths, then of the ends of these, outermost first.

    Args:
        columns: dotted paths.
        inside: whether the end of a path may name it; an id inside something is that thing's.
    """
    for column in columns:
        yield words_of(column), column
    if not inside:
        return
    inner = [(column.split("."), column) for column in columns if "." in column]
    for path, column in sorted(inner, key=lambda pair: len(pair[0])):
        outer_words = {word for part in path[:-1] for word in words_of(part).split()}
        if not outer_words & _ASIDE:
            for count in range(1, len(path)):
                yield words_of(" ".join(path[count:])), column


def _can_hold(field: str, column: str, samples: Sequence[Mapping[str, Any]]) -> bool:
    """Say whether what stands in a column can be a field's; always so without samples."""
    if not samples:
        return True
    values = [value_at(sample, column) for sample in samples]
    values = [value for value in values if value not in (None, "")]
    if not values:
        # An empty column is one, unless it lies inside others.
        return "." not in column and field not in {"messages", "passages", "spans"}
    if field == "id" and words_of(column) != "id" and len(set(map(str, values))) < len(values):
        return False
    if words_of(column) == "labels" and not any(map(parse_list, values)):
        return False  # of what kind they are is not to be seen
    # A wrong record is one to be told of, and no other column.
    return 2 * sum(_FITS[field](value, column) for value in values) >= len(values)


def _is_text(value: Any, column: str) -> bool:
    """Say whether a value is a text, a message that has one, or the only one of a list."""
    if isinstance(value, list):
        return len(value) == 1 and _is_text(value[0], column)
    return isinstance(value, str | int | float) or is_message(value)


def _is_question(value: Any, column: str) -> bool:
    return _is_text(value, column) or is_chat(value)


def _is_evidence(value: Any, column: str) -> bool:
    """Say whether a value is texts or objects; a word alone is the name of a source."""
    if isinstance(value, str) and words_of(column) in {"source", "sources"}:
        return len(value.split()) > 1
    parts = value if isinstance(value, list) else [value]
    return all(map(has_text, parts))


def _is_marked(value: Any, column: str) -> bool:
    """Say whether a value is a list of extents or, by its name, of texts that an answer has."""
    parts = parse_list(value)
    quoted = not {"spans", "hallucinations"}.isdisjoint(words_of(column).split())
    return isinstance(parts, list) and all(
        (quoted and isinstance(part, str))
        or (isinstance(part, dict) and {"start", "end"} <= part.keys())
        or (isinstance(part, list) and len(part) == 2 and all(isinstance(n, int) for n in part))
        for part in parts
    )


_FITS: Final[dict[str, Callable[[Any, str], bool]]] = {
    "id": lambda value, _: isinstance(value, str | int),
    "lang": lambda value, _: isinstance(value, str) and _TAG.fullmatch(value) is not None,
    "messages": lambda value, _: is_chat(value) and bool(answers_in(value)),
    "question": _is_question,
    "answer": _is_text,
    "passages": _is_evidence,
    "spans": _is_marked,
}

_DEEPEST = 4  # levels that are offered; a path that is written out may go deeper


def paths(record: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the paths of a record's values, those of lists by their first element."""
    for key, value in record.items():
        path = f"{prefix}{key}"
        yield path
        inner = value[0] if isinstance(value, list) and value else value
        if isinstance(inner, Mapping) and depth < _DEEPEST:
            yield from paths(inner, f"{path}.", depth + 1)


def any_element(path: str) -> str:
    """Return a path without the numbers that choose elements of lists: ``a.0.b`` is ``a.b``."""
    return ".".join(part for part in path.split(".") if not part.isdecimal())


def value_at(record: Any, path: str) -> Any:
    """Return the value at a path; None if there is none."""
    if isinstance(record, Mapping):
        if path in record:
            return record[path]
        key, dot, rest = path.partition(".")
        return value_at(record[key], rest) if dot and key in record else None
    if not isinstance(record, list):
        return None
    key, _, rest = path.partition(".")
    if key.isdecimal():
        inner = record[int(key)] if int(key) < len(record) else None
        return value_at(inner, rest) if rest else inner
    values = [value_at(row, path) for row in record]
    return [value for value in values if value is not None] or None


def without(record: Mapping[str, Any], used: Collection[str], prefix: str = "") -> dict[str, Any]:
    """Return a record without the values at some paths, and without empty values."""
    remaining = {}
    for key, value in record.items():
        path = f"{prefix}{key}"
        if path in used or value is None or value == "":
            continue
        inside = any(used_path.startswith(f"{path}.") for used_path in used)
        remaining_value = _inside(value, used, f"{path}.") if inside else value
        if not inside or remaining_value:
            remaining[key] = remaining_value
    return remaining


def _inside(value: Any, used: Collection[str], prefix: str) -> Any:
    if isinstance(value, Mapping):
        return without(value, used, prefix)
    if not isinstance(value, list):
        return value
    places = ((element, f"{prefix}{index}") for index, element in enumerate(value))
    unused = (_inside(element, used, f"{place}.") for element, place in places if place not in used)
    remaining = [_inside(element, used, prefix) for element in unused]
    return remaining if any(remaining) else []
