"""Counting model calls, their tokens and cost, stopping them at a budget, and running several."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar
from weakref import WeakKeyDictionary

from spanlab.base.errors import BudgetError
from spanlab.schema.usage import Budget, CallLimits, Usage


@dataclass
class CallTotals:
    """What the calls inside one ``Meter.calls()`` block came to, in all and model by model.

    ``remarks`` say what was done about parameters that an endpoint refuses, ``thoughts`` are what
    models thought aloud before they answered.
    """

    by_model: dict[str, Usage] = field(default_factory=dict)
    remarks: set[str] = field(default_factory=set)
    thoughts: list[str] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        """The sum over all models."""
        return sum(self.by_model.values(), Usage())

    def add(self, model: str, usage: Usage) -> None:
        """Add to one model's sum."""
        self.by_model[model] = self.by_model.get(model, Usage()) + usage


CallKind = Literal["calls", "searches"]
_LEAST = 1e-9  # of a limit; less is left by rounding
_UNKNOWN = 1e-6  # of a limit that the first call is expected to take
_UNITS = {"cost": "US dollars"}  # of limits that are not called what they count


class Meter:
    """Counts calls of any number of threads and tasks, and stops them at the budget.

    Args:
        limits: of the calls, of which the meter keeps the budget; None counts alone.
        spent: what earlier parts of the same run came to; it counts towards the budget.
        before_attempt: awaited before every attempt at a call, such as a rate limiter.
        concurrency: calls under way at once, in each event loop; None for no limit.
        reserve: where other processes spend the same budget, takes a limit's name, by how much
            this meter is beyond its share (below 0: it gives back), and the least it wants beside
            that; returns by how much the share changes. Calls are of one event loop then.
    """

    def __init__(
        self,
        limits: CallLimits | Budget | None = None,
        *,
        spent: Usage | None = None,
        before_attempt: Callable[[], Awaitable[None]] | None = None,
        concurrency: int | None = None,
        reserve: Callable[[str, float, float], Awaitable[float]] | None = None,
    ) -> None:
        self.budget = (limits.budget if isinstance(limits, CallLimits) else limits) or Budget()
        most = {name: limit for name, limit in self.budget if limit is not None}
        self._share: dict[str, float] = dict.fromkeys(most, 0) if reserve else most
        self._reserve = reserve
        self._reserving = asyncio.Lock()
        self._ended = asyncio.Event()  # a call that others wait for, to learn what one takes
        self._lock = threading.Lock()
        self._in_flight = {"calls": 0, "searches": 0}
        self._usage = Usage()
        self._spent = spent or Usage()
        self._by_model = CallTotals()
        self._before_attempt = before_attempt
        self._concurrency = concurrency
        self._slots: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = (
            WeakKeyDictionary()
        )

    @property
    def usage(self) -> Usage:
        """The sum over all calls made under this meter."""
        with self._lock:
            return self._usage

    @property
    def by_model(self) -> dict[str, Usage]:
        """The sums model by model."""
        with self._lock:
            return dict(self._by_model.by_model)

    @contextmanager
    def calls(self) -> Iterator[CallTotals]:
        """Collect what is called inside the block, in this task and those it starts."""
        collected = CallTotals()
        token = _open.set((*_open.get(), (self, collected)))
        try:
            yield collected
        finally:
            _open.reset(token)

    async def admit(self, kind: CallKind = "calls") -> None:
        """Note that a call is about to go out.

        Args:
            kind: "searches" for one of a search service, and not of a model.

        Raises:
            BudgetError: it would go beyond the limit on calls or searches, or a limit on tokens or
                money is reached already. Calls in flight may finish.
            StoreError: others spend the same budget, and its database does not answer.
        """
        if self._limit_reached(kind) is None:
            return
        async with self._reserving if self._reserve else nullcontext():
            while (name := self._limit_reached(kind)) is not None:
                if self._unpriced() is not None:
                    self._ended.clear()
                    await self._ended.wait()
                elif await self._change_share(name, self._expected(name)) < _LEAST:
                    raise self._budget_error(name, kind)

    async def give_back(self) -> None:
        """Give back what is reserved and not needed for calls under way.

        Raises:
            StoreError: the budget's database does not answer; the rest counts as spent.
        """
        async with self._reserving:
            for name in self._share:
                await self._change_share(name, 0.0)

    async def before_attempt(self) -> None:
        """Wait until an attempt at a call may be made, where their rate is limited.

        Raises:
            BudgetError: it is not wanted any more.
        """
        if self._before_attempt is not None:
            await self._before_attempt()

    def slot(self) -> AbstractAsyncContextManager[object]:
        """Return the block in which an attempt is under way; entering it may mean waiting."""
        if self._concurrency is None:
            return nullcontext()
        with self._lock:
            loop = asyncio.get_running_loop()
            return self._slots.setdefault(loop, asyncio.Semaphore(self._concurrency))

    def remark(self, texts: Iterable[str]) -> None:
        """Note how a call differs from what was asked for, for the blocks of ``calls`` around."""
        for meter, collected in _open.get():
            if meter is self:
                collected.remarks.update(texts)

    def finish(self, model: str, usage: Usage, kind: CallKind = "calls") -> None:
        """Note what an admitted call, or search, came to."""
        with self._lock:
            self._in_flight[kind] -= 1
        self.note(model, usage)
        self._ended.set()

    def note(self, model: str, usage: Usage) -> None:
        """Add to the sums without a started call, for example an answer from the cache."""
        with self._lock:
            self._usage += usage
            self._by_model.add(model, usage)
            for meter, collected in _open.get():
                if meter is self:
                    collected.add(model, usage)

    def think(self, thoughts: str) -> None:
        """Keep what a model thought aloud; nothing for ""."""
        if thoughts:
            for meter, collected in _open.get():
                if meter is self:
                    collected.thoughts.append(thoughts)

    def _unpriced(self) -> str | None:
        """Return a shared limit of which the first call, under way, is to tell what one takes."""
        answered = self._usage.calls + self._usage.searches
        if self._reserve is None or answered or not any(self._in_flight.values()):
            return None
        return next((name for name in self._share if name not in self._in_flight), None)

    def _limit_reached(self, kind: CallKind) -> str | None:
        """Return the name of a limit that keeps a call from going out; None lets it out."""
        with self._lock:
            if (name := self._unpriced()) is not None:
                return name
            for name in self._share:
                least = self._expected(name) - _LEAST if self._reserve else _LEAST
                if (name == kind or name not in self._in_flight) and self._remaining(name) < least:
                    return name
            self._in_flight[kind] += 1
            return None

    async def _change_share(self, name: str, wanted: float) -> float:
        """Reserve what is missing of a limit, or give back what is over; return the change."""
        with self._lock:
            remaining = self._remaining(name)
            if self._reserve is None or math.isinf(remaining):
                return 0.0
            self._share[name] -= max(remaining, 0.0)  # no call of this process may have it now
        change = await self._reserve(name, -remaining, wanted)
        with self._lock:
            self._share[name] += max(remaining, 0.0) + change
        return change

    def _remaining(self, name: str) -> float:
        """Return what of a limit is neither spent nor expected of the calls in flight."""
        used = self._usage + self._spent
        spent: float | None = getattr(used, name)
        if spent is None:
            return -math.inf
        under_way = self._in_flight.get(name, sum(self._in_flight.values()))
        return self._share[name] - spent - under_way * self._expected(name)

    def _expected(self, name: str) -> float:
        """Return what one more call takes of a limit: as much as others did on average."""
        if name in self._in_flight:
            return 1.0
        used = self._usage + self._spent
        return max((getattr(used, name) or 0.0) / max(used.calls + used.searches, 1), _UNKNOWN)

    def _budget_error(self, name: str, kind: CallKind) -> BudgetError:
        limit = getattr(self.budget, name)
        unknown = getattr(self._usage + self._spent, name) is None
        return BudgetError(
            f"the budget of {limit:.15g} {_UNITS.get(name, name)}"
            f"{' (the price of earlier calls is unknown)' if unknown else ''} is used up: "
            f"no further {'search' if kind == 'searches' else 'call'} was made; "
            "raise the budget and resume"
        )


