"""The help of every command, for the guide."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import typer.main
from typer.core import TyperGroup

from spanlab.cli.app import app

_WIDTH = 80  # characters in a line, in a terminal and in the guide


@cache
def helps() -> str:
    """Return what `--help` says of every command, as Markdown, in the order of their list."""
    group: Any = typer.main.get_command(app)
    context: Any = typer.Context(group, info_name="spanlab", **app.info.context_settings or {})
    return "\n".join(_helps(group, context))


def _helps(group: TyperGroup, context: Any) -> Iterator[str]:
    for name in group.commands:
        command: Any = group.get_command(context, name)
        inner = typer.Context(
            command, parent=context, info_name=name, terminal_width=_WIDTH
        )  # takes the flags of help from its parent
        yield f"{'#' * len(inner.command_path.split())} {inner.command_path}\n"
        yield f"```text\n{command.get_help(inner).strip()}\n```\n"
        if isinstance(command, TyperGroup):
            yield from _helps(command, inner)
