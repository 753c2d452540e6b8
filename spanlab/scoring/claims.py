"""Scores of verdicts on claims: accuracy, balanced accuracy, F1 per verdict, AUROC.

Types of errors in steps are compared like verdicts; ``RIGHT`` is that of a step without one.

Intervals come from resampling items, as the claims of one item are not independent.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import InputError
from spanlab.base.fields import FrozenModel
from spanlab.output.tables import MeanInterval
from spanlab.scoring.comparison import MeanDifference, paired
from spanlab.scoring.intervals import wilson
from spanlab.scoring.report import Table, interval, p_value, swaps, weights

RIGHT: Final = "right"
INCONCLUSIVE: Final = "inconclusive"
_NAME: Final = "claims"  # of what is resampled

_COARSE: Final[dict[str, str]] = {
    "refuted": "not-supported",
    "not-enough-evidence": "not-supported",
    "conflicting": "not-supported",
}


class JudgedClaim(NamedTuple):
    """A claim of an item with its gold verdict and a predicted one; or a step with its types.

    ``predicted`` is None where the prediction lacks the claim or could not judge it; ``support``
    in [0, 1] is how likely the prediction holds the claim for supported, None if it does not say.
    """

    item: str
    gold: str
    predicted: str | None
    support: float | None = None


class VerdictScore(FrozenModel):
    """Precision, recall and F1 of one verdict; 0 where nothing was predicted or nothing found."""

    verdict: str
    gold: int
    predicted: int
    precision: float
    recall: float
    f1: float


class ClaimReport(FrozenModel):
    """Scores over ``n`` claims; ``unjudged`` of them have no predicted verdict and count as wrong.

    ``inconclusive`` is the number of claims that were left out as either side calls them so.
    ``accuracy`` is the share of right verdicts, ``balanced_accuracy`` and ``macro_f1`` are means
    over the verdicts that the gold labels use, in [0, 1]; ``macro_f1_all`` is one over all that
    either side uses, as scikit-learn's: those that the gold labels lack count as 0. ``auroc`` is
    the chance that a supported claim has a higher soft score than another, ties counting half, over
    the ``soft`` claims that have such a score; None where none has, or all gold verdicts of these
    are of one side.
    """

    n: int
    unjudged: int
    inconclusive: int
    soft: int
    accuracy: MeanInterval
    balanced_accuracy: MeanInterval
    macro_f1: MeanInterval
    macro_f1_all: MeanInterval
    auroc: MeanInterval | None
    verdicts: tuple[VerdictScore, ...]


class MacroF1s(FrozenModel):
    """The macro F1 of two systems on the same claims, and that of ``a`` minus that of ``b``."""

    a: MeanInterval
    b: MeanInterval
    difference: MeanDifference


def score_claims(claims: Sequence[JudgedClaim], *, keep_inconclusive: bool = False) -> ClaimReport:
    """Score verdicts.

    Where either side knows "not-supported" (refuted, or not enough evidence), so is what the other
    side tells apart: refuted, not enough evidence and conflicting become "not-supported".

    Args:
        claims: at least one.
        keep_inconclusive: whether "inconclusive" is a verdict like the others. Else claims that
            either side calls so are left out, as in Metropolitansky et al. 2025, "VeriTrail", §4.3.

    Raises:
        InputError: there are no claims, or none that is left.
    """
    given = len(claims)
    if not keep_inconclusive:
        (claims,) = decided(claims)
    if not claims:
        counted = f"{given} claims, all of them inconclusive" if given else None
        raise InputError("no claim to score", found=counted, expected="claims that both sides have")
    claims = _comparable(claims)
    classes = sorted({claim.gold for claim in claims})
    names = tuple(dict.fromkeys(claim.item for claim in claims))
    confusion = _confusion(claims, classes, names)
    whole, flat = confusion.sum(axis=0), confusion.reshape(len(names), -1)
    resampled = np.concatenate([drawn @ flat for drawn in weights(len(names), _NAME)])
    samples = _figures(resampled.reshape(-1, *whole.shape))
    observed = _figures(whole[None])[0]
    accuracy, balanced, f1 = (
        resampled_mean(observed[at], samples[:, at], len(names)) for at in range(3)
    )
    both = {claim.predicted for claim in claims if claim.predicted} | {*classes}
    share = len(classes) / len(both)
    return ClaimReport(
        n=len(claims),
        unjudged=sum(claim.predicted is None for claim in claims),
        inconclusive=given - len(claims),
        soft=sum(claim.support is not None for claim in claims),
        accuracy=accuracy,
        balanced_accuracy=balanced,
        macro_f1=f1,
        macro_f1_all=resampled_mean(share * observed[2], share * samples[:, 2], len(names)),
        auroc=_auroc([claim for claim in claims if claim.support is not None]),
        verdicts=_by_verdict(classes, whole),
    )


def decided(*sides: Sequence[JudgedClaim]) -> tuple[Sequence[JudgedClaim], ...]:
    """Return the claims that neither the gold side nor any system calls inconclusive.

    Args:
        sides: of each system the same claims in the same order.
    """
    kept = [
        row
        for row in zip(*sides, strict=True)
        if all(INCONCLUSIVE not in {claim.gold, claim.predicted} for claim in row)
    ]
    return tuple(zip(*kept, strict=True)) if kept else tuple(() for _ in sides)


def compare_claims(
    a: Sequence[JudgedClaim], b: Sequence[JudgedClaim], *, keep_inconclusive: bool = False
) -> MeanDifference:
    """Compare the accuracy of two systems on the same claims, given in the same order.

    Claims that the gold side or either system calls inconclusive are left out, unless
    ``keep_inconclusive``.

    Raises:
        InputError: the lists are empty or differ in length, or no claim is left.
    """
    if not keep_inconclusive and len(a) == len(b):
        a, b = decided(a, b)
    both = _comparable([*a, *b])
    right = [float(claim.gold == claim.predicted) for claim in both]
    return paired(right[: len(a)], right[len(a) :])


def compare_macro_f1(a: Sequence[JudgedClaim], b: Sequence[JudgedClaim]) -> MacroF1s:
    """Compare the macro F1 of two systems on the same claims, given in the same order.

    Intervals come from resampling items; for ``p`` the two systems' verdicts on an item change
    places at random. Of steps the mean is over the types of errors, ``RIGHT`` left out.

    Raises:
        InputError: the lists are empty or differ in length.
    """
    if not a or len(a) != len(b):
        raise InputError(f"{len(a)} and {len(b)} claims", expected="as many of both, at least one")
    both = _comparable([*a, *b])
    classes = sorted({claim.gold for claim in both})
    names = tuple(dict.fromkeys(claim.item for claim in both))
    first, second = (
        _confusion(side, classes, names).reshape(len(names), -1)
        for side in (both[: len(a)], both[len(a) :])
    )
    shape = (-1, len(classes), len(classes) + 1)

    errors = np.array([name != RIGHT for name in classes])

    def f1(counts: Table) -> Table:
        scores: Table = _figures(counts.reshape(shape), errors)[:, 2]
        return scores

    drawn = list(weights(len(names), _NAME))
    resampled = [
        np.concatenate([f1(sample @ side) for sample in drawn]) for side in (first, second)
    ]
    swapped = np.concatenate(
        [
            f1(swap @ first + (1 - swap) @ second) - f1(swap @ second + (1 - swap) @ first)
            for swap in swaps(len(names), _NAME)
        ]
    )
    observed = [float(f1(side.sum(axis=0))[0]) for side in (first, second)]
    difference = observed[0] - observed[1]
    low, high = interval(resampled[0] - resampled[1])
    return MacroF1s(
        a=resampled_mean(observed[0], resampled[0], len(names)),
        b=resampled_mean(observed[1], resampled[1], len(names)),
        difference=MeanDifference(
            difference=difference, low=low, high=high, p=p_value(difference, swapped)
        ),
    )


def coarse(verdict: str, used: Collection[str | None]) -> str:
    """Return "not-supported" for a verdict that it covers where it is among those ``used``."""
    return _COARSE.get(verdict, verdict) if "not-supported" in used else verdict


def resampled_mean(observed: float, samples: Table, items: int) -> MeanInterval:
    """Return a figure with its interval, which reaches at least as far as Wilson's of a share.

    Resampling items that are all right says that all others are, too.
    """
    low, high = interval(samples)
    ends = [float(end) for end in wilson(np.array(observed), np.array(items))]
    at_an_end = observed in (0.0, 1.0)
    return MeanInterval(
        mean=float(observed),
        low=min(low, ends[0]) if at_an_end else min(low, observed * items / (items + 1)),
        high=max(high, ends[1]) if at_an_end else max(high, (observed * items + 1) / (items + 1)),
    )


def _comparable(claims: Sequence[JudgedClaim]) -> Sequence[JudgedClaim]:
    used = {verdict for claim in claims for verdict in (claim.gold, claim.predicted)}
    return [
        claim._replace(
            gold=coarse(claim.gold, used),
            predicted=claim.predicted and coarse(claim.predicted, used),
        )
        for claim in claims
    ]


def _confusion(
    claims: Sequence[JudgedClaim], classes: Sequence[str], names: Sequence[str]
) -> Table:
    """Return counts by item, gold verdict and predicted verdict; the last column is any other."""
    rows = {name: row for row, name in enumerate(names)}
    places: dict[str | None, int] = {verdict: at for at, verdict in enumerate(classes)}
    counts = np.zeros((len(names), len(classes), len(classes) + 1))
    for claim in claims:
        counts[rows[claim.item], places[claim.gold], places.get(claim.predicted, -1)] += 1
    return counts


def _figures(confusion: Table, counted: NDArray[np.bool_] | None = None) -> Table:
    """Return accuracy, balanced accuracy and macro F1, over those counted, of each matrix."""
    right = np.diagonal(confusion, axis1=1, axis2=2)
    gold = confusion.sum(axis=2)
    predicted = confusion.sum(axis=1)[:, :-1]
    present = gold > 0  # a sample may lack a verdict
    recall = np.divide(right, gold, out=np.zeros_like(gold), where=present)
    f1 = np.divide(2 * right, gold + predicted, out=np.zeros_like(gold), where=present)
    over = np.ones(gold.shape[1], bool) if counted is None else counted
    used = np.maximum(present[:, over].sum(axis=1), 1)
    accuracy = right.sum(axis=1) / np.maximum(gold.sum(axis=1), 1)
    means = (scores[:, over].sum(axis=1) / used for scores in (recall, f1))
    figures: Table = np.stack([accuracy, *means], axis=1)
    return figures


def _by_verdict(classes: Sequence[str], confusion: Table) -> tuple[VerdictScore, ...]:
    scores = []
    for at, verdict in enumerate(classes):
        right, gold, predicted = confusion[at, at], confusion[at].sum(), confusion[:, at].sum()
        scores.append(
            VerdictScore(
                verdict=verdict,
                gold=int(gold),
                predicted=int(predicted),
                precision=right / predicted if predicted else 0.0,
                recall=right / gold,
                f1=2 * right / (gold + predicted),
            )
        )
    return tuple(scores)


def _auroc(claims: Sequence[JudgedClaim]) -> MeanInterval | None:
    """Return the area under the ROC curve of claims that have soft scores."""
    if len({claim.gold == "supported" for claim in claims}) < 2:
        return None
    scores = np.array([claim.support for claim in claims], dtype=float)
    names = dict.fromkeys(claim.item for claim in claims)
    order = np.argsort(scores, kind="stable")
    positive = np.array([claims[at].gold == "supported" for at in order])
    levels = np.flatnonzero(np.diff(scores[order], prepend=-1.0))  # where each score begins
    rows = {name: row for row, name in enumerate(names)}
    item = np.array([rows[claims[at].item] for at in order])
    drawn = weights(len(names), _NAME)
    samples = np.concatenate([areas(weight[:, item], positive, levels) for weight in drawn])
    observed = areas(np.ones((1, len(claims))), positive, levels)[0]
    return resampled_mean(float(observed), samples, len(names))


def areas(weight: Table, positive: NDArray[np.bool_], levels: NDArray[np.intp]) -> Table:
    """Return the weighted area by row, claims sorted by score; NaN where a side has no weight."""
    high = np.add.reduceat(weight * positive, levels, axis=1)
    low = np.add.reduceat(weight * ~positive, levels, axis=1)
    below = np.cumsum(low, axis=1) - low
    wins = (high * (below + low / 2)).sum(axis=1)
    pairs = high.sum(axis=1) * low.sum(axis=1)
    areas: Table = np.divide(wins, pairs, out=np.full(len(weight), np.nan), where=pairs > 0)
    return areas
