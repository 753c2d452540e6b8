"""Progress and remarks on standard error; standard output is for data."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

Advance = Callable[[int], None]  # called with the number done so far


def say(text: str) -> None:
    """Write one line to standard error."""
    typer.echo(text, err=True)


@contextmanager
def bar(task: str, *, unit: str, total: int | None = None) -> Iterator[Advance]:
    """Show how far a task is while it runs.

    Args:
        task: what is being done, as a participle.
        unit: what is counted.
        total: how many there are, if that is known.

    Yields:
        A function to call with the number done so far. On a terminal it keeps a bar with rate and
        remaining time; elsewhere it writes a line every ten seconds, so that logs stay short.
    """
    if not sys.stderr.isatty():
        yield _PlainProgress(task, unit, total)
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
    """Show how far a task of several stages is.

    Args:
        task: what is being done, as a participle.

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


class _PlainProgress:
    """Progress for a log: one line every ten seconds."""

    def __init__(self, task: str, unit: str, total: int | None) -> None:
        self._text = f"{task}: {{done:,}}{f' of {total:,}' if total else ''} {unit}"
        self._next = time.monotonic() + 10

    def __call__(self, done: int) -> None:
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 10
            say(self._text.format(done=done))
