"""The store at size: import, export, every kind of queue query, and one very long item.

100,000 items by default, 1,000,000 with SPANLAB_BENCH_FULL=1; SQLite, in a temporary directory,
and once into PostgreSQL.
"""

from __future__ import annotations

import filecmp
import multiprocessing
import os
import random
import resource
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from postgres import postgres

from spanlab.base.settings import Settings
from spanlab.data.importing import import_files
from spanlab.formats import read, write
from spanlab.oplog.operations import (
    AddSpan,
    CommentSpan,
    Redo,
    ResizeSpan,
    SentOperation,
    SetStatus,
    Undo,
)
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Item,
    QueueCursor,
    QueuePage,
    QueuePlace,
    QueueQuery,
    Record,
    Span,
    Status,
)
from spanlab.storage import Store
from spanlab.worklists import paging

_ITEMS = 1_000_000 if os.environ.get("SPANLAB_BENCH_FULL") == "1" else 100_000
_LANGUAGES = ("ar", "ca", "cs", "de", "en", "es", "eu", "fa", "fi", "fr", "hi", "it", "sv", "zh")
_RUNS = 30
_ANSWER = (
    "The lighthouse of Skagen was built in 1858 by Niels Sigfred Nebelong and is 46 metres tall. "
    "It was the tallest in Denmark until a taller one was lit on Bornholm in 1899. "
)
_SENTENCE = "Twelve keepers signed the book in 1861. "


@dataclass(frozen=True)
class Cost:
    """What a step took: seconds by the clock and of processor, and its highest resident memory."""

    seconds: float
    processor: float
    megabytes: float


