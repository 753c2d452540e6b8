"""The README's pictures of the samples: Review, Adjudicate and Compare; see pictures.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from driving import Desk
from pictures import take_picture
from playwright.sync_api import Page, expect
from serving import PATIENCE, Server

from spanlab import jobs
from spanlab.storage import Store
from spanlab.workflows.importing import DATASET, detection_of_samples, prepare_samples

pytestmark = pytest.mark.browser

ITEM = "sample-en-5"


def test_the_pictures_show_a_sample_under_review_adjudicated_and_compared(
    server: Server, store: Store, page: Page, tmp_path: Path
) -> None:
    prepare_samples(store)
    detection = jobs.submit_detection(detection_of_samples(), server.settings)
    desk = Desk(server, store, page, DATASET)
    desk.visit(ITEM)  # the first page lets the app work on jobs
    jobs.wait(detection, timeout=PATIENCE / 1000, settings=server.settings)
    desk.visit(ITEM)
    desk.press("a")
    page.get_by_text("1981").first.wait_for()
    desk.settle()
    take_picture(page, "review", tmp_path)

    at = server.url(dataset=DATASET, item=ITEM, reviewer="Ada")
    page.goto(at.replace("/?", "/adjudicate?"))
    desk.wait_for(ITEM)
    desk.press("m")
    desk.settle()
    expect(page.locator(".sl-toast")).to_be_hidden(timeout=PATIENCE)
    take_picture(page, "adjudicate", tmp_path)

    page.goto(at.replace("/?", "/compare?"))
    expect(page.locator(".marked article").first).to_be_visible(timeout=PATIENCE)
    take_picture(page, "compare", tmp_path)
