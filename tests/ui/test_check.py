"""The page Check: what it marks, what it says of what cannot be checked, and links that fill it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from pdf_files import pdf
from streamlit.testing.v1 import AppTest

from spanlab.detection.checking import answer_item
from spanlab.schema import Passage, Status
from spanlab.storage import Store
from spanlab.testing import ModelServer, say_fields

OpenPage = Callable[..., AppTest]
PASSAGE = "The Eiffel Tower in Paris was finished in March 1889."
WRONG, RIGHT = (PASSAGE.replace("1889", year) for year in ("1925", "1889"))


def shown(app: AppTest) -> str:
    """What the page says, without marks of Markdown."""
    parts = [*app.get("html"), *app.header, *app.caption, *app.error, *app.info]
    return "\n".join(getattr(part, "body", "") or getattr(part, "value", "") for part in parts)


def check(app: AppTest, answer: str, passages: str = PASSAGE) -> AppTest:
    answer_box, passages_box = app.text_area
    answer_box.input(answer)
    passages_box.input(passages)
    (button,) = (button for button in app.button if button.label == "Check")
    return button.click().run()


@pytest.mark.system("offline")
def test_what_is_wrong_is_marked_with_the_evidence(open_page: OpenPage) -> None:
    app = check(open_page("check"), WRONG)
    assert not app.exception
    assert "1 part is likely hallucinated" in shown(app)
    assert ">1925</mark>" in shown(app)
    assert f"Evidence against it:</span> <bdi>{PASSAGE}</bdi>" in shown(app)
    app = check(app, RIGHT)
    assert "Nothing is marked" in shown(app)
    assert "</mark>" not in shown(app)


@pytest.mark.system("offline")
def test_the_headline_counts_the_parts_that_are_listed(open_page: OpenPage) -> None:
    """Without passages a part has words of several probabilities."""
    app = check(open_page("check"), f"{WRONG} It was designed by Gustave Klimt in Vienna.", "")
    (told,) = re.findall(r"(\d+) parts? (?:is|are) likely", shown(app))
    marks = shown(app).split("<ol")[1]
    assert marks.count("<li>") == int(told)
    assert marks.count("<b ") == int(told)
    assert "misses most errors" in shown(app)


@pytest.mark.system("offline")
def test_passages_may_be_none_several_and_files(open_page: OpenPage) -> None:
    app = check(open_page("check"), WRONG, "")
    assert "No passages were given" in shown(app)
    app = check(app, WRONG, f"Rome is old.\n---\n{PASSAGE}")
    assert "(<bdi>passage 2</bdi>)" in shown(app)
    drawn = f"BT /F1 12 Tf 72 700 Td ({PASSAGE}) Tj ET".encode()
    app.file_uploader[0].upload("eiffel.pdf", pdf(drawn))
    app = check(app, WRONG, "")
    assert "(<bdi>eiffel.pdf</bdi>)" in shown(app)


@pytest.mark.parametrize(
    ("answer", "passages", "told"),
    [
        (" ", PASSAGE, "There is no answer to check"),
        (WRONG, "http://127.0.0.1:9/page", "not public"),
    ],
)
def test_what_cannot_be_checked_is_said(
    open_page: OpenPage, answer: str, passages: str, told: str
) -> None:
    app = check(open_page("check"), answer, passages)
    assert not app.exception
    assert told in app.error[0].value.replace("\\", "")
    assert "Nothing was checked" in app.error[0].value


@pytest.mark.system("ucsc")
def test_a_model_judges_where_one_is_chosen(
    open_page: OpenPage, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_MODEL", "scripted")
    model_server.script(lambda ask: say_fields(parts=["Paris"]))
    app = open_page("check")
    app.segmented_control[0].set_value("With a model").run()
    app = check(app, RIGHT)
    assert not app.exception
    assert ">Paris</mark>" in shown(app)
    assert model_server.count == 1
    assert "1 model call" in shown(app)
    assert any(button.label == "Keep and review" for button in app.button)
    next(box for box in app.text_input if box.label == "Model").input("another").run()
    assert any(button.label == "Check again" for button in app.button)  # it judged by the other one
    assert not any(button.label == "Keep and review" for button in app.button)


@pytest.mark.system("offline")
def test_an_answer_is_kept_with_its_marks_behind_those_there_are(
    open_page: OpenPage, store: Store
) -> None:
    app = open_page("check")
    app.session_state["spanlab.pages"] = {}  # Review is no page of this app
    for number in (1, 2):
        app = check(app, WRONG)
        (keep,) = (button for button in app.button if button.label == "Keep and review")
        keep.click().run()
        record = store.record("checked", f"answer-{number}")
        assert record.item.answer == WRONG
        assert [passage.text for passage in record.item.passages] == [PASSAGE]
        (annotation,) = record.annotations
        assert (annotation.annotator, annotation.status) == ("offline", Status.DONE)
        assert [span.text for span in annotation.spans] == ["1925"]


@pytest.mark.system("offline")
def test_what_was_changed_since_its_check_is_checked_again_before_it_is_kept(
    open_page: OpenPage, store: Store
) -> None:
    app = check(open_page("check"), WRONG)
    app.session_state["spanlab.pages"] = {}  # Review is no page of this app
    (keep,) = (button for button in app.button if button.label == "Keep and review")
    app.text_input(key="spanlab.check.question").input("When?")
    app.text_area[0].input(RIGHT)
    keep.click().run()  # what is typed arrives with the click
    assert store.datasets() == []
    assert "changed since" in app.warning[0].value
    assert [button.label for button in app.button] == ["Check again", "Fill in an example"]
    app.button[0].click().run()
    assert not app.warning
    assert [button.label for button in app.button if "Check" in button.label] == ["Check"]
    assert "Nothing is marked" in shown(app)
    (keep,) = (button for button in app.button if button.label == "Keep and review")
    keep.click().run()
    item = store.record("checked", "answer-1").item
    assert (item.answer, item.question) == (RIGHT, "When?")
    app.segmented_control[0].set_value("With a model").run()
    assert "changed since" in app.warning[-1].value


@pytest.mark.system("offline")
def test_a_link_fills_the_boxes_in_on_this_machine_alone(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = open_page("check", answer=WRONG, question="When?", passage=["Rome is old.", PASSAGE])
    assert app.text_input[0].value == "When?"
    assert [box.value for box in app.text_area] == [WRONG, f"Rome is old.\n---\n{PASSAGE}"]
    assert not app.get("html"), "nothing is checked before somebody asks for it"
    assert not app.query_params
    check(app, *(box.value or "" for box in app.text_area))
    assert ">1925</mark>" in shown(app)
    monkeypatch.setenv("SPANLAB_ALLOWED_HOSTS", "review.example.org")
    app = open_page("check", answer=WRONG)
    assert [box.value for box in app.text_area] == ["", ""]
    assert "only where spanlab runs on your own machine" in shown(app)


@pytest.mark.parametrize(
    ("answer", "passage", "lang"),
    [("Il fait 330 m.", "", "fr"), ("330 m", "Il fait 330 m.", "fr"), ("330 m", "", "und")],
)
def test_a_language_is_told_from_little_text(answer: str, passage: str, lang: str) -> None:
    assert answer_item(answer, [Passage(text=passage)]).lang == lang
