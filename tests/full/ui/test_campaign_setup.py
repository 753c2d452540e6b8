"""The set-up of a campaign on the page Campaign: each part is saved by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Checkbox, Radio, TextInput

from spanlab.schema import (
    LABEL_SETS,
    Annotation,
    AnnotatorKind,
    CheckRules,
    Item,
    Question,
    Record,
    SpanLabel,
    UndecidedRule,
)
from spanlab.storage import Store

OpenPage = Callable[..., AppTest]
ANSWER = "Marie Curie was born in Paris."


@pytest.fixture
def mine(store: Store) -> Store:
    ben = Annotation(annotator="Ben", kind=AnnotatorKind.PERSON)
    store.import_records("mine", [Record(item=Item(id="a", answer=ANSWER), annotations=(ben,))])
    return store


def everything(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.success, *app.warning, *app.info]
    return "\n".join(part.value for part in parts).replace("\\", "")


def opened(app: AppTest) -> list[str]:
    """The titles of the parts that are drawn open."""
    return [each.label.split("**")[1] for each in app.expander if each.proto.expanded]


def save(app: AppTest, part: str) -> None:
    app.button(key=f"save-{part}").click().run()


def test_labels_of_citations_bring_the_guidelines_that_ship(
    open_page: OpenPage, store: Store
) -> None:
    store.import_records("mine", [Record(item=Item(id="a", answer=ANSWER))])
    labels = {"labels": LABEL_SETS["citations"]}
    store.change_settings("mine", lambda settings: settings.model_copy(update=labels))
    app = open_page("campaign", dataset="mine")
    assert store.settings("mine").guidelines == ()
    save(app, "guidelines")
    (text,) = store.settings("mine").guidelines
    assert text.startswith("## What to do")
    assert all(label.name in text for label in LABEL_SETS["citations"])


def test_the_page_opens_the_part_that_comes_next(open_page: OpenPage, store: Store) -> None:
    store.import_records("mine", [Record(item=Item(id="a", answer=ANSWER))])
    app = open_page("campaign", dataset="mine")
    assert "Next: write guidelines." in everything(app)
    assert opened(app) == ["Guidelines"]
    assert not app.error
    app.text_area(key="guidelines-mine").input("Mark *all* names.")
    save(app, "guidelines")
    assert store.settings("mine").guidelines == ("Mark *all* names.",)
    assert opened(app) == ["Review plan"]
    app.number_input(key="overlap-mine").set_value(2)
    app.multiselect(key="assigned-mine").set_value(["Ada", "Ben"])
    save(app, "plan")
    assert "Next: start the review." in everything(app)
    assert opened(app) == []
    app = open_page("campaign", dataset="mine")
    assert "Guidelines**: version 1" in "".join(each.label for each in app.expander)


def test_undecided_suggestions_blind_review_and_people_per_item_are_settings(
    open_page: OpenPage, mine: Store
) -> None:
    app = open_page("campaign", dataset="mine")
    (radio,) = [each for each in app.radio if "undecided" in each.label]
    assert radio.value is UndecidedRule.REJECTED
    radio.set_value(UndecidedRule.ASK)
    others = next(each for each in app.radio if each.label.startswith("Other people"))
    assert others.value == "plan"
    asks = "Hidden, unless reviewers ask for them under Queue (the plan's)"
    assert [others.options[0], others.options[3]] == ["By the plan", asks]
    others.set_value("done")
    next(each for each in app.number_input if "People" in each.label).set_value(2)
    app.multiselect(key="assigned-mine").set_value(["Ben"])
    save(app, "plan")
    settings = mine.datasets()[0].settings
    assert settings.undecided is UndecidedRule.ASK
    assert (settings.always_blind, settings.shown_when_done) == (True, True)
    assert settings.assigned_to == ("Ben",)
    assert settings.overlap == 2
    assert "Review plan of mine: saved. Reviewers see other people's marks once" in everything(app)


def test_where_two_people_finish_an_item_others_marks_are_hidden_unless_the_lead_says_otherwise(
    open_page: OpenPage, mine: Store
) -> None:
    def others(app: AppTest) -> Radio[str]:
        return next(each for each in app.radio if each.label.startswith("Other people"))

    def box() -> Checkbox:
        app = open_page("review", dataset="mine", reviewer="Ada")
        return next(each for each in app.checkbox if each.label == "Show other people's marks")

    assert not box().disabled
    app = open_page("campaign", dataset="mine")
    app.number_input(key="overlap-mine").set_value(2).run()
    assert others(app).options[:2] == ["By the plan", "Always hidden (the plan's)"]
    save(app, "plan")
    assert "saved. Reviewers do not see other people's marks." in everything(app)
    assert mine.settings("mine").always_blind is None
    assert box().disabled
    others(app).set_value("ask")
    save(app, "plan")
    assert "saved. Reviewers see other people's marks if they ask" in everything(app)
    assert not (box().disabled or box().value)
    others(app).set_value("never")
    save(app, "plan")
    assert box().value


def test_labels_and_known_answers_are_settings(open_page: OpenPage, mine: Store) -> None:
    app = open_page("campaign", dataset="mine")
    (shipped,) = [each for each in app.selectbox if each.label.startswith("Use a predefined")]
    shipped.set_value("FaithBench").run()
    app.checkbox(key="label-required-mine").check()
    save(app, "labels")
    app.checkbox(key="known-mine").check().run()
    (items,) = [each for each in app.number_input if "qualification test" in each.label]
    items.set_value(3)
    decided = Annotation(annotator="known", kind=AnnotatorKind.GOLD)
    mine.import_records(
        "mine",
        [
            Record(item=Item(id=name, answer=ANSWER), annotations=(decided,))
            for name in ("b", "c", "d")
        ],
    )
    assert "Saving also sets other people's marks to “Always hidden”" in everything(app)
    save(app, "known")
    settings = mine.settings("mine")
    assert (settings.labels, settings.label_required) == (LABEL_SETS["FaithBench"], True)
    assert settings.known == CheckRules(labels=("known",), test_items=3)
    assert (settings.always_blind, settings.shown_when_done) == (True, False)
    (others,) = [each for each in app.radio if each.label.startswith("Other people")]
    assert others.options == ["Always hidden"]


def test_labels_are_edited_in_rows_that_say_what_is_wrong_beside_them(
    open_page: OpenPage, mine: Store
) -> None:
    store = mine
    two = (SpanLabel(name="number", key="4"), SpanLabel(name="name", colour="#112233"))
    store.change_settings("mine", lambda now: now.model_copy(update={"labels": two}))
    app = open_page("campaign", dataset="mine")

    def field(name: str) -> TextInput:
        return next(each for each in app.text_input if each.label == name)

    def press(label: str) -> None:
        next(each for each in app.button if label in (each.label, each.help)).click().run()

    def wrong() -> list[str]:
        return [each.value for each in app.markdown if each.value.startswith(":red")]

    assert (field("Key of label 1").value, field("Colour of label 1").value) == ("4", "")
    field("Key of label 1").input("p").run()
    assert "“p” is a key of Review already \\(Previous span\\)" in wrong()[0]
    assert "digits 1 to 9" in wrong()[0]
    field("Key of label 1").input("4").run()
    field("Key of label 2").input("4")
    field("Colour of label 2").input("tealish").run()
    assert "not a colour\\: type \\#rrggbb" in wrong()[0]
    assert "“4” is the key of “number” already" in wrong()[1]
    save(app, "labels")
    assert "Nothing was saved" in app.error[0].value
    assert store.settings("mine").labels == two
    field("Key of label 2").input("")
    field("Colour of label 2").input("Teal").run()
    assert [picker.value for picker in app.color_picker] == ["#aa3377", "#008080"]
    app.color_picker[0].set_value("#abcdef").run()
    press("Move up label 2")
    press("Add a label")
    field("Description of label 3").input("of no name").run()
    assert "Name: a label needs one" in wrong()[0]
    field("Name of label 3").input("date").run()
    save(app, "labels")
    assert store.settings("mine").labels == (
        SpanLabel(name="name", colour="#008080"),
        SpanLabel(name="number", key="4", colour="#abcdef"),
        SpanLabel(name="date", description="of no name"),
    )
    app = open_page("campaign", dataset="mine")
    press("Delete label 2")
    save(app, "labels")
    assert [label.name for label in store.settings("mine").labels] == ["name", "date"]


def test_questions_are_added_moved_and_taken_out_in_rows(open_page: OpenPage, mine: Store) -> None:
    store = mine
    severity = Question(name="severity", options=("minor", "major, or not"), labels=("other",))
    store.change_settings("mine", lambda now: now.model_copy(update={"attributes": (severity,)}))
    app = open_page("campaign", dataset="mine")

    def press(label: str) -> None:
        next(each for each in app.button if label in (each.label, each.help)).click().run()

    def last(widgets: Any, label: str) -> Any:
        return [each for each in widgets if each.label.endswith(label)][-1]

    press("Add a question")
    last(app.text_input, "2. Name").input("severity").run()
    assert not any(each.value.startswith(":red") for each in app.markdown)  # not before saving
    save(app, "questions")
    assert any("a choice needs two options" in each.value for each in app.markdown)
    assert "Nothing was saved" in app.error[0].value
    last(app.selectbox, "Answer").set_value("scale").run()
    assert any("exists above" in each.value for each in app.markdown)
    last(app.text_input, "2. Name").input("fluency").run()
    last(app.number_input, "From").set_value(0)
    last(app.text_input, "To: in words").input("perfect")
    last(app.checkbox, "Required").check()
    last(app.radio, "required response is missing").set_value("told").run()
    press("Add a question")
    last(app.text_input, "3. Name").input("remark").run()
    last(app.selectbox, "Answer").set_value("text").run()
    press("Move up question 3")
    save(app, "questions")
    settings = store.settings("mine")
    fluency = Question(name="fluency", kind="scale", low=0, high_title="perfect", required=True)
    assert settings.attributes == (severity,)
    assert settings.questions == (Question(name="remark", kind="text"), fluency)
    assert settings.unanswered == "told"
    app = open_page("campaign", dataset="mine")
    press("Delete question 2")
    save(app, "questions")
    assert store.settings("mine").questions == (fluency,)


def test_labels_are_as_they_are_stored_after_a_visit_to_another_page(
    open_page: OpenPage, mine: Store
) -> None:
    """Streamlit forgets there what was in the fields, and keeps which rows there were."""
    app = AppTest.from_string("from spanlab.campaigns import page\npage.page()")
    app.query_params["dataset"] = "mine"
    app.session_state["spanlab.campaign.edited"] = "mine"
    app.session_state["spanlab.labels"] = [0, 1]
    app.run(timeout=30)
    names = [each.value for each in app.text_input if each.label.startswith("Name of label")]
    assert names == [label.name for label in mine.settings("mine").labels]
    assert names
