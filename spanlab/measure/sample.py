"""The sample of a measurement: its items with marks and reviews, and the order of review."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import UsageError
from spanlab.measure.items import MeasuredItem, measure_item, settled, spread_of_people
from spanlab.measure.powered import Population, RateEstimate, ReviewedSample, estimate_rate
from spanlab.measure.rates import NOTHING_THERE, fields_of, relations_by, values_of
from spanlab.measure.sampling import (
    Array,
    cautious_rho,
    inclusion_probabilities,
    length_sizes,
    random_numbers,
    review_order,
    reviews_for,
    uncertainty_sizes,
)
from spanlab.output.figures import counted, percent
from spanlab.output.tables import MeanInterval
from spanlab.schema import (
    AnnotatorKind,
    DatasetSummary,
    MeasurementPlan,
    Permission,
    QueueQuery,
    Record,
    Status,
    clusters,
)
from spanlab.storage import Store
from spanlab.storage.datasets import check_annotators, summary_of
from spanlab.worklists import check_items, paging

Flags = NDArray[np.bool_]
ALL: Final = "all"  # the group of all items
_MOST_GROUPS: Final = 30
_FEWEST_UNSEEN: Final = 10  # reviewed answers that taught the detector nothing, to use its marks


class MeasuredItems:
    """The items of a dataset that the detector has finished, in the order of their review.

    Answers of several groups to one question come together, so that groups are compared on the
    same questions: then questions are what is drawn.

    Check items are in the ``queue`` of ids alone: who reviews them must not tell them from others.

    Args:
        records: the items of the dataset.
        plan: of the measurement.
        checks: the ids of check items, whose answers are known: no part of what is measured.
        learnt: the ``answer_hash`` of each answer that the detector learnt from. It is right there
            more often than elsewhere, so that its marks on these say nothing of the others.
    """

    def __init__(
        self,
        records: Iterable[Record],
        plan: MeasurementPlan,
        learnt: Collection[str] = (),
        checks: Collection[str] = (),
    ) -> None:
        self.plan, self._learnt = plan, learnt
        read = values_of(plan.by) if plan.by else None
        related = relations_by(plan.cluster)
        items, self.left_out = [], 0
        for record in records:
            group = ALL if read is None else next(iter(read(record)))[0]
            item = measure_item(record, plan, group, learnt, related(record))
            if item is None:
                self.left_out += 1
            else:
                items.append(item)
        items = settled(items, are_placed=not any(item.verdict for item in items))
        even = plan.is_even
        # With uneven odds, sharing one random number would make the two draws dependent.
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
        drawn = review_order(random_numbers(names, plan.seed), self.p, strata)
        self.queue = tuple(items[at].item_id for at in drawn)
        order = [at for at in drawn if items[at].item_id not in checks]
        self.checks = [items[at] for at in drawn if items[at].item_id in checks]
        self.items = [items[at] for at in order]
        self.p = self.p[order]
        groups = sorted({item.group for item in items})
        self.groups = groups if plan.by else []
        self.codes = np.array([groups.index(item.group) for item in self.items], dtype=int)
        _, self.questions = np.unique([names[at] for at in order], return_inverse=True)
        self.clusters = np.array(clusters([item.relations for item in self.items]), dtype=int)
        self.waiting = np.zeros(len(order), dtype=bool)  # for people who have not come that far
        self.awaited: tuple[str, ...] = ()  # whom the first gap is assigned to

    @cached_property
    def columns(self) -> Mapping[str, Array]:
        """The figures of each item, as arrays; y is NaN where nobody has finished it.

        Of an answer that the detector learnt from ``f`` is what it says of the others of the group
        on average, which tells nothing of this one: so it corrects the rate by the others alone,
        without bias since what is reviewed is drawn evenly.
        """
        columns = {
            name: np.array([getattr(item, name) for item in self.items], dtype=float)
            for name in ("y", "x", "f", "size", "skipped")
        }
        if self.seen.any():
            f, size = (
                np.bincount(self.codes, np.where(self.seen, 0, columns[name]))
                for name in ("f", "size")
            )
            usual = (f / np.maximum(size, 1))[self.codes]
            columns["f"] = np.where(self.seen, usual * columns["size"], columns["f"])
        return columns

    @cached_property
    def seen(self) -> Flags:
        """Whether the detector learnt from each item."""
        return np.array([item.seen for item in self.items], dtype=bool)

    @cached_property
    def reviewed(self) -> int:
        """The number of items at the beginning that are reviewed, skipped or waiting without a gap.

        It ends with one that is reviewed or skipped.
        """
        missing = np.isnan(self.columns["y"]) & (self.columns["skipped"] == 0)
        gaps = missing & ~self.waiting
        end = int(gaps.argmax()) if gaps.any() else len(self.items)
        return int(np.flatnonzero(~missing[:end]).max(initial=-1)) + 1

    @property
    def gap(self) -> MeasuredItem | None:
        """The first item that reviews of later ones wait for; None where none do."""
        later = self.items[self.reviewed :]
        waits = any(item.y is not None for item in later)
        flags = zip(later, self.waiting[self.reviewed :], strict=True)
        gaps = (item for item, is_waiting in flags if not is_waiting)
        return next(gaps, None) if waits else None

    @property
    def line(self) -> str:
        """The state in a line, as ``Measurement.line``: by one estimate."""
        rate, like = self.estimate(), interval_of(self.estimate(like=True))
        return state_line(self.plan, interval_of(rate), like, self.missing(rate))

    def refresh(self, record: Record) -> None:
        """Replace an item of the sample after its annotations have changed."""
        for at, item in enumerate(self.items):
            if item.item_id == record.item.id:
                new = measure_item(record, self.plan, item.group, self._learnt, item.relations)
                are_placed = not any(each.verdict for each in self.items)
                (self.items[at],) = settled([new or item], are_placed=are_placed)
        for name in ("columns", "reviewed"):
            self.__dict__.pop(name, None)

    def missing(self, estimate: RateEstimate | None) -> int:
        """Return about how many more reviews the wanted interval needs, after an estimate."""
        plan, interval, items = self.plan, interval_of(estimate), self.items
        guess = interval.mean if interval else marked_share(items)
        rho = cautious_rho(float(estimate.rho), self.reviewed) if estimate else 0.0
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
        by_others: bool = True,
    ) -> RateEstimate | None:
        """Estimate the rate from reviews.

        Args:
            group: of one group of items; None for all.
            n: from the first items of the order; None takes all that are reviewed.
            alone: whether the detector's marks are left out of the estimate.
            like: whether the rate is that of all items like these, not of these themselves.
            by_others: whether other people are to mark those, not the same ones.

        Returns:
            The estimate; None if nothing is reviewed.
        """
        inside, values = self.inside(group), self.columns
        chosen = self.chosen(group, n)
        if not values["x"][chosen].sum():
            return None
        total = values["size"][inside].sum()
        marked = values["f"][inside].sum() / total if total else 0.0
        if self.seen.any():
            few = (~self.seen[chosen]).sum() < _FEWEST_UNSEEN
            alone = alone or few or not self.plan.is_even
        sample = self.sample(chosen, inside, values, n)
        items = len(np.unique(self.questions[inside])) if group is None else int(inside.sum())
        return estimate_rate(
            sample,
            None if alone else marked,
            items=items,
            superpopulation=like,
            population=Population(
                values["f"][inside], values["size"][inside], self.clusters[inside]
            ),
            people=spread_of_people([self.items[at] for at in chosen])
            if like and by_others
            else None,
        )

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
        codes = self.clusters[chosen]
        units, first, place = np.unique(
            self.questions[chosen], return_index=True, return_inverse=True
        )
        if inside.all() and len(units) < len(chosen):
            picked = {name: np.bincount(place, v).astype(float) for name, v in picked.items()}
            pi = np.full(len(units), len(units) / len(np.unique(self.questions)))
            strata, codes = None, codes[first]
        else:
            pi = self._odds_among(n)[chosen] * len(chosen) / max(inside[:n].sum(), 1)
        pi = np.clip(pi, 1e-9, 1)
        return ReviewedSample(
            y=picked["y"],
            f=picked["f"],
            pi=pi,
            x=picked["x"],
            x_detector=picked["size"],
            strata=strata,
            clusters=codes if len(np.unique(codes)) < len(codes) else None,
        )

    @property
    def odds(self) -> Array:
        """The odds of each item of being among those that are reviewed."""
        return np.clip(self._odds_among(self.reviewed), 1e-9, 1)

    def _odds_among(self, n: int) -> Array:
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
        raise UsageError(f"{plan.annotator!r} is measured and cannot review itself")
    summary = summary_of(store, dataset)
    people = set(plan.reviewers or summary.names_of(AnnotatorKind.PERSON))
    if voters := sorted(people & _voters(store, summary).get(plan.annotator, set())):
        raise UsageError(
            f"{plan.annotator!r} was voted from what {', '.join(voters)} marked, who would review "
            "their own marks: measure a detector, or name other reviewers"
        )
    if plan.by == "label":
        raise UsageError(
            "rates are measured by lang, model or a path such as meta.topic, not by label"
        )
    if plan.design == "stratified" and not plan.by:
        raise UsageError("a stratified sample needs the field of its groups: --by lang")
    if plan.by and all(
        value == NOTHING_THERE
        for record in Store(store.database).records(dataset)
        for value, _ in values_of(plan.by)(record)
    ):
        fields = ", ".join(fields_of(store, dataset))
        raise UsageError(f"no item of {dataset!r} has {plan.by}; available: {fields}")
    relations_by(plan.cluster)


def measurable(store: Store, dataset: str) -> tuple[str, ...]:
    """Return whose marks are worth measuring: detectors, and votes that no person took part in.

    Raises:
        NotFoundError: there is no such dataset.
    """
    summary = summary_of(store, dataset)
    voters = _voters(store, summary)
    people = set(summary.names_of(AnnotatorKind.PERSON))
    machines = (AnnotatorKind.DETECTOR, AnnotatorKind.VOTE)
    return tuple(
        annotator.name
        for annotator in summary.annotators
        if annotator.kind in machines
        and annotator.counts.get(Status.DONE)
        and not voters.get(annotator.name, set()) & people
    )


def _voters(store: Store, summary: DatasetSummary) -> Mapping[str, set[str]]:
    """Return by name of a vote whose marks it was made from; without a vote nothing is read."""
    voters: dict[str, set[str]] = defaultdict(set)
    votes = summary.names_of(AnnotatorKind.VOTE)
    for record in store.records(summary.name) if votes else ():
        for annotation in record.annotations:
            if annotation.kind is AnnotatorKind.VOTE:
                voters[annotation.annotator].update(annotation.voters)
    return voters


def learnt_from(store: Store, dataset: str, plan: MeasurementPlan) -> frozenset[str]:
    """Return which answers the measured detector, or those that a vote is of, learnt from."""
    summary = summary_of(store, dataset)
    voters = _voters(store, summary).get(plan.annotator, set())
    return summary.settings.learnt_by({plan.annotator, *voters})


def measurement_queue(store: Store, dataset: str) -> tuple[str, ...]:
    """Return the ids of a measurement's items in the one order of their review."""
    return tuple(item.item_id for item in read_measured(store, dataset).items)


