"""Asking a search model, and keeping its answer and its sources as passages."""

from __future__ import annotations

import re
from pathlib import Path

from pydantic import JsonValue

from spanlab.lm import Meter, ModelChoice
from spanlab.lm.search import SearchAnswer, SearchModel, Source
from spanlab.retrievers.base import Found
from spanlab.retrievers.fetched import Fetched
from spanlab.schema import Item, Passage

K = 5  # sources per query, beside the answer

_LONGEST_NAME = 150  # characters of the model's; what wraps this one adds to it
_MARK = re.compile(r"\[(\d{1,3})\]")


class Web:
    """Asks a search model the question; the answer comes first, its sources after it."""

    def __init__(self, model: SearchModel, fetched: Fetched, k: int) -> None:
        self._model = model
        self._fetched = fetched
        self._k = k
        self.name = f"web:{model.choice.model[:_LONGEST_NAME]}" + (f"/{k}" if k != K else "")

    async def retrieve(self, item: Item) -> Found:
        """Ask for the question, or for the answer where there is none."""
        query = item.question.strip() or item.answer.strip()
        if not query:
            return Found()
        choice = self._model.choice
        settings = choice.model_dump(
            mode="json", include={"model", "temperature", "max_tokens", "reasoning_effort", "seed"}
        )
        asked: list[JsonValue] = ["web", choice.endpoint, settings, self._k, query]

        async def fetch() -> tuple[Passage, ...]:
            return passages(await self._model.ask(query), choice.model, self._k)

        return Found((query,), await self._fetched.passages(asked, fetch))


def web(choice: ModelChoice, meter: Meter, cache: Path | None, k: int = K) -> Web:
    """Return the retriever that asks a search model.

    Args:
        choice: which model; see ``lm.search.search_choice``.
        meter: counts the calls and stops them at its budget.
        cache: directory of what was fetched; None asks anew every time.
        k: how many sources are kept beside the answer, at least 1.

    Raises:
        MissingKeyError: the endpoint needs a key and none is set.
        UsageError: openai is not installed, or a budget in money is set and no price.
        StoreError: the cache cannot be used.
    """
    return Web(SearchModel(choice, meter), Fetched(cache), k)


def passages(answer: SearchAnswer, model: str, k: int) -> tuple[Passage, ...]:
    """Return what a search model said and read as passages.

    Marks such as ``[2]`` stay in the answer; below it stands which page each of them means.

    Args:
        answer: what it said.
        model: who said it.
        k: how many sources to keep.

    Returns:
        The answer, then its first ``k`` sources by their snippets; of a source without a snippet
        there is its title, or else its address.
    """
    said = Passage(text=answer.text + _links(answer), title=f"Answer of {model}")
    return (said, *(each for source in answer.sources[:k] for each in _passage(source)))


def _links(answer: SearchAnswer) -> str:
    marks = sorted({int(number) for number in _MARK.findall(answer.text)})
    lines = [
        f"[{mark}] {' '.join(filter(None, (source.title, source.url)))}"
        for mark in marks
        if 0 < mark <= len(answer.sources)
        for source in answer.sources[mark - 1 : mark]
    ]
    return "\n\n" + "\n".join(lines) if lines else ""


def _passage(source: Source) -> list[Passage]:
    text = source.snippet or source.title or source.url
    if not text:
        return []
    return [Passage(text=text, title=source.title, url=source.url, date=source.date)]
