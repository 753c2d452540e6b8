"""`spanlab calibrate`: a local encoder's probabilities as people's labels have them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from spanlab.cli.options import Contexts

if TYPE_CHECKING:
    from spanlab.schema import Record


def calibrate(
    source: Annotated[list[str], typer.Argument(help="A dataset, or labelled files or globs.")],
    option: Annotated[
        list[str],
        typer.Option(
            "--option",
            help="An option of the detector encoder, NAME=VALUE: at least model=FOLDER. "
            "Repeatable.",
        ),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The file of the calibration.")],
    method: Annotated[
        Literal["temperature", "isotonic"],
        typer.Option(help="Temperature scaling (one figure), or isotonic regression."),
    ] = "temperature",
    annotator: Annotated[
        str | None,
        typer.Option(
            help="Annotators whose labels are used (default: those of all people, else gold)."
        ),
    ] = None,
    contexts: Contexts = None,
) -> None:
    """Learn what the probabilities of the detector encoder are worth, on labelled items.

    It says the expected calibration error and the IoU before and after, each on the half of the
    items that was not learnt from. Detectors use it with --option calibration=FILE.

    \b
    spanlab calibrate mine --option model=lettuce -o lettuce.json
    spanlab calibrate 'val/*.jsonl' --option model=lettuce --method isotonic -o lettuce.json
    """
    from spanlab.cli import progress
    from spanlab.datasets.files import replacing
    from spanlab.workflows.detection.selection import DetectorSelection
    from spanlab.workflows.training import own_labels as workflow

    options = DetectorSelection.checked({"options": option}).options
    with progress.bar("rating", unit="items") as advance:
        found = workflow.calibrate(
            _records(source, contexts), options, method, annotator=annotator, on_progress=advance
        )
    with replacing(output) as file:
        file.write(f"{found.calibration.model_dump_json(indent=2)}\n".encode())
    for name, quality in (("before", found.before), ("after", found.after)):
        progress.say(
            f"{name}: calibration error {quality.error:.3f}, IoU {quality.iou:.3f} (held out)"
        )
    if found.unread:
        progress.say(f"left out {found.unread:,} items that the checkpoint cannot read")
    learnt = found.calibration
    progress.say(
        f"wrote {output}: {learnt.method}, threshold {learnt.threshold}, from {learnt.items:,} "
        f"items with {learnt.words:,} words"
    )


def _records(source: list[str], contexts: Path | None) -> Iterator[Record]:
    from spanlab.cli import inputs, progress
    from spanlab.datasets import ReadOptions, read
    from spanlab.errors import UsageError
    from spanlab.storage import Store

    if inputs.are_files(source):
        options = ReadOptions(contexts=contexts, on_warning=progress.say)
        for file in inputs.files(source):
            yield from read(file, options)
        return
    if contexts is not None:
        raise UsageError("--contexts is for files: a dataset has its passages")
    with Store.open() as store:
        yield from store.records(source[0])
