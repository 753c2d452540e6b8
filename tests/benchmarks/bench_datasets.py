"""Reading and writing our own format against plain json on the same lines."""

from __future__ import annotations

import io
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from spanlab.formats import ReadOptions, read, write
from spanlab.formats.known import jsonl
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Span

_ROOT = Path(__file__).resolve().parents[2]
_ANSWER = "The lighthouse was built in 1921 by Norwegian sailors near the old harbour. 🗼"
_PLACES = [(19, 24), (28, 32), (36, 53), (63, 74)]


def main() -> None:
    """Print microseconds of processor time per record and ratios, all measured in this run."""
    print("\n# our own format: checked reads and writes against json.loads and json.dumps")
    print(f"{'records':42} {'bytes':>6} {'loads':>7} {'read':>7} {'':>6} {'dumps':>7} {'write':>7}")
    rows("small: 1 annotator, 2 spans", [small(index, 1, 2) for index in range(5000)])
    rows("3 annotators, 4 spans each", [small(index, 3, 4) for index in range(3000)])
    shared = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if shared.is_dir():
        rows("Mu-SHROOM validation, labels and raw spans", published(shared))
    else:
        print(f"Mu-SHROOM validation: no shared data at {shared}, set SPANLAB_SHARED")


def rows(name: str, records: list[Record]) -> None:
    """Time both ways over the same lines and print one row of the table."""
    lines = [jsonl.dumps(record) for record in records]
    values = [json.loads(line) for line in lines]
    n = len(records)
    loads = best(lambda: [json.loads(line) for line in lines]) / n
    dumps = best(lambda: [json.dumps(value, ensure_ascii=False) for value in values]) / n
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.jsonl"
        path.write_bytes(b"".join(lines))
        reading = best(lambda: sum(1 for _ in read(path, ReadOptions(format="spanlab")))) / n
    writing = best(lambda: write(records, io.BytesIO())) / n
    print(
        f"{name:42} {sum(map(len, lines)) // n:6} {loads:5.1f}µs {reading:5.1f}µs "
        f"{reading / loads:5.1f}× {dumps:5.1f}µs {writing:5.1f}µs {writing / dumps:5.1f}×"
    )


def best(run: Callable[[], Any], repeat: int = 5) -> float:
    """Return the microseconds of processor time of the fastest of ``repeat`` runs."""
    times = []
    for _ in range(repeat):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return min(times) * 1e6


def small(index: int, annotators: int, spans: int) -> Record:
    """Return a made-up record."""
    item = Item(
        id=f"item-{index}",
        lang="en",
        question="Who built the lighthouse, and when?",
        answer=_ANSWER,
        passages=(Passage(text="The town raised the lighthouse in 1912."),),
    )
    found = tuple(Span.of(_ANSWER, *place, prob=0.75) for place in _PLACES[:spans])
    return Record(
        item=item,
        annotations=tuple(
            Annotation(annotator=f"annotator-{number}", kind=AnnotatorKind.PERSON, spans=found)
            for number in range(annotators)
        ),
    )


def published(shared: Path) -> list[Record]:
    """Return the validation items without the model's tokens and logits."""
    options = ReadOptions(on_warning=lambda _: None)
    return [
        record.model_copy(update={"item": record.item.model_copy(update={"meta": {}})})
        for path in sorted((shared / "mushroom" / "val").glob("*.jsonl"))
        for record in read(path, options)
    ]


if __name__ == "__main__":
    main()
