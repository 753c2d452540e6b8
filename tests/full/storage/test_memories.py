"""The evidence memory on both databases."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path

import pytest
from postgres import Cluster

from spanlab.base.errors import NotFoundError
from spanlab.base.settings import Settings
from spanlab.detection.entities import grams
from spanlab.detection.memory import EvidenceMemory, MemoryChoice
from spanlab.memory.store import MemoryStore
from spanlab.schema import Passage
from spanlab.schema.memory import MemoryEntry

CLAIM = "The Eiffel Tower is 330 metres tall."
NOW = time.time()
DAY = 86_400.0


@pytest.fixture
def opened(settings: Settings) -> Iterator[MemoryStore]:
    with MemoryStore.open(settings) as store:
        yield store


def entry(text: str, *, at: float = NOW - 10, **more: object) -> MemoryEntry:
    return MemoryEntry.model_validate({"text": text, "url": "https://a.example", "at": at, **more})


def keep(store: MemoryStore, names: Sequence[str], *entries: MemoryEntry, scope: str = "") -> None:
    asyncio.run(EvidenceMemory(store, MemoryChoice(scope=scope)).keep(names, entries))


def recalled(store: MemoryStore, *names: str, **choice: object) -> list[str]:
    memory = EvidenceMemory(store, MemoryChoice.model_validate(choice))
    return [each.text for each in asyncio.run(memory.recall(names, CLAIM))]


def test_evidence_is_recalled_under_every_name_of_its_entities_once(opened: MemoryStore) -> None:
    tall = entry("The tower is 330 metres tall.", query="tower\x00", title="Tower")
    keep(opened, ["The Eiffel Tower", "330 metres"], tall)
    keep(opened, ["Gustave Eiffel"], tall)
    assert recalled(opened, "EIFFEL TOWER", "Gustave Eiffel") == [tall.text]
    assert recalled(opened, "Eifel tower") == [tall.text], "a near name"
    assert recalled(opened, "Tower of London", "metres") == []
    opened.learn("iron lady", "eiffel tower")
    assert recalled(opened, "the Iron Lady") == [tall.text]
    (stored,) = opened.entries("")
    assert stored.entry.entities == ("eiffel tower", "gustave eiffel")
    assert (stored.entry.query, stored.entry.title) == ("tower\x00", "Tower")


def test_a_crowded_entity_does_not_flood_the_prompt(opened: MemoryStore) -> None:
    crowd = [entry(f"The tower has visitor number {n}. " + "x" * 600) for n in range(40)]
    keep(opened, ["Eiffel Tower"], *crowd, entry("It is 330 metres tall.", at=NOW - 99))
    found = recalled(opened, "Eiffel Tower")
    assert found[0] == "It is 330 metres tall."
    assert len(found) <= 8
    assert sum(map(len, found)) <= 4_000
    oldest = next(each for each in opened.entries("") if "number 0." in each.entry.text)
    opened.pin(oldest.id, pinned=True)
    assert "number 0." in recalled(opened, "Eiffel Tower")[0]


def test_what_is_too_old_too_new_or_blocked_is_not_recalled(opened: MemoryStore) -> None:
    first = datetime(2026, 5, 1, tzinfo=UTC).timestamp()
    old = entry("The tower was old.", at=first, expires=first + 40 * DAY)
    new = entry("The tower is new.", at=first + 20 * DAY)
    keep(opened, ["Eiffel Tower"], old, new, entry("A lie.", date="2026-11-03"))
    assert set(recalled(opened, "Eiffel Tower")) == {new.text, "A lie."}
    assert recalled(opened, "Eiffel Tower", as_of=date(2026, 5, 2)) == [old.text]
    assert set(recalled(opened, "Eiffel Tower", as_of=date(2026, 5, 30))) == {old.text, new.text}
    early = EvidenceMemory(opened, MemoryChoice()).recall(
        ["Eiffel Tower"], CLAIM, date(2026, 11, 3)
    )
    assert [each.text for each in asyncio.run(early)] == [new.text]
    lie = next(each for each in opened.entries("", "eiffel tower") if each.entry.text == "A lie.")
    opened.block(lie.id, blocked=True)
    keep(opened, ["Eiffel Tower"], entry("A lie."))
    assert recalled(opened, "Eiffel Tower") == [new.text]
    with pytest.raises(NotFoundError, match="no entry 99999"):
        opened.block(99_999, blocked=True)


def test_a_deleted_entry_leaves_no_name_behind(opened: MemoryStore) -> None:
    keep(opened, ["Eiffel Tower"], entry("One."))
    keep(opened, ["Eiffel Tower", "Gustave Eiffel"], entry("Two."))
    two, one = opened.page("")
    assert [each.id for each in opened.page("", "eiffel tower", before=two.id)] == [one.id]
    opened.delete(two.id)
    assert recalled(opened, "Eiffel Tower", "Gustave Eiffel") == ["One."]
    assert opened.similar("", grams("gustave eiffel")) == ["eiffel tower"]
    with pytest.raises(NotFoundError, match=f"no entry {two.id}"):
        opened.delete(two.id)


def test_scopes_are_apart_and_nothing_is_kept_where_that_is_not_wanted(opened: MemoryStore) -> None:
    keep(opened, ["Eiffel Tower"], entry("Ours."), scope="ours")
    keep(opened, ["Eiffel Tower"], entry("Everybody's."))
    assert recalled(opened, "Eiffel Tower") == ["Everybody's."]
    assert recalled(opened, "Eiffel Tower", scope="ours") == ["Ours."]
    assert recalled(opened, "Eiffel Tower", mode="off") == []
    for choice in ({"mode": "off"}, {"mode": "read-only"}, {"as_of": date(2030, 1, 1)}):
        memory = EvidenceMemory(opened, MemoryChoice.model_validate(choice))
        asyncio.run(memory.keep(["Eiffel Tower"], [entry("Not kept.")]))
    assert opened.scopes() == {"": 1, "ours": 1}
    assert opened.clear("ours") == 1
    assert opened.scopes() == {"": 1}
    assert recalled(opened, "Eifel Tower", scope="ours") == []


def test_a_redirect_teaches_another_name_in_both_directions(opened: MemoryStore) -> None:
    memory = EvidenceMemory(opened, MemoryChoice())
    keep(opened, ["Eiffel Tower"], entry("Kept before."))
    asyncio.run(memory.learn("Iron Lady", "Eiffel Tower"))
    keep(opened, ["The Iron Lady"], entry("Kept under the other name."))
    assert recalled(opened, "Eiffel Tower") == ["Kept under the other name.", "Kept before."]
    assert len(recalled(opened, "Iron Lady")) == 2
    asyncio.run(
        EvidenceMemory(opened, MemoryChoice(mode="read-only")).learn("La Dame", "Eiffel Tower")
    )
    assert recalled(opened, "La Dame") == []


_WORKER = """
import asyncio, sys, time
from pathlib import Path
from spanlab.detection.memory import MemoryChoice, MemoryEntry
from spanlab.memory import memory
from spanlab.schema import Passage
from spanlab.base.settings import Settings
kept = memory(Settings(home=Path(sys.argv[1]), database_url=sys.argv[2]), MemoryChoice())
async def claim(number):
    async def search():
        with open(Path(sys.argv[1]) / "searches", "a") as searches:
            searches.write(f"{number}\\n")
        await asyncio.sleep(0.05)
        return [Passage(text=f"Tower {number} is old.")]
    (found,) = await kept.once(["search", number], search, kind="search", seconds=300)
    entry = MemoryEntry(text=found.text, url=f"https://{number}.example", at=time.time())
    await kept.keep([f"Tower {number}"], [entry])
