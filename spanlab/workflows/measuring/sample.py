"""The sample of a measurement: its items with marks and reviews, and the order of review."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from statistics import fmean
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.errors import UsageError
from spanlab.figures import figure
from spanlab.labels import hard_of
from spanlab.results import MeanInterval
from spanlab.schema import HALLUCINATED, Annotation, AnnotatorKind, MeasurementPlan, Record, Status
from spanlab.scorers.powered import RateEstimate, ReviewedSample, estimate_rate
from spanlab.scorers.sampling import (
    Array,
    inclusion_probabilities,
    length_sizes,
    random_numbers,
    review_order,
    reviews_for,
    uncertainty_sizes,
)
from spanlab.storage import Store
from spanlab.workflows.analysis.rates import values_of
from spanlab.workflows.datasets import check_annotators, summary_of

Flags = NDArray[np.bool_]
ALL: Final = "all"  # the group of all items
_MOST_GROUPS: Final = 30


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


class MeasuredItems:
    """The items of a dataset that the detector has finished, in the order of their review.

    Answers of several groups to one question come together, so that groups are compared on the
    same questions: then questions are what is drawn.
    """

    def __init__(self, records: Iterable[Record], plan: MeasurementPlan) -> None:
        self.plan = plan
        read = values_of(plan.by) if plan.by else None
        items, self.left_out = [], 0
        for record in records:
            group = ALL if read is None else next(iter(read(record)))[0]
            item = _measure_item(record, plan, group)
            if item is None:
                self.left_out += 1
            else:
                items.append(item)
        even = plan.is_even
        # With uneven odds one number for two items would draw the one because of the other.
        keys = Counter((item.key, item.group if even else "") for item in items)
        single = [keys[item.key, item.group if even else ""] == 1 for item in items]
        names = [
            item.key if alone else item.item_id for item, alone in zip(items, single, strict=True)
        ]
        sizes = {
            "uncertainty": lambda: uncertainty_sizes(np.array([item.doubt for item in items])),
            "length": lambda: length_sizes(np.array([item.size for item in items])),
        }
        self.p = np.ones(len(items)) if even else sizes[plan.design]()
        strata = [item.group for item in items] if plan.design == "stratified" else None
        order = review_order(random_numbers(names, plan.seed), self.p, strata)
        self.items = [items[at] for at in order]
        self.p = self.p[order]
        groups = sorted({item.group for item in items})
        self.groups = groups if plan.by else []
        self.codes = np.array([groups.index(item.group) for item in self.items], dtype=int)
        _, self.questions = np.unique([names[at] for at in order], return_inverse=True)

    @cached_property
    def columns(self) -> Mapping[str, Array]:
        """The figures of each item, as arrays; y is NaN where nobody has finished it."""
        return {
            name: np.array([getattr(item, name) for item in self.items], dtype=float)
            for name in ("y", "x", "f", "size", "skipped")
        }

    @cached_property
    def reviewed(self) -> int:
        """The number of items at the beginning that are reviewed or skipped without a gap."""
        missing = np.isnan(self.columns["y"]) & (self.columns["skipped"] == 0)
        return int(missing.argmax()) if missing.any() else len(self.items)

    @property
    def line(self) -> str:
        """The state in a line, as ``Measurement.line``: by one estimate."""
        estimate = self.estimate()
        return state_line(self.plan, interval_of(estimate), self.missing(estimate))

    def refresh(self, record: Record) -> None:
        """Replace an item of the sample after its annotations have changed."""
        for at, item in enumerate(self.items):
            if item.item_id == record.item.id:
                self.items[at] = _measure_item(record, self.plan, item.group) or item
        for name in ("columns", "reviewed"):
            self.__dict__.pop(name, None)

    def missing(self, estimate: RateEstimate | None) -> int:
        """Return about how many more reviews the wanted interval needs, after an estimate."""
        plan, interval, items = self.plan, interval_of(estimate), self.items
        guess = interval.mean if interval else marked_share(items)
        rho = float(estimate.rho) if estimate else 0.0
        needed = reviews_for(plan.half_width, guess, rho, items=len(items))
        if interval and (interval.high - interval.low) / 2 <= plan.half_width:
            return 0
        n_reviewed = sum(item.y is not None for item in items[: self.reviewed])
        return min(max(needed - n_reviewed, 1), len(items) - self.reviewed)

    def inside(self, group: str | None = None) -> Flags:
        """Return a flag for each item: whether it is of a group; all are for None."""
        if group is None:
            return np.ones(len(self.items), dtype=bool)
        return np.array([item.group == group for item in self.items], dtype=bool)

    def estimate(
        self,
        group: str | None = None,
        n: int | None = None,
        *,
        alone: bool = False,
        like: bool = False,
    ) -> RateEstimate | None:
        """Estimate the rate from reviews.

        Args:
            group: of one group of items; None for all.
            n: from the first items of the order; None takes all that are reviewed.
            alone: whether the detector's marks are left out of the estimate.
            like: whether the rate is that of all items like these, not of these themselves.

        Returns:
            The estimate; None if nothing is reviewed.
        """
        inside, values = self.inside(group), self.columns
        chosen = self.chosen(group, n)
        if not values["x"][chosen].sum():
            return None
        total = values["size"][inside].sum()
        marked = values["f"][inside].sum() / total if total else 0.0
        sample = self.sample(chosen, inside, values, n)
        items = len(np.unique(self.questions[inside])) if group is None else int(inside.sum())
        return estimate_rate(sample, None if alone else marked, items=items, superpopulation=like)

    def chosen(self, group: str | None = None, n: int | None = None) -> NDArray[np.intp]:
        """Return the positions of reviewed items among the first n of the order, of one group."""
        counted = self.inside(group) & ~np.isnan(self.columns["y"])
        return np.flatnonzero(counted[: self.reviewed if n is None else n])

    def sample(
        self,
        chosen: NDArray[np.intp],
        inside: Flags,
        values: Mapping[str, Array],
        n: int | None = None,
    ) -> ReviewedSample:
        """Return the chosen items as a sample with their odds of being drawn.

        Answers to one question are one unit where items of all groups are chosen.
        """
        n = self.reviewed if n is None else n
        picked = {name: values[name][chosen] for name in ("y", "f", "x", "size")}
        strata = self.codes[chosen] if self.plan.design == "stratified" and inside.all() else None
        units, place = np.unique(self.questions[chosen], return_inverse=True)
        if inside.all() and len(units) < len(chosen):
            picked = {name: np.bincount(place, v).astype(float) for name, v in picked.items()}
            pi = np.full(len(units), len(units) / len(np.unique(self.questions)))
            strata = None
        else:
            pi = self._odds(n)[chosen] * len(chosen) / max(inside[:n].sum(), 1)
        pi = np.clip(pi, 1e-9, 1)
        return ReviewedSample(
            y=picked["y"],
            f=picked["f"],
            pi=pi,
            x=picked["x"],
            x_detector=picked["size"],
            strata=strata,
        )

    def _odds(self, n: int) -> Array:
        if self.plan.design != "stratified":
            return inclusion_probabilities(self.p, n)
        drawn = np.bincount(self.codes[:n], minlength=self.codes.max() + 1)
        return np.asarray((drawn / np.bincount(self.codes))[self.codes])


def plan_measurement(store: Store, dataset: str, plan: MeasurementPlan) -> None:
    """Store the plan of a dataset's measurement.

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


