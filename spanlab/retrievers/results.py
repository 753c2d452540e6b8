"""The JSON of search results, whoever's it is, as passages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from pydantic import JsonValue

from spanlab.errors import InputError
from spanlab.retrievers.dates import stated
from spanlab.schema import FrozenModel, Passage, storable

# Where the usual services keep their results: Tavily and many others `results`, you.com `hits`
# (or `results.web`), Brave `web.results`, Serper `organic`, Google `items`, Bing `webPages.value`.
_RESULTS = ("results.web", "results", "hits", "web.results", "organic", "webPages.value", "items")


_TEXT = ("content", "snippets", "snippet", "description", "text", "body")


_TITLE = ("title", "name")


_URL = ("url", "link", "href")


_DATE = ("published_date", "page_age", "date", "last_updated", "published", "age")


class ResultShape(FrozenModel):
    """Where in the JSON the results and their parts are: dotted paths such as ``web.results``.

    Every path that is left out is looked for where the usual services have it. At ``results`` there
    is a list, or an only result.
    """

    results: str | None = None
    text: str | None = None
    title: str | None = None
    url: str | None = None
    date: str | None = None


def passages_of(
    answer: JsonValue,
    shape: ResultShape,
    *,
    markup: bool = False,
    link: str = "",
    sign: str | None = None,
) -> tuple[Passage, ...]:
    """Return the results in an answer as passages, best first as they came.

    A stated age, such as "3 days ago", becomes the day it means.

    Args:
        answer: the decoded JSON.
        shape: where to look.
        markup: whether texts and titles are HTML.
        link: the address of a page by its ``{title}``, for results without one.
        sign: of a service whose answers are known, the path that an answer has also where it
            leaves out the list, because nothing was found; None for any other service.

    Returns:
        A passage for every result that has a text; none for an empty list of results.

    Raises:
        InputError: there is no list of results, or results but no text in any of them.
    """
    answer = storable(answer)
    if (
        sign
        and shape.results
        and _at(answer, shape.results) is None
        and _at(answer, sign) is not None
    ):
        return ()
    results = _results(answer, shape)
    passages = tuple(_passages(results, shape, markup, link))
    if results and not passages and sign is None:
        raise InputError(
            "no search result has a text",
            field=shape.text or " or ".join(_TEXT),
            found=results[0],
            expected="the path of the text in each result",
        )
    return passages


def _results(answer: JsonValue, shape: ResultShape) -> Sequence[JsonValue]:
    for path in (shape.results,) if shape.results else _RESULTS:
        value = _at(answer, path)
        if isinstance(value, list):
            return value
        if isinstance(value, dict) and shape.results:
            return [value]
    if isinstance(answer, list) and not shape.results:
        return answer
    raise InputError(
        "the answer has no list of search results",
        field=shape.results or " or ".join(_RESULTS),
        found=sorted(answer) if isinstance(answer, dict) else answer,
        expected="the path of the list of results",
    )


def _passages(
    results: Sequence[JsonValue], shape: ResultShape, markup: bool, link: str
) -> Iterator[Passage]:
    for result in results:
        text = _text(result, (shape.text,) if shape.text else _TEXT)
        title = _text(result, (shape.title,) if shape.title else _TITLE)
        if markup:
            text, title = _plain(text), _plain(title)
        if text:
            url = _text(result, (shape.url,) if shape.url else _URL)
            if url is None and link and title:
                url = link.replace("{title}", quote(title.replace(" ", "_"), "/:()',"))
            date = _text(result, (shape.date,) if shape.date else _DATE)
            yield Passage(text=text, title=title, url=url, date=date and stated(date))


def _plain(text: str | None) -> str | None:
    from spanlab.retrievers.html import page

    return text and page(text.encode(), "utf-8").text


def _text(result: JsonValue, paths: Sequence[str]) -> str | None:
    """Return the first text there is; several snippets of one page are paragraphs of one text."""
    for path in paths:
        value = _at(result, path)
        parts = value if isinstance(value, list) else [value]
        texts = [part.strip() for part in parts if isinstance(part, str) and part.strip()]
        if texts:
            return "\n\n".join(texts)
    return None


def _at(value: JsonValue, path: str) -> JsonValue:
    for key in path.split("."):
        if isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        elif isinstance(value, dict):
            value = value.get(key)
        else:
            return None
    return value
