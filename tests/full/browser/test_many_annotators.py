"""A dataset of 95 annotators and 64 items, in a real browser: every page stays within bounds."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil

import pytest
from crowd import crowd
from driving import HeldLine, box_of, go, idle
from playwright.sync_api import Page, expect
from serving import PATIENCE as WAIT
from serving import Server, arrive, leave

from spanlab.storage import Store

DATASET = "crowd-of-95"
WINDOWS = 3  # that a page may be high
GROUPS = ("person", "detector")
PAGES = ("export", "measure")


@pytest.fixture(scope="module")
def many(server: Server) -> str:
    """Everybody has annotated the first item, 12 people each of the others."""
    with Store.open(server.settings) as store:
        store.import_records(DATASET, crowd(95, 64, per_item=12, whole=1))
        for copy in range(6):  # as many cards as a page of datasets has
            store.import_records(f"{DATASET}-{copy}", crowd(95, 1, whole=1))
    return DATASET


@pytest.fixture(scope="module")
def some(server: Server) -> str:
    """So many that there is a search for them, and a table of pairs that is soon drawn."""
    with Store.open(server.settings) as store:
        store.import_records("crowd-of-30", crowd(30, 8, per_item=6, whole=1))
    return "crowd-of-30"


@pytest.fixture
def visit(server: Server, page: Page) -> Callable[..., Page]:
    def load(path: str, **query: str) -> Page:
        arrive(page, server.url(**query).replace("/?", f"/{path}?"))
        expect(page.locator("h1, .sl-p").first).to_be_visible(timeout=WAIT)
        idle(page)
        return page

    return load


def height(page: Page) -> int:
    """The page's height in windows, rounded up, once it has been the same for half a second."""
    read: list[int] = []
    while len(read) < 6 or len(set(read[-6:])) > 1:
        read.append(
            page.evaluate(
                """() => {
                    const main = document.querySelector('[data-testid="stMain"]');
                    return Math.ceil(main.scrollHeight / window.innerHeight);
                }"""
            )
        )
        page.wait_for_timeout(100)
    return read[-1]


def test_no_page_is_higher_than_three_windows(
    visit: Callable[..., Page], server: Server, many: str
) -> None:
    page = visit("datasets", dataset=many)
    heights = {"datasets": height(page)}
    for path in PAGES:
        go(page, server.url(dataset=many).replace("/?", f"/{path}?"))
        heights[path] = height(page)
    go(page, server.url(dataset=many, item="i000").replace("/?", "/compare?"))  # all annotated it
    tabs = page.get_by_role("tab")
    assert {"Items", "Scores", "Agreement"} <= {*tabs.all_inner_texts()}
    for view in tabs.all():
        view.click()
        idle(page)
        heights[f"compare, {view.inner_text()}"] = height(page)
    go(page, server.url(dataset=many))
    heights["review"] = height(page)
    assert {where: high for where, high in heights.items() if high > WINDOWS} == {}


def test_a_chart_is_downloaded_and_annotators_are_chosen_by_keyboard(
    visit: Callable[..., Page], many: str, some: str
) -> None:
    page = visit("compare", dataset=many, view="Scores")
    with page.expect_download() as figures:
        page.locator(".st-key-csv-iou-scores button").click()
    assert "annotator-94" in figures.value.path().read_text()
    chart = page.get_by_test_id("stVegaLiteChart")
    chart.hover()
    with page.expect_download() as picture:
        page.get_by_role("button", name="Download as PNG: IoU").click()
    assert picture.value.path().read_bytes().startswith(b"\x89PNG")
    leave(page)
    visit("compare", dataset=some, view="Agreement")
    corner = page.locator(".pairs thead th")
    expect(corner).to_have_count(34, timeout=WAIT)
    chooser = page.get_by_role("button", name="Annotators: all 34")
    chooser.focus()
    page.keyboard.press("Enter")
    none = page.locator('[class*="person-None"] button')
    expect(none).to_be_visible(timeout=WAIT)
    none.focus()
    page.keyboard.press("Enter")
    expect(corner).to_have_count(4, timeout=WAIT)
    find = page.get_by_role("textbox", name="Find")
    find.fill("tor-07")
    find.press("Enter")
    someone = page.get_by_role("button", name="annotator-07")
    expect(someone).to_be_visible(timeout=WAIT)
    someone.focus()
    page.keyboard.press("Space")
    expect(corner).to_have_count(5, timeout=WAIT)
    expect(page.get_by_role("button", name="Annotators: 5 of 34")).to_be_visible()


def test_none_of_two_groups_in_quick_succession_leaves_both_out(
    visit: Callable[..., Page], page: Page, some: str
) -> None:
    page.goto("about:blank")  # the line is held from the next loading on
    line = HeldLine(page)
    visit("compare", dataset=some, view="Agreement")
    page.get_by_role("button", name="Annotators: all 34").click()
    people, detectors = (page.locator(f'[class*="{kind}-None"] button') for kind in GROUPS)
    expect(detectors).to_be_visible(timeout=WAIT)
    line.hold()
    people.click()
    line.wait_for(b"4 of 34")  # the server has drawn it, the browser has not
    detectors.click()
    line.release()
    expect(page.get_by_role("button", name="Annotators: 2 of 34")).to_be_visible(timeout=WAIT)
    idle(page)
    expect(page.get_by_role("button", name="Annotators: 2 of 34")).to_be_visible()


def test_export_has_its_action_on_the_first_screen_and_the_report_in_a_frame(
    visit: Callable[..., Page], many: str
) -> None:
    page = visit("export", dataset=many)
    for width, high in ((1440, 900), (1280, 800)):
        page.set_viewport_size({"width": width, "height": high})
        action = box_of(page.get_by_role("button", name="Create file"))
        assert action["y"] + action["height"] < high
        formats = page.locator("[class*=st-key-export-format] [role=radiogroup] > *")
        boxes = [box_of(each) for each in formats.all()]
        assert len({round(box["x"]) for box in boxes}) == 3, "not three columns"
        assert len({round(box["y"]) for box in boxes}) == ceil(len(boxes) / 3)
    page.get_by_text("HTML report", exact=True).click()
    report = page.frame_locator(f"iframe[title='The report on {many}']")
    expect(report.get_by_role("heading", name=many, level=1)).to_be_visible(timeout=WAIT)
    expect(report.get_by_text("Items by annotator")).to_be_visible()
    assert box_of(page.locator("iframe"))["height"] < 800


def test_a_crowd_beside_an_item_in_review_is_folded(visit: Callable[..., Page], many: str) -> None:
    page = visit("", dataset=many, item="i000", reviewer="Ada")
    page.get_by_text("Queue").first.click()
    page.get_by_text("Show other people's marks").click()
    page.keyboard.press("Escape")
    chips = page.locator(".sl-annotators [aria-pressed]")
    expect(chips).to_have_count(2 + 1 + 1 + 3, timeout=WAIT)
    page.get_by_role("button", name="92 more").click()
    expect(chips).to_have_count(2 + 1 + 1 + 95, timeout=WAIT)
