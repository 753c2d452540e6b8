"""What helps somebody who is here for the first time: the menu, the hints and what comes next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import Desk
from playwright.sync_api import expect

from spanlab.schema import Item, Record

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]


def test_three_hints_are_given_once_and_never_come_back(desk: Sit) -> None:
    here = desk([Record(item=Item(id="one", answer="One."))])
    hint = here.page.get_by_role("note", name="Hint")
    for text in ("accept", "drag", "Enter"):
        expect(hint).to_contain_text(text)
        hint.get_by_role("button", name="Got it").press("Enter")
    expect(hint).to_be_hidden()
    here.visit()
    expect(hint).to_be_hidden()


def test_when_all_is_done_the_way_leads_on_to_compare_and_export(desk: Sit) -> None:
    here = desk([Record(item=Item(id="one", answer="One."))])
    after = here.page.locator(".sl-finished")
    expect(after).to_be_hidden()
    here.press("Enter")
    expect(after).to_have_text("Next: Compare or Export")
    here.settle()
    after.get_by_role("link", name="Export").press("Enter")
    expect(here.page.locator("h1")).to_have_text("Export")
    assert f"dataset={here.dataset}" in here.page.url


def test_the_help_menu_has_keys_glossary_formats_guidelines_and_version(desk: Sit) -> None:
    here = desk([Record(item=Item(id="one", answer="One."))])
    expect(here.page.get_by_alt_text("Logo")).to_be_visible()
    for name, text in (
        ("Keyboard shortcuts", "Accept the suggestion"),
        ("Glossary", "Spearman"),
        ("Formats", "Label Studio"),
        ("Guidelines", "no guidelines"),
        ("Version", "spanlab 0"),
    ):
        here.page.get_by_text("Help", exact=True).click()
        here.page.get_by_role("menuitem", name=name).press("Enter")
        expect(here.page.locator("h1")).to_have_text(name)
        expect(here.page.get_by_test_id("stMain")).to_contain_text(text)
