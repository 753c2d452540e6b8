"""Rates of each value of a field, on the page Measure."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from spanlab.measure.measurement import Measurement
from spanlab.measure.rate_tally import add_measurement, count_rates, default_annotators
from spanlab.measure.rates import MEASURES as RATES
from spanlab.measure.rates import RateGroup, RateReport, fields_of, model_field
from spanlab.output.figures import field_in_words
from spanlab.output.tables import MeanInterval
from spanlab.schema.datasets import DatasetSummary
from spanlab.storage.store import Store
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import link
from spanlab.ui.messages import progress
from spanlab.ui.session import seen_fingerprint, seen_store
from spanlab.ui.tables import show_table

_MOST_GROUPS = 40  # values in a chart of rates


def show_rates(summary: DatasetSummary, measured: Measurement | None) -> None:
    """Ask for the field and whose labels count, then draw the rates of each value.

    Args:
        summary: of the dataset.
        measured: what its measurement has come to; None without one.
    """
    left, right = st.columns(2, vertical_alignment="bottom")
    look = seen_store(summary)
    fields = fields_of(look, summary.name)
    likely = model_field(fields) or fields[0]
    field = left.selectbox(
        "Compare by",
        fields,
        index=fields.index(likely),
        format_func=field_in_words,
        key=f"rates-by-{summary.name}",
        help="The language, the label of the spans, or what the items' meta says, such as the "
        "model that answered.",
    )
    with right:
        names = choose_annotators(
            summary.annotators,
            key=f"rates-{summary.name}",
            default=default_annotators(summary.kinds, summary.settings),
            label="Annotators",
        )
    if not names:
        st.info("Choose whose labels count: the mean of several.", icon=":material/group:")
        return
    fingerprint = (*seen_fingerprint(summary), look.n_operations(summary.name))
    report = add_measurement(
        _count_rates(summary.name, field, tuple(names), fingerprint=fingerprint, _store=look),
        measured,
    )
    if report.is_raw and not report.corrected:
        label = "Measure the rate"
        link("measure", label, icon=":material/straighten:", dataset=summary.name)
    measure = st.segmented_control(
        "Share" if report.is_raw else "Rate",
        report.measures,
        default=report.measures[0] if "characters" not in report.measures else "characters",
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
        return count_rates(_store, dataset, field, names, on_progress=advance)
