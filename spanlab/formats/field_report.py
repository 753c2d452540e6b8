"""What the fields of a file became, told for every format from its records.

A reader of columns says which column it reads as what (``FormatReader.fields``). Of any other
format it is told by comparing: a field whose value is the item's answer became the answer, one
whose texts are among the passages became passages, and so on; what is found nowhere is left out.
So no reader has to keep a list of its fields, and none can say something else than it does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import from_json, to_json

from spanlab.formats.files import FileRow
from spanlab.schema import Record

LEFT_OUT: Final = "left out"
_META: Final = "meta"
_RECORDS: Final = 50  # of a file that are compared
_DEEPEST: Final = 5  # levels of a record; what lies deeper counts as one value
_LABELS: Final = frozenset(
    ("annotations", "labels", "soft_labels", "hard_labels", "spans", "claims")
)


class FieldReport:
    """Collects what each field of a file became.

    Args:
        fields: field of ours by the path of theirs, where a reader says so.
    """

    def __init__(self) -> None:
        self._became: dict[str, dict[str, None]] = {}  # path → the kinds, in order
        self._n = 0

    def add(self, row: FileRow, record: Record, fields: Mapping[str, str]) -> None:
        """Take a record into account, while the file is at its beginning."""
        self._n += 1
        if self._n > _RECORDS or row.refused is not None:
            return
        try:
            raw = from_json(row.beginning)
        except ValueError:
            return
        traces = _traces_of(record)
        for source in raw if isinstance(raw, list) else [raw]:  # several make a record in some
            for path, value in _leaves(source, ""):
                known = _field_at(path, fields)
                self._became.setdefault(path, {})[known or _kind_of(path, value, traces)] = None

    def fields(self, sources: Mapping[str, str]) -> dict[str, str]:
        """Return what each field of the file became, those of one object together if alike.

        Args:
            sources: what the file calls a field of the rows, where that differs.
        """
        merged: dict[str, str] = {}
        for path, kinds in self._became.items():
            known = [kind for kind in kinds if kind != LEFT_OUT] or list(kinds)
            merged[path] = " and ".join(dict.fromkeys(known))
        return {sources.get(path, path): kind for path, kind in _together(merged).items()}


def _field_at(path: str, fields: Mapping[str, str]) -> str | None:
    """Return what a reader says of a path, or of one around it."""
    plain = path.replace(".*", "")
    for name, field in fields.items():
        if f"{plain}.".startswith(f"{_without_numbers(name)}."):
            return field
    return None


def _without_numbers(path: str) -> str:
    return ".".join(part for part in path.split(".") if not part.isdecimal())


def _leaves(value: Any, path: str, depth: int = 1) -> Iterator[tuple[str, Any]]:
    """Yield what stands in a record by its path; elements of lists have one, ``*``."""
    if isinstance(value, Mapping) and value and depth <= _DEEPEST:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list) and value and depth <= _DEEPEST:
        for inner in value:
            yield from _leaves(inner, f"{path}.*", depth + 1)
    elif value not in (None, "", [], {}):
        yield path, value


def _traces_of(record: Record) -> list[tuple[str, frozenset[str]]]:
    """Return the texts of a record by the field that has them, the likeliest origin first."""
    item = record.item
    process = item.process
    nodes = () if process is None else getattr(process, "nodes", ())
    return [
        ("answer", frozenset((item.answer,))),
        ("question", frozenset((item.question,))),
        ("id", frozenset((item.id,))),
        ("language", frozenset((item.lang, item.lang.upper()))),
        ("passages", _texts([passage.model_dump() for passage in item.passages])),
        ("process", frozenset(node.text for node in nodes)),
        (_META, _texts(item.meta)),
        ("labels", _texts([annotation.model_dump() for annotation in record.annotations])),
    ]


def _texts(value: Any) -> frozenset[str]:
    return frozenset(_text(leaf) for _, leaf in _leaves(value, "", depth=-_DEEPEST))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else to_json(value, fallback=str).decode()


def _kind_of(path: str, value: Any, traces: list[tuple[str, frozenset[str]]]) -> str:
    """Return the field of a record that has a value; of whole texts, also a part of it.

    Numbers are equal by chance, as are an element of a list and a short code: offsets within
    labels are labels, and a token "en" is not the language.
    """
    is_label = not _LABELS.isdisjoint(path.split(".")) and bool(traces[-1][1])
    if is_label and not isinstance(value, str):
        return "labels"
    text = _text(value)
    for kind, texts in traces:
        if text in texts and not (kind == "language" and ".*" in path):
            return kind
    for kind, texts in traces:
        if len(text) > 20 and any(text in whole or whole in text for whole in texts if whole):
            return kind
    return "labels" if is_label else LEFT_OUT


def _together(fields: Mapping[str, str]) -> dict[str, str]:
    """Return fields with all that lies in one object, and became the same, under its path."""
    by_top: dict[str, dict[str, str]] = {}
    for path, kind in fields.items():
        by_top.setdefault(path.partition(".")[0], {})[path.replace(".*", "")] = kind
    merged: dict[str, str] = {}
    for top, inner in by_top.items():
        kinds = dict.fromkeys(inner.values())
        if len(kinds) == 1:
            merged[top] = next(iter(kinds))
            continue
        told = {path: kind for path, kind in inner.items() if kind not in (_META, LEFT_OUT)}
        rest = [kind for kind in (_META, LEFT_OUT) if kind in kinds]
        merged |= told | ({f"the rest of {top}": " and ".join(rest)} if rest else {})
    return merged
