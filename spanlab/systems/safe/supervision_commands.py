"""Commands that make training data for the verifier of steps."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanlab.cli import console, inputs
from spanlab.cli.console import write_tables
from spanlab.cli.inputs import OptionsAmong, Output, takes_options
from spanlab.detection.selection import DetectorSelection
from spanlab.models.resolving import ModelLayers
from spanlab.output.figures import counted
from spanlab.schema.usage import Budget
from spanlab.systems.safe.commands import (
    Concurrency,
    Limit,
    Passages,
    Questions,
    answer_questions,
    read_questions,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from spanlab.schema import Record
    from spanlab.systems.safe.reasoning import QuestionSupervisor


Models = Annotated[DetectorSelection, OptionsAmong("model", "price", "model_option")]
Calls = Annotated[Budget, OptionsAmong("max_calls", "max_cost")]
_CAUSES = 5  # of failures that are named


@takes_options
def verify_benchmark(
    questions: Questions,
    models: Models,
    budget: Calls,
    passages: Passages = None,
    output: Output = None,
    concurrency: Concurrency = 32,
    limit: Limit = None,
) -> None:
    """Verify that the passages of questions lead to their known answers (SAFE).

    A model turns the passages that support an answer into a knowledge graph, and looks in it for a
    path from the question to the answer. Questions without one are flagged as unverifiable, with
    the reason, and kept: `spanlab ideal-trajectories` and `spanlab verifier-data` leave them out.
    The same command resumes an interrupted run: answers of models are cached.

    \b
    spanlab verify-benchmark questions.jsonl --limit 500 -o verified.jsonl
    """
    from spanlab.systems.safe.reasoning import QuestionSupervisor

    work = QuestionSupervisor(
        "verify",
        models,
        concurrency=concurrency,
        budget=budget,
    )
    records = read_questions(questions, passages, limit)
    _write_supervision(work, "verifying", records, output)


@takes_options
def ideal_trajectories(
    questions: Questions,
    models: Models,
    budget: Calls,
    passages: Passages = None,
    output: Output = None,
    flagged: Annotated[
        bool, typer.Option("--unverifiable", help="Include questions flagged as unverifiable.")
    ] = False,
    concurrency: Concurrency = 32,
    limit: Limit = None,
) -> None:
    """Have a model write an ideal reasoning for every question, to train a verifier on (SAFE).

    It plans the steps and carries them out on the passages that support the answer. Checks without
    a model read every attempt: its form and citations, names and numbers that no passage has, and
    that it ends in the known answer. A wrong one is asked for again twice, with what is wrong; then
    the question is kept as failed, with the reason. `spanlab verifier-data` takes the others as
    right, and injects errors into them.

    \b
    spanlab ideal-trajectories verified.jsonl -o ideal.jsonl
    """
    from spanlab.systems.safe.reasoning import QuestionSupervisor

    work = QuestionSupervisor(
        "ideal",
        models,
        flagged=flagged,
        concurrency=concurrency,
        budget=budget,
    )
    records = read_questions(questions, passages, limit)
    _write_supervision(work, "reasoning", records, output)


def _write_supervision(
    work: QuestionSupervisor, task: str, records: Iterator[Record], output: Path | None
) -> None:
    from spanlab.systems.safe.reasoning import supervision_table

    answer_questions(work, task, work.supervise(records), output)
    write_tables([supervision_table(work.results)], err=True)
    for result in work.results.values():
        for reason, times in result.reasons.most_common(_CAUSES):
            console.say(f"{counted(times, 'question')}: {reason}")
    if all(result.failed == result.questions for result in work.results.values()):
        raise typer.Exit(1)


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
        bool, typer.Option("--unverifiable", help="Include questions flagged as unverifiable.")
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
    from spanlab.storage import Store
    from spanlab.systems.safe.reasoning import questions_in
    from spanlab.systems.safe.verifier_data import StepTeacher, write_verifier_data

    model = ModelLayers(model=teacher).resolve() if teacher else None
    teaching = StepTeacher(model, seed, budget) if model else None
    write_examples = partial(
        write_verifier_data,
        folder=output,
        annotators=annotator or (),
        seed=seed if inject else None,
        teacher=teaching,
        flagged=flagged,
    )
    if inputs.are_files(source):
        summary = write_examples(questions_in(inputs.find_files(source)))
    else:
        with Store.open() as store:
            summary = write_examples(store.records(source[0]))
    console.say(f"wrote {counted(summary.splits.total(), 'example')} to {output}")
    for counts in (summary.splits, summary.types, summary.origins):
        console.say(", ".join(f"{name} {count:,}" for name, count in counts.most_common()))
    if summary.left_out:
        console.say(f"left out {counted(summary.left_out, 'unverifiable question')}")
    if teaching is not None and teaching.refused:
        console.say(f"{counted(teaching.refused, 'answer')} of the teacher could not be used")
