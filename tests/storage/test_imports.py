"""Imports: all or nothing, whatever ends them, and nobody waits for them."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from spanlab.base.errors import InputError, NotFoundError, StoreError, UsageError
from spanlab.base.settings import Settings
from spanlab.oplog.operations import SentOperation, SetStatus
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Item,
    Passage,
    QueueQuery,
    Record,
    Retrieval,
    Status,
)
from spanlab.storage import Store
from spanlab.worklists import paging, plans

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]

_DONE = SetStatus(status=Status.DONE)

_ENDLESS_IMPORT = """
import itertools, sys
from spanlab.schema import Item, Record
from spanlab.base.settings import Settings
from spanlab.storage import Store

def records():
    for n in itertools.count():
        if n == 3000:
            print("under way", flush=True)
        yield Record(item=Item(id=f"new {n}", answer="x"))

with Store.open(Settings.model_validate_json(sys.argv[1])) as store:
    store.import_records(sys.argv[2], records())
"""


def test_an_import_in_many_batches_arrives_whole(store: Store, record: MakeRecord) -> None:
    """Large imports report progress and arrive complete and in order."""
    seen: list[int] = []
    n_records = store.import_records("d", (record(str(n)) for n in range(2500)), seen.append)
    assert n_records == 2500
    assert (len(seen) > 2, seen[-1], seen == sorted(seen)) == (True, 2500, True)
    assert [each.item.id for each in store.records("d")] == [str(n) for n in range(2500)]


def test_an_empty_import_makes_an_empty_dataset(store: Store) -> None:
    assert store.import_records("d", []) == 0
    assert [(each.name, each.n_items) for each in store.datasets()] == [("d", 0)]
    assert list(store.records("d")) == []
    page = paging.page(store, "d", QueueQuery(reviewer="me"))
    assert (page.rows, page.previous, page.next) == ((), None, None)


def test_a_broken_file_leaves_no_dataset(store: Store, record: MakeRecord, said: Say) -> None:
    with pytest.raises(InputError, match="line 2001"):
        store.import_records("d", _breaking(record, said("det")))
    assert store.datasets() == []
    assert store.import_records("d", [record("0")]) == 1


def test_a_broken_file_leaves_a_dataset_as_it_was(
    store: Store, record: MakeRecord, said: Say
) -> None:
    store.import_records("d", [record("old", said("other", (0, 3)))])
    before = store.datasets()
    with pytest.raises(InputError, match="line 2001"):
        store.import_records("d", _breaking(record, said("det")))
    assert store.datasets() == before
    with pytest.raises(NotFoundError, match="no item '5'"):
        store.record("d", "5")
    # The name that only the failed import used is free for another kind of annotator.
    store.import_records("d", [record("5", said("det", kind=AnnotatorKind.PERSON), lang="fi")])
    assert [each.item.id for each in store.records("d")] == ["old", "5"]
    assert store.counts("d", "det")[Status.DONE] == 1
    assert (
        len(paging.positions(store, "d", QueueQuery(reviewer="det", status=Status.DONE, lang="fi")))
        == 1
    )


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param(["a", "b", "a"], id="in one batch"),
        pytest.param(["a", *map(str, range(1500)), "a"], id="in two batches"),
        pytest.param(["a", "there"], id="in the dataset"),
    ],
)
def test_an_id_that_stands_twice_is_refused(
    store: Store, record: MakeRecord, ids: list[str]
) -> None:
    store.import_records("d", [record("there")])
    with pytest.raises(InputError, match=f"already exists.* found '{ids[-1]}'"):
        store.import_records("d", [record(item_id) for item_id in ids])
    assert [each.item.id for each in store.records("d")] == ["there"]


def test_ids_that_stand_twice_are_left_out_wherever_the_first_is(
    settings: Settings, record: MakeRecord
) -> None:
    """The first may be in the same batch, in the one that is just being written, or before that."""
    numbers = [number for n in range(2600) for number in (n, n - 1, n - 900, n - 1900)]
    ids = [str(number) for number in numbers if number >= 0]
    left_out: list[str] = []
    with Store.open(settings) as store:
        n_records = store.import_records(
            "d",
            (record(item_id) for item_id in ids),
            on_taken=lambda _, taken: left_out.append(taken.item.id),
        )
        assert (n_records, len(left_out)) == (2600, len(ids) - 2600)
        assert [stored.item.id for stored in store.records("d")] == [str(n) for n in range(2600)]


def test_text_that_is_no_unicode_is_refused(store: Store) -> None:
    item = Item.model_construct(id="a", lang="en", question="", answer="\ud83d", meta={})
    with pytest.raises(InputError, match=r"item 'a' cannot be stored.*lone surrogates"):
        store.import_records("d", [Record.model_construct(item=item, annotations=())])


def test_a_name_that_names_nothing_is_refused(store: Store, record: MakeRecord) -> None:
    with pytest.raises(UsageError, match="is not a valid name for a dataset"):
        store.import_records("a\nb", [record("a")])


def test_others_work_while_an_import_runs(
    store: Store, settings: Settings, record: MakeRecord, said: Say
) -> None:
    """An import shuts nobody out, nobody sees half of it, and nobody disturbs it."""
    store.import_records("d", [record(f"old {n}", said("det")) for n in range(10)])

    def others() -> None:
        assert store.apply("d", "old 3", "me", [SentOperation("s", 1, 0, _DONE)]).version == 1
        assert store.datasets()[0].n_items == 10
        assert len(list(store.records("d"))) == 10
        assert len(paging.positions(store, "d", QueueQuery(reviewer="me"))) == 10
        with pytest.raises(NotFoundError):
            store.record("d", "new 5")
        with pytest.raises(StoreError, match="an import into 'd' is under way"):
            store.import_records("d", [record("x")])
        with pytest.raises(StoreError, match="an import into 'd' is under way"):
            store.delete_dataset("d")
        with Store.open(settings) as another:  # sweeps up only what is dead
            assert another.datasets()[0].n_items == 10

    def records() -> Iterator[Record]:
        for n in range(3000):
            if n == 2500:
                with ThreadPoolExecutor(1) as thread:
                    thread.submit(others).result()
            yield record(f"new {n}", said("det", (0, 3, 0.5)))

    assert store.import_records("d", records()) == 3000
    assert store.datasets()[0].n_items == 3010
    assert store.counts("d", "me")[Status.DONE] == 1
    assert len(paging.positions(store, "d", QueueQuery(reviewer="me", status=Status.DONE))) == 1
    assert (
        len(paging.positions(store, "d", QueueQuery(reviewer="me", detector="det", min_prob=0.5)))
        == 3000
    )


def test_a_review_waits_for_one_batch_at_most(store: Store, record: MakeRecord) -> None:
    """Writes go on in the gaps between an import's short transactions."""
    store.import_records("d", [record("a")])
    answer = "x" * 500
    n_writes = 0

    def records() -> Iterator[Record]:
        """Many, and more until there were enough writes."""
        for n in range(400_000):
            if n > 8000 and n_writes > 3:
                return
            yield record(str(n), answer=answer)

    thread = threading.Thread(target=lambda: store.import_records("big", records()))
    thread.start()
    while thread.is_alive():
        applied = store.apply("d", "a", "me", [SentOperation("s", n_writes + 1, n_writes, _DONE)])
        n_writes += 1
        assert applied.version == n_writes
        time.sleep(0.01)  # a reviewer, not a machine that leaves no gaps
    thread.join()
    assert n_writes > 3


