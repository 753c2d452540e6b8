"""How often answers are hallucinated: a detector's marks, corrected by reviews, and pictures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any, Final

import numpy as np
from pydantic import TypeAdapter

from spanlab.measure.gating import MeasuredSide, RateChange, compare_rates
from spanlab.measure.items import words_that_count
from spanlab.measure.powered import METHOD
from spanlab.measure.sample import (
    ALL,
    MeasuredItems,
    check_plan,
    interval_of,
    learnt_from,
    marked_share,
    read_measured,
    shown_rate,
    state_line,
)
from spanlab.measure.sampling import cautious_rho, reviews_for_difference
from spanlab.output.figures import counted
from spanlab.output.tables import (
    ITEMS,
    Chart,
    MeanInterval,
    ResultTable,
    column_of,
    figures_of,
    table_of,
)
from spanlab.schema import AnnotatorKind, MeasurementPlan, Status, answer_hash
from spanlab.scoring.annotator_tables import calibration_table
from spanlab.scoring.calibration import AnnotatorCalibration, CalibrationTally
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of
from spanlab.worklists.looks import looks_in_words

_SAMPLE: Final = "Sample: "  # how a remark on sample and estimate begins
_STEPS: Final = 24  # points of the history
_DIFFERENCE: Final = 0.05
_LIKE: Final = "Future answers"
_FINITE: Final = "These answers"
_WIDER: Final = 1.25  # times as wide, from which an interval's reason is told
_MARKED: Final = "The rate of these answers, as these people marked them."
_SENTENCES: Final = {
    "answers": "Between {low} and {high} of {of} answers like these contain a hallucination.",
    "characters": "Of {of} characters of answers like these, between {low} and {high} are "
    "hallucinated.",
    "claims": "Of {of} claims of answers like these, between {low} and {high} are hallucinated.",
}
_ONE_IN_100: Final = 0.01  # a rate that lies below it whole is told of 1,000
_TINY: Final = 1e-9  # 100 × .29 is a little more than 29


@dataclass(frozen=True)
class GroupMeasurement:
    """Rates of the items of one group: raw, by reviews alone, and corrected.

    ``marked`` is the share that the detector marked, which is no rate. ``finite`` is the rate of
    these items, ``superpopulation`` that of answers like these; None without reviews.
    """

    value: str
    items: int
    reviews: int
    marked: float
    finite: MeanInterval | None
    superpopulation: MeanInterval | None
    alone: MeanInterval | None
    rho: float


@dataclass(frozen=True)
class Measurement:
    """The state of a measurement; ``groups`` begin with all items.

    ``pairs`` are differences of groups with intervals that hold together; ``history`` is the rate
    after so many reviews; ``more`` about how many are missing. ``suggestions`` counts the reviews
    by whether suggestions were "shown", "hidden" or this is "unknown", as their logs tell. What is
    reviewed is in so many ``clusters`` of answers that belong together; None in certificates of
    before. The detector's marks on the ``set_aside`` answers that it learnt from do not count.
    """

    dataset: str
    plan: MeasurementPlan
    groups: tuple[GroupMeasurement, ...]
    pairs: tuple[tuple[str, str, RateChange], ...]
    history: tuple[tuple[int, MeanInterval], ...]
    more: int
    for_difference: int
    remarks: tuple[str, ...]
    suggestions: Mapping[str, int] = field(default_factory=dict)
    clusters: int | None = None
    set_aside: int = 0

    @property
    def rate(self) -> GroupMeasurement:
        """The rate of all items."""
        return self.groups[0]

    @property
    def line(self) -> str:
        """The state in a line; see ``state_line``."""
        rate = self.rate
        return state_line(self.plan, rate.finite, rate.superpopulation, self.more)

    @property
    def sentence(self) -> str | None:
        """What was found, in one sentence for everybody; None without reviews."""
        rate, reviews = self.rate.superpopulation, self.rate.reviews
        if rate is None:
            return None
        sentence = rate_sentence(rate, self.plan.unit)
        if self.clusters is None or self.clusters >= reviews:
            return sentence
        one = self.clusters == 1
        of = "one question or document" if one else f"{self.clusters:,} questions or documents"
        return f"{sentence[:-1]} ({reviews:,} reviewed, of {of})."

    @property
    def comparisons(self) -> tuple[str, ...]:
        """What was found of each two groups, a sentence each, the clear differences first."""
        pairs = sorted(
            self.pairs, key=lambda pair: pair[2].difference.low <= 0 <= pair[2].difference.high
        )
        return tuple(
            comparison_sentence(a, b, change.difference, self.plan.unit) for a, b, change in pairs
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """Return rates by group, their differences, and how the interval shrank."""
        plan = self.plan
        rates = table_of(
            "measurement",
            f"Hallucinated {plan.unit} of {self.dataset}. {self.line}",
            self.groups,
            (column_of("text", plan.by or "Group", "value"), lambda row: row.value),
            (ITEMS, lambda row: row.items),
            (column_of("count", "Reviews"), lambda row: row.reviews),
            (
                column_of("share", f"Marked by {plan.annotator}", "marked"),
                lambda row: row.marked,
            ),
            (column_of("share", _LIKE, "like-these"), lambda row: row.superpopulation),
            (
                column_of("share", _FINITE, "rate", about=_MARKED),
                lambda row: shown_rate(row.finite),
            ),
            (column_of("share", "Reviews only", "alone"), lambda row: shown_rate(row.alone)),
            remarks=self.remarks,
            chart=Chart(kind="dots", x="like-these", y="value"),
        )
        if not self.pairs:
            return (rates,)
        all_hold = (
            f"Bonferroni-corrected: all {len(self.pairs):,} intervals contain their true "
            "difference with at least 95 % confidence."
        )
        pairs = table_of(
            "measurement-pairs",
            "Differences of rates, for future answers",
            self.pairs,
            (column_of("text", "Value"), lambda pair: pair[0]),
            (column_of("text", "minus"), lambda pair: pair[1]),
            (column_of("points", "Difference (points)"), lambda pair: pair[2].difference),
            (column_of("text", "Compared", "how"), lambda pair: pair[2].how),
            remarks=(all_hold,) if len(self.pairs) > 1 else (),
        )
        return (rates, pairs)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return figures_of(
            dataset=self.dataset,
            plan=self.plan,
            line=self.line,
            method=METHOD,
            groups=self.groups,
            pairs=[
                {"a": a, "b": b, "questions": change.questions, **change.difference.model_dump()}
                for a, b, change in self.pairs
            ],
            history=[{"reviews": n, **interval.model_dump()} for n, interval in self.history],
            more=self.more,
            for_difference=self.for_difference,
            remarks=self.remarks,
            suggestions=self.suggestions,
            clusters=self.clusters,
            set_aside=self.set_aside,
        )

    @staticmethod
    def read(figures: Mapping[str, Any]) -> Measurement:
        """Return the measurement whose ``figures`` these are, as a certificate holds them."""
        return Measurement(
            dataset=figures["dataset"],
            plan=MeasurementPlan.model_validate(figures["plan"]),
            groups=_GROUPS.validate_python(figures["groups"]),
            pairs=tuple(
                (pair["a"], pair["b"], RateChange(_interval(pair), pair["questions"]))
                for pair in figures["pairs"]
            ),
            history=tuple((point["reviews"], _interval(point)) for point in figures["history"]),
            more=figures["more"],
            for_difference=figures["for_difference"],
            remarks=tuple(figures["remarks"]),
            # Certificates of 1.0 lack these.
            suggestions=figures.get("suggestions", {}),
            clusters=figures.get("clusters"),
            set_aside=figures.get("set_aside", 0),
        )


def rate_sentence(rate: MeanInterval, unit: str) -> str:
    """Return what an interval says of answers like those reviewed, in one sentence for everybody.

    Counts are of 100, or of 1,000 where the rate is below 1 %, rounded away from each other.

    Args:
        rate: of hallucinations, in [0, 1].
        unit: "answers", "characters" or "claims".
    """
    of = 100 if rate.high >= _ONE_IN_100 else 1_000
    low, high = math.floor(of * rate.low + _TINY), math.ceil(of * rate.high - _TINY)
    if low == 0 and high == of:
        owners = "" if unit == "answers" else "of answers "
        return f"Too few reviews to say how many {unit} {owners}like these are hallucinated."
    return _SENTENCES[unit].format(low=low, high=high, of=f"{of:,}")


def without_method(table: ResultTable) -> tuple[ResultTable, tuple[str, ...]]:
    """Return a table without its remark on sample and estimate, which few can read, and that."""
    method = tuple(remark for remark in table.remarks if remark.startswith(_SAMPLE))
    others = tuple(remark for remark in table.remarks if remark not in method)
    return table.model_copy(update={"remarks": others}), method


def comparison_sentence(a: str, b: str, difference: MeanInterval, unit: str) -> str:
    """Return which of two groups hallucinates more, how much, and how sure that is.

    Args:
        a: the one group.
        b: the other group.
        difference: rate of ``a`` minus rate of ``b``, with a 95 % interval.
        unit: "answers", "characters" or "claims".
    """
    low, high = difference.low, difference.high
    of = 100 if max(-low, high) >= _ONE_IN_100 else 1_000
    if low <= 0 <= high:
        return (
            f"“{a}” and “{b}” cannot be told apart yet: with 95 % confidence “{a}” has between "
            f"{math.ceil(-of * low - _TINY):,} fewer and {math.ceil(of * high - _TINY):,} more "
            f"hallucinated {unit} of {of:,}."
        )
    worse, better = (a, b) if low > 0 else (b, a)
    least, most = sorted((abs(low), abs(high)))
    return (
        f"“{worse}” hallucinates more than “{better}”: with 95 % confidence, between "
        f"{math.floor(of * least + _TINY):,} and {math.ceil(of * most - _TINY):,} more of {of:,} "
        f"{unit} like these."
    )


_GROUPS: Final = TypeAdapter(tuple[GroupMeasurement, ...])


def _interval(figures: Mapping[str, float]) -> MeanInterval:
    return MeanInterval(mean=figures["mean"], low=figures["low"], high=figures["high"])


def measure(store: Store, dataset: str, plan: MeasurementPlan | None = None) -> Measurement:
    """Measure the rate of hallucinations of a dataset, from its reviewed sample.

    Args:
        store: the annotation database.
        dataset: an existing dataset.
        plan: the plan of the measurement; None takes the dataset's own.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: it has no measurement, the plan cannot be, or the detector has finished none of
            the dataset's items.
    """
    if plan is not None:
        check_plan(store, dataset, plan)
    return measure_items(store, dataset, read_measured(store, dataset, plan))


def measure_items(store: Store, dataset: str, items: MeasuredItems) -> Measurement:
    """Measure the rate of hallucinations from items that ``read_measured`` returned."""
    plan = items.plan
    groups = [_group(items, None), *(_group(items, value) for value in items.groups)]
    rate = groups[0]
    # The middle of the interval: after a pilot a rate near 0 is often found too low to plan by.
    guess = (rate.finite.low + rate.finite.high) / 2 if rate.finite else rate.marked
    suggestions = _count_suggestions(store, dataset, items)
    return Measurement(
        dataset=dataset,
        plan=plan,
        groups=tuple(groups),
        pairs=tuple(_pairs(items)),
        history=tuple(_history(items)),
        more=items.missing(items.estimate()),
        for_difference=reviews_for_difference(
            _DIFFERENCE, guess, cautious_rho(rate.rho, items.reviewed), items=len(items.items)
        ),
        remarks=(*_remarks(items, suggestions), *_review_remarks(store, dataset, items)),
        suggestions=suggestions,
        clusters=len(np.unique(items.clusters[items.chosen()])),
        set_aside=int(items.seen.sum()),
    )


def measure_own(store: Store, dataset: str, reviewer: str) -> Measurement | None:
    """Measure a dataset by its plan from one person's reviews; None without a plan or a review.

    Raises:
        NotFoundError: there is no such dataset.
    """
    plan = store.settings(dataset).measurement
    if plan is None:
        return None
    measured = measure(store, dataset, plan.model_copy(update={"reviewers": (reviewer,)}))
    return measured if measured.rate.finite else None


def _count_suggestions(store: Store, dataset: str, items: MeasuredItems) -> Counter[str]:
    """Count the reviews in the sample by whether suggestions were shown in them."""
    seen = store.suggestions_seen(dataset)
    words = {True: "shown", False: "hidden", None: "unknown"}
    return Counter(
        words[seen.get((item.item_id, name))]
        for item in items.items[: items.reviewed]
        for name in item.decided_by
        if item.y is not None
    )


def _review_remarks(store: Store, dataset: str, items: MeasuredItems) -> Iterable[str]:
    """Say how many reviews of the sample saw others' marks."""
    summary, reviewed = summary_of(store, dataset), items.items[: items.reviewed]
    reviews = {(item.item_id, name) for item in reviewed for name in item.decided_by}
    yield from looks_in_words(store, summary, {name for _, name in reviews}, reviews)


