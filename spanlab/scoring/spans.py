"""The scores of one item's spans: IoU, correlation and more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import isnan
from typing import Annotated, Any, Final, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.base.fields import FrozenModel
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels, SoftLabel

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
V = TypeVar("V")


@dataclass(frozen=True)
class _Batch:
    """Items that are scored at once, as columns; a method for each metric, a figure per item.

    Of hard labels both sides empty is 1, one side empty is 0; touching spans count as one. People
    read the methods' docstrings.
    """

    golds: Sequence[ItemLabels]
    preds: Sequence[ItemLabels]
    lengths: Ints

    @cached_property
    def bases(self) -> Ints:
        """Where each item's characters begin on the common axis."""
        return np.cumsum(self.lengths) - self.lengths

    @cached_property
    def wanted(self) -> IntervalTrack:
        """The gold hard labels."""
        return IntervalTrack.of([gold.hard for gold in self.golds], self.bases)

    @cached_property
    def predicted(self) -> IntervalTrack:
        """The predicted hard labels."""
        return IntervalTrack.of([pred.hard for pred in self.preds], self.bases)

    @cached_property
    def common(self) -> Floats:
        """Characters that both sides mark, per item."""
        return self.wanted.common(self.predicted)

    @cached_property
    def n_wanted(self) -> Floats:
        """Characters of the gold labels, per item."""
        return self.wanted.sums(self.wanted.size)

    @cached_property
    def n_found(self) -> Floats:
        """Characters of the predicted labels, per item."""
        return self.predicted.sums(self.predicted.size)

    @cached_property
    def both(self) -> Floats:
        """The characters of both sides added up, per item."""
        return self.n_wanted + self.n_found

    def iou(self) -> Floats:
        """Intersection over union of the characters marked as hallucinated.

        1 is the same characters, 0 none in common.
        """
        return _share(self.common, self.both - self.common, self.both)

    def corr(self) -> Floats:
        """Spearman correlation of the probabilities over all characters.

        1 is the same order, 0 no relation.
        """
        gold = IntervalTrack.of([labels.soft for labels in self.golds], self.bases)
        pred = IntervalTrack.of([labels.soft for labels in self.preds], self.bases)
        return spearman(gold, pred, self.lengths)

    def max_iou(self) -> Floats:
        """Best IoU with any single person; for a person, with any other person."""
        return _max_iou(self.golds, self.predicted, self.bases)

    def precision(self) -> Floats:
        """Share of the marked characters that the reference marks too."""
        return _share(self.common, self.n_found, self.both)

    def recall(self) -> Floats:
        """Share of the reference's characters that are marked."""
        return _share(self.common, self.n_wanted, self.both)

    def f1(self) -> Floats:
        """Harmonic mean of precision and recall, in characters."""
        return _share(2 * self.common, self.both, self.both)

    def span_f1(self) -> Floats:
        """F1 of whole spans with both edges exactly right."""
        return _span_f1(self.wanted, self.predicted)


class Metric(NamedTuple):
    """A metric of spans.

    ``title`` is for people, and so is the docstring of ``of``, which returns a number for each item
    of a batch: NaN for an item that the metric does not apply to.
    """

    title: str
    of: Callable[[_Batch], Floats]

    @property
    def about(self) -> str:
        """What it measures."""
        return " ".join((self.of.__doc__ or "").split())


class PerMetric(FrozenModel, Generic[V]):
    """A value for each metric: whatever scores, compares, tunes or draws reads these fields.

    A metric is added here alone; its type ends in None where an item may lack it.
    """

    iou: Annotated[V, Metric("IoU", _Batch.iou)]
    corr: Annotated[V, Metric("Corr", _Batch.corr)]
    max_iou: Annotated[V | None, Metric("MaxIoU", _Batch.max_iou)]
    precision: Annotated[V, Metric("Precision", _Batch.precision)]
    recall: Annotated[V, Metric("Recall", _Batch.recall)]
    f1: Annotated[V, Metric("F1", _Batch.f1)]
    span_f1: Annotated[V, Metric("Span F1", _Batch.span_f1)]


METRICS: Final = {
    key: metric
    for key, field in PerMetric.model_fields.items()
    for metric in field.metadata
    if isinstance(metric, Metric)
}


class _Scored(FrozenModel):
    id: str
    lang: str


class ItemScore(PerMetric[float], _Scored):
    """The scores of a prediction on one item; ``METRICS`` says what they mean.

    ``cluster`` is the id of the first item that it has something in common with; empty for itself.
    """

    cluster: str = ""


def score_item(gold: ItemLabels, pred: ItemLabels) -> ItemScore:
    """Return all of ``METRICS`` of the prediction for one item.

    Raises:
        InputError: the ids or lengths differ, neither side knows the answer's length, or labels
            reach past the answer; names the id.
    """
    return score_items([(gold, pred)])[0]


