"""`spanlab check`: one answer, judged at once, with the evidence against it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from spanlab.base.errors import InputError, UsageError
from spanlab.base.redaction import visible
from spanlab.cli import console
from spanlab.cli.inputs import OptionsWithout, takes_options
from spanlab.detection.checking import (
    LONGEST,
    answer_item,
    check_answer,
    numbered_passages,
    read_passage,
)
from spanlab.detection.request import FOR_A_DATASET, RunOptions
from spanlab.formats.known.jsonl import dumps
from spanlab.output.marked_text import marked_text
from spanlab.output.tables import Cell, Column, ResultTable, columns_of
from spanlab.schema import UNDETERMINED, Annotation, Item, Span
from spanlab.text.suggestions import suggestions

_OF_CITATIONS = "citations"  # the detector that reads numbers of sources
_MARKED = 3  # the exit status if something is marked


@takes_options
def check(
    options: Annotated[
        RunOptions, OptionsWithout(*FOR_A_DATASET, "limit", "events", "concurrency")
    ],
    answer: Annotated[
        str, typer.Argument(help="The answer; without it, or as -, standard input is read.")
    ] = "-",
    passage: Annotated[
        list[str] | None,
        typer.Option(
            help="What the answer is checked against: a text file, a PDF or a public web address. "
            "Repeatable."
        ),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="What the answer cites by a number, such as 1=report.pdf: as --passage. "
            "Repeatable; the detector is then citations."
        ),
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
    spanlab check "Paris has 3 million inhabitants [1]." --source 1=paris.txt
    """
    if source and passage:
        raise UsageError("give passages by --source, with their numbers, or by --passage")
    passages = numbered_passages(source) if source else [read_passage(one) for one in passage or ()]
    if _is_file(answer):
        raise UsageError(f"{answer} is a file, and answers are texts: spanlab check - < {answer}")
    item = answer_item(_read_answer() if answer == "-" else answer, passages, question, lang)
    if source:  # whose numbers count, also of those without a text
        item = item.model_copy(update={"passages": tuple(passages)})
        options = options.model_copy(update={"detectors": options.detectors or (_OF_CITATIONS,)})
    checked = check_answer(item, options)
    if as_json:
        typer.echo(dumps(checked.record).decode(), nl=False)
    else:
        _write(item, checked.annotation)
    for remark in checked.remarks:
        console.say(remark)
    if checked.annotation.hallucinated:
        raise typer.Exit(_MARKED)


def _is_file(text: str) -> bool:
    try:
        return len(text.split()) == 1 and Path(text).is_file()
    except (OSError, ValueError):  # what no path can be
        return False


def _read_answer() -> str:
    answer = sys.stdin.read(LONGEST + 1)
    if len(answer) > LONGEST:
        raise InputError(f"standard input: longer than {LONGEST:,} characters")
    return answer.strip()


def _write(item: Item, annotation: Annotation) -> None:
    typer.echo(visible(marked_text(item.answer, annotation)))
    columns = (
        *columns_of("text", "Text"),
        Column(key="probability", title="Probability", unit="share"),
        *columns_of("text", "Label", "Evidence"),
    )
    if not annotation.hallucinated:
        typer.echo("Nothing is marked.")
    told = sorted(suggestions(annotation, item.answer), key=lambda one: -one.span.prob)
    if rows := tuple(_row(one.span) for one in told if one.likely):
        console.write_tables([ResultTable(key="spans", title="", columns=columns, rows=rows)])
    elif annotation.hallucinated:
        typer.echo("It is hallucinated, at no place that can be told.")
    if others := [one.span for one in told if not one.likely]:
        named = (f"“{span.text}” {100 * span.prob:.1f} %" for span in others)
        typer.echo(visible(f"Less likely, not marked: {', '.join(named)}"))


def _row(span: Span) -> tuple[Cell, ...]:
    closest = next(iter(span.evidence), None)
    evidence = "" if closest is None else f"passage {closest.passage + 1}: {closest.text}"
    return span.text, span.prob, span.label or "", evidence or span.note or ""
