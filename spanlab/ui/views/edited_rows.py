"""Rows of fields that people add, move and take out, as they stand in the session."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any, Final

import streamlit as st

_ids = itertools.count()


_STEPS: Final = (
    ("Move up", ":material/arrow_upward:", -1),
    ("Move down", ":material/arrow_downward:", 1),
    ("Delete", ":material/delete:", 0),
)


class EditedRows:
    """Rows of one ``noun``; their ``fields`` begin with a value, and each has a key of its own."""

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

    def begin(self, chosen: Iterable[Mapping[str, Any]], *, anew: bool = False) -> None:
        """Begin with these values, unless rows are being edited that the session still has."""
        first = next(iter(self.fields))
        kept = self._name in st.session_state and all(
            self.key(row, first) in st.session_state for row in self.numbers
        )
        if kept and not anew:
            return  # Streamlit forgets what is in fields once another page is open
        self.forget()
        st.session_state[self._name] = []
        for values in chosen:
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
