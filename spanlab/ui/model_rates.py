"""Which model hallucinates more: rates by a field of the items, as chart, table and file."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import streamlit as st

from spanlab.results import MeanInterval, figure
from spanlab.schema import DatasetSummary
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import plain, store
from spanlab.ui.downloads import show_chart
from spanlab.ui.progress import progress
from spanlab.ui.score_charts import PERSON, Dot, Wording, dot_plot
from spanlab.workflows.item_fields import fields_of, model_field
from spanlab.workflows.managing import count_edits
from spanlab.workflows.rates import Group, Rates, rates, usual

_MOST = 40  # values in the chart
_SPANS = "spans"  # the only measure that is no share
_MEASURES = {
    "characters": ("Characters", "Share of the answers' characters that are hallucinated."),
    "answers": ("Answers", "Share of answers with at least one hallucination."),
    _SPANS: ("Spans per 1,000 characters", "Hallucinated spans per 1,000 characters of answer."),
    "claims": ("Claims", "Share of claims with a verdict that counts as hallucinated."),
}


def show_rates(summary: DatasetSummary) -> None:
    """Ask for the field and whose labels count, then draw the rates of each value."""
    left, right = st.columns(2, vertical_alignment="bottom")
    fields = fields_of(store(), summary.name)
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
            default=usual({who.name: who.kind for who in summary.annotators}),
            label="Annotators",
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
    """Return a row per value: items, each rate and the ends of its interval, shares of labels.

    Of one item there is no interval.
    """
    rows = []
    for group in found.groups:
        row: dict[str, object] = {found.field: group.value, "Items": group.n}
        for name in _shown(found):
            rate: MeanInterval | None = getattr(group.rates, name)
            interval = rate if group.n > 1 else None
            row[_MEASURES[name][0]] = math.nan if rate is None else rate.mean
            row[f"{_MEASURES[name][0]} from"] = math.nan if interval is None else interval.low
            row[f"{_MEASURES[name][0]} to"] = math.nan if interval is None else interval.high
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
    found = replace(found, groups=_lowest_first(found, measure))
    table = rate_table(found)
    dots = _dots(found, measure)
    show_chart(
        dot_plot(dots, Wording(found.field, _MEASURES[measure][0], is_share=measure != _SPANS)),
        table,
        f"rates-{found.field}",
        alt=f"{_MEASURES[measure][0]} by {found.field} with 95 % intervals; the table below has "
        "the figures",
    )
    st.dataframe(
        _shown_table(found, table),
        hide_index=True,
        column_config={
            found.field: st.column_config.TextColumn(pinned=True),
            **{name: _column(name) for name in table.columns[2:]},
            **{
                f"{title} 95 %": st.column_config.TextColumn("95 %")
                for title, _ in _MEASURES.values()
            },
        },
        placeholder="–",
        alt=f"Rates by {found.field}",
    )
    for remark in found.remarks:
        st.caption(plain(remark))
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


def _lowest_first(found: Rates, measure: str) -> tuple[Group, ...]:
    """Return the groups by one of their rates; those that lack it come last."""

    def place(group: Group) -> tuple[float, str]:
        rate: MeanInterval | None = getattr(group.rates, measure)
        return math.inf if rate is None else rate.mean, group.value

    return tuple(sorted(found.groups, key=place))


def _dots(found: Rates, measure: str) -> list[Dot]:
    """Return the rate of each value; of very many of those with most items."""
    most = sorted(found.groups, key=lambda group: -group.n)[:_MOST]
    return [
        Dot(group.value, PERSON, rate, group.n)
        for group in found.groups
        if group in most and (rate := getattr(group.rates, measure)) is not None
    ]


def _shown_table(found: Rates, table: pd.DataFrame) -> pd.DataFrame:
    """Return the table as the page shows it: in per cent, each interval in one column."""
    shown = table[[found.field, "Items"]].copy()
    for name in _shown(found):
        title, _ = _MEASURES[name]
        factor = 1 if name == _SPANS else 100
        shown[title] = factor * table[title]
        shown[f"{title} 95 %"] = [
            None if math.isnan(low) else f"{figure(factor * low, 1)} – {figure(factor * high, 1)}"
            for low, high in zip(table[f"{title} from"], table[f"{title} to"], strict=True)
        ]
    labels = [name for name in table.columns[2:] if name.startswith("Label ")]
    return pd.concat([shown, 100 * table[labels]], axis=1)


def _column(name: str) -> Any:
    """Return how a column of rates is shown."""
    if name == _MEASURES[_SPANS][0]:
        return st.column_config.NumberColumn("Spans / 1,000", format="%.1f", help=name)
    return st.column_config.NumberColumn(format="%.1f %%")
