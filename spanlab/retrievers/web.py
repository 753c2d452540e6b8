"""Asking a search model, and keeping its answer and its sources as passages."""

from __future__ import annotations

import re

from pydantic import JsonValue

from spanlab.lm.cache import AnswerCache
from spanlab.lm.choice import ModelChoice
from spanlab.lm.search import CitedSource, SearchAnswer, SearchModel
from spanlab.lm.usage import Meter
from spanlab.retrievers.base import PER_SEARCH, Found, Query
from spanlab.retrievers.fetched import Fetched
from spanlab.schema import Passage

_LONGEST_NAME = 150  # characters of the model's; what wraps this one adds to it
_MARK = re.compile(r"\[(\d{1,3})\]")


class Web:
    """Asks a search model; the answer comes first, its sources after it.

    Args:
        choice: which model; see ``lm.search.search_choice``.
        meter: counts the calls and stops them at its budget.
        cache: what was fetched so far; None asks anew every time.
        k: how many sources are kept beside the answer, at least 1.

    Raises:
        MissingKeyError: the endpoint needs a key and none is set.
        UsageError: a budget in money is set and no price.
    """

    def __init__(
        self, choice: ModelChoice, meter: Meter, cache: AnswerCache | None, k: int = PER_SEARCH
    ) -> None:
        self._model = SearchModel(choice, meter)
        self._fetched = Fetched(cache)
        self._k = k
        self.name = f"web:{choice.model[:_LONGEST_NAME]}" + (f"/{k}" if k != PER_SEARCH else "")

    async def search(self, query: Query) -> Found:
        """Ask the model; with a date in the query, what it says itself is no evidence.

        Its answer is written now, from pages of any date; its sources say when they are from.
        """
        choice, k = self._model.choice, query.k or self._k
        unset = dict.fromkeys(("temperature", "seed", "max_tokens", "reasoning_effort"))
        settings: JsonValue = {**unset, "model": choice.model}  # as earlier versions wrote it
        asked: list[JsonValue] = ["web", choice.endpoint, settings, k, query.text]
        if query.before is not None:
            asked.append(query.before.isoformat())
        if choice.sent:
            asked.append(choice.sent)

        async def fetch() -> tuple[Passage, ...]:
            answer = await self._model.ask(query.text, before=query.before)
            if query.before is None:
                return passages(answer, choice.model, k)
            sources = passages(answer, choice.model, len(answer.sources))[1:]
            return tuple(filter(query.admits, sources))[:k]

        return Found((query.text,), await self._fetched.passages(asked, fetch))


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


def _passage(source: CitedSource) -> list[Passage]:
    text = source.snippet or source.title or source.url
    if not text:
        return []
    return [Passage(text=text, title=source.title, url=source.url, date=source.date)]
