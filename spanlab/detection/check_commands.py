"""`spanlab check`: one answer, judged at once, with what stands against it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer
from pydantic import ValidationError

from spanlab.base.errors import InputError, UsageError
from spanlab.base.options import problem
from spanlab.base.redaction import visible
from spanlab.cli import console
from spanlab.cli.inputs import OptionsWithout, read_text, takes_options
from spanlab.detection.file_run import FileRun
from spanlab.detection.request import FOR_A_DATASET, RunOptions, RunRequest
from spanlab.detection.specifications import remarks_on, specifications
from spanlab.formats.known.jsonl import dumps
from spanlab.output.marked_text import marked_text
from spanlab.output.tables import Cell, Column, ResultTable, columns_of
from spanlab.output.wording import usage_in_words
from spanlab.schema import UNDETERMINED, Annotation, Item, Passage, Record, Span, Status, storable
from spanlab.text.labels import hard_of

_LONGEST = 400_000  # characters of an answer
_MARKED = 3  # the exit status if something is marked
_OFFLINE = ("offline",)  # the detector that nothing has to be set for


@takes_options
def check(
    options: Annotated[
        RunOptions, OptionsWithout(*FOR_A_DATASET, "limit", "events", "concurrency")
    ],
    answer: Annotated[
        str, typer.Argument(help="The answer; without it, or as -, standard input is read.")
    ] = "-",
    passage: Annotated[
        list[Path] | None,
        typer.Option(help="A text file that the answer is checked against. Repeatable."),
    ] = None,
    question: Annotated[str, typer.Option(help="What was asked.")] = "",
    lang: Annotated[str, typer.Option(help="The answer's language, such as en.")] = UNDETERMINED,
    as_json: Annotated[
        bool, typer.Option("--json", help="A record of spanlab's JSONL, which import reads.")
    ] = False,
) -> None:
    """Check one answer: mark what is hallucinated, with the closest evidence.

    The exit status is 3 if something is marked.

    \b
    spanlab check "Paris has 3 million inhabitants." --passage paris.txt
    spanlab check "Paris has 3 million inhabitants." --passage paris.txt --passage eiffel.txt --json
    """
    texts = [read_text(path) for path in passage or ()]
    item = _item(_read_answer() if answer == "-" else answer, question, lang, texts)
    specs = specifications(options.model_copy(update={"detectors": options.detectors or _OFFLINE}))
    if len(specs) > 1:
        raise UsageError("check takes one --detector; an ensemble, such as ucsc, asks several")
    for remark in remarks_on(specs):
        console.say(remark)
    run = FileRun.of(RunRequest.of(options, detectors=specs))
    (record,) = run.annotate([Record(item=item)])
    annotation = record.by(specs[0].signs)
    if run.spent is not None:
        console.say(str(run.spent))
    if annotation is None or annotation.status is Status.FAILED:
        raise InputError(f"{specs[0].signs} failed: {annotation.note if annotation else run.spent}")
    if as_json:
        typer.echo(dumps(record).decode(), nl=False)
    else:
        _write(item, annotation)
    if usage := usage_in_words(run.usage):
        console.say(usage)
    if annotation.hallucinated:
        raise typer.Exit(_MARKED)


def _read_answer() -> str:
    answer = sys.stdin.read(_LONGEST + 1)
    if len(answer) > _LONGEST:
        raise InputError(f"standard input: longer than {_LONGEST:,} characters")
    return answer.strip()


def _item(answer: str, question: str, lang: str, texts: list[str]) -> Item:
    if not answer.strip():
        raise UsageError("there is no answer: give it in quotes, or on standard input")
    try:
        return Item(
            id="answer",
            lang=lang,
            question=storable(question),
            answer=storable(answer),
            passages=tuple(Passage(text=storable(text)) for text in texts if text.strip()),
        )
    except ValidationError as error:
        raise InputError(f"check: {problem(error)}") from None


def _write(item: Item, annotation: Annotation) -> None:
    typer.echo(visible(marked_text(item.answer, annotation)))
    columns = (
        *columns_of("text", "Text"),
        Column(key="probability", title="Probability", unit="share"),
        *columns_of("text", "Label", "Evidence"),
    )
    if not annotation.hallucinated:
        typer.echo("Nothing is marked.")
    elif not hard_of(annotation):
        typer.echo("It is hallucinated, at no place that can be told.")
    likeliest_first = sorted(annotation.spans, key=lambda span: -span.prob)
    if rows := tuple(map(_row, likeliest_first)):
        console.write_tables([ResultTable(key="spans", title="", columns=columns, rows=rows)])
    if annotation.note:
        console.say(annotation.note)


def _row(span: Span) -> tuple[Cell, ...]:
    closest = next(iter(span.evidence), None)
    evidence = "" if closest is None else f"passage {closest.passage + 1}: {closest.text}"
    return span.text, span.prob, span.label or "", evidence or span.note or ""
