"""What helps somebody who is here for the first time: the menu, the hints and what comes next."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from importlib.metadata import version

import pytest
from driving import Desk, idle
from playwright.sync_api import Page, expect
from serving import Server, arrive

from spanlab import doors
from spanlab.app.help import STEPS
from spanlab.schema import Item, Record

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]


def test_four_hints_are_given_once_and_the_end_leads_on_to_compare_and_export(desk: Sit) -> None:
    here = desk([Record(item=Item(id="one", answer="One."))])
    hint = here.page.get_by_role("note", name="Hint")
    for text in ("one answer of a language model", "accept", "drag", "Enter"):
        expect(hint).to_contain_text(text)
        hint.get_by_role("button", name="Got it").press("Enter")
    expect(hint).to_be_hidden()
    here.visit()
    expect(hint).to_be_hidden()
    after = here.page.locator(".sl-finished")
    expect(after).to_be_hidden()
    here.press("Enter")
    expect(after).to_have_text("All decided. Next: Campaign, Compare or Export")
    here.settle()
    after.get_by_role("link", name="Export").press("Enter")
    expect(here.page.locator("h1")).to_have_text("Export")
    assert f"dataset={here.dataset}" in here.page.url
    here.page.goto(here.page.url.replace("/export?", "/review?"))  # the first page, by its name
    expect(here.page.locator(".sl-answer")).to_be_visible()
    expect(here.page.get_by_text("Page not found")).to_have_count(0)


def test_no_hint_is_left_after_three_items(desk: Sit) -> None:
    here = desk([Record(item=Item(id=name, answer="One.")) for name in "abcd"])
    hint = here.page.get_by_role("note", name="Hint")
    for name in "abc":
        here.wait_for(name)
        expect(hint).to_be_visible()
        here.press("Enter")
    here.wait_for("d")
    expect(hint).to_be_hidden()
    here.settle()
    here.visit("d")
    expect(hint).to_be_hidden()


def test_the_help_menu_has_guide_with_the_version_and_guidelines(desk: Sit) -> None:
    here = desk([Record(item=Item(id="one", answer="One."))])
    expect(here.page.get_by_alt_text("Logo")).to_be_visible()
    for name, title, text in (
        ("Guide", "Your first hour", "You look at marked answers"),
        ("Guide", "Your first hour", f"spanlab {version('spanlab')}"),
        ("Guidelines", "Guidelines", "no guidelines"),
    ):
        here.page.get_by_text("Help", exact=True).click()
        here.page.get_by_role("menuitem", name=name, exact=True).press("Enter")
        expect(here.page.locator("h1")).to_have_text(title)
        expect(here.page.get_by_test_id("stMain")).to_contain_text(text)


def test_the_guide_is_searched_and_read_with_its_pictures(server: Server, page: Page) -> None:
    page.set_viewport_size({"width": 1280, "height": 800})
    arrive(page, server.url(topic="review").replace("/?", "/guide?"))
    expect(page.locator("h1")).to_have_text("Review")
    expect(page.get_by_test_id("stMain")).to_contain_text("decide on a suggestion")
    for picture in page.get_by_test_id("stImage").locator("img").all():
        assert picture.evaluate("one => one.decode().then(() => one.naturalWidth)") > 1000
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_label("Search the guide").fill("certificate interval")
    page.keyboard.press("Enter")
    # The list of all pages, which the found ones replace, has a button of the same name.
    expect(page.get_by_role("button", name="Lead a campaign")).to_be_hidden()
    page.get_by_role("button", name="Measure and gate").click()
    expect(page.locator("h1")).to_have_text("Measure and gate")
    expect(page).to_have_url(re.compile("topic=measuring$"))
    page.get_by_label("Search the guide").fill("zebra crossing")
    page.keyboard.press("Enter")
    expect(page.get_by_text("No page has any of these words.")).to_be_visible()


def test_an_unknown_topic_says_which_is_meant(server: Server, page: Page) -> None:
    arrive(page, server.url(topic="mesuring").replace("/?", "/guide?"))
    expect(page.get_by_text("did you mean")).to_contain_text("measuring")


def test_a_tour_leads_from_page_to_page(desk: Sit) -> None:
    """All lead to pages that there are; that they follow on each other, three show."""
    assert {step.page for step in STEPS} <= {page.title.lower() for page in doors.pages()}
    here = desk([Record(item=Item(id="one", answer="One."))])
    here.page.get_by_role("link", name="Take a tour").click()
    tour = here.page.locator(".st-key-tour")
    hint = here.page.get_by_role("note", name="Hint")
    for number, step in enumerate(STEPS[:3], 1):
        expect(tour).to_contain_text(f"Tour, {number} of {len(STEPS)}: {step.page.title()}")
        in_menu = here.page.locator("h1")  # of a page that stands in a closed menu
        active = here.page.locator("[aria-current=page]").or_(in_menu).first
        expect(active).to_have_text(re.compile(step.page.title()))
        idle(here.page)  # a button that is drawn anew between press and release is not clicked
        if number == 1:
            expect(hint).to_be_hidden()  # the tour says the same
        if number < 3:
            tour.get_by_role("button", name="Next").click()
    tour.get_by_role("button", name="Back").click()
    expect(tour).to_contain_text("Tour, 2 of 6: Review. Mark what no detector has marked")
    idle(here.page)
    tour.get_by_role("button", name="End the tour").click()
    expect(tour).to_be_hidden()
    expect(hint).to_be_visible()
