"""How a search service is asked and how it answers, and the request for a query."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final, Literal, NamedTuple
from urllib.parse import quote, urlencode

from pydantic import JsonValue

from spanlab.schema import storable_json
from spanlab.search.base import SearchQuery
from spanlab.search.results import ResultShape

ProviderName = Literal[
    "arxiv",
    "brave",
    "google",
    "mediawiki",
    "perplexity",
    "pubmed",
    "searxng",
    "semantic-scholar",
    "serper",
    "tavily",
    "wikipedia",
]

# Results that are asked for at least: a detector that reads five of them and one that reads ten
# share a search, which costs the same.
FEWEST: Final = 10
_LONGEST: Final = 2_000  # characters, URL-encoded up to 18,000; servers take 8,000 of most scripts


class ServiceRequest(NamedTuple):
    """A request: by GET, or by POST with a body; ``link`` is the form of pages' addresses."""

    url: str
    body: dict[str, JsonValue] | None
    link: str = ""


def _no_date(_last: date) -> dict[str, JsonValue]:
    return {}


def _no_language(_code: str) -> dict[str, JsonValue]:
    return {}


@dataclass(frozen=True)
class SearchService:
    """A search service.

    Attributes:
        title: what people call it.
        address: of its API; empty if everybody has their own. ``{language}`` is replaced.
        variable: the environment variable that replaces the address.
        key: the environment variable with the key; empty if there is none. ``needs_key`` says
            whether it answers nobody without one.
        header: carries the key: ``Authorization`` after the word Bearer, any other alone.
        read: makes JSON of an answer's text; a ValueError says that it is none.
        then: ``then(answer, url)`` is the address of the answer that counts, where the first one
            only says what was found (None if that is nothing); None where the first one counts.
        posts: whether parameters go as JSON by POST.
        query: the parameter with the query; ``number`` that with the number of results.
        most: results that one request gives at most.
        before: parameters that exclude what was published after a day; none where the service has
            no such limit. Results that state a later date are left out in any case.
        language: parameters for a language by its ISO 639 code.
        fixed: further parameters; ``environment`` those whose values are in variables.
        link: the address of a page by its ``{title}``, where results have none.
        markup: whether texts are HTML.
        sign: a part of every answer, also of one that leaves out the list of results, empty if
            none does; ``forbidden`` is what status 403 means.
        longest: characters of a query, ``words`` its words, None for no limit.
        price: of one search in US dollars.
        quota: what the service itself limits, in words.
    """

    title: str
    address: str
    variable: str
    shape: ResultShape
    key: str = ""
    needs_key: bool = True
    header: str = "Authorization"
    read: Callable[[str], JsonValue] = storable_json
    then: Callable[[JsonValue, str], str | None] | None = None
    posts: bool = False
    query: str = "q"
    number: str = ""
    most: int = 20
    before: Callable[[date], dict[str, JsonValue]] = _no_date
    language: Callable[[str], dict[str, JsonValue]] = _no_language
    fixed: Mapping[str, JsonValue] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    link: str = ""
    markup: bool = False
    sign: str = ""
    forbidden: str = ""
    longest: int = _LONGEST
    words: int | None = None
    price: float = 0.0
    quota: str = ""

    @property
    def variables(self) -> dict[str, str]:
        """Its environment variables, each with what it holds."""
        return {
            **({self.key: "a key"} if self.key else {}),
            **{variable: f"its `{name}`" for name, variable in self.environment.items()},
            self.variable: "another address of its API"
            if self.address
            else "the address of its API",
        }

    def number_to_ask(self, k: int) -> int:
        """Return how many results to ask for where ``k`` are wanted."""
        return min(max(k, FEWEST), self.most)

    def cut(self, text: str) -> str:
        """Return a query as the service takes it: on one line, ending with a whole word."""
        words = text.split()[: self.words]
        short = " ".join(words)
        if len(short) <= self.longest:
            return short
        head = short[: self.longest]
        return head if short[self.longest].isspace() else head.rpartition(" ")[0] or head

    def request(
        self, query: SearchQuery, address: str, named: Mapping[str, JsonValue]
    ) -> ServiceRequest:
        """Return the request for a query.

        Args:
            query: what to search for, with ``k``.
            address: of the API.
            named: the parameters of ``environment``, with their values.
        """
        code = query.language.partition("-")[0].lower()
        code = code if code.isalpha() and len(code) == 2 else ""
        parameters: dict[str, JsonValue] = {self.query: query.text, **self.fixed, **named}
        if self.number:
            parameters[self.number] = query.k
        if query.before is not None:
            parameters |= self.before(query.before - timedelta(days=1))
        if code:
            parameters |= self.language(code)
        place = address.replace("{language}", code or "en")
        link = self.link.replace("{language}", code or "en")
        if "{wiki}" in link:
            link = link.replace("{wiki}", place.rpartition("/")[0])
        if self.posts:
            return ServiceRequest(place, parameters, link)
        url = f"{place}{'&' if '?' in place else '?'}{urlencode(parameters, quote_via=quote)}"
        return ServiceRequest(url, None, link)
