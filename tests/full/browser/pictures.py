"""The pictures in README and guide: the pages as this browser shows them, light and dark.

`make pictures` takes them anew, each in the test that comes by what it shows, and notes the menu
that each shows, which `test_picture_menus.py` holds against the app's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any, Literal

from driving import idle
from picture_menus import note_menu
from PIL import Image
from playwright.sync_api import Page

from spanlab.base.guide import FOLDER

SIZE = (1280, 800)
_SHOWN = FOLDER / "pictures"
_BRIGHT = """dark => {
    const [red] = getComputedStyle(document.querySelector(".stApp")).backgroundColor.match(/\\d+/g);
    const editor = document.querySelector(".sl");
    return dark === red < 128 && (!editor || dark === Boolean(document.querySelector(".sl-dark")));
}"""


def take_picture(page: Page, name: str, folder: Path) -> None:
    """Take the picture ``name``, and hold it against the one that is shown."""
    for scheme in _schemes(page):
        idle(page)
        page.mouse.move(0, 0)
        target = _target(name, scheme, folder)
        _note_menu(page, name)
        _image(page).save(target, "WEBP", **_encoding())
        shown = _SHOWN / target.name
        assert _size(target) == _size(shown) == (*SIZE, 1)
        assert target.stat().st_size > shown.stat().st_size / 2  # not an empty page


class MovingPicture:
    """Pictures of a page one after the other, as one that moves; ``take`` adds one."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._images: dict[str, list[Image.Image]] = {}
        self._shown_for: list[int] = []

    def take(self, milliseconds: int) -> None:
        """Show the page as it is now for so long."""
        for scheme in _schemes(self._page):
            idle(self._page)
            self._images.setdefault(scheme, []).append(_image(self._page))
        self._shown_for.append(milliseconds)

    def save(self, name: str, folder: Path) -> None:
        """Write it no larger than a mebibyte, and look at the one that is shown."""
        _note_menu(self._page, name)
        for scheme, (first, *others) in self._images.items():
            target = _target(name, scheme, folder)
            first.save(
                target,
                "WEBP",
                save_all=True,
                append_images=others,
                duration=self._shown_for,
                loop=0,
                **_encoding(),
            )
            for picture in (target, _SHOWN / target.name):
                *size, frames = _size(picture)
                assert tuple(size) == SIZE
                assert frames > len(others) / 2  # those that are alike are one
                assert picture.stat().st_size < 1 << 20


def _schemes(page: Page) -> Iterator[Literal["light", "dark"]]:
    """Yield dark and light, with the page shown so; light alone if nobody keeps the pictures."""
    schemes: tuple[Literal["dark", "light"], ...] = ("dark", "light")
    for scheme in schemes if "SPANLAB_PICTURES" in os.environ else schemes[1:]:
        _show(page, scheme)
        yield scheme


def _show(page: Page, scheme: Literal["light", "dark"]) -> None:
    """Have a page drawn light or dark."""
    page.emulate_media(color_scheme=scheme)
    page.wait_for_function(_BRIGHT, arg=scheme == "dark")


def _note_menu(page: Page, name: str) -> None:
    """Note the entries of the menu that a kept picture shows."""
    if "SPANLAB_PICTURES" in os.environ:
        row = page.get_by_test_id("stTopNavLink").or_(page.get_by_test_id("stTopNavSection"))
        note_menu(name, [text.split("\n")[-1] for text in row.all_inner_texts()])


def _target(name: str, scheme: str, folder: Path) -> Path:
    to = Path(os.environ.get("SPANLAB_PICTURES", folder))
    return to / f"{name}{'-dark' if scheme == 'dark' else ''}.webp"


def _encoding() -> dict[str, Any]:
    """Return how small a picture is made; one that nobody keeps need not be."""
    effort = (60, 4) if "SPANLAB_PICTURES" in os.environ else (0, 0)
    return {"lossless": True, **dict(zip(("quality", "method"), effort, strict=True))}


def _size(picture: Path) -> tuple[int, int, int]:
    """Return width, height and number of frames."""
    with Image.open(picture) as image:
        return (*image.size, getattr(image, "n_frames", 1))


def _image(page: Page) -> Image.Image:
    """The page as it is now, in the 96 colours that are most of it: a third of the bytes."""
    shot = Image.open(BytesIO(page.screenshot(animations="disabled"))).convert("RGB")
    return shot.quantize(96).convert("RGB")
