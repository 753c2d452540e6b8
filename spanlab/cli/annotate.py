"""`spanlab annotate`: detectors mark spans, in a dataset or from file to file."""

from __future__ import annotations

from typing import Annotated

import typer

from spanlab.cli.options import (
    ChatTurns,
    Columns,
    Contexts,
    ExportFormat,
    ListOfRecords,
    Output,
    TurnSelection,
    takes_options,
)
from spanlab.errors import UsageError
from spanlab.workflows.detection.request import RunOptions, check_without_dataset, requested


@takes_options
def annotate(
    source: Annotated[list[str], typer.Argument(help="A dataset, or files or globs.")],
    options: RunOptions,
    contexts: Contexts = None,
    column: Columns = None,
    records: ListOfRecords = None,
    turns: ChatTurns = TurnSelection.LAST,
    output: Output = None,
    format: Annotated[
        ExportFormat | None,
        typer.Option(
            help="Format of the output file; without it, the one of its ending or the input's."
        ),
    ] = None,
) -> None:
    """Let detectors mark spans, in a dataset or from file to file.

    A dataset keeps the results as they come; items that a detector has finished are not done
    again, unless --again says so. What Ctrl+C leaves undone goes on with `spanlab jobs resume`, or
    the same command.

    \b
    spanlab annotate mine --detector offline
    spanlab annotate mine --detector ucsc-extract --model gpt-4o-mini --max-cost 2
    spanlab annotate mine --detector ucsc --search web --claims
    spanlab annotate claims --detector papelo --search searxng --max-searches 500
    spanlab annotate val/*.jsonl --contexts contexts/ --detector offline -o pred.jsonl
    spanlab annotate outputs.csv --column answer=reply --detector offline -o pred.csv
    """
    from spanlab.cli import files_to_file, inputs, progress
    from spanlab.datasets import ReadOptions
    from spanlab.workflows.detection.selection import remarks_on, specifications

    specs = specifications(options)
    for remark in remarks_on(specs):
        progress.say(remark)
    if inputs.are_files(source):
        check_without_dataset(options)
        columns = inputs.mapping(column or [])
        reading = ReadOptions(
            contexts=contexts, columns=columns, records=records, turns=turns.value
        )
        job = files_to_file.FileJob(inputs.files(source), output, format)
        files_to_file.annotate_files(job, specs, options, reading)
        return
    dataset = source[0]
    of_files = (output, contexts, column, records, format)
    if turns is not TurnSelection.LAST or any(each is not None for each in of_files):
        raise UsageError(
            "-o, --format, --contexts, --column, --records and --turns are for files; a dataset "
            f"keeps its annotations: spanlab export {dataset} -o FILE"
        )
    from spanlab.cli import working
    from spanlab.storage import Store

    with Store.open() as store:
        request = requested(store, dataset, options)
    working.annotate(request, again=options.again)