def suggestions_in_words(suggestions: Mapping[str, int]) -> str:
    """Return in how many reviews suggestions were shown, as "hidden in 80, shown in 4 of 84"."""
    words = (
        f"{key} in {suggestions[key]:,}" for key in ("hidden", "shown") if suggestions.get(key)
    )
    unknown = suggestions.get("unknown")
    unrecorded = (f"not recorded for {unknown:,}",) if len(suggestions) > 1 and unknown else ()
    seen = ", ".join((*words, *unrecorded)) or "not recorded"
    return f"{seen} of {sum(suggestions.values()):,}" if suggestions.get("shown") else seen


def _group(items: MeasuredItems, value: str | None) -> GroupMeasurement:
    inside = [item for item in items.items if value is None or item.group == value]
    first = items.items[: items.reviewed]
    finite = items.estimate(value)
    return GroupMeasurement(
        value=value or ALL,
        items=len(inside),
        reviews=sum(item.y is not None and value in {None, item.group} for item in first),
        marked=marked_share(inside),
        finite=interval_of(finite),
        superpopulation=interval_of(items.estimate(value, like=True)),
        alone=interval_of(items.estimate(value, alone=True)),
        rho=float(finite.rho) if finite else 0.0,
    )


def _pairs(items: MeasuredItems) -> Iterable[tuple[str, str, RateChange]]:
    reviewed = [value for value in items.groups if items.estimate(value) is not None]
    couples = list(combinations(reviewed, 2))
    for a, b in couples:
        change = compare_rates(
            MeasuredSide(items, a), MeasuredSide(items, b), comparisons=len(couples), like=True
        )
        if change is not None:
            yield a, b, change


