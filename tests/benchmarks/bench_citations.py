"""The detector ``citations``: planted faults by label and language, and claims of WiCE.

The threshold was chosen on the half "tune" of ``data/citations.jsonl``; the guide has the other
half's figures. On WiCE every claim cites its page; the judge has learnt from no claim of WiCE, and
has a third of the shipped one's trees.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench_grounded import _asked, _split

from spanlab.detection import detector
from spanlab.formats import ReadOptions, read
from spanlab.schema import Citation, CitationLabel, Record, Span
from spanlab.systems.citations.detector import CitationDetector
from spanlab.systems.offline.detector import OfflineDetector
from spanlab.systems.offline.training import HELD_OUT, train_offline

_ROOT = Path(__file__).resolve().parents[2]


def main() -> None:
    """Print a row for each label and language, then the row of WiCE."""
    print("\n# citations: planted faults, by half, label and language")
    print(f"{'':8}{'label':30}{'lang':6}{'planted':>8}{'marked':>8}{'right':>8}{'found':>8}")
    records = list(read(_ROOT / "data" / "citations.jsonl", ReadOptions()))
    for part in ("tune", "judge"):
        half = [record for record in records if record.item.meta["part"] == part]
        _print_half(part, half)
    shared = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if not shared.is_dir():
        print(f"no shared data at {shared}, set SPANLAB_SHARED")
        return
    held_out, rest = _split(shared, "claims")
    judge = OfflineDetector(train_offline([*_asked(shared), *rest], recipe=HELD_OUT))
    wrong, marked, right = judged_claims(held_out, CitationDetector(judge.annotate))
    print(
        f"WiCE: {len(held_out)} claims, {wrong} not supported, {marked} marked, {right} of them "
        f"rightly: precision {right / marked:.3f}, recall {right / wrong:.3f}"
    )


def judged_claims(records: Iterable[Record], citations: CitationDetector) -> tuple[int, int, int]:
    """Return how many claims are wrong, marked, and both; each cites all its passages."""
    count = Counter[str]()
    for record in records:
        every = tuple(range(len(record.item.passages)))
        cited = Citation(start=0, end=len(record.item.answer), passages=every)
        item = record.item.model_copy(update={"citations": (cited,)})
        gold = record.by("gold")
        wrong = bool(gold and gold.spans)
        marked = any(
            span.label == CitationLabel.NOT_IN_SOURCE for span in citations.annotate(item).spans
        )
        count.update(wrong=wrong, marked=marked, right=wrong and marked)
    return count["wrong"], count["marked"], count["right"]


def _print_half(part: str, records: Sequence[Record]) -> None:
    count = Counter[tuple[str, str, str]]()
    for record in records:
        (gold,) = record.annotations
        found = detector("citations").annotate(record.item).spans
        for label in CitationLabel:
            planted = [span for span in gold.spans if span.label == label]
            marked = [span for span in found if span.label == label]
            for lang in ("all", record.item.lang):
                count[label, lang, "planted"] += len(planted)
                count[label, lang, "marked"] += len(marked)
                count[label, lang, "right"] += _meeting(marked, planted)
                count[label, lang, "found"] += _meeting(planted, marked)
    langs = sorted({record.item.lang for record in records})
    for label in CitationLabel:
        for lang in ("all", *langs):
            of_row = (count[label, lang, name] for name in ("planted", "marked", "right", "found"))
            print(f"{part:8}{label:30}{lang:6}" + "".join(f"{number:8}" for number in of_row))


def _meeting(spans: Sequence[Span], others: Sequence[Span]) -> int:
    """Return how many spans share a character with another."""
    return sum(any(s.start < o.end and o.start < s.end for o in others) for s in spans)


if __name__ == "__main__":
    main()
