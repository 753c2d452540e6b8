"""How far annotators agree, and runs on the stages of a process.

After Metropolitansky et al. 2025, "VeriTrail", appendix H.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import krippendorff
import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.base.fields import FrozenModel
from spanlab.output.tables import MeanInterval
from spanlab.schema import AnnotatorKind, Record, Relations, Verdict, clusters, relations_in
from spanlab.scoring.claims import coarse
from spanlab.scoring.intervals import t_quantile
from spanlab.scoring.report import Table, mean_of
from spanlab.text.extents import Extent, coverage, intersection, merge, size
from spanlab.text.labels import hard_of


@dataclass(frozen=True)
class ItemMarks:
    """One item under several annotators.

    ``marks`` holds the merged extents of each annotator that finished the item (none if it found
    nothing); an annotator that did not finish it has no entry. ``length`` counts the answer's
    characters. ``relations`` are what the answer may have in common with others.
    """

    id: str
    lang: str
    length: int
    marks: Mapping[str, Sequence[Extent]]
    relations: Relations = field(default_factory=Relations)


class AnnotatorPair(FrozenModel):
    """Two annotators on the ``n`` items that both finished, ``a`` before ``b`` by name.

    ``iou`` and ``f1`` are means over those items of the characters' intersection over union and
    of 2·|common| / (|marked by a| + |marked by b|), which does not depend on who counts as right.
    1 is the same characters on every item, 0 none in common; an item where both marked nothing
    counts 1, where one of them did 0.
    """

    a: str
    b: str
    n: int
    iou: float
    f1: float


class LanguageAgreement(FrozenModel):
    """Krippendorff's alpha on the ``n`` items of one language with two or more annotators."""

    lang: str
    n: int
    alpha: float | None


class AlphaInterval(FrozenModel):
    """Krippendorff's alpha on ``n`` items with its 95 % interval; of one item all are equal."""

    n: int
    alpha: float
    low: float
    high: float


class AgreementReport(FrozenModel):
    """Agreement on the ``n`` items that two or more annotators finished.

    ``alpha`` is Krippendorff's alpha over characters, marked or not marked; annotators may have
    done only some of the items. 1 is perfect agreement, 0 what marking at random in the same
    proportions would give, below 0 systematic disagreement. None where it is undefined: no
    item has two annotators, or all of them marked everything, or all of them nothing.
    """

    n: int
    alpha: float | None
    languages: tuple[LanguageAgreement, ...]
    pairs: tuple[AnnotatorPair, ...]


def rated(record: Record, annotators: Iterable[str] | None = None) -> ItemMarks:
    """Return the marks of those ``annotators`` (None: of all persons) that finished an item.

    Of those who say only whether the answer is hallucinated there are none.
    """
    wanted = None if annotators is None else set(annotators)
    return ItemMarks(
        id=record.item.id,
        lang=record.item.lang,
        length=len(record.item.answer),
        marks={
            annotation.annotator: hard_of(annotation)
            for annotation in record.placed
            if (
                annotation.kind is AnnotatorKind.PERSON
                if wanted is None
                else annotation.annotator in wanted
            )
        },
        relations=relations_in(record.item),
    )


