"""The one way to choose annotators: groups, three of each at first, search, all or none."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from crowd import crowd
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ButtonGroup

from spanlab.schema import Annotation, AnnotatorKind, Item, Record
from spanlab.storage import Store

OpenPage = Callable[..., AppTest]
KEY = "spanlab.chosen.compare-crowd"
PEOPLE = f"{KEY}.person"


@pytest.fixture
def app(open_page: OpenPage, store: Store) -> AppTest:
    store.import_records("crowd", crowd(20, 20))
    return open_page("compare", view="Scores")


def shown(app: AppTest, kind: str = "person") -> list[str]:
    return [option.split(" · ")[0].replace("\\", "") for option in options(app, kind)]


def options(app: AppTest, kind: str) -> list[str]:
    return list(pills(app, kind).options)


def pills(app: AppTest, kind: str) -> ButtonGroup[str]:
    """A group's names; its buttons draw them anew under another key."""
    return next(each for each in app.pills if str(each.key).startswith(f"{KEY}.{kind}."))


def scored(app: AppTest) -> list[str]:
    return list(app.dataframe[0].value["Annotator"])


def test_each_group_shows_three_and_unfolds(app: AppTest) -> None:
    assert len(shown(app)) == 3
    assert shown(app, "detector") == ["one", "two"]
    app.button(key=f"{PEOPLE}.open.button").click().run()
    assert len(shown(app)) == 20
    app.button(key=f"{PEOPLE}.open.button").click().run()
    assert len(shown(app)) == 3


def test_the_number_of_finished_items_stands_beside_a_name(app: AppTest) -> None:
    assert options(app, "vote") == ["vote · 20"]


def test_none_and_all_speak_of_their_group(app: AppTest) -> None:
    assert len(scored(app)) == 20 + 3 + 2  # people, detectors and the vote, two baselines
    app.button(key=f"{PEOPLE}.None").click().run()
    assert sorted(scored(app)) == ["mark everything", "mark nothing", "one", "two", "vote"]
    app.button(key=f"{PEOPLE}.All").click().run()
    assert len(scored(app)) == 25


def test_a_search_finds_people_that_were_folded_away(app: AppTest) -> None:
    app.button(key=f"{PEOPLE}.None").click().run()
    app.text_input(key=f"{KEY}.find").input("TOR-17").run()
    assert shown(app) == ["annotator-17"]
    pills(app, "person").set_value(["annotator-17"]).run()
    assert "annotator-17" in scored(app)
    app.text_input(key=f"{KEY}.find").input("nobody at all").run()
    assert "No annotator has" in "".join(caption.value for caption in app.caption)
    assert "annotator-17" in scored(app)  # what is chosen does not go with what is shown


def test_names_are_sorted_by_items_or_by_name(app: AppTest, store: Store) -> None:
    eager = Annotation(annotator="zoe", kind=AnnotatorKind.PERSON)
    store.save_annotations("crowd", [(f"i{number:03}", eager) for number in range(20)])
    app.run()
    assert shown(app)[0] == "zoe"
    app.segmented_control(key=f"{KEY}.sort").set_value("Name").run()
    assert shown(app) == ["annotator-00", "annotator-01", "annotator-02"]


def test_an_untouched_choice_takes_in_whoever_comes_new(app: AppTest, store: Store) -> None:
    zoe = Annotation(annotator="zoe", kind=AnnotatorKind.PERSON)
    store.save_annotations("crowd", [("i000", zoe)])
    assert "zoe" in scored(app.run())


def test_markup_in_a_name_is_shown_and_not_obeyed(open_page: OpenPage, store: Store) -> None:
    evil = Annotation(annotator="**bold** :material/delete:", kind=AnnotatorKind.PERSON)
    record = Record(item=Item(id="a", answer="Paris."), annotations=(evil,))
    store.import_records("crowd", [record])
    (option,) = options(open_page("compare"), "person")
    assert option.startswith(r"\*\*bold\*\* \:material/delete\:")


def test_only_those_who_annotated_an_item_stand_beside_it(
    open_page: OpenPage, store: Store
) -> None:
    store.import_records("crowd", crowd(20, 20, per_item=2, whole=1))
    few = open_page("compare", item="i001")
    assert cards(few) == 2 + 2 + 1 + 1
    app = open_page("compare", item="i000")
    assert cards(app) == 6  # of all 24, six at a time
    app.button(key=f"{PEOPLE}.None").click().run()
    assert cards(app) == 4


def cards(app: AppTest) -> int:
    return sum(element.proto.body.count("<article>") for element in app.get("html"))


def test_the_export_has_the_annotations_of_those_chosen(open_page: OpenPage, store: Store) -> None:
    store.import_records("crowd", crowd(20, 20))
    key = "spanlab.chosen.export-crowd"
    app = open_page("export")
    for kind in ("person", "vote", "gold"):
        app.button(key=f"{key}.{kind}.None").click().run()
    app.button(key="make-export").click().run()
    lines = app.session_state["spanlab.export-file"].path.read_text().splitlines()
    annotations = [each for line in lines for each in json.loads(line)["annotations"]]
    assert {each["annotator"] for each in annotations} == {"one", "two"}
    app.button(key=f"{key}.detector.None").click().run()
    assert "Choose whose annotations" in app.info[0].value
