"""Limits of a run or a search as widgets; what is left empty has none."""

from __future__ import annotations

import streamlit as st

from spanlab.ui.common import kept

_NONE = "no limit"


def rate_limit(key: str) -> float | None:
    """Ask how many model calls may begin in a minute; None for as many as there is room for."""
    return st.number_input(
        "Rate limit (calls per minute)",
        0.1,
        1_000_000.0,
        value=None,
        step=10.0,
        format="%g",
        placeholder=_NONE,
        help="For an endpoint that refuses more. All workers of a job keep it together.",
        **kept(key),
    )


def cost_limit(key: str) -> float | None:
    """Ask what calls and searches may cost together, in US dollars; None for any amount."""
    return st.number_input(
        "Maximum cost (US dollars)", 0.0, value=None, placeholder=_NONE, **kept(key)
    )


def whole_number(
    label: str, key: str, *, least: int = 1, empty: str = _NONE, about: str | None = None
) -> int | None:
    """Ask for a whole number.

    Args:
        label: what it is.
        key: the widget's own name.
        least: the smallest number.
        empty: what None stands for.
        about: a hint.
    """
    number = st.number_input(label, least, value=None, placeholder=empty, help=about, **kept(key))
    return None if number is None else int(number)
