"""`spanlab train-offline`."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from spanlab.cli import console, inputs
from spanlab.cli.inputs import OptionsAmong, takes_options
from spanlab.formats import ReadOptions
from spanlab.output.figures import figure


@takes_options
def train_offline(
    files: Annotated[list[str], typer.Argument(help="Labelled files or globs.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The model file, such as my.npz.")],
    reading: Annotated[ReadOptions, OptionsAmong("contexts")],
    annotator: Annotated[str, typer.Option(help="The annotator to learn from.")] = "gold",
    folds: Annotated[
        int,
        typer.Option(min=0, help="Number of folds for cross-validation, for the card; 0: none."),
    ] = 0,
) -> None:
    """Train the offline detector on labelled items, and write the model with its card.

    It needs the extra: pip install 'spanlab[train]'. SPANLAB_OFFLINE_MODEL=FILE makes the
    detector use the model.

    \b
    spanlab train-offline val/*.jsonl --contexts contexts/ -o my.npz
    spanlab train-offline reviewed.jsonl --folds 5 -o my.npz
    """
    from spanlab.systems.offline.own_labels import TrainingJob, train_files

    words = ["spanlab", "train-offline", *files]
    words += ["--contexts", str(reading.contexts)] if reading.contexts else []
    words += ["--annotator", annotator] if annotator != "gold" else []
    words += ["--folds", str(folds)] if folds else []
    words += ["-o", str(output)]
    job = TrainingJob(
        inputs.find_files(files),
        output,
        contexts=reading.contexts,
        annotator=annotator,
        folds=folds,
        command=shlex.join(words),
    )
    with console.steps("training") as on_progress:
        card = train_files(job, on_warning=console.say, on_progress=on_progress)
    for scores in card.scores:
        console.say(
            f"{scores.mode}: IoU {figure(scores.iou.mean)}, Corr {figure(scores.corr.mean)}"
        )
    console.say(f"wrote {output} ({card.size:,} bytes, SHA-256 {card.sha256}) and its card")
