"""What is typed into a box of a page stays in it: while the page is drawn, and on other pages."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from driving import idle, open_detectors
from playwright.sync_api import Page, expect
from serving import MOVING, Server, arrive

from spanlab.schema import Item, Record
from spanlab.storage import Store

pytestmark = pytest.mark.browser

BOXES = ":is([data-testid=stTextInput], [data-testid=stTextArea]) :is(input, textarea):visible"
RERUN = """() => document.dispatchEvent(
    new KeyboardEvent("keydown", { key: "r", code: "KeyR", keyCode: 82, bubbles: true }))"""
PAGES = {
    "check": {"Answer", "Passages (optional)"},
    "detect": {"Endpoint", "API key"},
    "optimise": {"Endpoint", "API key"},
    "campaign": {"Guidelines, in Markdown"},
    "guide": {"Search the guide"},
}


@pytest.fixture
def moving(server: Server) -> Iterator[None]:
    """Each run of a page moves all of it up or down, so that Streamlit builds it again."""
    file = server.settings.home / MOVING
    file.touch()
    yield
    file.unlink()


@pytest.mark.usefixtures("moving")
@pytest.mark.parametrize("place", PAGES)
def test_what_is_typed_stays_in_its_box_where_the_page_is_built_again(
    server: Server, store: Store, page: Page, place: str
) -> None:
    store.import_records(f"typed-{place}", [Record(item=Item(id="a", answer="It is tall."))])
    arrive(page, server.url(dataset=f"typed-{place}").replace("/?", f"/{place}?"))
    page.locator(".stMain h1").first.wait_for()
    if place == "detect":
        open_detectors(page)
        page.get_by_text("ucsc-extract", exact=True).first.click()
    for label in PAGES[place]:
        page.get_by_label(label, exact=True).first.wait_for()
    idle(page)
    labels = page.locator(BOXES).evaluate_all("all => all.map((box) => box.ariaLabel)")
    for label in labels:
        idle(page)
        box = page.locator(BOXES).and_(page.get_by_label(label, exact=True)).first
        box.fill("")
        for letters in ("ab", "cd"):  # the page moves down, and up
            page.keyboard.type(letters)
            page.evaluate(RERUN)
            page.keyboard.type(letters.upper())
            expect(page.locator("[data-test-script-state=running]")).to_have_count(0)
            idle(page)
        expect(box).to_have_value("abABcdCD")
        expect(box).to_be_focused()
        box.fill("")
        box.blur()


def test_what_is_pasted_into_check_and_not_judged_yet_is_there_again(
    server: Server, store: Store, page: Page
) -> None:
    store.import_records("unsent", [Record(item=Item(id="a", answer="It is tall."))])
    arrive(page, server.url(dataset="unsent").replace("/?", "/check?"))
    boxes = {"Answer": "It is small.", "Passages": "It is tall."}
    for name, text in boxes.items():
        page.get_by_role("textbox", name=name).fill(text)
    page.get_by_role("link", name="Datasets", exact=True).click(delay=200)  # as people do
    expect(page.locator("h1")).to_have_text("Datasets")
    page.get_by_role("link", name="Check", exact=True).click()
    for name, text in boxes.items():
        expect(page.get_by_role("textbox", name=name)).to_have_value(text)
