"""The editor's ES modules as they are shipped, each at an address of its own."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Page, Route

import spanlab.review.span_editor

FOLDER = Path(spanlab.review.span_editor.__file__).with_name("js")
_ORIGIN = "http://localhost/"


def open_modules(page: Page) -> None:
    """Open an empty page whose scripts may ``import("/offsets.js")`` and so on."""

    def serve(route: Route) -> None:
        name = route.request.url.removeprefix(_ORIGIN)
        if name:
            route.fulfill(path=FOLDER / name, content_type="text/javascript")
        else:
            route.fulfill(body="<!doctype html>", content_type="text/html")

    page.route(f"{_ORIGIN}**", serve)
    page.goto(_ORIGIN)
