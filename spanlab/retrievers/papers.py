"""The services that find scientific papers, by their abstracts: arXiv, PubMed, Semantic Scholar."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final
from urllib.parse import urlencode, urljoin
from xml.etree import ElementTree

from pydantic import JsonValue

from spanlab.retrievers.provider import ProviderName, SearchService
from spanlab.retrievers.results import ResultShape
from spanlab.schema import storable_json

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
    found = answer.get("esearchresult") if isinstance(answer, dict) else None
    numbers = found.get("idlist") if isinstance(found, dict) else None
    if not isinstance(numbers, list) or not numbers:
        return None
    asked = {"db": "pubmed", "retmode": "xml", "id": ",".join(map(str, numbers))}
    return f"{urljoin(url, 'efetch.fcgi')}?{urlencode(asked)}"


def _xml(text: str) -> ElementTree.Element:
    try:
        # Replies have a size limit, and the parser has one on what entities unfold to.
        return ElementTree.fromstring(text)  # noqa: S314
    except ElementTree.ParseError as error:
        raise ValueError(f"no XML: {error}") from None


def _words(elements: Iterable[ElementTree.Element]) -> str:
    """Return the words of elements, each one a paragraph."""
    return "\n\n".join(" ".join("".join(each.itertext()).split()) for each in elements)


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
