"""The Campaign page, and what Review tells a browser of check items."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from spanlab.base.errors import UsageError
from spanlab.measure.sample import plan_measurement
from spanlab.oplog.operations import OPERATION, FinishItem, SentOperation
from spanlab.people.entrance import begin_test, change_checks, check_may_write, entrance_of
from spanlab.people.overview import oversee
from spanlab.review.span_editor import EditorMessage, ReviewQueue, exchange
from spanlab.review.span_editor.payload import EvidenceSent, ItemsWanted, TraceWanted
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    Item,
    MeasurementPlan,
    QueueQuery,
    Record,
    Span,
)
from spanlab.schema.progress import FinishedItem
from spanlab.storage import Store
from spanlab.worklists import drawing, entrances, paging, plans
from spanlab.worklists.names import handle_of, item_of

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
    change_checks(store, "d", {"share": 0.25})
    return store


def _done(store: Store, item: str, person: str) -> None:
    base = store.review("d", item, person).version
    write = SentOperation(f"{item} {person}", base + 1, base, FinishItem())
    assert not store.apply("d", item, person, [write]).refused


def _names(store: Store, person: str, items: Iterable[str]) -> dict[str, str]:
    """What a person's browser calls items."""
    return {item: handle_of(store, "d", person, item) for item in items}


def test_nothing_in_a_frame_tells_a_known_item_from_others(bridges: Store) -> None:
    query = QueueQuery(
        reviewer="Ada",
        unfinished=True,
        reserve=True,
        share=bridges.settings("d").share_of("Ada"),
        listed=True,
        blind=True,
    )
    place = ReviewQueue("d", query, None)
    told: list[dict[str, Any]] = []
    name, walked = exchange(bridges, place, EditorMessage()).open, list[str]()
    while name is not None:
        here = EditorMessage(place=place.id, open=name)
        answer: dict[str, Any] = exchange(bridges, place, here).json
        told.append(answer)
        assert answer["taken"] is None  # of no item is said that it is somebody else's
        assert answer["near"][name]["previous"] is None  # this queue has what is not finished
        assert answer["standing"] == {
            "item": name,
            "number": 1,
            "total": answer["standing"]["total"],
        }
        assert answer["standing"]["total"] + len(walked) == answer["progress"]["total"]
        assert exchange(bridges, place, here).json["near"] == answer["near"]
        walked.append(name)
        name = answer["near"][name]["next"]
        _done(bridges, item_of(bridges, "d", "Ada", walked[-1]), "Ada")
    items = [item_of(bridges, "d", "Ada", name) for name in walked]
    known = [item for item in items if item.startswith("k")]
    assert len(items) == len(set(items)) == 10 + len(known)
    assert 2 <= len(known) <= 4
    progress = exchange(bridges, place, EditorMessage()).json["progress"]
    assert isinstance(progress, dict)
    assert (progress["done"], progress["total"]) == (len(walked), len(walked))
    searched = replace(query, text="tower", unfinished=False)
    everything = replace(place, query=searched)
    wanted = ItemsWanted(number=1)
    listing = exchange(bridges, everything, EditorMessage(place=everything.id, items=wanted)).json
    rows: Any = listing["items_found"]
    assert [row["id"] for row in rows["rows"]] == walked  # in the order in which they came
    texts = json.dumps([*told, listing])
    for secret in ("secret", "gold", "after", *(f'"{item}"' for item in items)):
        assert secret not in texts
    for asked in ("k00", "k0", "i00"):
        by_id = replace(place, query=replace(searched, text=asked))
        found: Any = exchange(bridges, by_id, EditorMessage(place=by_id.id, items=wanted)).json
        assert found["items_found"]["rows"] == []
    plan = plans.plan(bridges, "d")
    assert plan is not None
    assert (plan.needed, plan.done) == (20, 10)