def score_items(pairs: Sequence[tuple[ItemLabels, ItemLabels]]) -> list[ItemScore]:
    """Score many items at once, which is much faster than one by one; see ``score_item``."""
    if not pairs:
        return []
    golds, preds = [gold for gold, _ in pairs], [pred for _, pred in pairs]
    lengths = np.array([_check_fit(gold, pred) for gold, pred in pairs], dtype=np.int64)
    batch = _Batch(golds, preds, lengths)
    columns = {key: _known(metric.of(batch)) for key, metric in METRICS.items()}
    return [
        ItemScore(id=gold.id, lang=gold.lang, **dict(zip(columns, row, strict=True)))
        for gold, *row in zip(golds, *columns.values(), strict=True)
    ]


def _known(figures: Floats) -> list[Any]:
    return [None if isnan(figure) else figure for figure in figures.tolist()]


def mark_all(gold: ItemLabels) -> ItemLabels:
    """Return a prediction that marks every character with probability 1; empty for no characters.

    Raises:
        InputError: ``gold`` does not know its answer's length.
    """
    if gold.length is None:
        raise InputError(
            f"item {gold.id!r}: the gold labels do not say how long the answer is",
            expected="gold labels together with their answer",
        )
    if gold.length == 0:
        return mark_none(gold)
    whole = Extent(0, gold.length)
    return replace(gold, soft=(SoftLabel(*whole, 1.0),), hard=(whole,), raters=(), answer=None)


def mark_none(gold: ItemLabels) -> ItemLabels:
    """Return a prediction that marks nothing."""
    return replace(gold, soft=(), hard=(), raters=(), answer=None)


def _share(part: Floats, whole: Floats, either: Floats) -> Floats:
    """``part`` / ``whole``; 1 where neither side has anything, 0 where only the other has."""
    shares: Floats = (either == 0).astype(np.float64)
    np.divide(part, whole, out=shares, where=whole > 0)
    return shares


def _max_iou(golds: Sequence[ItemLabels], predicted: IntervalTrack, bases: Ints) -> Floats:
    counts = np.array([len(gold.raters) for gold in golds])
    item = np.repeat(np.arange(len(golds)), counts)  # of each rater
    raters = IntervalTrack.of([rater for gold in golds for rater in gold.raters], bases[item])
    common = raters.common(predicted)
    either = raters.sums(raters.size) + predicted.sums(predicted.size)[item]
    best = np.zeros(len(golds))
    np.maximum.at(best, item, _share(common, either - common, either))
    best[counts == 0] = np.nan
    return best


def _span_f1(wanted: IntervalTrack, predicted: IntervalTrack) -> Floats:
    spans = wanted.sums(np.ones_like(wanted.start)) + predicted.sums(np.ones_like(predicted.start))
    right = np.zeros_like(wanted.start)
    if len(predicted.start):
        at = np.minimum(np.searchsorted(predicted.start, wanted.start), len(predicted.start) - 1)
        right += (predicted.start[at] == wanted.start) & (predicted.end[at] == wanted.end)
    return _share(2 * wanted.sums(right), spans, spans)


def _check_fit(gold: ItemLabels, pred: ItemLabels) -> int:
    """Return the answer's length once both sides fit it."""
    if gold.id != pred.id:
        raise InputError(
            f"gold of item {gold.id!r} with the prediction for {pred.id!r}",
            expected="pairs with the same id",
        )
    length = pred.length if gold.length is None else gold.length
    if length is None:
        raise InputError(
            f"item {gold.id!r}: neither gold nor prediction says how long the answer is",
            expected="gold labels together with their answer",
        )
    if pred.length is not None and pred.length != length:
        raise InputError(
            f"item {gold.id!r}: the predicted answer has {pred.length} characters, "
            f"the gold answer {length}",
            expected="labels of the same answer",
        )
    for side, labels in (("gold", gold), ("predicted", pred)):
        field, end = "soft_labels", labels.soft[-1].end if labels.soft else 0
        if labels.hard and labels.hard[-1].end > end:
            field, end = "hard_labels", labels.hard[-1].end
        if end > length:
            raise InputError(
                f"item {labels.id!r}: {side} labels end at {end}, past the answer",
                field=field,
                found=end,
                expected=f"at most {length}, the answer's length in characters",
            )
    return length


