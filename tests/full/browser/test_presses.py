"""What is pressed while a page is still at work counts."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect
from serving import SLOW, Server, arrive

pytestmark = pytest.mark.browser


def test_a_press_that_comes_as_a_run_of_the_page_ends_counts(server: Server, page: Page) -> None:
    arrive(page, server.url().replace("/?", f"/{SLOW}"))
    page.get_by_role("button", name="Press").click()
    expect(page.get_by_text("It was pressed")).to_be_visible(timeout=20_000)
