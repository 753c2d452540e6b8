"""Messages about work that succeeded or failed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from spanlab.errors import InputError, SpanlabError
from spanlab.ui.common import plain

_NEWS = "spanlab.news"
_LONGEST = 300  # characters of a found value


def tell_after_rerun(text: str) -> None:
    """Keep a success message for the next run of a page."""
    st.session_state[_NEWS] = text


def show_news() -> None:
    """Draw the message that was kept, once."""
    text = st.session_state.pop(_NEWS, None)
    if text:
        st.success(plain(text), icon=":material/check_circle:")


@contextmanager
def errors_shown(consequence: str = "") -> Iterator[None]:
    """Show an error of spanlab's own in place of the block, instead of ending the page.

    Args:
        consequence: what the error means for people's data, such as "Nothing was imported."
    """
    try:
        yield
    except SpanlabError as error:
        show_error(error, consequence)


def show_error(error: SpanlabError, consequence: str = "") -> None:
    """Draw an error; a wrong input with its place, and what was found and would be right."""
    if isinstance(error, InputError):
        lines = [f"**{_line(_sentence(error.what))}**", *_details(error)]
    else:
        lines = [_line(_sentence(str(error)))]
    st.error(
        "  \n".join([*lines, *([consequence] if consequence else [])]), icon=":material/error:"
    )


def _details(error: InputError) -> Iterator[str]:
    if error.file is not None:
        line = "" if error.line is None else f", {error.unit} {error.line:,}"
        yield f"File: {_line(error.file)}{line}"
    if error.field is not None:
        yield f"Field: {_line(error.field)}"
    if error.found is not None:
        found = error.found if isinstance(error.found, str) else repr(error.found)
        yield f"Found: {_line(found)}"
    if error.expected is not None:
        yield f"Expected: {_line(error.expected)}"


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _line(text: str) -> str:
    return plain(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")
