"""Detectors over items of a file or in memory."""

from __future__ import annotations

from dataclasses import dataclass

import spanlab
from spanlab.errors import SpanlabError
from spanlab.schema import Annotation, Item, Kind, Record, Span, Status
from spanlab.workflows.detecting import annotate_items


@dataclass
class Picky:
    """A detector that marks the first letter and cannot read what it has been told not to."""

    refused: set[str]
    name: str = "picky"

    def annotate(self, item: Item) -> Annotation:
        if item.id in self.refused:
            raise SpanlabError(f"cannot read {item.id}")
        return Annotation(
            annotator=self.name, kind=Kind.DETECTOR, spans=(Span.of(item.answer, 0, 1),)
        )


def records(count: int) -> list[Record]:
    return [
        Record(item=Item(id=f"i{n}", lang="en", question="Which?", answer=f"Number {n} it is."))
        for n in range(count)
    ]


def test_one_failure_is_one_items_failure() -> None:
    """A failed judgement is a state with a reason, and the others go on."""
    done = spanlab.annotate(records(3), Picky({"i1"}))
    states = [record.annotations[0].status for record in done]
    assert states == [Status.DONE, Status.FAILED, Status.DONE]
    assert done[1].annotations[0].note == "cannot read i1"


def test_several_processes_give_what_one_gives_in_the_same_order() -> None:
    items = [(record.item.id, record.item) for record in records(40)]
    alone = list(annotate_items(items, "offline"))
    together = list(annotate_items(items, "offline", concurrency=2))
    assert together == alone
    assert [key for key, _ in together] == [f"i{n}" for n in range(40)]
