"""Commands around the main road: what there is, the app, the demo, a detector of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from spanlab.cli.options import (
    Contexts,
)


def train_offline(
    files: Annotated[list[str], typer.Argument(help="Labelled files or globs.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file, such as my.npz.")],
    contexts: Contexts = None,
    annotator: Annotated[str, typer.Option(help="Whose annotation is learnt.")] = "gold",
    folds: Annotated[
        int, typer.Option(min=0, help="Cross-validate in so many folds, for the card; 0: do not.")
    ] = 0,
) -> None:
    """Train the offline detector on labelled items, and write the model with its card.

    It needs the extra: pip install 'spanlab[train]'. SPANLAB_OFFLINE_MODEL=FILE makes the
    detector use the model.

    \b
    spanlab train-offline val/*.jsonl --contexts contexts/ -o my.npz
    spanlab train-offline reviewed.jsonl --annotator anna --folds 5 -o my.npz
    """
    from spanlab.cli import inputs, progress
    from spanlab.workflows.training import Job, train_files

    words = ["spanlab", "train-offline", *files]
    words += ["--contexts", str(contexts)] if contexts else []
    words += ["--annotator", annotator] if annotator != "gold" else []
    words += ["--folds", str(folds)] if folds else []
    words += ["-o", str(output)]
    job = Job(inputs.files(files), output, contexts, annotator, folds, shlex.join(words))
    with progress.steps("training") as on_progress:
        card = train_files(job, on_warning=progress.say, on_progress=on_progress)
    for scores in card.scores:
        progress.say(f"{scores.mode}: IoU {scores.iou.mean:.3f}, Corr {scores.corr.mean:.3f}")
    progress.say(f"wrote {output} ({card.size:,} bytes, SHA-256 {card.sha256}) and its card")


def datasets() -> None:
    """List the datasets with their sizes, languages and annotators.

    Of each annotator it says how many items are in each state: not annotated, done (possibly
    without spans), failed or skipped.

    \b
    spanlab datasets
    """
    from spanlab.cli import tables
    from spanlab.storage import Store

    with Store.open() as store:
        typer.echo(tables.datasets(store.datasets()))


def serve(
    port: Annotated[
        int | None, typer.Option(min=1, max=65535, help="Default 8501, or the next free one.")
    ] = None,
) -> None:
    """Serve the app on this machine until Ctrl+C.

    \b
    spanlab serve
    spanlab serve --port 8600
    """
    from spanlab.cli import server

    raise typer.Exit(server.serve(port))


def demo(
    port: Annotated[int | None, typer.Option(min=1, max=65535, help="As in serve.")] = None,
    prepare_only: Annotated[
        bool, typer.Option("--prepare-only", help="Make the dataset, do not serve.")
    ] = False,
) -> None:
    """Import the samples once, let the offline detector and a vote mark them, and serve the app.

    Run again, it keeps all work and only serves.

    \b
    spanlab demo
    spanlab demo --prepare-only
    """
    from spanlab.cli import progress, server
    from spanlab.storage import Store
    from spanlab.workflows.demo import DATASET, detection_of_samples, prepare_samples
    from spanlab.workflows.running import unfinished_positions

    request = detection_of_samples()
    with Store.open() as store, progress.bar("preparing", unit="items") as advance:
        prepare_samples(store, on_progress=advance)
        left = len(unfinished_positions(store, request))
    if left:
        from spanlab.cli import working

        working.sum_up(working.detect(request, left))
        progress.say(f"dataset {DATASET!r} is ready: {left} items")
    if not prepare_only:
        raise typer.Exit(server.serve(port))
