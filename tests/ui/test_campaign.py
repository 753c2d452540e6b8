"""The Campaign page, and what Review tells a browser of items with known answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from spanlab.oplog import FinishItem
from spanlab.schema import Annotation, AnnotatorKind, Item, QueueQuery, Record, Span
from spanlab.storage import SentOperation, Store
from spanlab.ui.span_editor import EditorMessage, ReviewQueue, exchange
from spanlab.workflows.campaigns import begin_test, change_known, entrance_of

OpenPage = Callable[..., AppTest]
ANSWER = "The tower was built in 1887 and is 330 metres tall."
SECRET = Annotation(
    annotator="gold", kind=AnnotatorKind.GOLD, spans=(Span.of(ANSWER, 23, 27, label="secret"),)
)


@pytest.fixture
def bridges(store: Store) -> Store:
    """20 items for two people, and ten with gold labels, of which every fourth is one."""
    names = [(f"i{n:02}", ()) for n in range(20)] + [(f"k{n:02}", (SECRET,)) for n in range(10)]
    store.import_records(
        "d", [Record(item=Item(id=name, answer=ANSWER), annotations=said) for name, said in names]
    )
    plan = {"overlap": 1, "assigned_to": ("Ada", "Ben")}
    store.change_settings("d", lambda now: now.model_copy(update=plan))
    change_known(store, "d", {"share": 0.25})
    return store


def _done(store: Store, item: str, person: str) -> None:
    base = store.review("d", item, person).version
    write = SentOperation(f"{item} {person}", base + 1, base, FinishItem())
    assert not store.apply("d", item, person, [write]).refused


def test_known_items_are_like_any_other_and_their_gold_never_reaches_the_browser(
    bridges: Store,
) -> None:
    query = QueueQuery(
        reviewer="Ada",
        unfinished=True,
        max_annotators=0,
        reserve=True,
        share=bridges.settings("d").share_of("Ada"),
        known="given",
        blind=True,
    )
    place = ReviewQueue("d", query, None)
    told: list[dict[str, Any]] = []
    item, walked = exchange(bridges, place, EditorMessage()).open, list[str]()
    while item is not None:
        here = EditorMessage(place=place.id, open=item)
        answer: dict[str, Any] = exchange(bridges, place, here).json
        told.append(answer)
        assert answer["taken"] is None  # of no item is said that it is somebody else's
        assert answer["near"][item]["previous"] is None  # this queue has what is not finished
        assert answer["standing"]["number"] >= 1
        assert exchange(bridges, place, here).json["near"] == answer["near"]
        walked.append(item)
        item = answer["near"][item]["next"]
        _done(bridges, walked[-1], "Ada")
    known = [name for name in walked if name.startswith("k")]
    assert len(walked) == len(set(walked)) == 10 + len(known)
    assert 2 <= len(known) <= 4
    assert not walked[0].startswith("k")
    progress = exchange(bridges, place, EditorMessage()).json["progress"]
    assert isinstance(progress, dict)
    assert (progress["done"], progress["total"]) == (len(walked), len(walked))
    assert progress["beyond"] == 0
    searched = replace(query, text="tower", unfinished=False)
    told.append(exchange(bridges, replace(place, query=searched), EditorMessage()).json)
    texts = json.dumps(told)
    assert "secret" not in texts
    assert "gold" not in texts
    rows = bridges.page("d", searched).rows
    assert {row.item_id for row in rows} >= set(known)
    assert all(not row.labels for row in rows)
    plan = bridges.plan("d")
    assert plan is not None
    assert (plan.needed, plan.done) == (20, 10)


def test_nothing_is_stored_before_the_test_but_its_own_items(bridges: Store) -> None:
    change_known(bridges, "d", {"test_items": 2})
    place = ReviewQueue("d", QueueQuery(reviewer="Ada", blind=True), "i00")

    def sent(item: str, seq: int) -> str | None:
        write = {
            **{"session": "s", "seq": seq, "base": 0, "dataset": "d", "item": item},
            **{"reviewer": "Ada", "op": {"kind": "finish"}},
        }
        answer: dict[str, Any] = exchange(bridges, place, EditorMessage(writes=(write,))).json
        return None if answer["results"][0]["stored"] else str(answer["results"][0]["reason"])

    assert "test before anybody begins" in (sent("i00", 1) or "")
    begin_test(bridges, "d", "Ada")
    assert "test before anybody begins" in (sent("i00", 2) or "")
    for number, item in enumerate(entrance_of(bridges, "d", "Ada").items, start=3):
        assert sent(item, number) is None
    assert entrance_of(bridges, "d", "Ada").stage == "failed"


def test_review_offers_the_test_and_says_kindly_how_it_went(
    open_page: OpenPage, bridges: Store
) -> None:
    change_known(bridges, "d", {"test_items": 2, "pass_at": 0.5})
    app = open_page("review", dataset="d", reviewer="Ada")
    assert "Before you begin\\: 2 items" in app.info[0].value
    app.button[-1].click().run()
    assert not app.exception
    assert "0 of 2 items decided" in app.caption[-1].value
    for item in entrance_of(bridges, "d", "Ada").items:
        _done(bridges, item, "Ada")
    app = open_page("review", dataset="d", reviewer="Ada")
    app.button[-1].click().run()  # continue as Ada
    assert "Thank you for doing the test" in app.info[0].value
    assert app.button[-1].label == "Try again"


def test_the_lead_sees_people_and_takes_items_back(open_page: OpenPage, bridges: Store) -> None:
    for item in ("i00", "i02"):
        _done(bridges, item, "Ada")
    app = open_page("campaign", dataset="d")
    assert not app.exception
    assert [(metric.label, metric.value) for metric in app.metric][:2] == [
        ("Annotations done", "2 of 20"),
        ("Remaining", "18"),
    ]
    people = app.dataframe[0].value
    assert list(people["Person"]) == ["Ada", "Ben"]
    app.selectbox(key="taken-from").select("Ben").run()
    assert "10 items of Ben, assigned and not finished" in " ".join(
        each.value for each in app.markdown
    ).replace("\\", "")
    next(each for each in app.button if each.label == "Reassign items").click().run()
    assert "10 items of Ben" in app.success[0].value
    assert bridges.settings("d").away == ("Ben",)
    assert list(app.dataframe[0].value["Left"]) == [18, 0]
    next(each for each in app.button if each.label == "Undo reassignment").click().run()
    assert bridges.settings("d").away == ()


def test_a_dataset_without_people_says_where_they_come_from(
    open_page: OpenPage, store: Store
) -> None:
    assert "nothing to lead yet" in open_page("campaign").info[0].value
    store.import_records("d", [Record(item=Item(id="a", answer=ANSWER))])
    app = open_page("campaign", dataset="d")
    assert "Next: write guidelines" in " ".join(each.value for each in app.markdown)
