"""Agreement of annotators: Krippendorff's alpha, and the matrix of all pairs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from html import escape

import pandas as pd
import streamlit as st

from spanlab.results import figure
from spanlab.schema import Kind
from spanlab.ui.chart_style import HEAT, INK
from spanlab.ui.downloads import csv_button, show_chart
from spanlab.ui.score_charts import pair_chart
from spanlab.ui.score_views import MACRO, number
from spanlab.workflows.comparing import DatasetComparison, Pair, clustered
from spanlab.workflows.wording import unsigned_zero

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


def agreement_table(comparison: DatasetComparison) -> pd.DataFrame:
    """Return Krippendorff's alpha, a row per group of annotators and a column per language."""
    groups = {"Persons": comparison.persons, "Persons and detectors": comparison.independent}
    rows = []
    for name, found in groups.items():
        if found.n:
            row: dict[str, object] = {
                "Group": name,
                "Items": found.n,
                MACRO: unsigned_zero(found.alpha),
            }
            rows.append(row | {each.lang: unsigned_zero(each.alpha) for each in found.languages})
    return pd.DataFrame(rows)


def show_agreement(comparison: DatasetComparison, chosen: Collection[str]) -> None:
    """Draw alpha per group and language, and the matrix of those chosen, detectors first."""
    table = agreement_table(comparison)
    if table.empty:
        st.info(
            "Agreement needs items that two or more annotators have finished.",
            icon=":material/group:",
        )
        return
    st.markdown(
        "**Krippendorff's alpha**",
        help="Over characters, marked or not. 1 is perfect agreement, 0 what marking at random "
        "would give, below 0 systematic disagreement. Empty where it is undefined: all marked "
        "everything, or all nothing.",
    )
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "Group": st.column_config.TextColumn(pinned=True),
            **{column: number(column) for column in table.columns[2:]},
        },
        alt="Krippendorff's alpha per group of annotators and language",
    )
    people = {name for name, kind in comparison.kinds.items() if kind is Kind.PERSON}
    _pairs(comparison.everybody.pairs, chosen, people)


def _pairs(pairs: Sequence[Pair], chosen: Collection[str], people: Collection[str]) -> None:
    """Draw the matrix of pairs, those who agree beside each other, people after the others."""
    which = st.segmented_control(
        "Agreement of pairs",
        ["IoU", "F1"],
        default="IoU",
        required=True,
        key="spanlab.pairs",
        help="Mean over the items that both have finished; an item on which both marked nothing "
        "counts 1.",
    )
    both = [pair for pair in pairs if {pair.a, pair.b} <= set(chosen)]
    if not both:
        st.caption("No two of those chosen under Annotators have finished the same item.")
        return
    order = sorted(clustered(both), key=lambda name: name in people)
    st.caption(
        "In each cell the figure and, small, the number of items that both have finished. "
        "Gold labels, votes and detectors come first; those who agree stand side by side. The "
        "matrix scrolls."
    )
    st.html(matrix_html(both, which, order))
    csv_button(pair_table(both), "pairs")
    if st.toggle(":material/image: As a picture", key="spanlab.pairs.picture"):
        with st.container(height=_PICTURE, border=False):
            show_chart(
                pair_chart(both, which, order),
                pair_table(both),
                f"pairs-{which.lower()}",
                alt=f"Mean {which} of every pair of annotators; the table above has the figures",
                width="content",
            )


def pair_table(pairs: Sequence[Pair]) -> pd.DataFrame:
    """Return a row per pair: both annotators, the number of common items, IoU and F1."""
    return pd.DataFrame(
        [{"A": p.a, "B": p.b, "Common items": p.n, "IoU": p.iou, "F1": p.f1} for p in pairs]
    )


def matrix_html(pairs: Sequence[Pair], which: str, order: Sequence[str]) -> str:
    """Return the matrix as a table that keeps its headings in sight; every name is escaped."""
    values = {
        names: (getattr(pair, which.lower()), pair.n)
        for pair in pairs
        for names in ((pair.a, pair.b), (pair.b, pair.a))
    }
    names = [escape(name) for name in order]
    head = "".join(f"<th scope='col'><span title='{name}'>{name}</span></th>" for name in names)
    lines = (
        f"<tr><th scope='row' title='{name}'>{name}</th>"
        + "".join(_cell(values.get((row, column))) for column in order)
        + "</tr>"
        for row, name in zip(order, names, strict=True)
    )
    return (
        f"{_STYLE}<div class='pairs' tabindex='0' role='region' aria-label='Agreement of pairs'>"
        f"<table><thead><tr><td></td>{head}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
        "</div>"
    )


def _cell(found: tuple[float, int] | None) -> str:
    if found is None:
        return "<td></td>"
    value, n = found
    return f"<td style='--v:{value:.2f}'>{figure(value, 2)}<small>{n:,}</small></td>"