async def run():
    await asyncio.gather(*map(claim, range(20)))
print("ready", flush=True)
sys.stdin.readline()
asyncio.run(run())
"""


def test_two_processes_on_one_database_search_once_and_keep_once(
    server: Cluster, migrated_database: str, tmp_path: Path
) -> None:
    url = server.emptied(migrated_database)
    command = [sys.executable, "-c", _WORKER, str(tmp_path), url]
    pipe = subprocess.PIPE
    start = partial(subprocess.Popen[str], command, stdin=pipe, stdout=pipe, text=True)
    with start() as one, start() as other:
        for worker in (one, other):
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for worker in (one, other):
            assert worker.stdin is not None
            worker.stdin.write("go\n")
            worker.stdin.close()
    assert (one.returncode, other.returncode) == (0, 0)
    assert sorted(map(int, (tmp_path / "searches").read_text().split())) == list(range(20))
    with MemoryStore.open(Settings(home=tmp_path, database_url=url)) as store:
        assert store.scopes() == {"": 20}


def test_two_workers_that_ask_the_same_at_once_ask_once(settings: Settings) -> None:
    calls: list[str] = []

    async def ask(memory: EvidenceMemory, name: str) -> tuple[Passage, ...]:
        async def run() -> list[Passage]:
            calls.append(name)
            await asyncio.sleep(0.3)
            return [Passage(text="found")]

        return await memory.once(["search", "tower"], run, kind="search", seconds=20)

    async def both(one: EvidenceMemory, other: EvidenceMemory) -> None:
        # Two stores share nothing in this process, as two workers do not.
        first, second = await asyncio.gather(ask(one, "one"), ask(other, "other"))
        assert first == second == await ask(one, "again") == (Passage(text="found"),)

    with MemoryStore.open(settings) as one, MemoryStore.open(settings) as other:
        asyncio.run(
            both(EvidenceMemory(one, MemoryChoice()), EvidenceMemory(other, MemoryChoice()))
        )
        assert len(calls) == 1
        # Whoever asked and died is waited for no longer than it may take.
        assert one.ask("", "dead", now=0.0, until=30.0) is True
        assert other.ask("", "dead", now=29.0, until=59.0) is False
        assert other.ask("", "dead", now=30.0, until=60.0) is True
        assert one.ask("", "dead", now=-9e6, until=30.0 - 9e6) is True, "the clock was set back"
        assert other.ask("", "dead", now=-9e6, until=30.0 - 9e6) is False
        other.answer("", "dead", None, 0.0)
        assert one.ask("", "dead", now=31.0, until=61.0) is True, "a call that failed is made again"
        other.answer("", "dead", "[]", 99.0)
        one.sweep(98.0)
        assert other.ask("", "dead", now=60.0, until=61.0) == "[]"
        one.sweep(99.0)
        assert other.ask("", "dead", now=60.0, until=61.0) is True, "nothing is left of it"
