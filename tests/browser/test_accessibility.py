"""What axe-core says of every page, light and dark.

`axe.min.js` is the file of the npm package axe-core (Mozilla Public License 2.0, `axe.LICENSE`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from driving import Desk, idle
from playwright.sync_api import Browser, Page
from serving import Server, patient
from test_trace import BROKEN, EXTRACT, GRAPH, TRAIL, curie

from spanlab.storage import Store

pytestmark = pytest.mark.browser

AXE = Path(__file__).with_name("axe.min.js")
# What is serious or worse, with the elements that it is said of.
COMPLAINTS = """async (rules) => {
    const all = document.getAnimations();
    const passing = all.filter(({ effect }) => effect.getTiming().iterations < 9);
    await Promise.allSettled(passing.map(({ finished }) => finished));
    const { violations } = await axe.run(document, {
        resultTypes: ["violations"], ...(rules && { runOnly: { type: "rule", values: rules } }),
    });
    return violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => [
            id, ...nodes.map(({ html, failureSummary }) => `${html}: ${failureSummary}`),
        ]);
}"""

COLOURS = ["color-contrast", "link-in-text-block"]
HELP = ("keys", "glossary", "formats", "guidelines", "version")
# Streamlit fetches what draws a style sheet when the first page has one.
STYLED = """() => [...document.querySelectorAll("style")]
    .some((node) => node.textContent.includes("stCaptionContainer"))"""


@pytest.fixture(params=["light", "dark"])
def window(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    scheme: Literal["light", "dark"] = request.param
    with browser.new_context(color_scheme=scheme) as context:
        yield patient(context.new_page())


def complaints(page: Page) -> list[list[str]]:
    """What is wrong; in the dark the colours alone, as nothing else differs."""
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    found: list[list[str]] = page.evaluate(COMPLAINTS, COLOURS if dark else None)
    return found


def test_no_page_has_a_serious_fault(window: Page, server: Server, store: Store) -> None:
    name = "accessible"
    if name not in {summary.name for summary in store.datasets()}:
        store.import_records(name, [curie(EXTRACT, GRAPH, TRAIL, BROKEN)])
    desk = Desk(server, store, window, name)
    desk.visit()
    found = {"review": complaints(window)}
    for tab in window.get_by_role("tab").all():
        tab.click()
        found[f"review, {tab.inner_text()}"] = complaints(window)
    desk.focus_rests()
    desk.press("?")
    found["keys"] = complaints(window)
    links = window.locator("[data-testid=stTopNavLink]").all()
    addresses = [link.get_attribute("href") for link in links]
    addresses += [server.url().replace("?", name) for name in HELP]
    assert len(addresses) > 6
    for address in addresses[1:]:
        window.goto(f"{address}?dataset={name}")
        window.locator("h1, .sl").first.wait_for()
        idle(window)
        window.wait_for_function(STYLED)
        found[str(address)] = complaints(window)
        tabs = range(1, window.get_by_role("tab").count() if "compare" in str(address) else 0)
        for tab in map(window.get_by_role("tab").nth, tabs):
            tab.click()
            idle(window)
            found[f"compare, {tab.inner_text()}"] = complaints(window)
    found |= _dialogs(window, server.url().replace("?", "datasets"), name)
    assert not (wrong := {page: faults for page, faults in found.items() if faults}), wrong


def _dialogs(window: Page, address: str, name: str) -> dict[str, list[list[str]]]:
    """What is wrong with the dialogs of a dataset; those that ask for one line are all alike."""
    found = {}
    window.goto(f"{address}?dataset={name}")
    window.locator("h1").wait_for()
    idle(window)
    find = window.get_by_role("textbox", name="Find")
    if find.is_visible():  # other tests have left more than a page of datasets
        find.fill(name)
        find.press("Enter")
    card = window.locator(f".st-key-dataset-{name}")
    for action in ("Detect…", "Vote…", "Settings…", "Annotators…", "Delete…"):
        if action in {"Detect…", "Vote…"}:
            card.get_by_role("button", name=action).click()
        else:
            card.get_by_role("button", name="More").click()
            window.get_by_role("menuitem", name=action).click()
        dialog = window.get_by_role("dialog")
        dialog.wait_for()
        idle(window)
        found[action] = complaints(window)
        window.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
    return found
