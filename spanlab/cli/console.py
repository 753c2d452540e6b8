"""Output of commands: results on standard output, progress and remarks on standard error."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import typer

from spanlab.base.redaction import visible
from spanlab.output.tables import Result, ResultTable, as_json, as_text


def write_result(result: Result, *, json: bool, ascii_only: bool = True) -> None:
    """Write a result as JSON if asked to, else its tables.

    Args:
        result: what a command found.
        json: whether programs read it.
        ascii_only: whether JSON has other characters escaped.
    """
    if json:
        typer.echo(as_json(result, ascii_only=ascii_only))
    else:
        write_tables(result.tables())


def write_tables(tables: Iterable[ResultTable], *, err: bool = False) -> None:
    """Write tables as wide as they are; on a terminal folded to its width, with bold heads."""
    stream = sys.stderr if err else sys.stdout
    is_terminal = stream.isatty()
    width = shutil.get_terminal_size().columns if is_terminal else None
    bold = is_terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    typer.echo(as_text(tables, width=width, colour=bold), err=err)


Advance = Callable[[int], None]  # called with the number done so far


def say(text: str) -> None:
    """Write one line to standard error."""
    typer.echo(visible(text), err=True)


@contextmanager
def bar(task: str, *, unit: str, total: int | None = None) -> Iterator[Advance]:
    """Show the progress of a ``task`` (a participle) in a ``unit``, of a ``total`` if it is known.

    Yields:
        A function to call with the number done so far. On a terminal it keeps a bar with rate and
        remaining time; elsewhere it writes a line every ten seconds, so that logs stay short.
    """
    if not sys.stderr.isatty():
        yield _lines(f"{task}: {{done:,}}{f' of {total:,}' if total else ''} {unit}")
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        handle = progress.add_task(task, total=total)
        yield lambda done: progress.update(handle, completed=done)


@contextmanager
def steps(task: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show the progress of a ``task`` (a participle) of several stages.

    Yields:
        A function to call with the stage, and how many of how many of its steps are done. Every
        new stage is named on a line of its own.
    """
    done, stage = 0, ""
    with bar(task, unit="steps") as advance:

        def report(name: str, _done: int, _total: int) -> None:
            nonlocal done, stage
            if name != stage:
                stage = name
                say(f"{task}: {name}")
            done += 1
            advance(done)

        yield report


def _lines(text: str) -> Advance:
    """Return progress for a log: one line every ten seconds."""
    due = time.monotonic() + 10

    def advance(done: int) -> None:
        nonlocal due
        if time.monotonic() >= due:
            due = time.monotonic() + 10
            say(text.format(done=done))

    return advance


def exit_status(failed: int, items: int, *, stopped: bool = False) -> int:
    """Return the exit status of a run.

    Returns:
        3 if its budget ended it early, or some of its items failed; 1 if all did; else 0.
    """
    if stopped or 0 < failed < items:
        return 3
    return 1 if failed else 0
