"""The reliability of people: sensitivity and specificity of their marks, per character."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations, pairwise
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import UsageError
from spanlab.output.figures import counted
from spanlab.output.tables import ITEMS, MeanInterval, ResultTable, column_of, table_of
from spanlab.schema import Annotation, AnnotatorKind, Record
from spanlab.scoring.intervals import wilson
from spanlab.scoring.raters import RaterModel, dawid_skene
from spanlab.text.labels import hard_of

__all__ = ["RaterQuality", "RaterReport", "rate_raters"]

Array = NDArray[np.float64]
_LEAST: Final = 0.01  # weight of who is no better than chance: an item may have no other voter
_CHANCE: Final = 0.2  # sensitivity + specificity - 1 below which marks say next to nothing
_IDENTIFIED: Final = 3  # people from whom on their agreement tells how reliable each is
_CAMP: Final = 2  # people of whom a camp has at least so many
_ENOUGH: Final = 10  # items below which an estimate, or two people saying the same, may be chance
_TWO_CAMPS: Final = 0.2  # kappa within both camps above that across: no weights without gold labels
_DIFFER: Final = 0.1  # … which is worth a remark
_GROUPS: Final = 20  # of items, one left out at a time: few enough to estimate all raters as often
# Share of the characters that either of two people marks which both mark: from here on the model's
# assumption that people err independently is plainly wrong. Honest people reach .9 at most.
_SAME: Final = 0.95


@dataclass(frozen=True)
class RaterQuality:
    """A person, per character: from agreement and known answers together, and on the latter alone.

    Without three people agreement tells nobody's reliability: then only the latter is there.
    ``known`` is the number of items with gold labels; None for a share of nothing. ``same_as`` are
    others who say the same: all of them count as one person, whose weight they share.
    """

    name: str
    items: int
    sensitivity: float | None
    specificity: float | None
    sensitivity_interval: tuple[float, float] | None
    specificity_interval: tuple[float, float] | None
    known: int
    known_sensitivity: float | None
    known_specificity: float | None
    same_as: tuple[str, ...] = ()

    @property
    def weight(self) -> float:
        """The weight in a vote: sensitivity + specificity - 1, which is 0 for chance.

        What is known of somebody counts alone once it is enough: it assumes nothing of others.
        """
        sensitivity, specificity = self.sensitivity, self.specificity
        if self.known >= _ENOUGH and None not in {self.known_sensitivity, self.known_specificity}:
            sensitivity = self.known_sensitivity or 0.0
            specificity = self.known_specificity or 0.0
        if sensitivity is None or specificity is None:
            return 1.0
        return max(sensitivity + specificity - 1, _LEAST) / (1 + len(self.same_as))


@dataclass(frozen=True)
class RaterReport:
    """All persons of a dataset, the most reliable first.

    ``kappa`` is Cohen's of two people, where there are no more. ``camps`` are two groups of people
    who agree with each other and not across, ``apart`` by how much less (in kappa).
    """

    raters: tuple[RaterQuality, ...]
    kappa: float | None = None
    camps: tuple[tuple[str, ...], ...] = ()
    apart: float = 0.0

    @property
    def weights(self) -> dict[str, float]:
        """Weights of a vote, by name: who has finished few items weighs as the others on average.

        Raises:
            UsageError: nobody has finished enough items, or there are two camps and no gold labels
                tell which of them is right.
        """
        known = max((rater.known for rater in self.raters), default=0)
        if self.apart >= _TWO_CAMPS and known < _ENOUGH:
            one, other = (", ".join(camp) for camp in self.camps)
            raise UsageError(
                f"{one} and {other} agree among themselves and not across: give gold labels for "
                f"{_ENOUGH} items, or vote without --weighted"
            )
        weights = {r.name: r.weight for r in self.raters if r.items >= _ENOUGH}
        if not weights:
            raise UsageError(
                f"weights of fewer than {_ENOUGH} items would follow chance, and none of the "
                "voters has finished as many: vote without --weighted"
            )
        average = sum(weights.values()) / len(weights)
        return {rater.name: weights.get(rater.name, average) for rater in self.raters}

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know of these people before they vote."""
        doubtful = [rater.name for rater in self.raters if rater.weight < _CHANCE]
        few = [rater.name for rater in self.raters if rater.items < _ENOUGH]
        same = dict.fromkeys(
            tuple(sorted((rater.name, *rater.same_as))) for rater in self.raters if rater.same_as
        )
        one, other = (", ".join(camp) for camp in self.camps or ((), ()))
        return (
            *(
                (
                    f"{one} and {other} agree among themselves more than across (kappa "
                    f"{self.apart:.2f} lower): they differ in what counts.",
                )
                if self.apart >= _DIFFER
                else ()
            ),
            *(
                (
                    f"Of two people agreement does not tell who is right: kappa {self.kappa:.2f}, "
                    "and both weigh the same without gold labels.",
                )
                if self.kappa is not None
                else ()
            ),
            *((f"Little better than chance: {', '.join(doubtful)}.",) if doubtful else ()),
            *(f"These say the same and count as one: {', '.join(names)}." for names in same),
            *(
                (
                    f"Fewer than {_ENOUGH} items, and so weighted as the others on average: "
                    f"{', '.join(few)}.",
                )
                if few
                else ()
            ),
        )

    def tables(self) -> tuple[ResultTable, ...]:
        """Return a row for each person."""
        doubtful = {rater.name for rater in self.raters if rater.weight < _CHANCE}
        raters = table_of(
            "raters",
            "People as instruments, per character (Dawid and Skene's model)",
            self.raters,
            (column_of("text", "Person"), lambda rater: rater.name),
            (ITEMS, lambda rater: rater.items),
            (
                column_of("share", "Sensitivity"),
                lambda rater: _with_ends(rater.sensitivity, rater.sensitivity_interval),
            ),
            (
                column_of("share", "Specificity"),
                lambda rater: _with_ends(rater.specificity, rater.specificity_interval),
            ),
            (column_of("score", "Weight"), lambda rater: rater.weight),
            (column_of("count", "Gold items"), lambda rater: rater.known),
            (column_of("share", "Sensitivity there"), lambda rater: rater.known_sensitivity),
            (column_of("share", "Specificity there"), lambda rater: rater.known_specificity),
            remarks=(
                "Beyond gold items this rests on agreement: a majority that errs alike is taken "
                "for right, and a person of another taste for unreliable. "
                f"From {counted(_ENOUGH, 'gold item')} on, these alone give the weight.",
                "Intervals are a jackknife's over items; that most err alike is not in them.",
                *self.remarks,
            ),
            tones=["yellow" if rater.name in doubtful else "" for rater in self.raters],
        )
        return (raters,)

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return {
            "raters": [{**asdict(rater), "weight": rater.weight} for rater in self.raters],
            "kappa": self.kappa,
            "camps": self.camps,
            "apart": self.apart,
        }


