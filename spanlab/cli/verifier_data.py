"""`spanlab verifier-data`: what people said of steps becomes training data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from spanlab.cli.options import OptionsAmong, takes_options
from spanlab.lm import Budget


@takes_options
def verifier_data(
    source: Annotated[list[str], typer.Argument(help="A dataset, or files or globs.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder to write.")],
    annotator: Annotated[
        list[str] | None,
        typer.Option(
            help="Annotators whose judgement is taken (default: people and gold). Repeatable."
        ),
    ] = None,
    inject: Annotated[
        bool, typer.Option("--inject/--no-inject", help="Inject errors into right steps, too.")
    ] = True,
    seed: Annotated[int, typer.Option(help="Random seed of the injected errors.")] = 0,
    teacher: Annotated[
        str | None,
        typer.Option(help="A model that injects errors of every type and explains hard cases."),
    ] = None,
    *,
    budget: Annotated[Budget, OptionsAmong("max_calls")],
    flagged: Annotated[
        bool, typer.Option("--unverifiable", help="Also from questions flagged as unverifiable.")
    ] = False,
) -> None:
    """Write chats to train a verifier of steps on, from reasonings that are reviewed or ideal.

    Every step of a finished item is an example: the verifier's prompt, and the right reply. What
    people corrected are the hard cases; ideal reasonings that nobody has judged count as right.
    Errors are injected into right steps: by rules, and with --teacher MODEL one of each type, with
    diagnosis and guidance; the teacher also explains the hard cases. The folder has three splits by
    question and the settings of a QLoRA training for Axolotl.

    \b
    spanlab verifier-data mine -o verifier/
    spanlab verifier-data reviewed.jsonl --annotator anna -o verifier/
    spanlab verifier-data mine --teacher gpt-4o -o verifier/
    """
    from spanlab.cli import inputs, progress
    from spanlab.lm import ModelChoice
    from spanlab.results import counted
    from spanlab.storage import Store
    from spanlab.workflows.reasoning import questions_in
    from spanlab.workflows.training.verifier_data import StepTeacher, write_verifier_data

    model = ModelChoice.read(model=teacher) if teacher else None
    teaching = StepTeacher(model, seed, budget) if model else None
    written = partial(
        write_verifier_data,
        folder=output,
        annotators=annotator or (),
        seed=seed if inject else None,
        teacher=teaching,
        flagged=flagged,
    )
    if inputs.are_files(source):
        found = written(questions_in(inputs.files(source)))
    else:
        with Store.open() as store:
            found = written(store.records(source[0]))
    progress.say(f"wrote {counted(found.splits.total(), 'example')} to {output}")
    for counts in (found.splits, found.types, found.origins):
        progress.say(", ".join(f"{name} {count:,}" for name, count in counts.most_common()))
    if found.left_out:
        progress.say(f"left out {counted(found.left_out, 'unverifiable question')}")
    if teaching is not None and teaching.refused:
        progress.say(f"{counted(teaching.refused, 'answer')} of the teacher could not be used")
