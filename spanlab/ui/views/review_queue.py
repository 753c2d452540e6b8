"""The queue of the page Review: which items, in which order, and how it is described."""

from __future__ import annotations

from typing import TypedDict

import streamlit as st

from spanlab.schema import (
    AssignedShare,
    DatasetSettings,
    DatasetSummary,
    MeasurementPlan,
    Status,
)
from spanlab.storage.store import Store
from spanlab.ui import common
from spanlab.workflows.blind import reviewed_by
from spanlab.workflows.measuring.sample import MeasuredItems, read_measured

_ALL = "All"


_STATES = {
    _ALL: None,
    "Not annotated": Status.NOT_ANNOTATED,
    "Done": Status.DONE,
    "Skipped": Status.SKIPPED,
}


_IMPORTED = "As imported"


_SPLIT = "Most disagreement first"


def review_store(dataset: str, *, many: bool = False) -> Store:
    """Return the database as who is here is to review a dataset in it; see ``reviewed_by``."""
    return reviewed_by(common.store(), dataset, many=many)


def _kept(name: str) -> common.WidgetKey:
    return common.kept(f"review.{name}")


def _seen(summary: DatasetSummary, store: Store) -> tuple[object, ...]:
    """Return what tells that a dataset has changed, or who reviews it where."""
    counts = tuple((who.name, tuple(sorted(who.counts.items()))) for who in summary.annotators)
    return summary.created, counts, store.reader, store.n_operations(summary.name)


@st.cache_resource(max_entries=16, show_spinner="Drawing the sample …")
def _read_measured(
    dataset: str, plan: str, seen: tuple[object, ...], _store: Store
) -> MeasuredItems:
    """Read the sample now, or return what any session has read; ``seen`` tells changes."""
    return read_measured(_store, dataset, MeasurementPlan.model_validate_json(plan))


class _QueuePlan(TypedDict, total=False):
    """The fields of a queue by which it offers each person what they are to finish."""

    unfinished: bool
    min_annotators: int
    max_annotators: int
    reserve: bool
    share: AssignedShare


def _plan(settings: DatasetSettings, reviewer: str) -> _QueuePlan:
    """Ask whether to go by the dataset's plan, which is what its reviewers do unless they say no.

    Without a plan, what one person has finished may wait for a second one.
    """
    if not settings.overlap:
        second = st.checkbox("Needs a second annotator", **_kept("second"))
        return {"unfinished": True, "min_annotators": 1, "max_annotators": 1} if second else {}
    people = settings.assigned_to
    each = "1 person" if settings.overlap == 1 else f"{settings.overlap} people"
    planned = st.checkbox(
        "Assigned to you" if people else f"Needed from you ({each} per item)",
        value=True,
        **_kept("planned"),
        help=f"The settings of this dataset ask for {each} per item. Items that you have finished "
        "are left out.",
    )
    if not planned:
        return {}
    if not people:
        return {"unfinished": True, "max_annotators": settings.overlap - 1, "reserve": True}
    share = settings.share_of(reviewer)
    if share is None:
        st.caption(f"Items of this dataset are assigned to {len(people)} others.")
        return {}
    # Reserved, too: after people left or came back, more than these may be asked for an item.
    return {
        "unfinished": True,
        "max_annotators": settings.overlap - 1,
        "reserve": True,
        "share": share,
    }