def main() -> None:
    """Print seconds and rates of import and export, and p50 and p95 of every query."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        source, target = home / "in.jsonl", home / "out.jsonl"
        _make(source)
        size = source.stat().st_size / 1e6
        print(f"store: {_ITEMS:,} items, {size:,.0f} MB of JSONL, SQLite")
        _print_cost("import, validated", _in_own_process(_import, home, source))
        with postgres() as new_database:
            into = partial(_import_into, new_database())
            _print_cost("import, validated, into PostgreSQL", _in_own_process(into, home, source))
        _print_cost("export to JSONL", _in_own_process(_export, home, target))
        same = filecmp.cmp(source, target, shallow=False)
        print(f"  export is the import, byte for byte: {same}")
        with Store.open(_settings(home)) as store:
            _queries(store)
            _writes_during_import(store, source)
            _long_item(store)


def _queries(store: Store) -> None:
    any_item = QueueQuery(reviewer="rev")
    todo = replace(any_item, status=Status.NOT_ANNOTATED)
    kinds = {
        "no filter": any_item,
        "not annotated by the reviewer": todo,
        "language": replace(any_item, lang="zh"),
        "language, last in the file": replace(any_item, lang="eu"),
        "probability ≥ 0.99": replace(any_item, detector="det", min_prob=0.99),
        "detector found nothing": replace(any_item, detector="det", max_prob=0.0),
        "second annotator": replace(any_item, min_annotators=1, max_annotators=1),
        "todo, language, probability, disagreement": replace(
            todo, lang="zh", detector="det", min_prob=0.9, min_disagreement=0.9
        ),
        "nothing matches": replace(
            any_item, status=Status.SKIPPED, min_prob=0.5, min_disagreement=0.5, max_annotators=0
        ),
        "by disagreement": replace(any_item, order="disagreement"),
        "by disagreement, todo, language": replace(todo, order="disagreement", lang="zh"),
    }
    print(f"  {'queue':44} first page    deep page     next item     previous      standing")
    random.seed(7)
    for name, query in kinds.items():
        steps: tuple[Callable[[], object], ...] = (
            partial(paging.page, store, "bench", query),
            partial(_deep_page, store, query),
            partial(_neighbour, store, query, 1),
            partial(_neighbour, store, query, -1),
            partial(_standing, store, query),
        )
        print(f"  {name:44}", "  ".join(_p50_p95(step) for step in steps))
    print(f"  {'list of datasets':44}", _p50_p95(store.datasets))
    print(f"  {'one item':44}", _p50_p95(lambda: store.record("bench", _any_id())))
    print(f"  {'open one item for review':44}", _p50_p95(lambda: _review(store)))
    print(f"  {'mark it done':44}", _p50_p95(lambda: _finish(store)))
    print("  (milliseconds: p50/p95)")


def _writes_during_import(store: Store, source: Path) -> None:
    limit = min(_ITEMS, 100_000)
    records = (record for _, record in zip(range(limit), read(source), strict=False))
    thread = threading.Thread(target=lambda: store.import_records("second", records))
    thread.start()
    times = []
    while thread.is_alive():
        start = time.perf_counter()
        _finish(store)
        times.append(time.perf_counter() - start)
        time.sleep(0.05)
    print(f"  {'mark done while an import runs':44}", _format(times))


def _long_item(store: Store) -> None:
    answer = _SENTENCE * 2500
    spans = tuple(Span.of(answer, n * 50, n * 50 + 20, label="fact") for n in range(2000))
    said = tuple(
        Annotation(annotator=name, kind=kind, spans=spans)
        for name, kind in (("det", AnnotatorKind.DETECTOR), ("rev", AnnotatorKind.PERSON))
    )
    item = Item(id="long", answer=answer)
    store.import_records("long", [Record(item=item, annotations=said)])
    print(f"one item of {len(answer):,} characters, 2,000 own spans and 2,000 suggestions")
    version = 0

    def write(*operations: AddSpan | CommentSpan | Redo | ResizeSpan | SetStatus | Undo) -> None:
        nonlocal version
        writes = [
            SentOperation("bench", version + n + 1, version + n, operation)
            for n, operation in enumerate(operations)
        ]
        version = store.apply("long", "long", "rev", writes).version

    print(f"  {'open for review':44}", _p50_p95(lambda: store.review("long", "long", "rev")))
    write(SetStatus(status=Status.NOT_ANNOTATED))
    steps: dict[str, Callable[[], object]] = {
        "add": lambda: write(AddSpan(span=f"n{version}", start=version, end=version + 3)),
        "resize": lambda: write(ResizeSpan(span="i7", start=version, end=version + 9)),
        "batch of 5 notes": lambda: write(*[CommentSpan(span="i9", text=str(n)) for n in range(5)]),
        "undo": lambda: write(Undo()),
        "redo": lambda: write(Redo()),
        "done and not": lambda: write(
            SetStatus(status=Status.DONE), SetStatus(status=Status.NOT_ANNOTATED)
        ),
        "done": lambda: write(SetStatus(status=Status.DONE)),
    }
    for name, step in steps.items():
        print(f"  {name:44}", _p50_p95(step))


def _make(path: Path) -> None:
    random.seed(5)
    head = (
        '{{"id":"item-{n:07d}","lang":"{lang}","question":"When was it built, and by whom?",'
        f'"answer":"{_ANSWER.strip()}",'
        f'"passages":[{{{{"text":"{_ANSWER.strip()}","title":"Skagen"}}}}]'
        "{said}}}\n"
    )
    with path.open("w", encoding="utf-8") as file:
        for n in range(_ITEMS):
            said = [_said("gold", "gold", 1, 1.0)] if n % 3 else []
            if n % 10 < 9:
                said.append(_said("det", "detector", n % 3, round(random.random(), 3)))
            if n < _ITEMS // 2 or random.random() < 0.1:
                said.append(_said("rev", "person", n % 4, 1.0))
            if random.random() < 0.05:
                said.append(_said("ann", "person", 2, 1.0))
            annotations = f',"annotations":[{",".join(said)}]' if said else ""
            lang = "eu" if n > 0.99 * _ITEMS else random.choice(_LANGUAGES)
            file.write(head.format(n=n, lang=lang, said=annotations))


def _said(name: str, kind: str, n_spans: int, prob: float) -> str:
    spans = []
    for n in range(n_spans):
        start = random.randrange(100) + n * 20
        text = _ANSWER[start : start + 15]
        spans.append(f'{{"start":{start},"end":{start + 15},"text":"{text}","prob":{prob}}}')
    listed = ",".join(spans)
    return f'{{"annotator":"{name}","kind":"{kind}","status":"done","spans":[{listed}]}}'


def _settings(home: Path) -> Settings:
    return Settings(home=home, database_url=f"sqlite:///{home / 'bench.db'}")


def _import(home: Path, source: Path) -> None:
    _import_into(_settings(home).database_url, home, source)


def _import_into(url: str, home: Path, source: Path) -> None:
    with Store.open(Settings(home=home, database_url=url)) as store:
        import_files(store, [source], "bench")


def _export(home: Path, target: Path) -> None:
    with Store.open(_settings(home)) as store:
        write(store.records("bench"), target)


def _in_own_process(step: Callable[[Path, Path], None], home: Path, path: Path) -> Cost:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(_cost, step, home, path).result()


def _cost(step: Callable[[Path, Path], None], home: Path, path: Path) -> Cost:
    start = time.perf_counter()
    step(home, path)
    seconds = time.perf_counter() - start
    return Cost(
        seconds, time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    )


def _print_cost(name: str, cost: Cost) -> None:
    rate = _ITEMS / cost.seconds
    print(
        f"  {name:44} {cost.seconds:6.1f} s ({cost.processor:.1f} s of processor)  "
        f"{rate:,.0f} items/s  {cost.megabytes:.0f} MB resident"
    )


def _deep_page(store: Store, query: QueueQuery) -> QueuePage:
    place = QueueCursor(random.randrange(_ITEMS), random.choice((None, 0.3, 0.7, 1.0)))
    return paging.page(store, "bench", replace(query, after=place))


def _neighbour(store: Store, query: QueueQuery, step: int) -> str | None:
    return paging.neighbour(store, "bench", query, _any_id(), step)


def _standing(store: Store, query: QueueQuery) -> QueuePlace:
    return paging.standing(store, "bench", query, _any_id())


def _any_id() -> str:
    return f"item-{random.randrange(_ITEMS):07d}"


def _review(store: Store) -> None:
    store.review("bench", _any_id(), "rev")


_SEQUENCE: Iterator[int] = iter(range(1, 10**9))


def _finish(store: Store) -> None:
    item_id = _any_id()
    base = store.review("bench", item_id, "me").version
    done = SetStatus(status=Status.DONE)
    store.apply("bench", item_id, "me", [SentOperation("finish", next(_SEQUENCE), base, done)])


def _p50_p95(step: Callable[[], object]) -> str:
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        step()
        times.append(time.perf_counter() - start)
    return _format(times)


def _format(seconds: list[float]) -> str:
    cuts = statistics.quantiles(seconds, n=20, method="inclusive")
    return f"{cuts[9] * 1000:5.1f}/{cuts[18] * 1000:5.1f}  "


if __name__ == "__main__":
    main()
