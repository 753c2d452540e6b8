"""The offline detector on Mu-SHROOM's validation set: what its passages are worth, and its speed.

Its constants were chosen on the same set, with the same contexts.
"""

from __future__ import annotations

import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spanlab.datasets import ReadOptions, read
from spanlab.detectors import detector
from spanlab.labels import Labels, labels_of
from spanlab.schema import Item, Passage, Record
from spanlab.scorers import Report, mark_all, mark_none, score

CONTEXTS = "val.v2_perplexity-sonar-pro"

_ROOT = Path(__file__).resolve().parents[2]
_WIDTH = 15


@dataclass(frozen=True)
class Case:
    """One way to predict: a name for its column, and the labels of every item."""

    name: str
    predict: Callable[[Sequence[Record]], list[Labels]]


def main() -> None:
    """Print IoU / Corr per language and macro, then times, all measured in this run."""
    print("\n# offline detector, Mu-SHROOM validation set (its constants were chosen on it)")
    shared = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if shared.is_dir():
        records = validation(shared)
        annotated(list({record.item.lang: record for record in records}.values()))  # loads spaCy
        scores(records)
    else:
        print(f"no shared data at {shared}, set SPANLAB_SHARED: only times of made-up texts")
    times()


def cases() -> tuple[Case, ...]:
    """Return the columns of the table: the trivial two, then the detector three times."""
    return (
        Case("mark all", lambda records: [mark_all(labels_of(r, "gold")) for r in records]),
        Case("mark none", lambda records: [mark_none(labels_of(r, "gold")) for r in records]),
        Case("true context", annotated),
        Case("another item's", lambda records: annotated(exchanged(records))),
        Case("no context", lambda records: annotated([given(r, ()) for r in records])),
    )


def scores(records: Sequence[Record]) -> None:
    """Print IoU / Corr of each case, one language a row, with its speed on one core."""
    gold = [labels_of(record, "gold") for record in records]
    reports: list[Report] = []
    speeds: list[float] = []
    for case in cases():
        start = time.process_time()
        predicted = case.predict(records)
        speeds.append(len(records) / (time.process_time() - start))
        reports.append(score(zip(gold, predicted, strict=True)))
    print(f"{'IoU / Corr':12}" + "".join(f"{case.name:>{_WIDTH}}" for case in cases()))
    for row in zip(*(report.languages for report in reports), strict=True):
        print(f"{row[0].lang:12}" + "".join(cell(means.iou.mean, means.corr.mean) for means in row))
    macros = [report.macro for report in reports]
    print(f"{'macro':12}" + "".join(cell(m.iou.mean, m.corr.mean) for m in macros))
    print(f"{'  IoU 95 %':12}" + "".join(cell(m.iou.low, m.iou.high, "–") for m in macros))
    print(f"{'  Corr 95 %':12}" + "".join(cell(m.corr.low, m.corr.high, "–") for m in macros))
    rates = ["", "", *(f"{speed:.0f}" for speed in speeds[2:])]
    print(f"{'answers/s':12}" + "".join(f"{rate:>{_WIDTH}}" for rate in rates))
    gain = macros[2].iou.mean - macros[3].iou.mean
    print(f"true context minus another item's: {gain:+.3f} IoU")


def times() -> None:
    """Print how the time grows with the answer and with the passage."""
    print("\n# offline detector, made-up English text: seconds of one core")
    print(f"{'answer':>9} {'passage':>10} {'seconds':>8}")
    for answer, passage in ((1_000, 10_000), (10_000, 10_000), (100_000, 10_000)):
        timed(answer, passage)
    for answer, passage in ((1_000, 100_000), (1_000, 1_000_000), (100_000, 1_000_000)):
        timed(answer, passage)


def timed(answer: int, passage: int) -> None:
    """Print the time of one answer of so many characters with a passage of so many."""
    draw = random.Random(answer + passage)
    item = Item(
        id="x",
        lang="en",
        answer=made_up(draw, answer),
        passages=(Passage(text=made_up(draw, passage)),),
    )
    start = time.process_time()
    detector("offline").annotate(item)
    print(f"{answer:9,} {passage:10,} {time.process_time() - start:8.2f}")


def cell(left: float, right: float, between: str = " / ") -> str:
    """Return two figures as one right-aligned cell."""
    return f"{f'{left:.3f}{between}{right:.3f}':>{_WIDTH}}"


# --- what is annotated ---------------------------------------------------------------------------


def validation(shared: Path) -> list[Record]:
    """Return the validation set, each item with the context that was retrieved for it."""
    records: list[Record] = []
    for file in sorted((shared / "mushroom" / "val").glob("*.jsonl")):
        lang = file.name.split(".")[1].removesuffix("-val")
        contexts = shared / "mushroom" / "context" / f"{lang}-{CONTEXTS}"
        records.extend(read(file, ReadOptions(contexts=contexts, on_warning=lambda _: None)))
    return records


def annotated(records: Sequence[Record]) -> list[Labels]:
    """Return the detector's labels of every item."""
    offline = detector("offline")
    return [
        labels_of(Record(item=r.item, annotations=(offline.annotate(r.item),)), offline.name)
        for r in records
    ]


def exchanged(records: Sequence[Record]) -> list[Record]:
    """Give every item the passages of the next one of its language."""
    by_language: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        by_language[record.item.lang].append(record)
    return [
        given(record, other.item.passages)
        for group in by_language.values()
        for record, other in zip(group, [*group[1:], group[0]], strict=True)
    ]


def given(record: Record, passages: tuple[Passage, ...]) -> Record:
    """Return the record with these passages in place of its own."""
    item = record.item.model_copy(update={"passages": passages})
    return record.model_copy(update={"item": item})


def made_up(draw: random.Random, length: int) -> str:
    """Return so many characters of words, numbers and full stops."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    words = ["".join(draw.choices(letters, k=draw.randint(3, 10))) for _ in range(length // 20)]
    words += [str(draw.randint(1, 3000)) for _ in range(length // 100)]
    words += ["the", "of", "in."] * (length // 100)
    return " ".join(draw.choices(words, k=length // 4))[:length]


if __name__ == "__main__":
    main()
