"""What detectors and votes write, and what they may not overwrite."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from spanlab.base.errors import InputError, NotFoundError, StoreError
from spanlab.oplog.operations import AcceptSpan, AddSpan, SentOperation, SetStatus
from spanlab.oplog.state import SuggestionMark
from spanlab.schema import Annotation, AnnotatorKind, Claim, QueueQuery, Record, Status
from spanlab.storage import Store
from spanlab.storage.annotations import annotation_values, position_values
from spanlab.worklists import paging

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]


def test_edits_survive_when_the_detector_runs_again(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """Edits to a pre-annotated item are never lost, even by a second run."""
    store.import_records("d", [record("a", said("det", (4, 9, 0.8)))])
    mark = SuggestionMark(source="det", start=4, end=9, prob=0.8)
    writes = [
        SentOperation("s", 1, 0, AcceptSpan(span="x", mark=mark)),
        SentOperation("s", 2, 1, AddSpan(span="y", start=23, end=27)),
        SentOperation("s", 3, 2, SetStatus(status=Status.DONE)),
    ]
    assert store.apply("d", "a", "me", writes).acknowledged == 3
    before = store.review("d", "a", "me")

    assert store.save_annotations("d", [("a", said("det", (0, 3, 0.1)))]) == 1

    after = store.review("d", "a", "me")
    assert (after.state, after.version) == (before.state, 3)
    assert after.operations == before.operations
    mine = after.record.by("me")
    assert mine is not None
    assert [(span.start, span.end, span.source) for span in mine.spans] == [
        (4, 9, "det"),
        (23, 27, None),
    ]
    assert after.record.by("det") == said("det", (0, 3, 0.1))


def test_what_a_person_reviewed_is_not_overwritten(
    store: Store, record: MakeRecord, said: Say
) -> None:
    """A person's edits are not lost even by an annotation under the person's own name."""
    mine = said("me", (0, 3), kind=AnnotatorKind.PERSON)
    store.import_records("d", [record("a", mine)])
    store.save_annotations("d", [("a", said("me", (4, 9), kind=AnnotatorKind.PERSON))])
    store.apply("d", "a", "me", [SentOperation("s", 1, 0, SetStatus(status=Status.DONE))])
    with pytest.raises(StoreError, match="'me' has reviewed item 'a' of 'd'"):
        store.save_annotations("d", [("a", mine)])
    assert store.record("d", "a").by("me") == said("me", (4, 9), kind=AnnotatorKind.PERSON)


def test_a_second_run_replaces_the_first_in_place(
    store: Store, record: MakeRecord, said: Say
) -> None:
    store.import_records("d", [record("a", said("det"), said("other"))])
    store.save_annotations("d", [("a", said("det", (0, 3, 0.9)))])
    assert store.record("d", "a").annotations == (said("det", (0, 3, 0.9)), said("other"))
    assert store.counts("d", "det")[Status.DONE] == 1
    (row,) = paging.page(store, "d", QueueQuery(reviewer="me", detector="det", min_prob=0.9)).rows
    assert (row.item_id, row.max_prob) == ("a", 0.9)


def test_counts_follow_when_a_status_changes(store: Store, record: MakeRecord, said: Say) -> None:
    """A failed judgement is a state, and a later success takes its place."""
    store.import_records("d", [record("a"), record("b")])
    store.save_annotations("d", [("a", said("det", status=Status.FAILED))])
    assert store.counts("d", "det")[Status.FAILED] == 1
    store.save_annotations("d", [("a", said("det", (0, 3)))])
    assert store.counts("d", "det") == {
        Status.NOT_ANNOTATED: 1,
        Status.DONE: 1,
        Status.FAILED: 0,
        Status.SKIPPED: 0,
    }


def test_one_batch_may_say_two_things_of_an_item(
    store: Store, record: MakeRecord, said: Say
) -> None:
    store.import_records("d", [record("a")])
    pairs = [("a", said("det", (0, 3))), ("a", said("det", (4, 9))), ("a", said("other"))]
    assert store.save_annotations("d", pairs) == 3
    assert store.record("d", "a").annotations == (said("det", (4, 9)), said("other"))
    assert store.counts("d", "det")[Status.DONE] == 1


def test_disagreement_follows_every_annotation(store: Store, record: MakeRecord, said: Say) -> None:
    store.import_records("d", [record("a", said("one", (0, 10)))])
    query = QueueQuery(reviewer="me")
    assert paging.page(store, "d", query).rows[0].disagreement is None
    store.save_annotations("d", [("a", said("two", (5, 10)))])
    # 5 characters in common of 10 marked by either: IoU 0.5
    assert paging.page(store, "d", query).rows[0].disagreement == 0.5
    store.save_annotations("d", [("a", said("gold", kind=AnnotatorKind.GOLD))])
    assert paging.page(store, "d", query).rows[0].disagreement == 0.5
    store.save_annotations("d", [("a", said("two", status=Status.FAILED))])
    assert paging.page(store, "d", query).rows[0].disagreement is None


@pytest.mark.parametrize(
    ("pair", "error", "message"),
    [
        pytest.param(("z", (0, 3)), NotFoundError, "'d' has no item 'z'", id="unknown item"),
        pytest.param(("b", (0, 3)), InputError, "item 'b' by 'det' does not fit", id="other text"),
    ],
)
def test_what_does_not_fit_is_refused(
    store: Store,
    record: MakeRecord,
    said: Say,
    pair: tuple[str, tuple[int, int]],
    error: type[Exception],
    message: str,
) -> None:
    store.import_records("d", [record("a"), record("b", answer="Other text")])
    with pytest.raises(error, match=message):
        store.save_annotations("d", [("a", said("det")), (pair[0], said("det", pair[1]))])
    assert store.record("d", "a").annotations == ()


@pytest.mark.parametrize(("whole", "kept"), [(False, 200), (True, 0)], ids=["batches", "whole"])
def test_a_writer_that_breaks_off_keeps_its_finished_batches_unless_it_is_a_whole(
    store: Store, record: MakeRecord, said: Say, whole: bool, kept: int
) -> None:
    store.import_records("d", [record(str(n)) for n in range(300)])

    def pairs() -> Iterator[tuple[str, Annotation]]:
        for n in range(250):
            yield str(n), said("det")
        raise RuntimeError("the model is gone")

    with pytest.raises(RuntimeError, match="the model is gone"):
        store.save_annotations("d", pairs(), whole=whole)
    assert store.counts("d", "det")[Status.DONE] == kept


def test_an_annotation_of_nothing_is_written_too(store: Store, record: MakeRecord) -> None:
    store.import_records("d", [record("a")])
    empty = Annotation(annotator="det", kind=AnnotatorKind.DETECTOR)
    assert store.save_annotations("d", []) == 0
    assert store.save_annotations("d", [("a", empty)]) == 1
    assert store.record("d", "a").by("det") == empty


_DISPUTED = {"disagreement": 1.0, "detector_disagreement": None}
_AGREED = {"disagreement": None, "detector_disagreement": None}


@pytest.mark.parametrize(
    ("people", "expected"),
    [
        pytest.param([], {"n_people": 0, "max_prob": None, **_AGREED}, id="nobody"),
        pytest.param(
            [("d", AnnotatorKind.DETECTOR, Status.DONE, None)],
            {"max_prob": 0.0, **_AGREED},
            id="nothing",
        ),
        pytest.param(
            [("d", AnnotatorKind.DETECTOR, Status.FAILED, None)],
            {"max_prob": None},
            id="unfinished",
        ),
        pytest.param(
            [
                ("d", AnnotatorKind.DETECTOR, Status.DONE, 0.3),
                ("e", AnnotatorKind.DETECTOR, Status.DONE, 0.7),
            ],
            {"max_prob": 0.7, "disagreement": 1.0, "detector_disagreement": 1.0},
            id="two detectors",
        ),
        pytest.param(
            [
                ("d", AnnotatorKind.DETECTOR, Status.DONE, None),
                ("a", AnnotatorKind.PERSON, Status.DONE, 1.0),
            ],
            {"n_people": 1, "max_prob": 0.0, "n_labels": 1, "detector_labels": 0, **_DISPUTED},
            id="a person",
        ),
        pytest.param(
            [
                ("a", AnnotatorKind.PERSON, Status.SKIPPED, 1.0),
                ("g", AnnotatorKind.GOLD, Status.DONE, 1.0),
            ],
            {"n_people": 0, "max_prob": None, "n_labels": 1, "n_claims": 1, **_AGREED},
            id="skipped, and gold",
        ),
    ],
)
def test_what_queues_filter_by_follows_from_the_annotations(
    record: MakeRecord,
    said: Say,
    people: list[tuple[str, AnnotatorKind, Status, float | None]],
    expected: dict[str, object],
) -> None:
    """Everybody with a probability has one label and one claim."""
    annotations = []
    for name, kind, status, prob in people:
        spans = [] if prob is None else [(0, 3, prob)]
        annotation = said(name, *spans, kind=kind, status=status)
        labelled = [span.model_copy(update={"label": "name"}) for span in annotation.spans]
        claims = [Claim(text="one")] * len(spans)
        annotations.append(annotation.model_copy(update={"spans": labelled, "claims": claims}))
    numbers = [annotation_values(annotation) for annotation in annotations]
    values = position_values(record("a", lang="fi").item, annotations, numbers)
    assert values.items() >= {"lang": "fi", "n_passages": 0, **expected}.items()
