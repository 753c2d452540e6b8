"""Options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class ExportFormat(StrEnum):
    """Formats of files of records."""

    SPANLAB = "spanlab"
    MUSHROOM = "mushroom"
    LABELSTUDIO = "labelstudio"
    CLAIMS = "claims"
    AVERITEC = "averitec"
    CSV = "csv"
    PARQUET = "parquet"
    HUGGINGFACE = "huggingface"


class Cleanup(StrEnum):
    """How raw spans are trimmed before they vote."""

    NONE = "none"
    MUSHROOM = "mushroom"


Contexts = Annotated[
    Path | None,
    typer.Option(
        help="Passages for the items: a directory of <id>.context.txt files, or a JSONL with id "
        "and passages."
    ),
]


def _not_a_dash(path: Path | None) -> Path | None:
    """Take ``-`` for standard output, as other commands do."""
    return None if path == Path("-") else path


class Turns(StrEnum):
    """Which answers of a chat are items."""

    LAST = "last"
    ALL = "all"


Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="Which of a table's columns or JSON's fields is which: answer=output.text, "
        "messages=chat, passages=docs.content. Repeatable.",
    ),
]
ListOfRecords = Annotated[
    str | None,
    typer.Option(
        "--records",
        help="In JSON that is one object: where its list of records is, such as results.items; "
        "otherwise the list that looks most like them is read.",
    ),
]
ChatTurns = Annotated[
    Turns, typer.Option("--turns", help="Of a chat, the last answer is an item, or all are.")
]
Output = Annotated[
    Path | None,
    typer.Option(
        "-o",
        "--output",
        callback=_not_a_dash,
        help="File to write; without it, or with -, standard output.",
    ),
]
Format = Annotated[
    str,
    typer.Option(
        help="auto, spanlab, mushroom, ragtruth, faithbench, labelstudio, claims, averitec, "
        "multihop, graphrag, summaries, traces, json, csv, parquet or arrow."
    ),
]
