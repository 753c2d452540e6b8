"""An endpoint and its key are given on a page: the box in which they are typed stays open."""

from __future__ import annotations

import pytest
from driving import idle, open_detectors
from playwright.sync_api import Page, expect
from serving import Server, arrive

from spanlab.schema import Item, Record
from spanlab.storage import Store

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("place", ["detect", "optimise"])
def test_the_box_of_the_endpoint_stays_open_while_its_key_is_typed(
    server: Server, store: Store, page: Page, place: str
) -> None:
    """With the address there is all that is needed, and the warning above the box goes."""
    store.import_records(place, [Record(item=Item(id="a", answer="The tower is tall."))])
    arrive(page, server.url(dataset=place).replace("/?", f"/{place}?"))
    if place == "detect":
        open_detectors(page)
        page.get_by_text("ucsc-extract", exact=True).first.click()
    warning = page.get_by_text("No language model can be reached yet")
    expect(warning).to_be_visible()
    page.get_by_label("Endpoint", exact=True).fill("http://127.0.0.1:9/v1")
    page.keyboard.press("Tab")
    page.keyboard.type("sk-")
    expect(warning).to_have_count(0)
    idle(page)
    key = page.get_by_label("API key", exact=True)
    expect(key).to_be_focused()
    page.keyboard.type("typed")
    expect(key).to_have_value("sk-typed")
    page.get_by_role("button", name="Use this API key").click()
    page.get_by_role("button", name="Forget the API key").click()
    expect(key).to_be_visible()
    if place == "detect":  # so does the list above
        expect(page.get_by_text("ucsc-extract", exact=True).first).to_be_visible()
