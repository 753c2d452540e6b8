"""Datasets: what goes in comes out, is counted, renamed, copied and deleted."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from full_record import full_record
from sqlalchemy import Engine, select, update
from sqlalchemy.event import listen, remove

from spanlab.base.errors import NotFoundError, StoreError, UsageError
from spanlab.base.settings import Settings
from spanlab.formats import read, write
from spanlab.oplog.operations import AddSpan, SentOperation, SetStatus
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    Evidence,
    Item,
    Passage,
    QueueQuery,
    Record,
    Span,
    SpanLabel,
    Status,
    UndecidedRule,
)
from spanlab.storage import Store
from spanlab.storage.tables import datasets, items
from spanlab.worklists import paging

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]


def test_a_record_comes_back_with_everything_in_it(store: Store) -> None:
    answer = " \U0001f469\u200d\U0001f680 e\u0301 \x00 \u0645\u0631\u062d\u0628\u0627\r\n"
    evidence = Evidence(passage=0, start=0, end=3, text="nul", stance="refutes", note="n")
    span = Span.of(answer, 1, 4, prob=0.25, label="fact", evidence=(evidence,))
    odd = Record(
        item=Item(
            id="a/\U0001f680",
            lang="ar",
            answer=answer,
            passages=(Passage(text="nul \x00 here"),),
            meta={"big": 2**70, "tiny": 1e-7, "none": None, "list": [1, {"b": 2, "a": 1}]},
        ),
        annotations=(Annotation(annotator="det", kind=AnnotatorKind.DETECTOR, spans=(span,)),),
    )
    records = [full_record(), odd]
    assert store.import_records("d", records) == 2
    assert store.record("d", "a/\U0001f680") == odd
    assert list(store.records("d")) == records


def test_the_samples_come_out_byte_for_byte(store: Store, samples: Path) -> None:
    """An export streams all there is, in import order, and loses nothing."""
    n_items = store.import_records("samples", read(samples))
    out = BytesIO()
    assert write(store.records("samples"), out) == n_items
    assert out.getvalue() == samples.read_bytes()


def test_no_statement_grows_with_the_dataset(store: Store, record: MakeRecord, said: Say) -> None:
    """No "too many SQL variables", however many items there are."""
    variables = [0]

    def look(*event: Any) -> None:
        _, _, _, parameters, _, executemany = event
        variables.append(0 if executemany else len(parameters))

    listen(Engine, "before_cursor_execute", look)
    try:
        store.import_records("d", (record(str(n)) for n in range(2500)))
        store.save_annotations("d", ((str(n), said("det", (0, 3))) for n in range(0, 2500, 2)))
        assert len(list(store.records("d", annotators=["det"]))) == 2500
        paging.page(store, "d", QueueQuery(reviewer="me", limit=1000, order="disagreement"))
        store.delete_dataset("d")
    finally:
        remove(Engine, "before_cursor_execute", look)
    assert max(variables) < 8000  # 512 rows'; SQLite takes 32,766, PostgreSQL 65,535


def test_an_export_sees_one_moment_while_reviews_go_on(
    store: Store, record: MakeRecord, said: Say
) -> None:
    store.import_records("d", [record(str(n), said("det")) for n in range(500)])
    records = store.records("d")
    next(records)
    store.save_annotations("d", [(str(n), said("late", (0, 3))) for n in range(500)])
    assert {len(each.annotations) for each in records} == {1}
    assert len(store.record("d", "499").annotations) == 2


def test_only_chosen_annotators_are_exported(store: Store, record: MakeRecord, said: Say) -> None:
    store.import_records("d", [record("a", said("det"), said("other", (0, 3)))])
    (only,) = store.records("d", annotators=["other"])
    assert only.annotations == (said("other", (0, 3)),)
    with pytest.raises(NotFoundError, match="'who' has annotated nothing in 'd'; who has: 'det'"):
        list(store.records("d", annotators=["who"]))


def test_four_states_are_told_apart(store: Store, record: MakeRecord, said: Say) -> None:
    """Not annotated, nothing found, failed and skipped are different states."""
    store.import_records(
        "d",
        [
            record("untouched"),
            record("nothing found", said("det")),
            record("found", said("det", (0, 3, 0.5))),
            record("failed", said("det", status=Status.FAILED)),
            record("skipped", said("det", status=Status.SKIPPED)),
        ],
    )
    counted = {
        Status.NOT_ANNOTATED: 1,
        Status.DONE: 2,
        Status.FAILED: 1,
        Status.SKIPPED: 1,
    }
    assert store.datasets()[0].annotators[0].counts == counted
    assert store.counts("d", "det") == counted
    for status, ids in {
        Status.NOT_ANNOTATED: ["untouched"],
        Status.DONE: ["nothing found", "found"],
        Status.FAILED: ["failed"],
        Status.SKIPPED: ["skipped"],
    }.items():
        query = QueueQuery(reviewer="me", detector="det", detector_status=status)
        assert [row.item_id for row in paging.page(store, "d", query).rows] == ids
    low = QueueQuery(reviewer="me", detector="det", max_prob=0.5)
    rows = {row.item_id: row.max_prob for row in paging.page(store, "d", low).rows}
    assert rows == {"nothing found": 0.0, "found": 0.5}
    failed = store.record("d", "failed").by("det")
    assert failed is not None
    assert (failed.status, failed.note) == (Status.FAILED, "it broke")


def test_a_summary_counts_languages_and_annotators(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """Several annotators say different things of one item."""
    person = said("ann", kind=AnnotatorKind.PERSON)
    store.import_records("d", [record("a", said("det"), person, lang="fi"), record("b", lang="en")])
    store.import_records("d", [record("c", lang="fi")])
    (summary,) = store.datasets()
    assert (summary.name, summary.n_items) == ("d", 3)
    assert summary.languages == {"fi": 2, "en": 1}
    assert [(each.name, each.kind) for each in summary.annotators] == [
        ("det", AnnotatorKind.DETECTOR),
        ("ann", AnnotatorKind.PERSON),
    ]
    assert summary.annotators[1].counts[Status.DONE] == 1


def test_no_datasets_is_an_empty_list(store: Store) -> None:
    assert store.datasets() == []
    with pytest.raises(NotFoundError, match="no dataset named 'd'; available: none yet"):
        store.record("d", "a")


def test_labels_in_use_stand_in_order_of_first_use(store: Store, record: MakeRecord) -> None:
    answer = "one two"

    def with_label(label: str) -> Annotation:
        span = Span.of(answer, 0, 3, label=label)
        return Annotation(annotator="det", kind=AnnotatorKind.DETECTOR, spans=(span,))

    store.import_records("d", [record("a", with_label("number"), answer=answer)])
    store.save_annotations("d", [("a", with_label("date"))])
    add = AddSpan(span="s", start=0, end=3, label="name")
    store.apply("d", "a", "me", [SentOperation("session", 1, 0, add)])
    assert store.labels("d") == ("number", "date", "name")


def test_renaming_keeps_everything(store: Store, record: MakeRecord) -> None:
    store.import_records("old", [record("a")])
    store.import_records("taken", [record("a")])
    store.rename_dataset("old", "new")
    assert [each.name for each in store.datasets()] == ["new", "taken"]
    with pytest.raises(StoreError, match="the name 'taken' is taken by a dataset"):
        store.rename_dataset("new", "taken")
    with pytest.raises(NotFoundError, match="no dataset named 'old'"):
        store.rename_dataset("old", "older")
    with pytest.raises(UsageError, match="is not a valid name for a dataset"):
        store.rename_dataset("new", "")


def test_a_copy_goes_its_own_way(store: Store, record: MakeRecord, said: Say) -> None:
    """A dataset is duplicated with all annotations, and the two part from there."""
    store.import_records("d", [record(str(n), said("det", (0, 3))) for n in range(2100)])
    add = AddSpan(span="s", start=4, end=9)
    store.apply("d", "7", "me", [SentOperation("one", 1, 0, add)])
    store.change_settings(
        "d", lambda now: now.model_copy(update={"undecided": UndecidedRule.LIKELY})
    )
    assert store.duplicate_dataset("d", "copy") == 2100
    assert {each.settings.undecided for each in store.datasets()} == {UndecidedRule.LIKELY}
    assert list(store.records("copy")) == list(store.records("d"))
    original, copy = store.datasets()
    assert (copy.n_items, copy.languages, copy.annotators) == (
        original.n_items,
        original.languages,
        original.annotators,
    )
    done = SetStatus(status=Status.DONE)
    assert store.review("copy", "7", "me").snapshot == store.review(
        "d", "7", "me"
    ).state.model_copy(update={"spans": {"i0": Span.of(record("7").item.answer, 4, 9)}})
    store.apply("copy", "7", "me", [SentOperation("two", 1, 0, done)])
    assert store.counts("copy", "me")[Status.DONE] == 1
    assert store.counts("d", "me")[Status.DONE] == 0
    with pytest.raises(StoreError, match="'copy' is taken"):
        store.duplicate_dataset("d", "copy")


def test_deleting_takes_logs_along_and_frees_the_name(
    store: Store, record: MakeRecord, said: Say
) -> None:
    store.import_records("d", [record(str(n), said("det", (0, 3))) for n in range(2100)])
    store.import_records("kept", [record("a")])
    add = AddSpan(span="s", start=4, end=9)
    store.apply("d", "7", "me", [SentOperation("one", 1, 0, add)])
    store.delete_dataset("d")
    assert [each.name for each in store.datasets()] == ["kept"]
    store.import_records("d", [record("7")])
    assert store.review("d", "7", "me").version == 0


def test_one_name_is_one_kind_of_annotator(store: Store, record: MakeRecord, said: Say) -> None:
    store.import_records("d", [record("a", said("det"))])
    with pytest.raises(StoreError, match="'det' is a detector in 'd' and cannot be a person too"):
        store.apply("d", "a", "det", [])
    with pytest.raises(StoreError, match="cannot be a person too"):
        store.review("d", "a", "det")
    with pytest.raises(StoreError, match="cannot be a vote too"):
        store.save_annotations("d", [("a", said("det", kind=AnnotatorKind.VOTE))])


def test_what_done_makes_of_undecided_suggestions_is_set_for_each_dataset(
    store: Store, record: MakeRecord
) -> None:
    for name in ("one", "two"):
        store.import_records(name, [record("a")])
    store.change_settings(
        "two", lambda now: now.model_copy(update={"undecided": UndecidedRule.ASK})
    )
    found = {each.name: each.settings.undecided for each in store.datasets()}
    assert found == {"one": UndecidedRule.REJECTED, "two": UndecidedRule.ASK}
    with pytest.raises(NotFoundError, match="no dataset named 'three'"):
        store.change_settings("three", lambda now: now)


def test_settings_that_contradict_each_other_are_refused(store: Store, record: MakeRecord) -> None:
    store.import_records("d", [record("a")])
    twice = (SpanLabel(name="invented"), SpanLabel(name="invented"))
    with pytest.raises(UsageError, match=r"settings of 'd': .*label 'invented' already exists"):
        store.change_settings("d", lambda now: now.model_copy(update={"labels": twice}))
    assert store.datasets()[0].settings == DatasetSettings()


def test_guidelines_keep_every_text_they_have_had(store: Store, record: MakeRecord) -> None:
    store.import_records("d", [record("a")])
    for text in ("Mark names.", "Mark names and dates.", "Mark names and dates."):
        changed = store.change_settings("d", lambda now, text=text: now.with_guidelines(text))  # type: ignore[misc]
    assert changed.guidelines == ("Mark names.", "Mark names and dates.")
    assert store.datasets()[0].settings == changed


def test_a_deleted_dataset_keeps_everything_for_30_days_and_then_goes_at_the_next_opening(
    settings: Settings, record: MakeRecord, said: Say
) -> None:
    with Store.open(settings) as store:
        store.import_records("d", [record("a", said("anna", (4, 9), kind=AnnotatorKind.PERSON))])
        write = SentOperation("s", 1, 0, SetStatus(status=Status.SKIPPED))
        store.apply("d", "a", "anna", [write])
        before = (list(store.records("d")), store.review("d", "a", "anna"))
        store.freeze_dataset("d", "d@v1")
        store.bin_dataset("d")
        assert store.datasets(versions=True) == []
        store.import_records("d", [record("b")])  # the name is free
        with pytest.raises(StoreError, match="is taken"):
            store.restore_dataset("d")
        store.restore_dataset("d", "old")
        assert (list(store.records("old")), store.review("old", "a", "anna")) == before
        assert [each.name for each in store.datasets(versions=True)] == ["old", "old@v1", "d"]
        store.bin_dataset("old")
        for days, left in ((29, 2), (31, 0)):
            then = (datetime.now(UTC) - timedelta(days=days)).isoformat()
            with store.database.writing() as connection:
                changed = update(datasets).where(datasets.c.state == "binned")
                connection.execute(changed.values(deleted_at=then))
            Store.open(settings).close()
            assert len(store.binned()) == left
        with store.database.reading() as connection:
            assert connection.execute(select(items.c.item_id)).scalars().all() == ["b"]


def test_a_clock_put_far_forward_does_not_empty_the_bin(
    settings: Settings, record: MakeRecord
) -> None:
    with Store.open(settings) as store:
        store.import_records("d", [record("a")])
        store.bin_dataset("d")
        ago = (datetime.now(UTC) - timedelta(days=40)).isoformat()
        with store.database.writing() as connection:
            connection.execute(update(datasets).values(created=ago, deleted_at=ago))
        Store.open(settings).close()
        assert len(store.binned()) == 1
        store.import_records("new", [record("b")])  # somebody works at this time: it is right
        assert len(store.binned()) == 1
        store.delete_dataset("new")
        assert store.binned() == []


def test_versions_follow_their_dataset_and_outlive_it(store: Store, record: MakeRecord) -> None:
    store.import_records("d", [record("a")])
    store.freeze_dataset("d", "d@v1")
    store.rename_dataset("d", "new")
    assert [(each.name, each.version_of) for each in store.datasets(versions=True)] == [
        ("new", None),
        ("new@v1", "new"),
    ]
    with pytest.raises(UsageError, match="is a version, which never changes"):
        store.rename_dataset("new@v1", "other")
    with pytest.raises(UsageError, match="is a version, which never changes"):
        store.import_records("new@v1", [record("b")])
    store.delete_dataset("new")
    assert [(each.name, each.version_of) for each in store.datasets()] == [("new@v1", None)]
    store.bin_dataset("new@v1")
    assert [each.name for each in store.binned()] == ["new@v1"]
