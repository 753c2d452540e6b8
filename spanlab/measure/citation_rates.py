"""How well answers cite and quote, after Gao et al. 2023 (ALCE), section 4.

Of an answer with passages: the *recall* is the share of its sentences that are cited and in which
nothing is marked; the *precision* the share of its citations that support what they are cited for,
0 for an answer that cites nothing. Of several passages cited at once, a claim with a verdict says
which of them support it; without one, all do. A number without a passage is a wrong citation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from statistics import fmean
from typing import Final, NamedTuple

from spanlab.output.tables import ITEMS, Column, MeanInterval, ResultTable, several, table_of
from spanlab.schema import Annotation, CitationLabel, Item, Span
from spanlab.text.citations import CitedStretch, ReadCitations, citations_of, covers, may_cite
from spanlab.text.extents import Extent
from spanlab.text.labels import hard_of
from spanlab.text.quotations import quotations_in

_FIGURES: Final = {  # in the order of their columns
    "recall": ("Citation recall", "Share of an answer's sentences that its citations support."),
    "precision": ("Citation precision", "Share of an answer's citations that support its text."),
    "cited": ("Sentences cited", "Share of an answer's sentences that cite something."),
    "valid": ("Quotations valid", "Share of an answer's quotations in which nothing is marked."),
    "misattributed": ("Misattributed", "Share of an answer's quotations with that label."),
    "changed": ("Changed", "Share of an answer's quotations with that label."),
    "fabricated": ("Fabricated", "Share of an answer's quotations with that label."),
}
_QUOTATIONS: Final = {
    "misattributed": CitationLabel.MISATTRIBUTED,
    "changed": CitationLabel.CHANGED,
    "fabricated": CitationLabel.FABRICATED,
}


_OF_QUOTATIONS: Final = ("valid", *_QUOTATIONS)


class CitationShares(NamedTuple):
    """The shares of one answer, in [0, 1]; those of quotations are None where nothing is quoted."""

    recall: float
    precision: float
    cited: float
    valid: float | None = None
    misattributed: float | None = None
    changed: float | None = None
    fabricated: float | None = None


class CitationRates(NamedTuple):
    """Means of the shares of answers; those of citations are None where no answer cites."""

    recall: MeanInterval | None
    precision: MeanInterval | None
    cited: MeanInterval | None
    valid: MeanInterval | None
    misattributed: MeanInterval | None
    changed: MeanInterval | None
    fabricated: MeanInterval | None


class CitationGroup(NamedTuple):
    """The rates of the ``n`` items of one value of a field."""

    value: str
    n: int
    rates: CitationRates


def citation_shares(item: Item, annotations: Sequence[Annotation]) -> CitationShares | None:
    """Return the shares of an answer as the mean over annotations that mark places.

    Returns:
        None for an answer without passages, or that nobody has marked.
    """
    placed = [annotation for annotation in annotations if not annotation.is_verdict_only]
    if not placed or not item.passages:
        return None
    citations = citations_of(item) if may_cite(item) else None
    quoted = quotations_in(item.answer)
    each = [_shares(annotation, citations, quoted) for annotation in placed]

    def mean(name: str) -> float:
        return fmean(getattr(one, name) for one in each)

    of_quotations = map(mean, _OF_QUOTATIONS) if quoted else (None,) * len(_OF_QUOTATIONS)
    return CitationShares(mean("recall"), mean("precision"), mean("cited"), *of_quotations)


def citation_rates(
    shares: Sequence[CitationShares | None],
    mean: Callable[[Iterable[float | None]], MeanInterval | None],
) -> CitationRates | None:
    """Return the means of answers' shares; None where none of them cites or quotes."""
    known = [one for one in shares if one is not None]
    cites, quotes = any(one.cited for one in known), any(one.valid is not None for one in known)
    if not cites and not quotes:
        return None

    def column(name: str) -> MeanInterval | None:
        if not cites and name in {"recall", "precision", "cited"}:
            return None
        return mean(None if one is None else getattr(one, name) for one in shares)

    rates = CitationRates(*map(column, CitationRates._fields))
    named = any(getattr(one, kind) for one in known for kind in _QUOTATIONS)
    if named or rates.valid is None or rates.valid.mean == 1:
        return rates
    return rates._replace(misattributed=None, changed=None, fabricated=None)  # marks of no kind


def citation_table(field: str, groups: Sequence[CitationGroup]) -> tuple[ResultTable, ...]:
    """Return a table of the groups' rates; none where nothing is cited or quoted."""
    columns = [name for name in _FIGURES if any(getattr(group.rates, name) for group in groups)]
    if not columns:
        return ()
    table = table_of(
        f"citations-{field}",
        f"Citations and quotations by {field}, with 95 % intervals",
        groups,
        (Column(key="value", title=field), lambda group: group.value),
        (ITEMS, lambda group: group.n),
        *(
            (
                Column(key=name, title=_FIGURES[name][0], unit="share", digits=1,
                       about=_FIGURES[name][1]),
                lambda group, of=name: several(getattr(group.rates, of), group.n),
            )
            for name in columns
        ),
        remarks=("Means over answers. An answer that cites nothing counts 0, as in ALCE.",),
    )  # fmt: skip
    return (table,)


def _shares(
    annotation: Annotation, citations: ReadCitations | None, quoted: Sequence[Extent]
) -> CitationShares:
    marked = hard_of(annotation)
    wrong = {
        name: [span for span in annotation.spans if span.label == label]
        for name, label in _QUOTATIONS.items()
    }
    n = len(quoted)
    of_quotations = (
        (
            sum(not _touched(place, marked) for place in quoted) / n,
            *(sum(_touched(place, spans) for place in quoted) / n for spans in wrong.values()),
        )
        if quoted
        else (None,) * 4
    )
    if citations is None:
        return CitationShares(0.0, 0.0, 0.0, *of_quotations)
    right = [s for s in citations.stretches if s.passages and not _touched(s, marked)]
    total = sum(len(s.passages) + len(s.missing) for s in citations.stretches)
    held = [
        sentence
        for sentence in citations.sentences
        if covers(right, sentence) and not _touched(sentence, marked)
    ]
    cited = sum(covers(citations.stretches, sentence) for sentence in citations.sentences)
    n_sentences = max(len(citations.sentences), 1)
    return CitationShares(
        len(held) / n_sentences,
        sum(_supporting(s, annotation) for s in right) / max(total, 1),
        cited / n_sentences,
        *of_quotations,
    )


def _supporting(stretch: CitedStretch, annotation: Annotation) -> int:
    """Return how many of the passages that an unmarked stretch cites support it."""
    for claim in annotation.claims:
        place = claim.source
        if place and (place.start, place.end) == (stretch.start, stretch.end) and claim.verdict:
            return len({e.passage for e in claim.evidence if e.stance == "supports"})
    return len(stretch.passages)


def _touched(place: Extent | CitedStretch, marks: Iterable[Extent | Span]) -> bool:
    return any(mark.start < place.end and place.start < mark.end for mark in marks)
