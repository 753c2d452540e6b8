"""What mkdocs asks while it builds the guide: the order of its pages, and dark pictures."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from spanlab.base.guide import INDEX, guide_pages, with_helps


def on_config(config: Any) -> None:
    """Set the navigation: the sections of the guide's first page."""
    listed = (page for page in guide_pages() if page.in_menu)
    sections = groupby(listed, lambda page: page.section)
    config.nav = [
        {"The guide": f"{INDEX}.md"},
        *({name: [{each.title: f"{each.topic}.md"} for each in pages]} for name, pages in sections),
    ]


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page with each picture in the colours that a reader has chosen, and with helps."""
    both = r"![\1](\2.webp#only-light)\n![\1](\2-dark.webp#only-dark)"
    return re.sub(
        r"^!\[([^]]*)\]\((pictures/[\w-]+)\.webp\)$", both, with_helps(markdown), flags=re.MULTILINE
    )
