"""What is wrong with the citations and quotations of an answer: a plain function over a judge.

1. Each cited stretch is judged by its cited passages together. What they do not support is looked
   for in each other passage: *supported by another source*, else *not in the cited source*.
2. Each quotation is looked for in what its stretch cites, else in all passages: word for word
   elsewhere is *misattributed*, nearly so *changed*, nowhere *fabricated*. Inside a quotation
   nothing else is marked.
3. A number that no passage has is *no such source*.
4. Each cited stretch is a claim with its verdict; its evidence has a sentence of each passage that
   supports it. After Gao et al. 2023, "Enabling Large Language Models to Generate Text with
   Citations" (section 4), a citation beside others counts if the others do not support the claim
   without it, or if it supports the claim alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spanlab.schema import CitationLabel, Claim, Evidence, Item, Span, Stance
from spanlab.systems.citations.support import Judgement, Support
from spanlab.text.citations import CitedStretch, ReadCitations
from spanlab.text.extents import Extent
from spanlab.text.facts import closest_sentence
from spanlab.text.quotations import FoundQuotation, find_quotation, quotations_in

CERTAIN: Final = 0.97  # of data/citations.jsonl's other half, at least so many are right
_CLOSE: Final = 0.3  # similarity below which a sentence says nothing of a stretch


@dataclass(frozen=True)
class CitationFindings:
    """Spans and claims of an answer, in order; ``unread`` are passages whose text is not given."""

    spans: tuple[Span, ...]
    claims: tuple[Claim, ...]
    unread: tuple[int, ...]


def find_faults(item: Item, citations: ReadCitations, support: Support) -> CitationFindings:
    """Judge the citations and quotations of an item with passages.

    Args:
        item: the item. What cites a passage without text is not judged.
        citations: what its answer cites.
        support: judges a stretch by passages.
    """
    blank = _blank(item)
    unread = [s for s in citations.stretches if not blank.isdisjoint(s.passages)]
    quoted = quotations_in(citations.plain)
    spans = [
        span
        for place in quoted
        if not any(_meets(place, stretch) for stretch in unread)
        for span in _of_quotation(item, citations, place)
        if not (blank and span.label == CitationLabel.FABRICATED)  # it may be in one of these
    ]
    spans += _missing(item, citations)
    claims: list[Claim] = []
    for stretch in to_judge(item, citations):
        own = [span for span in spans if _meets(span, stretch) and span.label not in _NO_QUOTE]
        judged = _outside(support(_place(stretch), stretch.passages), quoted)
        if judged.supported or own:
            claims.append(_claim(item, stretch, support, not own))
            continue
        other = _supported_by(item, stretch, support, quoted)
        marked = tuple(_unsupported(item, stretch, judged, other))
        spans += marked
        claims.append(_claim(item, stretch, support, False, marked[0].evidence))
    in_order = tuple(sorted(spans, key=lambda span: (span.start, span.end)))
    cited_blank = tuple(sorted(blank & {n for stretch in unread for n in stretch.passages}))
    return CitationFindings(in_order, tuple(claims), cited_blank)


def to_judge(item: Item, citations: ReadCitations) -> tuple[CitedStretch, ...]:
    """Return the stretches that cite something, all of it with a text."""
    blank = _blank(item)
    return tuple(s for s in citations.stretches if s.passages and blank.isdisjoint(s.passages))


def _blank(item: Item) -> set[int]:
    return {n for n, passage in enumerate(item.passages) if not passage.text.strip()}


_NO_QUOTE: Final = frozenset({CitationLabel.NO_SOURCE})


def _place(stretch: CitedStretch) -> Extent:
    return Extent(stretch.start, stretch.end)


def _meets(span: Span | Extent, stretch: CitedStretch | Extent) -> bool:
    return span.start < stretch.end and stretch.start < span.end


def _outside(judged: Judgement, quoted: Sequence[Extent]) -> Judgement:
    return Judgement(
        tuple(span for span in judged.marks if not any(_meets(span, place) for place in quoted))
    )


def _of_quotation(item: Item, citations: ReadCitations, place: Extent) -> Iterator[Span]:
    """Yield what is wrong with a quotation."""
    text = citations.plain[place.start : place.end]
    cited = [n for s in citations.stretches if _meets(place, s) for n in s.passages]
    others = [n for n in range(len(item.passages)) if n not in cited]
    near: list[tuple[int, FoundQuotation]] = []
    for number in (*dict.fromkeys(cited), *others):
        if (found := find_quotation(text, item.passages[number].text)) is None:
            continue
        if found.changed:
            near.append((number, found))
            continue
        if cited and number in others:
            yield _span(
                item,
                place,
                CitationLabel.MISATTRIBUTED,
                f"is in passage {number + 1}, which is not cited for it",
                _evidence(item, number, found.place, "closest"),
            )
        return
    if not near:
        yield _span(
            item,
            place,
            CitationLabel.FABRICATED,
            "is in no passage",
            *_closest(item, cited or others, text, "closest"),
        )
        return
    number, best = min(near, key=lambda one: sum(e.end - e.start for e in one[1].changed))
    there = _evidence(item, number, best.place, "refutes")
    for changed in best.changed:
        at = Extent(place.start + changed.start, place.start + changed.end)
        note = f"passage {number + 1} has: “{there.text}”"
        yield _span(item, at, CitationLabel.CHANGED, note, there)


def _missing(item: Item, citations: ReadCitations) -> list[Span]:
    """Return a span for each marker that names a source that is not there."""
    return [
        _span(
            item,
            Extent(marker.start, marker.end),
            CitationLabel.NO_SOURCE,
            f"there are {len(item.passages)} passages, and none has the number "
            + ", ".join(map(str, marker.missing)),
        )
        for marker in citations.markers
        if marker.missing
    ]


def _supported_by(
    item: Item, stretch: CitedStretch, support: Support, quoted: Sequence[Extent]
) -> int | None:
    """Return the first other passage that supports a stretch by itself."""
    others = (
        number
        for number, passage in enumerate(item.passages)
        if number not in stretch.passages and passage.text.strip()
    )
    place = _place(stretch)
    return next((n for n in others if _outside(support(place, (n,)), quoted).supported), None)


def _unsupported(
    item: Item, stretch: CitedStretch, judged: Judgement, other: int | None
) -> Iterator[Span]:
    """Yield the marks of a stretch that its cited passages do not support."""
    text = item.answer[stretch.start : stretch.end]
    closest = _closest(item, stretch.passages, text, "closest")
    if other is not None:
        yield _span(
            item,
            _place(stretch),
            CitationLabel.ANOTHER_SOURCE,
            f"passage {other + 1} says so, which is not cited for it",
            *_closest(item, (other,), text, "supports"),
            *closest,
        )
        return
    for span in judged.marks:
        yield span.model_copy(
            update={"label": CitationLabel.NOT_IN_SOURCE, "evidence": span.evidence or closest}
        )


def _claim(
    item: Item,
    stretch: CitedStretch,
    support: Support,
    supported: bool,
    evidence: Sequence[Evidence] = (),
) -> Claim:
    """Return a stretch as a claim; if it is supported, with a quote of each passage that helps."""
    text = item.answer[stretch.start : stretch.end]
    source = Span.of(item.answer, stretch.start, stretch.end)
    if not supported:
        return Claim(text=text, source=source, verdict="not-supported", evidence=tuple(evidence))
    return Claim(
        text=text,
        source=source,
        verdict="supported",
        evidence=tuple(
            quote
            for number in stretch.passages
            if _helps(stretch, number, support)
            for quote in _closest(item, (number,), text, "supports", least=0.0)
        ),
    )


def _helps(stretch: CitedStretch, number: int, support: Support) -> bool:
    """Return whether a passage is needed among those cited, or supports the stretch alone."""
    rest = [n for n in stretch.passages if n != number]
    if not rest or support(_place(stretch), (number,)).supported:
        return True
    return not support(_place(stretch), rest).supported


def _span(item: Item, place: Extent, label: CitationLabel, note: str, *quotes: Evidence) -> Span:
    return Span.of(
        item.answer, *place, prob=CERTAIN, label=label, evidence=tuple(quotes)
    ).model_copy(update={"note": note})


def _closest(
    item: Item, passages: Sequence[int], text: str, stance: Stance, *, least: float = _CLOSE
) -> tuple[Evidence, ...]:
    """Return the sentence of passages that comes closest to a text, if one comes close."""
    found = closest_sentence([item.passages[n].text for n in passages], text, lang=item.lang)
    if found is None or found.score < least:
        return ()
    return (_evidence(item, passages[found.passage], Extent(found.start, found.end), stance),)


def _evidence(item: Item, passage: int, place: Extent, stance: Stance) -> Evidence:
    text = item.passages[passage].text[place.start : place.end]
    return Evidence(passage=passage, start=place.start, end=place.end, text=text, stance=stance)
