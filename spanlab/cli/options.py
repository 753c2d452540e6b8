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
