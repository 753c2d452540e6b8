"""Items on which everybody agrees: which they are, what is decided, and what an undo leaves."""

from __future__ import annotations

from rebuilt import rebuilt

from spanlab.oplog.operations import AddSpan, SentOperation
from spanlab.oplog.state import ReviewState
from spanlab.review.adjudication import AdjudicationQueue, agreed_items, take_agreed, take_back
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    Question,
    Record,
    Span,
    Status,
    Verdict,
)
from spanlab.schema.datasets import ADJUDICATED
from spanlab.storage import Store

ANSWER = "one two three"
QUEUE = AdjudicationQueue()


def _by(
    name: str,
    *extents: tuple[int, int],
    label: str | None = None,
    verdict: Verdict | None = None,
    kind: AnnotatorKind = AnnotatorKind.PERSON,
) -> Annotation:
    spans = tuple(Span.of(ANSWER, start, end, label=label) for start, end in extents)
    claims = (Claim(text="One.", verdict=verdict),) if verdict else ()
    return Annotation(annotator=name, kind=kind, spans=spans, claims=claims)


CASES = {
    "the same": (_by("Ann", (0, 3)), _by("Ben", (0, 3))),
    "in parts": (_by("Ann", (0, 7)), _by("Ben", (0, 5), (5, 7))),
    "nothing": (_by("Ann"), _by("Ben")),
    "claims": (_by("Ann", verdict="refuted"), _by("Ben", verdict="refuted")),
    "detector differs": (
        _by("Ann", (0, 3)),
        _by("Ben", (0, 3)),
        _by("d", kind=AnnotatorKind.DETECTOR),
    ),
    "other place": (_by("Ann", (0, 3)), _by("Ben", (4, 7))),
    "other label": (_by("Ann", (0, 3), label="a"), _by("Ben", (0, 3), label="b")),
    "other verdict": (_by("Ann", verdict="refuted"), _by("Ben", verdict="supported")),
    "alone": (_by("Ann", (0, 3)),),
}
AGREED = ["the same", "in parts", "nothing", "claims", "detector differs"]


def _import(store: Store) -> None:
    records = [
        Record(item=Item(id=name, answer=ANSWER), annotations=said) for name, said in CASES.items()
    ]
    store.import_records("words", records)


def test_all_who_finished_an_item_agree_on_its_characters_labels_and_verdicts(
    store: Store,
) -> None:
    _import(store)
    agreed = agreed_items(store, "words", QUEUE).items
    assert sorted(item.item_id for item in agreed) == sorted(AGREED)
    assert {item.item_id: item.n_spans for item in agreed}["nothing"] == 0
    alone = AdjudicationQueue(least=0)
    assert len(agreed_items(store, "words", alone).items) == len(AGREED)  # nobody agrees alone


def test_they_are_decided_as_everybody_says_and_taken_back_as_one(store: Store) -> None:
    _import(store)
    before = [store.record("words", name).annotations for name in CASES]
    taken = take_agreed(
        store, "words", ADJUDICATED, "Ada", agreed_items(store, "words", QUEUE).items
    )
    assert len(taken.items) == len(AGREED)
    decided = store.record("words", "in parts").by(ADJUDICATED)
    assert decided is not None
    assert (decided.kind, decided.status, decided.decided_by) == (
        AnnotatorKind.GOLD,
        Status.DONE,
        "Ada",
    )
    assert [(span.start, span.end, span.source, span.voters) for span in decided.spans] == [
        (0, 7, "majority", ("Ann", "Ben"))
    ]
    judged = store.record("words", "claims").by(ADJUDICATED)
    assert judged is not None
    assert [(claim.verdict, claim.voters) for claim in judged.claims] == [
        ("refuted", ("Ann", "Ben"))
    ]
    assert store.record("words", "other place").by(ADJUDICATED) is None
    assert agreed_items(store, "words", QUEUE).items == ()

    assert take_back(store, taken) == len(AGREED)
    for name, said in zip(CASES, before, strict=True):
        assert store.record("words", name).annotations[: len(said)] == said
        state = store.review("words", name, ADJUDICATED, AnnotatorKind.GOLD).state
        assert state == ReviewState()
        assert state == rebuilt(store, "words", name, ADJUDICATED, AnnotatorKind.GOLD)
    assert len(agreed_items(store, "words", QUEUE).items) == len(AGREED)  # and can be taken again
    again = take_agreed(
        store, "words", ADJUDICATED, "Ada", agreed_items(store, "words", QUEUE).items
    )
    assert len(again.items) == len(AGREED)


