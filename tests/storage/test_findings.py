"""What detectors found, with the passages they found it in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

import pytest
from rebuilt import rebuilt

from spanlab.base.errors import InputError, NotFoundError, StoreError
from spanlab.formats import dumps
from spanlab.formats.known.jsonl import loads
from spanlab.oplog.operations import AddSpan, SentOperation, SetStatus
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Evidence,
    Item,
    Passage,
    Process,
    ProcessNode,
    QueryStep,
    Record,
    Retrieval,
    Span,
    Status,
    joined,
)
from spanlab.storage import Store

ANSWER = "The tower was built in 1887 and is 330 metres tall."
GIVEN = Passage(text="Work began on 28 January 1887.")
WEB = Passage(text="It is 312 metres high.", url="https://a.example/height")
LATER = Process(
    nodes=(
        ProcessNode(id="found", text="found"),
        ProcessNode(id="a", text="said", sources=("found",)),
    )
)
CORPUS = Passage(text="The tower is 330 metres tall.", title="Tower")
MakeRecord = Callable[..., Record]


@dataclass(frozen=True)
class Found:
    item: Item
    annotations: tuple[Annotation, ...]


def asked(retriever: str, *queries: str) -> Retrieval:
    return Retrieval(retriever=retriever, queries=queries)


def test_passages_and_annotation_are_kept_together(store: Store) -> None:
    item = _item()
    store.import_records("d", [Record(item=item)])
    enriched = joined(item, asked("web", "How tall?"), [WEB])

    assert store.save_findings("d", [Found(enriched, (_said("det", 1, WEB),))]) == 1

    record = store.record("d", "a")
    assert record.item == enriched
    assert record.annotations == (_said("det", 1, WEB),)
    assert store.counts("d", "det")[Status.DONE] == 1


def test_a_retrieval_that_found_nothing_is_kept_too(store: Store) -> None:
    item = _item()
    store.import_records("d", [Record(item=item)])
    store.save_findings("d", [Found(joined(item, asked("web", "How tall?"), []), ())])
    assert store.record("d", "a").item.retrievals == (
        Retrieval(retriever="web", queries=("How tall?",)),
    )


def test_several_queries_of_one_retriever_are_kept_beside_each_other(store: Store) -> None:
    """As a detector asks that looks further from what it found."""
    item = _item()
    store.import_records("d", [Record(item=item)])
    who = Retrieval(retriever="web", queries=("who?",), query="who?")
    when = who.model_copy(update={"query": "when?", "k": 3, "before": date(2024, 5, 1)})
    found = joined(joined(joined(item, asked("web", "a"), [WEB]), who, [CORPUS]), when, [WEB])
    other = joined(joined(item, who, [GIVEN]), when, [CORPUS])
    for each in (found, other):
        store.save_findings("d", [Found(each, (_said("det", 1, each.passages[1]),))])

    kept = store.record("d", "a").item
    assert kept.passages == (GIVEN, WEB, CORPUS)
    assert [(each.query, each.before, each.passages) for each in kept.retrievals] == [
        (None, None, (1,)),
        ("who?", None, (2, 0)),
        ("when?", date(2024, 5, 1), (1, 2)),
    ]
    assert loads(dumps(Record(item=kept))).item == kept


def test_evidence_follows_its_passage_where_another_detector_was_faster(store: Store) -> None:
    """Both detectors start from the same item and each appends its own passage at index 1."""
    item = _item()
    store.import_records("d", [Record(item=item)])
    first = Found(joined(item, asked("web", "a"), [WEB]), (_said("one", 1, WEB),))
    second = Found(joined(item, asked("bm25", "b"), [CORPUS]), (_said("two", 1, CORPUS),))

    store.save_findings("d", [first])
    store.save_findings("d", [second])

    record = store.record("d", "a")
    assert record.item.passages == (GIVEN, WEB, CORPUS)
    assert record.item.retrievals == (
        Retrieval(retriever="web", queries=("a",), passages=(1,)),
        Retrieval(retriever="bm25", queries=("b",), passages=(2,)),
    )
    assert record.by("one") == _said("one", 1, WEB)
    assert record.by("two") == _said("two", 2, CORPUS)
    Record.model_validate(record.model_dump())  # every quote is where it says


def test_two_findings_of_one_item_may_come_in_one_batch(store: Store) -> None:
    item = _item()
    store.import_records("d", [Record(item=item)])
    found = [
        Found(joined(item, asked("bm25", "b"), [CORPUS]), (_said("one", 1, CORPUS),)),
        Found(
            joined(item, asked("web", "a"), [WEB]), (_said("two", 1, WEB), _said("vote", 1, WEB))
        ),
    ]
    assert store.save_findings("d", found) == 2
    record = store.record("d", "a")
    assert record.item.passages == (GIVEN, CORPUS, WEB)
    assert record.annotations == (
        _said("one", 1, CORPUS),
        _said("two", 2, WEB),
        _said("vote", 2, WEB),
    )


def test_an_item_that_learns_nothing_stays_as_it_is(store: Store) -> None:
    item = _item()
    store.import_records("d", [Record(item=item)])
    store.save_findings("d", [Found(item, (_said("det", 0, GIVEN),))])
    store.save_findings("d", [Found(item, (_said("det", 0, GIVEN),))])
    assert store.record("d", "a") == Record(item=item, annotations=(_said("det", 0, GIVEN),))


def test_a_review_under_way_goes_on(store: Store) -> None:
    """Passages that arrive while a person reviews change nothing the person did."""
    item = _item()
    store.import_records("d", [Record(item=item, annotations=(_said("old", 0, GIVEN),))])
    store.apply("d", "a", "me", [SentOperation("s", 1, 0, AddSpan(span="x", start=0, end=3))])

    store.save_findings(
        "d", [Found(joined(item, asked("web", "q"), [WEB]), (_said("det", 1, WEB),))]
    )

    done = store.apply("d", "a", "me", [SentOperation("s", 2, 1, SetStatus(status=Status.DONE))])
    assert (done.acknowledged, done.refused) == (2, ())
    record = store.record("d", "a")
    assert record.by("old") == _said("old", 0, GIVEN)
    mine = record.by("me")
    assert mine is not None
    assert [span.text for span in mine.spans] == ["The"]
    assert rebuilt(store, "d", "a", "me") == store.review("d", "a", "me").state


def test_what_a_person_reviewed_is_not_overwritten_and_nothing_of_the_batch_stays(
    store: Store,
) -> None:
    """A person's edits are not lost even by a finding under the person's own name."""
    item, other = _item(), _item("b")
    store.import_records("d", [Record(item=item), Record(item=other)])
    store.apply("d", "a", "me", [SentOperation("s", 1, 0, SetStatus(status=Status.DONE))])
    found = [
        Found(joined(other, asked("web", "q"), [WEB]), (_said("det", 1, WEB),)),
        Found(
            joined(item, asked("web", "q"), [WEB]),
            (_said("me", 1, WEB, kind=AnnotatorKind.PERSON),),
        ),
    ]
    with pytest.raises(StoreError, match="'me' has reviewed item 'a' of 'd'"):
        store.save_findings("d", found)
    assert store.record("d", "a").item == item
    assert store.record("d", "b") == Record(item=other)


@pytest.mark.parametrize(
    ("item_id", "quote", "error", "message"),
    [
        pytest.param("z", 0, NotFoundError, "'d' has no item 'z'", id="unknown item"),
        pytest.param("a", 7, InputError, "passage 7 does not exist, the item has 1", id="passage"),
    ],
)
def test_what_does_not_fit_is_refused(
    store: Store, item_id: str, quote: int, error: type[Exception], message: str
) -> None:
    store.import_records("d", [Record(item=_item())])
    with pytest.raises(error, match=message):
        store.save_findings("d", [Found(_item(item_id), (_said("det", quote, GIVEN),))])
    assert store.record("d", "a") == Record(item=_item())


@pytest.mark.parametrize(
    "now",
    [
        pytest.param({"answer": "The tower was built in 1888."}, id="answer"),
        pytest.param({"question": "When was it built?"}, id="question"),
        pytest.param({"passages": (GIVEN, CORPUS), "process": LATER}, id="later-spans"),
    ],
)
def test_what_was_judged_before_its_item_was_replaced_is_refused(
    store: Store, now: dict[str, Any]
) -> None:
    item = _item()
    store.import_records("d", [Record(item=item)])
    replaced = item.model_copy(update=now)
    assert store.revise_item("d", "a", replaced) == 0
    judged = Annotation(annotator="det", kind=AnnotatorKind.DETECTOR)
    with pytest.raises(InputError, match="'a' has another answer, question or process"):
        store.save_findings("d", [Found(joined(item, asked("web", "q"), [WEB]), (judged,))])
    assert store.record("d", "a") == Record(item=replaced)
    found = joined(replaced, asked("web", "q"), [WEB, GIVEN])
    assert store.save_findings("d", [Found(found, (judged,))]) == 1
    other = joined(replaced, asked("corpus", "q"), [CORPUS])
    said = judged.model_copy(update={"annotator": "other"})
    assert store.save_findings("d", [Found(other, (said,))]) == 1


def test_findings_are_durable_as_they_come(store: Store) -> None:
    """More than one batch: what came before a detector broke off is there."""
    count = 250
    store.import_records("d", [Record(item=_item(f"i{n}")) for n in range(count)])

    def found() -> Iterator[Found]:
        for n in range(count - 1):
            item = joined(_item(f"i{n}"), asked("web", "q"), [WEB])
            yield Found(item, (_said("det", 1, WEB),))
        raise RuntimeError("the detector broke")

    with pytest.raises(RuntimeError, match="the detector broke"):
        store.save_findings("d", found())
    assert store.counts("d", "det")[Status.DONE] >= 200
    assert store.record("d", "i0").item.passages == (GIVEN, WEB)


def test_saving_no_findings_is_fine_and_an_unknown_dataset_is_not(store: Store) -> None:
    store.import_records("d", [Record(item=_item())])
    assert store.save_findings("d", []) == 0
    with pytest.raises(NotFoundError, match="'e'"):
        store.save_findings("e", [])


def _item(item_id: str = "a") -> Item:
    return Item(id=item_id, lang="en", question="How tall?", answer=ANSWER, passages=(GIVEN,))


def _said(
    name: str, index: int, passage: Passage, *, kind: AnnotatorKind = AnnotatorKind.DETECTOR
) -> Annotation:
    quote = Evidence(start=0, end=5, text=passage.text[:5], passage=index, stance="refutes")
    return Annotation(
        annotator=name,
        kind=kind,
        spans=(Span.of(ANSWER, 35, 38, prob=0.8, evidence=(quote,)),),
        trace=(QueryStep(text="How tall?", retriever="any", passages=(index,)),),
    )
