"""The command that shows the guide."""

from __future__ import annotations

import os
import sys
import webbrowser
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from spanlab.base.guide import GuidePage


def guide(
    topic: Annotated[
        str | None, typer.Argument(help="A page, such as review or papelo; without it, the list.")
    ] = None,
    search: Annotated[
        str | None, typer.Option(help="List the pages that have these words.")
    ] = None,
) -> None:
    """Show the guide: in the browser where there is a display, else in the terminal.

    \b
    spanlab guide
    spanlab guide review
    spanlab guide --search certificate
    """
    from spanlab.base.guide import INDEX, guide_page, guide_pages, search_guide

    if search is not None:
        hits = search_guide(search)
        if hits and hits[0].lacking:
            typer.echo("No page has all of these words. These have most of them:", err=True)
        for hit in hits:
            typer.echo(f"{hit.page.topic:<22} {hit.line}")
        if not hits:
            typer.echo("No page has any of these words. Try others.", err=True)
            raise typer.Exit(1)
        return
    page = None if topic is None else guide_page(topic)
    if _has_display():
        _open_page(INDEX if page is None else page.topic)
    elif page is None:
        for entry in guide_pages():
            if entry.in_menu:
                typer.echo(f"{entry.topic:<22} {entry.about}")
        typer.echo("Each detector has a page, too: spanlab guide offline")
    else:
        _print_page(page)


def _has_display() -> bool:
    """Say whether somebody sits before a terminal and a screen; a pipe gets text."""
    screens = ("DISPLAY", "WAYLAND_DISPLAY")
    return sys.stdout.isatty() and (
        sys.platform in {"darwin", "win32"} or any(map(os.environ.get, screens))
    )


def _open_page(topic: str) -> None:
    from spanlab.base.guide import write_html
    from spanlab.base.settings import Settings

    folder = (Settings.read().home / "guide").resolve()
    write_html(folder)
    address = (folder / f"{topic}.html").as_uri()
    webbrowser.open(address)
    typer.echo(address)


def _print_page(page: GuidePage) -> None:
    from rich.console import Console
    from rich.markdown import Markdown

    words = "\n".join(line for line in page.text.splitlines() if not line.startswith("!["))
    Console(width=None if sys.stdout.isatty() else 100).print(Markdown(words))