def agreement(items: Iterable[ItemMarks], *, with_pairs: bool = True) -> AgreementReport:
    """Measure the agreement of annotators on a stream of items, each id once.

    Alpha: Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability", nominal data, one unit
    per character. Stretches that the same number of annotators mark are counted, not spelled out,
    so the cost follows the number of spans.

    Args:
        items: read once and not kept.
        with_pairs: whether to look at pairs, too; False leaves them out.

    Returns:
        The agreement; without any item that two annotators finished, 0 items and no pairs.

    Raises:
        InputError: marks reach past the item's answer; names the id.
    """
    sums: dict[str, NDArray[np.float64]] = {}
    counts: Counter[str] = Counter()
    pairs = _PairSums()
    for item in items:
        for annotator, extents in item.marks.items():
            if extents and extents[-1].end > item.length:
                raise InputError(
                    f"item {item.id!r}: the marks of {annotator!r} reach past the answer",
                    found=extents[-1].end,
                    expected=f"at most {item.length}, the answer's length in characters",
                )
        if len(item.marks) < 2:
            continue
        counts[item.lang] += 1
        sums[item.lang] = sums.get(item.lang, np.zeros(3)) + _coincidences(item)
        if with_pairs:
            pairs.add(item.marks)
    return AgreementReport(
        n=counts.total(),
        alpha=_alpha(np.array([np.zeros(3), *sums.values()]).sum(axis=0)),
        languages=tuple(
            LanguageAgreement(lang=lang, n=counts[lang], alpha=_alpha(sums[lang]))
            for lang in sorted(sums)
        ),
        pairs=tuple(pairs.pairs()),
    )


def alpha_interval(items: Iterable[ItemMarks]) -> AlphaInterval | None:
    """Measure alpha as ``agreement`` does, with its 95 % interval.

    A jackknife leaves out one item at a time, or all that belong together (``schema.clusters``),
    and from three annotators on one annotator at a time: then the interval is for other items and
    other annotators like these, else for these two alone (Student's t with Satterthwaite's degrees
    of freedom).

    Returns:
        None where alpha is undefined, as without an item that two annotators finished.
    """
    rated = [item for item in items if len(item.marks) > 1]
    table = np.array([_coincidences(item) for item in rated])
    alpha = _alpha(table.sum(axis=0)) if len(table) else None
    if alpha is None:
        return None
    names = sorted({name for item in rated for name in item.marks})
    codes = np.unique(clusters([item.relations for item in rated]), return_inverse=True)[1]
    together = np.zeros((codes.max() + 1, 3))
    np.add.at(together, codes, table)
    without_one = [_alphas(table.sum(axis=0) - together)]
    if len(names) > 2:
        without_one.append(_alphas(np.array([_without(rated, name) for name in names])))
    parts = [_jackknife(alphas) for alphas in without_one]
    variance = sum(part for part, _ in parts)
    df = variance**2 / sum(part**2 / df for part, df in parts) if variance else 1.0
    half = t_quantile(df) * variance**0.5
    low, high = max(alpha - half, -1.0), min(alpha + half, 1.0)
    return AlphaInterval(n=len(table), alpha=alpha, low=low, high=high)


def _without(items: Sequence[ItemMarks], name: str) -> NDArray[np.float64]:
    """Return the sums of coincidences without an annotator's marks."""
    sums = np.zeros(3)
    for item in items:
        others = {other: marks for other, marks in item.marks.items() if other != name}
        if len(others) > 1:
            sums += _coincidences(replace(item, marks=others))
    return sums


def _jackknife(without_one: NDArray[np.float64]) -> tuple[float, int]:
    """Return the variance of a figure by its values without each part, and degrees of freedom."""
    known = without_one[~np.isnan(without_one)]
    n = len(known)
    variance = (n - 1) / n * float(np.square(known - known.mean()).sum()) if n > 1 else 0.0
    return variance, max(n - 1, 1)


def edge_share(items: Iterable[ItemMarks]) -> float | None:
    """Return which share of what pairs of annotators mark differently is edges of common marks.

    Of the characters that one of two marks and the other does not, those count as edges that stand
    in one run with characters that both mark: the two mean the same mistake. The others are marks
    of something else.

    Returns:
        A share in [0, 1]; None where no two annotators differ.
    """
    edges = others = 0
    for item in items:
        for one, other in combinations(item.marks.values(), 2):
            common = deque(intersection(one, other))
            for run in merge([*one, *other]):
                both = 0
                while common and common[0].end <= run.end:  # each lies in one run
                    both += size([common.popleft()])
                differing = run.end - run.start - both
                edges, others = (edges + differing, others) if both else (edges, others + differing)
    return edges / (edges + others) if edges + others else None