@pytest.mark.parametrize("name", ["old", "new"])
def test_a_killed_import_is_swept_up(
    settings: Settings, record: MakeRecord, said: Say, name: str
) -> None:
    with Store.open(settings) as store:
        store.import_records("old", [record("a", said("det"))])
        before = store.datasets()
        with _importing(settings, name) as process:
            with pytest.raises(StoreError, match="under way"):
                store.import_records(name, [record("b")])
            process.kill()
            process.wait()
        assert store.datasets() == before
    with Store.open(settings) as store:
        assert store.datasets() == before
        assert store.import_records(name, [record("new 1")]) == 1
        assert store.record(name, "new 1").item.id == "new 1"
        assert store.datasets()[-1].n_items == (2 if name == "old" else 1)


def _breaking(record: MakeRecord, annotation: Annotation) -> Iterator[Record]:
    for n in range(2000):
        yield record(str(n), annotation, lang="fi")
    raise InputError("line 2001 is broken")


def _importing(settings: Settings, name: str) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(
        [sys.executable, "-c", _ENDLESS_IMPORT, settings.model_dump_json(), name],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"under way\n"
    return process


def test_an_item_is_revised_until_a_person_annotates_or_opens_it(store: Store, said: Say) -> None:
    """As where spans of a trace come late; it is searched for by its new words then."""
    store.import_records("d", [Record(item=Item(id=n, answer="Old words.")) for n in "abcde"])
    store.save_annotations(
        "d", [("b", said("offline")), ("b", said("vote", kind=AnnotatorKind.VOTE))]
    )
    store.change_settings("d", lambda now: now.model_copy(update={"overlap": 2}))
    plans.reserve(store, "d", "c", "Ann")
    store.save_annotations(
        "d", [("d", said("Ann", kind=AnnotatorKind.PERSON)), ("d", said("offline"))]
    )
    store.save_annotations("d", [("e", said("gold", kind=AnnotatorKind.GOLD))])
    assert store.kept_items("d", ["a", "b", "c", "d", "gone"]) == ["c", "d"]
    new = {name: Item(id=f"{name}-1", lang="fr", answer="Other text.") for name in "abcde"}
    revised = [store.revise_item("d", name, item) for name, item in new.items()]
    assert revised == [0, 2, None, None, None]
    assert [record.item.id for record in store.records("d")] == ["a-1", "b-1", "c", "d", "e"]
    found = QueueQuery(reviewer="Ann", text="other")
    assert [row.item_id for row in paging.page(store, "d", found).rows] == ["a-1", "b-1"]
    (summary,) = store.datasets()
    assert dict(summary.languages) == {"und": 3, "fr": 2}
    (offline,) = (each for each in summary.annotators if each.name == "offline")
    assert offline.counts[Status.DONE] == 1
    with pytest.raises(NotFoundError):
        store.revise_item("d", "gone", new["a"])


def test_what_a_detector_found_and_said_stays_where_no_text_changes(
    store: Store, said: Say
) -> None:
    item = Item(id="a", answer="Old words.", passages=[Passage(text="Given.")])
    store.import_records("d", [Record(item=item)])
    found = Retrieval(retriever="wiki", queries=("words",), passages=(1,))
    grown = item.model_copy(
        update={"passages": (*item.passages, Passage(text="Found.")), "retrievals": (found,)}
    )
    store.save_findings("d", [Record(item=grown, annotations=(said("offline"),))])
    assert store.revise_item("d", "a", item.model_copy(update={"meta": {"tokens": 3}})) == 0
    (record,) = store.records("d")
    assert record.item == grown.model_copy(update={"meta": {"tokens": 3}})
    assert [each.annotator for each in record.annotations] == ["offline"]
    late = item.model_copy(update={"passages": (*item.passages, Passage(text="Late."))})
    assert store.revise_item("d", "a", late) == 1
    (record,) = store.records("d")
    assert (record.item, record.annotations) == (late, ())
