"""Scores against a reference, and agreement of annotators."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from html import escape

import streamlit as st

from spanlab.output.figures import counted, figure
from spanlab.output.tables import ONE_ITEM, MeanInterval, ResultTable
from spanlab.schema import AnnotatorKind
from spanlab.scoring.agreement import clustered
from spanlab.scoring.annotator_tables import (
    MAIN_SCORES,
    PAIR_SCORES,
    ScoredAnnotator,
    answer_table,
    calibration_table,
    label_table,
    language_table,
    more_table,
    pair_table,
    score_table,
)
from spanlab.scoring.annotators import DatasetComparison
from spanlab.scoring.answer_scores import ANSWER_SCORES
from spanlab.scoring.calibration import Confusion
from spanlab.scoring.files import SCORES
from spanlab.ui.charts import pair_chart
from spanlab.ui.common import plain
from spanlab.ui.dots import HEAT, INK, best, ranked
from spanlab.ui.tables import csv_button, show_chart, show_grid, show_remarks, show_table

_MOST = 20  # people, and others, in a chart
_MOST_PER_LANGUAGE = 5  # in each of its small charts
_MAIN_OF_ANSWERS = 3  # scores of whole answers that are shown at first: precision, recall, F1
_MOST_CURVES = 7  # that can be told apart
_PICTURE = 520  # pixels, the height of the box that the picture scrolls in
# The headings stay while the cells scroll; the darker a cell, the higher the agreement.
_STYLE = (
    """<style>
.pairs { max-height: 30rem; overflow: auto; width: fit-content; max-width: 100%; }
.pairs table { border-collapse: separate; border-spacing: 1px; font-size: .75rem; }
.pairs td { min-width: 2.9rem; text-align: center; padding: .1rem .2rem; line-height: 1.25;
  font-variant-numeric: tabular-nums; }
.pairs tbody td[style] { color: INK;
  background: color-mix(in srgb, MUCH calc(var(--v) * 60%), LITTLE); }
.pairs small { display: block; font-size: .65rem; }
.pairs th { background: Canvas; color: CanvasText; font-weight: 500; z-index: 1;
  position: sticky; }
