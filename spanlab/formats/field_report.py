"""What the fields of a file became, told for every format from its records.

A reader of columns says which column it reads as what (``FormatReader.fields``). Of any other
format it is told by comparing: a field whose value is the item's answer became the answer, one
whose texts are among the passages became passages, and so on; what is found nowhere is left out.
So no reader has to keep a list of its fields, and none can say something else than it does.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from pydantic_core import to_json

from spanlab.formats.columns import any_element
from spanlab.formats.files import FileRow
from spanlab.formats.reader import FormatReader
from spanlab.schema import Record

LEFT_OUT: Final = "left out"
_META: Final = "meta"
_CHANCE: Final = "equals the id"  # what a field is that does so in some records only
_SHORTEST: Final = 4  # characters of a text that is looked for in longer ones
REPORTED: Final = 50  # records of a file that are compared
_DEEPEST: Final = 6  # objects in each other; what lies deeper counts as one value
_LABELS: Final = frozenset(
    ("annotations", "labels", "soft_labels", "hard_labels", "spans", "claims")
)

_Trace = tuple[str, frozenset[str]]  # a field of a record, and its texts
_Leaf = tuple[str, str]  # a path, and the text there


class FieldReport:
    """Collects what each field of a file became."""

    def __init__(self) -> None:
        self._became: dict[str, dict[str, None]] = {}  # path → the kinds, in order
        self._tops: dict[str, str] = {}  # path → the field of a record that it lies in
        self._n = 0

    def add(self, row: FileRow, record: Record, reader: FormatReader) -> None:
        """Take a record into account, while the file is at its beginning."""
        self._n += 1
        if self._n > REPORTED or row.refused is not None:
            return
        try:
            raw = reader.source(row)
        except ValueError:
            return
        traces = _traces_of(record)
        kept = {(path, _text(value)) for path, value in _leaves(record.item.meta, "")}
        for source in raw if isinstance(raw, list) else [raw]:  # several make a record in some
            for top, path, value in _placed(source):
                self._tops[path] = top
                is_path = "." in top and top not in reader.fields  # a name that only looks like one
                known = None if is_path else _field_at(path, reader.fields)
                kind = known or _kind_of(path, value, traces, kept)
                self._became.setdefault(path, {})[kind] = None

    def fields(self, sources: Mapping[str, str]) -> dict[str, str]:
        """Return what each field of the file became, those of one object together if alike.

        Args:
            sources: what the file calls a field of the rows, where that differs; "" for one that
                it has not, and that was made here.
        """
        merged: dict[str, str] = {}
        for path, kinds in self._became.items():
            known = [kind for kind in kinds if kind not in (LEFT_OUT, _CHANCE)]
            if len(kinds) == 1 and _CHANCE in kinds:  # as in every record
                known = ["id"]
            merged[path] = " and ".join(known) or LEFT_OUT
        told = self._together(merged).items()
        return {sources.get(path, path): kind for path, kind in told if sources.get(path) != ""}

    def _together(self, fields: Mapping[str, str]) -> dict[str, str]:
        """Return fields with all that lies in one field, and became the same, under its name."""
        by_top: dict[str, dict[str, str]] = {}
        for path, kind in fields.items():
            by_top.setdefault(self._tops[path], {})[path.replace(".*", "")] = kind
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


def _placed(source: Any) -> Iterator[tuple[str, str, Any]]:
    """Yield what stands in a record, with the field that it lies in and its path."""
    for top, inner in source.items() if isinstance(source, Mapping) else ():
        for path, value in _leaves(inner, str(top)):
            yield str(top), path, value


def _field_at(path: str, fields: Mapping[str, str]) -> str | None:
    """Return what a reader says of a path, or of one around it."""
    plain = path.replace(".*", "")
    for name, field in fields.items():
        if f"{plain}.".startswith(f"{any_element(name)}."):
            return field
    return None


def _leaves(value: Any, path: str, depth: int = 1) -> Iterator[tuple[str, Any]]:
    """Yield what stands in a record by its path; elements of lists have one, ``*``.

    A list of keys and values, as OpenTelemetry writes attributes, is the object that it means.
    """
    if isinstance(value, list) and value and all(map(_is_pair, value)):
        value = {part["key"]: part["value"] for part in value}
    if isinstance(value, Mapping) and value and depth <= _DEEPEST:
        for key, inner in value.items():
            yield from _leaves(inner, f"{path}.{key}" if path else str(key), depth + 1)
    elif isinstance(value, list) and value and depth <= _DEEPEST:
        for inner in value:
            yield from _leaves(inner, f"{path}.*", depth)
    elif value not in (None, "", [], {}):
        yield path, value


def _is_pair(value: Any) -> bool:
    return isinstance(value, Mapping) and value.keys() == {"key", "value"}


def _traces_of(record: Record) -> list[_Trace]:
    """Return the texts of a record by the field that has them, the likeliest origin first."""
    item = record.item
    process = item.process
    nodes = () if process is None else getattr(process, "nodes", ())
    return [
        ("answer", frozenset((item.answer,))),
        ("question", frozenset((item.question,))),
        (_CHANCE, frozenset((item.id,))),
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


def _kind_of(path: str, value: Any, traces: list[_Trace], kept: Collection[_Leaf]) -> str:
    """Return the field of a record that has a value; of whole texts, also a part of it.

    Numbers are equal by chance, as are an element of a list and a short code: offsets within
    labels are labels, and a token "en" is not the language.
    """
    is_label = not _LABELS.isdisjoint(path.split(".")) and bool(traces[-1][1])
    if is_label and not isinstance(value, str):
        return "labels"
    text = _text(value)
    if (path.removeprefix("meta."), text) in kept:
        return _META
    if path == _META and text.startswith("{") and dict(traces)[_META]:
        return _META  # an object in a cell of a table
    for kind, texts in traces:
        if text in texts and not (kind == "language" and ".*" in path):
            return kind
    for kind, texts in traces:
        if len(text) > 20 and any(_overlap(text, whole) for whole in texts):
            return "id" if kind == _CHANCE else kind
    return "labels" if is_label else LEFT_OUT


def _overlap(text: str, whole: str) -> bool:
    return text in whole or (len(whole) >= _SHORTEST and whole in text)
