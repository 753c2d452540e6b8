"""Claims and rates: what people choose, and its tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import streamlit as st

from spanlab.figures import counted, figure
from spanlab.results import ONE_ITEM, MeanInterval
from spanlab.schema.datasets import DatasetSummary
from spanlab.storage.store import Store
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import link, plain
from spanlab.ui.messages import progress
from spanlab.ui.results.dots import best, ranked
from spanlab.ui.results.tables import csv_button, show_chart, show_grid, show_table
from spanlab.ui.views.reviewer import seen_fingerprint, seen_store
from spanlab.workflows.analysis.claims import MEASURES, ClaimComparison, ScoredClaims, verdict_table
from spanlab.workflows.analysis.comparison_tables import claim_measures, claim_table
from spanlab.workflows.analysis.rate_tally import default_annotators, rates
from spanlab.workflows.analysis.rates import MEASURES as RATES
from spanlab.workflows.analysis.rates import RateGroup, RateReport, fields_of, model_field

_MOST = 20  # people, and others, in a chart of verdicts
_MOST_GROUPS = 40  # values in a chart of rates


def show_claims(comparison: ClaimComparison, reference: str | None, names: Collection[str]) -> None:
    """Draw the scores of verdicts and the agreement on them.

    Args:
        comparison: the verdicts compared.
        reference: whose verdicts count as right; None gives agreement alone.
        names: the annotators to draw.
    """
    if not comparison.n:
        st.info(
            "Nobody has judged claims here yet: run a detector that judges claims, or write and "
            "judge them in Review.",
            icon=":material/fact_check:",
        )
        return
    _show_verdict_agreement(comparison)
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
    csv_button(table, "The chart's toolbar, at its upper right, downloads the picture.")
    order = [row[0] for row in table.rows]
    _show_one(sorted(scores, key=lambda scored: order.index(scored.name)))


def _show_verdict_agreement(comparison: ClaimComparison) -> None:
    groups = {"people": comparison.persons, "people and detectors": comparison.independent}
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


def show_rates(summary: DatasetSummary) -> None:
    """Ask for the field and whose labels count, then draw the rates of each value."""
    left, right = st.columns(2, vertical_alignment="bottom")
    look = seen_store(summary)
    fields = fields_of(look, summary.name)
    likely = model_field(fields) or fields[0]
    field = left.selectbox(
        "Compare by",
        fields,
        index=fields.index(likely),
        key=f"rates-by-{summary.name}",
        help="The language, the label of the spans, or what the items' meta says, such as the "
        "model that answered.",
    )
    with right:
        names = choose_annotators(
            summary.annotators,
            key=f"rates-{summary.name}",
            default=default_annotators(
                {annotator.name: annotator.kind for annotator in summary.annotators}
            ),
            label="Annotators",
        )
    if not names:
        st.info("Choose whose labels count: the mean of several.", icon=":material/group:")
        return
    plan = str(summary.settings.measurement)
    fingerprint = (*seen_fingerprint(summary), look.n_operations(summary.name), plan)
    report = _count_rates(summary.name, field, tuple(names), fingerprint=fingerprint, _store=look)
    for table in report.corrected:
        is_alone = len(table.rows) == 1  # which needs no picture
        show_table(table.model_copy(update={"chart": None}) if is_alone else table)
    if report.is_raw and not report.corrected:
        label = "Measure the rate"
        link("measure", label, icon=":material/straighten:", dataset=summary.name)
    measure = st.segmented_control(
        "Share" if report.is_raw else "Rate",
        report.measures,
        default="characters",
        required=True,
        format_func=lambda name: RATES[name].title,
        key="spanlab.rate",
    )
    st.caption(RATES[measure].about)
    report = _lowest_first(report, measure)
    largest = sorted(report.groups, key=lambda group: -group.n)[:_MOST_GROUPS]
    drawn = replace(report, groups=tuple(group for group in report.groups if group in largest))
    table, *pairs = replace(report, corrected=()).tables(measure)
    show_table(table, drawn=replace(drawn, corrected=()).tables(measure)[0])
    for pair in pairs:
        show_table(pair)


def _lowest_first(report: RateReport, measure: str) -> RateReport:
    """Return the groups by one of their rates; those that lack it come last."""

    def place(group: RateGroup) -> tuple[bool, float, str]:
        rate: MeanInterval | None = getattr(group.rates, measure)
        return rate is None, rate.mean if rate else 0.0, group.value

    return replace(report, groups=tuple(sorted(report.groups, key=place)))


@st.cache_resource(max_entries=16, show_spinner=False)
def _count_rates(
    dataset: str, field: str, names: tuple[str, ...], fingerprint: tuple[object, ...], _store: Store
) -> RateReport:
    """Count now, or return what any session has counted; ``seen`` tells changes."""
    with progress("Counting", None) as advance:
        return rates(_store, dataset, field, names, on_progress=advance)
