"""The few functions that a notebook or script needs, on lists of records in memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from spanlab.datasets import ReadOptions, read, write
from spanlab.detectors import Detector
from spanlab.errors import InputError
from spanlab.labels import labels_of
from spanlab.schema import Record
from spanlab.scorers import Report
from spanlab.scorers import score as score_labels
from spanlab.workflows.detecting import annotate_records
from spanlab.workflows.voting import Cleanup, vote_records


def load(
    *files: str | Path,
    format: str = "auto",
    contexts: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> list[Record]:
    """Read records from files of any supported format.

    Args:
        files: paths, read in order.
        format: "auto" or one of spanlab, mushroom, ragtruth, faithbench, labelstudio, csv, parquet.
        contexts: a directory of ``<id>.context.txt`` files or a JSONL with passages.
        columns: for CSV and parquet, our field → their column.

    Returns:
        All records, possibly none.

    Raises:
        InputError: names file, line, field, what was found and what would be right.
    """
    options = ReadOptions(
        format=format, contexts=None if contexts is None else Path(contexts), columns=columns
    )
    return [record for file in files for record in read(Path(file), options)]


def annotate(
    records: Iterable[Record], detector: str | Detector = "offline", *, concurrency: int = 1
) -> list[Record]:
    """Return the records with a detector's annotation added, or renewed.

    Args:
        records: what to annotate.
        detector: a registered detector's name, or an object with `name` and `annotate(item)`.
        concurrency: number of processes, 1 or more.

    Raises:
        UsageError: no detector has this name.
    """
    return list(annotate_records(records, detector, concurrency=concurrency))


def vote(
    records: Iterable[Record],
    annotators: Sequence[str] | None = None,
    *,
    name: str = "vote",
    cleanup: Cleanup = "none",
) -> list[Record]:
    """Return the records with a vote added: the share of annotators that mark each character.

    Args:
        records: what to vote on.
        annotators: who votes; None for all persons.
        name: what the vote is called.
        cleanup: "mushroom" trims raw spans as SemEval-2025 Task 3 did.
    """
    return list(vote_records(records, annotators=annotators, name=name, cleanup=cleanup))


def score(records: Iterable[Record], annotator: str, gold: str = "gold") -> Report:
    """Score one annotator of the records against another.

    Args:
        records: records that both have annotated.
        annotator: whose annotations are scored.
        gold: whose annotations are right.

    Returns:
        Scores per item, per language and macro over languages.

    Raises:
        InputError: there are no records, or one lacks either annotation.
    """
    pairs = []
    for record in records:
        for name in (gold, annotator):
            if record.by(name) is None:
                raise InputError(
                    f"item {record.item.id!r} has no annotation by {name!r}",
                    expected=f"one of {[a.annotator for a in record.annotations]}",
                )
        pairs.append((labels_of(record, gold), labels_of(record, annotator)))
    if not pairs:
        raise InputError("there are no records to score")
    return score_labels(pairs)


def save(
    records: Iterable[Record],
    path: str | Path,
    *,
    format: str = "spanlab",
    annotator: str | None = None,
) -> int:
    """Write records to a file, which appears only when it is complete.

    Args:
        records: what to write.
        path: the file to write or replace.
        format: "spanlab" (lossless), "mushroom" or "labelstudio".
        annotator: only this annotator's annotations; None for all.

    Returns:
        The number of records written.

    Raises:
        InputError: the file cannot be written, or the format needs one annotator to be named.
    """
    return write(records, Path(path), format=format, annotator=annotator)
