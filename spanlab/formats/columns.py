"""Columns of other people's tables and paths into their JSON: their names, and what stands there.

Names are compared by their words: ``LLM_output``, ``llmOutput`` and ``LLM output`` are one name.

A path goes through objects by their keys and through lists by a number, or by a key of all their
elements. A key that itself holds dots is found as it is.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, Final

from spanlab.formats.reader import parse_object
from spanlab.formats.vocabulary import words_in

Samples = Sequence[Mapping[str, Any]]  # some records of a file, as they stand

BATCH_ID: Final = "custom_id"  # what OpenAI and Anthropic call the id of a batch's request

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_BETWEEN = re.compile(r"[\W_]+")


@lru_cache(1 << 17)
def words_of(name: str) -> str:
    """Return the words of a column's name in small letters, with a space between."""
    return " ".join(_BETWEEN.split(_CAMEL.sub(" ", name).lower())).strip()


PROVIDER: Final = re.compile(r"\[([^\]]+)\] ")
_FAMILIES: Final = rf"(?:{'|'.join(words_in('models', 'families'))})(?=[\d ]|$)"
_FAMILY: Final = re.compile(_FAMILIES)
_FAMILY_ALONE: Final = re.compile(
    rf"{_FAMILIES}\d*(?: ?(?:\w*\d\w*|{'|'.join(words_in('models', 'variants'))}))*"
)
_OF_ANSWER: Final = re.compile(
    rf"(?:(?<=[\W_])|^)(?:{'|'.join(words_in('parts', 'answers'))})(?=[\W_]|$)", re.IGNORECASE
)


def model_in(column: str) -> str | None:
    """Return the model that a column is named by: "[openai:gpt-x] prompt", "gpt-4o answer"."""
    if named := PROVIDER.match(column):
        return named[1]
    noun = _OF_ANSWER.search(column)
    if noun and noun.start() and _BETWEEN.sub("", _OF_ANSWER.sub("", column[noun.end() :])):
        return None  # samples of it, or scores
    name = (column[: noun.start()] + column[noun.end() :] if noun else column).strip("_-. ")
    words = " ".join(_BETWEEN.split(name.lower()))  # ChatGPT is one word
    is_model = _FAMILY.match(words) if noun else _FAMILY_ALONE.fullmatch(words)
    return name if is_model else None


_MOST: Final = 200  # fields that are offered
_DEEPEST = 6  # levels that are offered; a path that is written out may go deeper


def paths(record: Mapping[str, Any], prefix: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the paths of a record's values, those of lists by their first element."""
    for key, value in record.items():
        path = f"{prefix}{key}"
        yield path
        inner = value[0] if isinstance(value, list) and value else value
        if isinstance(inner, Mapping) and depth < _DEEPEST:
            yield from paths(inner, f"{path}.", depth + 1)


def columns_of(samples: Samples) -> tuple[str, ...]:
    """Return the paths of the fields of some records: all outer ones, of what is inside some."""
    columns: dict[str, None] = {}
    for sample in samples:
        columns |= dict.fromkeys(paths(sample))
    outer = dict.fromkeys(name for sample in samples for name in sample)
    first = dict.fromkeys(islice(columns, _MOST))
    return tuple(name for name in columns if name in first or name in outer)


def any_element(path: str) -> str:
    """Return a path without the numbers that choose elements of lists: ``a.0.b`` is ``a.b``."""
    return ".".join(part for part in path.split(".") if not part.isdecimal())


def are_objects(value: Any) -> bool:
    """Say whether a value is a list of objects, which may be empty."""
    return isinstance(value, list) and all(isinstance(part, Mapping) for part in value)


def value_at(record: Any, path: str) -> Any:
    """Return the value at a path, also in an object that stands as JSON in a text; else None."""
    if isinstance(record, Mapping):
        if path in record:
            return record[path]
        key, dot, rest = path.partition(".")
        return value_at(parse_object(record[key]), rest) if dot and key in record else None
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
