"""Detectors over items, whoever asks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import spanlab
from spanlab.errors import SpanlabError
from spanlab.schema import Annotation, Item, Kind, Record, Span, Status
from spanlab.settings import Settings
from spanlab.storage import Store
from spanlab.workflows.detecting import annotate_dataset, annotate_items


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
    """ANCHORS 16: a failed judgement is a state with a reason, and the others go on."""
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


def test_a_dataset_is_taken_up_where_it_was_left(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path}/spanlab.db")
    with Store.open(settings) as store:
        store.import_records("d", records(5))
        failed = Annotation(
            annotator="offline", kind=Kind.DETECTOR, status=Status.FAILED, note="power cut"
        )
        store.save_annotations("d", [("i3", failed)])

        assert annotate_dataset(store, "d", "offline", limit=2) == 2
        done = [record.item.id for record in store.records("d") if record.by("offline")]
        assert done == ["i0", "i1", "i3"]

        assert annotate_dataset(store, "d", "offline") == 3
        states = {a.status for record in store.records("d") for a in record.annotations}
        assert states == {Status.DONE}
        assert annotate_dataset(store, "d", "offline") == 0