def is_reviewer(annotation: Annotation, plan: MeasurementPlan) -> bool:
    """Say whether an annotation counts as a review: of the plan's reviewers, or of any person."""
    if annotation.annotator == plan.annotator:
        return False
    if plan.reviewers:
        return annotation.annotator in plan.reviewers
    return annotation.kind is AnnotatorKind.PERSON


def state_line(plan: MeasurementPlan, rate: MeanInterval | None, n_missing: int) -> str:
    """Return the state of a measurement in a line.

    Args:
        plan: the plan, which says how narrow the interval is to be.
        rate: the rate so far; None without reviews.
        n_missing: how many more reviews that needs, about.
    """
    aim = f"± {figure(plan.half_width)}"
    if rate is None:
        return f"no reviews yet, about {n_missing:,} for {aim}"
    interval = f"{figure(rate.mean)} [{figure(rate.low)}, {figure(rate.high)}]"
    return f"so far {interval}, " + (
        f"about {n_missing:,} more for {aim}" if n_missing else f"{aim} is reached"
    )


def marked_share(items: Sequence[MeasuredItem]) -> float:
    """Return the share of the unit that the detector marked, which is no rate; 0 of nothing."""
    return sum(item.marked for item in items) / max(sum(item.size for item in items), 1)


def interval_of(estimate: RateEstimate | None) -> MeanInterval | None:
    """Return an estimate as a mean with its interval; None for None."""
    if estimate is None:
        return None
    return MeanInterval(
        mean=float(estimate.rate), low=float(estimate.low), high=float(estimate.high)
    )


def _measure_item(record: Record, plan: MeasurementPlan, group: str) -> MeasuredItem | None:
    detector = record.by(plan.annotator)
    if detector is None or detector.status is not Status.DONE:
        return None
    people = [annotation for annotation in record.annotations if is_reviewer(annotation, plan)]
    finished = [person for person in people if person.status is Status.DONE]
    if plan.unit == "claims":
        finished = [person for person in finished if person.claims]
    truths = [_unit(annotation, plan.unit, len(record.item.answer)) for annotation in finished]
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
        skipped=not truths and any(person.status is not Status.NOT_ANNOTATED for person in people),
    )


def _unit(annotation: Annotation, unit: str, length: int) -> tuple[float, float]:
    """Return how much of an answer an annotation marks, and its size, both in the plan's unit."""
    if unit == "claims":
        return sum(claim.verdict in HALLUCINATED for claim in annotation.claims), len(
            annotation.claims
        )
    marked: Sequence[tuple[int, int]] = list(hard_of(annotation))
    if unit == "answers":
        return float(bool(marked)), 1.0
    return sum(end - start for start, end in marked), length
