"""Claims and rates: what people choose, and its tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import streamlit as st

from spanlab.output.figures import counted, figure
from spanlab.output.tables import ONE_ITEM, MeanInterval
from spanlab.scoring.annotator_tables import claim_measures, claim_table
from spanlab.scoring.annotators import DatasetComparison
from spanlab.scoring.verdicts import MEASURES, ClaimComparison, ScoredClaims, verdict_table
from spanlab.ui.common import plain
from spanlab.ui.dots import best, ranked
from spanlab.ui.tables import csv_button, show_chart, show_grid

_MOST = 20  # people, and others, in a chart of verdicts


def show_claims(compared: DatasetComparison, reference: str | None, names: Collection[str]) -> None:
    """Draw the scores of verdicts and the agreement on them.

    Args:
        compared: the annotators compared.
        reference: whose verdicts count as right; None gives agreement alone.
        names: the annotators to draw.
    """
    comparison = compared.claims
    if not comparison.n:
        st.info(
            "Nobody has judged claims here yet: run a detector that judges claims, or write and "
            "judge them in Review.",
            icon=":material/fact_check:",
        )
        return
    _show_verdict_agreement(comparison, compared.judges)
    scores = [scored for scored in comparison.scores if scored.name in names]
    if reference is None or not scores:
        st.caption(
            "Scores need a reference with verdicts on the claims of others: choose it above."
        )
        return
    st.caption(
        f"Against the verdicts of {plain(reference)}; a claim that an annotator lacks counts as "
        "wrong, one that either side calls inconclusive is left out. Intervals are bootstrap over "
        "items."
    )
    measure = _choose_measure(scores)
    table = ranked(claim_table(scores, measure))
    show_grid(table, "Scores of verdicts per annotator, with 95 % intervals")
    if any(not isinstance(row[-1], MeanInterval) for row in table.rows):
        st.caption(ONE_ITEM)
    show_chart(best(table, _MOST), f"{MEASURES[measure].title} of verdicts per annotator")
    csv_button(table)
    order = [row[0] for row in table.rows]
    _show_one(sorted(scores, key=lambda scored: order.index(scored.name)))


def _show_verdict_agreement(comparison: ClaimComparison, judges: str) -> None:
    groups = {"people": comparison.persons, judges: comparison.independent}
    parts = [
        f"{name} {'undefined' if agreed.alpha is None else figure(agreed.alpha)} "
        f"on {counted(agreed.n, 'claim')}"
        for name, agreed in groups.items()
        if agreed.n
    ]
    st.markdown(
        "**Krippendorff's alpha of verdicts:** "
        f"{'; '.join(parts) or 'no claim has two verdicts yet'}.",
        help="1 is perfect agreement, 0 what chance would give; undefined where all verdicts "
        "are the same.",
    )


def _choose_measure(scores: Sequence[ScoredClaims]) -> str:
    measure: str = st.segmented_control(
        "Score of verdicts",
        claim_measures(scores),
        default="balanced_accuracy",
        required=True,
        format_func=lambda name: MEASURES[name].title,
        key="spanlab.claims.measure",
    )
    st.caption(MEASURES[measure].about)
    return measure


def _show_one(scores: Sequence[ScoredClaims]) -> None:
    """Draw one annotator's figures per verdict, and its difference from another."""
    by_name = {scored.name: scored for scored in scores}
    left, right = st.columns(2)
    name = left.selectbox("Per verdict", list(by_name), key="spanlab.claims.one")
    scored = by_name[name]
    other_names = [None, *(other for other in by_name if other != name)]
    other = right.selectbox(
        "Compared with",
        other_names,
        format_func=lambda name: name or "Nobody",
        key="spanlab.claims.two",
    )
    if other is not None:
        _show_difference(scored, by_name[other])
    table = verdict_table(scored.report)
    show_grid(table, f"Precision, recall and F1 of {name} per verdict")
    csv_button(table)


def _show_difference(first: ScoredClaims, second: ScoredClaims) -> None:
    difference = first.minus(second)
    if difference is None:
        st.caption(f"{plain(first.name)} and {plain(second.name)} judged no item both.")
        return
    mean, low, high = (
        figure(value, signed=True)
        for value in (difference.difference, difference.low, difference.high)
    )
    st.markdown(
        f"Accuracy of {plain(first.name)} minus {plain(second.name)}: **{plain(mean)}** "
        f"{plain(f'[{low}, {high}]')}, p {figure(difference.p)}.",
        help="On the claims of items that both judged: paired bootstrap interval, p from a "
        "permutation test.",
    )