def test_what_somebody_works_on_is_neither_taken_nor_taken_back(store: Store) -> None:
    _import(store)
    drawn = SentOperation("tab", 1, 0, AddSpan(span="s", start=8, end=13), "Grace")
    agreed = agreed_items(store, "words", QUEUE).items
    store.apply("words", "the same", ADJUDICATED, [drawn])
    taken = take_agreed(store, "words", ADJUDICATED, "Ada", agreed)
    assert "the same" not in {name for name, _, _ in taken.items}
    assert "the same" not in {each.item_id for each in agreed_items(store, "words", QUEUE).items}
    length = {name: now for name, _, now in taken.items}["in parts"]
    more = SentOperation("tab", 2, length, AddSpan(span="t", start=8, end=13), "Grace")
    store.apply("words", "in parts", ADJUDICATED, [more])
    assert take_back(store, taken) == len(AGREED) - 2
    texts = {
        name: [
            span.text
            for span in store.review(
                "words", name, ADJUDICATED, AnnotatorKind.GOLD
            ).state.spans.values()
        ]
        for name in ("the same", "in parts", "nothing")
    }
    assert texts == {"the same": ["three"], "in parts": ["one two", "three"], "nothing": []}


def test_they_also_respond_the_same_and_that_is_taken_with_the_attributes(store: Store) -> None:
    def says(name: str, severity: str, fluency: int | None, remark: str) -> Annotation:
        one = _by(name, (0, 3), label="a")
        spans = tuple(
            each.model_copy(update={"attributes": {"severity": severity}}) for each in one.spans
        )
        given = {"remark": remark} | ({} if fluency is None else {"fluency": fluency})
        return one.model_copy(update={"spans": spans, "responses": given})

    cases = {
        "the same": (says("Ann", "minor", 4, "x"), says("Ben", "minor", 4, "y")),
        "other attribute": (says("Ann", "minor", 4, "x"), says("Ben", "major", 4, "x")),
        "other response": (says("Ann", "minor", 4, "x"), says("Ben", "minor", 5, "x")),
        "nothing given": (says("Ann", "minor", None, "x"), says("Ben", "minor", None, "x")),
    }
    store.import_records(
        "asked",
        [
            Record(item=Item(id=name, answer=ANSWER), annotations=said)
            for name, said in cases.items()
        ],
    )
    asked = {
        "attributes": (Question(name="severity", options=("minor", "major")),),
        "questions": (
            Question(name="fluency", kind="scale", required=True),
            Question(name="remark", kind="text"),
        ),
    }
    store.change_settings("asked", lambda now: now.model_copy(update=asked))
    agreement = agreed_items(store, "asked", QUEUE)
    agreed = agreement.items
    assert [item.item_id for item in agreed] == ["the same"]
    reasons = {"their responses differ": 1, "a required response is missing": 1}
    assert agreement.left == reasons
    assert len(take_agreed(store, "asked", ADJUDICATED, "Ada", agreed).items) == 1
    gold = store.record("asked", "the same").by(ADJUDICATED)
    assert gold is not None
    assert (gold.status, gold.responses) == (Status.DONE, {"fluency": 4})
    assert gold.spans[0].attributes == {"severity": "minor"}
