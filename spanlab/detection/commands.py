"""`spanlab annotate` and `spanlab vote`: marks of detectors and of votes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from spanlab.base.errors import UsageError
from spanlab.cli import console, inputs
from spanlab.cli.inputs import OptionsWithout, Output, SpanCleanup, takes_options
from spanlab.detection import Spec, asks_models, entry_of
from spanlab.detection.common.fit_options import FITTED
from spanlab.detection.file_run import FileRun, FileRunCounts
from spanlab.detection.mark_count import MarkCount
from spanlab.detection.request import (
    FOR_A_DATASET,
    RunLimits,
    RunOptions,
    RunRequest,
    request_with_options,
)
from spanlab.detection.specifications import remarks_on, specifications
from spanlab.formats import ReadOptions, detect, format_of, read, writable, write
from spanlab.output.figures import counted
from spanlab.output.wording import usage_in_words
from spanlab.schema import Record, Status

if TYPE_CHECKING:
    from spanlab.scoring.votes import Cleanup


@takes_options
def annotate(
    source: Annotated[list[str], typer.Argument(help="A dataset, or files or globs.")],
    options: RunOptions,
    reading: Annotated[ReadOptions, OptionsWithout("format", "common_labels", "encoding")],
    output: Output = None,
    format: Annotated[
        str | None,
        typer.Option(
            help="Format of the output file, as of `spanlab export`; without it, the one of its "
            "ending or the input's."
        ),
    ] = None,
) -> None:
    """Let detectors mark spans, in a dataset or from file to file.

    A dataset keeps the results as they come; items that a detector has finished are not done
    again, unless --again says so. After Ctrl+C, `spanlab jobs resume` or the same command goes on.

    \b
    spanlab annotate mine --detector offline
    spanlab annotate mine --detector ucsc-extract --price .15,.075,.6 --max-cost 2
    spanlab annotate mine --detector ucsc --search searxng --claims
    spanlab annotate claims --detector papelo --search searxng --max-searches 500
    spanlab annotate val/*.jsonl --contexts contexts/ --detector offline -o pred.jsonl
    spanlab annotate outputs.csv --column answer=reply --detector offline -o pred.csv
    """
    specs = specifications(options)
    for remark in remarks_on(specs):
        console.say(remark)
    if inputs.are_files(source):
        options.refuse(FOR_A_DATASET)
        job = FileJob(inputs.find_files(source), output, format)
        annotate_files(job, specs, options, reading)
        return
    dataset = source[0]
    if output is not None or format is not None or reading.model_fields_set:
        raise UsageError(
            "-o, --format, --contexts, --column and what else says how files are read is for "
            f"files; a dataset keeps its annotations: spanlab export {dataset} -o FILE"
        )
    from spanlab.detection import working
    from spanlab.storage import Store

    with Store.open() as store:
        request = request_with_options(store, dataset, options)
    working.annotate(request, again=options.again)


def vote(
    source: Annotated[str, typer.Argument(help="A dataset, or with --gold-annotators a file.")],
    annotators: Annotated[
        str | None, typer.Option(help="Who votes in a dataset: names, separated by commas.")
    ] = None,
    gold_annotators: Annotated[
        bool, typer.Option("--gold-annotators", help="Use the people in the file as voters.")
    ] = False,
    name: Annotated[str, typer.Option(help="What the vote is called.")] = "vote",
    cleanup: Annotated[
        SpanCleanup, typer.Option(help="mushroom trims spans as the shared task did.")
    ] = SpanCleanup.NONE,
    weighted: Annotated[
        bool,
        typer.Option(
            "--weighted", help="Weigh voters by how reliable they are (see `spanlab raters`)."
        ),
    ] = False,
    output: Output = None,
    format: Annotated[
        str | None, typer.Option(help="Format of the output file, as in `spanlab annotate`.")
    ] = None,
) -> None:
    """Turn the marks of several annotators into soft labels: the share that marks each character.

    \b
    spanlab vote mine --annotators offline,anna,ben --name majority
    spanlab vote val.jsonl --gold-annotators --cleanup mushroom -o voted.jsonl
    """
    if gold_annotators and annotators is not None:
        raise UsageError("either --annotators or --gold-annotators says who votes, not both")
    if gold_annotators and weighted:
        raise UsageError("--weighted is for the annotators of a dataset: import the file first")
    if gold_annotators:
        job = FileJob(inputs.find_files([source]), output, format)
        vote_files(job, name, cleanup=cleanup.value)
        return
    if annotators is None:
        raise UsageError("name the voters: --annotators A,B,C (or --gold-annotators for a file)")
    if output is not None or format is not None:
        raise UsageError(
            "-o and --format are for files; a dataset keeps its votes: "
            f"spanlab export {source} -o FILE"
        )
    names = [voter.strip() for voter in annotators.split(",") if voter.strip()]
    from spanlab.scoring.votes import vote_dataset
    from spanlab.storage import Store

    with Store.open() as store, console.bar("voting", unit="items") as advance:
        count = vote_dataset(
            store,
            source,
            names,
            name=name,
            cleanup=cleanup.value,
            weighted=weighted,
            on_progress=advance,
            on_remark=console.say,
        )
    console.say(f"{name!r} has {counted(count, 'vote')} in {source!r}")


_CAUSES = 5  # of failures that are named


@dataclass(frozen=True)
class FileJob:
    """Which files are read, and what is written where; without a target, to standard output."""

    files: Sequence[Path]
    output: Path | None
    format: str | None


def annotate_files(
    job: FileJob, specs: Sequence[Spec], limits: RunLimits, reading: ReadOptions
) -> None:
    """Annotate the records of files; the output keeps the input's format unless told otherwise."""
    options = reading.model_copy(update={"on_warning": console.say})
    records = islice(_read(job.files, options), limits.limit)
    request = RunRequest.of(limits, detectors=specs)
    stream = FileRun.of(request)
    counts = {
        spec.signs: MarkCount()
        for spec in request.specs
        if entry_of(spec.detector).fit and not spec.options.get(FITTED)
    }
    annotated = _count_marks(stream.annotate(records), counts)
    try:
        _write(annotated, job, annotator=specs[-1].signs, task="annotating")
    except KeyboardInterrupt:
        saved = "replies of models are saved: the same command goes on from there"
        console.say(f"{job.output} is not written; {saved}" if job.output else saved)
        raise
    for name, count in counts.items():
        if count.is_nearly_all:
            console.say(f"{name} {count.remark(None)}")
    if stream.spent is not None:
        console.say(str(stream.spent))
    if any(asks_models(spec.detector) for spec in request.specs):
        console.say(usage_in_words(stream.usage) or "no model calls")
    _say_failures(stream.outcomes, stopped=stream.spent is not None)


def _count_marks(records: Iterable[Record], counts: Mapping[str, MarkCount]) -> Iterator[Record]:
    for record in records:
        for name, count in counts.items():
            annotation = record.by(name)
            if annotation is not None and annotation.status is Status.DONE:
                count.add(annotation)
        yield record


def _say_failures(outcomes: FileRunCounts, *, stopped: bool) -> None:
    """Say how many detectors failed on items and why, and exit as ``console.exit_status`` says."""
    for cause, count in outcomes.causes.most_common(_CAUSES):
        console.say(f"failed {counted(count, 'time')}: {outcomes.examples[cause]}")
    if len(outcomes.causes) > _CAUSES:
        console.say(f"… and for {len(outcomes.causes) - _CAUSES:,} more reasons")
    if outcomes.failed:
        console.say(f"{outcomes.failed:,} of {counted(outcomes.items, 'item')} failed")
    failed = max(outcomes.failed, bool(outcomes.causes))  # one of several detectors counts, too
    if status := console.exit_status(failed, outcomes.items, stopped=stopped):
        raise typer.Exit(status)


def vote_files(job: FileJob, name: str, *, cleanup: Cleanup) -> None:
    """Use the people that files name as voters; the output keeps the input's format."""
    from spanlab.scoring.votes import vote_records

    records = _read(job.files, ReadOptions(on_warning=console.say))
    voted = _UnannotatedCount(name)
    votes = vote_records(records, name=name, cleanup=cleanup)
    _write(voted.count(votes), job, annotator=name, task="voting")
    if voted.without:
        have = "has" if voted.without == 1 else "have"
        console.say(f"{counted(voted.without, 'item')} {have} no vote: no person has finished them")


class _UnannotatedCount:
    """Counts the records that go through without an annotation by ``name``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.without = 0

    def count(self, records: Iterable[Record]) -> Iterator[Record]:
        for record in records:
            self.without += record.by(self._name) is None
            yield record


def _read(files: Sequence[Path], options: ReadOptions) -> Iterator[Record]:
    for file in files:
        yield from read(file, options)


def _write(records: Iterable[Record], job: FileJob, *, annotator: str, task: str) -> None:
    target_format = job.format or _common_format(job.files)
    if job.output and not job.format:
        target_format = format_of(job.output, target_format)
    n_read = 0

    def count_records() -> Iterator[Record]:
        nonlocal n_read
        for record in records:
            n_read += 1
            yield record
            advance(n_read)

    with console.bar(task, unit="items") as advance:
        # Our own format keeps everybody's annotations; the others hold one annotator's.
        count = write(
            count_records(),
            job.output or sys.stdout.buffer,
            format=target_format,
            annotator=None if target_format == "spanlab" else annotator,
        )
    console.say(f"wrote {counted(count, 'item')}" + (f" to {job.output}" if job.output else ""))
    if count < n_read:
        left_out = counted(n_read - count, "item")
        console.say(f"left out {left_out} that {annotator!r} has not finished")


def _common_format(files: Sequence[Path]) -> str:
    formats = sorted({detect(file) for file in files})
    if len(formats) > 1:
        raise UsageError(f"the files are of several formats ({', '.join(formats)}): say --format")
    # A table of claims holds neither their items nor spans.
    return formats[0] if formats[0] in {*writable()} - {"claims"} else "spanlab"
