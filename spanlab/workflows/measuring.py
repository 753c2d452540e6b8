"""How often answers are hallucinated: a detector's marks, corrected by reviews of a sample."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean
from typing import Any, Final, NamedTuple

import numpy as np

from spanlab.errors import UsageError
from spanlab.labels import hard_of
from spanlab.results import (
    Chart,
    Column,
    MeanInterval,
    ResultTable,
    columns_of,
    counted,
    figure,
)
from spanlab.schema import HALLUCINATED, Annotation, AnnotatorKind, MeasurementPlan, Record, Status
from spanlab.scorers.powered import (
    METHOD,
    RateEstimate,
    ReviewedSample,
    difference_interval,
    estimate_rate,
)
from spanlab.scorers.sampling import (
    Array,
    inclusion_probabilities,
    random_numbers,
    review_order,
    reviews_for,
    reviews_for_difference,
    uncertainty_sizes,
)
from spanlab.storage import Store
from spanlab.workflows.datasets import check_annotators, summary_of
from spanlab.workflows.item_fields import values_of

__all__ = [
    "GroupMeasurement",
    "Measurement",
    "MeasurementPlan",
    "measure",
    "measurement_queue",
    "plan_measurement",
]

_ALL: Final = "all"
_STEPS: Final = 24  # points of the history
_MOST_GROUPS: Final = 30
_DIFFERENCE: Final = 0.05


class MeasuredItem(NamedTuple):
    """An item of the population: what the detector says (``f``; ``marked`` by its own decision).

    ``y`` of ``x`` is what people say, None where nobody has finished it.
    """

    item_id: str
    key: str
    group: str
    f: float
    marked: float
    size: float
    doubt: float
    y: float | None
    x: float
    skipped: bool


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
    after so many reviews; ``more`` about how many are missing.
    """

    dataset: str
    plan: MeasurementPlan
    groups: tuple[GroupMeasurement, ...]
    pairs: tuple[tuple[str, str, MeanInterval], ...]
    history: tuple[tuple[int, MeanInterval], ...]
    more: int
    for_difference: int
    remarks: tuple[str, ...]

    @property
    def rate(self) -> GroupMeasurement:
        """The rate of all items."""
        return self.groups[0]

    @property
    def line(self) -> str:
        """The state in a line: ``so far .071 [.042, .100], about 40 more for ± .020``."""
        return _line(self.plan, self.rate.finite, self.more)

    def tables(self) -> tuple[ResultTable, ...]:
        """Return rates by group, their differences, and how the interval shrank."""
        plan = self.plan
        corrected = Column(key="rate", title="Rate", unit="share")
        raw = Column(key="marked", title=f"Marked by {plan.annotator}", unit="share")
        tables = [
            ResultTable(
                key="measurement",
                title=f"Hallucinated {plan.unit} of {self.dataset}: {self.line}",
                columns=(
                    Column(key="value", title=plan.by or "Items"),
                    *columns_of("count", "Items", "Reviews"),
                    raw,
                    corrected,
                    Column(key="like-these", title="Answers like these", unit="share"),
                    Column(key="alone", title="Reviews alone", unit="share"),
                ),
                rows=tuple(
                    (
                        group.value,
                        group.items,
                        group.reviews,
                        group.marked,
                        group.finite,
                        group.superpopulation,
                        group.alone,
                    )
                    for group in self.groups
                ),
                remarks=self.remarks,
                chart=Chart(kind="dots", x="rate", y="value"),
            )
        ]
        if self.pairs:
            tables.append(
                ResultTable(
                    key="measurement-pairs",
                    title="Differences of rates",
                    columns=(
                        *columns_of("text", "Value", "minus"),
                        Column(key="difference", title="Difference", unit="difference"),
                    ),
                    rows=self.pairs,
                    remarks=(
                        f"All {counted(len(self.pairs), 'interval')} hold together with 95 % "
                        "(Bonferroni).",
                    ),
                )
            )
        return tuple(tables)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        groups = [
            {
                **vars(group),
                **{
                    key: value and value.model_dump()
                    for key, value in vars(group).items()
                    if key in {"finite", "superpopulation", "alone"}
                },
            }
            for group in self.groups
        ]
        return {
            "dataset": self.dataset,
            "plan": self.plan.model_dump(),
            "line": self.line,
            "method": METHOD,
            "groups": groups,
            "pairs": [{"a": a, "b": b, **d.model_dump()} for a, b, d in self.pairs],
            "history": [{"reviews": n, **interval.model_dump()} for n, interval in self.history],
            "more": self.more,
            "for_difference": self.for_difference,
            "remarks": list(self.remarks),
        }


