"""The table of a benchmark: figures beside controls, paired tests, and how files have it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from spanlab.datasets.files import replacing
from spanlab.errors import InputError, UsageError
from spanlab.lm import Meter
from spanlab.results import (
    MISSING,
    P_VALUE,
    Cell,
    Chart,
    Column,
    MeanInterval,
    ResultTable,
    as_csv,
    columns_of,
    figure,
    named_ids,
    write_cell,
)
from spanlab.scorers import MeanDifference
from spanlab.workflows.bench.cards import BenchItem, FoundDataset
from spanlab.workflows.bench.cells import (
    CellRun,
    ScoredCell,
    cell_file,
    prediction_file,
    read_cell,
    score_predictions,
)
from spanlab.workflows.bench.plan import BenchCell, BenchPlan, cells_of
from spanlab.workflows.claim_scores import MEASURES
from spanlab.workflows.evaluating import SCORES, difference_cells
from spanlab.workflows.report_head import as_html

_ALPHA: Final = 0.05
_TABLES: Final = TypeAdapter(tuple[ResultTable, ...])
_FILE: Final = "tables.json"
_ALIKE: Final = Column(
    key="alike", title="Not shown worse", about="Than the best: figures that do not differ."
)
_TEST: Final = (
    "Against the best but for people, {best}: paired permutation test, Holm's correction for "
    "{count}. Bold, or yes: not shown to be worse at .05."
)


@dataclass(frozen=True)
class BenchTable:
    """What a benchmark came to; ``undone`` are the cells that are not there."""

    results: tuple[ResultTable, ...]
    undone: tuple[str, ...] = ()

    def tables(self) -> tuple[ResultTable, ...]:
        """Return the tables: of each dataset, by language, and what the cells took."""
        return self.results

    def figures(self) -> dict[str, Any]:
        """Return the tables as JSON has them."""
        return {"tables": _TABLES.dump_python(self.results, mode="json"), "undone": self.undone}


@dataclass(frozen=True)
class _Row:
    """A row: the first repeat's scores, and what the cells of all repeats say."""

    cell: BenchCell
    scored: ScoredCell
    contents: tuple[dict[str, Any], ...]
    difference: MeanDifference | None = None
    p: float | None = None

    @property
    def competes(self) -> bool:
        """Whether it may be the best: people are no system, and part of the reference."""
        return self.cell.control != "annotator"

    @property
    def alike(self) -> bool:
        worse = self.difference is not None and self.difference.difference < 0
        return self.scored.n > 0 and (not worse or (self.p is not None and self.p >= _ALPHA))

    def mean(self, metric: str) -> MeanInterval | None:
        found = self.contents[0]["figures"]["macro"][metric]
        return found and MeanInterval.model_validate(found)

    def spread(self, metric: str) -> str | None:
        macros = [content["figures"]["macro"][metric] for content in self.contents]
        means = [macro["mean"] for macro in macros if macro]
        if len(self.contents) < 2 or not means:
            return None
        return f"{figure(min(means))} to {figure(max(means))}"


def build_table(plan: BenchPlan) -> BenchTable:
    """Return the table of the cells in a plan's folder, paired tests made anew.

    Raises:
        UsageError, InputError: a dataset is not there any more, or predictions are damaged.
    """
    tables: list[ResultTable] = []
    took: list[tuple[Cell, ...]] = []
    undone: list[str] = []
    for found in plan.found():
        items = plan.items(found)
        rows = _tested(_rows(plan, found, items, undone), found.card.scores[0])
        if rows:
            tables += [_main(found, rows), _by_language(found, rows)]
        took += [_took(content) for row in rows for content in row.contents]
    columns = (
        *columns_of("text", "Dataset", "System"),
        *columns_of("count", "Repeat", "Calls", "From cache"),
        Column(key="cost", title="Cost", unit="dollars"),
        Column(key="seconds", title="Seconds", unit="seconds", digits=1),
    )
    tables.append(ResultTable(key="took", title="What it took", columns=columns, rows=tuple(took)))
    return BenchTable(tuple(tables), tuple(undone))


def check_folder(plan: BenchPlan) -> BenchTable:
    """Compute all figures again from the predictions in a plan's folder.

    Returns:
        A row per cell; ``undone`` are those that are missing or differ.

    Raises:
        UsageError, InputError: a dataset is not there any more.
    """
    rows: list[tuple[Cell, ...]] = []
    wrong: list[str] = []
    for found in plan.found():
        items = plan.items(found)
        for cell in cells_of(plan, found, items):
            content = read_cell(cell_file(plan, cell))
            if content is None:
                if cell.file is None:
                    rows.append((cell.path, "missing"))
                    wrong.append(cell.path)
                continue
            try:
                scored = score_predictions(found, items, prediction_file(plan, found.card, cell))
                same = scored.figures(found.card.scores) == content["figures"]
                state = "the same" if same else "other figures than the cell says"
            except (InputError, OSError, ValueError, KeyError) as error:
                same, state = False, f"cannot be read: {error}"
            rows.append((cell.path, state))
            if not same:
                wrong.append(cell.path)
    columns = tuple(columns_of("text", "Cell", "Computed again"))
    table = ResultTable(
        key="check", title="Predictions scored again", columns=columns, rows=tuple(rows)
    )
    return BenchTable((table,), tuple(wrong))


