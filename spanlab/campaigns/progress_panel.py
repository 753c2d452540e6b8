"""How an annotation campaign goes: items by day, labels by person, agreement, times."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import streamlit as st

from spanlab.comparison.comparisons_panel import campaign_of
from spanlab.people.progress import (
    agreement_over_time,
    agreement_table,
    day_table,
    label_shares,
    label_table,
    pace,
    pace_table,
)
from spanlab.schema import AnnotatorKind, DatasetSummary, Status
from spanlab.schema.progress import FinishedItem
from spanlab.scoring.findings import progress_finding
from spanlab.ui.charts import MOST_COLOURS
from spanlab.ui.common import plain
from spanlab.ui.panels import Panel
from spanlab.ui.session import seen_store
from spanlab.ui.tables import show_table

_MOST = 20  # people in a chart
_NO_LOG = "Imported annotations do not say when they were made."


class _CampaignChoice(NamedTuple):
    summary: DatasetSummary
    people: tuple[str, ...]
    finished: tuple[FinishedItem, ...]


def show_campaign(summary: DatasetSummary, names: Collection[str]) -> None:
    """Draw what those people among ``names`` have done, one view at a time."""
    finished = tuple(
        item for item in seen_store(summary).finished(summary.name) if item.annotator in names
    )
    people = tuple(annotator.name for annotator in summary.annotators if annotator.name in names)
    if finding := progress_finding(finished):
        st.markdown(f"**{plain(finding)}**")
    view = st.segmented_control(
        "Show", list(_VIEWS), default="Items by day", required=True, key="spanlab.campaign"
    )
    _VIEWS[view](_CampaignChoice(summary, people, finished))


def _draw_days(choice: _CampaignChoice) -> None:
    table = day_table(choice.finished)
    if not table.rows:
        _say_nothing("None of the annotators chosen has pressed Done in Review yet.")
        return
    st.caption(
        "Items that are done now, each on the day (UTC) on which its annotator last pressed Done. "
        + _NO_LOG
    )
    n_people = len({row[1] for row in table.rows})
    if n_people > MOST_COLOURS:
        st.caption(f"{n_people:,} people together; the table has each of them.")
    show_table(table)


def _draw_labels(choice: _CampaignChoice) -> None:
    report = campaign_of(choice.summary)
    if report is None:
        return
    labels = {person: counts for person, counts in report.labels.items() if person in choice.people}
    if not labels:
        _say_nothing("None of the annotators chosen is a person who has finished an item.")
        return
    show_table(label_table(labels), drawn=label_shares(labels, _MOST, MOST_COLOURS))


def _draw_agreement(choice: _CampaignChoice) -> None:
    report = campaign_of(choice.summary)
    if report is None:
        return
    table = agreement_table(agreement_over_time(report.marks, choice.finished, choice.people))
    if not table.rows:
        _say_nothing(
            "Agreement over time needs items that two of the people chosen have finished, one of "
            "them in Review."
        )
        return
    st.caption(
        "Krippendorff's alpha over characters, with its 95 % interval from resampling the items. "
        "An item that two or more of the people chosen have finished counts when the last of them "
        "pressed Done (UTC); long campaigns are shown by week or month. " + _NO_LOG
    )
    show_table(table)


def _draw_times(choice: _CampaignChoice) -> None:
    paces = pace(choice.finished)
    if not paces:
        _say_nothing("No time has been measured yet for the people chosen.")
        return
    st.caption(
        "From when an item is opened in Review until it is done or skipped, over all visits; a "
        "pause counts as one minute at most, and not at all while the tab is hidden. Nothing else "
        "is recorded. " + _NO_LOG
    )
    busiest = sorted(paces, key=lambda person: -person.items)[:_MOST]
    show_table(pace_table(paces), drawn=pace_table(busiest))


_VIEWS: dict[str, Callable[[_CampaignChoice], None]] = {
    "Items by day": _draw_days,
    "Labels": _draw_labels,
    "Agreement over time": _draw_agreement,
    "Time per item": _draw_times,
}


def _say_nothing(why: str) -> None:
    st.info(f"{why} {_NO_LOG}", icon=":material/event_available:")


def _is_there(summary: DatasetSummary) -> bool:
    """Say whether a person has finished anything."""
    return any(
        annotator.kind is AnnotatorKind.PERSON and annotator.counts.get(Status.DONE)
        for annotator in summary.annotators
    )


PANEL = Panel("Progress", 70, show_campaign, is_there=_is_there)
