"""The table of a benchmark: figures beside controls, with paired tests of the systems."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from spanlab.base.errors import InputError
from spanlab.bench.cards import BenchItem, DatasetCard, FoundDataset
from spanlab.bench.cells import (
    CellRun,
    cell_file,
    prediction_file,
    read_cell,
)
from spanlab.bench.files import ALIKE, BenchTable, write_table
from spanlab.bench.plan import BenchCell, BenchPlan, cells_of
from spanlab.bench.scoring import ScoredCell, score_predictions
from spanlab.models import Meter
from spanlab.output.figures import figure, named_ids
from spanlab.output.tables import (
    MISSING,
    P_VALUE,
    Cell,
    Chart,
    Column,
    MeanInterval,
    ResultTable,
    columns_of,
)
from spanlab.schema import set_aside_remark
from spanlab.scoring.answer_scores import ANSWER_SCORES
from spanlab.scoring.comparison import MeanDifference, holm
from spanlab.scoring.files import SCORES, difference_cells
from spanlab.scoring.verdicts import MEASURES

_ALPHA: Final = 0.05
_TEST: Final = (
    "Compared with the best system (people excluded), {best}: paired permutation tests, "
    "Holm-corrected for {count}. Bold, or yes: not significantly worse (.05)."
)


@dataclass(frozen=True)
class _Row:
    """A row: the first repeat's scores, and the contents of the cells of all repeats."""

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
        figure_there = self.contents[0]["figures"]["macro"].get(metric)  # earlier ones lack some
        return figure_there and MeanInterval.model_validate(figure_there)

    def spread(self, metric: str) -> str | None:
        macros = [content["figures"]["macro"].get(metric) for content in self.contents]
        macro_means = [macro["mean"] for macro in macros if macro]
        if len(self.contents) < 2 or not macro_means:
            return None
        return f"{figure(min(macro_means))} to {figure(max(macro_means))}"


def build_table(plan: BenchPlan) -> BenchTable:
    """Make the tables of the cells in a plan's folder, and do the paired tests.

    Raises:
        UsageError, InputError: a dataset is not there any more, or predictions are damaged.
    """
    tables: list[ResultTable] = []
    took: list[tuple[Cell, ...]] = []
    undone: list[str] = []
    for dataset in plan.find_datasets():
        items = plan.items(dataset)
        rows = _with_tests(_rows(plan, dataset, items, undone), dataset.card.scores[0])
        if rows:
            tables += [_main(dataset, rows), _by_language(dataset, rows)]
        took += [_took(content) for row in rows for content in row.contents]
    columns = (
        *columns_of("text", "Dataset", "System"),
        *columns_of("count", "Repeat", "Calls", "From cache"),
        Column(key="cost", title="Cost", unit="dollars"),
        Column(key="seconds", title="Seconds", unit="seconds", digits=1),
    )
    tables.append(ResultTable(key="took", title="Cost and time", columns=columns, rows=tuple(took)))
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
    for dataset in plan.find_datasets():
        items = plan.items(dataset)
        for cell in cells_of(plan, dataset, items):
            content = read_cell(cell_file(plan, cell))
            if content is None:
                if cell.file is None:
                    rows.append((cell.path, "missing"))
                    wrong.append(cell.path)
                continue
            try:
                scored = score_predictions(
                    dataset, items, prediction_file(plan, dataset.card, cell)
                )
                is_same = _has(scored.figures(dataset.card), content["figures"])
                state = "the same" if is_same else "differs from the saved result"
            except (InputError, OSError, ValueError, KeyError) as error:
                is_same, state = False, f"cannot be scored: {error}"
            rows.append((cell.path, state))
            if not is_same:
                wrong.append(cell.path)
    columns = tuple(columns_of("text", "Cell", "Computed again"))
    table = ResultTable(
        key="check", title="Predictions scored again", columns=columns, rows=tuple(rows)
    )
    return BenchTable((table,), tuple(wrong))


def _rows(
    plan: BenchPlan, dataset: FoundDataset, items: list[BenchItem], undone: list[str]
) -> list[_Row]:
    runner = CellRun(plan, Meter())
    repeats: defaultdict[str, list[tuple[BenchCell, dict[str, Any]]]] = defaultdict(list)
    for cell in cells_of(plan, dataset, items):
        content = runner.read_kept(dataset, items, cell)
        if content is not None:
            repeats[cell.row].append((cell, content))
        elif cell.file is None:
            undone.append(cell.path)
    rows = []
    for several in repeats.values():
        cell = several[0][0]
        scored = score_predictions(dataset, items, prediction_file(plan, dataset.card, cell))
        rows.append(_Row(cell, scored, tuple(content for _, content in several)))
    return rows


