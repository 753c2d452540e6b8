"""The Review page before its editor opens: who reviews, and which item the address names."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Checkbox

from spanlab import doors
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Item,
    Question,
    QueueQuery,
    Record,
    Span,
    Status,
)
from spanlab.storage import Store
from spanlab.worklists import paging

OpenPage = Callable[..., AppTest]
PAGES = ["review", "adjudicate", "detect", "optimise", "compare", "export"]


def _by(name: str, kind: AnnotatorKind) -> Annotation:
    return Annotation(annotator=name, kind=kind, status=Status.DONE)


@pytest.fixture
def mine(store: Store) -> Store:
    said = (
        _by("guesser", AnnotatorKind.DETECTOR),
        _by("majority", AnnotatorKind.VOTE),
        _by("truth", AnnotatorKind.GOLD),
        _by("Ben", AnnotatorKind.PERSON),
    )
    store.import_records("mine", [Record(item=Item(id="a", answer="one"), annotations=said)])
    return store


@pytest.mark.parametrize("page", ["Review", "Adjudicate"])
def test_without_data_a_page_says_what_it_is_for(
    open_page: OpenPage, store: Store, page: str
) -> None:
    app = open_page(page.lower())
    assert [title.value for title in app.title] == [page]
    assert app.caption[0].value == next(p.about for p in doors.pages() if p.title == page)
    assert "nothing to" in app.info[0].value


@pytest.mark.system("offline")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        pytest.param("guesser", "a detector", id="detector of the dataset"),
        pytest.param("majority", "a vote", id="vote"),
        pytest.param("truth", "gold labels", id="gold labels"),
        pytest.param("offline", "a detector", id="detector that has not run yet"),
        pytest.param("Offline", "a detector", id="in other letters"),
        pytest.param("vote", "a vote", id="usual name of a vote"),
        pytest.param("gold", "gold labels", id="usual name of gold labels"),
    ],
)
def test_a_name_of_a_detector_a_vote_or_gold_labels_is_refused_in_the_address_and_as_typed(
    open_page: OpenPage, mine: Store, name: str, what: str
) -> None:
    app = open_page("review", dataset="mine", reviewer=name)
    assert f"belongs to {what}" in app.error[0].value
    assert not app.exception
    app = open_page("review", dataset="mine", reviewer="Ada")
    assert not app.error
    app.text_input[0].set_value(name).run()
    assert f"belongs to {what}" in app.error[0].value
    assert not app.exception
    assert app.query_params["reviewer"] in ("Ada", ["Ada"])
    app.text_input[0].set_value("Grace").run()
    assert not app.error


def test_an_existing_person_is_asked_once_whether_to_continue(
    open_page: OpenPage, mine: Store
) -> None:
    app = open_page("review", dataset="mine", reviewer="Ben")
    assert "has annotated" in app.info[0].value
    (button,) = app.button
    assert button.label == "Continue as Ben"
    button.click().run()
    assert not app.info
    app.text_input[0].set_value("Ada").run()
    assert not app.info
    app.text_input[0].set_value("Ben").run()
    assert not app.info


def test_an_unknown_item_in_the_address_is_named_and_no_other_is_shown(
    open_page: OpenPage, mine: Store
) -> None:
    app = open_page("review", dataset="mine", reviewer="Ada", item="gone")
    assert "There is no item “gone” in the dataset “mine”" in app.warning[0].value
    assert app.query_params["item"] in ("gone", ["gone"])
    app = open_page("review", dataset="mine", reviewer="Ada", item="a")
    assert not app.warning


@pytest.mark.parametrize("page", PAGES)
def test_a_link_to_a_dataset_that_is_gone_opens_no_other_one(
    open_page: OpenPage, mine: Store, page: str
) -> None:
    app = open_page(page, dataset="go*ne", item="b")
    assert "There is no dataset “go\\*ne”" in app.warning[0].value
    assert [box.label for box in app.selectbox] == ["Continue with"]
    assert not app.text_input
    assert app.query_params["dataset"] in ("go*ne", ["go*ne"])
    app.selectbox[0].select("mine").run()
    assert "Continue with" not in [box.label for box in app.selectbox]
    assert app.query_params["dataset"] in ("mine", ["mine"])
    assert app.query_params.get("item") not in ("b", ["b"])


@pytest.mark.parametrize("page", PAGES)
def test_a_dataset_deleted_or_renamed_while_it_is_open_is_not_replaced_by_another_one(
    open_page: OpenPage, mine: Store, page: str
) -> None:
    mine.import_records("other", [Record(item=Item(id="a", answer="two"))])
    app = open_page(page, dataset="mine", item="a")
    mine.rename_dataset("mine", "ours")
    app.run()
    assert "“mine” is called “ours” now" in app.info[0].value
    next(each for each in app.button if each.label == "Continue with ours").click().run()
    assert app.query_params["dataset"] in ("ours", ["ours"])
    assert app.query_params["item"] in ("a", ["a"])
    mine.delete_dataset("ours")
    del app.query_params["dataset"]  # as after a visit to another page of the app
    app.run()
    assert "There is no longer a dataset “ours”" in app.warning[0].value
    mine.delete_dataset("other")
    app.run()
    assert "There is no longer a dataset “ours”" in app.warning[0].value
    assert not app.selectbox


def test_a_dataset_may_take_the_choice_to_see_what_others_marked(
    open_page: OpenPage, mine: Store
) -> None:
    def box(app: AppTest) -> Checkbox:
        return next(each for each in app.checkbox if each.label == "Show other people's marks")

    app = open_page("review", dataset="mine", reviewer="Ada")
    box(app).check().run()
    assert "not blind" in app.caption[0].value
    mine.change_settings("mine", lambda now: now.model_copy(update={"always_blind": True}))
    app.run()
    assert box(app).disabled
    captions = [caption.value for caption in app.caption]
    assert "not blind" not in captions[0]
    assert "Locked: this dataset is reviewed blind." in captions


def test_what_is_assigned_is_the_queue_of_those_it_is_assigned_to(
    open_page: OpenPage, mine: Store
) -> None:
    plan = {"overlap": 1, "assigned_to": ("Ada", "Ben")}
    mine.change_settings("mine", lambda now: now.model_copy(update=plan))
    assert "needed from you" in open_page("review", dataset="mine", reviewer="Ada").caption[0].value
    other = open_page("review", dataset="mine", reviewer="Zoe")
    captions = [caption.value for caption in other.caption]
    assert "This dataset is assigned to 2 other people." in captions
    assert "needed from you" not in "".join(captions)


def _told(app: AppTest) -> dict[str, Any]:
    """What the page tells its editor."""
    *_, wire = app.get("bidi_component")
    return dict(json.loads(wire.proto.json))


def _queue(app: AppTest, store: Store) -> list[str]:
    """The items of the editor's queue, in its order; it begins with the first one."""
    told = _told(app)
    query = QueueQuery(**json.loads(told["place"]["id"])["query"])
    ids = [row.item_id for row in paging.page(store, "mine", query).rows]
    assert told["open"] == ids[0]
    return ids


