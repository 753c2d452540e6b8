"""What mkdocs asks while it builds the guide: the order of its pages, and dark pictures."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from mkdocs.structure.files import File, Files

from spanlab.base.guide import INDEX, as_read, guide_pages


def on_config(config: Any) -> None:
    """Set the navigation: the sections of the guide's first page."""
    listed = (page for page in guide_pages() if page.in_menu)
    sections = groupby(listed, lambda page: page.section)
    config.nav = [
        {"The guide": f"{INDEX}.md"},
        *({name: [{each.title: f"{each.topic}.md"} for each in pages]} for name, pages in sections),
    ]


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of systems, which are in folders of theirs."""
    for page in guide_pages():
        if not page.in_menu:
            text = page.path.read_text(encoding="utf-8")
            files.append(File.generated(config, f"{page.topic}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Return a page with each picture in the colours that a reader has chosen, and with helps."""
    both = r"![\1](\2.webp#only-light)\n![\1](\2-dark.webp#only-dark)"
    return re.sub(
        r"^!\[([^]]*)\]\((pictures/[\w-]+)\.webp\)$", both, as_read(markdown), flags=re.MULTILINE
    )
