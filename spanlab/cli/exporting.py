"""The command that writes datasets to files."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from spanlab.cli.options import Output
from spanlab.errors import UsageError
from spanlab.results import counted

_NAMED = 5  # annotators that are named


def export(
    dataset: Annotated[str, typer.Argument(help="The dataset to write.")],
    annotator: Annotated[
        list[str] | None,
        typer.Option(help="Only this annotator's labels; Mu-SHROOM holds one's. Repeatable."),
    ] = None,
    state: Annotated[
        list[str] | None,
        typer.Option(
            help="Only annotations in this state: done, failed, skipped or not-annotated. "
            "Repeatable."
        ),
    ] = None,
    language: Annotated[
        list[str] | None, typer.Option(help="Only items in this language. Repeatable.")
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(help='Only spans with this label, "" for those without. Repeatable.'),
    ] = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="spanlab, mushroom, labelstudio, claims, averitec, csv, parquet, huggingface (a "
            "zip that load_dataset reads once unpacked) or report (one HTML file to mail). csv, "
            "parquet and huggingface leave out evidence, rejected spans and traces. Without it "
            "the file's ending says which: .jsonl, .csv, .parquet, .zip or .html."
        ),
    ] = None,
    repeat_pairs: Annotated[
        bool,
        typer.Option(
            "--repeat-pairs",
            help="With --format averitec: repeat questions and answers in turn up to ten.",
        ),
    ] = False,
    output: Output = None,
) -> None:
    """Write a dataset with its annotations.

    \b
    spanlab export mine -o mine.jsonl
    spanlab export mine --annotator anna --format mushroom -o submission.jsonl
    spanlab export mine --state done --language en -o done.csv
    spanlab export mine -o mine.html
    """
    from spanlab.cli import progress
    from spanlab.datasets import format_of
    from spanlab.schema import Status
    from spanlab.storage import Store
    from spanlab.workflows.datasets import summary_of
    from spanlab.workflows.exporting import FORMATS, REPORT, ExportChoice, export_dataset

    if format is None:
        format = format_of(output, more={".html": REPORT}) if output else "spanlab"
    if format not in FORMATS:
        raise UsageError(f"format {format!r} cannot be written; these can: {', '.join(FORMATS)}")
    if repeat_pairs and format != "averitec":
        raise UsageError("--repeat-pairs goes with --format averitec")
    states = {each.value: each for each in Status}
    if unknown := set(state or ()) - set(states):
        raise UsageError(f"no state {min(unknown)!r}; there are {', '.join(states)}")
    choice = ExportChoice(
        format,
        tuple(annotator or ()),
        tuple(states[each] for each in state or ()),
        tuple(language or ()),
        tuple(label or ()),
        repeat_pairs,
    )
    with Store.open() as store, progress.bar("exporting", unit="items") as advance:
        target = output or sys.stdout.buffer
        count = export_dataset(store, dataset, target, choice, on_progress=advance)
        summary = summary_of(store, dataset)
    names = [
        each.name for each in summary.annotators if annotator is None or each.name in annotator
    ]
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    progress.say(
        f"wrote {counted(count, 'item')} of {dataset!r}"
        + (f" to {output}" if output else "")
        + f", labels of: {', '.join(names[:_NAMED]) or 'nobody'}{more}"
    )
    if summary.n_items > count:
        left_out = counted(summary.n_items - count, "item")
        without = " without a finished annotation" if format == "mushroom" else ""
        progress.say(f"left out {left_out}{without or ' that the choice leaves out'}")
