"""What axe-core says of every page, light and dark; and that each says what it is for.

`axe.min.js` is the file of the npm package axe-core (Mozilla Public License 2.0, `axe.LICENSE`).
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest
from driving import DETECTOR, Desk, go, idle, suggested
from playwright.sync_api import Browser, Page, expect
from serving import Server, patient
from test_trace import BROKEN, EXTRACT, GRAPH, TRAIL, curie

from spanlab import doors
from spanlab.measure.sample import plan_measurement
from spanlab.schema import Annotation, AnnotatorKind, Item, MeasurementPlan, Record
from spanlab.storage import Store

pytestmark = pytest.mark.browser

AXE = Path(__file__).with_name("axe.min.js")
# What is serious or worse, with the elements that it is said of.
COMPLAINTS = """async ([within, rules]) => {
    const end = performance.now() + 5000;
    const passes = ({ effect, playState }) =>
        playState === "running" && effect.getTiming().iterations < 9;
    // Not by their promises: those of transitions that others take the place of stay open.
    while (document.getAnimations().some(passes) && performance.now() < end) {
        await new Promise((done) => setTimeout(done, 50));
    }
    const { violations } = await axe.run(within, {
        resultTypes: ["violations"], ...(rules && { runOnly: { type: "rule", values: rules } }),
    });
    return violations
        .filter(({ impact }) => impact === "serious" || impact === "critical")
        .map(({ id, nodes }) => [
            id, ...nodes.map(({ html, failureSummary }) => `${html}: ${failureSummary}`),
        ]);
}"""

COLOURS = ["color-contrast", "link-in-text-block"]
PAGES = (
    *("check", "datasets", "detect", "optimise", "jobs", "compare", "measure", "campaign"),
    *("adjudicate", "memory"),
    "export",
)
HELP = ("guide", "guidelines")
# Streamlit fetches what draws a style sheet when the first page has one.
STYLED = """() => [...document.querySelectorAll("style")]
    .some((node) => node.textContent.includes("stCaptionContainer"))"""

# Of the headings that are seen. Where the editor is the page, they begin at the second.
LEVELS = """() => [...document.querySelectorAll(".stMain :is(h1, h2, h3, h4, h5, h6)")]
    .filter((heading) => heading.checkVisibility())
    .map((heading) => Number(heading.tagName[1]))"""


def complaints(page: Page, within: str = "html") -> list[list[str]]:
    """What is wrong in light, and in the dark of the colours alone: nothing else differs.

    ``within`` is where something has changed since the page was looked at.
    """
    if not page.evaluate("'axe' in globalThis"):
        page.evaluate(AXE.read_text(encoding="utf-8"))
    found: list[list[str]] = []
    for scheme, rules in (("light", None), ("dark", COLOURS)):
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        expect(page.get_by_test_id("stApp")).to_have_css("color-scheme", scheme)
        expect(page.locator(".sl:not(.sl-dark)" if scheme == "dark" else ".sl-dark")).to_have_count(
            0
        )
        found += page.evaluate(COMPLAINTS, [within, rules])
    return found


def test_no_page_has_a_serious_fault_and_each_says_what_it_is_for(
    browser: Browser, server: Server, store: Store
) -> None:
    name = "accessible"
    store.import_records(name, [curie(EXTRACT, GRAPH, TRAIL, BROKEN)])
    with browser.new_context() as context:
        page = patient(context.new_page())
        desk = Desk(server, store, page, name)
        desk.visit()
        _is_introduced(page, "review")
        found = {"review": complaints(page)}
        desk.press("l")  # without claims no tab leads to them
        for view in ("Claims", "Spans", "Trace"):
            page.get_by_role("tab", name=view).click()
            assert {*page.evaluate(LEVELS)} <= {2}, view
            found[f"review, {view}"] = complaints(page, ".sl")
        desk.focus_rests()
        desk.press("?")
        found["keys of review"] = complaints(page, ".sl")
        pages = {page.title.lower() for page in doors.pages() if page.group != doors.OWN}
        assert pages == {"review", *PAGES}  # doors.OWN is where people log in
        row = page.get_by_test_id("stTopNavLink").all_inner_texts()
        in_row = ["Check", "Review", "Datasets", "Detect", "Export"]
        assert [name.split("\n")[-1] for name in row] == in_row
        for group in ("Results", "Team", "Tools", "Help"):
            expect(page.get_by_test_id("stTopNav").get_by_text(group, exact=True)).to_be_visible()
        for path in (*PAGES, *HELP):
            _open(page, server, path, name)
            if path in PAGES:
                _is_introduced(page, path)
                levels = [int(path == "adjudicate"), *page.evaluate(LEVELS)]
                assert all(after <= level + 1 for level, after in pairwise(levels)), (path, levels)
            found[path] = complaints(page)
            tabs = range(1, page.get_by_role("tab").count() if path == "compare" else 0)
            for tab in map(page.get_by_role("tab").nth, tabs):
                tab.click()
                idle(page)
                found[f"compare, {tab.inner_text()}"] = complaints(page)
        _measure(store)
        _open(page, server, "measure", "measured")
        for drawer, pictures in (("How it was measured", 3), ("Other rates", 4)):
            idle(page)  # what is drawn anew just then misses the press
            page.get_by_text(drawer, exact=True).click()
            expect(page.locator(".vega-embed svg")).to_have_count(pictures)
        found["measure, with its pictures"] = complaints(page)
        _open(page, server, "datasets", name)
        found |= _dialogs(page, name)
    assert not (wrong := {page: faults for page, faults in found.items() if faults}), wrong


def _measure(store: Store) -> None:
    """Import answers whose rate is measured."""
    records = []
    for at in range(4):
        item = Item(id=str(at), question=f"Which, {at}?", answer="one two")
        person = Annotation(annotator="Ann", kind=AnnotatorKind.PERSON)
        said = suggested(item, [("one", 0.3 + 0.2 * at)])
        records.append(Record(item=item, annotations=(said, person)))
    store.import_records("measured", records)
    plan_measurement(store, "measured", MeasurementPlan(annotator=DETECTOR))


def _open(page: Page, server: Server, path: str, dataset: str) -> None:
    go(page, server.url(dataset=dataset).replace("/?", f"/{path}?"))
    page.wait_for_function(STYLED)


def _is_introduced(page: Page, path: str) -> None:
    """See that a page says what it is for, and leads into the guide."""
    (shown,) = (each for each in doors.pages() if each.title.lower() == path)
    link = page.get_by_role("link", name="Guide", exact=True).last
    expect(link).to_have_attribute("href", re.compile(f"guide\\?topic={shown.topic}$"))
    if path not in {"review", "adjudicate"}:
        expect(page.get_by_text(shown.about)).to_be_visible()
        return
    tooltip = page.get_by_role("tooltip")
    for _ in range(60):  # a link drawn anew under the mouse says nothing until it moves
        link.hover()
        page.wait_for_timeout(500)
        if tooltip.is_visible():
            break
        page.mouse.move(0, 0)
    expect(tooltip).to_contain_text(shown.about)
    page.mouse.move(0, 0)
    expect(tooltip).to_be_hidden()


def _dialogs(page: Page, name: str) -> dict[str, list[list[str]]]:
    """What is wrong with the dialogs of a dataset; those that ask for one line are all alike."""
    found = {}
    find = page.get_by_role("textbox", name="Find")
    if find.is_visible():  # other tests have left more than a page of datasets
        find.fill(name)
        find.press("Enter")
    card = page.locator(f".st-key-dataset-{name}")
    for action in ("Detect…", "Vote…", "Annotators…", "Delete…"):
        if action == "Detect…":
            card.get_by_role("button", name=action).click()
        else:
            card.get_by_role("button", name="More").click()
            page.get_by_role("menuitem", name=action).click()
        dialog = page.get_by_role("dialog")
        dialog.wait_for()
        idle(page)
        found[action] = complaints(page, "[role=dialog]")
        page.keyboard.press("Escape")
        dialog.wait_for(state="hidden")
    return found