def test_an_item_out_of_ones_list_is_like_one_that_is_not_there(bridges: Store) -> None:
    """Whatever is asked or written: the answers differ by the name alone that was asked for."""
    place = ReviewQueue("d", QueueQuery(reviewer="Ada", blind=True, listed=True), None)
    exchange(bridges, place, EditorMessage())
    drawing.draw(bridges, "d", "Ben")
    own = {item_of(bridges, "d", "Ada", name) for name in _listed(bridges, "Ada")}
    not_given = next(f"k{n:02}" for n in range(10) if f"k{n:02}" not in own)
    of_ben = next(name for name in _listed(bridges, "Ben"))

    def answers(name: str) -> str:
        writes = tuple(
            {
                **{"session": name, "seq": seq, "base": 0, "dataset": "d", "item": name},
                **{"reviewer": "Ada", "op": op},
            }
            for seq, op in enumerate(WRITES, start=1)
        )
        messages = (
            EditorMessage(place=place.id, open=name, ahead=name, check=True),
            EditorMessage(place=place.id, writes=writes),
            EditorMessage(place=place.id, trace=TraceWanted(item=name, annotator="gold")),
            EditorMessage(
                place=place.id, evidence=EvidenceSent(number=1, item=name, text="It was so.")
            ),
        )
        said = [exchange(bridges, place, message).json for message in messages]
        asked = replace(place, entry=name)
        said.append(exchange(bridges, asked, EditorMessage()).json)
        return json.dumps(said).replace(name, "NAME")

    missing = answers("nothing")
    assert missing.count("has no item 'NAME'") == len(WRITES) + 1
    for name in ("i00", "k00", not_given, of_ben):
        assert answers(name) == missing
    assert {record.item.passages for record in bridges.records("d")} == {()}
    assert bridges.n_operations("d") == 0


def test_a_measurements_sample_is_in_the_list_of_who_reviews_it(bridges: Store) -> None:
    sample = ("i07", "i03", "i02")
    query = QueueQuery(reviewer="Cleo", blind=True, listed=True)
    place = ReviewQueue("d", replace(query, sample=sample), None)
    answer: dict[str, Any] = exchange(bridges, place, EditorMessage()).json
    names = _names(bridges, "Cleo", sample)
    assert answer["open"] == names["i07"]
    assert answer["standing"] == {"item": names["i07"], "number": 1, "total": 3}
    change_checks(bridges, "d", {"share": 0.5})  # what was drawn before is drawn anew
    here = EditorMessage(place=place.id, open=names["i07"], ahead=names["i03"])
    answer = exchange(bridges, place, here).json
    assert answer["near"] == {
        names["i07"]: {"previous": None, "next": names["i03"]},
        names["i03"]: {"previous": names["i07"], "next": names["i02"]},
    }
    assert sample[0] not in json.dumps(answer)


_MARK: dict[str, Any] = {"start": 0, "end": 3, "source": "d1"}
_CLAIM: dict[str, Any] = {"text": "It is tall.", "suggested_by": "d1"}
WRITES: list[dict[str, Any]] = [
    {"kind": "accept", "span": "a", "mark": _MARK},
    {"kind": "accept-all", "spans": ["b"], "marks": [_MARK]},
    {"kind": "replace", "spans": ["c"], "marks": [_MARK]},
    {"kind": "reject", "mark": _MARK},
    {"kind": "add", "span": "d", "start": 0, "end": 3},
    {"kind": "remove", "span": "d"},
    {"kind": "resize", "span": "d", "start": 0, "end": 2},
    {"kind": "relabel", "span": "d", "label": "name"},
    {"kind": "note", "text": "hm"},
    {"kind": "note-suggestion", "mark": _MARK, "text": "hm"},
    {"kind": "respond", "question": "fluent", "response": "yes"},
    {"kind": "accept-claim", "claim": "e", "mark": _CLAIM},
    {"kind": "reject-claim", "mark": _CLAIM},
    {"kind": "replace-claims", "claims": ["f"], "marks": [_CLAIM]},
    {"kind": "add-claim", "claim": "g", "text": "It is tall."},
    {"kind": "edit-claim", "claim": "g", "text": "It is."},
    {"kind": "remove-claim", "claim": "g"},
    {"kind": "status", "status": "skipped"},
    {"kind": "finish"},
    {"kind": "undo"},
    {"kind": "redo"},
]


def test_the_writes_above_are_of_every_kind() -> None:
    kinds = OPERATION.json_schema()["discriminator"]["mapping"]
    assert {write["kind"] for write in WRITES} == set(kinds)


def _listed(store: Store, person: str) -> list[str]:
    rows = paging.page(store, "d", QueueQuery(reviewer=person, listed=True)).rows
    return list(_names(store, person, (row.item_id for row in rows)).values())


