"""Messages about work: how far it is, that it succeeded, or why it failed."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from contextvars import copy_context
from threading import Thread
from typing import TypeVar

import streamlit as st

from spanlab import doors
from spanlab.base.errors import InputError, SpanlabError, UnnamedModelError
from spanlab.base.options import options_in
from spanlab.formats.read_options import ReadOptions
from spanlab.output.figures import counted, duration
from spanlab.ui.common import plain

T = TypeVar("T")
_NEWS = "spanlab.news"
_WORK = "spanlab.work"
_TURN = 0.05  # seconds
_LONGEST = 300  # characters of a found value
_FLAG = re.compile(r" \(--[a-z-]+\)")  # which command's option is meant: pages have boxes
_OPTION = re.compile(r"(?<!\S)(--[a-z]+(?:-[a-z]+)*)(?: (\w+))?")


def tell_after_rerun(text: str) -> None:
    """Keep a success message for the next run of a page."""
    st.session_state[_NEWS] = text


def show_news() -> None:
    """Draw the message that was kept, once."""
    text = st.session_state.pop(_NEWS, None)
    if text:
        st.success(plain(text), icon=":material/check_circle:")


def awaited(text: str, work: Callable[[], T], about: object = None) -> T:
    """Do what takes seconds under a spinner, in a thread, and return what it returns.

    A run that somebody has gone on from ends where it next calls Streamlit: where it did the work
    itself, a click on another page would wait for it.

    Args:
        text: what is done, for the spinner.
        work: a function that calls nothing of Streamlit's.
        about: what it is done for; a later run that wants the same takes what was begun.
    """
    begun: tuple[object, Future[T]] | None = st.session_state.get(_WORK)
    if begun is None or about is None or begun[0] != about:
        begun = st.session_state[_WORK] = about, Future()
        Thread(target=copy_context().run, args=(_do, work, begun[1]), daemon=True).start()
    with st.spinner(text):
        while not begun[1].done():
            wait([begun[1]], _TURN)
            st.session_state.get(_WORK)  # the run ends here if somebody has gone on
    st.session_state.pop(_WORK, None)
    return begun[1].result()


def _do(work: Callable[[], T], done: Future[T]) -> None:
    try:
        done.set_result(work())
    except BaseException as error:  # noqa: BLE001 - who waits for it gets it, a panic of Rust, too
        done.set_exception(error)


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
    if isinstance(error, UnnamedModelError):  # pages have a box for it
        lines = ["Enter a model name."]
    elif isinstance(error, InputError):
        lines = [f"**{_line(_sentence(in_page_words(error.what)))}**", *_details(error)]
    else:
        lines = [in_page_sentence(str(error))]
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
        value = error.found if isinstance(error.found, str) else repr(error.found)
        yield f"Found: {_line(value)}"
    if error.expected is not None:
        yield f"Expected: {_line(in_page_words(error.expected))}"
    if error.count > 1:
        yield f"{error.count:,} records like this"
    yield from map(_line, error.others)


def in_page_sentence(text: str) -> str:
    """Return an error's text as pages show it."""
    return _line(_sentence(in_page_words(text)))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def in_page_words(text: str) -> str:
    """Return a text with the names of boxes where a command has options: “Encoding”."""
    offer = doors.offer("options", "import")
    boxes = options_in(ReadOptions if offer is None else offer.load())
    options = {option.flags[-1].partition("/")[0]: option for option in boxes}

    def box_of(found: re.Match[str]) -> str:
        flag, value = found[1], found[2] or ""
        option = options.get(flag)
        label = option.label if option else flag.strip("-").replace("-", " ").capitalize()
        titles = (option and option.titles) or {}
        choice = titles.get(value) or titles.get("true")
        rest = f" {value}" if value and value not in titles else ""
        return f"“{label}{f': {choice}' if choice else ''}”{rest}"

    return _OPTION.sub(box_of, _FLAG.sub("", text))


def _line(text: str) -> str:
    return plain(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…")


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
    of_total = f" of {'about ' if about else ''}{total:,}" if total and done <= total else ""
    parts = [f"{done:,}{of_total} items" if of_total else counted(done, "item")]
    if done and seconds > 0:
        rate = done / seconds
        parts.append(f"{rate:,.0f} a second" if rate >= 1 else f"{1 / rate:,.1f} s each")
        if of_total:
            parts.append(f"{duration((total or 0) / rate - seconds)} left")
    return " · ".join(parts)