def _with_ends(mean: float | None, ends: tuple[float, float] | None) -> MeanInterval | None:
    if mean is None or ends is None:
        return None
    return MeanInterval(mean=mean, low=min(mean, ends[0]), high=max(mean, ends[1]))


def rate_raters(records: Iterable[Record], names: Sequence[str] = ()) -> RaterReport:
    """Estimate how reliable people are as annotators.

    Args:
        records: items, some of which several people have finished; gold labels are known answers.
        names: whom to rate; all people if empty.

    Raises:
        UsageError: fewer than two of them have finished anything.
    """
    stretches = _read(records, names)
    if len(stretches.people) < 2:
        raise UsageError(
            "how reliable people are is told by the places that they mark: two of them must have "
            "finished items that way, not by a verdict alone"
        )
    groups = _same(stretches)
    marks = np.column_stack([_first_seen(stretches.marks[:, group]) for group in groups])
    model = dawid_skene(marks, stretches.counts(), truth=stretches.truth)
    others = [
        dawid_skene(marks, stretches.counts(without), truth=stretches.truth, begin=model.posterior)
        for without in range(_GROUPS)
    ]
    raters = [
        _quality(stretches, at, column, group, [model, *others])
        for column, group in enumerate(groups)
        for at in group
    ]
    if len(stretches.people) < _IDENTIFIED:
        raters = [
            replace(
                rater,
                sensitivity=None,
                specificity=None,
                sensitivity_interval=None,
                specificity_interval=None,
            )
            for rater in raters
        ]
    ranked = tuple(sorted(raters, key=lambda rater: -rater.weight))
    kappas = _kappas(marks, stretches.counts())
    if len(stretches.people) < _IDENTIFIED:
        kappa = float(kappas[0, 1]) if len(groups) > 1 else 1.0
        return RaterReport(ranked, kappa=kappa)
    split, apart = two_camps(kappas)
    camps = [
        tuple(
            stretches.people[at]
            for group, side in zip(groups, split, strict=True)
            if side == of
            for at in group
        )
        for of in (True, False)
    ]
    return RaterReport(ranked, camps=tuple(camps) if apart > 0 else (), apart=apart)


