"""Verdicts on claims: scores against a reference, per verdict, paired, and agreement."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd
import streamlit as st

from spanlab.results import ONE_ITEM, MeanInterval, counted, figure
from spanlab.ui.common import plain
from spanlab.ui.counts import kind_in_words
from spanlab.ui.downloads import csv_button, show_chart
from spanlab.ui.score_charts import Dot, Wording, best, dot_plot, places
from spanlab.ui.score_views import number
from spanlab.workflows.claim_comparing import ClaimComparison, ScoredClaims

_MOST = 20  # people, and others, in the chart
_MEANS = {
    "balanced_accuracy": "Balanced accuracy",
    "accuracy": "Accuracy",
    "macro_f1": "Macro F1",
    "auroc": "AUROC",
}
_MEANING = {
    "balanced_accuracy": "Mean over the verdicts of the share of their claims that was found.",
    "accuracy": "Share of claims with the reference's verdict.",
    "macro_f1": "Mean over the verdicts of their F1.",
    "auroc": "Chance that a supported claim has a higher soft score than another; .5 is chance. "
    "Empty where a claim has no soft score.",
}


def show_claims(found: ClaimComparison, reference: str | None, chosen: Collection[str]) -> None:
    """Draw the scores of verdicts and the agreement on them.

    Args:
        found: the verdicts compared.
        reference: whose verdicts count as right; None gives agreement alone.
        chosen: the annotators to draw.
    """
    if not found.n:
        st.info(
            "Nobody has judged claims here yet: run a detector that judges claims, or write and "
            "judge them in Review.",
            icon=":material/fact_check:",
        )
        return
    _agreement(found)
    scores = [one for one in found.scores if one.name in chosen]
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
    measure = _measure(scores)
    place = places(_dots(scores, measure))
    scores.sort(key=lambda one: place.get(one.name, len(place)))  # those without it come last
    _scores(scores, measure)
    _one(scores)


def claim_table(scores: Sequence[ScoredClaims]) -> pd.DataFrame:
    """Return a row per annotator: claims, searches if any, each score with its 95 % interval.

    A score that nobody has is left out; of one item alone there is no interval.
    """
    searched = any(one.searches or one.recalled for one in scores)
    rows = []
    for one in scores:
        row: dict[str, object] = {
            "Annotator": one.name,
            "Kind": kind_in_words(one.kind),
            "Claims": one.report.n,
            "Without a verdict": one.report.unjudged,
            "Inconclusive": one.report.inconclusive,
        }
        if searched:
            row |= {"Tool calls": one.searches, "Recalled": one.recalled}
        for name in _measures(scores):
            mean: MeanInterval | None = getattr(one.report, name)
            row[_MEANS[name]] = None if mean is None else mean.mean
            row[f"{_MEANS[name]} 95 %"] = (
                None
                if mean is None or _items(one) == 1
                else f"{figure(mean.low, 2)} – {figure(mean.high, 2)}"
            )
        rows.append(row)
    return pd.DataFrame(rows)


def verdict_table(one: ScoredClaims) -> pd.DataFrame:
    """Return a row per verdict: claims of the reference and predicted, precision, recall, F1."""
    return pd.DataFrame(
        {
            "Verdict": each.verdict,
            "Reference": each.gold,
            "Predicted": each.predicted,
            "Precision": each.precision,
            "Recall": each.recall,
            "F1": each.f1,
        }
        for each in one.report.verdicts
    )


def _agreement(found: ClaimComparison) -> None:
    groups = {"People": found.persons, "People and detectors": found.independent}
    parts = [
        f"{name.lower()} {figure(each.alpha)} on {counted(each.n, 'claim')}"
        if each.alpha is not None
        else f"{name.lower()} undefined on {counted(each.n, 'claim')}"
        for name, each in groups.items()
        if each.n
    ]
    said = "; ".join(parts) or "no claim has two verdicts yet"
    st.markdown(
        f"**Krippendorff's alpha of verdicts:** {said}.",
        help="1 is perfect agreement, 0 what chance would give; undefined where all verdicts "
        "are the same.",
    )


def _scores(scores: Sequence[ScoredClaims], measure: str) -> None:
    table = claim_table(scores)
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "Annotator": st.column_config.TextColumn(pinned=True),
            "Tool calls": st.column_config.NumberColumn(
                help="Calls of tools and searches for these items, as their traces tell."
            ),
            "Recalled": st.column_config.NumberColumn(
                help="Passages that a memory had for them, which may spare searches."
            ),
            **{title: number(title, _MEANING[name]) for name, title in _MEANS.items()},
            **{
                f"{title} 95 %": st.column_config.TextColumn("95 %", width="small")
                for title in _MEANS.values()
            },
        },
        placeholder="–",
        alt="Scores of verdicts per annotator, with 95 % intervals",
    )
    if any(_items(one) == 1 for one in scores):
        st.caption(ONE_ITEM)
    dots = _dots(scores, measure)
    if dots:
        show_chart(
            dot_plot(best(dots, _MOST), Wording("Annotator", _MEANS[measure])),
            table,
            "claims",
            alt=f"{_MEANS[measure]} of verdicts per annotator; the table above has the figures",
        )


def _measure(scores: Sequence[ScoredClaims]) -> str:
    measure: str = st.segmented_control(
        "Score of verdicts",
        _measures(scores),
        default="balanced_accuracy",
        required=True,
        format_func=_MEANS.__getitem__,
        key="spanlab.claims.measure",
    )
    st.caption(_MEANING[measure])
    return measure


def _measures(scores: Sequence[ScoredClaims]) -> list[str]:
    """Return the measures that somebody has."""
    return [name for name in _MEANS if any(getattr(one.report, name) for one in scores)]


def _dots(scores: Sequence[ScoredClaims], measure: str) -> list[Dot]:
    return [
        Dot(one.name, kind_in_words(one.kind), mean, _items(one))
        for one in scores
        if (mean := getattr(one.report, measure)) is not None
    ]


def _items(one: ScoredClaims) -> int:
    """Return the number of items that the claims come from, which is what is resampled."""
    return len({claim.item for claim in one.judged})


def _one(scores: Sequence[ScoredClaims]) -> None:
    """Draw one annotator's figures per verdict, and its difference from another."""
    by_name = {one.name: one for one in scores}
    left, right = st.columns(2)
    name = left.selectbox("Per verdict", list(by_name), key="spanlab.claims.one")
    one = by_name[name]
    others = [None, *(other for other in by_name if other != name)]
    other = right.selectbox(
        "Compared with", others, format_func=lambda who: who or "Nobody", key="spanlab.claims.two"
    )
    if other is not None:
        _difference(one, by_name[other])
    table = verdict_table(one)
    st.dataframe(
        table,
        hide_index=True,
        column_config={column: number(column) for column in ("Precision", "Recall", "F1")},
        alt=f"Precision, recall and F1 of {name} per verdict",
    )
    csv_button(table, "verdicts")


def _difference(one: ScoredClaims, other: ScoredClaims) -> None:
    found = one.minus(other)
    if found is None:
        st.caption(f"{plain(one.name)} and {plain(other.name)} judged no item both.")
        return
    mean, low, high = (
        figure(value, signed=True) for value in (found.difference, found.low, found.high)
    )
    st.markdown(
        f"Accuracy of {plain(one.name)} minus {plain(other.name)}: **{plain(mean)}** "
        f"({plain(low)} to {plain(high)}), p {figure(found.p)}.",
        help="On the claims of items that both judged: paired bootstrap interval, p from a "
        "permutation test.",
    )
