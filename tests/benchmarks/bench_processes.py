"""Processes at size: import, opening, and one claim followed to its sources, by number of nodes.

Processes are shaped like an index of GraphRAG: text units, descriptions, reports, map answers and
an answer. 1,000 to 115,000 nodes, and 1,000,000 with SPANLAB_BENCH_FULL=1; SQLite, in a temporary
directory. Evidence is chosen and judged by a script, so that no model's time is in the figures.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from spanlab.base.settings import Settings
from spanlab.data.importing import import_files
from spanlab.schema import ProcessNode, SharedProcess
from spanlab.schema.stages import stages_of
from spanlab.storage import Store
from spanlab.systems.veritrail.entries import VeriTrailOptions
from spanlab.systems.veritrail.evidence import ClaimRuling, NodeSentence, SelectedEvidence
from spanlab.systems.veritrail.trail import TrailReader
from spanlab.systems.veritrail.walk import walk

_FULL = os.environ.get("SPANLAB_BENCH_FULL") == "1"
_SIZES = (1_000, 10_000, 115_000, *((1_000_000,) if _FULL else ()))
_TEXT = (
    "The keeper of the lighthouse signed the book in 1861. He had come from Skagen by boat. "
    "Twelve others signed it after him, and the last of them left when the light went out. "
)
_CLAIMS = 10
_YIELDING = 2  # nodes of each round that give evidence


class Followed(NamedTuple):
    """One claim: rounds, nodes read, and seconds a round."""

    rounds: int
    nodes: int
    seconds: float


def main() -> None:
    """Print a row for each size."""
    if _FULL:
        os.environ["SPANLAB_RECORD_LIMIT"] = "512"  # a million nodes take more than is allowed
    print("processes: SQLite, times by the clock (processor)")
    print("     nodes   import            memory   opened   a round   rounds   nodes read")
    for size in _SIZES:
        with tempfile.TemporaryDirectory() as folder:
            home = Path(folder)
            write(home / "process.jsonl", size)
            taken, processor, memory = _in_own_process(_import, home)
            with Store.open(_settings(home)) as store:
                opened = min(_timed(partial(_open, store)) for _ in range(5))
                found = [_follow(store) for _ in range(_CLAIMS)]
        nodes = max(each.nodes for each in found)
        a_round = sorted(each.seconds for each in found)[_CLAIMS // 2]
        print(
            f"{size:10,} {taken:6.1f} s ({processor:5.1f} s) {memory:6.0f} MB "
            f"{opened * 1000:6.0f} ms {a_round * 1000:6.1f} ms {found[0].rounds:6} "
            f"{nodes:8,} = {nodes / size:.2%}"
        )


def _nodes(size: int) -> Iterator[ProcessNode]:
    rng = random.Random(7)
    units, reports, maps = max(size // 36, 10), max(size // 25, 20), 20
    described = size - units - reports - maps - 1

    def some(kind: str, count: int, most: int) -> tuple[str, ...]:
        return tuple(f"{kind} {number}" for number in rng.sample(range(count), min(most, count)))

    for kind, count, stage, source, among, most in (
        ("unit", units, "text unit", "", 0, 0),
        ("entity", described, "entity", "unit", units, 3),
        ("report", reports, "report", "entity", described, 24),
        ("map", maps, "map answer", "report", reports, 8),
    ):
        for number in range(count):
            text = f"{kind} {number}. {_TEXT * (3 if kind == 'report' else 2)}"
            sources = some(source, among, most) if source else ()
            yield ProcessNode(id=f"{kind} {number}", text=text, stage=stage, sources=sources)
    yield ProcessNode(id="answer", text=_TEXT, stage="answer", sources=some("map", maps, maps))


def write(path: Path, size: int) -> None:
    """Write an item ``q`` with a process of ``size`` nodes, and an item ``blank`` without one."""
    with path.open("w") as stream:
        for node in _nodes(size):
            line = {"process": "index", "node": node.model_dump(mode="json")}
            stream.write(json.dumps(line) + "\n")
        process = {"id": "index", "terminal": "answer"}
        item = {"id": "q", "lang": "en", "answer": _TEXT, "process": process}
        stream.write(json.dumps(item) + "\n")
        stream.write(json.dumps({"id": "blank", "lang": "en", "answer": "Nothing."}) + "\n")


def _import(home: Path) -> None:
    with Store.open(_settings(home)) as store:
        import_files(store, [home / "process.jsonl"], "bench")


def _open(store: Store) -> None:
    """Read what Review shows of a trail: the item, the sizes of stages, and the nodes on it."""
    item = store.record("bench", "q").item
    stages = stages_of(item)
    assert stages is not None
    assert isinstance(item.process, SharedProcess)
    opened = item.process.opened()
    assert len(opened.read(opened.terminal.sources)) == len(opened.terminal.sources)


class _Script:
    """Chooses a sentence of the first few nodes, and finds every claim supported."""

    async def choose(self, found: Sequence[NodeSentence]) -> SelectedEvidence:
        nodes = list(dict.fromkeys(each.node for each in found))[:_YIELDING]
        return SelectedEvidence(tuple(next(s for s in found if s.node == n) for n in nodes), "said")

    async def rule(self, evidence: Sequence[str]) -> ClaimRuling:
        return ClaimRuling("supported", "so")


def _follow(store: Store) -> Followed:
    process = store.record("bench", "q").item.process
    assert isinstance(process, SharedProcess)
    opened = process.opened()
    trail = TrailReader(_Script(), opened, "en", VeriTrailOptions(sentences=10_000))
    start = time.perf_counter()
    found = asyncio.run(walk(opened, select=trail.select, judge=trail.judge))
    taken = time.perf_counter() - start
    return Followed(len(found.rounds), len(opened.by_id), taken / len(found.rounds))


def _timed(step: Callable[[], object]) -> float:
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def _in_own_process(step: Callable[[Path], None], home: Path) -> tuple[float, float, float]:
    """Return seconds by the clock and of processor, and megabytes at most."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=context) as pool:
        return pool.submit(_measured, step, home).result()


def _measured(step: Callable[[Path], None], home: Path) -> tuple[float, float, float]:
    start, processor = time.perf_counter(), time.process_time()
    step(home)
    taken = time.perf_counter() - start, time.process_time() - processor
    return *taken, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _settings(home: Path) -> Settings:
    return Settings(home=home, database_url=f"sqlite:///{home / 'bench.db'}")


if __name__ == "__main__":
    main()
