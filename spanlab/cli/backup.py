"""`spanlab backup` and `spanlab restore`: everything that people made, in one file and back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanlab.errors import UsageError
from spanlab.results import counted


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, such as spanlab.zip.")],
    yes: Annotated[bool, typer.Option("--yes", help="Replace a file of that name.")] = False,
) -> None:
    """Write all datasets, reviews, tuned programs, tools.json and the memory into one file.

    People may go on working meanwhile: the file holds one moment. Keys, jobs and answers of models
    are not in it. It is read back and compared by SHA-256 before it appears.

    \b
    spanlab backup spanlab.zip
    """
    from spanlab.workflows.backup import back_up

    if file.exists() and not yes:
        raise UsageError(f"{file} is there already: add --yes to replace it, or name another")
    manifest = back_up(file)
    programs = counted(manifest.n_programs, "file") + " of programs"
    typer.echo(f"{file}: the database and {programs}, {file.stat().st_size:,} bytes", err=True)


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `spanlab backup` wrote.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Replace what the database holds, for good.")
    ] = False,
) -> None:
    """Put a backup into a database, SQLite or PostgreSQL, whichever it came from.

    All of it or nothing. A database that holds something is left alone without --yes.

    \b
    SPANLAB_HOME=copy spanlab restore spanlab.zip
    """
    from spanlab.workflows.backup import restore as restore_backup

    manifest = restore_backup(file, replace=yes)
    typer.echo(f"restored what {file} holds, of {manifest.created}", err=True)