def _flag_waiting(
    store: Store, dataset: str, items: MeasuredItems, checks: Collection[str]
) -> None:
    """Flag the undecided items that are assigned to people who have decided nothing after them.

    Everybody works in the one order of the sample, and nothing of an item decides whose it is: such
    a gap tells nothing of what it leaves out. Nobody has to decide a check item.
    """
    settings, waiting = summary_of(store, dataset).settings, items.waiting
    people = items.plan.reviewers or settings.assigned_to
    shares = {name: share for name in people if (share := settings.share_of(name)) is not None}
    last = {name: at for at, item in enumerate(items.items) for name in item.decided_by}
    beginning = items.items[: max(last.values(), default=0)]
    gaps = [at for at, item in enumerate(beginning) if not item.decided_by] if shares else []
    missing = tuple(items.items[at].item_id for at in gaps)
    owned = {
        name: {
            *paging.positions(
                store, dataset, QueueQuery(reviewer=name, share=share, sample=missing)
            )
        }
        for name, share in shares.items()
    }
    owners_at: dict[int, list[str]] = {}
    for at, position in zip(gaps, store.positions_of(dataset, missing), strict=True):
        owners = [name for name, positions in owned.items() if position in positions]
        waiting[at] = bool(owners) and all(last.get(name, -1) < at for name in owners)
        owners_at[at] = owners
    for at, item in enumerate(items.items):
        waiting[at] |= item.item_id in checks and not item.decided_by
    first = next((at for at in owners_at if not waiting[at]), -1)
    items.awaited = tuple(owners_at.get(first, items.plan.reviewers))


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
    checks: frozenset[str] = frozenset()
    if summary_of(store, dataset).settings.known is not None:
        checks = check_items.check_ids(Store(store.database), dataset)
    # Who may not know which these are sees them counted once they have reviewed them.
    left_out = checks if store.may(Permission.READ, dataset) else ()
    learnt = learnt_from(store, dataset, plan)
    # The sample is drawn from all items, whichever of them are in the list of who asks.
    seen = replace(store.sight(dataset), listed=False)
    records = Store(store.database).seen_with(dataset, seen).records(dataset)
    items = MeasuredItems(records, plan, learnt, left_out)
    if not items.items:
        but = " that is not a check item" if items.checks else ""
        raise UsageError(f"{plan.annotator!r} has finished no item of {dataset!r}{but}")
    if len(items.groups) > _MOST_GROUPS:
        raise UsageError(f"{plan.by} has more than {_MOST_GROUPS} values: choose another field")
    _flag_waiting(Store(store.database), dataset, items, checks)  # whose an item is, by the plan
    return items


