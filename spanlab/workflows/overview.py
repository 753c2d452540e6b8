"""What the head of a report tells of all its items: counts, scores, agreement, labels, rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from spanlab.schema import AnnotatorKind, Record, Status
from spanlab.workflows.comparing import DatasetComparison, compare_records
from spanlab.workflows.rates import MOST_GROUPS, RateReport, RateTally, usual

UNLABELLED = "(no label)"


@dataclass(frozen=True)
class Overview:
    """Figures of a dataset, or of what of it goes into a report.

    Attributes:
        at: when they were counted.
        languages: how many items each has.
        states: of each annotator, how many items are in which state.
        labels: how many spans of finished annotations have a label, by kind of annotator.
        comparison: scores against the gold labels, if there are any, and agreement.
        rates: how often answers are hallucinated by model, or by language where no field of the
            items looks like one; None where nobody has finished an item.
    """

    at: datetime
    languages: Mapping[str, int]
    states: Mapping[str, Mapping[Status, int]]
    labels: Mapping[tuple[str, AnnotatorKind], int]
    comparison: DatasetComparison
    rates: RateReport | None

    @property
    def n_items(self) -> int:
        """The number of items."""
        return sum(self.languages.values())


def overview_of(records: Iterable[Record], kinds: Mapping[str, AnnotatorKind], by: str) -> Overview:
    """Count what a report says of its items.

    Args:
        records: read once.
        kinds: the annotators that take part.
        by: the field by which rates are grouped, as for ``rates``.
    """
    gold = next((name for name, kind in kinds.items() if kind is AnnotatorKind.GOLD), None)
    tally = _DatasetTally()
    rates = RateTally(by, kinds, usual(kinds) or tuple(kinds))
    comparison = compare_records(_told(records, tally, rates), dict(kinds), gold)
    return Overview(
        at=datetime.now(UTC),
        languages=tally.languages,
        states={name: tally.states.get(name, Counter()) for name in kinds},
        labels=tally.labels,
        comparison=comparison,
        rates=rates.result() if 0 < len(rates.values) <= MOST_GROUPS else None,
    )


@dataclass
class _DatasetTally:
    languages: Counter[str] = field(default_factory=Counter)
    states: dict[str, Counter[Status]] = field(default_factory=dict)
    labels: Counter[tuple[str, AnnotatorKind]] = field(default_factory=Counter)

    def add(self, record: Record) -> None:
        """Count one item."""
        self.languages[record.item.lang] += 1
        for said in record.annotations:
            self.states.setdefault(said.annotator, Counter())[said.status] += 1
            if said.status is Status.DONE:
                self.labels.update((span.label or UNLABELLED, said.kind) for span in said.spans)


def _told(records: Iterable[Record], tally: _DatasetTally, rates: RateTally) -> Iterator[Record]:
    """Yield records on their way to the comparison, each after it was counted."""
    for record in records:
        tally.add(record)
        rates.add(record)
        yield record
