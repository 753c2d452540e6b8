"""Values inside nested records by dotted paths: ``output.text``, ``documents.content``, ``a.0``.

A path goes through objects by their keys and through lists by a number, or by a key of all their
elements. A key that itself holds dots is found as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

_DEEPEST = 4  # levels that are offered; a path that is written out may go deeper


def paths(record: Mapping[str, Any], before: str = "", depth: int = 1) -> Iterator[str]:
    """Yield the paths of a record's values, those of lists by their first element."""
    for key, value in record.items():
        path = f"{before}{key}"
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
    found = [value_at(each, path) for each in record]
    return [each for each in found if each is not None] or None


def without(record: Mapping[str, Any], used: Collection[str], before: str = "") -> dict[str, Any]:
    """Return what a record says beside the values at some paths, without what says nothing."""
    rest = {}
    for key, value in record.items():
        path = f"{before}{key}"
        if path in used or value is None or value == "":
            continue
        inside = any(each.startswith(f"{path}.") for each in used)
        left = _inside(value, used, f"{path}.") if inside else value
        if not inside or left:
            rest[key] = left
    return rest


def _inside(value: Any, used: Collection[str], before: str) -> Any:
    if isinstance(value, Mapping):
        return without(value, used, before)
    if not isinstance(value, list):
        return value
    places = ((each, f"{before}{index}") for index, each in enumerate(value))
    kept = (_inside(each, used, f"{place}.") for each, place in places if place not in used)
    left = [_inside(each, used, before) for each in kept]
    return left if any(left) else []
