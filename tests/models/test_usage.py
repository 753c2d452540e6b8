"""Counting calls, and stopping them at a budget."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from optimizers.choosing import SearchOptions
from optimizers.request import Optimisation
from spanlab.base.errors import BudgetError
from spanlab.bench.plan import BenchPlan
from spanlab.detection.request import RunRequest
from spanlab.models import Meter
from spanlab.schema.usage import Budget, CallLimits, Usage

ONE = Usage(calls=1, input_tokens=100, cached_tokens=60, output_tokens=10, cost=0.5)


def test_usages_add_up() -> None:
    both = ONE + Usage(calls=2, from_cache=3, failed=1, input_tokens=1, output_tokens=2, cost=0.25)
    assert both == Usage(3, 3, 1, 101, 60, 12, 0.75)
    assert both.tokens == 113


def test_one_unknown_price_makes_the_cost_unknown() -> None:
    assert (ONE + Usage(calls=1, cost=None)).cost is None


def test_sums_are_kept_by_model() -> None:
    meter = Meter()
    for model in ("a", "b", "a"):
        asyncio.run(meter.admit())
        meter.finish(model, ONE)
    assert meter.usage == ONE + ONE + ONE
    assert meter.by_model == {"a": ONE + ONE, "b": ONE}


def test_the_limit_on_calls_counts_those_in_flight() -> None:
    meter = Meter(Budget(calls=2))
    asyncio.run(meter.admit())
    asyncio.run(meter.admit())
    with pytest.raises(BudgetError, match="2 calls"):
        asyncio.run(meter.admit())
    meter.finish("a", ONE)
    meter.finish("a", ONE)
    assert meter.usage.calls == 2


def test_a_call_that_failed_leaves_its_place_to_another() -> None:
    meter = Meter(Budget(calls=1))
    asyncio.run(meter.admit())
    meter.finish("a", Usage(failed=1))
    asyncio.run(meter.admit())


@pytest.mark.parametrize(
    ("budget", "words"),
    [(Budget(tokens=110), "110 tokens"), (Budget(cost=0.5), "0.5 US dollars")],
    ids=["tokens", "money"],
)
def test_a_limit_that_is_reached_stops_the_next_call(budget: Budget, words: str) -> None:
    meter = Meter(budget)
    asyncio.run(meter.admit())
    meter.finish("a", ONE)
    with pytest.raises(BudgetError, match=words):
        asyncio.run(meter.admit())


def test_calls_under_way_are_expected_to_come_to_what_the_others_did() -> None:
    meter = Meter(Budget(tokens=330))
    for _ in range(3):  # of 110 tokens each: the second and third are under way together
        asyncio.run(meter.admit())
        if not meter.usage.calls:
            meter.finish("a", ONE)
    with pytest.raises(BudgetError, match="330 tokens"):
        asyncio.run(meter.admit())


def test_what_was_spent_before_a_resume_counts() -> None:
    meter = Meter(Budget(calls=3), spent=Usage(calls=3))
    with pytest.raises(BudgetError):
        asyncio.run(meter.admit())
    assert meter.usage == Usage()


def test_each_item_collects_its_own_calls() -> None:
    meter = Meter()

    async def item(calls: int) -> int:
        with meter.calls() as collected:
            await asyncio.gather(*(call() for _ in range(calls)))
        return collected.usage.calls

    async def call() -> None:
        await meter.admit()
        await asyncio.sleep(0)
        await asyncio.to_thread(meter.finish, "a", ONE)

    async def both() -> tuple[int, int]:
        return await asyncio.gather(item(3), item(5))

    assert [*asyncio.run(both())] == [3, 5]
    assert meter.usage.calls == 8


def test_threads_never_go_beyond_the_limit_together() -> None:
    meter = Meter(Budget(calls=50))

    def work(_: int) -> int:
        try:
            asyncio.run(meter.admit())
        except BudgetError:
            return 0
        meter.finish("a", ONE)
        return 1

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(200))) == 50
    assert meter.usage.calls == 50


def test_limits_of_calls_are_handed_on_whole_so_that_a_further_one_works_everywhere() -> None:
    limits = CallLimits(rate=30.0, budget=Budget(calls=5))
    detectors = ({"detector": "offline"},)
    run = RunRequest.of(limits, detectors=detectors)
    plan = BenchPlan.of(limits, output="folder", datasets=[{"name": "samples"}])
    search = {"name": "a", "detector": {"detector": "ucsc-extract"}}
    optimisation = Optimisation.of(SearchOptions.of(limits), dataset="d", search=search)
    for request in (run, plan, optimisation, RunRequest.of(plan, detectors=detectors)):
        assert CallLimits.of(request) == limits
    assert Meter(limits).budget == Budget(calls=5)
