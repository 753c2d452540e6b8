"""A benchmark's folder: its plan, and its table as Markdown, LaTeX, CSV, HTML and JSON."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from spanlab.base.errors import UsageError
from spanlab.bench.plan import BenchPlan
from spanlab.formats.files import replacing
from spanlab.output.csv_text import write_dicts
from spanlab.output.drawing import draw
from spanlab.output.tables import (
    Column,
    ResultTable,
    as_html,
    flat_rows,
    write_cell,
)

_TABLES: Final = TypeAdapter(tuple[ResultTable, ...])
_FILE: Final = "tables.json"
_PLAN: Final = "plan.json"
ALIKE: Final = Column(key="alike", title="Not significantly worse", about="Than the best system.")


@dataclass(frozen=True)
class BenchTable:
    """The tables of a benchmark; ``undone`` names the cells that are missing."""

    results: tuple[ResultTable, ...]
    undone: tuple[str, ...] = ()

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the tables: of each dataset, by language, and what the cells took."""
        return self.results

    def figures(self) -> dict[str, Any]:
        """Return the tables as JSON."""
        return {"tables": _TABLES.dump_python(self.results, mode="json"), "undone": self.undone}


def write_table(table: BenchTable, folder: Path) -> None:
    """Write the table as Markdown, LaTeX, CSV and HTML, and as JSON for the page."""
    shown = [result for result in table.results if result.key != "took"]
    took = [result for result in table.results if result.key == "took"]
    main = [table for table in shown if table.key.startswith("bench-")]
    files = {
        "table.md": "\n".join(map(_markdown, shown)),
        "table.tex": "\n".join(map(_latex, main)),
        "table.csv": _csv(main),
        "languages.csv": _csv(table for table in shown if table not in main),
        "table.html": _html(shown),
        "took.md": "\n".join(map(_markdown, took)),
        _FILE: _TABLES.dump_json(table.results, indent=1).decode() + "\n",
    }
    for name, text in files.items():
        with replacing(folder / name) as stream:
            stream.write(text.encode())


def read_table(folder: Path) -> BenchTable:
    """Read the tables that ``write_table`` wrote.

    Raises:
        UsageError: there is no such table.
    """
    try:
        return BenchTable(_TABLES.validate_json((folder / _FILE).read_bytes()))
    except (OSError, ValueError):
        raise UsageError(f"{folder} has no table of `spanlab bench`") from None


def _csv(tables: Iterable[ResultTable]) -> str:
    """Return the rows of all datasets in one table, with the columns that any has."""
    rows = [
        {"Dataset": table.key.partition("-")[2], **row}
        for table in tables
        for row in flat_rows(table)
    ]
    stream = io.StringIO()
    titles = dict.fromkeys(title for row in rows for title in row)
    write_dicts(stream, list(titles), rows)
    return stream.getvalue()


def _rows_as_text(table: ResultTable) -> Iterator[tuple[bool, list[str]]]:
    """Yield each row as texts, with whether it is among those not shown to be worse."""
    alike = next((at for at, c in enumerate(table.columns) if c.key == ALIKE.key), None)
    for row in table.rows:
        texts = [write_cell(cell, c) for cell, c in zip(row, table.columns, strict=True)]
        if alike is None:
            yield False, texts
        else:
            yield texts.pop(alike) == "yes", texts


def _titles(table: ResultTable) -> list[str]:
    return [column.title for column in table.columns if column.key != ALIKE.key]


def _markdown(table: ResultTable) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"

    tested = table.chart is not None
    titles = _titles(table)
    rule = ["---" if column.unit == "text" else "---:" for column in table.columns]
    lines = [f"## {table.title}", "", line(titles), line(rule[: len(titles)])]
    for bold, cells in _rows_as_text(table):
        lines.append(
            line(
                [f"**{c}**" if bold and at == 3 else c for at, c in enumerate(cells)]
                if tested
                else cells
            )
        )
    return "\n".join([*lines, "", *(f"{remark}\n" for remark in table.remarks)])


def _latex(table: ResultTable) -> str:
    def plain(text: str) -> str:
        text = re.sub(r"([&%$#_{}])", r"\\\1", text.replace("\\", "/"))
        text = re.sub(r"(?<![\w-])-(?=[\d.])", "$-$", text)  # a minus, and no hyphen
        return text.replace("<", "$<$").replace("–", "--")

    titles = _titles(table)
    lines = [
        *(f"% {' '.join(text.split())}" for text in (table.title, *table.remarks)),
        rf"\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}",
        r"\hline",
        " & ".join(map(plain, titles)) + r" \\",
        r"\hline",
    ]
    for bold, cells in _rows_as_text(table):
        texts = list(map(plain, cells))
        if bold:
            texts[3] = rf"\textbf{{{texts[3]}}}"
        lines.append(" & ".join(texts) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _html(tables: Sequence[ResultTable]) -> str:
    body = "\n".join(as_html(table) + draw(table) for table in tables)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>spanlab bench</title>"
        "<style>body{font:15px sans-serif;margin:2rem}td,th{padding:.2rem .6rem;text-align:left}"
        f"</style></head><body>\n{body}\n</body></html>\n"
    )


def write_plan(plan: BenchPlan) -> None:
    """Make the folder of a plan and keep the plan in it.

    Raises:
        UsageError: the folder cannot be made.
    """
    try:
        plan.output.mkdir(parents=True, exist_ok=True)
        text = plan.model_dump_json(indent=1) + "\n"
        (plan.output / _PLAN).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{plan.output} cannot be written to: {error}") from None


def plan_in(folder: Path, changes: Mapping[str, Any]) -> BenchPlan:
    """Return the plan of a folder that `spanlab bench` wrote, with changes that are not empty.

    Raises:
        UsageError: there is none.
    """
    try:
        plan = BenchPlan.model_validate_json((folder / _PLAN).read_bytes())
    except (OSError, ValueError):
        raise UsageError(f"{folder} has no table of `spanlab bench`") from None
    filled = {name: value for name, value in changes.items() if value}
    return plan.model_copy(update={"output": folder, **filled})
