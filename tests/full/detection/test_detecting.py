"""Detectors over items of a file or in memory."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import spanlab
from spanlab.base.errors import SpanlabError
from spanlab.detection.file_run import FileRun
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status


@dataclass
class Picky:
    """A detector that marks the first letter and cannot read what it has been told not to."""

    refused: set[str]
    name: str = "picky"

    def annotate(self, item: Item) -> Annotation:
        if item.id in self.refused:
            raise SpanlabError(f"cannot read {item.id}")
        return Annotation(
            annotator=self.name, kind=AnnotatorKind.DETECTOR, spans=(Span.of(item.answer, 0, 1),)
        )


def records(count: int) -> list[Record]:
    return [
        Record(item=Item(id=f"i{n}", lang="en", question="Which?", answer=f"Number {n} it is."))
        for n in range(count)
    ]


def test_one_failure_is_one_items_failure() -> None:
    """A failed judgement is a state with a reason, and the others go on."""
    with pytest.warns(UserWarning, match="1 of 3 records failed"):
        done = spanlab.annotate(records(3), Picky({"i1"}))
    states = [record.annotations[0].status for record in done]
    assert states == [Status.DONE, Status.FAILED, Status.DONE]
    assert done[1].annotations[0].note == "cannot read i1"


def test_several_processes_give_what_one_gives_in_the_same_order() -> None:
    alone = spanlab.annotate(records(40), "offline")
    together = spanlab.annotate(records(40), "offline", concurrency=2)
    assert together == alone
    assert [record.item.id for record in together] == [f"i{n}" for n in range(40)]
    assert all(record.by("offline") for record in together)


def test_a_detector_of_one_s_own_works_in_several_processes() -> None:
    with pytest.warns(UserWarning, match="1 of 6 records failed"):
        done = spanlab.annotate(records(6), Picky({"i4"}), concurrency=2)
    states = [record.annotations[0].status for record in done]
    assert states == [Status.DONE] * 4 + [Status.FAILED, Status.DONE]


def test_memory_stays_flat_however_long_the_stream_is() -> None:
    read = 0

    def source() -> Iterator[Record]:
        nonlocal read
        for record in records(200):
            read += 1
            yield record

    stream = FileRun.own(Picky(set()))
    done = stream.annotate(source())
    next(done)
    assert read <= 5
    assert len(list(done)) == 199
