"""What is pressed while a page is still at work counts."""

from __future__ import annotations

import pytest
from driving import idle
from playwright.sync_api import Browser, Page, expect
from serving import SLOW, Server, arrive, patient

pytestmark = pytest.mark.browser


def test_a_press_that_comes_as_a_run_of_the_page_ends_counts(server: Server, page: Page) -> None:
    arrive(page, server.url().replace("/?", f"/{SLOW}"))
    page.get_by_role("button", name="Press").click()
    expect(page.get_by_text("It was pressed")).to_be_visible(timeout=20_000)


def test_a_key_counts_on_the_first_page_over_a_slow_network(
    server: Server, browser: Browser
) -> None:
    """Tests press keys once a page is ``idle``: it must have fetched the button by then."""
    with browser.new_context() as context:
        page = patient(context.new_page())
        network = context.new_cdp_session(page)
        slow = {"offline": False, "latency": 400, "downloadThroughput": -1, "uploadThroughput": -1}
        network.send("Network.emulateNetworkConditions", slow)
        page.goto(server.url(passage="It opened in 1889.").replace("/?", "/check?"))
        page.get_by_role("textbox", name="Answer").fill("It opened in 1925.")
        idle(page)
        page.keyboard.press("Control+Enter")
        expect(page.locator("mark")).to_have_text("1925", timeout=20_000)