def _marked(name: str, *said: tuple[str, AnnotatorKind, float], why: str = "") -> Record:
    """An item with a mark of each, as sure as is said; people all respond the same, or not."""
    spans = {who: (Span.of("one two", 0, 3, prob=prob),) for who, _, prob in said}
    annotations = tuple(
        Annotation(
            annotator=who,
            kind=kind,
            spans=spans[who],
            responses={"why": who} if why else {},
        )
        for who, kind, _ in said
    )
    return Record(item=Item(id=name, answer="one two"), annotations=annotations)


def test_what_a_detector_is_least_sure_of_can_come_first(open_page: OpenPage, store: Store) -> None:
    probs = {"sure": 0.95, "unsure": 0.55, "doubtful": 0.3}
    detector = AnnotatorKind.DETECTOR
    store.import_records("mine", [_marked(name, ("d", detector, p)) for name, p in probs.items()])
    app = open_page("review", dataset="mine", reviewer="Ada")
    assert _queue(app, store) == list(probs)
    app.segmented_control(key="spanlab.review.order").set_value("Least sure first").run()
    assert _queue(app, store) == ["unsure", "doubtful", "sure"]
    assert "least sure first" in app.caption[0].value


def test_items_that_one_person_has_done_wait_for_a_second(
    open_page: OpenPage, store: Store
) -> None:
    person = AnnotatorKind.PERSON
    done = {"none": (), "one": ("Grace",), "two": ("Grace", "Alan")}
    store.import_records(
        "mine", [_marked(name, *((who, person, 1.0) for who in who)) for name, who in done.items()]
    )
    app = open_page("review", dataset="mine", reviewer="Ada")
    app.checkbox(key="spanlab.review.second").check().run()
    assert _queue(app, store) == ["one"]
    assert "needs a second annotator" in app.caption[0].value


def test_items_on_which_all_agree_come_last_and_say_why_some_are_left_to_decide(
    open_page: OpenPage, store: Store
) -> None:
    """Whatever detectors mark; an item on which people respond differently is not agreed on."""
    ann, ben = (("Ann", AnnotatorKind.PERSON, 1.0), ("Ben", AnnotatorKind.PERSON, 1.0))
    apart = _marked("apart", ann)
    more = Annotation(annotator="Ben", kind=AnnotatorKind.PERSON, spans=(Span.of("one two", 0, 7),))
    records = [
        _marked("against a detector", ann, ben),
        _marked("agreed", ann, ben),
        _marked("other responses", ann, ben, why="differently"),
        apart.model_copy(update={"annotations": (*apart.annotations, more)}),
    ]
    other = Annotation(
        annotator="d", kind=AnnotatorKind.DETECTOR, spans=(Span.of("one two", 4, 7),)
    )
    store.import_records("mine", records)
    store.save_annotations("mine", [("against a detector", other)])
    asked = (Question(name="why", options=("Ann", "Ben")),)
    store.change_settings("mine", lambda now: now.model_copy(update={"questions": asked}))
    app = open_page("adjudicate", dataset="mine", reviewer="Ada")
    assert "Unanimous items last\\: 3" in app.caption[0].value
    assert _queue(app, store) == ["apart", "against a detector", "agreed", "other responses"]
    app.button[0].click().run()
    assert "labels: **2 items**, 0 of them without any span" in app.markdown[0].value
    left = "1 item with the same marks left to decide: their responses"
    assert left in "".join(caption.value for caption in app.caption)
