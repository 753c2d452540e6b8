"""Rows that people edit in the session; the labels of a dataset as such rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import streamlit as st

from spanlab.base.errors import UsageError
from spanlab.schema import LABEL_SETS, SpanLabel
from spanlab.storage.datasets import colour_of
from spanlab.ui.common import plain
from spanlab.ui.editor_keys import KEYS, PALETTE

_ids = itertools.count()
_STEPS: Final = (
    ("Move up", ":material/arrow_upward:", -1),
    ("Move down", ":material/arrow_downward:", 1),
    ("Delete", ":material/delete:", 0),
)


class EditedRows:
    """Rows of widgets that people add, move and delete in a session, such as labels.

    Args:
        name: what the widgets' keys begin with.
        noun: what one row is called in help texts.
        fields: the fields of a row, each with the value of a new one.
    """

    def __init__(self, name: str, noun: str, fields: Mapping[str, Any]) -> None:
        self._name = f"spanlab.{name}s"  # the numbers of the rows, in their order
        self._prefix = f"spanlab.{name}"
        self._noun = noun
        self.fields = fields

    @property
    def numbers(self) -> list[int]:
        """The rows, each by a number that it keeps."""
        rows: list[int] = st.session_state.get(self._name, [])
        return rows

    def begin(self, rows: Iterable[Mapping[str, Any]], *, anew: bool = False) -> None:
        """Begin with these values, unless rows are being edited that the session still has."""
        first_field = next(iter(self.fields))
        is_kept = self._name in st.session_state and all(
            self.key(row, first_field) in st.session_state for row in self.numbers
        )
        if is_kept and not anew:
            return  # Streamlit forgets what is in fields once another page is open
        self.forget()
        st.session_state[self._name] = []
        for values in rows:
            self.add(values)

    def forget(self) -> None:
        """Forget what was edited: the next one begins with what is stored."""
        for row in st.session_state.pop(self._name, []):
            for field in self.fields:
                st.session_state.pop(self.key(row, field), None)

    def add(self, values: Mapping[str, Any] | None = None) -> None:
        """Add a row; what it has no value for is as a new one has it."""
        row = next(_ids)
        for field, usual in self.fields.items():
            value = (values or {}).get(field)
            st.session_state[self.key(row, field)] = usual if value is None else value
        st.session_state[self._name] = [*self.numbers, row]

    def values(self, row: int) -> dict[str, Any]:
        """Return what the fields of a row hold, texts without space around them."""
        values = {}
        for field, usual in self.fields.items():
            value = st.session_state.get(self.key(row, field))
            value = usual if value is None else value
            values[field] = value.strip() if isinstance(value, str) else value
        return values

    def key(self, row: int, field: str) -> str:
        """Return the key of a field."""
        return f"{self._prefix}.{row}.{field}"

    def draw_steps(self, columns: Iterable[Any], index: int) -> None:
        """Draw the buttons that move the row at a place, or take it out."""
        rows = self.numbers
        for column, (name, icon, step) in zip(columns, _STEPS, strict=True):
            column.button(
                "",
                icon=icon,
                type="tertiary",
                help=f"{name} {self._noun} {index + 1}",
                key=self.key(rows[index], name),
                disabled=not 0 <= index + step < len(rows),
                on_click=self._move,
                args=(index, step),
            )

    def _move(self, index: int, step: int) -> None:
        """Move a row by one, or with 0 take it out."""
        rows = list(self.numbers)
        row = rows.pop(index)
        if step:
            rows.insert(index + step, row)
        st.session_state[self._name] = rows


ROWS: Final = EditedRows(
    "label", "label", dict.fromkeys(("name", "colour", "key", "description"), "")
)
_WIDTHS: Final = (0.5, 2.2, 1.3, 0.7, 3.4, 0.5, 0.5, 0.5)
_STYLE = """<style>
.st-key-label-rows [data-testid="stColorPicker"] > div { min-width: 0; }
.st-key-label-rows [data-testid="stHorizontalBlock"] { gap: 0.4rem; }
</style>"""


def edit_labels(labels: Sequence[SpanLabel]) -> tuple[SpanLabel, ...] | None:
    """Draw the labels as rows that can be changed, with what is wrong under each.

    Args:
        labels: those to begin with.

    Returns:
        The labels as they stand; None while one of them is wrong.
    """
    ROWS.begin(label.model_dump() for label in labels)
    st.selectbox(
        "Use a predefined label set",
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
    wrong = [_find_problems(index, values) for index in range(len(values))]
    with st.container(key="label-rows"):
        if values:
            _draw_heads()
        for index in range(len(values)):
            _draw_row(index, wrong[index])
    st.button("Add a label", icon=":material/add:", on_click=ROWS.add)
    if any(wrong):
        return None
    return tuple(_label(fields) for fields in values if any(fields.values()))


def _take_set() -> None:
    name = st.session_state["spanlab.label-set"]
    if name is not None:
        ROWS.begin((label.model_dump() for label in LABEL_SETS[name]), anew=True)


def _draw_heads() -> None:
    heads = ("", "Label", "Colour", "Key", "Description")
    for column, head in zip(st.columns(_WIDTHS), heads, strict=False):
        column.caption(head)


def _draw_row(index: int, wrong: Mapping[str, str]) -> None:
    """Draw one label, and under it what is wrong with its fields."""
    row, number = ROWS.numbers[index], index + 1
    columns = st.columns(_WIDTHS, vertical_alignment="center")
    with columns[0]:
        st.session_state[ROWS.key(row, "picker")] = _shown_colour(index, ROWS.values(row)["colour"])
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
    for column, (name, field, placeholder, max_chars) in zip(columns[1:5], texts, strict=True):
        column.text_input(
            name,
            label_visibility="collapsed",
            key=ROWS.key(row, field),
            placeholder=placeholder,
            max_chars=max_chars,
        )
    ROWS.draw_steps(columns[5:], index)
    for field, problem in wrong.items():
        st.markdown(f":red[:material/error: {field.capitalize()}: {plain(problem)}]")


def _take_picked(row: int) -> None:
    st.session_state[ROWS.key(row, "colour")] = st.session_state[ROWS.key(row, "picker")]


def _shown_colour(index: int, colour: str) -> str:
    """Return the colour to show: the one typed, else the one that the editor takes."""
    try:
        return colour_of(colour) or PALETTE[index % len(PALETTE)]
    except UsageError:
        return "#ffffff"


def _find_problems(index: int, values: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return what is wrong with the fields of one label, by field."""
    fields = values[index]
    problems = {}
    rows_above = values[:index]
    if any(fields.values()) and not fields["name"]:
        problems["name"] = "a label needs one"
    elif fields["name"] and fields["name"] in (row["name"] for row in rows_above):
        problems["name"] = f"“{fields['name']}” exists above"
    try:
        colour_of(fields["colour"])
    except UsageError as error:
        problems["colour"] = str(error)
    key = fields["key"]
    if key and key not in "123456789":
        action = next((binding.does for binding in KEYS if key in binding.keys), None)
        reason = f"a key of Review already ({action})" if action else "not a digit"
        problems["key"] = f"“{key}” is {reason}: labels have the digits 1 to 9"
    elif key and key in (row["key"] for row in rows_above):
        other_name = next(row["name"] for row in rows_above if row["key"] == key)
        problems["key"] = f"“{key}” is the key of “{other_name}” already"
    return problems


def _label(fields: Mapping[str, str]) -> SpanLabel:
    return SpanLabel(
        name=fields["name"],
        colour=colour_of(fields["colour"]),
        key=fields["key"] or None,
        description=fields["description"],
    )
