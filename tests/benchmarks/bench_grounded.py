"""The offline detector on answers that were made from their passages, each set left out in turn.

What is judged was in no training: neither its set, nor its documents, nor its kind of document.
Only the rows "claims (half)" have learnt from other claims of the same set, as the shipped model
has from all of them. The models have a third of the shipped one's trees.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.metrics import roc_auc_score

from spanlab.formats import ReadOptions, read
from spanlab.schema import Item, Record
from spanlab.systems.offline.detector import OfflineDetector
from spanlab.systems.offline.fit_report import JudgedAnswer, judge
from spanlab.systems.offline.training import HELD_OUT, train_offline
from spanlab.text.labels import labels_of

_ROOT = Path(__file__).resolve().parents[2]
_SETS = {
    "claims": ("wice_train", "wice_dev"),
    "planted errors": ("bump_task2",),
    **{
        kind: (f"summedits_{kind}",)
        for kind in ("news", "podcast", "sales_call", "samsum", "qmsumm")
    },
}
_HALVES = ("claims (half)", "claims (other half)")
_JUDGED = {"claims": "wice_dev"}  # in the rest of the claims nothing is right


class Judged(NamedTuple):
    """A set, and how its answers are marked by a model that has not seen it."""

    name: str
    answers: list[JudgedAnswer]
    gold: int  # characters that people marked


def main() -> None:
    """Print a row for each set."""
    shared = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if not shared.is_dir():
        print(f"no shared data at {shared}, set SPANLAB_SHARED")
        return
    print("\n# the offline detector on answers made from their passages, set by set left out")
    print(
        f"{'set':20}{'answers':>8}{'IoU':>8}{'silence':>8}{'prec.':>8}{'recall':>8}{'AUROC':>8}"
        f"{'right marked':>14}{'ECE':>7}"
    )
    with ProcessPoolExecutor(2) as pool:
        for judged in pool.map(_judge, [shared] * 9, [*_SETS, *_HALVES]):
            print(_row(judged), flush=True)


def _judge(shared: Path, name: str) -> Judged:
    held_out, rest = _split(shared, name)
    detector = OfflineDetector(train_offline([*_asked(shared), *rest], recipe=HELD_OUT))
    labels = [labels_of(record, "gold") for record in held_out]
    return Judged(
        name,
        [
            judge(detector.rate(record.item), marked, None)
            for record, marked in zip(held_out, labels, strict=True)
        ],
        sum(end - start for marked in labels for start, end in marked.hard),
    )


def _split(shared: Path, name: str) -> tuple[list[Record], list[Record]]:
    """Return what is judged and what is learnt from: no document is on both sides."""
    records = {
        file: list(read(shared / "grounded" / f"{file}.jsonl", ReadOptions()))
        for files in _SETS.values()
        for file in files
    }
    if name in _HALVES:
        held_out = [
            record
            for record in records["wice_dev"]
            if _document(record.item)[0] % 2 == _HALVES.index(name)
        ]
        left_out: Sequence[str] = ()
    else:
        left_out = _SETS[name]
        held_out = records[_JUDGED.get(name, left_out[0])]
    documents = {_document(record.item) for record in held_out}
    rest = [
        record
        for file, listed in records.items()
        if file not in left_out
        for record in listed
        if _document(record.item) not in documents
    ]
    return held_out, rest


def _asked(shared: Path) -> Iterator[Record]:
    options = ReadOptions(contexts=shared / "mushroom" / "context", on_warning=lambda _: None)
    for file in sorted((shared / "mushroom" / "val").glob("*.jsonl")):
        yield from read(file, options)


def _document(item: Item) -> bytes:
    return sha256("\0".join(passage.text for passage in item.passages).encode()).digest()


def _row(judged: Judged) -> str:
    answers = judged.answers
    wrong = np.array([answer.wrong for answer in answers])
    marked = np.array([answer.marked > 0 for answer in answers])
    right, found = (sum(getattr(a, name) for a in answers) for name in ("right", "marked"))
    rated, labelled, counts = np.sum([answer.bins for answer in answers], axis=0)
    figures = (
        np.mean([answer.iou for answer in answers]),
        1 - wrong.mean(),
        right / max(found, 1),
        right / judged.gold,
        roc_auc_score(wrong, [answer.score for answer in answers]),
    )
    error = np.abs(rated - labelled).sum() / counts.sum()
    return (
        f"{judged.name:20}{len(answers):8}"
        + "".join(f"{figure:8.3f}" for figure in figures)
        + f"{marked[~wrong].mean():14.1%}{error:7.3f}"
    )


if __name__ == "__main__":
    main()