_open: ContextVar[tuple[tuple[Meter, CallTotals], ...]] = ContextVar("_open", default=())

# Rules of thumb for byte-pair encodings: about four letters of an alphabet make one token,
# and a character of a script without spaces is about one.
LETTERS_PER_TOKEN = 4.0
_WIDE_FROM = 0x2E80  # CJK radicals; the scripts above are written without spaces


def count_tokens(text: str) -> int:
    """Return about how many tokens a text has; 0 for an empty one."""
    if text.isascii():
        return round(len(text) / LETTERS_PER_TOKEN)
    wide = sum(1 for character in text if ord(character) >= _WIDE_FROM)
    return wide + round((len(text) - wide) / LETTERS_PER_TOKEN)


T = TypeVar("T")

_REPORT: ContextVar[Callable[[int, int], Awaitable[None]] | None] = ContextVar(
    "report", default=None
)

_KEPT: ContextVar[list[object] | None] = ContextVar("kept", default=None)


def keep(result: T) -> T:
    """Keep an intermediate result for the trace of an item that a later call fails.

    Returns:
        The result itself. Outside of ``keeping``, as when a program is tuned, that is all.
    """
    results = _KEPT.get()
    if results is not None:
        results.append(result)
    return result


@contextmanager
def keeping(results: list[object]) -> Iterator[None]:
    """Let ``keep`` append to ``results``, in this task and those that it starts."""
    token = _KEPT.set(results)
    try:
        yield
    finally:
        _KEPT.reset(token)


async def advance(done: int, total: int) -> None:
    """Tell whoever waits how many parts of an item are done; nobody may be waiting."""
    report = _REPORT.get()
    if report is not None:
        await report(done, total)


@contextmanager
def reporting(report: Callable[[int, int], Awaitable[None]]) -> Iterator[None]:
    """Let ``advance`` call ``report``, in this task and those that it starts."""
    token = _REPORT.set(report)
    try:
        yield
    finally:
        _REPORT.reset(token)


async def together(*work: Coroutine[Any, Any, Any], at_once: int | None = None) -> list[Any]:
    """Run coroutines concurrently; the first error cancels the others.

    Args:
        work: what to run.
        at_once: how many run at the same time, at least 1; None for all of them.

    Returns:
        Their results in order; empty without work.

    Raises:
        Exception: the first error, as it was raised.
    """
    slots = asyncio.Semaphore(at_once or max(len(work), 1))

    async def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
        async with slots:
            return await coroutine

    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(run(coroutine)) for coroutine in work]
    except BaseExceptionGroup as errors:
        error = errors.exceptions[0]
        raise error from error.__cause__  # which says why; the group says nothing more
    finally:
        for coroutine in work:
            coroutine.close()  # those that an error kept from beginning
    return [task.result() for task in tasks]
