"""From a citation to its passage and back, by key and by mouse; evidence that is cited alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import Desk
from playwright.sync_api import expect

from spanlab.schema import Item, Passage, Record

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWER = "🗼 The tower was built in 1889 [1]. It is 330 m tall [2][9]. It was built fast [1]."
PASSAGES = tuple(
    Passage(text=" ".join([f"This is source {name}."] * 90), title=f"Source {name}")
    for name in ("one", "two", "three")
)
TOWER = Item(id="tower", lang="en", answer=ANSWER, passages=PASSAGES)
PLAIN = Item(id="plain", lang="en", answer="It is so.", passages=PASSAGES)


def test_a_key_leads_from_citation_to_citation_and_back(desk: Sit) -> None:
    here = desk([Record(item=TOWER)])
    caret = "() => spanlab.editor.selection.caret"
    here.press("s")
    here.hears("Source one")
    assert here.page.evaluate(caret) == here.unit("[1]")
    here.press("s")
    here.hears("Source two")
    assert here.page.evaluate(caret) == here.unit("[2]")
    expect(here.page.locator(".sl-passage h2").nth(1)).to_be_in_viewport()
    here.press("s")
    here.hears("No passage has this number")
    here.press("s")
    here.hears("Source one")
    here.press("S")
    here.hears("Cited here, 1 of 2")
    assert here.page.evaluate(caret) == here.unit("[1]")
    here.press("S")
    here.hears("Cited here, 2 of 2")
    assert here.page.evaluate(caret) == here.unit("[1]", here.unit("[2]"))


def test_a_click_on_a_marker_opens_its_passage_and_the_passage_leads_back(desk: Sit) -> None:
    here = desk([Record(item=TOWER)])
    here.page.mouse.click(*here.point(here.unit("[2]") + 1))
    here.hears("Source two")
    expect(here.page.locator(".sl-passage h2").nth(1)).to_be_in_viewport()
    here.page.get_by_role("button", name="Go to where the answer cites it (2 places)").click()
    here.hears("Cited here")
    here.has_focus(inside=True)


def test_evidence_is_narrowed_to_what_is_cited(desk: Sit) -> None:
    here = desk([Record(item=TOWER), Record(item=PLAIN)])
    third = here.page.locator(".sl-passage").nth(2)
    expect(third).to_be_visible()
    narrow = here.page.get_by_role("button", name="Cited only")
    narrow.click()
    expect(third).to_be_hidden()
    expect(here.page.locator(".sl-passage").nth(1)).to_be_visible()
    narrow.click()
    expect(third).to_be_visible()
    narrow.click()
    here.visit("plain")
    expect(narrow).to_be_hidden()
    expect(third).to_be_visible()
    here.press("s")
    here.hears("This answer cites nothing")
