"""The labels of a dataset as rows to edit: name, colour, key, description, order."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Final

import streamlit as st

from spanlab.errors import UsageError
from spanlab.schema import LABEL_SETS, SpanLabel
from spanlab.ui.common import plain
from spanlab.ui.span_editor import KEYS, PALETTE
from spanlab.workflows.datasets import colour_of

_ROWS: Final = "spanlab.labels"  # the numbers of the rows, in their order


_FIELDS: Final = ("name", "colour", "key", "description")


_WIDTHS: Final = (0.5, 2.2, 1.3, 0.7, 3.4, 0.5, 0.5, 0.5)


_STYLE = """<style>
.st-key-label-rows [data-testid="stColorPicker"] > div { min-width: 0; }
.st-key-label-rows [data-testid="stHorizontalBlock"] { gap: 0.4rem; }
</style>"""


_ids = itertools.count()


def edit_labels(chosen: Sequence[SpanLabel]) -> tuple[SpanLabel, ...] | None:
    """Draw the labels as rows that can be changed, with what is wrong under each.

    Args:
        chosen: the labels to begin with.

    Returns:
        The labels as they stand; None while one of them is wrong.
    """
    known = st.session_state.get(_ROWS)
    if known is None or any(_key(row, "name") not in st.session_state for row in known):
        _begin(chosen)  # Streamlit forgets what is in fields once another page is open
    st.selectbox(
        "Replace all by a shipped set",
        list(LABEL_SETS),
        index=None,
        placeholder="Choose a set",
        format_func=lambda name: f"{name} ({len(LABEL_SETS[name])})",
        help="The labels of spans stay as they are.",
        key="spanlab.label-set",
        on_change=_take_set,
    )
    st.html(_STYLE)
    rows: list[int] = st.session_state[_ROWS]
    values = [_values(row) for row in rows]
    wrong = [_problems(index, values) for index in range(len(rows))]
    with st.container(key="label-rows"):
        if rows:
            _heads()
        for index in range(len(rows)):
            _row(index, wrong[index])
    st.button("Add a label", icon=":material/add:", on_click=_add)
    if any(wrong):
        return None
    return tuple(_label(fields) for fields in values if any(fields.values()))


def forget() -> None:
    """Forget what was edited: the next one begins with what is stored."""
    for row in st.session_state.pop(_ROWS, []):
        for field in _FIELDS:
            st.session_state.pop(_key(row, field), None)


def _begin(labels: Sequence[SpanLabel]) -> None:
    forget()
    st.session_state[_ROWS] = []
    for label in labels:
        _add(label)


def _add(label: SpanLabel | None = None) -> None:
    row = next(_ids)
    for field in _FIELDS:
        st.session_state[_key(row, field)] = (label and getattr(label, field)) or ""
    st.session_state[_ROWS] = [*st.session_state[_ROWS], row]


def _take_set() -> None:
    name = st.session_state["spanlab.label-set"]
    if name is not None:
        _begin(LABEL_SETS[name])


def _heads() -> None:
    heads = ("", "Label", "Colour", "Key", "Description")
    for column, head in zip(st.columns(_WIDTHS), heads, strict=False):
        column.caption(head)


def _row(index: int, wrong: Mapping[str, str]) -> None:
    """Draw one label, and under it what is wrong with its fields."""
    rows: list[int] = st.session_state[_ROWS]
    row, number = rows[index], index + 1
    columns = st.columns(_WIDTHS, vertical_alignment="center")
    with columns[0]:
        st.session_state[_key(row, "picker")] = _shown(index, _values(row)["colour"])
        st.color_picker(
            f"Pick the colour of label {number}",
            label_visibility="collapsed",
            key=_key(row, "picker"),
            on_change=_take_picked,
            args=(row,),
        )
    texts = (
        (f"Name of label {number}", "name", "Name", 200),
        (f"Colour of label {number}", "colour", "automatic", 30),
        (f"Key of label {number}", "key", "auto", 1),
        (f"Description of label {number}", "description", "What it means", 2_000),
    )
    for column, (name, field, placeholder, most) in zip(columns[1:5], texts, strict=True):
        column.text_input(
            name,
            label_visibility="collapsed",
            key=_key(row, field),
            placeholder=placeholder,
            max_chars=most,
        )
    for column, (name, icon, step) in zip(columns[5:], _STEPS, strict=True):
        column.button(
            "",
            icon=icon,
            type="tertiary",
            help=f"{name} label {number}",
            key=f"{_key(row, name)}",
            disabled=not 0 <= index + step < len(rows),
            on_click=_move,
            args=(index, step),
        )
    for field, problem in wrong.items():
        st.markdown(f":red[:material/error: {field.capitalize()}: {plain(problem)}]")


_STEPS = (
    ("Move up", ":material/arrow_upward:", -1),
    ("Move down", ":material/arrow_downward:", 1),
    ("Delete", ":material/delete:", 0),
)


def _move(index: int, step: int) -> None:
    """Move a row by one, or with 0 take it out."""
    rows = list(st.session_state[_ROWS])
    row = rows.pop(index)
    if step:
        rows.insert(index + step, row)
    st.session_state[_ROWS] = rows


def _take_picked(row: int) -> None:
    st.session_state[_key(row, "colour")] = st.session_state[_key(row, "picker")]


def _shown(index: int, colour: str) -> str:
    """Return the colour to show: the one typed, else the one that the editor takes."""
    try:
        return colour_of(colour) or PALETTE[index % len(PALETTE)]
    except UsageError:
        return "#ffffff"


def _problems(index: int, values: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what is wrong with the fields of one label, by field."""
    fields = values[index]
    found = {}
    before = values[:index]
    if any(fields.values()) and not fields["name"]:
        found["name"] = "a label needs one"
    elif fields["name"] and fields["name"] in (each["name"] for each in before):
        found["name"] = f"“{fields['name']}” stands above already"
    try:
        colour_of(fields["colour"])
    except UsageError as error:
        found["colour"] = str(error)
    key = fields["key"]
    if key and key not in "123456789":
        taken = next((each.does for each in KEYS if key in each.keys), None)
        used = f"“{key}” is a key of Review already ({taken})" if taken else f"“{key}” is none"
        found["key"] = f"{used}: labels have the digits 1 to 9"
    elif key and key in (each["key"] for each in before):
        of = next(each["name"] for each in before if each["key"] == key)
        found["key"] = f"“{key}” is the key of “{of}” already"
    return found


def _label(fields: Mapping[str, str]) -> SpanLabel:
    return SpanLabel(
        name=fields["name"],
        colour=colour_of(fields["colour"]),
        key=fields["key"] or None,
        description=fields["description"],
    )


def _values(row: int) -> dict[str, str]:
    return {field: (st.session_state.get(_key(row, field)) or "").strip() for field in _FIELDS}


def _key(row: int, field: str) -> str:
    return f"spanlab.label.{row}.{field}"
