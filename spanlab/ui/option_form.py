"""A detector's own options as widgets, made from the model that checks them."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st
from pydantic import JsonValue

from spanlab.ui.common import Kept, kept, plain
from spanlab.workflows.choosing import OptionField, fields_of


def options_form(detector: str, page: str) -> dict[str, JsonValue]:
    """Ask for a detector's options.

    Args:
        detector: its name.
        page: the name that the page's widgets begin with.

    Returns:
        Those that differ from their defaults, each as "detector.name".
    """
    fields = fields_of(detector)
    if not fields:
        return {}
    with st.expander(f"Options of {plain(detector)}", icon=":material/tune:"):
        values = {
            field.name: _WIDGETS[field.kind](field, kept(f"{page}.{detector}.{field.name}"))
            for field in fields
        }
    return {
        f"{detector}.{field.name}": values[field.name]
        for field in fields
        if values[field.name] != field.default
    }


def _flag(field: OptionField, key: Kept) -> JsonValue:
    return st.checkbox(field.label, bool(field.default), help=field.about, **key)


def _choice(field: OptionField, key: Kept) -> JsonValue:
    choices = list(field.choices)
    index = choices.index(field.default) if field.default in choices else None
    found: JsonValue = st.selectbox(field.label, choices, index, help=field.about, **key)
    return found


def _number(field: OptionField, key: Kept) -> JsonValue:
    whole = field.kind == "integer"
    read: Callable[[float], float] = int if whole else float
    low, high, default = (
        read(value) if isinstance(value, int | float) else None
        for value in (field.low, field.high, field.default)
    )
    return st.number_input(
        field.label,
        low,
        high,
        default,
        step=1 if whole else 0.05,
        placeholder="as it comes",
        help=field.about,
        **key,
    )


def _text(field: OptionField, key: Kept) -> JsonValue:
    default = None if field.default is None else str(field.default)
    text = st.text_input(field.label, default, help=field.about, **key)
    return field.default if text in {None, "", default} else text


_WIDGETS: dict[str, Callable[[OptionField, Kept], JsonValue]] = {
    "flag": _flag,
    "choice": _choice,
    "number": _number,
    "integer": _number,
    "text": _text,
}
