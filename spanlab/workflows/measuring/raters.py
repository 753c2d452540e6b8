"""The reliability of people: sensitivity and specificity of their marks, per character."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

from spanlab.errors import UsageError
from spanlab.labels import hard_of
from spanlab.results import Column, ResultTable, columns_of
from spanlab.schema import Annotation, AnnotatorKind, Record
from spanlab.scorers.raters import dawid_skene, pattern_counts

__all__ = ["RaterQuality", "RaterReport", "rate_raters"]

_LEAST: Final = 0.01  # weight of who is no better than chance: an item may have no other voter
_CHANCE: Final = 0.2  # sensitivity + specificity - 1 below which marks say next to nothing


@dataclass(frozen=True)
class RaterQuality:
    """A person, per character: estimated from agreement, and on items with gold labels.

    ``known`` is the number of such items; None for a share of nothing.
    """

    name: str
    items: int
    sensitivity: float
    specificity: float
    known: int
    known_sensitivity: float | None
    known_specificity: float | None

    @property
    def weight(self) -> float:
        """The weight in a vote: sensitivity + specificity - 1, which is 0 for chance."""
        return max(self.sensitivity + self.specificity - 1, _LEAST)


@dataclass(frozen=True)
class RaterReport:
    """All persons of a dataset, the most reliable first."""

    raters: tuple[RaterQuality, ...]

    @property
    def weights(self) -> dict[str, float]:
        """Weights of a vote, by name."""
        return {rater.name: rater.weight for rater in self.raters}

    def tables(self) -> tuple[ResultTable, ...]:
        """Return a row for each person."""
        shares = ("Sensitivity", "Specificity")
        doubtful = [rater.name for rater in self.raters if rater.weight < _CHANCE]
        return (
            ResultTable(
                key="raters",
                title="People as instruments, per character (Dawid and Skene's model)",
                columns=(
                    *columns_of("text", "Person"),
                    *columns_of("count", "Items"),
                    *columns_of("share", *shares),
                    Column(key="weight", title="Weight", unit="score"),
                    *columns_of("count", "Known items"),
                    *columns_of("share", *(f"{title} there" for title in shares)),
                ),
                rows=tuple(
                    (
                        rater.name,
                        rater.items,
                        rater.sensitivity,
                        rater.specificity,
                        rater.weight,
                        rater.known,
                        rater.known_sensitivity,
                        rater.known_specificity,
                    )
                    for rater in self.raters
                ),
                remarks=(
                    "Without gold labels this rests on agreement: a majority that errs alike is "
                    "taken for right, and whoever differs in taste for unreliable.",
                    *((f"Little better than chance: {', '.join(doubtful)}.",) if doubtful else ()),
                ),
                tones=tuple("yellow" if r.name in doubtful else "" for r in self.raters),
            ),
        )

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return {"raters": [{**asdict(rater), "weight": rater.weight} for rater in self.raters]}


def rate_raters(records: Iterable[Record], names: Sequence[str] = ()) -> RaterReport:
    """Estimate how reliable people are as annotators.

    Args:
        records: items, some of which several people have finished.
        names: whom to rate; all people if empty.

    Raises:
        UsageError: fewer than two of them have finished anything.
    """
    patterns: Counter[tuple[str | None, ...]] = Counter()
    items: Counter[str] = Counter()
    against_gold: dict[str, Counter[tuple[bool, bool]]] = {}
    known_items: Counter[str] = Counter()
    for record in records:
        finished = {
            a.annotator: a
            for a in record.finished
            if (a.annotator in names if names else a.kind is AnnotatorKind.PERSON)
        }
        gold = next((a for a in record.finished if a.kind is AnnotatorKind.GOLD), None)
        items.update(list(finished))
        voters = tuple(finished)
        for marked, length in _stretches(record.item.answer, list(finished.values())):
            patterns[(*voters, None, *(voters[at] for at in marked))] += length
        if gold is not None:
            for name, annotation in finished.items():
                known_items[name] += 1
                counts = against_gold.setdefault(name, Counter())
                for marked, length in _stretches(record.item.answer, [annotation, gold]):
                    counts[0 in marked, 1 in marked] += length
    people = list(items)
    if len(people) < 2:
        raise UsageError("to say how reliable people are, two of them must have finished items")
    marks, numbers = pattern_counts(_by_person(patterns, people))
    model = dawid_skene(marks, numbers)
    raters = [
        RaterQuality(
            name=name,
            items=items[name],
            sensitivity=float(model.sensitivity[at]),
            specificity=float(model.specificity[at]),
            known=known_items[name],
            known_sensitivity=_share(against_gold.get(name), of=True),
            known_specificity=_share(against_gold.get(name), of=False),
        )
        for at, name in enumerate(people)
    ]
    return RaterReport(tuple(sorted(raters, key=lambda rater: -rater.weight)))


def _by_person(
    patterns: Counter[tuple[str | None, ...]], people: Sequence[str]
) -> dict[tuple[bool | None, ...], float]:
    rows: Counter[tuple[bool | None, ...]] = Counter()
    for pattern, length in patterns.items():
        middle = pattern.index(None)
        voters, markers = set(pattern[:middle]), set(pattern[middle + 1 :])
        rows[tuple(name in markers if name in voters else None for name in people)] += length
    return dict(rows)


def _stretches(
    answer: str, annotations: Sequence[Annotation]
) -> Iterable[tuple[frozenset[int], int]]:
    """Yield the stretches that the same annotators mark, by number, and their lengths."""
    extents = [hard_of(annotation) for annotation in annotations]
    cuts = sorted(
        {0, len(answer), *(cut for marks in extents for extent in marks for cut in extent)}
    )
    for start, end in pairwise(cuts):
        markers = (
            at
            for at, marks in enumerate(extents)
            if any(first <= start and end <= last for first, last in marks)
        )
        yield frozenset(markers), end - start


def _share(counts: Counter[tuple[bool, bool]] | None, *, of: bool) -> float | None:
    """Return the share of true (else: not true) characters that were marked (else: not)."""
    if counts is None:
        return None
    right, wrong = counts[of, of], counts[not of, of]
    return right / (right + wrong) if right + wrong else None
