"""When a page was published: what it states counts, and nothing that merely stands in its text."""

from __future__ import annotations

import sys

import pytest

from spanlab.search.page_text import read_page

LD = '<script type="application/ld+json">{"@type": "Article", %s}</script>'
STATED = {
    "metadata": ('<meta property="article:published_time" content="2019-05-01T10:00Z">', None),
    "metadata of a journal": ('<meta name="citation_publication_date" content="2019/05/01">', None),
    "Dublin Core": ("<meta name=DC.date.issued content=20190501>", None),
    "month in letters": ('<meta itemprop="datePublished" content="May 1, 2019">', None),
    "JSON-LD": (LD % '"dateModified": "2021-01-01", "datePublished": "2019-05-01"', None),
    "time": ('By <time datetime="2019-05-01">yesterday</time>', None),
    "marked time": (
        '<time datetime="2020-01-01">Soon</time><time class="entry-date" datetime="2019-05-01">',
        None,
    ),
    "microdata": ('<span itemprop="datePublished" content="2019-05-01">May</span>', None),
    "metadata before a time": (
        '<time datetime="2020-01-01">Soon</time><meta name="date" content="2019-05-01">',
        None,
    ),
    "a month": ('<meta name="date" content="2019-05">', "2019-05"),
}
GUESSED = {
    "in the text": "<p>Posted on 2021-03-01 10:00 by Ann Lee.</p>",
    "in words": "<p class=date>March 1, 2021</p>",
    "in a headline": "<h1>The flood of 2021-03-01</h1>",
    "in the address": '<link rel="canonical" href="https://a.example/2021/03/01/flood">',
    "in a picture": '<img src="/uploads/2021/03/01/flood.png">',
    "in a script": '<script>var x = {"datePublished": "2021-03-01"}</script>',
    "in a comment": '<!-- <meta name="date" content="2021-03-01"> -->',
    "of another article": '<nav><a href=/x><time datetime="2021-03-01">New</time></a></nav>',
    "of a change": '<meta property="article:modified_time" content="2021-03-01">',
    "of another thing": '<meta name="description" content="2021-03-01 10:00:00">',
    "before there was a web": '<meta name="date" content="0001-01-01T00:00:00">',
    "after today": '<meta name="date" content="9999-01-01">',
}
ARTICLE = "<p>A sentence about the tower of Aldmere, which is old.</p>" * 9


def date_of(markup: str) -> str | None:
    body = f"<html><head><title>Towers</title></head><body>{markup}{ARTICLE}</body></html>"
    return read_page(body.encode(), "text/html; charset=utf-8").date


@pytest.mark.parametrize(("markup", "date"), STATED.values(), ids=STATED)
def test_a_date_that_a_page_states_is_read(
    markup: str, date: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without the package that reads articles."""
    assert date_of(markup) == (date or "2019-05-01")
    monkeypatch.setitem(sys.modules, "trafilatura", None)
    assert date_of(markup) == (date or "2019-05-01")


@pytest.mark.parametrize("markup", GUESSED.values(), ids=GUESSED)
def test_a_date_is_not_guessed(markup: str) -> None:
    assert date_of(markup) is None
