"""Label Studio's short exports, JSON-MIN and CSV: a row for each annotation, as tasks.

A row has the task's data, ``annotator``, ``annotation_id``, and a column for each control: labels
as ``[{"start", "end", "text", "labels"}]``, ratings and numbers as ``[{"rating": 4}]``, texts as
``{"text": […]}``. A single choice is a plain word; that a column is a choice shows where rows of
one task differ in it, for all tasks. Who skipped a task, and what belongs to which region, is in
the long export alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from spanlab.formats.reader import parse_list

KEYS: Final = frozenset(("annotation_id", "annotator"))
_OF_ROW: Final = KEYS | {"created_at", "updated_at", "lead_time"}
_TYPES: Final = ("labels", "rating", "number", "choices", "text")


def tasks_of(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the tasks that rows are of, in their order, each with all its annotations."""
    by_task: dict[str, list[Mapping[str, Any]]] = {}
    for number, row in enumerate(rows):
        by_task.setdefault(str(row.get("id", f"row {number}")), []).append(row)
    controls = dict.fromkeys(
        column
        for task_rows in by_task.values()
        for column in dict.fromkeys(name for row in task_rows for name in row)
        if column not in _OF_ROW and _is_control(column, task_rows)
    )
    return [_task(name, task_rows, controls) for name, task_rows in by_task.items()]


def _task(name: str, rows: list[Mapping[str, Any]], controls: Collection[str]) -> dict[str, Any]:
    columns = dict.fromkeys(column for row in rows for column in row if column not in _OF_ROW)
    data = {
        column: _plain(next((row[column] for row in rows if row.get(column)), None))
        for column in columns
        if column not in controls
    }
    return {
        "id": name,
        "data": {column: value for column, value in data.items() if value is not None},
        "annotations": [_annotation(row, controls) for row in rows],
    }


def _is_control(column: str, rows: list[Mapping[str, Any]]) -> bool:
    values = [row.get(column) for row in rows]
    if any(_results(value) for value in values if value not in (None, "")):
        return True
    return column != "id" and len({str(value or "") for value in values}) > 1


def _plain(value: Any) -> Any:
    """Return a value of a task's data; in CSV objects and lists are JSON."""
    is_json = isinstance(value, str) and value[:2] in ('{"', "[{", '["')
    return parse_list(f"[{value}]")[0] if is_json else value


def _annotation(row: Mapping[str, Any], controls: Iterable[str]) -> dict[str, Any]:
    results = [
        {"from_name": column, "type": kind, "value": value}
        for column in controls
        if row.get(column) not in (None, "")
        for kind, value in _results(row[column]) or [("choices", {"choices": [row[column]]})]
    ]
    return {"completed_by": row.get("annotator"), "result": results}


def _results(cell: Any) -> list[tuple[str, dict[str, Any]]]:
    """Return what a cell holds by the types of results; nothing for a plain value."""
    cell = parse_list(f"[{cell}]")[0] if isinstance(cell, str) and cell[:1] == "{" else cell
    parts = parse_list(cell)
    results = []
    for part in parts if isinstance(parts, list) else [parts]:
        kind = next((kind for kind in _TYPES if isinstance(part, dict) and kind in part), None)
        if kind is None or ("start" in part) != (kind == "labels"):
            return []
        if kind == "text" and not isinstance(part["text"], list):
            return []  # a passage of the task's data
        results.append(("textarea" if kind == "text" else kind, part))
    return results
