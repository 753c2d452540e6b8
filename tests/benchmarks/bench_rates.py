"""Corrected rates: how often their intervals hold the truth, and how much narrower they are.

Draws samples of four designs, 2,000 each, from simulated datasets and from the real labels of
`../shared`; prints coverage and widths beside reviews alone, and how much the correlation allows.
Then coverage for answers like these, each draw a dataset of its own, also with several answers to a
question, or after a detector learnt from some of them; and how often the gate finds a difference of
five points with as many reviews as `measure` proposes, through what the command calls.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.detection import detector
from spanlab.formats import ReadOptions, read
from spanlab.measure.powered import Population, ReviewedSample, estimate_rate
from spanlab.measure.sample import MeasuredItems
from spanlab.measure.sampling import (
    cautious_rho,
    inclusion_probabilities,
    length_sizes,
    reviews_for_difference,
    uncertainty_sizes,
)
from spanlab.schema import Item, MeasurementPlan, Record, answer_hash
from spanlab.scoring.comparison import paired
from spanlab.scoring.report import mean_of

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "support"))

from figures import keep
from measured_data import ANSWER, passes, reviewed, said, two_models

Array = NDArray[np.float64]

_SHARED = Path(os.environ.get("SPANLAB_SHARED", Path(__file__).resolve().parents[3] / "shared"))
_DRAWS = int(os.environ.get("BENCH_DRAWS", "2000"))
_RUNS = int(os.environ.get("BENCH_RUNS", "200"))
_DESIGNS = ("uniform", "stratified", "uncertainty", "length")
_REVIEWS = (30, 60, 200)  # of the 50 answers of a language 30 alone
_PIECE = 500  # draws at once


class LabelledSet(NamedTuple):
    """What is true of every item (``y`` of ``x``), what a detector says, and groups."""

    name: str
    y: Array
    f: Array
    x: Array
    groups: NDArray[np.int_]
    doubt: Array


def main() -> None:
    """Print one line for each set, design and number of reviews, and the worst of all."""
    print(f"\n# corrected rates, {_DRAWS:,} draws each: coverage and width of 95 % intervals")
    print("set | design | reviews | coverage alone | corrected | narrower by | ρ allows")
    rng = np.random.default_rng(31)
    worst, widest, reached, few, other = 1.0, -1.0, [], 1.0, 1.0
    by_length, settings = 1.0, 0
    for labelled in (*_simulated(rng), *_nearly_right(rng), *_claims(rng), *_answers()):
        is_ratio = bool(np.ptp(labelled.x) > 0)
        for design in _DESIGNS if is_ratio else _DESIGNS[:3]:
            for n in (n for n in _REVIEWS if n < len(labelled.y) * 0.7):
                alone, covered, gain, allowed = _measured(labelled, design, n, rng)
                print(
                    f"{labelled.name} | {design} | {n} | {alone:.3f} | {covered:.3f} | "
                    f"{gain:+.3f} | {allowed:.3f}",
                    flush=True,
                )
                settings += 1
                if is_ratio and design == "length":
                    by_length = min(by_length, covered)
                if is_ratio and design != "length":  # not what is proposed
                    other = min(other, covered)
                    continue
                few, worst = (min(few, covered), worst) if n == 30 else (few, min(worst, covered))
                widest = max(widest, -gain)
                if design != "uncertainty" and allowed > 0.1:
                    findings = n * labelled.y.sum() / labelled.x.sum()
                    reached.append((findings, gain / allowed))
    print(f"\nlowest coverage with 30 reviews {few:.3f}, with more {worst:.3f}")
    print(f"lowest coverage for characters, not drawn by length, {other:.3f}")
    print(f"lowest coverage for characters, drawn by length, {by_length:.3f}")
    print(f"at most {100 * widest:.1f} % wider than reviews alone")
    gains = []
    for low, high in ((0, 3), (3, 10), (10, 30), (30, 1e9)):
        shares = [share for findings, share in reached if low <= findings < high]
        if shares:
            gains.append([low, high, float(np.mean(shares)), min(shares)])
            print(
                f"of what ρ allows (a tenth or more), {low} to {high:g} findings expected: mean "
                f"{np.mean(shares):.2f}, lowest {min(shares):.2f} ({len(shares)} cases)"
            )
    measured = {
        **{"settings": settings, "items": worst, "items with 30 reviews": few},
        **{"characters by length": by_length, "characters otherwise": other, "gains": gains},
        **{"future": _like_these(rng), "clusters": _clustered(rng), "learnt": _learnt(rng)},
    }
    if _SHARED.is_dir() and (_DRAWS, _RUNS) == (2000, 200):  # what the guide says of them
        keep("rates", measured)
    gate = _gate()
    if _RUNS == 200:
        keep("gate", {"runs": _RUNS, "rows": gate})


def _like_these(rng: np.random.Generator, items: int = 2_000) -> float:
    """Print how often intervals for answers like these hold the rate; return the lowest share."""
    print("\nanswers like these: rate | AUROC | reviews | coverage")
    worst = 1.0
    for rate in (0.01, 0.05, 0.3):
        for auroc in (0.6, 0.8, 0.95):
            for n in _REVIEWS:
                held = []
                for _ in range(0, _DRAWS, _PIECE):
                    y = (rng.random((_PIECE, items)) < rate).astype(float)
                    f = np.array([_probabilities(row, auroc, rng, rate) for row in y])
                    sample = ReviewedSample(y[:, :n], f[:, :n], np.full((_PIECE, n), n / items))
                    found = estimate_rate(sample, f.mean(-1), items=items, superpopulation=True)
                    held.append(np.mean((found.low <= rate) & (rate <= found.high)))
                print(f"{rate} | {auroc} | {n} | {np.mean(held):.3f}", flush=True)
                worst = min(worst, float(np.mean(held)))
    print(f"lowest {worst:.3f}")
    return worst


def _clustered(rng: np.random.Generator) -> tuple[float, float]:
    """Print coverage with several answers to a question, and false alarms between equal systems.

    ICC is the correlation of two answers to one question; the detector is right on 90 %. Returns
    the lowest coverage and the most false alarms.
    """
    print("\nquestions x answers: rate | ICC | rates | half reviewed | p < .05 of equal systems")
    worst, alarms = 1.0, 0.0
    for questions, answers in ((40, 2), (40, 5), (20, 5), (10, 10), (20, 20)):
        for rate in (0.03, 0.1, 0.5):
            for icc in (0.0, 0.3, 0.6, 1.0):
                held = np.mean(
                    [_held(rng, (questions, answers), rate, icc) for _ in range(_RUNS)], axis=0
                )
                shown = " | ".join(f"{share:.3f}" for share in held)
                print(f"{questions} x {answers}: {rate} | {icc} | {shown}", flush=True)
                worst, alarms = min(worst, *held[:2]), max(alarms, held[2])
    print(f"lowest coverage {worst:.3f}, most false alarms {alarms:.3f}")
    return worst, alarms


def _held(
    rng: np.random.Generator, shape: tuple[int, int], rate: float, icc: float
) -> tuple[bool, bool, bool]:
    """Draw a dataset; say which intervals hold the rate, and whether its like seems to differ."""
    y, other = (_alike(rng, shape, rate, icc) for _ in range(2))
    codes, n = np.repeat(np.arange(shape[0]), shape[1]), len(y)
    counted = mean_of(y.tolist(), codes.tolist())
    order = rng.permutation(n)
    y_drawn, of, half = y[order], codes[order], n // 2
    f = np.where(rng.random(n) < 0.9, y_drawn, 1 - y_drawn)
    found = estimate_rate(
        ReviewedSample(y_drawn[:half], f[:half], np.full(half, half / n), clusters=of[:half]),
        f.mean(),
        items=n,
        superpopulation=True,
        population=Population(f, np.ones(n), of),
    )
    differ = paired(y.tolist(), other.tolist(), codes.tolist()).p < 0.05
    held = float(found.low) <= rate <= float(found.high)
    return counted.low <= rate <= counted.high, held, differ


def _alike(rng: np.random.Generator, shape: tuple[int, int], rate: float, icc: float) -> Array:
    shared, own = rng.random((shape[0], 1)) < rate, rng.random(shape) < rate
    return np.where(rng.random(shape) < np.sqrt(icc), shared, own).astype(float).ravel()


def _learnt(rng: np.random.Generator, items: int = 240) -> float:
    """Print coverage after a detector learnt from reviews, on all of which it is right.

    Returns the lowest.
    """
    print("\nlearnt from reviews: rate | right elsewhere | reviews | learnt from | coverage")
    worst, plan = 1.0, MeasurementPlan(annotator="judge")
    asked = [Item(id=f"i{at}", question=f"q{at}", answer=f"{ANSWER} {at}") for at in range(items)]
    hashes = [answer_hash(item) for item in asked]
    marked = [Record(item=item, annotations=(said("judge", False),)) for item in asked]
    order = [int(item.item_id[1:]) for item in MeasuredItems(marked, plan).items]
    for rate in (0.05, 0.1, 0.3):
        for right in (0.8, 0.9):
            for n, learnt in ((60, 60), (120, 60), (200, 40), (200, 8)):
                held = []
                for _ in range(_RUNS):
                    y = rng.random(items) < rate
                    f = np.where(rng.random(items) < right, y, ~y)
                    f[order[:learnt]] = y[order[:learnt]]
                    people = dict.fromkeys(order[:n])
                    records = [
                        Record(
                            item=item,
                            annotations=(
                                said("judge", bool(f[at])),
                                *((said("anna", bool(y[at])),) if at in people else ()),
                            ),
                        )
                        for at, item in enumerate(asked)
                    ]
                    sample = MeasuredItems(records, plan, {hashes[at] for at in order[:learnt]})
                    found = sample.estimate()
                    held.append(found is not None and found.low <= y.mean() <= found.high)
                print(f"{rate} | {right} | {n} | {learnt} | {np.mean(held):.3f}", flush=True)
                worst = min(worst, float(np.mean(held)))
    print(f"lowest {worst:.3f}")
    return worst


def _gate(items: int = 2_000) -> list[list[float | bool]]:
    """Print how often the gate fails in 200 runs: for five points more, and for no difference.

    Every run plans by its own pilot, as a user does: of 40 reviews of the old model.

    Returns:
        Rows of rate, whether two models are paired, mean reviews of each side, and both shares.
    """
    rows: list[list[float | bool]] = []
    print(f"\ngate, {_RUNS} runs: rate | compared | mean reviews of each side | five points | none")
    for rate in (0.05, 0.1, 0.2):
        pilots = [_planned(rate, items, run) for run in range(_RUNS)]
        for same in (False, True):
            failed = [0, 0]
            for at, new in enumerate((rate + 0.05, rate)):
                for run, n in enumerate(pilots):
                    records = two_models(items, (rate, new), seed=run)
                    failed[at] += not passes(records, n, run, paired=same)
            rows.append([rate, same, float(np.mean(pilots)), *(count / _RUNS for count in failed)])
            shares = " | ".join(f"{count / _RUNS:.3f}" for count in failed)
            how = "two models, paired" if same else "two datasets"
            print(f"{rate} | {how} | {np.mean(pilots):.0f} | {shares}", flush=True)
    return rows


def _planned(rate: float, items: int, run: int) -> int:
    """Return how many reviews are proposed after a pilot of 40."""
    plan = MeasurementPlan(annotator="judge", seed=run)
    pilot = reviewed(two_models(items, (rate, rate), seed=run)[:items], plan, 40).estimate()
    rho = cautious_rho(float(pilot.rho), 40) if pilot else 0.0
    found = float(pilot.low + pilot.high) / 2 if pilot else rate
    return reviews_for_difference(0.05, found, rho, items=items)


def _measured(
    labelled: LabelledSet, design: str, n: int, rng: np.random.Generator
) -> tuple[float, float, float, float]:
    y, f, x = labelled.y, labelled.f, labelled.x
    items, truth = len(y), y.sum() / x.sum()
    sizes = {"uncertainty": uncertainty_sizes(labelled.doubt), "length": length_sizes(x)}
    p = sizes.get(design, np.ones(items))
    pi = inclusion_probabilities(p, n)
    tallies = []
    for _ in range(0, _DRAWS, _PIECE):
        chosen, strata, odds = _drawn(p, pi, labelled.groups, n, design, rng)
        sample = ReviewedSample(y[chosen], f[chosen], odds, x[chosen], x[chosen], strata)
        ends = []
        for rate in (None, f.sum() / x.sum()):
            found = estimate_rate(sample, rate, items=items)
            ends += [(found.low <= truth) & (truth <= found.high), found.high - found.low]
        tallies.append(np.mean(ends, axis=1))
    alone, wide, covered, narrow = np.mean(tallies, axis=0)
    a, b = y - truth * x, f - f.sum() / x.sum() * x
    rho = (a @ b) / np.sqrt((a @ a) * (b @ b)) if b.any() else 0.0
    allowed = 1 - np.sqrt(1 - max(rho, 0) ** 2)
    return float(alone), float(covered), float(1 - narrow / wide), float(allowed)


def _drawn(
    p: Array, pi: Array, groups: NDArray[np.int_], n: int, design: str, rng: np.random.Generator
) -> tuple[NDArray[np.intp], NDArray[np.int_] | None, Array]:
    u = rng.random((_PIECE, len(p)))
    if design != "stratified":
        chosen = np.argpartition(u / p, n, axis=1)[:, :n]
        return chosen, None, pi[chosen]
    parts, odds, left = [], [], n
    names, sizes = np.unique(groups, return_counts=True)
    for at, (name, size) in enumerate(zip(names, sizes, strict=True)):
        number = max(round(left * size / sizes[at:].sum()), 1)
        left -= number
        (inside,) = np.nonzero(groups == name)
        parts.append(inside[np.argsort(u[:, inside], axis=1)[:, :number]])
        odds.append(np.full((_PIECE, number), number / size))
    chosen = np.concatenate(parts, axis=1)
    return chosen, groups[chosen], np.concatenate(odds, axis=1)


def _simulated(rng: np.random.Generator, items: int = 2_000) -> Iterator[LabelledSet]:
    for rate in (0.01, 0.05, 0.3):
        y = (np.arange(items) < round(rate * items)).astype(float)
        groups = rng.integers(0, 4, items)
        for auroc in (0.6, 0.7, 0.8, 0.9, 0.95):
            f = _probabilities(y, auroc, rng)
            yield LabelledSet(f"rate {rate}, AUROC {auroc}", y, f, np.ones(items), groups, f)
        marks = (f > np.quantile(f, 1 - rate)).astype(float)
        yield LabelledSet(f"rate {rate}, marks alone", y, marks, np.ones(items), groups, marks)


def _nearly_right(rng: np.random.Generator, items: int = 2_000) -> Iterator[LabelledSet]:
    """A detector that is right on 95 to 99.5 % of answers: its errors are seldom drawn."""
    for rate in (0.01, 0.03, 0.1, 0.3):
        y = (np.arange(items) < round(rate * items)).astype(float)
        groups = rng.integers(0, 4, items)
        for right in (0.95, 0.97, 0.98, 0.99, 0.995):
            f = np.where(rng.random(items) < right, y, 1 - y)
            name = f"rate {rate}, right on {right:.1%}"
            yield LabelledSet(name, y, f, np.ones(items), groups, f)


def _claims(rng: np.random.Generator) -> Iterator[LabelledSet]:
    """The real claims' labels and sources, with detectors of planted quality."""
    for name in ("claims_dev", "bingcheck_full_dev"):
        text = (_SHARED / "claims" / f"{name}.jsonl").read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text.splitlines()]
        y = np.array([line["label"] is not True for line in lines], dtype=float)
        order = {source: at for at, source in enumerate(sorted({row["dataset"] for row in lines}))}
        groups = np.array([order[line["dataset"]] for line in lines])
        for auroc in (0.7, 0.9):
            f = _probabilities(y, auroc, rng)
            yield LabelledSet(f"{name}, AUROC {auroc}", y, f, np.ones(len(y)), groups, f)