def _history(items: MeasuredItems) -> Iterable[tuple[int, MeanInterval]]:
    if items.reviewed > 1:
        for n in sorted(set(np.linspace(2, items.reviewed, _STEPS).astype(int).tolist())):
            interval = interval_of(items.estimate(n=n))
            if interval is not None:
                yield n, interval


def _widened_by_people(items: MeasuredItems, people: int) -> Iterable[str]:
    """Say what the interval for future answers would be by the same people, if much narrower."""
    like = interval_of(items.estimate(like=True))
    same = interval_of(items.estimate(like=True, by_others=False))
    if like and same and like.high - like.low > _WIDER * (same.high - same.low):
        yield (
            f"{people} people reviewed, and others may differ as these do. Marked by these alone, "
            f"future answers have {100 * same.low:.1f} to {100 * same.high:.1f} %. More reviewers, "
            "or items that all of them review, narrow the interval."
        )


def _remarks(items: MeasuredItems, suggestions: Mapping[str, int]) -> Iterable[str]:
    plan = items.plan
    yield f"“Marked by {plan.annotator}” is raw detector output: it includes the detector's errors."
    yield f"{_SAMPLE}{plan.design}, seed {plan.seed}. Estimate: {METHOD}."
    people = {name for item in items.items[: items.reviewed] for name, _ in item.reviews}
    if len(people) == 1:
        yield f"Only {people.pop()} reviewed: no interval covers how other people would judge."
    yield from _widened_by_people(items, len(people))
    if n_seen := int(items.seen.sum()):
        n_judging = int((~items.seen[items.chosen()]).sum())
        yield (
            f"{plan.annotator} learnt from {n_seen:,} of these answers: its marks there are set "
            f"aside, and {counted(n_judging, 'review')} of other answers judge it."
        )
    if suggestions.get("shown"):
        yield (
            f"Suggestions in review: {suggestions_in_words(suggestions)}. They bias reviewers "
            "towards the detector."
        )
    if n_waiting := int(items.waiting[: items.reviewed].sum()):
        yield (
            f"{counted(n_waiting, 'item')} left out, assumed to be like the rest: their reviewers "
            "have not reached them."
        )
    beyond = sum(item.y is not None for item in items.items[items.reviewed :])
    if beyond and items.gap is not None:
        whose = " or ".join(items.awaited) or "anybody"
        yield (
            f"{counted(beyond, 'review')} not counted yet: {items.gap.item_id!r}, an earlier item "
            "of the sample, is not reviewed. In Review, under “Measurement sample”, "
            f"{whose} can do it."
        )
    if items.checks:
        n_reviews = sum(len(item.decided_by) for item in items.checks)
        yield (
            f"{counted(len(items.checks), 'check item')} left out, as the answers are known: the "
            f"rates are those of the other items. {counted(n_reviews, 'review')} of check items "
            f"{'is' if n_reviews == 1 else 'are'} not counted."
        )
    if skipped := sum(item.skipped for item in items.items[: items.reviewed]):
        yield f"{counted(skipped, 'skipped item')} left out, assumed to be like the rest."
    if items.left_out:
        yield f"{counted(items.left_out, 'item')} that {plan.annotator} has not finished left out."


