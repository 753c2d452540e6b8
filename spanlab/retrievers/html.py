"""The words of a web page, without its machinery."""

from __future__ import annotations

import re
from typing import NamedTuple

from bs4 import BeautifulSoup, Tag, UnicodeDammit
from bs4.element import NavigableString

_LEFT_OUT = "title, script, style, nav, noscript, template, iframe, svg, button"
_BLOCKS = (
    "address, article, aside, blockquote, br, caption, dd, details, div, dl, dt, fieldset, "
    "figcaption, figure, footer, form, h1, h2, h3, h4, h5, h6, header, hr, li, main, ol, p, pre, "
    "section, summary, table, tr, ul"
)
_CELLS = "td, th"
_ENOUGH = 200  # bytes from which on a guess at the encoding is better than the commonest one
_SPACE = re.compile(r"[^\S\n]+")
_BREAKS = re.compile(r"\s*\n\s*")


class HtmlPage(NamedTuple):
    """What a page says, and where it says it is from."""

    text: str
    title: str | None
    url: str | None


def page(data: bytes) -> HtmlPage:
    """Read an HTML page in whatever encoding it declares or has.

    Args:
        data: the file's bytes; broken markup is read as far as it goes.

    Returns:
        The text with a paragraph per block, without scripts, styles and navigation; empty if
        there is none. The title and canonical address if the page has them.
    """
    soup = BeautifulSoup(data, "html.parser")
    title = " ".join(soup.title.get_text(" ").split()) if soup.title else ""
    link = soup.select_one('link[rel~="canonical"][href]')
    address = str(link["href"]) if link else None
    for part in soup.select(_LEFT_OUT):
        part.decompose()
    return HtmlPage(_words(soup.body or soup), title or None, address)


def guessed(data: bytes) -> str:
    """Decode text that is not UTF-8 by what its bytes look like; what fits nothing is replaced."""
    if len(data) >= _ENOUGH:
        text = UnicodeDammit(data).unicode_markup
        if text:
            return text
    return data.decode("cp1252", errors="replace")


def _words(root: Tag) -> str:
    # Line ends of the source mean nothing; those of blocks are put in their place.
    for text in root.find_all(string=True):
        if type(text) is NavigableString and "\n" in text:
            text.replace_with(" ".join(text.split("\n")))
    for names, gap in ((_BLOCKS, "\n"), (_CELLS, " ")):
        for block in root.select(names):
            block.insert_before(gap)
            block.insert_after(gap)
    return _BREAKS.sub("\n\n", _SPACE.sub(" ", root.get_text())).strip()
