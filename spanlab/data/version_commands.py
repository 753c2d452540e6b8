"""`spanlab snapshot`, `diff`, `bin`, `backup` and `restore`: what is kept, and brought back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from spanlab.base.errors import UsageError
from spanlab.cli import console
from spanlab.data.backup import back_up
from spanlab.data.backup import restore as restore_backup
from spanlab.data.versions import diff_datasets
from spanlab.data.versions import snapshot as keep
from spanlab.output.figures import counted
from spanlab.output.tables import ResultTable, columns_of
from spanlab.storage import Store

app = typer.Typer(no_args_is_help=True, help="Deleted datasets: list, restore, delete permanently.")


def snapshot(
    dataset: Annotated[str, typer.Argument(help="The dataset.")],
    name: Annotated[str, typer.Argument(help="What the version is called, such as v1.")],
) -> None:
    """Keep a dataset as it is now, under DATASET@NAME, which never changes.

    Its SHA-256 is that of the file which export writes. Export, score, rates, agreement and the
    pages Compare and Export take DATASET@NAME like a dataset.

    \b
    spanlab snapshot mine v1
    spanlab export mine@v1 -o v1.jsonl
    spanlab score mine@v1 gold.jsonl --annotator anna
    """
    with Store.open() as store, console.bar("hashing", unit="items") as advance:
        digest = keep(store, dataset, name, advance)
    typer.echo(f"{dataset}@{name}: SHA-256 {digest}", err=True)


def diff(
    a: Annotated[str, typer.Argument(help="A dataset, or a version as DATASET@NAME.")],
    b: Annotated[str, typer.Argument(help="What it is compared with: another dataset or version.")],
    as_json: Annotated[bool, typer.Option("--json", help="All changes as JSON.")] = False,
) -> None:
    """Say what differs between two datasets or versions: items, spans, and who made them.

    \b
    spanlab diff mine@v1 mine
    spanlab diff mine@v1 mine@v2 --json
    """
    with Store.open() as store:
        console.write_result(diff_datasets(store, a, b), json=as_json)


@app.command("list")
def list_bin() -> None:
    """List the deleted datasets, and until when each can come back."""
    with Store.open() as store:
        rows = tuple(
            (
                deleted.name,
                deleted.n_items,
                f"{deleted.deleted:%Y-%m-%d}",
                f"{deleted.until:%Y-%m-%d}",
            )
            for deleted in store.binned()
        )
    columns = (
        *columns_of("text", "Dataset"),
        *columns_of("count", "Items"),
        *columns_of("text", "Deleted", "Kept until"),
    )
    console.write_tables(
        [ResultTable(key="bin", title="Bin", columns=columns, rows=rows, empty="the bin is empty")]
    )


@app.command()
def put(dataset: Annotated[str, typer.Argument(help="The dataset, or a version.")]) -> None:
    """Delete a dataset with its versions; for 30 days it can come back."""
    with Store.open() as store:
        store.bin_dataset(dataset)
    typer.echo(f"{dataset} is in the bin: spanlab bin restore {dataset} brings it back", err=True)


@app.command("restore")
def restore_dataset(
    dataset: Annotated[str, typer.Argument(help="What the dataset was called.")],
    new: Annotated[str | None, typer.Option("--as", help="Its new name.")] = None,
) -> None:
    """Bring back the dataset that was deleted last under a name, with its versions."""
    with Store.open() as store:
        store.restore_dataset(dataset, new)
    typer.echo(f"{new or dataset} is back", err=True)


@app.command()
def empty(
    dataset: Annotated[str, typer.Argument(help="What the dataset was called.")],
    yes: Annotated[bool, typer.Option("--yes", help="Confirm permanent deletion.")] = False,
) -> None:
    """Permanently delete the dataset that was deleted last under a name."""
    if not yes:
        raise UsageError(f"this permanently deletes {dataset!r} with all annotations. Add --yes.")
    with Store.open() as store:
        store.empty_bin(dataset)
        n_binned = len(store.binned())
    typer.echo(f"{dataset} was deleted; {counted(n_binned, 'dataset')} in the bin", err=True)


def backup(
    file: Annotated[Path, typer.Argument(help="The file to write, such as spanlab.zip.")],
    yes: Annotated[bool, typer.Option("--yes", help="Replace a file of that name.")] = False,
) -> None:
    """Write all datasets, reviews, tuned prompts, tools.json and the memory into one file.

    People may go on working meanwhile: the file holds one moment. Roles, invitations and the log of
    access are in it. Keys, links to reports, reserved items, the bin, jobs and the reply cache are
    not. It is read back and compared by SHA-256 before it appears.

    \b
    spanlab backup spanlab.zip
    """
    if file.exists() and not yes:
        raise UsageError(f"{file} already exists: add --yes to replace it, or name another")
    manifest = back_up(file)
    programs = counted(manifest.n_programs, "file") + " of tuned prompts"
    typer.echo(f"{file}: the database and {programs}, {file.stat().st_size:,} bytes", err=True)
    typer.echo(
        "not in it: keys, links to reports, reserved items, the bin, jobs and the reply cache",
        err=True,
    )


def restore(
    file: Annotated[Path, typer.Argument(help="A file that `spanlab backup` wrote.")],
    yes: Annotated[
        bool, typer.Option("--yes", help="Confirm: replace all that the database holds.")
    ] = False,
) -> None:
    """Put a backup into a database, SQLite or PostgreSQL, whichever it came from.

    All of it or nothing. A database that holds something is left alone without --yes.

    \b
    SPANLAB_HOME=copy spanlab restore spanlab.zip
    """
    manifest, has_log = restore_backup(file, replace=yes)
    typer.echo(f"restored what {file} holds, of {manifest.created}", err=True)
    log = "" if has_log else "; the log of access is the one that was here"
    typer.echo(
        f"roles and invitations are those of then, keys have to be made again{log}", err=True
    )