def corrected_table(measured: Measurement) -> ResultTable:
    """Return the share that the detector marked and the corrected rate, for all and each group."""
    plan = measured.plan
    return ResultTable(
        key="raw-and-corrected",
        title=f"What {plan.annotator} marked, and the corrected rate",
        columns=(
            column_of("text", plan.by or "Group", "value"),
            column_of("text", "Which"),
            column_of("share", f"Share of {plan.unit}", "share"),
        ),
        rows=tuple(
            (group.value, kind, share)
            for group in measured.groups
            for kind, share in (
                (f"marked by {plan.annotator}", group.marked),
                ("corrected", group.superpopulation),
            )
            if share is not None
        ),
        chart=Chart(kind="dots", x="share", y="value", group="which"),
    )


def history_table(measured: Measurement) -> ResultTable:
    """Return the corrected rate after each number of reviews, with its interval."""
    return ResultTable(
        key="measurement-history",
        title="The interval after each review",
        columns=(
            column_of("count", "Reviews"),
            column_of("share", "Rate so far", "rate", about=_MARKED),
        ),
        rows=measured.history,
        chart=Chart(kind="line", x="rate", y="reviews"),
        empty="The picture of the shrinking interval begins with the second review.",
    )


def reliability_of(store: Store, dataset: str, plan: MeasurementPlan) -> ResultTable:
    """Return the ``reliability_table`` of what is reviewed so far.

    Raises:
        NotFoundError: there is no such dataset.
    """
    tally = CalibrationTally({plan.annotator: AnnotatorKind.DETECTOR})
    learnt = learnt_from(store, dataset, plan)
    for record in store.records(dataset):
        people = words_that_count(record, plan)
        detector = record.by(plan.annotator)
        if detector is None or answer_hash(record.item) in learnt:
            continue
        if any(person.status is Status.DONE for person in people):
            as_detector = detector.model_copy(update={"kind": AnnotatorKind.DETECTOR})
            relevant = {"annotations": (as_detector, *people)}
            tally.add(record.model_copy(update=relevant))
    return reliability_table(plan, tally.result())


def reliability_table(
    plan: MeasurementPlan, calibrations: Sequence[AnnotatorCalibration]
) -> ResultTable:
    """Return the detector's probabilities against the share of reviewers that marked as much."""
    return calibration_table(calibrations).model_copy(
        update={
            "key": "reliability",
            "title": f"Reliability of {plan.annotator}, by characters of what is reviewed",
            "empty": "A reliability diagram needs a reviewed item.",
            "remarks": (
                "Dashed line: perfect calibration (of characters given .7, reviewers mark 70 %).",
            ),
        }
    )
