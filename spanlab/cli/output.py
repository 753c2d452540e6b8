"""What commands write to standard output: results as tables, or their figures as JSON."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable

import typer

from spanlab.results import Result, ResultTable, as_json, as_text


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
