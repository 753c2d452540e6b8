"""`spanlab train-offline`: an offline detector trained on one's own labels."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from spanlab.cli.options import Contexts


def train_offline(
    files: Annotated[list[str], typer.Argument(help="Labelled files or globs.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file, such as my.npz.")],
    contexts: Contexts = None,
    annotator: Annotated[str, typer.Option(help="The annotator to learn from.")] = "gold",
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
    from spanlab.results import figure
    from spanlab.workflows.training.own_labels import TrainingJob, train_files

    words = ["spanlab", "train-offline", *files]
    words += ["--contexts", str(contexts)] if contexts else []
    words += ["--annotator", annotator] if annotator != "gold" else []
    words += ["--folds", str(folds)] if folds else []
    words += ["-o", str(output)]
    job = TrainingJob(inputs.files(files), output, contexts, annotator, folds, shlex.join(words))
    with progress.steps("training") as on_progress:
        card = train_files(job, on_warning=progress.say, on_progress=on_progress)
    for scores in card.scores:
        progress.say(
            f"{scores.mode}: IoU {figure(scores.iou.mean)}, Corr {figure(scores.corr.mean)}"
        )
    progress.say(f"wrote {output} ({card.size:,} bytes, SHA-256 {card.sha256}) and its card")
