"""Comparisons and reports over a whole dataset: computed once, kept until it changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

import streamlit as st
from streamlit.runtime.caching.cache_utils import CachedFunc

from spanlab.output.figures import counted
from spanlab.people.progress import CampaignReport, campaign
from spanlab.schema import DatasetSummary
from spanlab.scoring.annotators import DatasetComparison, compare_dataset
from spanlab.storage.store import Store
from spanlab.ui.messages import progress
from spanlab.ui.session import seen_store

_AT_ONCE = 2_000  # items that are compared without being asked
_SIZES = (500, 2_000, 5_000, 20_000)  # what a page can wait for
_KEPT = 16  # comparisons remembered, of all sessions together
_ASKED = "spanlab.comparison"

_Result = TypeVar("_Result", DatasetComparison, CampaignReport)


@dataclass(frozen=True)
class _RememberedResult(Generic[_Result]):
    result: _Result
    at: datetime


def comparison_of(summary: DatasetSummary, reference: str | None) -> DatasetComparison | None:
    """Return how annotators compare with a reference and each other; None until it is asked for."""
    return _result(summary, reference, _compare)


def campaign_of(summary: DatasetSummary, look: Store | None = None) -> CampaignReport | None:
    """Return a dataset's campaign report, as ``look`` may see it; None until it is asked for."""
    return _result(summary, None, _count_campaign, look)


def _result(
    summary: DatasetSummary,
    reference: str | None,
    make: CachedFunc[..., _RememberedResult[_Result]],
    look: Store | None = None,
) -> _Result | None:
    """Return what ``make`` finds in a dataset, at once if that is quick, else on a button.

    Says how many items were looked at and when, and offers to look again. Counts tell that a
    dataset has changed, and edits that somebody has changed a finished annotation; not so in a
    large dataset, where people would lose with every edit what they have waited for.

    Returns:
        What was found; None as long as people have not asked for it.
    """
    limit = _ask_limit(summary)
    is_quick = summary.n_items <= _AT_ONCE
    look = look or seen_store(summary)
    asks = repr((summary.settings.attributes, summary.settings.questions))
    fingerprint = (*summary.fingerprint, look.sight(summary.name), asks)
    edits = look.n_operations(summary.name) if is_quick else 0
    arguments = (summary.name, reference, limit, fingerprint, edits)
    if not is_quick and st.session_state.get(_ASKED) != arguments:
        if not _ask_to_compare(limit):
            return None
        st.session_state[_ASKED] = arguments
    remembered = make(*arguments, look)
    if _ask_again(summary, remembered):
        make.clear(*arguments, look)
        st.rerun()
    return remembered.result


def _ask_limit(summary: DatasetSummary) -> int:
    if summary.n_items <= _AT_ONCE:
        return summary.n_items
    sizes = [size for size in _SIZES if size < summary.n_items]
    if summary.n_items <= _SIZES[-1]:
        sizes.append(summary.n_items)
    return st.select_slider(
        "Items to look at",
        sizes,
        value=_AT_ONCE if _AT_ONCE in sizes else sizes[-1],
        format_func=lambda size: f"all {size:,}" if size == summary.n_items else f"{size:,}",
        key=f"sample-{summary.name}",
        help="Spread evenly over the dataset, which keeps the shares of its languages.",
    )


def _ask_to_compare(limit: int) -> bool:
    return st.button(
        f"Compare on {limit:,} items", type="primary", icon=":material/calculate:", key="compare"
    )


def _ask_again(summary: DatasetSummary, remembered: _RememberedResult[_Result]) -> bool:
    looked_at = remembered.result.looked_at
    sample = (
        ("All " if looked_at > 1 else "") + counted(looked_at, "item")
        if looked_at == summary.n_items
        else f"A sample of {looked_at:,} of the {summary.n_items:,} items, in even steps"
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{sample}, computed at {remembered.at:%H:%M:%S}.")
        return st.button(
            "Recompute", icon=":material/refresh:", type="tertiary", key="compute-again"
        )


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def _compare(
    dataset: str,
    reference: str | None,
    limit: int,
    fingerprint: tuple[object, ...],
    edits: int,
    _store: Store,
) -> _RememberedResult[DatasetComparison]:
    """Compare now, or return what any session has compared; ``seen`` and ``edits`` tell changes."""
    with progress("Comparing", limit) as advance:
        comparison = compare_dataset(
            _store, dataset, reference=reference, limit=limit, on_progress=advance
        )
    return _RememberedResult(comparison, datetime.now().astimezone())


@st.cache_resource(max_entries=_KEPT, show_spinner=False)
def _count_campaign(
    dataset: str,
    _: str | None,
    limit: int,
    fingerprint: tuple[object, ...],
    edits: int,
    _store: Store,
) -> _RememberedResult[CampaignReport]:
    """Count now, or return what any session has counted, as for ``_compare``."""
    with progress("Counting", limit) as advance:
        report = campaign(_store, dataset, limit=limit, on_progress=advance)
    return _RememberedResult(report, datetime.now().astimezone())