.pairs thead td { background: Canvas; position: sticky; top: 0; left: 0; z-index: 2; }
.pairs thead th { top: 0; vertical-align: bottom; padding: .2rem 0; }
.pairs thead span { writing-mode: vertical-rl; transform: rotate(180deg); max-height: 8rem;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.pairs tbody th { left: 0; text-align: right; padding-right: .4rem; max-width: 11rem;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
</style>""".replace("INK", INK[0])
    .replace("LITTLE", HEAT[0])
    .replace("MUCH", HEAT[1])
)


def show_scores(comparison: DatasetComparison, names: Collection[str]) -> None:
    """Draw the macro scores of the annotators chosen, the best first, and one metric as a chart."""
    scores = [score for score in comparison.scores if score.kind is None or score.name in names]
    answers = [one for one in comparison.answers.scores if one.kind is None or one.name in names]
    has_answers = any(one.kind for one in answers)
    if not any(score.kind for score in scores):
        if has_answers:
            show_table(answer_table(answers))
            st.caption("No scores of spans: no item has marked places on both sides.")
            return
        st.info(
            "Nobody to score: none of the others chosen under Annotators has finished an "
            f"item that {plain(comparison.reference or '')} has finished.",
            icon=":material/group:",
        )
        return
    metric, columns, per_language = _choose_metric(scores)
    st.caption(SCORES[metric].about)
    table = ranked(score_table(scores, columns, metric))
    show_grid(table, "Mean scores per annotator over all languages, with 95 % intervals")
    if not all(isinstance(row[3], MeanInterval) for row in table.rows):
        st.caption(ONE_ITEM)
    drawn = language_table(scores, metric) if per_language else table
    _draw(drawn, metric, per_language=per_language)
    if has_answers:
        n_shown = _MAIN_OF_ANSWERS if len(columns) == len(MAIN_SCORES) else None
        show_table(answer_table(answers, [*ANSWER_SCORES][:n_shown]))
    more = more_table(scores)
    if more.rows:
        show_grid(more, "Means of packages' metrics over all languages, with 95 % intervals")
    show_remarks(more)
    if comparison.calibrations and _is_opened("Calibration of detectors", ":material/show_chart:"):
        _show_calibration(comparison, names)
    labels = {name: confusion for name, confusion in comparison.labels.items() if name in names}
    if labels and _is_opened("Labels against the reference", ":material/label:"):
        _show_labels(comparison.reference or "", labels)


def _choose_metric(scores: Sequence[ScoredAnnotator]) -> tuple[str, Sequence[str], bool]:
    """Ask for the metric drawn, which others are shown, and whether languages are apart."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = st.container(width="content")
        shows_all = st.toggle("More scores", key="spanlab.scores.more")
        columns = tuple(dict.fromkeys((*MAIN_SCORES, *(SCORES if shows_all else ()))))
        metric = place.segmented_control(
            "Score",
            columns,
            default="iou",
            required=True,
            format_func=lambda name: SCORES[name].title,
            key=f"spanlab.metric{'.all' * shows_all}",
        )
        languages = {row.lang for score in scores for row in score.report.languages}
        per_language = len(languages) > 1 and st.toggle("Per language", key="spanlab.per-language")
    return metric, columns, per_language


def _is_opened(label: str, icon: str) -> bool:
    """Say whether people want to see a part of the page that is not drawn unless they do."""
    return st.toggle(f"{icon} {label}", key=f"spanlab.scores.{label}")


def _draw(table: ResultTable, metric: str, *, per_language: bool) -> None:
    """Draw the best people and all machines, never more rows than can be read."""
    max_people = _MOST_PER_LANGUAGE if per_language else _MOST
    drawn = best(table, max_people)
    if not drawn.rows:
        st.caption("None of those chosen under Annotators has this score.")
        return
    n_people = len({row[0] for row in table.rows if row[1] == "person"})
    if n_people > max_people:
        st.caption(
            "The chart shows the detectors and votes, then the best "
            f"{max_people} of {n_people:,} people{' in each language' if per_language else ''}; "
            "the download has all. Choose who takes part under Annotators, above."
        )
    where = " and language" if per_language else ""
    show_chart(drawn, f"{SCORES[metric].title} per annotator{where} with 95 % intervals")
    csv_button(table)


def _show_calibration(comparison: DatasetComparison, names: Collection[str]) -> None:
    calibrations = [curve for curve in comparison.calibrations if curve.name in names][
        :_MOST_CURVES
    ]
    if not calibrations:
        st.caption("No detector is among those chosen under Annotators.")
        return
    errors = "; ".join(
        f"{plain(detector.name)}: expected calibration error {figure(detector.calibration.error)}"
        for detector in calibrations
    )
    st.caption(
        "Each detector's probability against the share of people (or, where there are none, the "
        "gold labels' probability) that mark the same characters. On the dashed line both are "
        f"the same; below it the detector is too sure. {errors}."
    )
    table = calibration_table(calibrations)
    show_chart(table, "Probability against share of people, per detector")
    csv_button(table)


def _show_labels(reference: str, labels: Mapping[str, Confusion]) -> None:
    st.caption(
        f"Characters by the label of {plain(reference)} (rows) and of those chosen under "
        f"Annotators (columns), {counted(len(labels), 'annotator')} together."
    )
    table = label_table(reference, labels)
    show_chart(table, "Share of the reference's characters by the label that others gave them")
    csv_button(table)


def show_agreement(comparison: DatasetComparison, names: Collection[str]) -> None:
    """Draw alpha per language and group, and the matrix of those chosen, detectors first."""
    (table,) = comparison.tables()
    show_table(table, icon=":material/group:")
    if table.rows:
        people = {name for name, kind in comparison.kinds.items() if kind is AnnotatorKind.PERSON}
        _show_pairs(comparison, names, people)


def _show_pairs(
    comparison: DatasetComparison, names: Collection[str], people: Collection[str]
) -> None:
    """Draw the matrix of pairs, those who agree beside each other, people after the others."""
    which = st.segmented_control(
        "Agreement of pairs",
        PAIR_SCORES,
        default="iou",
        required=True,
        format_func=lambda name: SCORES[name].title,
        key="spanlab.pairs",
        help="Mean over the items that both have finished; an item on which both marked nothing "
        "counts 1.",
    )
    drawn = [pair for pair in comparison.everybody.pairs if {pair.a, pair.b} <= set(names)]
    if not drawn:
        st.caption("No two of those chosen under Annotators have finished the same item.")
        return
    order = sorted(clustered(drawn), key=lambda name: name in people)
    st.caption(
        "In each cell the figure and, small, the number of items that both have finished. "
        "Gold labels, votes and detectors come first; those who agree are side by side. The "
        "matrix scrolls."
    )
    table = pair_table(drawn)
    st.html(matrix_html(table, which, order))
    csv_button(table)
    if st.toggle(":material/image: As a picture", key="spanlab.pairs.picture"):
        with st.container(height=_PICTURE, border=False):
            st.altair_chart(
                pair_chart(table, which, order),
                alt=f"Mean {SCORES[which].title} of every pair of annotators; "
                "the table above has the figures",
                width="content",
            )


def matrix_html(pairs: ResultTable, which: str, order: Sequence[str]) -> str:
    """Return the matrix as a table that keeps its headings in sight; every name is escaped.

    It is no grid as other tables are: those have no second figure in a cell, no shading and no
    upright headings, and of a hundred annotators they show a handful at once.
    """
    value = 3 + PAIR_SCORES.index(which)
    values = {
        names: (float(str(row[value])), int(str(row[2])))
        for row in pairs.rows
        for names in ((row[0], row[1]), (row[1], row[0]))
    }
    names = [escape(name) for name in order]
    head = "".join(f"<th scope='col'><span title='{name}'>{name}</span></th>" for name in names)
    lines = (
        f"<tr><th scope='row' title='{name}'>{name}</th>"
        + "".join(_cell_html(values.get((row, column))) for column in order)
        + "</tr>"
        for row, name in zip(order, names, strict=True)
    )
    return (
        f"{_STYLE}<div class='pairs' tabindex='0' role='region' aria-label='Agreement of pairs'>"
        f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        "</div>"
    )


def _cell_html(agreement: tuple[float, int] | None) -> str:
    if agreement is None:
        return "<td></td>"
    value, n = agreement
    return f"<td style='--v:{value:.2f}'>{figure(value, 2)}<small>{n:,}</small></td>"
