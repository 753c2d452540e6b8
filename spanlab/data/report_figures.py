"""The figures of a report, counted over its records in one pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

from spanlab.data.report_examples import WorstExample, WorstExamples
from spanlab.measure.measurement import Measurement
from spanlab.measure.rate_tally import RateTally, default_annotators
from spanlab.measure.rates import MOST_GROUPS, RateGroup, RateReport
from spanlab.schema import AnnotatorKind, DatasetSettings, Record, Status
from spanlab.scoring.annotator_tables import reference_of
from spanlab.scoring.annotators import DatasetComparison, compare_records

UNLABELLED = "(no label)"


@dataclass(frozen=True)
class Overview:
    """The figures of a dataset, or of the part of it that goes into a report.

    Attributes:
        at: when they were counted.
        languages: how many items each has.
        states: of each annotator, how many items are in which state.
        labels: how many spans of finished annotations have a label, by kind of annotator.
        decided: how many items each person has adjudicated.
        comparison: scores against the gold labels, if there are any, and agreement.
        rates: how often answers are hallucinated by model, or by language where no field of the
            items looks like one; None where nobody has finished an item.
        total: the rates of all items together; None as ``rates``.
        worst: the answers with most hallucinated text.
        settings: of the dataset.
        measured: the dataset's measurement; None without one.
    """

    at: datetime
    languages: Mapping[str, int]
    states: Mapping[str, Mapping[Status, int]]
    labels: Mapping[tuple[str, AnnotatorKind], int]
    decided: Mapping[str, int]
    comparison: DatasetComparison
    rates: RateReport | None
    total: RateGroup | None
    worst: tuple[WorstExample, ...]
    settings: DatasetSettings
    measured: Measurement | None = None

    @property
    def n_items(self) -> int:
        """The number of items."""
        return sum(self.languages.values())


def overview_of(
    records: Iterable[Record],
    kinds: Mapping[str, AnnotatorKind],
    by: str,
    settings: DatasetSettings,
) -> Overview:
    """Compute the figures of a report over its records.

    Args:
        records: read once.
        kinds: the annotators that take part.
        by: the field by which rates are grouped, as for ``rates``.
        settings: of the dataset.
    """
    names = default_annotators(kinds, settings) or tuple(kinds)
    tally, worst = _DatasetTally(), WorstExamples(names)
    rates = RateTally(by, kinds, names)
    counted_records = _pass_counted(records, tally, rates, worst)
    comparison = compare_records(counted_records, dict(kinds), reference_of(kinds), settings)
    return Overview(
        at=datetime.now(UTC),
        languages=tally.languages,
        states={name: tally.states.get(name, Counter()) for name in kinds},
        labels=tally.labels,
        decided=tally.decided,
        comparison=comparison,
        rates=rates.result() if 0 < len(rates.values) <= MOST_GROUPS else None,
        total=rates.all_items(),
        worst=worst.result(),
        settings=settings,
    )


@dataclass
class _DatasetTally:
    languages: Counter[str] = field(default_factory=Counter)
    states: dict[str, Counter[Status]] = field(default_factory=dict)
    labels: Counter[tuple[str, AnnotatorKind]] = field(default_factory=Counter)
    decided: Counter[str] = field(default_factory=Counter)

    def add(self, record: Record) -> None:
        """Count one item."""
        self.languages[record.item.lang] += 1
        for annotation in record.annotations:
            self.states.setdefault(annotation.annotator, Counter())[annotation.status] += 1
            if annotation.status is Status.DONE:
                self.decided.update(filter(None, [annotation.decided_by]))
                self.labels.update(
                    (span.label or UNLABELLED, annotation.kind) for span in annotation.spans
                )


def _pass_counted(
    records: Iterable[Record], *tallies: _DatasetTally | RateTally | WorstExamples
) -> Iterator[Record]:
    """Yield records on their way to the comparison, each after it was counted."""
    for record in records:
        for tally in tallies:
            tally.add(record)
        yield record