def test_nothing_is_stored_before_the_test_but_its_own_items(bridges: Store) -> None:
    change_checks(bridges, "d", {"test_items": 2})
    place = ReviewQueue("d", QueueQuery(reviewer="Ada", blind=True, listed=True), None)

    def sent(item: str, seq: int) -> str | None:
        write = {
            **{"session": "s", "seq": seq, "base": 0, "dataset": "d", "item": item},
            **{"reviewer": "Ada", "op": {"kind": "finish"}},
        }
        answer: dict[str, Any] = exchange(bridges, place, EditorMessage(writes=(write,))).json
        return None if answer["results"][0]["stored"] else str(answer["results"][0]["reason"])

    assert "has no item" in (sent("i00", 1) or "")
    with pytest.raises(UsageError, match="test before anybody begins"):
        check_may_write(bridges, "d", "Ada", "i00")
    begin_test(bridges, "d", "Ada")
    assert "has no item" in (sent("i00", 2) or "")
    test = _names(bridges, "Ada", entrance_of(bridges, "d", "Ada").items)
    for number, name in enumerate(test.values(), start=3):
        assert sent(name, number) is None
    assert entrance_of(bridges, "d", "Ada").stage == "failed"


def test_review_offers_the_test_and_says_kindly_how_it_went(
    open_page: OpenPage, bridges: Store
) -> None:
    change_checks(bridges, "d", {"test_items": 2, "pass_at": 0.5})
    bridges.change_settings("d", lambda now: now.with_guidelines("Mark **years** alone."))
    app = open_page("review", dataset="d", reviewer="Ada")
    assert "Mark **years** alone." in [each.value for each in app.markdown]
    assert "Qualification test\\: 2 items" in app.info[0].value
    assert "your marks need a mean overlap" in app.info[0].value
    app.button[-1].click().run()
    assert not app.exception
    assert "0 of 2 items decided" in app.caption[-1].value
    for item in entrance_of(bridges, "d", "Ada").items:
        _done(bridges, item, "Ada")
    app = open_page("review", dataset="d", reviewer="Ada")
    app.button[-1].click().run()  # continue as Ada
    assert "Not passed" in app.info[0].value
    assert app.button[-1].label == "Retry"
    marked, right = (each.proto.body for each in app.get("html")[:2])
    assert "<mark" not in marked
    assert "1887</mark>" in right
    assert {each.label: each.proto.expanded for each in app.expander} == {
        "Where your marks differ from the right ones": True,
        "Guidelines": True,
    }


def test_the_lead_sees_people_and_takes_items_back(open_page: OpenPage, bridges: Store) -> None:
    for item in ("i00", "i02"):
        _done(bridges, item, "Ada")
    app = open_page("campaign", dataset="d")
    assert not app.exception
    assert "2 of 20 annotations done" in _texts(app)
    people = app.dataframe[0].value
    assert list(people["Person"]) == ["Ada", "Ben"]
    told = _texts(app)
    assert ("Items per hour count" in told) == ("Items per hour" in people)
    for entry in ("no guidelines", "1 person per item", "10 check items"):
        assert entry in told
    assert "gold labels (gold)" in told
    assert [code.value.split(",")[0] for code in app.code] == [
        "Ada: of “d”",
        "Ben: of “d”",
    ]
    assert "8 items are still waiting for you" in app.code[0].value
    choice = app.selectbox(key="taken-from-d-0")
    assert choice.value is None  # nobody is chosen, and there is nothing to press yet
    assert "Reassign items" not in _buttons(app)
    choice.select("Ben").run()
    assert "10 items of Ben, assigned and not finished, will go to Ada (10)" in _texts(app)
    _press(app, "Reassign items")
    assert "10 items of Ben" in app.success[0].value
    assert bridges.settings("d").away == ("Ben",)
    assert list(app.dataframe[0].value["Remaining"]) == [18, 0]
    assert app.selectbox(key="taken-from-d-1").value is None
    assert not {"Reassign items", "Undo reassignment"} & _buttons(app)
    app.selectbox(key="given-to-d-1").select("Ben").run()
    assert "Ben gets 10 items of the plan again (Ada -10)." in _texts(app)
    _press(app, "Undo reassignment")
    assert bridges.settings("d").away == ()


def test_a_plan_of_check_items_alone_says_what_is_true(open_page: OpenPage, store: Store) -> None:
    """Nothing is "0 of 0"."""
    store.import_records("d", [Record(item=Item(id="a", answer=ANSWER), annotations=(SECRET,))])
    store.change_settings("d", lambda now: now.model_copy(update={"overlap": 1}))
    change_checks(store, "d", {"share": 0.25})
    store.save_annotations("d", [("a", Annotation(annotator="Ada", kind=AnnotatorKind.PERSON))])
    app = open_page("campaign", dataset="d")
    assert "Every item is a check item" in _texts(app)
    assert "0 of 0" not in _texts(app)


