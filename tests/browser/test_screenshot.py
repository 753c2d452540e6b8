"""The picture in the README: the Review page on a sample, as this browser shows it.

SPANLAB_SCREENSHOT=tests/browser/review.png makes it anew.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from driving import Desk
from playwright.sync_api import Page
from serving import PATIENCE, Server

from spanlab import jobs
from spanlab.storage import Store
from spanlab.workflows.demo import DATASET, detection_of_samples, prepare_samples

pytestmark = pytest.mark.browser

ITEM = "sample-en-5"
SHOWN = Path(__file__).with_name("review.png")


def test_the_picture_shows_a_sample_under_review(
    server: Server, store: Store, page: Page, tmp_path: Path
) -> None:
    prepare_samples(store)
    detection = jobs.submit_detection(detection_of_samples(), server.settings)
    desk = Desk(server, store, page, DATASET)
    desk.visit(ITEM)  # the first page lets the app work on jobs
    jobs.wait(detection, timeout=PATIENCE / 1000, settings=server.settings)
    desk.visit(ITEM)
    desk.press("x", "a")  # not "New", but "New South Wales"
    page.get_by_text("1981").first.wait_for()
    desk.settle()
    target = Path(os.environ.get("SPANLAB_SCREENSHOT", tmp_path / "review.png"))
    page.screenshot(path=target)
    assert _size(target) == _size(SHOWN) == (1280, 800)
    assert target.stat().st_size > SHOWN.stat().st_size / 2  # not an empty page


def _size(picture: Path) -> tuple[int, int]:
    """The width and height that a PNG states in its header."""
    return struct.unpack(">II", picture.read_bytes()[16:24])
