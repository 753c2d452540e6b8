"""`spanlab reason`: questions answered step by step, with a verifier."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, Literal

import typer

from spanlab.base.errors import InputError
from spanlab.cli import console, inputs
from spanlab.cli.console import write_tables
from spanlab.cli.inputs import OptionsWithout, Output, takes_options
from spanlab.detection.selection import DetectorSelection
from spanlab.output.figures import counted
from spanlab.output.wording import usage_in_words
from spanlab.schema.usage import Budget

if TYPE_CHECKING:
    from spanlab.schema import Record
    from spanlab.systems.safe.reasoning import QuestionReasoner, QuestionSupervisor


Questions = Annotated[list[str], typer.Argument(help="Files of questions, or globs.")]
Passages = Annotated[
    Path | None,
    typer.Option(
        help="Passages for the questions: a directory of <id>.context.txt files, or a JSONL "
        "with id and passages."
    ),
]
Concurrency = Annotated[int, typer.Option(min=1, max=1024, help="Concurrent questions.")]
Limit = Annotated[int | None, typer.Option(min=1, help="Maximum questions.")]


class VerifierKind(StrEnum):
    """Who verifies the steps of a reasoning."""

    NONE = "none"
    SELF = "self"
    SAFE = "safe"


@takes_options
def reason(
    questions: Questions,
    models: Annotated[DetectorSelection, OptionsWithout("detector", "config", "option")],
    budget: Budget,
    passages: Passages = None,
    output: Output = None,
    verification: Annotated[
        list[VerifierKind] | None,
        typer.Option(
            help="Who verifies the steps: none, self (the generator) or safe (the verifier, the "
            "default). Repeatable, to compare them."
        ),
    ] = None,
    feedback: Annotated[
        Literal["both", "guidance", "diagnosis"],
        typer.Option(help="What the generator sees of a verdict."),
    ] = "both",
    steps: Annotated[int, typer.Option(min=0, max=100, help="Maximum steps per question.")] = 10,
    retries: Annotated[int, typer.Option(min=0, max=20, help="Maximum revisions per step.")] = 3,
    judge: Annotated[
        bool,
        typer.Option(
            "--judge",
            help="Let a model judge the answers against gold answers (role answer-judge).",
        ),
    ] = False,
    concurrency: Concurrency = 32,
    limit: Limit = None,
    generator: Annotated[
        str | None, typer.Option(help="The model that reasons, if it is another than --model.")
    ] = None,
) -> None:
    """Answer questions step by step from passages; a verifier checks every step (SAFE).

    A wrong step is revised with the verifier's diagnosis and guidance. Every question becomes an
    item whose answer is its steps, with those that stayed wrong marked; with gold answers in the
    file, exact match and F1 are reported. Each line is written as soon as it is there, to
    OUTPUT.partial until all are. The same command resumes an interrupted run: answers of models
    are cached.

    \b
    spanlab reason questions.jsonl --limit 100 -o reasoned.jsonl
    spanlab reason questions.jsonl --verification none --verification self --verification safe
    spanlab reason questions.jsonl --retriever bm25 --corpus wiki.index -o reasoned.jsonl
    """
    from spanlab.systems.safe.reasoner import ReasonOptions
    from spanlab.systems.safe.reasoning import QuestionReasoner
    from spanlab.systems.safe.results import error_tables, method_table

    limits = {"feedback": feedback, "steps": steps, "retries": retries, "judge": judge}
    names = [kind.value for kind in verification or [VerifierKind.SAFE]]
    methods = [ReasonOptions.model_validate({"verification": name, **limits}) for name in names]
    reasoner = QuestionReasoner(
        models,
        methods,
        generator=generator,
        concurrency=concurrency,
        budget=budget,
    )
    answer_questions(
        reasoner, "reasoning", reasoner.answer(read_questions(questions, passages, limit)), output
    )
    write_tables([method_table(reasoner.results), *error_tables(reasoner.results)], err=True)
    if all(result.failed == result.questions for result in reasoner.results.values()):
        raise typer.Exit(1)


def read_questions(
    questions: list[str], passages: Path | None, limit: int | None
) -> Iterator[Record]:
    """Yield the questions of files, with their passages."""
    from spanlab.formats import ReadOptions
    from spanlab.systems.safe.reasoning import questions_in

    options = ReadOptions(contexts=passages, on_warning=console.say)
    return islice(questions_in(inputs.find_files(questions), options), limit)


def answer_questions(
    work: QuestionReasoner | QuestionSupervisor,
    task: str,
    records: Iterator[Record],
    output: Path | None,
) -> None:
    """Write questions as items with progress; say how many, and what the models cost.

    Args:
        work: what answers or checks the questions, for what it spent.
        task: what it does, as a participle.
        records: what comes of them.
        output: a file; None for standard output.
    """

    def report_each() -> Iterator[Record]:
        for number, record in enumerate(records, start=1):
            yield record
            advance(number)

    with console.bar(task, unit="questions") as advance:
        count = _write_each(report_each(), output)
    console.say(f"wrote {counted(count, 'item')}" + (f" to {output}" if output else ""))
    if work.spent is not None:
        console.say(str(work.spent))
    console.say(usage_in_words(work.usage) or "no model calls")


def _write_each(records: Iterator[Record], output: Path | None) -> int:
    """Write a line as soon as its question is answered; returns how many.

    A file has its name once it is whole: until then ``.partial`` is added to it.
    """
    from spanlab.formats import format_of, write

    def flush_each(stream: BinaryIO) -> Iterator[Record]:
        for record in records:
            yield record
            stream.flush()

    if output is None:
        return write(flush_each(sys.stdout.buffer), sys.stdout.buffer)
    if output.suffix == ".gz" or format_of(output) != "spanlab":
        return write(records, output)
    partial = output.with_name(f"{output.name}.partial")
    try:
        with partial.open("wb") as stream:
            count = write(flush_each(stream), stream)
        partial.replace(output)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", file=output) from error
    return count