def _kappas(marks: Array, counts: Array) -> Array:
    """Return Cohen's kappa of the characters of all pairs; NaN for who has none in common."""
    n = marks.shape[1]
    kappas = np.full((n, n), np.nan)
    for a, b in combinations(range(n), 2):
        both = ~np.isnan(marks[:, a]) & ~np.isnan(marks[:, b])
        weights, one, other = counts[both], marks[both, a], marks[both, b]
        total = weights.sum()
        if not total:
            continue
        same = weights @ (one == other) / total
        p, q = weights @ one / total, weights @ other / total
        chance = p * q + (1 - p) * (1 - q)
        kappas[a, b] = kappas[b, a] = (same - chance) / (1 - chance) if chance < 1 else 1.0
    return kappas


def two_camps(kappas: Array) -> tuple[NDArray[np.bool_], float]:
    """Split annotators into two camps of at least two that agree within more than across.

    They are lined up along the main axis of their agreement, and cut where the gap is widest.

    Args:
        kappas: of all pairs, NaN where unknown.

    Returns:
        A flag for each annotator, and by how much the mean kappa within the less agreeing camp is
        above that across; 0 where no two such camps are.
    """
    n = len(kappas)
    if n < 2 * _CAMP or np.isnan(kappas).all():
        return np.zeros(n, dtype=bool), 0.0
    known = np.where(np.isnan(kappas), _mean(kappas), kappas)
    np.fill_diagonal(known, known[~np.eye(n, dtype=bool)].mean())
    centred = known - known.mean(0) - known.mean(1)[:, None] + known.mean()
    axis = np.linalg.eigh(centred)[1][:, -1]
    ranked = np.argsort(axis)
    best, gap = np.zeros(n, dtype=bool), 0.0
    for first in range(_CAMP, n - _CAMP + 1):
        split = np.isin(np.arange(n), ranked[:first])
        found = _gap(kappas, split)
        if found > gap:
            best, gap = split, found
    return best, gap


def _gap(kappas: Array, split: NDArray[np.bool_]) -> float:
    within = [_mean(kappas[np.ix_(side, side)]) for side in (split, ~split)]
    return float(np.min(within) - _mean(kappas[np.ix_(split, ~split)]))  # NaN where one is unknown


def _mean(kappas: Array) -> float:
    """Return the mean of those that are known; NaN if none is."""
    known = kappas[~np.isnan(kappas)]
    return float(known.mean()) if known.size else np.nan


def _quality(
    stretches: _Stretches, at: int, column: int, group: Sequence[int], models: Sequence[RaterModel]
) -> RaterQuality:
    """Return how good a person is, by the group's column in a model and in its jackknife's."""
    model, *others = models
    items = int(stretches.finished[:, group].any(1).sum())
    return RaterQuality(
        name=stretches.people[at],
        items=int(stretches.finished[:, at].sum()),
        sensitivity=float(model.sensitivity[column]),
        specificity=float(model.specificity[column]),
        sensitivity_interval=_interval(
            model.sensitivity[column], [other.sensitivity[column] for other in others], items
        ),
        specificity_interval=_interval(
            model.specificity[column], [other.specificity[column] for other in others], items
        ),
        known=stretches.known(at),
        known_sensitivity=stretches.known_share(at, of=True),
        known_specificity=stretches.known_share(at, of=False),
        same_as=tuple(stretches.people[other] for other in group if other != at),
    )


def _interval(rate: float, without: Sequence[float], items: int) -> tuple[float, float]:
    """Return Wilson's interval with the variance of the jackknife over groups of items.

    As truth and raters are estimated anew without each group, it allows for errors in both. With
    less than one item's worth of errors their spread says nothing: then an item is one observation.
    """
    variance = (_GROUPS - 1) * float(np.var(without))
    n = rate * (1 - rate) / max(variance, 1e-12)
    if rate * (1 - rate) * items < 1:
        n = min(n, items)
    low, high = wilson(np.asarray(rate), np.asarray(n), _GROUPS - 1)
    return float(low), float(high)


class _Pattern(NamedTuple):
    """Who finished an item, which of them mark a stretch of it, and whether gold labels do."""

    voters: tuple[str, ...]
    markers: frozenset[str]
    gold: bool | None


