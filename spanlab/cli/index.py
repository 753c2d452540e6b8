"""`spanlab index`: a local corpus made searchable."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def index(
    corpus: Annotated[
        Path,
        typer.Argument(
            help="JSONL with text, and title, url, date, id if there are any; or a directory of "
            ".txt, .md and .html files."
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The directory of the index.")],
    longest: Annotated[
        int, typer.Option(min=100, max=100_000, help="Characters of a passage at most.")
    ] = 1200,
    stems: Annotated[
        bool, typer.Option("--stems/--no-stems", help="Let forms of a word find each other.")
    ] = True,
) -> None:
    """Index a corpus, so that detectors can look things up in it by BM25.

    Documents are split into passages where paragraphs and sentences end. An index that is there
    already is replaced once the new one is whole.

    \b
    spanlab index wiki.jsonl -o wiki.index
    spanlab index pages/ -o pages.index --longest 800
    """
    from spanlab.cli import progress
    from spanlab.results import counted
    from spanlab.retrievers.building import build

    with progress.bar("indexing", unit="passages") as advance:
        done = build(corpus, output, longest=longest, stems=stems, on_progress=advance)
    progress.say(
        f"indexed {counted(done.documents, 'document')} as {counted(done.passages, 'passage')} "
        f"in {output} (fingerprint {done.fingerprint[:8]})"
    )