def write_table(table: BenchTable, folder: Path) -> None:
    """Write the table as Markdown, LaTeX, CSV and HTML, and as JSON for the page."""
    shown = [each for each in table.results if each.key != "took"]
    took = [each for each in table.results if each.key == "took"]
    main = [each for each in shown if not each.key.startswith("languages")]
    files = {
        "table.md": "\n".join(map(_markdown, shown)),
        "table.tex": "\n".join(map(_latex, main)),
        "table.csv": "\n".join(map(as_csv, shown)),
        "table.html": _html(shown),
        "took.md": "\n".join(map(_markdown, took)),
        _FILE: _TABLES.dump_json(table.results, indent=1).decode() + "\n",
    }
    for name, text in files.items():
        with replacing(folder / name) as stream:
            stream.write(text.encode())


def read_table(folder: Path) -> BenchTable:
    """Read what ``write_table`` wrote.

    Raises:
        UsageError: there is no such table.
    """
    try:
        return BenchTable(_TABLES.validate_json((folder / _FILE).read_bytes()))
    except (OSError, ValueError):
        raise UsageError(f"{folder} has no table of `spanlab bench`") from None


def _rows(
    plan: BenchPlan, found: FoundDataset, items: list[BenchItem], undone: list[str]
) -> list[_Row]:
    runner = CellRun(plan, Meter())
    repeats: defaultdict[str, list[tuple[BenchCell, dict[str, Any]]]] = defaultdict(list)
    for cell in cells_of(plan, found, items):
        content = runner.kept(found, items, cell)
        if content is not None:
            repeats[cell.row].append((cell, content))
        elif cell.file is None:
            undone.append(cell.path)
    rows = []
    for several in repeats.values():
        cell = several[0][0]
        scored = score_predictions(found, items, prediction_file(plan, found.card, cell))
        rows.append(_Row(cell, scored, tuple(content for _, content in several)))
    return rows


def _tested(rows: list[_Row], metric: str) -> list[_Row]:
    """Return the rows with their differences from the best that competes, and Holm's p."""

    def height(row: _Row) -> float:
        found = row.mean(metric)
        return -2.0 if found is None else found.mean

    if not rows:
        return []
    best = max([row for row in rows if row.competes] or rows, key=height)
    differences = {
        row.cell.row: row.scored.minus(best.scored, metric) for row in rows if row is not best
    }
    ranked = sorted((d.p, name) for name, d in differences.items() if d is not None)
    adjusted: dict[str, float] = {}
    highest = 0.0
    for at, (p, name) in enumerate(ranked):
        highest = max(highest, min(1.0, p * (len(ranked) - at)))
        adjusted[name] = highest
    return [
        _Row(
            row.cell,
            row.scored,
            row.contents,
            differences.get(row.cell.row),
            adjusted.get(row.cell.row),
        )
        for row in rows
    ]


def _main(found: FoundDataset, rows: Sequence[_Row]) -> ResultTable:
    card = found.card
    metric = card.scores[0]
    known = SCORES | MEASURES
    best = next((row.cell.row for row in rows if row.alike and row.difference is None), "")
    optional: tuple[tuple[Column, Callable[[_Row], Cell]], ...] = (
        (Column(key="spread", title="Repeats"), lambda row: row.spread(metric)),
        (Column(key="certificate", title="Certificate"), _certified),
    )
    used = [(column, cell) for column, cell in optional if any(map(cell, rows))]
    difference = known[metric].model_copy(
        update={"key": "difference", "title": "Minus the best", "unit": "difference"}
    )
    remarks = [_TEST.format(best=best, count=len(rows) - 1)]
    if any(row.cell.control == "annotator" for row in rows):
        remarks.append(
            "The best single annotator, of each language, is scored on their own items; their "
            "marks are part of the reference."
        )
    if found.changed:
        remarks.append(f"Files of another version than the card's: {named_ids(found.changed)}.")
    return ResultTable(
        key=f"bench-{card.name}",
        title=f"{card.title} ({card.licence})",
        columns=(
            *columns_of("text", "System"),
            *columns_of("count", "Items", "Failed"),
            *(known[name] for name in card.scores),
            difference,
            P_VALUE,
            _ALIKE,
            *(column for column, _ in used),
        ),
        rows=tuple(
            (
                row.cell.row,
                row.scored.n,
                row.contents[0]["failed"],
                *(row.mean(name) for name in card.scores),
                None if row.difference is None else difference_cells(row.difference)[0],
                row.p,
                "yes" if row.alike else "",
                *(cell(row) for _, cell in used),
            )
            for row in rows
        ),
        remarks=(*remarks, *([card.about] if card.about else [])),
        chart=Chart(kind="dots", x=metric, y="system") if any(r.scored.n for r in rows) else None,
    )