def verdict_alpha(claims: Iterable[Sequence[Verdict]]) -> float | None:
    """Measure the agreement of annotators on verdicts: Krippendorff's alpha, nominal.

    Args:
        claims: for each claim the verdicts that its annotators gave. Where one of all is
            "not-supported", what it covers counts as the same.

    Returns:
        Alpha, as in ``AgreementReport``; None where no claim has two verdicts, or all verdicts are
        one.
    """
    rated = [verdicts for verdicts in claims if len(verdicts) > 1]
    used = {verdict for verdicts in rated for verdict in verdicts}
    counts = [Counter(coarse(verdict, used) for verdict in verdicts) for verdicts in rated]
    values = sorted({verdict for count in counts for verdict in count})
    if len(values) < 2:
        return None
    table = np.array([[count[value] for value in values] for count in counts])
    return float(krippendorff.alpha(value_counts=table, level_of_measurement="nominal"))


def clustered(pairs: Sequence[AnnotatorPair]) -> tuple[str, ...]:
    """Return the annotators of ``pairs`` such that those who agree stand side by side.

    Average linkage over 1 - IoU (Sokal & Michener 1958): the two closest groups are joined until
    one is left. Two that have no item in common are as far apart as two annotators are on average.
    """
    names = sorted({name for pair in pairs for name in (pair.a, pair.b)})
    if len(names) < 3:
        return tuple(names)
    place = {name: at for at, name in enumerate(names)}
    far = np.full((len(names), len(names)), 1 - float(np.mean([pair.iou for pair in pairs])))
    for pair in pairs:
        far[place[pair.a], place[pair.b]] = far[place[pair.b], place[pair.a]] = 1 - pair.iou
    np.fill_diagonal(far, np.inf)
    groups = [[name] for name in names]
    for _ in names[1:]:
        a, b = sorted(divmod(int(far.argmin()), len(names)))
        sizes = len(groups[a]), len(groups[b])
        joined = (far[a] * sizes[0] + far[b] * sizes[1]) / sum(sizes)
        far[a], far[:, a] = joined, joined
        far[b], far[:, b], far[a, a] = np.inf, np.inf, np.inf
        groups[a] += groups[b]
    return tuple(groups[0])


def pairwise_ious(marks: Sequence[Sequence[Extent]]) -> NDArray[np.float64]:
    """Return the IoU of the characters of all pairs of merged lists, of two empty ones 1.

    Characters between two ends of marks are the same to everybody: the cost does not follow the
    length of the answer.
    """
    ends = sorted({end for extents in marks for extent in extents for end in extent})
    at = {end: index for index, end in enumerate(ends)}
    # Whole numbers: so small products of floats would start threads, which cost more than they do.
    covers = np.zeros((len(marks), max(len(ends) - 1, 0)), dtype=np.int64)
    for row, extents in enumerate(marks):
        for start, end in extents:
            covers[row, at[start] : at[end]] = 1
    common = (
        (covers * np.diff(ends)) @ covers.T if ends else np.zeros((len(marks),) * 2, dtype=np.int64)
    )
    sizes = np.diagonal(common)
    either = sizes[:, None] + sizes - common
    ious: NDArray[np.float64] = np.ones(common.shape)
    np.divide(common, either, out=ious, where=either > 0)
    return ious


