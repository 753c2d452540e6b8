"""Search in 100,000 items of several scripts, on SQLite and on PostgreSQL.

Items have 40 words or 150 characters of Chinese; words are as frequent as in real texts (Zipf).
"""

from __future__ import annotations

import random
import statistics
import string
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from postgres import postgres

from spanlab.base.settings import Settings
from spanlab.schema import Annotation, AnnotatorKind, Item, QueueQuery, Record
from spanlab.storage import Store
from spanlab.worklists import paging

_ITEMS = 100_000
_RUNS = 10
_WORDS, _SIGNS = 30_000, 3_000


def main() -> None:
    """Print the time of an import, and p50 and p95 of searches and of the pages they fill."""
    with tempfile.TemporaryDirectory() as folder, postgres() as new_database:
        home = Path(folder)
        urls = {"SQLite": f"sqlite:///{home / 'bench.db'}"}
        urls["PostgreSQL"] = new_database()
        for name, url in urls.items():
            with Store.open(Settings(home=home, database_url=url)) as store:
                _measure(name, store)


def _measure(name: str, store: Store) -> None:
    start, computed = time.perf_counter(), time.process_time()
    store.import_records("bench", _records())
    seconds, processor = time.perf_counter() - start, time.process_time() - computed
    print(f"{name}: {_ITEMS:,} items imported in {seconds:.0f} s ({processor:.0f} s of processor)")
    words, signs = _vocabulary()
    searches = {
        "a word of half of the items": words[0],
        "a rare word": words[20_000],
        "one letter": words[0][0],
        "two frequent words": f"{words[0]} {words[1]}",
        "one Chinese character, the most frequent": signs[0],
        "two Chinese characters": signs[0] + signs[1],
        "five Chinese characters": "".join(signs[:5]),
        "a comment": "checked",
        "an id": "item-77777",
        "nothing": "qqqqqqqqqq",
    }
    for what, searched in searches.items():
        query = QueueQuery(reviewer="me", text=searched)
        ranked = QueueQuery(reviewer="me", text=searched, order="disagreement", blind=True)
        times = [_times(partial(paging.page, store, "bench", each)) for each in (query, ranked)]
        found = len(paging.positions(store, "bench", query))
        print(f"  {what:42} {found:7,} items   {times[0]}   by disagreement, blind {times[1]}")
    print("  (milliseconds: p50/p95 of the first page, and what this process computed of the p50)")


def _records() -> Iterator[Record]:
    random.seed(3)
    words, signs = _vocabulary()
    zipf = [1 / (rank + 1) for rank in range(_WORDS)]
    for n in range(_ITEMS):
        if n % 4:
            answer = " ".join(random.choices(words, zipf, k=40))
        else:
            answer = "".join(random.choices(signs, zipf[:_SIGNS], k=150))
        said: tuple[Annotation, ...] = ()
        if n % 10 == 0:
            said = (Annotation(annotator="Ben", kind=AnnotatorKind.PERSON, note=f"checked {n}"),)
        yield Record(item=Item(id=f"item-{n}", answer=answer), annotations=said)


def _vocabulary() -> tuple[list[str], list[str]]:
    dice = random.Random(1)
    words = [
        "".join(dice.choices(string.ascii_lowercase, k=dice.randint(2, 9))) for _ in range(_WORDS)
    ]
    return words, [chr(0x4E00 + n) for n in range(_SIGNS)]


def _times(step: Callable[[], object]) -> str:
    times, processor = [], []
    for _ in range(_RUNS):
        start, computed = time.perf_counter(), time.process_time()
        step()
        times.append((time.perf_counter() - start) * 1000)
        processor.append((time.process_time() - computed) * 1000)
    cuts = statistics.quantiles(times, n=20, method="inclusive")
    return f"{cuts[9]:5.0f}/{cuts[18]:5.0f} ({statistics.median(processor):4.0f})"


if __name__ == "__main__":
    main()