@dataclass(frozen=True)
class IntervalTrack:
    """Intervals as columns; ``owner`` says which list each comes from, counted from 0.

    Offsets are on the common axis: an item's first character is where the characters of all
    items before it have ended. ``prob`` is 1 for hard labels.
    """

    lists: int
    owner: Ints
    start: Ints
    end: Ints
    prob: Floats

    @classmethod
    def of(
        cls, lists: Sequence[Sequence[Extent] | Sequence[SoftLabel]], bases: Ints
    ) -> IntervalTrack:
        """Lay out ``lists``, each beginning at its place in ``bases``."""
        counts = np.fromiter(map(len, lists), np.int64, len(lists))
        owner = np.repeat(np.arange(len(lists)), counts)
        numbers = np.fromiter(chain.from_iterable(chain.from_iterable(lists)), np.float64)
        columns = numbers.reshape(len(owner), -1) if len(owner) else np.empty((0, 2))
        start = columns[:, 0].astype(np.int64) + bases[owner]
        end = columns[:, 1].astype(np.int64) + bases[owner]
        prob = columns[:, 2] if columns.shape[1] > 2 else np.ones(len(owner))
        return cls(lists=len(lists), owner=owner, start=start, end=end, prob=prob)

    @property
    def size(self) -> Ints:
        """Characters per interval."""
        return self.end - self.start

    def sums(self, values: Ints | Floats) -> Floats:
        """Sum ``values``, one per interval, over each list; exact for whole numbers to 2**53."""
        sums = np.bincount(self.owner, weights=values, minlength=self.lists)
        return sums.astype(np.float64, copy=False)

    def within(self, other: IntervalTrack, weights: Ints) -> Ints:
        """Return per own interval the characters that ``other`` covers, each times its weight.

        The intervals of ``other`` are in order and do not overlap; each has one of ``weights``.
        """
        if not len(other.start):
            return np.zeros_like(self.start)
        through = np.concatenate(([0], np.cumsum(other.size * weights)))

        def before(place: Ints) -> Ints:
            begun = np.searchsorted(other.start, place)
            last = np.maximum(begun - 1, 0)
            beyond = np.where(begun > 0, np.maximum(other.end[last] - place, 0), 0)
            result: Ints = through[begun] - beyond * weights[last]
            return result

        return before(self.end) - before(self.start)

    def common(self, other: IntervalTrack) -> Floats:
        """Return per own list how many of its characters ``other`` covers."""
        return self.sums(self.within(other, np.ones_like(other.start)))


_DIGITS = 8  # the shared task's scorer calls a vector constant when it is so after rounding


def spearman(x: IntervalTrack, y: IntervalTrack, lengths: Ints) -> Floats:
    """Return Spearman's rank correlation of two soft labellings over all characters of each item.

    Characters outside every interval have probability 0; ties share their mean rank. 1.0 means
    that both order all characters alike, 0.0 that the orders have nothing to do with each other,
    -1.0 that one is the other reversed. Where a labelling gives all characters the same
    probability (after rounding to 8 digits) the correlation is undefined, and the shared task's
    rule holds: 1.0 if both are constant, whatever their values, else 0.0. An empty answer counts
    as constant, so it scores 1.0.

    Ranks are counted in whole numbers (twice the distance from the mean rank), so only the last
    division and square root round. ``x`` and ``y`` have flattened soft labels, ``lengths`` each
    item's number of characters.
    """
    x_ranks, y_ranks = _ranks(x, lengths), _ranks(y, lengths)
    # Ranks sum to 0, so with a and b the ranks of probability 0:
    # sum(rx * ry) = sum((rx - a) * (ry - b)) - n * a * b, whose terms are 0 outside common spans.
    products = x.sums(x_ranks.above_zero * x.within(y, y_ranks.above_zero))
    covariance = products - lengths * (x_ranks.zero.astype(np.float64) * y_ranks.zero)
    undefined = x_ranks.constant | y_ranks.constant
    spread = np.sqrt(np.where(undefined, 1, x_ranks.variance * y_ranks.variance))
    both = (x_ranks.constant & y_ranks.constant).astype(np.float64)
    return np.where(undefined, both, np.clip(covariance / spread, -1.0, 1.0))


@dataclass(frozen=True)
class _Ranks:
    """Ranks as twice their distance from the mean of the item's ranks."""

    above_zero: Ints  # per interval: its rank minus that of probability 0
    zero: Ints  # per item: the rank of probability 0
    variance: Floats  # per item: the sum of the squares over its characters
    constant: NDArray[np.bool_]  # per item


def _ranks(track: IntervalTrack, lengths: Ints) -> _Ranks:
    """Rank the groups of equal probability: an item's unmarked characters are its first group."""
    items = np.arange(len(lengths))
    unmarked = lengths - track.sums(track.size).astype(np.int64)
    owner = np.concatenate((items, track.owner))
    prob = np.concatenate((np.zeros(len(items)), track.prob))
    order = np.lexsort((prob, owner))
    owner, prob = owner[order], prob[order]
    size = np.concatenate((unmarked, track.size))[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (prob[1:] != prob[:-1])
    group = np.cumsum(begins) - 1
    sizes = np.add.reduceat(size, np.flatnonzero(begins))
    owner, prob = owner[begins], prob[begins]
    before = np.cumsum(lengths) - lengths  # characters of the items before
    rank = 2 * (np.cumsum(sizes) - sizes - before[owner]) + sizes - lengths[owner]
    first = np.searchsorted(owner, items)
    last = np.searchsorted(owner, items, side="right") - 1
    of_entry = np.empty_like(rank, shape=len(order))
    of_entry[order] = rank[group]
    squares = np.bincount(owner, weights=sizes * rank.astype(np.float64) ** 2)
    lowest = prob[np.where(sizes[first] > 0, first, np.minimum(first + 1, last))]
    return _Ranks(
        above_zero=of_entry[len(items) :] - rank[first][track.owner],
        zero=rank[first],
        variance=squares.astype(np.float64, copy=False),
        constant=np.round(lowest, _DIGITS) == np.round(prob[last], _DIGITS),
    )
