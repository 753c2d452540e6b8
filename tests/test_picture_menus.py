"""The pictures of the guide show the menu of today."""

from __future__ import annotations

from collections import Counter

from picture_menus import noted_menus

from spanlab import doors
from spanlab.base.guide import FOLDER


def test_every_picture_shows_the_menu_of_today() -> None:
    """If it does not, `make pictures` takes them anew."""
    pages = [page for page in doors.pages() if page.group != doors.OWN]
    sizes = Counter(page.group for page in pages)
    row = {page.group if page.group and sizes[page.group] > 1 else page.title for page in pages}
    pictures = {path.stem.removesuffix("-dark") for path in (FOLDER / "pictures").iterdir()}
    account = {"owner"}  # of the lead, where people are invited
    noted = {name: set(noted_menus().get(name, ())) - account for name in pictures}
    assert noted == dict.fromkeys(pictures, row | {"Help"})
