"""Recall from 100,000 entries of the evidence memory, on SQLite and on PostgreSQL.

Each entry lies under two of 30,000 names, one in twenty also under one crowded name. A claim asks
for two names, as a triplet has them.

Run with: python tests/benchmarks/bench_memory.py
"""

from __future__ import annotations

import asyncio
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from postgres import postgres

from spanlab.base.settings import Settings
from spanlab.detection.entities import grams, key_of
from spanlab.detection.memory import EvidenceMemory, MemoryChoice
from spanlab.memory.store import MemoryStore
from spanlab.schema.memory import MemoryEntry

_ENTRIES, _NAMES, _BATCH, _RUNS = 100_000, 30_000, 500, 300
_CROWD = "United States"
_SYLLABLES = (
    *("al", "ber", "cor", "dun", "el", "fen", "gar", "hol", "in", "jor", "kel", "lam", "mor"),
    *("nor", "os", "pel", "quin", "rav", "sel", "tor", "ash", "brae", "ciu", "dyn", "eth", "fyr"),
    *("gwy", "hux", "ivo", "jat", "kyl", "lud", "myr", "nyx", "oth", "pry", "rhu", "sky", "tvo"),
)


def main() -> None:
    """Print p50 and p95 of recalls, and the largest share of a prompt."""
    with tempfile.TemporaryDirectory() as folder, postgres() as new_database:
        home = Path(folder)
        for name, url in {
            "SQLite": f"sqlite:///{home / 'bench.db'}",
            "PostgreSQL": new_database(),
        }.items():
            with MemoryStore.open(Settings(home=home, database_url=url)) as store:
                asyncio.run(_measure(name, store))


def _asked(names: list[str]) -> dict[str, Callable[[], list[str]]]:
    return {
        "names that are known": lambda: random.sample(names, 2),
        "one misspelt": lambda: [_misspelt(random.choice(names)), random.choice(names)],
        "nothing known": lambda: [_name() + "ax", _name() + "ix"],
        "the crowded one": lambda: ["U.S.", random.choice(names)],
    }


async def _measure(name: str, store: MemoryStore) -> None:
    random.seed(5)
    names = list({_name(): None for _ in range(2 * _NAMES)})[:_NAMES]
    start = time.perf_counter()
    for first in range(0, _ENTRIES, _BATCH):
        _fill(store, names, first)
    print(f"{name}: {_ENTRIES:,} entries kept in {time.perf_counter() - start:.0f} s")
    memory = EvidenceMemory(store, MemoryChoice(mode="read-only"))
    for what, some in _asked(names).items():
        times, sizes = [], []
        for _ in range(_RUNS):
            wanted = some()
            claim = f"{wanted[0]} was visited by {wanted[1]} in {random.randint(1900, 2020)}."
            began = time.perf_counter()
            found = await memory.recall(wanted, claim)
            times.append(1000 * (time.perf_counter() - began))
            sizes.append(sum(len(each.text) for each in found))
        p95 = statistics.quantiles(times, n=20)[-1]
        print(
            f"  {what:22} p50 {statistics.median(times):5.1f} ms, p95 {p95:5.1f} ms; "
            f"recalled by {sum(map(bool, sizes))} of {_RUNS}, {max(sizes):,} characters at most"
        )


def _fill(store: MemoryStore, names: list[str], first: int) -> None:
    entries = []
    for number in range(first, first + _BATCH):
        one, other = random.sample(names, 2)
        about = [one, other, _CROWD] if number % 20 == 0 else [one, other]
        year = random.randint(1900, 2020)
        text = f"{one} was visited by {other} in {year}. " + "It has a tower of stone. " * 10
        keys = tuple(map(key_of, about))
        entries.append(
            MemoryEntry(text=text, entities=keys, url=f"https://{number}.example/", at=1e9 + number)
        )
    named = {key for entry in entries for key in entry.entities}
    store.keep("", entries, {key: grams(key) for key in named})


def _name() -> str:
    words = ("".join(random.choices(_SYLLABLES, k=3)).title() for _ in range(2))
    return " ".join(words)


def _misspelt(name: str) -> str:
    at = random.randrange(1, len(name) - 1)
    return name[:at] + name[at + 1 :]


if __name__ == "__main__":
    main()
