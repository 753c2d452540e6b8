"""The pictures in the README: the pages as this browser shows them.

SPANLAB_PICTURES=tests/browser makes them anew, each in the test that comes by what it shows.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from driving import idle
from playwright.sync_api import Page, expect

_FOLDER = Path(__file__).parent


def take_picture(page: Page, name: str, folder: Path) -> None:
    """Take the picture ``name``, and hold it against the one that the README shows."""
    idle(page)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    target = Path(os.environ.get("SPANLAB_PICTURES", folder)) / f"{name}.png"
    page.screenshot(path=target)
    shown = _FOLDER / f"{name}.png"
    assert _size(target) == _size(shown) == (1280, 800)
    assert target.stat().st_size > shown.stat().st_size / 2  # not an empty page


def _size(picture: Path) -> tuple[int, int]:
    """The width and height that a PNG states in its header."""
    return struct.unpack(">II", picture.read_bytes()[16:24])
