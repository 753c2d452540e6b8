"""Asked once, by whoever comes first, for all who ask at the same time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import pytest

from spanlab.base.errors import BudgetError, UnavailableError
from spanlab.base.runtime import SingleFlight


@dataclass
class Asking:
    """Answers when it is let go, first with its errors."""

    errors: list[Exception] = field(default_factory=list)
    asked: int = 0
    let_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self) -> str:
        self.asked += 1
        await self.let_go.wait()
        if self.errors:
            raise self.errors.pop(0)
        return "so"


async def ask_at_once(asking: Asking, keys: str) -> list[str | BaseException]:
    """Ask once for each letter, let go, and return what each got."""
    flight: SingleFlight[str] = SingleFlight()
    tasks = [asyncio.create_task(flight.join(key, asking)) for key in keys]
    await asyncio.sleep(0.05)
    asking.let_go.set()
    found = await asyncio.gather(*tasks, return_exceptions=True)
    assert await flight.join(keys[0], asking) == "so", "nothing is kept"
    return found


def test_one_asks_and_all_get_the_answer() -> None:
    asking = Asking()
    assert asyncio.run(ask_at_once(asking, "aaabb")) == ["so"] * 5
    assert asking.asked == 2 + 1


def test_an_error_is_for_all_who_wait() -> None:
    asking = Asking([UnavailableError("on fire")])
    found = asyncio.run(ask_at_once(asking, "aaa"))
    assert [str(each) for each in found] == ["on fire"] * 3
    assert asking.asked == 1 + 1


def test_a_spent_budget_is_only_its_own() -> None:
    asking = Asking([BudgetError("spent"), BudgetError("spent too")])
    found = asyncio.run(ask_at_once(asking, "aaaa"))
    assert [str(each) for each in found] == ["spent", "spent too", "so", "so"]


def test_whoever_waits_goes_on_when_the_first_is_cancelled() -> None:
    async def cancelled() -> str:
        asking, flight = Asking(), SingleFlight[str]()
        tasks = [asyncio.create_task(flight.join("a", asking)) for _ in range(3)]
        await asyncio.sleep(0.05)
        tasks[1].cancel()  # one who waits: nobody notices
        tasks[0].cancel()
        await asyncio.sleep(0.05)
        assert asking.asked == 2
        asking.let_go.set()
        for task in tasks[:2]:
            with pytest.raises(asyncio.CancelledError):
                await task
        return await tasks[2]

    assert asyncio.run(cancelled()) == "so"
