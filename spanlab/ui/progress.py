"""How far a piece of work is, while people wait for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import streamlit as st

from spanlab.results import counted, duration

_EVERY = 0.2  # seconds between two drawings: a browser needs no more, and the work goes on


@contextmanager
def progress(
    task: str, total: int | None, *, about: bool = False
) -> Iterator[Callable[[int], None]]:
    """Draw a progress bar for as long as the block runs.

    Args:
        task: what is being done, as a participle: "Importing".
        total: how many items there are, None if nobody knows.
        about: whether ``total`` is an estimate.

    Yields:
        A function to call with the number of items done so far.
    """
    bar = st.progress(0.0, text=f"{task} …")
    began = time.monotonic()
    drawn = began

    def advance(done: int) -> None:
        nonlocal drawn
        now = time.monotonic()
        if now - drawn >= _EVERY:
            drawn = now
            text = f"{task}: {describe(done, total, now - began, about=about)}"
            bar.progress(share(done, total), text=text)

    try:
        yield advance
    finally:
        bar.empty()


def share(done: int, total: int | None) -> float:
    """Return how much is done, in [0, 1]; an unknown or passed total never looks finished."""
    if not total:
        return 0.0
    return min(done / total, 0.99 if done > total else 1.0)


def describe(done: int, total: int | None, seconds: float, *, about: bool = False) -> str:
    """Say how much is done, how fast it goes and how long it will take.

    Args:
        done: items done so far.
        total: how many there are, None if nobody knows.
        seconds: how long it took so far.
        about: whether ``total`` is an estimate.
    """
    of = f" of {'about ' if about else ''}{total:,}" if total and done <= total else ""
    parts = [f"{done:,}{of} items" if of else counted(done, "item")]
    if done and seconds > 0:
        rate = done / seconds
        parts.append(f"{rate:,.0f} a second" if rate >= 1 else f"{1 / rate:,.1f} s each")
        if of:
            parts.append(f"{duration((total or 0) / rate - seconds)} left")
    return " · ".join(parts)
