"""`spanlab verify-benchmark` and `spanlab ideal-trajectories`: questions become training data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanlab.cli.options import OptionsAmong, Output, takes_options
from spanlab.cli.reasoning import (
    Concurrency,
    Limit,
    Passages,
    Questions,
    answer_questions,
    records_in,
)
from spanlab.lm import Budget
from spanlab.workflows.detection.selection import DetectorSelection

if TYPE_CHECKING:
    from spanlab.workflows.reasoning import QuestionSupervisor

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
    spanlab verify-benchmark hotpot_train_v1.1.json --limit 500 -o verified.jsonl
    """
    from spanlab.workflows.reasoning import QuestionSupervisor

    work = QuestionSupervisor(
        "verify",
        models,
        concurrency=concurrency,
        budget=budget,
    )
    _run(work, "verifying", questions, passages, output, limit)


@takes_options
def ideal_trajectories(
    questions: Questions,
    models: Models,
    budget: Calls,
    passages: Passages = None,
    output: Output = None,
    flagged: Annotated[
        bool, typer.Option("--unverifiable", help="Also for questions flagged as unverifiable.")
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
    spanlab verifier-data ideal.jsonl --teacher gpt-4o -o verifier/
    """
    from spanlab.workflows.reasoning import QuestionSupervisor

    work = QuestionSupervisor(
        "ideal",
        models,
        flagged=flagged,
        concurrency=concurrency,
        budget=budget,
    )
    _run(work, "reasoning", questions, passages, output, limit)


def _run(
    work: QuestionSupervisor,
    task: str,
    questions: list[str],
    passages: Path | None,
    output: Path | None,
    limit: int | None,
) -> None:
    from spanlab.cli import progress
    from spanlab.cli.output import write_tables
    from spanlab.results import counted
    from spanlab.workflows.reasoning import supervision_table

    answer_questions(work, task, work.done(records_in(questions, passages, limit)), output)
    write_tables([supervision_table(work.results)], err=True)
    for result in work.results.values():
        for reason, times in result.reasons.most_common(_CAUSES):
            progress.say(f"{counted(times, 'question')}: {reason}")
    if all(result.failed == result.questions for result in work.results.values()):
        raise typer.Exit(1)