class MeasuredItems:
    """The items of a dataset that the detector has finished, in the order of their review."""

    def __init__(self, records: Iterable[Record], plan: MeasurementPlan) -> None:
        self.plan = plan
        read = values_of(plan.by) if plan.by else None
        seen, self.left_out = [], 0
        for record in records:
            group = _ALL if read is None else next(iter(read(record)))[0]
            item = _measured(record, plan, group)
            if item is None:
                self.left_out += 1
            else:
                seen.append(item)
        keys = Counter(item.key for item in seen)
        names = [item.key if keys[item.key] == 1 else item.item_id for item in seen]
        doubts = np.array([item.doubt for item in seen])
        even = plan.design != "uncertainty"
        self.p = np.ones(len(seen)) if even else uncertainty_sizes(doubts)
        strata = [item.group for item in seen] if plan.design == "stratified" else None
        order = review_order(random_numbers(names, plan.seed), self.p, strata)
        self.items = [seen[at] for at in order]
        self.p = self.p[order]
        groups = sorted({item.group for item in seen})
        self.groups = groups if plan.by else []
        self.codes = np.array([groups.index(item.group) for item in self.items], dtype=int)

    @cached_property
    def reviewed(self) -> int:
        """How long the beginning is that is reviewed (or skipped) without a gap."""
        for at, item in enumerate(self.items):
            if item.y is None and not item.skipped:
                return at
        return len(self.items)

    @property
    def line(self) -> str:
        """The state in a line, as ``Measurement.line``: by one estimate."""
        found = self.estimate()
        return _line(self.plan, _interval(found), self.missing(found))

    def refresh(self, record: Record) -> None:
        """Take over what people say of an item now."""
        for at, item in enumerate(self.items):
            if item.item_id == record.item.id:
                self.items[at] = _measured(record, self.plan, item.group) or item
                self.__dict__.pop("reviewed", None)

    def missing(self, found: RateEstimate | None) -> int:
        """Return about how many reviews are missing after an estimate of all items."""
        plan, interval, items = self.plan, _interval(found), self.items
        guess = interval.mean if interval else _marked(items)
        rho = float(found.rho) if found else 0.0
        needed = reviews_for(plan.half_width, guess, rho, items=len(items))
        if interval and (interval.high - interval.low) / 2 <= plan.half_width:
            return 0
        made = sum(item.y is not None for item in items[: self.reviewed])
        return min(max(needed - made, 1), len(items) - self.reviewed)

    def estimate(
        self,
        group: str | None = None,
        n: int | None = None,
        *,
        alone: bool = False,
        like: bool = False,
    ) -> RateEstimate | None:
        """Return the rate from the first n items of the order, of one group of them."""
        n = self.reviewed if n is None else n
        chosen = [
            at
            for at, item in enumerate(self.items[:n])
            if item.y is not None and (group is None or item.group == group)
        ]
        if not chosen:
            return None
        everybody = [item for item in self.items if group is None or item.group == group]
        reached = [item for item in self.items[:n] if group is None or item.group == group]
        pi = self._odds(n)[chosen] * len(chosen) / len(reached)
        picked = [self.items[at] for at in chosen]
        strata = self.codes[chosen] if self.plan.design == "stratified" and not group else None
        sample = ReviewedSample(
            y=np.array([item.y for item in picked], dtype=float),
            f=np.array([item.f for item in picked]),
            pi=np.clip(pi, 1e-9, 1),
            x=np.array([item.x for item in picked]),
            x_detector=np.array([item.size for item in picked]),
            strata=strata,
        )
        if not sum(item.x for item in picked):
            return None
        whole = sum(item.size for item in everybody)
        known = sum(item.f for item in everybody) / whole if whole else 0.0
        return estimate_rate(
            sample, None if alone else known, items=len(everybody), superpopulation=like
        )

    def _odds(self, n: int) -> Array:
        if self.plan.design != "stratified":
            return inclusion_probabilities(self.p, n)
        drawn = np.bincount(self.codes[:n], minlength=self.codes.max() + 1)
        return np.asarray((drawn / np.bincount(self.codes))[self.codes])


