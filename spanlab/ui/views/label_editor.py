"""The labels of a dataset as rows to edit: name, colour, key, description, order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import streamlit as st

from spanlab.errors import UsageError
from spanlab.schema import LABEL_SETS, SpanLabel
from spanlab.ui.common import plain
from spanlab.ui.span_editor import KEYS, PALETTE
from spanlab.ui.views.edited_rows import EditedRows
from spanlab.workflows.datasets import colour_of

ROWS: Final = EditedRows(
    "label", "label", dict.fromkeys(("name", "colour", "key", "description"), "")
)


_WIDTHS: Final = (0.5, 2.2, 1.3, 0.7, 3.4, 0.5, 0.5, 0.5)


_STYLE = """<style>
.st-key-label-rows [data-testid="stColorPicker"] > div { min-width: 0; }
.st-key-label-rows [data-testid="stHorizontalBlock"] { gap: 0.4rem; }
</style>"""


def edit_labels(chosen: Sequence[SpanLabel]) -> tuple[SpanLabel, ...] | None:
    """Draw the labels as rows that can be changed, with what is wrong under each.

    Args:
        chosen: the labels to begin with.

    Returns:
        The labels as they stand; None while one of them is wrong.
    """
    ROWS.begin(label.model_dump() for label in chosen)
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
    values = [ROWS.values(row) for row in ROWS.numbers]
    wrong = [_problems(index, values) for index in range(len(values))]
    with st.container(key="label-rows"):
        if values:
            _heads()
        for index in range(len(values)):
            _row(index, wrong[index])
    st.button("Add a label", icon=":material/add:", on_click=ROWS.add)
    if any(wrong):
        return None
    return tuple(_label(fields) for fields in values if any(fields.values()))


def _take_set() -> None:
    name = st.session_state["spanlab.label-set"]
    if name is not None:
        ROWS.begin((label.model_dump() for label in LABEL_SETS[name]), anew=True)


def _heads() -> None:
    heads = ("", "Label", "Colour", "Key", "Description")
    for column, head in zip(st.columns(_WIDTHS), heads, strict=False):
        column.caption(head)


def _row(index: int, wrong: Mapping[str, str]) -> None:
    """Draw one label, and under it what is wrong with its fields."""
    row, number = ROWS.numbers[index], index + 1
    columns = st.columns(_WIDTHS, vertical_alignment="center")
    with columns[0]:
        st.session_state[ROWS.key(row, "picker")] = _shown(index, ROWS.values(row)["colour"])
        st.color_picker(
            f"Pick the colour of label {number}",
            label_visibility="collapsed",
            key=ROWS.key(row, "picker"),
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
            key=ROWS.key(row, field),
            placeholder=placeholder,
            max_chars=most,
        )
    ROWS.draw_steps(columns[5:], index)
    for field, problem in wrong.items():
        st.markdown(f":red[:material/error: {field.capitalize()}: {plain(problem)}]")


def _take_picked(row: int) -> None:
    st.session_state[ROWS.key(row, "colour")] = st.session_state[ROWS.key(row, "picker")]


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
    elif fields["name"] and fields["name"] in (row["name"] for row in before):
        found["name"] = f"“{fields['name']}” stands above already"
    try:
        colour_of(fields["colour"])
    except UsageError as error:
        found["colour"] = str(error)
    key = fields["key"]
    if key and key not in "123456789":
        taken = next((binding.does for binding in KEYS if key in binding.keys), None)
        used = f"“{key}” is a key of Review already ({taken})" if taken else f"“{key}” is none"
        found["key"] = f"{used}: labels have the digits 1 to 9"
    elif key and key in (row["key"] for row in before):
        of = next(row["name"] for row in before if row["key"] == key)
        found["key"] = f"“{key}” is the key of “{of}” already"
    return found


def _label(fields: Mapping[str, str]) -> SpanLabel:
    return SpanLabel(
        name=fields["name"],
        colour=colour_of(fields["colour"]),
        key=fields["key"] or None,
        description=fields["description"],
    )
