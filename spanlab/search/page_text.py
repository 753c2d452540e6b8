"""What a fetched page says: HTML by trafilatura and PDF by pypdf (extra ``web``), or plain text.

Pages are read in the sandbox, where one that is made to keep a reader busy fails alone. One that is
merely long is read as far as seconds allow: HTML with more tags than an article has by our own
reader, in one linear pass, and of a PDF the first pages.
"""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable
from typing import Final, NamedTuple

from spanlab.base.errors import PageError, SandboxError, missing_package
from spanlab.base.processes import parsers
from spanlab.search.html import decode_page, read_html

_TAGS: Final = 20_000  # that trafilatura reads in a second; with a million it takes minutes
_PAGES: Final = 300  # of a PDF
_CONTENT: Final = 8 * 2**20  # unpacked bytes of these pages
_OPERATORS: Final = 30_000  # that draw text: those of 20 crowded pages, or 100 usual ones
_SECONDS: Final = 15.0  # of processor time for a page in any case


class PageText(NamedTuple):
    """The text of a page, its title, and the day it says it was published (ISO)."""

    text: str
    title: str | None = None
    date: str | None = None


class _EnoughError(Exception):
    """A PDF draws more than is read of it."""


async def read_apart(data: bytes, content_type: str) -> PageText:
    """Return what a page says, read in the sandbox; see ``read_page``.

    Raises:
        PageError: it is nothing that can be read, or not within the sandbox's limits.
    """
    reading = parsers().submit(_SECONDS, read_page, data, content_type)
    try:
        return await asyncio.wrap_future(reading)
    except SandboxError as error:
        raise PageError(str(error)) from None


def read_page(data: bytes, content_type: str) -> PageText:
    """Return what a page says.

    Args:
        data: the body as it came, unpacked.
        content_type: the header of that name, empty if there was none; a body that begins as a PDF
            is read as one.

    Returns:
        The text, which may be empty.

    Raises:
        PageError: it is nothing that can be read here; says what it is.
    """
    kind, _, parameters = content_type.partition(";")
    kind = kind.strip().lower()
    if data.lstrip()[:5] == b"%PDF-":
        kind = "application/pdf"
    if kind not in _READERS:
        raise PageError(f"it is {kind[:80]!r}, which is neither HTML nor PDF nor text")
    charset = parameters.lower().partition("charset=")[2].partition(";")[0].strip(" \"'")
    return _READERS[kind](data, charset)


def _html(data: bytes, charset: str) -> PageText:
    plain = read_html(data, charset)
    fallback = PageText(plain.text, plain.title, plain.date)
    if data.count(b"<") > _TAGS:
        return fallback
    try:
        from trafilatura import bare_extraction
        from trafilatura.settings import Document
    except ModuleNotFoundError:
        return fallback
    logging.getLogger("trafilatura").setLevel(logging.CRITICAL)
    try:
        document = bare_extraction(
            decode_page(data, charset),
            favor_recall=True,
            prune_xpath=["//template", "//svg"],
            include_comments=False,
            with_metadata=not plain.title,  # of which nothing but the title is read
            date_extraction_params={"extensive_search": False},
        )
    except Exception:  # noqa: BLE001 - whatever it stumbles over, the page has words
        return fallback
    if not isinstance(document, Document) or not (document.text or "").strip():
        return fallback
    return PageText(document.text or "", plain.title or document.title, plain.date)


def _pdf(data: bytes, _charset: str) -> PageText:
    try:
        from pypdf import PdfReader
    except ModuleNotFoundError as error:
        raise PageError(str(missing_package("a PDF", error.name, "web"))) from None
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    texts: list[str] = []
    try:
        reader = PdfReader(io.BytesIO(data))
        title = reader.metadata.title if reader.metadata is not None else None
        drawn, content = 0, 0

        def count(*_operator: object) -> None:
            nonlocal drawn
            drawn += 1
            if drawn > _OPERATORS:
                raise _EnoughError

        for sheet in reader.pages[:_PAGES]:
            contents = sheet.get_contents()
            content += len(contents.get_data()) if contents is not None else 0
            if content > _CONTENT:
                break
            texts.append(sheet.extract_text(visitor_operand_before=count))
    except _EnoughError:
        pass
    except Exception as error:  # noqa: BLE001 - a damaged file raises anything
        raise PageError(f"cannot read this PDF: {type(error).__name__}") from None
    return PageText("\n\n".join(filter(None, map(str.strip, texts))), title or None)


def _plain(data: bytes, charset: str) -> PageText:
    return PageText(decode_page(data, charset))


_READERS: Final[dict[str, Callable[[bytes, str], PageText]]] = {
    "": _html,
    "text/html": _html,
    "application/xhtml+xml": _html,
    "application/pdf": _pdf,
    "text/plain": _plain,
}
