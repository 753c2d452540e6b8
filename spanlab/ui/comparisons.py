"""Comparisons of whole datasets: made once, remembered until the dataset changes."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from threading import Lock

import streamlit as st

from spanlab.ui.common import store
from spanlab.ui.progress import progress
from spanlab.workflows.comparing import DatasetComparison, compare_dataset
from spanlab.workflows.managing import DatasetSummary, count_edits

_AT_ONCE = 2_000  # items that are compared without being asked
_SIZES = (500, 2_000, 5_000, 20_000)  # what a page can wait for
_KEPT = 16  # comparisons remembered, of all sessions together

_Key = tuple[object, ...]


@dataclass(frozen=True)
class _Made:
    comparison: DatasetComparison
    at: datetime


class _Memory:
    """The latest comparisons of all sessions; they are frozen, so sharing them is safe."""

    def __init__(self) -> None:
        self._made: OrderedDict[_Key, _Made] = OrderedDict()
        self._lock = Lock()

    def get(self, key: _Key) -> _Made | None:
        with self._lock:
            return self._made.get(key)

    def put(self, key: _Key, made: _Made) -> None:
        with self._lock:
            self._made[key] = made
            while len(self._made) > _KEPT:
                self._made.popitem(last=False)


def compared(summary: DatasetSummary, reference: str | None) -> DatasetComparison | None:
    """Return the comparison of a dataset, making it now if that is quick, else on a button.

    Says how many items were looked at and when, and offers to look again. Counts tell that a
    dataset has changed, and edits that somebody has changed a finished annotation; not so in a
    large dataset, where people would lose with every edit what they have waited for.

    Returns:
        The comparison; None as long as people have not asked for it.
    """
    limit = _limit(summary)
    is_quick = summary.n_items <= _AT_ONCE
    seen = (summary.n_items, _counts(summary), _edits(summary) if is_quick else 0)
    key = (summary.name, summary.created, seen, reference, limit)
    made = _memory().get(key)
    if made is None and (is_quick or _asked(limit)):
        made = _make(key, summary, reference, limit)
    if made is None:
        return None
    if _again(summary, made):
        made = _make(key, summary, reference, limit)
        st.rerun()
    return made.comparison


def _limit(summary: DatasetSummary) -> int:
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


def _asked(limit: int) -> bool:
    return st.button(
        f"Compare on {limit:,} items", type="primary", icon=":material/calculate:", key="compare"
    )


def _again(summary: DatasetSummary, made: _Made) -> bool:
    looked_at = made.comparison.looked_at
    sample = (
        f"All {summary.n_items:,} items"
        if looked_at == summary.n_items
        else f"A sample of {looked_at:,} of the {summary.n_items:,} items, in even steps"
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(f"{sample}, computed at {made.at:%H:%M:%S}.")
        return st.button(
            "Compute again", icon=":material/refresh:", type="tertiary", key="compute-again"
        )


def _make(key: _Key, summary: DatasetSummary, reference: str | None, limit: int) -> _Made:
    with progress("Comparing", limit) as advance:
        comparison = compare_dataset(
            store(), summary.name, reference=reference, limit=limit, on_progress=advance
        )
    made = _Made(comparison, datetime.now().astimezone())
    _memory().put(key, made)
    return made


def _edits(summary: DatasetSummary) -> int:
    return count_edits(store(), summary.name)


def _counts(summary: DatasetSummary) -> tuple[object, ...]:
    return tuple((a.name, tuple(sorted(a.counts.items()))) for a in summary.annotators)


@st.cache_resource(show_spinner=False)
def _memory() -> _Memory:
    return _Memory()
