"""Scoring and agreement on intervals against the same figures from character vectors."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from spanlab.formats import read_labels
from spanlab.schema import Annotation, AnnotatorKind, Span
from spanlab.scoring.agreement import ItemMarks, agreement
from spanlab.scoring.report import score
from spanlab.scoring.spans import score_items
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels, SoftLabel, disagreement, harden

Pair = tuple[ItemLabels, ItemLabels]
Result = TypeVar("Result")

_ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Print times and ratios, all measured in this run."""
    print("\n# scoring: intervals against character vectors, all seven scores of an item")
    print(f"{'what':38} {'items':>6} {'characters':>11} {'vectors ms':>11} {'ours ms':>8}  ratio")
    shared = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if shared.is_dir():
        pairs = real_pairs(shared)
        row("Mu-SHROOM validation, golden predictions", pairs, repeat=5)
        seconds, _ = best(lambda: score(pairs), 3)
        print(f"  the whole report with bootstrap intervals: {seconds * 1e3:.0f} ms")
    else:
        print(f"Mu-SHROOM validation: no shared data at {shared}, set SPANLAB_SHARED")
    for count, length, spans in ((500, 1_000, 20), (50, 10_000, 200), (5, 100_000, 2_000)):
        row(f"made up, {spans:,} spans a side", made_up(count, length, spans), repeat=3)
    row("made up, 10 spans a side", made_up(5, 100_000, 10), repeat=3)
    print("\n# agreement and disagreement: 5 annotators, 2,000 spans each, 100,000 characters")
    rated, annotations = made_up_raters()
    print(f"agreement    {best(lambda: agreement([rated]), 3)[0] * 1e3:7.1f} ms")
    print(f"disagreement {best(lambda: disagreement(annotations), 5)[0] * 1e3:7.1f} ms")


def row(name: str, pairs: list[Pair], *, repeat: int) -> None:
    """Score ``pairs`` both ways, check that the figures agree, and print the times."""
    ours, mine = best(lambda: score_items(pairs), repeat)
    vectors, theirs = best(lambda: [by_vectors(*pair) for pair in pairs], repeat)
    for item, expected in zip(mine, theirs, strict=True):
        found = [item.iou, item.corr, item.max_iou or 0.0, item.precision, item.recall]
        found += [item.f1, item.span_f1]
        assert np.allclose(found, expected, rtol=0, atol=1e-9), (item, expected)
    size = sum(gold.length or 0 for gold, _ in pairs)
    print(
        f"{name:38} {len(pairs):6,} {size:11,} {vectors * 1e3:11.1f} {ours * 1e3:8.2f} "
        f"{vectors / ours:5.1f}×"
    )


def best(work: Callable[[], Result], repeat: int) -> tuple[float, Result]:
    """Return the shortest of ``repeat`` times in seconds, and the result."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return min(times), result


# --- the comparison: one number per character ----------------------------------------------------


def by_vectors(gold: ItemLabels, pred: ItemLabels) -> list[float]:
    """Return the seven scores of an item from numpy vectors with one entry per character."""
    length = gold.length or 0
    wanted, found = marked(gold.hard, length), marked(pred.hard, length)
    hits = int((wanted & found).sum())
    n_wanted, n_found = int(wanted.sum()), int(found.sum())
    common = len(set(gold.hard) & set(pred.hard))
    n_spans = len(gold.hard) + len(pred.hard)
    either = n_wanted + n_found
    return [
        vector_iou(wanted, found),
        vector_spearman(probabilities(gold.soft, length), probabilities(pred.soft, length)),
        max((vector_iou(marked(rater, length), found) for rater in gold.raters), default=0.0),
        hits / n_found if n_found else float(not n_wanted),
        hits / n_wanted if n_wanted else float(not n_found),
        2 * hits / either if either else 1.0,
        2 * common / n_spans if n_spans else 1.0,
    ]


def marked(extents: tuple[Extent, ...], length: int) -> NDArray[np.bool_]:
    """Return one truth value per character."""
    vector = np.zeros(length, dtype=np.bool_)
    for start, end in extents:
        vector[start:end] = True
    return vector


def probabilities(soft: tuple[SoftLabel, ...], length: int) -> NDArray[np.float64]:
    """Return one probability per character."""
    vector = np.zeros(length)
    for start, end, prob in soft:
        vector[start:end] = prob
    return vector


def vector_iou(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    """Return intersection over union of two character vectors."""
    either = int((a | b).sum())
    return int((a & b).sum()) / either if either else 1.0


def vector_spearman(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Return Spearman's correlation of two character vectors, by the shared task's rule."""
    x_constant = len(np.unique(x.round(8))) <= 1
    y_constant = len(np.unique(y.round(8))) <= 1
    if x_constant or y_constant:
        return float(x_constant and y_constant)
    return float(np.corrcoef(mean_ranks(x), mean_ranks(y))[0, 1])


def mean_ranks(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return each entry's rank, ties sharing their mean."""
    _, which, counts = np.unique(vector, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    ranks: NDArray[np.float64] = (last - (counts - 1) / 2)[which]
    return ranks


# --- what is scored ------------------------------------------------------------------------------


def real_pairs(shared: Path) -> list[Pair]:
    """Return the validation set with the golden predictions."""
    golden = sorted((shared / "mushroom" / "golden").glob("pred.*.jsonl"))
    predicted = {pred.id: pred for file in golden for pred in read_labels(file)}
    files = sorted((shared / "mushroom" / "val").glob("*.jsonl"))
    return [(gold, predicted[gold.id]) for file in files for gold in read_labels(file)]


def made_up(count: int, length: int, spans: int) -> list[Pair]:
    """Return ``count`` answers with ``spans`` graded spans on each side."""
    draw = random.Random(length + spans)
    return [
        (
            made_up_labels(draw, f"x-{n}", length, spans),
            made_up_labels(draw, f"x-{n}", length, spans),
        )
        for n in range(count)
    ]


def made_up_labels(draw: random.Random, name: str, length: int, spans: int) -> ItemLabels:
    """Return ``spans`` graded spans, one per equal stretch of the answer."""
    width = length // spans
    soft = []
    for at in range(0, length, width):
        start = at + draw.randrange(width // 2)
        end = start + 1 + draw.randrange(width // 2)
        soft.append(SoftLabel(start, end, draw.randint(1, 10) / 10))
    return ItemLabels(name, "en", tuple(soft), tuple(harden(soft)), length=length)


def made_up_raters() -> tuple[ItemMarks, list[Annotation]]:
    """Return five annotators of one long answer, as extents and as annotations."""
    draw = random.Random(1)
    answer = "x" * 100_000
    marks = {
        name: [
            Extent(at + (by := draw.randrange(20)), at + by + 20) for at in range(0, 100_000, 50)
        ]
        for name in "abcde"
    }
    annotations = [
        Annotation(
            annotator=name,
            kind=AnnotatorKind.PERSON,
            spans=tuple(Span.of(answer, start, end) for start, end in extents),
        )
        for name, extents in marks.items()
    ]
    return ItemMarks("long", "en", len(answer), marks), annotations


if __name__ == "__main__":
    main()
