"""The first records of a file as they stand, so that people see which column is which."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from spanlab.results import counted

_SHOWN = 5  # records


_LONGEST = 300  # characters of a cell


_NARROW, _WIDE = 90, 420  # pixels of a column


_LETTER = 8  # pixels


def show_samples(samples: Sequence[Mapping[str, Any]]) -> None:
    """Draw the first records as a table, a column as wide as what stands in it."""
    if not samples:
        return
    rows = [{name: _cell(value) for name, value in each.items()} for each in samples[:_SHOWN]]
    names = list(dict.fromkeys(name for row in rows for name in row))
    st.markdown(f"**The first {counted(len(rows), 'record')} as they stand**")
    st.dataframe(
        [{name: row.get(name, "") for name in names} for row in rows],
        hide_index=True,
        column_config={name: _column(name, rows) for name in names},
        alt="The first records of the file with all their columns",
    )


def _cell(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = "" if value is None else " ".join(text[: 2 * _LONGEST].split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _column(name: str, rows: Sequence[Mapping[str, str]]) -> Any:
    longest = max(len(name), *(len(row.get(name, "")) for row in rows))
    width = min(max(_LETTER * longest, _NARROW), _WIDE)
    return st.column_config.TextColumn(name, width=width)
