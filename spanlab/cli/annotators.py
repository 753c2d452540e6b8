"""`spanlab annotators`: rename, merge and remove annotators of a dataset, mark one as gold."""

from __future__ import annotations

from typing import Annotated

import typer

from spanlab.errors import UsageError
from spanlab.results import counted

app = typer.Typer(
    no_args_is_help=True,
    help="""Annotators of a dataset: rename, merge, remove, mark as gold.

    `spanlab datasets` lists them.

    \b
    spanlab annotators rename mine anna "Anna K."
    spanlab annotators merge mine ana anna
    spanlab annotators gold mine anna
    spanlab annotators remove mine test-run
    """,
)

Dataset = Annotated[str, typer.Argument(help="A dataset.")]
Known = Annotated[str, typer.Argument(metavar="ANNOTATOR", help="Who has annotated it.")]


@app.command()
def rename(
    dataset: Dataset, annotator: Known, new: Annotated[str, typer.Argument(metavar="NEW")]
) -> None:
    """Give an annotator another name; votes that it has a part in name it so, too.

    \b
    spanlab annotators rename mine anna "Anna K."
    """
    from spanlab.storage import Store
    from spanlab.workflows.datasets import rename_annotator

    with Store.open() as store:
        rename_annotator(store, dataset, annotator, new)
    typer.echo(f"{annotator} is now called {new} in {dataset}.", err=True)


@app.command()
def merge(
    dataset: Dataset,
    annotator: Known,
    into: Annotated[str, typer.Argument(metavar="INTO", help="Whose annotations they become.")],
) -> None:
    """Make two annotators one; where both annotated an item, what INTO said stays.

    \b
    spanlab annotators merge mine ana anna
    """
    from spanlab.storage import Store

    with Store.open() as store:
        both = store.merge_annotators(dataset, annotator, into)
    typer.echo(f"{annotator} is {into} now in {dataset}{kept(both, into)}.", err=True)


def kept(both: int, into: str) -> str:
    """Say of how many items the annotation of ``into`` was kept; empty for none."""
    if not both:
        return ""
    return f"; of {counted(both, 'item')} that both had annotated, what {into} said stays"


@app.command()
def remove(
    dataset: Dataset,
    annotator: Known,
    yes: Annotated[bool, typer.Option("--yes", help="Yes, for good.")] = False,
) -> None:
    """Delete all that an annotator said of a dataset, for good.

    \b
    spanlab annotators remove mine test-run --yes
    """
    from spanlab.storage import Store

    if not yes:
        raise UsageError(
            f"this deletes all annotations of {annotator!r} in {dataset!r} for good: add --yes"
        )
    with Store.open() as store:
        store.remove_annotator(dataset, annotator)
    typer.echo(f"The annotations of {annotator} in {dataset} were deleted.", err=True)


@app.command()
def gold(
    dataset: Dataset,
    annotator: Known,
    undo: Annotated[bool, typer.Option("--undo", help="Count it as a person again.")] = False,
) -> None:
    """Let what a person said count as gold labels; nobody reviews under that name then.

    \b
    spanlab annotators gold mine anna
    spanlab annotators gold mine anna --undo
    """
    from spanlab.storage import Store

    with Store.open() as store:
        store.set_gold(dataset, annotator, gold=not undo)
    what = "a person" if undo else "gold labels"
    typer.echo(f"{annotator} counts as {what} in {dataset}.", err=True)