def _with_tests(rows: list[_Row], metric: str) -> list[_Row]:
    """Return the rows with their differences from the best that competes, and Holm's p."""

    def height(row: _Row) -> float:
        mean = row.mean(metric)
        return -2.0 if mean is None else mean.mean

    if not rows:
        return []
    best = max([row for row in rows if row.competes] or rows, key=height)
    differences = {
        row.cell.row: row.scored.minus(best.scored, metric) for row in rows if row is not best
    }
    tested = {name: d.p for name, d in differences.items() if d is not None}
    adjusted = dict(zip(tested, holm(list(tested.values())), strict=True))
    return [
        replace(row, difference=differences.get(row.cell.row), p=adjusted.get(row.cell.row))
        for row in rows
    ]


def _main(dataset: FoundDataset, rows: Sequence[_Row]) -> ResultTable:
    card = dataset.card
    metric = card.scores[0]
    scored_columns = _columns_of(card)
    best = next((row.cell.row for row in rows if row.alike and row.difference is None), "")
    optional: tuple[tuple[Column, Callable[[_Row], Cell]], ...] = (
        (Column(key="spread", title="Repeats"), lambda row: row.spread(metric)),
        (Column(key="certificate", title="Certificate"), _certificate_in_words),
    )
    used = [(column, cell) for column, cell in optional if any(map(cell, rows))]
    difference = scored_columns[metric].model_copy(
        update={"key": "difference", "title": "Minus the best", "unit": "difference"}
    )
    remarks = [_TEST.format(best=best, count=len(rows) - 1)]
    if any(row.cell.control == "annotator" for row in rows):
        remarks.append(
            "The best single annotator, of each language, is scored on their own items; their "
            "marks are part of the reference."
        )
    remarks += [
        set_aside_remark(row.cell.row, n)
        for row in rows
        if (n := row.contents[0].get("learnt"))  # earlier versions did not set aside
    ]
    if dataset.lacks_passages:
        remarks.append(f"No passages were found: the card looks for {card.contexts} below --data.")
    if dataset.changed:
        remarks.append(f"Files of another version than the card's: {named_ids(dataset.changed)}.")
    return ResultTable(
        key=f"bench-{card.name}",
        title=f"{card.title} ({card.licence})",
        columns=(
            *columns_of("text", "System"),
            *columns_of("count", "Items", "Failed"),
            *(scored_columns[name] for name in card.scores),
            difference,
            P_VALUE,
            ALIKE,
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


def _has(figures: Mapping[str, Any], saved: Mapping[str, Any]) -> bool:
    """Say whether figures are those that were saved; earlier versions saved fewer of a part."""
    return figures.keys() == saved.keys() and all(
        of.items() <= figures[name].items() for name, of in saved.items()
    )


def _columns_of(card: DatasetCard) -> dict[str, Column]:
    return MEASURES | ANSWER_SCORES if card.level == "answers" else SCORES | MEASURES


def _by_language(dataset: FoundDataset, rows: Sequence[_Row]) -> ResultTable:
    metric = dataset.card.scores[0]
    keys = dict.fromkeys(key for row in rows for key in row.contents[0]["figures"])
    languages = [key for key in keys if key != "macro"]

    def cell(row: _Row, lang: str) -> MeanInterval | None:
        figures = row.contents[0]["figures"].get(lang)
        return figures and MeanInterval.model_validate(figures[metric])

    column = _columns_of(dataset.card)[metric]
    return ResultTable(
        key=f"languages-{dataset.card.name}",
        title=f"{dataset.card.title}: {column.title} by language",
        columns=(*columns_of("text", "System"), *columns_of("score", *languages)),
        rows=tuple((row.cell.row, *(cell(row, lang) for lang in languages)) for row in rows),
    )


def _certificate_in_words(row: _Row) -> str | None:
    certificate = row.contents[0]["certificate"]
    if certificate is None:
        return None
    quality = certificate["answers"]
    sides = (quality[name] for name in ("sensitivity", "specificity"))
    sensitivity, specificity = (MISSING if side is None else figure(side["mean"]) for side in sides)
    stale = (
        f"out of date (other {', '.join(certificate['stale'])}); " if certificate["stale"] else ""
    )
    return f"{stale}answers: sensitivity {sensitivity}, specificity {specificity}"


def _took(content: dict[str, Any]) -> tuple[Cell, ...]:
    usage = content["usage"]
    called = (usage["calls"], usage["from_cache"], usage["cost"])
    row: tuple[Cell, ...] = (content["dataset"]["name"], content["row"], content["repeat"])
    return (*row, *called, content["seconds"])


def finish_table(plan: BenchPlan) -> BenchTable:
    """Write the tables of the cells in a plan's folder into it, and return them."""
    table = build_table(plan)
    write_table(table, plan.output)
    return table
