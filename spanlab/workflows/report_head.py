"""The head of a report as HTML: when it was made, of how much, and what all its items come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from html import escape

from spanlab.results import Column, ResultTable, counted, write_cell
from spanlab.schema import AnnotatorKind, Status
from spanlab.workflows.comparison_tables import ANNOTATOR, ScoredAnnotator, score_table
from spanlab.workflows.overview import Overview
from spanlab.workflows.rates import RateReport

_PEOPLE = 20  # whose scores are shown
_NAMED = 10  # people whose counts are shown one by one
_GROUPS = 50  # whose rates are shown
_KINDS = {
    AnnotatorKind.GOLD: "gold labels",
    AnnotatorKind.VOTE: "votes",
    AnnotatorKind.DETECTOR: "detectors",
}


def head_html(overview: Overview) -> str:
    """Return the figures of a report; every text of the data is escaped."""
    at, agreement = overview.at, overview.comparison.tables()[0]
    made = f"<time datetime='{at.isoformat(timespec='minutes')}'>{at:%Y-%m-%d %H:%M} UTC</time>"
    languages = ", ".join(
        f"{escape(lang)} {count:,}" for lang, count in sorted(overview.languages.items())
    )
    items = f"{counted(overview.n_items, 'item')} ({languages})" if languages else "no items"
    return (
        f"<p>Made on {made} of {items}.</p>\n"
        f"{_annotators(overview)}{_scores(overview.comparison.scores)}"
        f"{as_html(agreement) if agreement.rows else ''}"
        f"{_labels(overview)}{_rates(overview.rates) if overview.rates else ''}"
    )


def _annotators(overview: Overview) -> str:
    kinds = overview.comparison.kinds
    people = [name for name in overview.states if kinds[name] is AnnotatorKind.PERSON]
    rows = [
        (name, *_counts([name], overview))
        for kind in (*_KINDS, AnnotatorKind.PERSON)
        for name in overview.states
        if kinds[name] is kind and not (kind is AnnotatorKind.PERSON and len(people) > _NAMED)
    ]
    if len(people) > _NAMED:
        rows.append((f"{len(people):,} people together", *_counts(people, overview)))
    return as_html(
        ResultTable(
            key="annotators",
            title="Items by annotator",
            columns=(ANNOTATOR, *_counted("Done", "Skipped", "Failed", "Not annotated")),
            rows=tuple(rows),
            empty="Nobody has annotated them yet.",
        )
    )


def _counted(*titles: str) -> list[Column]:
    return [Column(key=title, title=title, unit="count") for title in titles]


def _counts(names: Sequence[str], overview: Overview) -> tuple[int, ...]:
    states = (Status.DONE, Status.SKIPPED, Status.FAILED)
    counts = [sum(overview.states[name].get(state, 0) for name in names) for state in states]
    return (*counts, len(names) * overview.n_items - sum(counts))


def _scores(scores: Sequence[ScoredAnnotator]) -> str:
    """Return the table of scores; empty where there is nobody but the reference."""
    others = [one for one in scores if one.kind is not AnnotatorKind.PERSON]
    people = [one for one in scores if one.kind is AnnotatorKind.PERSON]
    if not any(one.kind for one in scores):
        return ""
    shown = [*_best_first(others), *_best_first(people)[:_PEOPLE]]
    title = "Scores against the gold labels, means over languages with 95 % intervals"
    if len(people) > _PEOPLE:
        title += f"; of {len(people):,} people the best {_PEOPLE}"
    return as_html(score_table(shown, ("iou", "corr", "f1"), "iou", title))


def _best_first(scores: Sequence[ScoredAnnotator]) -> list[ScoredAnnotator]:
    return sorted(scores, key=lambda one: (-one.report.macro.iou.mean, one.name))


def _labels(overview: Overview) -> str:
    kinds = [
        kind
        for kind in (*_KINDS, AnnotatorKind.PERSON)
        if any(kind is k for _, k in overview.labels)
    ]
    totals: dict[str, int] = {}
    for (label, _), count in overview.labels.items():
        totals[label] = totals.get(label, 0) + count
    if not totals:
        return ""
    names = (_KINDS.get(kind, "people").capitalize() for kind in kinds)
    return as_html(
        ResultTable(
            key="labels",
            title="Spans by label",
            columns=(Column(key="label", title="Label"), *_counted(*names)),
            rows=tuple(
                (label, *(overview.labels.get((label, kind), 0) for kind in kinds))
                for label in sorted(totals, key=lambda label: (-totals[label], label))
            ),
        )
    )


def _rates(rates: RateReport) -> str:
    most = sorted(rates.groups, key=lambda group: -group.n)[:_GROUPS]
    groups = tuple(replace(group, labels={}) for group in rates.groups if group in most)
    left_out = len(rates.groups) - len(groups)
    more = (f"{left_out:,} more with fewer items.",) if left_out else ()
    shown = replace(rates, groups=groups, remarks=(*rates.remarks, *more), unlabelled=0)
    return as_html(shown.tables()[0])


def as_html(table: ResultTable) -> str:
    """Return a table with its title and remarks; every text is escaped, and there is no script."""
    told = "".join(f"<p class='about'>{escape(remark)}</p>\n" for remark in table.remarks)
    if not table.rows:
        return f"<p>{escape(table.empty)}</p>\n{told}"
    head = "".join(
        f"<th scope='col'{_about(column)}>{escape(column.title)}</th>" for column in table.columns
    )
    body = "".join(
        f"<tr><th scope='row' dir='auto'>{escape(name)}</th>"
        + "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        + "</tr>\n"
        for name, *cells in (map(write_cell, row, table.columns) for row in table.rows)
    )
    caption = f"<caption dir='auto'>{escape(table.title)}</caption>"
    return f"<table>{caption}\n<tr>{head}</tr>\n{body}</table>\n{told}"


def _about(column: Column) -> str:
    return f" title='{escape(column.about)}'" if column.about else ""