@dataclass(frozen=True)
class _Stretches:
    """What people say of stretches: each has an item, a pattern, and a length in characters.

    ``marks`` has a row for each pattern and a column for each person (1, 0, NaN for unseen),
    ``truth`` what gold labels say of a pattern, ``finished`` who has finished which item.
    """

    people: tuple[str, ...]
    item: NDArray[np.int64]
    pattern: NDArray[np.int64]
    length: Array
    marks: Array
    truth: Array
    finished: NDArray[np.bool_]

    def counts(self, without: int | None = None) -> Array:
        """Return the characters of each pattern, ``without`` those of a group of items."""
        length = self.length
        if without is not None:
            length = length * (self.item % _GROUPS != without)
        return np.bincount(self.pattern, length, len(self.marks)).astype(float)

    def known(self, at: int) -> int:
        """Return how many items with gold labels this person has finished."""
        inside = ~np.isnan(self.truth) & ~np.isnan(self.marks[:, at])
        return len(np.unique(self.item[inside[self.pattern]]))

    def known_share(self, at: int, *, of: bool) -> float | None:
        """Return the share of known true (else: not true) characters that were told right."""
        told = self.counts() * (self.truth == of) * ~np.isnan(self.marks[:, at])
        right = told * (self.marks[:, at] == of)
        return float(right.sum() / told.sum()) if told.sum() else None


def _read(records: Iterable[Record], names: Sequence[str]) -> _Stretches:
    patterns: dict[_Pattern, int] = {}
    places: list[tuple[int, int, int]] = []
    people: dict[str, None] = {}
    finished_by: list[tuple[str, ...]] = []
    for record in records:
        voting = {
            a.annotator: a
            for a in record.placed
            if (a.annotator in names if names else a.kind is AnnotatorKind.PERSON)
        }
        known = (a for a in record.placed if a.kind is AnnotatorKind.GOLD)
        gold = next((a for a in known if a.annotator not in voting), None)
        voters = tuple(voting)
        people.update(dict.fromkeys(voters))
        said = [*voting.values(), *([gold] if gold else [])]
        for marked, length in _pieces(record.item.answer, said):
            markers = frozenset(voters[at] for at in marked if at < len(voters))
            pattern = _Pattern(voters, markers, len(voters) in marked if gold else None)
            number = patterns.setdefault(pattern, len(patterns))
            places.append((len(finished_by), number, length))
        finished_by.append(voters)
    table = np.array(places, dtype=np.int64).reshape(-1, 3)
    return _Stretches(
        people=tuple(people),
        item=table[:, 0],
        pattern=table[:, 1],
        length=table[:, 2].astype(float),
        marks=np.array([_row(pattern, people) for pattern in patterns], dtype=float),
        truth=np.array([_number(pattern.gold) for pattern in patterns], dtype=float),
        finished=np.array([[name in voters for name in people] for voters in finished_by]),
    )


def _row(pattern: _Pattern, people: Mapping[str, None]) -> list[float]:
    voters = frozenset(pattern.voters)
    return [_number(name in pattern.markers if name in voters else None) for name in people]


def _number(mark: bool | None) -> float:
    return np.nan if mark is None else float(mark)


def _first_seen(marks: Array) -> Array:
    """Return the marks of the first of several people who has any, for each pattern."""
    first = np.argmin(np.isnan(marks), axis=1)
    return np.asarray(marks[np.arange(len(marks)), first])


def _same(stretches: _Stretches) -> list[list[int]]:
    """Return groups of people who say the same: of their marks, and on enough items.

    Copies of one opinion are no witnesses of each other: three of one spammer would outvote five
    honest people, who differ as people do.
    """
    counts, marks = stretches.counts(), stretches.marks
    group = list(range(len(stretches.people)))
    for a, b in combinations(range(len(group)), 2):
        common = int((stretches.finished[:, a] & stretches.finished[:, b]).sum())
        both = counts @ (marks[:, a] + marks[:, b] == 2)
        differ = counts @ (abs(marks[:, a] - marks[:, b]) == 1)
        if common >= _ENOUGH and both and both >= _SAME * (both + differ):
            group = [group[a] if number == group[b] else number for number in group]
    members: dict[int, list[int]] = {}
    for at, number in enumerate(group):
        members.setdefault(number, []).append(at)
    return list(members.values())


def _pieces(answer: str, annotations: Sequence[Annotation]) -> Iterable[tuple[frozenset[int], int]]:
    """Yield the stretches that the same annotators mark, by number, and their lengths."""
    changes: dict[int, Counter[int]] = {0: Counter(), len(answer): Counter()}
    for at, annotation in enumerate(annotations):
        for first, last in hard_of(annotation):
            changes.setdefault(first, Counter())[at] += 1
            changes.setdefault(last, Counter())[at] -= 1
    marked: Counter[int] = Counter()
    for start, end in pairwise(sorted(changes)):
        marked.update(changes[start])
        yield frozenset(at for at, count in marked.items() if count), end - start