class _PairSums:
    """Running sums of all pairs of annotators: items, IoU and F1, as square tables."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}
        self._sums = np.zeros((3, 0, 0))

    def add(self, marks: Mapping[str, Sequence[Extent]]) -> None:
        places = [self._places.setdefault(name, len(self._places)) for name in marks]
        missing = len(self._places) - self._sums.shape[1]
        if missing > 0:
            room = (0, missing + self._sums.shape[1])  # twice as much, so that it is rarely done
            self._sums = np.pad(self._sums, ((0, 0), room, room))
        shared = pairwise_ious(list(marks.values()))
        # F1 is of the same two sets of characters, so it follows from their IoU.
        figures = np.stack([np.ones_like(shared), shared, 2 * shared / (1 + shared)])
        self._sums[:, np.array(places)[:, None], places] += figures

    def pairs(self) -> Iterator[AnnotatorPair]:
        for a, b in combinations(sorted(self._places), 2):
            n, shared, f1 = self._sums[:, self._places[a], self._places[b]].tolist()
            if n:
                yield AnnotatorPair(a=a, b=b, n=int(n), iou=shared / n, f1=f1 / n)


def _coincidences(item: ItemMarks) -> NDArray[np.float64]:
    """Sum up an item's characters: pairs of values that differ, values "marked", "not marked".

    A character with m values counts each pair of them 1 / (m - 1) times, so that it weighs as much
    as it has values (Krippendorff 2011, step 2: the coincidence matrix).
    """
    marks = list(item.marks.values())
    covered = coverage(marks, [1] * len(marks))
    rows = [(end - start, marked, len(marks) - marked) for start, end, marked in covered]
    rows.append((item.length - sum(size for size, _, _ in rows), 0, len(marks)))
    size, yes, no = np.array(rows, dtype=np.float64).T
    return np.array([size @ (yes * no) / (len(marks) - 1), size @ yes, size @ no])


def _alphas(sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return alpha for each row of sums, NaN where one value is all there is."""
    differing, marked, left = sums.T
    by_chance = marked * left
    ratios: NDArray[np.float64] = np.full(by_chance.shape, np.nan)
    np.divide((marked + left - 1) * differing, by_chance, out=ratios, where=by_chance > 0)
    return 1 - ratios


def _alpha(sums: NDArray[np.float64]) -> float | None:
    (alpha,) = _alphas(sums[None])
    return None if np.isnan(alpha) else float(alpha)


class StageAgreement(NamedTuple):
    """How much two distributions over stages resemble each other.

    ``divergence`` is Jensen and Shannon's with logarithms of base 2: 0 for equal distributions, 1
    for such that share no stage. ``correlation`` is Spearman's over the stages, ties with their
    mean rank; None for fewer than two stages, or where one distribution has all of them equal.
    """

    divergence: float
    correlation: float | None


def stage_shares(
    claims: Sequence[Sequence[str]], stages: Sequence[str]
) -> Mapping[str, MeanInterval]:
    """Return each stage's share of the errors, with a 95 % bootstrap interval over the claims.

    A claim with several error stages counts for each of them by an equal part, so that the shares
    sum to 1.

    Args:
        claims: the error stages of every claim, at least one each.
        stages: the stages in the order of the process; those without errors have the share 0.

    Raises:
        InputError: there is no claim.
    """
    return {
        stage: mean_of([(stage in claim) / len(claim) for claim in map(set, claims)])
        for stage in stages
    }


def stage_agreement(one: Sequence[float], other: Sequence[float]) -> StageAgreement:
    """Compare two distributions over the same stages, each at least one and summing to 1."""
    p, q = np.array(one), np.array(other)
    middle = (p + q) / 2
    divergence = (_relative(p, middle) + _relative(q, middle)) / 2
    x, y = _ranks(p), _ranks(q)
    spread = float(np.sqrt((x**2).sum() * (y**2).sum()))
    correlation = float((x * y).sum()) / spread if spread else None
    return StageAgreement(min(max(divergence, 0.0), 1.0), correlation)


def _relative(p: Table, q: Table) -> float:
    there = p > 0
    return float((p[there] * np.log2(p[there] / q[there])).sum())


def _ranks(values: Table) -> Table:
    """Return ranks around their mean; equal values (but for rounding) share theirs."""
    rounded = values.round(12)
    below = (rounded[:, None] > rounded).sum(axis=1)
    equal = (rounded[:, None] == rounded).sum(axis=1)
    ranks: Table = below + (equal - 1) / 2 - (len(values) - 1) / 2
    return ranks
