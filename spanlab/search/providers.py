"""The search services that are known by name: how each is asked, from its own documentation.

Each is one entry of ``PROVIDERS``, those that find scientific papers by their abstracts among them;
``SearchService.request`` is the only code. Prices are list prices of November 2026 for the smallest
amount: ``SPANLAB_PRICE_PER_SEARCH`` replaces them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import date, timedelta
from functools import partial
from typing import Final
from urllib.parse import urlencode, urljoin
from xml.etree import ElementTree

from pydantic import JsonValue

from spanlab.schema import storable_json
from spanlab.search.provider import ProviderName, SearchService
from spanlab.search.results import ResultShape

_ATOM: Final = "{http://www.w3.org/2005/Atom}"
_FOUND: Final = ResultShape(results="papers", text="text", title="title", url="url", date="date")


def _arxiv(text: str) -> JsonValue:
    papers: list[JsonValue] = []
    for entry in _xml(text).iter(f"{_ATOM}entry"):
        title, summary, url, date = (
            _words(entry.iterfind(_ATOM + name)) for name in ("title", "summary", "id", "published")
        )
        papers.append({"title": title, "text": summary, "url": url, "date": date})
    return {"papers": papers}


def _pubmed(text: str) -> JsonValue:
    """Read either answer: the numbers of papers as JSON, and then these papers as XML."""
    if not text.lstrip().startswith("<"):
        numbers: JsonValue = storable_json(text)
        return numbers
    papers: list[JsonValue] = []
    for paper in _xml(text).iter("PubmedArticle"):
        number = _words(paper.iterfind("MedlineCitation/PMID"))
        day, month, year, words = (
            _words(paper.iterfind(f".//PubDate/{name}"))
            for name in ("Day", "Month", "Year", "MedlineDate")
        )
        papers.append(
            {
                "title": _words(paper.iterfind(".//ArticleTitle")),
                "text": _words(paper.iterfind(".//Abstract/AbstractText")),
                "url": f"https://pubmed.ncbi.nlm.nih.gov/{number}/",
                "date": " ".join(filter(None, (day, month, year))) or words,
            }
        )
    return {"papers": papers}


def _pubmed_papers(answer: JsonValue, url: str) -> str | None:
    search_result = answer.get("esearchresult") if isinstance(answer, dict) else None
    numbers = search_result.get("idlist") if isinstance(search_result, dict) else None
    if not isinstance(numbers, list) or not numbers:
        return None
    parameters = {"db": "pubmed", "retmode": "xml", "id": ",".join(map(str, numbers))}
    return f"{urljoin(url, 'efetch.fcgi')}?{urlencode(parameters)}"


def _xml(text: str) -> ElementTree.Element:
    try:
        # Replies have a size limit, and the parser has one on what entities unfold to.
        return ElementTree.fromstring(text)  # noqa: S314 - as said above
    except ElementTree.ParseError as error:
        raise ValueError(f"no XML: {error}") from None


def _words(elements: Iterable[ElementTree.Element]) -> str:
    """Return the words of elements, each one a paragraph."""
    return "\n\n".join(" ".join("".join(element.itertext()).split()) for element in elements)


PAPERS: Final[dict[ProviderName, SearchService]] = {
    "arxiv": SearchService(
        title="arXiv",
        address="https://export.arxiv.org/api/query",
        variable="SPANLAB_ARXIV_URL",
        read=_arxiv,
        query="search_query",
        number="max_results",
        shape=_FOUND,
        sign="papers",
        longest=300,
        quota="a request every three seconds",
    ),
    "pubmed": SearchService(
        title="PubMed",
        address="https://eutils.ncbi.nlm.nih.gov/entrez/eutils/esearch.fcgi",
        variable="SPANLAB_PUBMED_URL",
        read=_pubmed,
        then=_pubmed_papers,
        query="term",
        number="retmax",
        before=lambda last: {
            "datetype": "pdat",
            "mindate": "1800",
            "maxdate": f"{last:%Y/%m/%d}",
        },
        fixed={"db": "pubmed", "retmode": "json", "sort": "relevance"},
        shape=_FOUND,
        sign="esearchresult",
        longest=300,
        quota="three requests a second",
    ),
    "semantic-scholar": SearchService(
        title="Semantic Scholar",
        address="https://api.semanticscholar.org/graph/v1/paper/search",
        variable="SPANLAB_SEMANTIC_SCHOLAR_URL",
        key="SEMANTIC_SCHOLAR_API_KEY",
        needs_key=False,
        header="X-API-Key",
        query="query",
        number="limit",
        most=100,
        before=lambda last: {"publicationDateOrYear": f":{last.isoformat()}"},
        fixed={"fields": "title,abstract,url,publicationDate"},
        shape=ResultShape(
            results="data", text="abstract", title="title", url="url", date="publicationDate"
        ),
        sign="total",
        longest=300,
        quota="a request a second with a key, which is free",
    ),
}

# Languages by the codes that Brave has for them, where these are not those of ISO 639.
_BRAVE_LANGUAGES: Final = {"ja": "jp", "no": "nb", "pt": "pt-pt", "zh": "zh-hans"} | {
    code: code
    for code in (
        "ar bg bn ca cs da de el en es et eu fi fr gl gu he hi hr hu is it kn ko lt lv ml mr ms nb "  # noqa: SIM905 - fifty words
        "nl pa pl ro ru sk sl sr sv ta te th tr uk vi".split()
    )
}


def _american(name: str) -> Callable[[date], dict[str, JsonValue]]:
    # The service excludes the day itself.
    return lambda last: {name: f"{last + timedelta(days=1):%m/%d/%Y}"}


def _brave_language(code: str) -> dict[str, JsonValue]:
    brave_code = _BRAVE_LANGUAGES.get(code)
    return {"search_lang": brave_code} if brave_code else {}


_wiki = partial(
    SearchService,
    query="srsearch",
    number="srlimit",
    most=50,
    fixed={
        "action": "query",
        "list": "search",
        "format": "json",
        "formatversion": "2",
        "srprop": "snippet|timestamp",
    },
    shape=ResultShape(results="query.search", text="snippet", title="title", date="timestamp"),
    markup=True,
    longest=300,
)

WEB: Final[dict[ProviderName, SearchService]] = {
    "brave": SearchService(
        title="Brave Search",
        address="https://api.search.brave.com/res/v1/web/search",
        variable="SPANLAB_BRAVE_URL",
        key="BRAVE_API_KEY",
        header="X-Subscription-Token",
        number="count",
        before=lambda last: {"freshness": f"1970-01-01to{last.isoformat()}"},
        language=_brave_language,
        fixed={"result_filter": "web", "text_decorations": "false"},
        shape=ResultShape(
            results="web.results", text="description", title="title", url="url", date="page_age"
        ),
        markup=True,
        sign="type",
        longest=400,
        words=50,
        price=0.005,
        quota="requests per second and month depend on the plan",
    ),
    "google": SearchService(
        title="Google Programmable Search",
        address="https://customsearch.googleapis.com/customsearch/v1",
        variable="SPANLAB_GOOGLE_URL",
        key="GOOGLE_API_KEY",
        header="X-Goog-Api-Key",
        number="num",
        most=10,
        before=lambda last: {"sort": f"date:r::{last:%Y%m%d}"},
        language=lambda code: {"hl": code},
        environment={"cx": "GOOGLE_CSE_ID"},
        shape=ResultShape(
            results="items",
            text="snippet",
            title="title",
            url="link",
            date="pagemap.metatags.0.article:published_time",
        ),
        sign="kind",
        price=0.005,
        quota="100 searches a day are free, 10,000 at most; for existing customers, until 2027",
    ),
    "mediawiki": _wiki(
        title="MediaWiki",
        address="",
        variable="SPANLAB_MEDIAWIKI_URL",
        link="{wiki}/index.php?title={title}",
    ),
    "perplexity": SearchService(
        title="Perplexity Search",
        address="https://api.perplexity.ai/search",
        variable="SPANLAB_PERPLEXITY_URL",
        key="PERPLEXITY_API_KEY",
        posts=True,
        query="query",
        number="max_results",
        before=_american("search_before_date_filter"),
        language=lambda code: {"search_language_filter": [code]},
        shape=ResultShape(results="results", text="snippet", title="title", url="url", date="date"),
        price=0.005,
        quota="requests per second depend on the account",
    ),
    "searxng": SearchService(
        title="SearXNG",
        address="",
        variable="SPANLAB_SEARXNG_URL",
        most=100,
        language=lambda code: {"language": code},
        fixed={"format": "json"},
        forbidden="its settings.yml has to list json below search: formats:",
        shape=ResultShape(
            results="results", text="content", title="title", url="url", date="publishedDate"
        ),
    ),
    "serper": SearchService(
        title="Serper",
        address="https://google.serper.dev/search",
        variable="SPANLAB_SERPER_URL",
        key="SERPER_API_KEY",
        header="X-API-KEY",
        posts=True,
        number="num",
        most=10,
        before=lambda last: {"tbs": f"cdr:1,cd_max:{last:%m/%d/%Y}"},
        language=lambda code: {"hl": code},
        sign="searchParameters",
        shape=ResultShape(
            results="organic", text="snippet", title="title", url="link", date="date"
        ),
        price=0.001,
        quota="prepaid searches",
    ),
    "tavily": SearchService(
        title="Tavily",
        address="https://api.tavily.com/search",
        variable="SPANLAB_TAVILY_URL",
        key="TAVILY_API_KEY",
        posts=True,
        query="query",
        number="max_results",
        before=lambda last: {"end_date": last.isoformat()},
        fixed={"search_depth": "basic"},
        shape=ResultShape(
            results="results", text="content", title="title", url="url", date="published_date"
        ),
        longest=400,
        price=0.008,
        quota="100 requests per minute, 1,000 in production",
    ),
    "wikipedia": _wiki(
        title="Wikipedia",
        address="https://{language}.wikipedia.org/w/api.php",
        variable="SPANLAB_WIKIPEDIA_URL",
        link="https://{language}.wikipedia.org/wiki/{title}",
    ),
}

PROVIDERS: Final[dict[ProviderName, SearchService]] = WEB | PAPERS
