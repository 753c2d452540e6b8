"""One answer from the empty app: pasted, judged within seconds, kept, and open in Review."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Event

import pytest
from driving import Desk, idle
from pictures import SIZE, take_picture
from playwright.sync_api import Browser, Page, expect
from serving import PATIENCE, Server, patient, serving
from test_accessibility import complaints

from spanlab.storage import Store
from spanlab.testing import ModelServer, ScriptedReply, say_fields

pytestmark = pytest.mark.browser

ANSWER = "The Eiffel Tower was finished in March 1925 and is 330 metres high."
PASSAGE = "The Eiffel Tower in Paris was finished in March 1889. It is 330 metres high."
_SECONDS = 10.0  # from the first page to the marks


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Server]:
    """A server of its own, over a home where nothing was ever imported."""
    with serving(tmp_path) as server:
        yield server


@pytest.fixture
def first_page(empty: Server, browser: Browser) -> Iterator[Page]:
    width, height = SIZE
    with browser.new_context(viewport={"width": width, "height": height}) as context:
        page = patient(context.new_page())
        page.goto(empty.url())
        expect(page.locator("h1")).to_have_text("Check")
        yield page


def test_an_empty_app_judges_an_answer_in_seconds_and_review_goes_on_with_it(
    empty: Server, first_page: Page, tmp_path: Path
) -> None:
    page = first_page
    began = time.monotonic()
    page.get_by_role("textbox", name="Answer").fill(ANSWER)
    page.get_by_role("textbox", name="Passages").fill(PASSAGE)
    idle(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator("mark")).to_have_text("1925")
    assert time.monotonic() - began < _SECONDS
    expect(page.locator(".check-marks")).to_contain_text("says “1889”, not “1925”")
    take_picture(page, "check", tmp_path)
    assert complaints(page) == []
    page.get_by_role("button", name="Keep and review").click()
    with Store.open(empty.settings) as store:
        here = Desk(empty, store, page, "checked")
        here.wait_for("answer-1")
        expect(page.locator(".sl-passages mark")).to_contain_text("March 1889")
        here.press("a", "Enter")
        here.settle()
        (span,) = store.review("checked", "answer-1", "reviewer").state.spans.values()
        assert span.text == "1925"
        assert store.record("checked", "answer-1").item.lang == "en"
    page.get_by_role("link", name="Check", exact=True).click()
    expect(page.get_by_role("textbox", name="Answer")).to_have_value(ANSWER)
    expect(page.locator("mark")).to_have_text("1925")
    expect(page.get_by_role("button", name="Keep and review")).to_have_count(0)  # it is kept
    page.get_by_role("button", name="Check").hover()
    assert complaints(page) == []
    page.locator("input[type=file]").set_input_files(
        {"name": "old.txt", "mimeType": "text/plain", "buffer": b"It is old."}
    )
    page.get_by_role("button", name="Check again").click()
    expect(page.get_by_role("button", name="Keep and review")).to_be_visible()
    page.get_by_role("link", name="Datasets", exact=True).click()
    expect(page.locator("h1")).to_have_text("Datasets")
    page.get_by_role("link", name="Check", exact=True).click()  # the box for files is empty now
    expect(page.get_by_role("button", name="Keep and review")).to_be_visible()
    page.goto(empty.url())  # a new session, in an app that is not empty any more
    here.wait_for()


@pytest.mark.parametrize("has_file", [False, True])
def test_whoever_leaves_the_page_waits_for_no_model_and_finds_its_answer_later(
    tmp_path: Path, browser: Browser, monkeypatch: pytest.MonkeyPatch, *, has_file: bool
) -> None:
    """With a file, which the page loses, nothing is judged without it."""
    answers = Event()

    def answer_late(_: object) -> ScriptedReply:
        answers.wait(PATIENCE / 1000)
        return say_fields(parts=["1925"])

    with ModelServer(answer_late) as model, ExitStack() as stack:
        stack.callback(answers.set)
        monkeypatch.setenv("OPENAI_BASE_URL", model.url)
        monkeypatch.setenv("SPANLAB_MODEL", "scripted-model")
        server = stack.enter_context(serving(tmp_path))
        context = stack.enter_context(browser.new_context())
        page = patient(context.new_page())
        page.goto(server.url(answer=ANSWER, passage=PASSAGE))
        page.get_by_text("With a model", exact=True).click()
        page.get_by_text("Price per million tokens").wait_for()
        if has_file:
            file = tmp_path / "a.txt"
            file.write_text(PASSAGE)
            page.locator("input[type=file]").set_input_files(file)
            page.get_by_text("a.txt").wait_for()
        idle(page)
        page.get_by_role("button", name="Check").click()
        page.get_by_text("Checking …").wait_for()
        page.get_by_role("link", name="Datasets", exact=True).click()
        expect(page.locator("h1")).to_have_text("Datasets", timeout=PATIENCE)
        page.get_by_role("link", name="Check", exact=True).click()
        if has_file:
            page.get_by_role("textbox", name="Answer").wait_for()
            idle(page)
            expect(page.get_by_text("Checking …")).to_have_count(0)
        else:
            page.get_by_text("Checking …").wait_for()
            answers.set()
            page.get_by_role("button", name="Keep and review").wait_for()
        assert len(model.fingerprints()) == 1


def test_on_a_phone_the_result_comes_into_view(empty: Server, first_page: Page) -> None:
    page = first_page
    page.goto(empty.url(answer=ANSWER, passage=PASSAGE).replace("/?", "/check?"))
    expect(page.get_by_role("textbox", name="Answer")).to_have_value(ANSWER)
    page.set_viewport_size({"width": 390, "height": 700})  # a phone, on which the boxes fill it
    page.get_by_role("button", name="Check").click()
    expect(page.locator("mark")).to_have_text("1925")
    expect(page.locator("mark")).to_be_in_viewport(ratio=1)
    expect(page.locator(".check-marks")).to_be_in_viewport(ratio=1)