def _by_language(found: FoundDataset, rows: Sequence[_Row]) -> ResultTable:
    metric = found.card.scores[0]
    known = (lang for row in rows for lang in row.contents[0]["figures"])
    languages = [lang for lang in dict.fromkeys(known) if lang != "macro"]

    def cell(row: _Row, lang: str) -> MeanInterval | None:
        figures = row.contents[0]["figures"].get(lang)
        return figures and MeanInterval.model_validate(figures[metric])

    column = (SCORES | MEASURES)[metric]
    return ResultTable(
        key=f"languages-{found.card.name}",
        title=f"{found.card.title}: {column.title} by language",
        columns=(*columns_of("text", "System"), *columns_of("score", *languages)),
        rows=tuple((row.cell.row, *(cell(row, lang) for lang in languages)) for row in rows),
    )


def _certified(row: _Row) -> str | None:
    certificate = row.contents[0]["certificate"]
    if certificate is None:
        return None
    quality = certificate["answers"]
    sides = (quality[name] for name in ("sensitivity", "specificity"))
    told = [MISSING if side is None else figure(side) for side in sides]
    return f"answers: sensitivity {told[0]}, specificity {told[1]}"


def _took(content: dict[str, Any]) -> tuple[Cell, ...]:
    usage = content["usage"]
    called = (usage["calls"], usage["from_cache"], usage["cost"])
    row: tuple[Cell, ...] = (content["dataset"]["name"], content["row"], content["repeat"])
    return (*row, *called, content["seconds"])


def _written(table: ResultTable) -> Iterator[tuple[bool, list[str]]]:
    """Yield rows as texts, and whether each is among those not shown to be worse."""
    alike = next((at for at, c in enumerate(table.columns) if c.key == _ALIKE.key), None)
    for row in table.rows:
        texts = [write_cell(cell, c) for cell, c in zip(row, table.columns, strict=True)]
        if alike is None:
            yield False, texts
        else:
            yield texts.pop(alike) == "yes", texts


def _titles(table: ResultTable) -> list[str]:
    return [column.title for column in table.columns if column.key != _ALIKE.key]


def _markdown(table: ResultTable) -> str:
    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cell.replace('|', '/') for cell in cells)} |"

    tested = table.chart is not None
    titles = _titles(table)
    rule = ["---" if column.unit == "text" else "---:" for column in table.columns]
    lines = [f"## {table.title}", "", line(titles), line(rule[: len(titles)])]
    for bold, cells in _written(table):
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
        return text.replace("<", "$<$").replace("–", "--")

    titles = _titles(table)
    lines = [
        f"% {plain(table.title)}",
        rf"\begin{{tabular}}{{l{'r' * (len(titles) - 1)}}}",
        r"\hline",
        " & ".join(map(plain, titles)) + r" \\",
        r"\hline",
    ]
    for bold, cells in _written(table):
        told = list(map(plain, cells))
        if bold:
            told[3] = rf"\textbf{{{told[3]}}}"
        lines.append(" & ".join(told) + r" \\")
    return "\n".join([*lines, r"\hline", r"\end{tabular}", ""])


def _html(tables: Sequence[ResultTable]) -> str:
    body = "\n".join(as_html(table) + _forest(table) for table in tables)
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'><title>spanlab bench</title>"
        "<style>body{font:15px sans-serif;margin:2rem}td,th{padding:.2rem .6rem;text-align:left}"
        f"svg{{display:block;margin:1rem 0}}</style></head><body>\n{body}\n</body></html>\n"
    )


def _forest(table: ResultTable) -> str:
    """Return a picture of the tested metric: a point and its interval for each row."""
    if table.chart is None:
        return ""
    at = next(n for n, column in enumerate(table.columns) if column.key == table.chart.x)
    column, parts = table.columns[at], []
    left, width, step = 260, 420, 24
    means = [(str(row[0]), row[at]) for row in table.rows]
    known = [(name, mean) for name, mean in means if isinstance(mean, MeanInterval)]
    low = min([0.0, *(mean.low for _, mean in known)])

    def place(value: float) -> float:
        return round(left + width * (value - low) / (1 - low), 1)

    for number, (name, mean) in enumerate(known):
        y = step * number + 16
        parts.append(
            f"<text x='{left - 10}' y='{y + 4}' text-anchor='end'>{escape(name)}</text>"
            f"<line x1='{place(mean.low)}' x2='{place(mean.high)}' y1='{y}' y2='{y}' "
            f"stroke='#333'/><circle cx='{place(mean.mean)}' cy='{y}' r='4'/>"
        )
    bottom = step * len(known) + 8
    parts += [
        f"<line x1='{place(tick)}' x2='{place(tick)}' y1='4' y2='{bottom}' stroke='#ddd'/>"
        f"<text x='{place(tick)}' y='{bottom + 16}' text-anchor='middle'>{tick}</text>"
        for tick in (0, 0.25, 0.5, 0.75, 1)
    ]
    label = escape(f"{table.title}: {column.title} with 95 % intervals")
    return (
        f"<svg role='img' aria-label='{label}' width='{left + width + 40}' "
        f"height='{bottom + 24}' font-size='13'>{''.join(parts)}</svg>"
    )