def _answers() -> Iterator[LabelledSet]:
    """Mu-SHROOM's validation answers, with what the offline detector marks without passages.

    The shipped model has learnt from these answers: its correlation flatters it.
    """
    records = [
        record
        for path in sorted((_SHARED / "mushroom" / "val").glob("*.jsonl"))
        for record in read(path, ReadOptions())
    ]
    offline = detector("offline")
    rows, langs = [], sorted({record.item.lang for record in records})
    for record in records:
        marks = offline.annotate(record.item.model_copy(update={"passages": ()})).spans
        gold = record.annotations[0].spans
        chars = [sum(s.end - s.start for s in spans if s.prob > 0.5) for spans in (gold, marks)]
        rows.append((*chars, len(record.item.answer), max((s.prob for s in marks), default=0)))
    y, f, length, doubt = np.array(rows, dtype=float).T
    groups = np.array([langs.index(record.item.lang) for record in records])
    ones = np.ones(len(y))
    hard = (y > 0).astype(float)
    yield LabelledSet("Mu-SHROOM val, answers", hard, doubt, ones, groups, doubt)
    for at, lang in enumerate(langs):
        here = groups == at
        name = f"Mu-SHROOM val, characters, {lang}"
        yield LabelledSet(name, y[here], f[here], length[here], groups[here], doubt[here])


def _probabilities(
    y: Array, auroc: float, rng: np.random.Generator, rate: float | None = None
) -> Array:
    """Return calibrated probabilities of a detector whose scores are normal, of this AUROC."""
    distance = 2**0.5 * NormalDist().inv_cdf(auroc)
    score = rng.normal(size=len(y)) + distance * y
    rate = float(y.mean()) if rate is None else rate
    odds = np.exp(distance * score - distance**2 / 2) * rate / (1 - rate)
    return np.asarray(odds / (1 + odds))


if __name__ == "__main__":
    main()
