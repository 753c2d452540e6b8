"""`spanlab memory`: what evidence is kept, to and from files, pinned, blocked and deleted."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from spanlab.base.errors import UsageError, unreadable
from spanlab.base.redaction import visible
from spanlab.formats.files import replacing
from spanlab.memory.store import MemoryStore
from spanlab.memory.workflow import entities_like, export_lines, import_lines, open_memory, scopes
from spanlab.output.figures import counted

app = typer.Typer(
    no_args_is_help=True,
    help="""The evidence that detectors keep for later claims.

    \b
    spanlab memory list --entity "Eiffel Tower"
    spanlab memory export -o memory.jsonl
    spanlab memory import memory.jsonl
    spanlab memory pin 12
    spanlab memory block 13
    spanlab memory delete 14
    spanlab memory clear --yes
    """,
)

Scope = Annotated[
    str, typer.Option("--scope", help="Which memory: the detectors' option memory_scope.")
]
Number = Annotated[int, typer.Argument(metavar="ENTRY", help="Its number in `memory list`.")]
Undo = Annotated[bool, typer.Option("--undo", help="Undo this for the entry.")]


def _memory() -> MemoryStore:
    return open_memory()


@app.command("list")
def list_command(
    scope: Scope = "",
    entity: Annotated[str | None, typer.Option(help="Only entries of this entity.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="Maximum entries, newest first.")] = 20,
) -> None:
    """List what is kept: number, day, tool, source, entities and text.

    \b
    spanlab memory list --entity "Eiffel Tower"
    """
    with _memory() as store:
        entities = [None] if entity is None else entities_like(store, scope, entity)[:1]
        for stored in (
            stored_entry for key in entities for stored_entry in store.page(scope, key, limit=limit)
        ):
            entry = stored.entry
            day = datetime.fromtimestamp(entry.at, UTC).date().isoformat()
            marks = [word for word in ("pinned", "blocked") if getattr(stored, word)]
            source = entry.url or entry.title or "unknown source"
            about = ", ".join([day, entry.tool or "by hand", source, *marks])
            under, text = "; ".join(entry.entities), " ".join(entry.text.split())
            typer.echo(visible(f"{stored.id}\t{about}\t{under}\t{text}"))
        sizes = scopes(store)
        if not sizes:
            typer.echo("Nothing is kept yet: `mermaid` keeps what it finds.", err=True)
        for size in sizes:
            called = f"scope {size.name}" if size.name else "shared memory"
            typer.echo(f"{called}: {counted(size.entries, 'passage')}", err=True)


@app.command("export")
def export_command(
    output: Annotated[Path, typer.Option("-o", "--output", help="The file to write.")],
    scope: Scope = "",
) -> None:
    """Write what is kept to a JSON Lines file; blocked entries are left out.

    \b
    spanlab memory export -o memory.jsonl
    """
    with _memory() as store, replacing(output) as stream:
        stream.writelines(export_lines(store, scope))


@app.command("import")
def import_command(
    file: Annotated[Path, typer.Argument(help="What `spanlab memory export` wrote.")],
    scope: Scope = "",
) -> None:
    """Keep the entries of a file, beside those that are there.

    \b
    spanlab memory import memory.jsonl --scope ours
    """
    try:
        with _memory() as store, file.open("rb") as lines:
            number = import_lines(store, scope, lines, file)
    except OSError as error:
        raise unreadable(file, error) from error
    typer.echo(f"{counted(number, 'passage')} kept.", err=True)


@app.command()
def pin(entry: Number, undo: Undo = False) -> None:
    """Recall an entry before all others of its entities.

    \b
    spanlab memory pin 12
    """
    with _memory() as store:
        store.pin(entry, pinned=not undo)


@app.command()
def block(entry: Number, undo: Undo = False) -> None:
    """Never recall an entry, also when it is found again.

    \b
    spanlab memory block 13
    """
    with _memory() as store:
        store.block(entry, blocked=not undo)


@app.command()
def delete(entry: Number) -> None:
    """Forget an entry; it is kept again when it is found again.

    \b
    spanlab memory delete 14
    """
    with _memory() as store:
        store.delete(entry)


@app.command()
def clear(
    scope: Scope = "",
    yes: Annotated[bool, typer.Option("--yes", help="Confirm.")] = False,
) -> None:
    """Permanently delete all evidence of a scope.

    \b
    spanlab memory clear --yes
    """
    if not yes:
        raise UsageError("this permanently deletes all evidence of the scope. Add --yes.")
    with _memory() as store:
        number = store.clear(scope)
    typer.echo(f"{counted(number, 'passage')} deleted.", err=True)
