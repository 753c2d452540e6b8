"""The head of a report: a dataset's figures at a glance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from html import escape

from spanlab.figures import counted
from spanlab.results import Column, ResultTable, as_html
from spanlab.schema import AnnotatorKind, Record, Status
from spanlab.workflows.analysis.comparison import DatasetComparison, compare_records
from spanlab.workflows.analysis.comparison_tables import ANNOTATOR, ScoredAnnotator, score_table
from spanlab.workflows.analysis.rate_tally import RateTally, default_annotators
from spanlab.workflows.analysis.rates import MOST_GROUPS, RateReport

_PEOPLE = 20  # whose scores are shown
_NAMED = 10  # people whose counts are shown one by one
_GROUPS = 50  # whose rates are shown
_KINDS = {
    AnnotatorKind.GOLD: "gold labels",
    AnnotatorKind.VOTE: "votes",
    AnnotatorKind.DETECTOR: "detectors",
}


def head_html(overview: Overview) -> str:
    """Return the figures of a report; every text of the data is escaped."""
    at, agreement = overview.at, overview.comparison.tables()[0]
    time = f"<time datetime='{at.isoformat(timespec='minutes')}'>{at:%Y-%m-%d %H:%M} UTC</time>"
    languages = ", ".join(
        f"{escape(lang)} {count:,}" for lang, count in sorted(overview.languages.items())
    )
    items = f"{counted(overview.n_items, 'item')} ({languages})" if languages else "no items"
    return (
        f"<p>Made on {time} of {items}.</p>\n"
        f"{_annotators(overview)}{_scores(overview.comparison.scores)}"
        f"{as_html(agreement) if agreement.rows else ''}"
        f"{_labels(overview)}{_rates(overview.rates) if overview.rates else ''}"
    )


def _annotators(overview: Overview) -> str:
    kinds = overview.comparison.kinds
    people = [name for name in overview.states if kinds[name] is AnnotatorKind.PERSON]
    rows = [
        (name, *_counts([name], overview))
        for kind in (*_KINDS, AnnotatorKind.PERSON)
        for name in overview.states
        if kinds[name] is kind and not (kind is AnnotatorKind.PERSON and len(people) > _NAMED)
    ]
    if len(people) > _NAMED:
        rows.append((f"{len(people):,} people together", *_counts(people, overview)))
    return as_html(
        ResultTable(
            key="annotators",
            title="Items by annotator",
            columns=(ANNOTATOR, *_count_columns("Done", "Skipped", "Failed", "Not annotated")),
            rows=tuple(rows),
            empty="Nobody has annotated them yet.",
        )
    )


def _count_columns(*titles: str) -> list[Column]:
    return [Column(key=title, title=title, unit="count") for title in titles]


def _counts(names: Sequence[str], overview: Overview) -> tuple[int, ...]:
    states = (Status.DONE, Status.SKIPPED, Status.FAILED)
    counts = [sum(overview.states[name].get(state, 0) for name in names) for state in states]
    return (*counts, len(names) * overview.n_items - sum(counts))


def _scores(scores: Sequence[ScoredAnnotator]) -> str:
    """Return the table of scores as HTML; empty without any annotator but the reference."""
    machines = [scored for scored in scores if scored.kind is not AnnotatorKind.PERSON]
    people = [scored for scored in scores if scored.kind is AnnotatorKind.PERSON]
    if not any(scored.kind for scored in scores):
        return ""
    shown = [*_best_first(machines), *_best_first(people)[:_PEOPLE]]
    title = "Scores against the gold labels, means over languages with 95 % intervals"
    if len(people) > _PEOPLE:
        title += f"; of {len(people):,} people the best {_PEOPLE}"
    return as_html(score_table(shown, ("iou", "corr", "f1"), "iou", title))


def _best_first(scores: Sequence[ScoredAnnotator]) -> list[ScoredAnnotator]:
    return sorted(scores, key=lambda scored: (-scored.report.macro.iou.mean, scored.name))


def _labels(overview: Overview) -> str:
    kinds = [
        kind
        for kind in (*_KINDS, AnnotatorKind.PERSON)
        if any(kind is k for _, k in overview.labels)
    ]
    totals: dict[str, int] = {}
    for (label, _), count in overview.labels.items():
        totals[label] = totals.get(label, 0) + count
    if not totals:
        return ""
    names = (_KINDS.get(kind, "people").capitalize() for kind in kinds)
    return as_html(
        ResultTable(
            key="labels",
            title="Spans by label",
            columns=(Column(key="label", title="Label"), *_count_columns(*names)),
            rows=tuple(
                (label, *(overview.labels.get((label, kind), 0) for kind in kinds))
                for label in sorted(totals, key=lambda label: (-totals[label], label))
            ),
        )
    )


def _rates(rates: RateReport) -> str:
    largest = sorted(rates.groups, key=lambda group: -group.n)[:_GROUPS]
    groups = tuple(replace(group, labels={}) for group in rates.groups if group in largest)
    left_out = len(rates.groups) - len(groups)
    remark_on_rest = (f"{left_out:,} more with fewer items.",) if left_out else ()
    shown = replace(rates, groups=groups, remarks=(*rates.remarks, *remark_on_rest), unlabelled=0)
    tables = (*shown.corrected, replace(shown, corrected=()).tables()[0])
    return "".join(map(as_html, tables))


UNLABELLED = "(no label)"


@dataclass(frozen=True)
class Overview:
    """The figures of a dataset, or of the part of it that goes into a report.

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
    """Compute the figures of a report over its records.

    Args:
        records: read once.
        kinds: the annotators that take part.
        by: the field by which rates are grouped, as for ``rates``.
    """
    gold = next((name for name, kind in kinds.items() if kind is AnnotatorKind.GOLD), None)
    tally = _DatasetTally()
    rates = RateTally(by, kinds, default_annotators(kinds) or tuple(kinds))
    comparison = compare_records(_pass_counted(records, tally, rates), dict(kinds), gold)
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
        for annotation in record.annotations:
            self.states.setdefault(annotation.annotator, Counter())[annotation.status] += 1
            if annotation.status is Status.DONE:
                self.labels.update(
                    (span.label or UNLABELLED, annotation.kind) for span in annotation.spans
                )


def _pass_counted(
    records: Iterable[Record], tally: _DatasetTally, rates: RateTally
) -> Iterator[Record]:
    """Yield records on their way to the comparison, each after it was counted."""
    for record in records:
        tally.add(record)
        rates.add(record)
        yield record
