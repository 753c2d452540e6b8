"""How an annotation campaign goes: what each person marks, how fast, and how well people agree."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, timedelta
from functools import cached_property
from typing import NamedTuple

import numpy as np

from spanlab.output.tables import (
    ITEMS,
    ONE_ITEM,
    Cell,
    Chart,
    Column,
    MeanInterval,
    ResultTable,
    column_of,
    columns_of,
    several,
    table_of,
)
from spanlab.schema import AnnotatorKind, Record
from spanlab.schema.progress import FinishedItem
from spanlab.scoring.agreement import AlphaInterval, ItemMarks, alpha_interval, pairwise_ious, rated
from spanlab.scoring.annotators import sample_records
from spanlab.scoring.calibration import UNLABELLED
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of, with_progress
from spanlab.text.extents import iou, size
from spanlab.text.labels import hard_of

_REPORT_EVERY = 100  # items between two calls of `on_progress`


_PERSON = Column(key="person", title="Person")


_MOST_PERIODS = 60  # days, or weeks, that can be told apart in a chart


@dataclass
class PersonLabels:
    """What a person marked in the ``items`` that they finished.

    ``marked`` counts the items with a span, ``spans`` the spans by label; ``characters`` is the
    number of characters marked, of the ``length`` of all the answers.
    """

    items: int = 0
    marked: int = 0
    characters: int = 0
    length: int = 0
    spans: Counter[str] = field(default_factory=Counter)


class CheckMarks(NamedTuple):
    """The mean IoU of a person's marks with the gold labels of ``items`` items."""

    items: int
    iou: float


@dataclass(frozen=True)
class CampaignReport:
    """What people marked in ``looked_at`` items of a dataset.

    ``labels`` are by person, ``marks`` by item id. ``known`` compares each person with the known
    answers, or with gold labels where no answers are known; ``gold`` are the ids of these items.
    """

    looked_at: int
    labels: Mapping[str, PersonLabels]
    marks: Mapping[str, ItemMarks]
    known: Mapping[str, CheckMarks] = field(default_factory=dict)
    gold: frozenset[str] = frozenset()

    @cached_property
    def mean_ious(self) -> Mapping[str, float]:
        """The mean IoU with others, over all items that two finished, by person."""
        sums: Counter[str] = Counter()
        n_others: Counter[str] = Counter()
        for item in self.marks.values():
            summed = pairwise_ious(list(item.marks.values())).sum(axis=0) - 1  # not with oneself
            for name, iou_sum in zip(item.marks, summed.tolist(), strict=True):
                sums[name] += iou_sum
                n_others[name] += len(item.marks) - 1
        return {name: sums[name] / n for name, n in n_others.items() if n}


class AgreementOn(NamedTuple):
    """Agreement on the items that were finished in a period of time, which begins on ``start``."""

    start: date
    alpha: AlphaInterval


class AnnotatorPace(NamedTuple):
    """The time that a person took for ``items`` items: quartiles and sum, in seconds."""

    annotator: str
    items: int
    low: float
    median: float
    high: float
    total: float


