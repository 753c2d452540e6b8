"""What a queue is ordered by: one number per item, taken from facets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import Connection

from spanlab.schema import Kind, QueueQuery
from spanlab.storage import facets, search
from spanlab.storage.catalog import Annotator, Dataset
from spanlab.storage.facets import Array

Facets = tuple[str, ...]


@dataclass(frozen=True)
class Ranking:
    """The highest of some ``facets`` per item, NaN for none.

    The highest comes first, or the lowest if ``ascending``.
    """

    facets: Facets
    ascending: bool

    def values(self, arrays: Sequence[Array]) -> Array:
        """Return the numbers to order by, from the arrays of the facets."""
        values: Array = np.fmax.reduce([np.asarray(each, dtype=np.float64) for each in arrays])
        return values

    def scores(self, values: Array) -> Array:
        """Return scores of ``values``: the highest for the first, the lowest for none (NaN)."""
        turned = -values if self.ascending else values
        return np.where(np.isnan(turned), -np.inf, turned)

    def score(self, value: float | None) -> float:
        """Return the score of one value."""
        return float(self.scores(np.array([np.nan if value is None else value]))[0])


def ranking(
    connection: Connection, dataset: Dataset, query: QueueQuery, annotators: dict[str, Annotator]
) -> Ranking | None:
    """Return what ``query`` orders by; None for the order of the import."""
    if query.order == "import":
        return None
    by: dict[str, Callable[[], Facets]] = {
        "disagreement": lambda: (disagreement_of(query),),
        "probability": lambda: prob_facets(annotators, query.detector),
        "status": lambda: (status_facet(annotators, query.reviewer),),
        "labels": lambda: counted(connection, dataset, query, annotators, facets.LABELS),
        "claims": lambda: counted(connection, dataset, query, annotators, facets.CLAIMS),
        "passages": lambda: (facets.PASSAGES,),
    }
    # The numbers of statuses begin with "not annotated".
    return Ranking(by[query.order](), ascending=(query.order == "status") != query.reverse)


def disagreement_of(query: QueueQuery) -> str:
    """Return the facet of the disagreement that ``query`` may know of."""
    return facets.OF_DETECTORS if query.blind else facets.DISAGREEMENT


def status_facet(annotators: dict[str, Annotator], name: str) -> str:
    """Return the facet of an annotator's statuses; a blank one for somebody unknown."""
    return facets.status_of(annotators[name].id if name in annotators else -1)


def prob_facets(annotators: dict[str, Annotator], detector: str | None) -> Facets:
    """Return the facets with the probabilities of ``detector``, or of every detector if None."""
    return tuple(
        facets.prob_of(annotator.id)
        for annotator in annotators.values()
        if (annotator.kind is Kind.DETECTOR if detector is None else annotator.name == detector)
    ) or (facets.prob_of(-1),)


def counted(
    connection: Connection,
    dataset: Dataset,
    query: QueueQuery,
    annotators: dict[str, Annotator],
    what: str,
) -> Facets:
    """Return the facets "labels" or "claims" of all annotators whom ``query`` may know of."""
    seen = visible_authors(query, annotators)
    stored = facets.of_annotators(connection, dataset.id, what)
    return tuple(name for author, name in stored.items() if seen is None or author in seen) or (
        f"{what}/-1",
    )


def visible_authors(query: QueueQuery, annotators: dict[str, Annotator]) -> set[int] | None:
    """Return whose words ``query`` may know of, by number; None for everybody's."""
    if not query.blind:
        return None
    seen = (
        each.id
        for each in annotators.values()
        if each.kind is Kind.DETECTOR or each.name == query.reviewer
    )
    return {search.THE_ITEM, *seen}