def state_line(
    plan: MeasurementPlan, rate: MeanInterval | None, like: MeanInterval | None, n_missing: int
) -> str:
    """Return the state of a measurement in a line.

    Such as ``Rate of these items so far: 7.1 % (95 % CI 4.2 to 10.0); about 40 more reviews for
    ± 2 points.``

    Args:
        plan: the plan, which says how narrow the interval is to be.
        rate: the rate of these answers so far; None without reviews.
        like: that of answers like these.
        n_missing: how many more reviews that needs, about.
    """
    aim = f"± {100 * plan.half_width:g} points"
    if rate is None:
        return f"No reviews yet; about {n_missing:,} for {aim}."
    if like is not None and rate.low == rate.high:
        return (
            f"All reviewed. Future answers: {_with_ends(like)}. These answers, as these people "
            f"marked them: {percent(rate.mean)}."
        )
    interval = _with_ends(rate)
    if n_missing:
        more = counted(n_missing, "more review")
        return f"Rate of these items so far: {interval}; about {more} for {aim}."
    if (rate.high - rate.low) / 2 > plan.half_width:  # as with answers that say nothing of the unit
        return f"Rate of these items: {interval}; all are reviewed, and {aim} is not reached."
    future = ""
    if like is not None and (like.high - like.low) / 2 > plan.half_width:
        future = f" for these answers. Future answers: {_with_ends(like)}"
    return f"Rate of these items so far: {interval}; {aim} is reached{future}."


def _with_ends(rate: MeanInterval) -> str:
    return f"{percent(rate.mean)} (95 % CI {100 * rate.low:.1f} to {100 * rate.high:.1f})"


def marked_share(items: Sequence[MeasuredItem]) -> float:
    """Return the share of the unit that the detector marked, which is no rate; 0 of nothing."""
    return sum(item.marked for item in items) / max(sum(item.size for item in items), 1)


def shown_rate(rate: MeanInterval | None) -> MeanInterval | float | None:
    """Return a rate, without its interval where all was reviewed: no uncertainty from sampling."""
    return rate.mean if rate is not None and rate.low == rate.high else rate


def interval_of(estimate: RateEstimate | None) -> MeanInterval | None:
    """Return an estimate as a mean with its interval; None for None."""
    if estimate is None:
        return None
    return MeanInterval(
        mean=float(estimate.rate), low=float(estimate.low), high=float(estimate.high)
    )