def campaign(
    store: Store,
    dataset: str,
    *,
    limit: int | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> CampaignReport:
    """Count what each person marked in the items of a dataset that they finished.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        limit: look at no more items than this, spread evenly over the dataset; None for all.
        on_progress: called now and then with the number of items read.

    Raises:
        NotFoundError: there is no such dataset.
    """
    summary = summary_of(store, dataset)
    people = summary.names_of(AnnotatorKind.PERSON)
    right = summary.settings.check_labels(summary.names_of(AnnotatorKind.GOLD))
    labels: dict[str, PersonLabels] = defaultdict(PersonLabels)
    marks: dict[str, ItemMarks] = {}
    compared: dict[str, list[float]] = defaultdict(list)
    gold: set[str] = set()
    looked_at = 0
    for record in with_progress(sample_records(store, dataset, limit), on_progress, _REPORT_EVERY):
        looked_at += 1
        marks[record.item.id] = rated(record, people)
        _count(labels, record, people)
        if any(annotation.annotator in right for annotation in record.finished):
            gold.add(record.item.id)
        for name, share in against_gold(record, people, right).items():
            compared[name].append(share)
    known = {name: CheckMarks(len(ious), sum(ious) / len(ious)) for name, ious in compared.items()}
    return CampaignReport(looked_at, labels, marks, known=known, gold=frozenset(gold))


def against_gold(
    record: Record, people: Collection[str], right: Collection[str]
) -> dict[str, float]:
    """Return the IoU of what people marked with the labels of ``right``; empty without any.

    Where these say only whether the answer is hallucinated, it is 1 for the same verdict, else 0.
    """
    gold = next((a for a in record.finished if a.annotator in right), None)
    if gold is None:
        return {}
    marks = hard_of(gold)
    return {
        person.annotator: float(person.hallucinated == gold.hallucinated)
        if gold.is_verdict_only
        else iou(hard_of(person), marks)
        for person in record.finished
        if person.annotator in people
    }


def agreement_over_time(
    marks: Mapping[str, ItemMarks], finished: Iterable[FinishedItem], people: Collection[str]
) -> tuple[AgreementOn, ...]:
    """Measure Krippendorff's alpha by the day (UTC) on which items were finished last.

    Args:
        marks: what people marked, by item id.
        finished: when they finished it; items that nobody of ``people`` finished in Review are of
            no day.
        people: who counts; an item needs two of them.

    Returns:
        The periods in order, without those in which alpha is undefined: days, or weeks or months
        where the campaign is long.
    """
    days: dict[str, date] = {}
    for finished_item in finished:
        if finished_item.annotator in people and finished_item.item_id in marks:
            at = finished_item.at.date()
            days[finished_item.item_id] = max(at, days.get(finished_item.item_id, at))
    start = _periods(set(days.values()))
    by_period: dict[date, list[ItemMarks]] = defaultdict(list)
    for item_id, day in days.items():
        item = marks[item_id]
        marks_of_people = {name: marked for name, marked in item.marks.items() if name in people}
        by_period[start(day)].append(replace(item, marks=marks_of_people))
    alphas = ((day, alpha_interval(items)) for day, items in sorted(by_period.items()))
    return tuple(AgreementOn(day, alpha) for day, alpha in alphas if alpha is not None)


def pace(finished: Iterable[FinishedItem]) -> tuple[AnnotatorPace, ...]:
    """Return how long each person took for an item where that was measured, the slowest last."""
    times: dict[str, list[float]] = defaultdict(list)
    for finished_item in finished:
        if finished_item.seconds is not None:
            times[finished_item.annotator].append(finished_item.seconds)
    paces = []
    for person, measured in times.items():
        low, median, high = np.quantile(measured, (0.25, 0.5, 0.75)).tolist()
        pace_of_person = AnnotatorPace(
            person, len(measured), low=low, median=median, high=high, total=sum(measured)
        )
        paces.append(pace_of_person)
    return tuple(sorted(paces, key=lambda pace: (pace.median, pace.annotator)))


def _count(labels: dict[str, PersonLabels], record: Record, people: Collection[str]) -> None:
    for annotation in record.finished:
        if annotation.annotator in people:
            person_labels = labels[annotation.annotator]
            person_labels.items += 1
            person_labels.marked += bool(annotation.spans) or bool(annotation.hallucinated)
            person_labels.characters += size(hard_of(annotation))
            person_labels.length += len(record.item.answer)
            person_labels.spans.update(span.label or UNLABELLED for span in annotation.spans)


def _periods(days: Collection[date]) -> Callable[[date], date]:
    """Return a function from a day to the first day of its period: the day, its week or month."""
    periods: tuple[Callable[[date], date], ...] = (
        lambda day: day,
        lambda day: day - timedelta(days=day.weekday()),
        lambda day: day.replace(day=1),
    )
    few_enough = (start for start in periods if len(set(map(start, days))) <= _MOST_PERIODS)
    return next(few_enough, periods[-1])


def day_table(finished: Iterable[FinishedItem]) -> ResultTable:
    """Return items by the day (UTC) and the person who finished them, the last day first."""
    days = Counter((item.at.date().isoformat(), item.annotator) for item in finished)
    rows = [(day, person, items) for (day, person), items in days.items()]
    rows.sort(key=lambda row: row[1])
    rows.sort(key=lambda row: (row[0], row[2]), reverse=True)
    return ResultTable(
        key="items-by-day",
        title="Items finished by day and person",
        columns=(Column(key="day", title="Day"), _PERSON, ITEMS),
        rows=tuple(rows),
        chart=Chart(kind="days", x="items", y="day", group="person"),
    )


def label_table(labels: Mapping[str, PersonLabels]) -> ResultTable:
    """Return a row per person, who has most items first: shares marked, and spans by label."""
    totals = Counter[str]()
    for counts in labels.values():
        totals.update(counts.spans)
    names = [name for name, _ in totals.most_common()]
    return table_of(
        "labels",
        "Spans by person and label",
        sorted(labels.items(), key=lambda pair: (-pair[1].items, pair[0])),
        (_PERSON, lambda row: row[0]),
        (ITEMS, lambda row: row[1].items),
        (column_of("share", "Items marked"), lambda row: row[1].marked / row[1].items),
        (
            column_of("share", "Characters marked"),
            lambda row: row[1].characters / max(row[1].length, 1),
        ),
        (column_of("count", "Spans"), lambda row: row[1].spans.total()),
        # quoted, so that a label called "Items" is no second column of that name
        *(
            (column_of("count", f"“{name}”", f"label-{at}"), lambda row, of=name: row[1].spans[of])
            for at, name in enumerate(names)
        ),
    )


def label_shares(labels: Mapping[str, PersonLabels], people: int, n_labels: int) -> ResultTable:
    """Return the spans of the first people by label; labels beyond ``n_labels`` count together."""
    first = sorted(labels.items(), key=lambda pair: (-pair[1].items, pair[0]))[:people]
    totals = Counter[str]()
    for _, counts in first:
        totals.update(counts.spans)
    n_named = n_labels if len(totals) <= n_labels else n_labels - 1
    frequent = [name for name, _ in totals.most_common(n_named)]
    rows: list[tuple[str, str, int]] = []
    for person, counts in first:
        rows += [(person, f"“{name}”", counts.spans[name]) for name in frequent]
        if len(frequent) < len(totals):
            of_other_labels = counts.spans.total() - sum(counts.spans[name] for name in frequent)
            rows.append((person, f"{len(totals) - len(frequent)} other labels", of_other_labels))
    return ResultTable(
        key="labels",
        title="Spans by person and label",
        columns=(*columns_of("text", "Person", "Label"), *columns_of("count", "Spans")),
        rows=tuple(rows),
        chart=Chart(kind="stack", x="spans", y="person", group="label"),
    )


def agreement_table(periods: Iterable[AgreementOn]) -> ResultTable:
    """Return Krippendorff's alpha by period, with its interval where there are several items."""
    rows = tuple(
        (
            start.isoformat(),
            alpha.n,
            several(MeanInterval(mean=alpha.alpha, low=alpha.low, high=alpha.high), alpha.n),
        )
        for start, alpha in periods
    )
    alone = any(isinstance(row[2], float) for row in rows)
    return ResultTable(
        key="agreement-over-time",
        title="Agreement over time",
        columns=(*columns_of("text", "From"), ITEMS, *columns_of("score", "Alpha")),
        rows=rows,
        remarks=(f"{ONE_ITEM} It is drawn as a ring.",) if alone else (),
        chart=Chart(kind="line", x="alpha", y="from"),
    )


def pace_table(paces: Iterable[AnnotatorPace]) -> ResultTable:
    """Return the time that people took for an item; those who finished a single item come last."""
    return table_of(
        "time-per-item",
        "Time per item by person: median, and the middle half",
        sorted(paces, key=lambda pace: (pace.items == 1, pace.median)),
        (_PERSON, lambda pace: pace.annotator),
        (ITEMS, lambda pace: pace.items),
        (column_of("seconds", "Median", digits=1), _median),
        (column_of("seconds", "Sum", "total", digits=0), lambda pace: pace.total),
        chart=Chart(kind="dots", x="median", y="person"),
    )


def _median(pace: AnnotatorPace) -> Cell:
    return several(MeanInterval(mean=pace.median, low=pace.low, high=pace.high), pace.items)
