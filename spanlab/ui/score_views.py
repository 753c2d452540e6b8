"""Scores and agreement as tables and charts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import pandas as pd
import streamlit as st

from spanlab.ui.counts import kind_in_words
from spanlab.ui.score_charts import MACRO, NAMES, pair_chart, score_chart
from spanlab.workflows.comparing import METRICS, DatasetComparison, MeanInterval, Scored
from spanlab.workflows.wording import figure, unsigned_zero

MEANING = {
    "iou": "Intersection over union of the characters taken for hallucinated. 1 is the same "
    "characters, 0 none in common.",
    "corr": "Spearman correlation of the probabilities over all characters. 1 is the same order, "
    "0 no relation.",
    "max_iou": "The best IoU with any single person; for a person, with any other person.",
    "precision": "Share of the marked characters that the reference marks too.",
    "recall": "Share of the reference's characters that are marked.",
    "f1": "Harmonic mean of precision and recall, in characters.",
    "span_f1": "F1 of whole spans with both edges exactly right.",
}
_MAIN = ("iou", "corr", "max_iou", "f1")


def score_table(scores: Sequence[Scored]) -> pd.DataFrame:
    """Return the macro scores, a row per annotator: each score and its 95 % interval.

    Args:
        scores: in the order of the rows.

    Returns:
        Columns "Annotator", "Kind", "Items", then a number and an interval per metric; a metric
        that an annotator lacks is empty.
    """
    rows = []
    for scored in scores:
        macro = scored.report.macro
        row: dict[str, object] = {
            "Annotator": scored.name,
            "Kind": "baseline" if scored.kind is None else kind_in_words(scored.kind),
            "Items": macro.n,
        }
        for metric in _MAIN:
            estimate: MeanInterval | None = getattr(macro, metric)
            row[NAMES[metric]] = _mean(estimate)
            row[f"{NAMES[metric]} 95 %"] = None if estimate is None else _interval(estimate)
        rows.append(row)
    return pd.DataFrame(rows)


def language_table(scores: Sequence[Scored], metric: str) -> pd.DataFrame:
    """Return one metric with a row per annotator and a column per language, macro first."""
    rows = []
    for scored in scores:
        macro: MeanInterval | None = getattr(scored.report.macro, metric)
        row: dict[str, object] = {
            "Annotator": scored.name,
            MACRO: _mean(macro),
        }
        for means in scored.report.languages:
            estimate: MeanInterval | None = getattr(means, metric)
            row[means.lang] = _mean(estimate)
        rows.append(row)
    return pd.DataFrame(rows)


def show_scores(comparison: DatasetComparison, chosen: Collection[str]) -> None:
    """Draw the macro scores of the annotators chosen, then one metric as chart and table."""
    scores = [one for one in comparison.scores if one.kind is None or one.name in chosen]
    st.dataframe(
        score_table(scores),
        hide_index=True,
        column_config={
            "Annotator": st.column_config.TextColumn(pinned=True),
            **{NAMES[m]: _number(NAMES[m], MEANING[m]) for m in _MAIN},
            **{
                f"{NAMES[m]} 95 %": st.column_config.TextColumn("95 %", width="small")
                for m in _MAIN
            },
        },
        alt="Mean scores per annotator over all languages, with 95 % intervals",
    )
    metric = st.segmented_control(
        "Score per language",
        METRICS,
        default="iou",
        required=True,
        format_func=NAMES.__getitem__,
        key="spanlab.metric",
    )
    st.caption(MEANING[metric])
    st.altair_chart(
        score_chart(scores, metric),
        alt=f"{NAMES[metric]} per annotator and language with 95 % intervals; the table below "
        "has the figures",
    )
    table = language_table(scores, metric)
    with st.expander("Figures per language", icon=":material/table:"):
        st.dataframe(
            table,
            hide_index=True,
            column_config={
                "Annotator": st.column_config.TextColumn(pinned=True),
                **{column: _number(column) for column in table.columns[1:]},
            },
            alt=f"{NAMES[metric]} per annotator and language",
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
    """Draw alpha per group and language, and the matrix of the pairs of those chosen."""
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
            **{column: _number(column) for column in table.columns[2:]},
        },
        alt="Krippendorff's alpha per group of annotators and language",
    )
    which = st.segmented_control(
        "Agreement of pairs",
        ["IoU", "F1"],
        default="IoU",
        required=True,
        key="spanlab.pairs",
        help="Mean over the items that both have finished; an item on which both marked nothing "
        "counts 1.",
    )
    pairs = [pair for pair in comparison.everybody.pairs if {pair.a, pair.b} <= set(chosen)]
    if not pairs:
        st.caption("No two of those chosen under Annotators have finished the same item.")
        return
    st.altair_chart(
        pair_chart(pairs, which),
        width="content",
        alt=f"Mean {which} of every pair of annotators",
    )


def _mean(estimate: MeanInterval | None) -> float | None:
    return None if estimate is None else unsigned_zero(estimate.mean)


def _interval(estimate: MeanInterval) -> str:
    return f"{figure(estimate.low, 2)} – {figure(estimate.high, 2)}"


def _number(label: str, meaning: str | None = None) -> Any:
    return st.column_config.NumberColumn(label, format="%.3f", help=meaning)