def plan_measurement(store: Store, dataset: str, plan: MeasurementPlan) -> None:
    """Store how the rate of a dataset is measured.

    Raises:
        NotFoundError: there is no such dataset, or it lacks the annotator or a reviewer.
        UsageError: the annotator is a reviewer, or the field is none to group by.
    """
    check_plan(store, dataset, plan)
    store.change_settings(dataset, lambda old: old.model_copy(update={"measurement": plan}))


def check_plan(store: Store, dataset: str, plan: MeasurementPlan) -> None:
    """Check that a dataset can be measured by a plan, as ``plan_measurement`` does."""
    check_annotators(summary_of(store, dataset), [plan.annotator])
    if plan.annotator in plan.reviewers:
        raise UsageError(f"{plan.annotator!r} is measured, and no reviewer of itself")
    if plan.by == "label":
        raise UsageError("rates are measured by lang or a path such as meta.model, not by label")
    if plan.design == "stratified" and not plan.by:
        raise UsageError("a stratified sample needs the field of its groups: --by lang")
    if plan.by:
        values_of(plan.by)


def measurement_queue(store: Store, dataset: str) -> tuple[str, ...]:
    """Return the ids of a measurement's items in the one order of their review."""
    return tuple(item.item_id for item in read_measured(store, dataset).items)


def read_measured(store: Store, dataset: str, plan: MeasurementPlan | None = None) -> MeasuredItems:
    """Return the items of a measurement, by default of the one that is stored with the dataset.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: it has no measurement, or the detector has finished none of its items.
    """
    plan = plan or summary_of(store, dataset).settings.measurement
    if plan is None:
        raise UsageError(
            f"{dataset!r} has no measurement yet: spanlab measure {dataset} --annotator NAME"
        )
    items = MeasuredItems(store.records(dataset), plan)
    if not items.items:
        raise UsageError(f"{plan.annotator!r} has finished no item of {dataset!r}")
    if len(items.groups) > _MOST_GROUPS:
        raise UsageError(f"{plan.by} has more than {_MOST_GROUPS} values: choose another field")
    return items


def measure(store: Store, dataset: str, plan: MeasurementPlan | None = None) -> Measurement:
    """Return the state of a dataset's measurement, or what it would be by another plan.

    Raises:
        NotFoundError: there is no such dataset.
        UsageError: it has no measurement, the plan cannot be, or the detector has finished none of
            the dataset's items.
    """
    if plan is not None:
        check_plan(store, dataset, plan)
    items = read_measured(store, dataset, plan)
    plan = items.plan
    estimates = {value: items.estimate(value) for value in items.groups}
    groups = [_group(items, None), *(_group(items, value) for value in items.groups)]
    rate = groups[0]
    guess = rate.finite.mean if rate.finite else rate.marked
    return Measurement(
        dataset=dataset,
        plan=plan,
        groups=tuple(groups),
        pairs=tuple(_pairs(estimates)),
        history=tuple(_history(items)),
        more=items.missing(items.estimate()),
        for_difference=reviews_for_difference(_DIFFERENCE, guess, rate.rho),
        remarks=tuple(_remarks(items, rate)),
    )


def _line(plan: MeasurementPlan, found: MeanInterval | None, more: int) -> str:
    aim = f"± {figure(plan.half_width)}"
    if found is None:
        return f"no reviews yet, about {more:,} for {aim}"
    interval = f"{figure(found.mean)} [{figure(found.low)}, {figure(found.high)}]"
    return f"so far {interval}, " + (
        f"about {more:,} more for {aim}" if more else f"{aim} is reached"
    )


def _marked(items: Sequence[MeasuredItem]) -> float:
    return sum(item.marked for item in items) / max(sum(item.size for item in items), 1)


