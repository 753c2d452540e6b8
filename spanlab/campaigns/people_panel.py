"""How the people of a campaign are doing: each of them, items by day, labels, agreement, times."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import streamlit as st

from spanlab.people.overview import CampaignOverview, people_table
from spanlab.people.progress import (
    CampaignReport,
    agreement_over_time,
    agreement_table,
    day_table,
    label_shares,
    label_table,
    pace,
    pace_table,
)
from spanlab.schema import AnnotatorKind, DatasetSummary
from spanlab.schema.progress import FinishedItem
from spanlab.scoring.findings import progress_finding
from spanlab.ui.charts import MOST_COLOURS
from spanlab.ui.choose_annotators import choose_annotators
from spanlab.ui.common import plain
from spanlab.ui.session import seen_store, seen_summary
from spanlab.ui.tables import show_table
from spanlab.worklists import plans

_MOST = 20  # people in a chart
_NO_LOG = "Imported annotations do not say when they were made."
_PEOPLE = "People"


class _ProgressChoice(NamedTuple):
    report: CampaignReport
    people: tuple[str, ...]
    finished: tuple[FinishedItem, ...]


def show_people(
    summary: DatasetSummary, report: CampaignReport, overview: CampaignOverview | None
) -> None:
    """Draw what people have done, one view at a time.

    Args:
        summary: of the dataset.
        report: what they marked.
        overview: how far each of them is, for the dataset's lead; None for anyone else.
    """
    names = list(_VIEWS) if overview is None else [_PEOPLE, *_VIEWS]
    view = st.segmented_control(
        "Show", names, default=names[0], required=True, key="spanlab.campaign"
    )
    if overview is not None:
        if view == _PEOPLE:
            table, end = people_table(overview).without(), overview.until
            until = f"{table.title} · expected finish {end:%-d %B %Y}" if end else table.title
            show_table(table.model_copy(update={"title": until}), icon=":material/group:")
            return
        summary = seen_summary(summary)
    everyone = [one for one in summary.annotators if one.kind is AnnotatorKind.PERSON]
    people = choose_annotators(everyone, key=f"campaign-{summary.name}", label="People")
    done = plans.finished(seen_store(summary), summary.name)
    finished = tuple(item for item in done if item.annotator in people)
    if finding := progress_finding(finished):
        st.markdown(f"**{plain(finding)}**")
    _VIEWS[view](_ProgressChoice(report, people, finished))


def _draw_days(choice: _ProgressChoice) -> None:
    table = day_table(choice.finished)
    if not table.rows:
        _say_nothing("None of the people chosen has pressed Done in Review yet.")
        return
    st.caption(
        "Items that are done now, each on the day (UTC) on which its annotator last pressed Done. "
        + _NO_LOG
    )
    n_people = len({row[1] for row in table.rows})
    if n_people > MOST_COLOURS:
        st.caption(f"{n_people:,} people together; the table has each of them.")
    show_table(table)


def _draw_labels(choice: _ProgressChoice) -> None:
    labels = {
        person: counts for person, counts in choice.report.labels.items() if person in choice.people
    }
    if not labels:
        _say_nothing("None of the people chosen is a person who has finished an item.")
        return
    show_table(label_table(labels), drawn=label_shares(labels, _MOST, MOST_COLOURS))


def _draw_agreement(choice: _ProgressChoice) -> None:
    table = agreement_table(
        agreement_over_time(choice.report.marks, choice.finished, choice.people)
    )
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


def _draw_times(choice: _ProgressChoice) -> None:
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


_VIEWS: dict[str, Callable[[_ProgressChoice], None]] = {
    "Items by day": _draw_days,
    "Labels": _draw_labels,
    "Agreement over time": _draw_agreement,
    "Time per item": _draw_times,
}


def _say_nothing(why: str) -> None:
    st.info(f"{why} {_NO_LOG}", icon=":material/event_available:")