@pytest.mark.parametrize(
    ("seconds", "warning"), [(4.4, "too fast to read: 4.4 s per item"), (6.0, "")]
)
def test_people_who_go_too_fast_are_remarked(
    bridges: Store, seconds: float, warning: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    finished = [
        FinishedItem("Ada", f"i{n:02}", datetime(2026, 11, 29, tzinfo=UTC), seconds)
        for n in range(3)
    ]
    monkeypatch.setattr(plans, "finished", lambda *_: tuple(finished))
    ada, _ = oversee(bridges, "d").people
    assert ada.warning == warning


def test_waiving_the_test_for_somebody_chooses_nobody_for_the_next_time(
    open_page: OpenPage, bridges: Store
) -> None:
    change_checks(bridges, "d", {"test_items": 2})
    app = open_page("campaign", dataset="d")
    choice = app.selectbox(key="waive-d-0-person")
    assert choice.value is None
    choice.set_value("Ben").run()
    _press(app, "Waive the test")
    assert [one.reviewer for one in entrances.entered(bridges, "d")] == ["Ben"]
    assert app.selectbox(key="waive-d-1-person").value is None
    waive = next(each for each in app.button if each.label == "Waive the test")
    assert waive.disabled


def _texts(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.success, *app.info]
    return " ".join(part.value for part in parts).replace("\\", "")


def _buttons(app: AppTest) -> set[str]:
    return {button.label for button in app.button}


def _press(app: AppTest, label: str) -> None:
    next(each for each in app.button if each.label == label).click().run()


def test_review_of_a_sample_with_check_items_shows_its_editor(
    open_page: OpenPage, bridges: Store
) -> None:
    """Also where the plan is none, or first come, first served: the page shows no error."""
    judge = Annotation(annotator="judge", kind=AnnotatorKind.DETECTOR)
    names = [f"i{n:02}" for n in range(20)] + [f"k{n:02}" for n in range(10)]
    bridges.save_annotations("d", [(name, judge) for name in names])
    plan = MeasurementPlan(annotator="judge", reviewers=("Ada", "Cleo"))
    plan_measurement(bridges, "d", plan)
    for change in ({}, {"assigned_to": ()}, {"assigned_to": (), "overlap": 0}):
        bridges.change_settings("d", partial(DatasetSettings.model_copy, update=change))
        for person in ("Ada", "Cleo"):
            app = open_page("review", dataset="d", reviewer=person)
            assert not app.exception
            assert not app.error


def test_where_there_is_no_known_answer_check_items_are_refused_with_the_way_there(
    open_page: OpenPage, store: Store
) -> None:
    store.import_records("d", [Record(item=Item(id="a", answer=ANSWER))])
    app = open_page("campaign", dataset="d")
    app.checkbox(key="known-d").check().run()
    app.button(key="save-known").click().run()
    assert "There is no check item yet: nothing is labelled by “known”." in _texts(app)
    assert "On the page Adjudicate, enter “known” as the name of the gold labels" in _texts(app)
    assert store.settings("d").known is None
    gold = Annotation(annotator="known", kind=AnnotatorKind.GOLD)
    store.save_annotations("d", [("a", gold)])
    with pytest.raises(UsageError, match="a test of 2 items needs as many check items"):
        change_checks(store, "d", {"test_items": 2})
    change_checks(store, "d", {"test_items": 1})
    assert store.settings("d").known is not None


def test_without_check_items_no_figure_is_of_them(open_page: OpenPage, bridges: Store) -> None:
    bridges.save_annotations("d", [("k00", Annotation(annotator="Ada", kind=AnnotatorKind.PERSON))])
    assert "Check items" in open_page("campaign", dataset="d").dataframe[0].value
    change_checks(bridges, "d", None)
    assert "Check items" not in open_page("campaign", dataset="d").dataframe[0].value
    (ada, _) = oversee(bridges, "d").people
    assert ada.known is None
    assert "check items" not in ada.warning


def test_a_dataset_without_people_says_where_they_come_from(
    open_page: OpenPage, store: Store
) -> None:
    assert "nothing to lead yet" in open_page("campaign").info[0].value
    store.import_records("d", [Record(item=Item(id="a", answer=ANSWER))])
    app = open_page("campaign", dataset="d")
    assert "Next: write guidelines" in " ".join(each.value for each in app.markdown)
