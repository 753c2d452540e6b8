"""A local corpus at size, and findings saved beside plain annotations.

100,000 passages of words that are as unevenly common as in real texts (Zipf).
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from spanlab.base.settings import Settings
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Evidence,
    Item,
    Passage,
    Record,
    Retrieval,
    Span,
    joined,
)
from spanlab.search.index import PassageIndex, build
from spanlab.storage import Store

_PASSAGES = 100_000
_WORDS = 80  # of a passage
_VOCABULARY = 200_000
_QUERIES = 200
_ITEMS = 2_000


class _Finding(NamedTuple):
    item: Item
    annotations: tuple[Annotation, ...]


def main() -> None:
    """Print what building, opening and searching an index takes, and what saving findings does."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        texts = _corpus(home / "corpus.jsonl")
        print(f"retrieval: {_PASSAGES:,} passages of {_WORDS} words")
        seconds = _seconds(lambda: build(home / "corpus.jsonl", home / "index"))
        size = sum(path.stat().st_size for path in (home / "index").iterdir())
        rate = _PASSAGES / seconds
        print(f"  build      {seconds:8.1f} s   {rate:,.0f} passages/s   {size / 1e6:,.0f} MB")
        print(f"  open       {_seconds(lambda: PassageIndex(home / 'index')) * 1000:8.0f} ms")
        index = PassageIndex(home / "index")
        index.search(texts[0], 5)  # the first pages come from disk
        for words in (5, 12, 80, 2000):
            _print_search(index, texts, words)
        _print_saving(home)


def _corpus(path: Path) -> list[str]:
    chance = np.random.default_rng(1)
    ranks = chance.zipf(1.2, size=(_PASSAGES, _WORDS)) % _VOCABULARY
    texts = [" ".join(f"w{rank:x}" for rank in row) for row in ranks]
    with path.open("w", encoding="utf-8") as stream:
        for number, text in enumerate(texts):
            stream.write(json.dumps({"text": text, "title": f"Text {number}"}) + "\n")
    return texts


def _print_search(index: PassageIndex, texts: list[str], words: int) -> None:
    chance = np.random.default_rng(words)
    took, right = [], 0
    for at in chance.integers(0, len(texts), size=_QUERIES):
        chosen = " ".join(chance.choice(texts[at].split(), size=words))
        began = time.perf_counter()
        hits = index.search(chosen, 5)
        took.append((time.perf_counter() - began) * 1000)
        right += any(hit.passage.text == texts[at] for hit in hits)
    p95 = statistics.quantiles(took, n=20)[-1]
    print(
        f"  search {words:5} words: p50 {statistics.median(took):5.1f} ms, p95 {p95:5.1f} ms; "
        f"{right / _QUERIES:.0%} find the passage that the words are from"
    )


def _print_saving(home: Path) -> None:
    answer = "The tower is 312 metres tall."
    found = Passage(text="The tower is 330 metres tall. " * 20, url="https://a.example")
    items = [Item(id=f"i{number}", answer=answer) for number in range(_ITEMS)]
    quote = Evidence(start=0, end=9, text=found.text[:9], passage=0)
    spans = (Span.of(answer, 13, 16, prob=0.9, evidence=(quote,)),)
    said = Annotation(annotator="ucsc", kind=AnnotatorKind.DETECTOR, spans=spans)
    bare = said.model_copy(update={"annotator": "bare", "spans": (Span.of(answer, 13, 16),)})
    with Store.open(Settings(home=home, database_url=f"sqlite:///{home}/bench.db")) as store:
        store.import_records("d", (Record(item=item) for item in items))
        plain = _seconds(lambda: store.save_annotations("d", ((each.id, bare) for each in items)))
        grown = [
            _Finding(joined(each, Retrieval(retriever="web", queries=("?",)), [found]), (said,))
            for each in items
        ]
        seconds = _seconds(lambda: store.save_findings("d", grown))
    print(
        f"  save {_ITEMS:,} findings with new passages: {_ITEMS / seconds:,.0f} items/s, "
        f"{seconds / plain:.1f}x the time of annotations alone"
    )


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