def _group(items: MeasuredItems, value: str | None) -> GroupMeasurement:
    inside = [item for item in items.items if value is None or item.group == value]
    first = items.items[: items.reviewed]
    finite = items.estimate(value)
    return GroupMeasurement(
        value=value or _ALL,
        items=len(inside),
        reviews=sum(item.y is not None and value in {None, item.group} for item in first),
        marked=_marked(inside),
        finite=_interval(finite),
        superpopulation=_interval(items.estimate(value, like=True)),
        alone=_interval(items.estimate(value, alone=True)),
        rho=float(finite.rho) if finite else 0.0,
    )


def _interval(found: RateEstimate | None) -> MeanInterval | None:
    if found is None:
        return None
    return MeanInterval(mean=float(found.rate), low=float(found.low), high=float(found.high))


def _pairs(
    estimates: Mapping[str, RateEstimate | None],
) -> Iterable[tuple[str, str, MeanInterval]]:
    known = {value: found for value, found in estimates.items() if found is not None}
    couples = list(combinations(known, 2))
    for a, b in couples:
        mean, low, high = difference_interval(known[a], known[b], comparisons=len(couples))
        yield a, b, MeanInterval(mean=mean, low=low, high=high)


def _history(items: MeasuredItems) -> Iterable[tuple[int, MeanInterval]]:
    if items.reviewed > 1:
        for n in sorted(set(np.linspace(2, items.reviewed, _STEPS).astype(int).tolist())):
            interval = _interval(items.estimate(n=n))
            if interval is not None:
                yield n, interval


def _remarks(items: MeasuredItems, rate: GroupMeasurement) -> Iterable[str]:
    plan = items.plan
    yield f"“Marked by {plan.annotator}” is no rate: the detector's own errors are in it."
    yield f"Sample: {plan.design}, seed {plan.seed}. Estimate: {METHOD}."
    if plan.show_suggestions:
        yield "Reviewers saw the detector's suggestions, which pulls them towards it."
    beyond = sum(item.y is not None for item in items.items[items.reviewed :])
    if beyond:
        yield f"{counted(beyond, 'review')} after the first gap of the queue do not count yet."
    if skipped := sum(item.skipped for item in items.items[: items.reviewed]):
        yield f"{counted(skipped, 'skipped item')} left out, as if they were like the others."
    if items.left_out:
        yield f"{counted(items.left_out, 'item')} that {plan.annotator} has not finished left out."


def is_reviewer(said: Annotation, plan: MeasurementPlan) -> bool:
    """Say whether an annotation is one whose word counts: of a reviewer, or of any person."""
    if said.annotator == plan.annotator:
        return False
    if plan.reviewers:
        return said.annotator in plan.reviewers
    return said.kind is AnnotatorKind.PERSON


def _measured(record: Record, plan: MeasurementPlan, group: str) -> MeasuredItem | None:
    detector = record.by(plan.annotator)
    if detector is None or detector.status is not Status.DONE:
        return None
    people = [said for said in record.annotations if is_reviewer(said, plan)]
    done = [said for said in people if said.status is Status.DONE]
    if plan.unit == "claims":
        done = [said for said in done if said.claims]
    truths = [_unit(said, plan.unit, len(record.item.answer)) for said in done]
    marked, size = _unit(detector, plan.unit, len(record.item.answer))
    prob = max((span.prob for span in detector.spans), default=0.0)
    expected = {
        "answers": prob,
        "characters": sum((span.end - span.start) * span.prob for span in detector.spans),
        "claims": marked,
    }
    item = record.item
    return MeasuredItem(
        item_id=item.id,
        key=f"{item.lang}\0{item.question}" if item.question else item.id,
        group=group,
        f=expected[plan.unit],
        marked=marked,
        size=size,
        doubt=prob,
        y=fmean(y for y, _ in truths) if truths else None,
        x=fmean(x for _, x in truths) if truths else size,
        skipped=not truths and any(said.status is not Status.NOT_ANNOTATED for said in people),
    )


def _unit(said: Annotation, unit: str, length: int) -> tuple[float, float]:
    """Return how much an annotator finds hallucinated, of how much."""
    if unit == "claims":
        return sum(claim.verdict in HALLUCINATED for claim in said.claims), len(said.claims)
    marked: Sequence[tuple[int, int]] = list(hard_of(said))
    if unit == "answers":
        return float(bool(marked)), 1.0
    return sum(end - start for start, end in marked), length
