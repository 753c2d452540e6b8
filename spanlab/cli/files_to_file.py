"""Commands that read files and write a file, without a database."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import typer

from spanlab.cli import progress
from spanlab.datasets import WRITABLE, ReadOptions, detect, format_of, read, write
from spanlab.detectors import Spec, asks_models
from spanlab.errors import UsageError
from spanlab.results import counted
from spanlab.schema import Record
from spanlab.workflows.detection.file_run import FileRun, FileRunCounts
from spanlab.workflows.detection.request import RunLimits, request_of
from spanlab.workflows.voting import Cleanup, vote_records
from spanlab.workflows.wording import usage_in_words

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
    options = replace(reading, on_warning=progress.say)
    records = islice(_read(job.files, options), limits.limit)
    request = request_of("files", specs, concurrency=limits.concurrency, budget=limits.budget)
    stream = FileRun.of(request)
    _write(stream.annotated(records), job, annotator=specs[-1].signs, task="annotating")
    if stream.spent is not None:
        progress.say(str(stream.spent))
    if any(asks_models(spec.detector) for spec in request.specs):
        progress.say(usage_in_words(stream.usage) or "no model calls")
    _say_failures(stream.outcomes)


def _say_failures(outcomes: FileRunCounts) -> None:
    """Say how many detectors failed on items and why, and exit with 1 if no item was finished."""
    for cause, count in outcomes.causes.most_common(_CAUSES):
        progress.say(f"failed {counted(count, 'time')}: {outcomes.examples[cause]}")
    if len(outcomes.causes) > _CAUSES:
        progress.say(f"… and for {len(outcomes.causes) - _CAUSES:,} more reasons")
    if outcomes.failed:
        progress.say(f"{outcomes.failed:,} of {counted(outcomes.items, 'item')} failed")
    if 0 < outcomes.items == outcomes.failed:
        raise typer.Exit(1)


def vote_files(job: FileJob, name: str, *, cleanup: Cleanup) -> None:
    """Let the persons that files name vote; the output keeps the input's format."""
    records = _read(job.files, ReadOptions(on_warning=progress.say))
    voted = _UnannotatedCount(name)
    votes = vote_records(records, name=name, cleanup=cleanup)
    _write(voted.through(votes), job, annotator=name, task="voting")
    if voted.without:
        have = "has" if voted.without == 1 else "have"
        progress.say(
            f"{counted(voted.without, 'item')} {have} no vote: no person has finished them"
        )


class _UnannotatedCount:
    """Counts the records that go through without an annotation by ``name``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.without = 0

    def through(self, records: Iterable[Record]) -> Iterator[Record]:
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
    seen = 0

    def noticed() -> Iterator[Record]:
        nonlocal seen
        for record in records:
            seen += 1
            yield record
            advance(seen)

    with progress.bar(task, unit="items") as advance:
        # Our own format keeps everybody's annotations; the others hold one annotator's.
        count = write(
            noticed(),
            job.output or sys.stdout.buffer,
            format=target_format,
            annotator=None if target_format == "spanlab" else annotator,
        )
    progress.say(f"wrote {counted(count, 'item')}" + (f" to {job.output}" if job.output else ""))
    if count < seen:
        left_out = counted(seen - count, "item")
        progress.say(f"left out {left_out} that {annotator!r} has not finished")


def _common_format(files: Sequence[Path]) -> str:
    formats = sorted({detect(file) for file in files})
    if len(formats) > 1:
        raise UsageError(f"the files are of several formats ({', '.join(formats)}): say --format")
    # A table of claims holds neither their items nor spans.
    return formats[0] if formats[0] in {*WRITABLE} - {"claims"} else "spanlab"
