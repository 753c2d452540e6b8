"""The offline detector, cross-validated on Mu-SHROOM's validation set, beside what it must beat.

Every figure is of items that the model has not seen: nothing of an item, nor of an item on the
same subject in another language, is in the training of the fold that it is measured in.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np

from spanlab.formats import ReadOptions, read
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Span
from spanlab.scoring.report import ScoreReport, score
from spanlab.scoring.spans import mark_all, mark_none
from spanlab.systems.offline.detector import OfflineDetector
from spanlab.systems.offline.features import describe
from spanlab.systems.offline.model import SHIPPED, OfflineModel, load
from spanlab.systems.offline.passages import read_passages
from spanlab.systems.offline.training import HELD_OUT, folds
from spanlab.text.extents import iou
from spanlab.text.labels import ItemLabels, SoftLabel, hard_of, labels_of

FOLDS = 5
_ROOT = Path(__file__).resolve().parents[2]
_HALF = 0.5  # of the characters of two spans that are the same: they are one
_WEIGHTY = 0.5  # the plain rule marks unknown words from this weight on

Pairs = list[tuple[ItemLabels, ItemLabels]]


def main() -> None:
    """Print all figures."""
    print("\n# the offline detector on Mu-SHROOM validation, cross-validated")
    shared = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if not shared.is_dir():
        print(f"no shared data at {shared}, set SPANLAB_SHARED")
        return
    records = _records(shared)
    _print_costs(records)  # before all that training leaves in memory
    _print_long()
    _print_code()
    made = [
        record
        for path in sorted((shared / "grounded").glob("*.jsonl"))
        for record in read(path, ReadOptions())
    ]
    pairs = _cross_validate(records, made)
    _print_scores({name: score(found) for name, found in pairs.items()})
    _print_reliability(pairs["detector"])


def _records(shared: Path) -> list[Record]:
    data = shared / "mushroom"
    options = ReadOptions(contexts=data / "context", on_warning=lambda message: None)
    return [record for path in sorted(data.glob("val/*.jsonl")) for record in read(path, options)]


def _cross_validate(records: Sequence[Record], made: Sequence[Record]) -> dict[str, Pairs]:
    """Train each fold on the others and on answers made from their passages."""
    peers: dict[str, list[Item]] = defaultdict(list)
    for record in records:
        peers[record.item.lang].append(record.item)
    asked = {record.item.id for record in records}
    pairs: dict[str, Pairs] = defaultdict(list)
    for fold in folds([*records, *made], FOLDS, recipe=HELD_OUT):
        detector = OfflineDetector(fold.model)
        for record in fold.held_out:
            if record.item.id not in asked:
                continue
            item, gold = record.item, labels_of(record, "gold")
            same = peers[item.lang]
            other = same[(same.index(item) + 1) % len(same)]
            variants = {
                "detector": item,
                "wrong context": item.model_copy(update={"passages": other.passages}),
                "no context": item.model_copy(update={"passages": ()}),
                "one passage": item.model_copy(update={"passages": item.passages[-1:]}),
            }
            pairs["mark all"].append((gold, mark_all(gold)))
            pairs["mark none"].append((gold, mark_none(gold)))
            pairs["plain rule"].append((gold, _labels(item, _plain_rule(item, fold.model))))
            for name, variant in variants.items():
                pairs[name].append((gold, _labels(variant, detector.annotate(variant))))
    return pairs


def _labels(item: Item, annotation: Annotation) -> ItemLabels:
    return labels_of(Record(item=item, annotations=(annotation,)), annotation.annotator)


def _plain_rule(item: Item, model: OfflineModel) -> Annotation:
    """Mark every word that says something and that neither passages nor question hold."""
    texts = read_passages([passage.text for passage in item.passages])
    seen = describe(item.question, item.answer, texts, item.lang, model.background)
    words = seen.answer
    spans = tuple(
        Span.of(item.answer, words.starts[at], words.ends[at])
        for at in range(len(words))
        if not seen.known[at] and seen.weight[at] >= _WEIGHTY
    )
    return Annotation(annotator="rule", kind=AnnotatorKind.DETECTOR, spans=spans)


def _print_scores(reports: Mapping[str, ScoreReport]) -> None:
    print(f"{'IoU / Corr':16}" + "".join(f"{name:>15}" for name in reports))
    first = next(iter(reports.values()))
    for at, language in enumerate(first.languages):
        row = (report.languages[at] for report in reports.values())
        cells = (f"{one.iou.mean:.3f} / {one.corr.mean:.3f}" for one in row)
        print(f"{language.lang:16}" + "".join(f"{cell:>15}" for cell in cells))
    cells = (f"{r.macro.iou.mean:.3f} / {r.macro.corr.mean:.3f}" for r in reports.values())
    print(f"{'macro':16}" + "".join(f"{cell:>15}" for cell in cells))
    for name, report in reports.items():
        i, c = report.macro.iou, report.macro.corr
        print(
            f"  {name:16} IoU {i.mean:.3f} [{i.low:.3f}, {i.high:.3f}]   "
            f"Corr {c.mean:.3f} [{c.low:.3f}, {c.high:.3f}]"
        )
    own, wrong = reports["detector"].macro.iou.mean, reports["wrong context"].macro.iou.mean
    print(f"  own context minus another item's: {own - wrong:+.3f} IoU")


def _print_reliability(pairs: Pairs) -> None:
    print("\nreliability: of characters rated so, what share of annotators marked them")
    given: list[float] = []
    true: list[float] = []
    for gold, found in pairs:
        given += _characters(found.soft, gold.length or 0)
        true += _characters(gold.soft, gold.length or 0)
    rated, marked = np.array(given), np.array(true)
    for low in np.arange(0, 1, 0.1):
        inside = (rated >= low) & (rated < low + 0.1 + (low > 0.85))
        if inside.any():
            print(
                f"  {low:.1f} to {low + 0.1:.1f}: {int(inside.sum()):7,} characters, "
                f"rated {rated[inside].mean():.2f}, marked {marked[inside].mean():.2f}"
            )


def _characters(soft: Iterable[SoftLabel], size: int) -> list[float]:
    values = np.zeros(size)
    for start, end, prob in soft:
        values[start:end] = prob
    return [float(value) for value in values]


def _print_costs(records: Sequence[Record]) -> None:
    detector = OfflineDetector(load())
    for record in records[:20]:
        detector.annotate(record.item)
    start = time.process_time()
    for record in records:
        detector.annotate(record.item)
    rate = len(records) / (time.process_time() - start)
    code = (
        "import time, numpy, pydantic, rapidfuzz, spanlab.schema; t = time.process_time();"
        "from spanlab.detection import detector; from spanlab.schema import Item;"
        "detector('offline').annotate(Item(id='x', answer='Warm 1.'));"
        "print(time.process_time() - t)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(5)
    ]
    print(f"\n{rate:.0f} answers per second and core; model {SHIPPED.stat().st_size / 1e3:.0f} kB;")
    print(f"loading {min(runs):.2f} s of processor time besides numpy, pydantic and rapidfuzz")


def _print_code() -> None:
    """Show how well errors in answers with code are found, as characters and as spans."""
    detector = OfflineDetector(load())
    ious, found, marked, wrong = list[float](), 0, 0, 0
    for record in read(_ROOT / "data" / "code_answers.jsonl", ReadOptions()):
        gold, spans = labels_of(record, "gold").hard, hard_of(detector.annotate(record.item))
        ious.append(iou(gold, spans))
        found += sum(any(iou([one], [span]) >= _HALF for span in spans) for one in gold)
        marked, wrong = marked + len(spans), wrong + len(gold)
    print(
        f"\nanswers with code: IoU {np.mean(ious):.3f}, span F1 {2 * found / (marked + wrong):.3f}"
    )


def _print_long() -> None:
    """Show how the time grows with the answer and with the passage."""
    print("\nmade-up text, characters:   answer    passage   seconds of one core")
    for answer, passage in ((1_000, 10_000), (1_000, 1_000_000), (100_000, 10_000)):
        draw = random.Random(answer + passage)
        item = Item(
            id="x",
            lang="en",
            answer=_made_up(draw, answer),
            passages=(Passage(text=_made_up(draw, passage)),),
        )
        start = time.process_time()
        OfflineDetector(load()).annotate(item)
        print(f"{answer:34,} {passage:10,} {time.process_time() - start:9.2f}")


def _made_up(draw: random.Random, length: int) -> str:
    """Return so many characters of words, numbers and full stops."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(3, 10))) for _ in range(length // 20)]
    words += [str(draw.randint(1, 3000)) for _ in range(length // 100)]
    words += ["the", "of", "in."] * (length // 100)
    return " ".join(draw.choices(words, k=length // 4))[:length]


if __name__ == "__main__":
    main()
