"""Which model hallucinates more: rates by a field of the items, as chart, table and file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd
import streamlit as st

from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import plain, store
from spanlab.ui.progress import progress
from spanlab.workflows.managing import DatasetSummary, count_edits
from spanlab.workflows.rates import MeanInterval, Rates, fields_of, rates, usual
from spanlab.workflows.wording import figure

if TYPE_CHECKING:
    import altair as alt

_MEASURES = {
    "characters": ("Characters", "Share of the answers' characters that are hallucinated."),
    "answers": ("Answers", "Share of answers with at least one hallucination."),
    "spans": ("Spans per 1,000 characters", "Hallucinated spans per 1,000 characters of answer."),
    "claims": ("Claims", "Share of claims with a verdict that counts as hallucinated."),
}


def show_rates(summary: DatasetSummary) -> None:
    """Ask for the field and whose labels count, then draw the rates of each value."""
    left, right = st.columns(2, vertical_alignment="bottom")
    fields = fields_of(store(), summary.name)
    likely = next((field for field in fields if "model" in field), fields[0])
    field = left.selectbox(
        "Compare by",
        fields,
        index=fields.index(likely),
        key=f"rates-by-{summary.name}",
        help="The language, or what the items' meta says, such as the model that answered.",
    )
    with right:
        names = choose_annotators(
            summary.annotators,
            key=f"rates-{summary.name}",
            default=usual(summary),
            label="Whose labels count",
        )
    if not names:
        st.info("Choose whose labels count: the mean of several.", icon=":material/group:")
        return
    counts = tuple((a.name, tuple(sorted(a.counts.items()))) for a in summary.annotators)
    seen = (summary.created, summary.n_items, counts, count_edits(store(), summary.name))
    found = _rates(summary.name, field, tuple(names), seen)
    st.caption(
        f"According to {plain(', '.join(found.annotators[:5]))}"
        f"{' and others' if len(found.annotators) > 5 else ''}, with 95 % intervals"
        + (f"; {found.unlabelled:,} items are not finished." if found.unlabelled else ".")
    )
    _show(found)


@st.cache_resource(max_entries=16, show_spinner=False)
def _rates(dataset: str, field: str, names: tuple[str, ...], seen: tuple[object, ...]) -> Rates:
    """Count now, or return what any session has counted; ``seen`` tells changes."""
    with progress("Counting", None) as advance:
        return rates(store(), dataset, field, names, advance)


def rate_table(found: Rates) -> pd.DataFrame:
    """Return a row per value: items, each rate with its interval, and the shares of labels."""
    rows = []
    for group in found.groups:
        row: dict[str, object] = {found.field: group.value, "Items": group.n}
        for name in _shown(found):
            rate: MeanInterval | None = getattr(group.rates, name)
            row[_MEASURES[name][0]] = None if rate is None else rate.mean
            row[f"{_MEASURES[name][0]} 95 %"] = None if rate is None else _interval(rate)
        rows.append(row | {f"Label {label}": share for label, share in group.labels.items()})
    return pd.DataFrame(rows)


def pair_table(found: Rates) -> pd.DataFrame:
    """Return a row per two values that answered the same questions."""
    return pd.DataFrame(
        {
            "Value": pair.a,
            "minus": pair.b,
            "Common questions": pair.n,
            "Characters": pair.characters.difference,
            "95 %": f"{figure(pair.characters.low)} to {figure(pair.characters.high)}",
            "p": pair.characters.p,
        }
        for pair in found.pairs
    )


def _show(found: Rates) -> None:
    measure = st.segmented_control(
        "Rate",
        _shown(found),
        default="characters",
        required=True,
        format_func=lambda name: _MEASURES[name][0],
        key="spanlab.rate",
    )
    st.caption(_MEASURES[measure][1])
    st.altair_chart(
        _chart(found, measure),
        alt=f"{_MEASURES[measure][0]} by {found.field} with 95 % intervals; the table below has "
        "the figures",
    )
    table = rate_table(found)
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            name: st.column_config.NumberColumn(format="%.3f")
            for name in table.columns[2:]
            if not name.endswith("95 %")
        },
        alt=f"Rates by {found.field}",
    )
    st.download_button(
        "Download as CSV",
        table.to_csv(index=False),
        file_name=f"rates-{found.field}.csv",
        mime="text/csv",
        icon=":material/download:",
        on_click="ignore",
    )
    if found.pairs:
        st.markdown(
            "**On the same questions**",
            help="Paired differences of the share of characters: the intervals are bootstrap, p "
            "comes from a permutation test.",
        )
        st.dataframe(pair_table(found), hide_index=True, alt="Paired differences")


def _shown(found: Rates) -> list[str]:
    return [
        name
        for name in _MEASURES
        if any(getattr(group.rates, name) is not None for group in found.groups)
    ]


def _chart(found: Rates, measure: str) -> alt.LayerChart | alt.FacetChart:
    import altair as alt

    rows = [
        {"value": group.value, "items": group.n, **rate.model_dump()}
        for group in found.groups
        if (rate := getattr(group.rates, measure)) is not None
    ]
    base = alt.Chart(pd.DataFrame(rows)).encode(
        y=alt.Y(
            "value:N",
            sort=[str(row["value"]) for row in rows],
            title=None,
            axis=alt.Axis(labelLimit=260),
        ),
        tooltip=[
            alt.Tooltip("value:N", title=found.field),
            alt.Tooltip("mean:Q", title=_MEASURES[measure][0], format=".3f"),
            alt.Tooltip("low:Q", title="95 % from", format=".3f"),
            alt.Tooltip("high:Q", title="to", format=".3f"),
            alt.Tooltip("items:Q", title="Items", format=","),
        ],
    )
    title = _MEASURES[measure][0]
    scale = alt.Scale(domainMin=0)
    intervals = base.mark_rule(strokeWidth=1.5).encode(
        x=alt.X("low:Q", title=title, scale=scale), x2="high:Q"
    )
    points = base.mark_point(filled=True, size=70, opacity=1).encode(x=alt.X("mean:Q", title=title))
    return alt.layer(intervals, points).properties(height=60 + 26 * len(rows))


def _interval(rate: MeanInterval) -> str:
    return f"{figure(rate.low)} to {figure(rate.high)}"
