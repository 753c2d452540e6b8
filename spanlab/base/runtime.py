"""One process: its event loop for calls from threads without one, its garbage, its streams.

What several want to know at the same time is asked once (``SingleFlight``).

All blocking calls share it, so that models keep their open connections; a notebook's own loop is
not touched.

Garbage collection: Python looks for reference cycles after every 700 new objects that stay. With a
hundred model calls under way that is once in a few calls, finds next to nothing, and was measured
to take an eighth of a run's processor time.

Switch interval: a thread computes for 5 ms before another may run. A key press in the app passes
through many threads, and beside a job waited at each of them: a tenth of a second in all.

Frozen imports: Streamlit collects garbage after every script run, which is after every key; with
all modules among the objects to look at a collection takes tens of milliseconds.

Standard output and error: DSPy's optimisers print their progress, and offer no way to turn it off
for one thread of several.
"""

from __future__ import annotations

import asyncio
import gc
import io
import sys
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from functools import cache
from itertools import islice
from threading import Lock
from typing import Any, Generic, TypeVar

from spanlab.base.errors import BudgetError

T = TypeVar("T")


def submit(work: Coroutine[Any, Any, T]) -> Future[T]:
    """Start a coroutine in the background event loop, with the calling thread's context."""
    return asyncio.run_coroutine_threadsafe(work, _loop())


def ahead(work: Iterable[Coroutine[Any, Any, T]], count: int) -> Iterator[Future[T]]:
    """Yield the futures of coroutines in order, with ``count`` of them, 1 or more, begun ahead.

    What is begun and not yet yielded is cancelled when the iterator is closed.
    """
    rest = iter(work)
    begun: deque[Future[T]] = deque()
    try:
        while True:
            begun.extend(map(submit, islice(rest, count - len(begun))))
            if not begun:
                return
            yield begun.popleft()
    finally:
        for future in begun:
            future.cancel()


def wait(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in the background event loop and wait for its result.

    If the wait is interrupted (Ctrl+C), the coroutine is cancelled.

    Raises:
        RuntimeError: called from a coroutine that itself runs in the background loop.
        BaseException: whatever the coroutine raised.
    """
    if asyncio._get_running_loop() is _loop():
        work.close()
        raise RuntimeError("a blocking call inside a coroutine that a blocking call started")
    running = submit(work)
    try:
        return running.result()
    finally:
        running.cancel()


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """Start the loop, once; its connections are worth keeping for the process's whole life."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run, args=(loop,), name="spanlab-background", daemon=True).start()
    return loop


def _run(loop: asyncio.AbstractEventLoop) -> None:
    while True:
        # One ends the loop, as `sys.exit()` in somebody's detector: who waits for it gets it, then.
        with suppress(SystemExit, KeyboardInterrupt):
            loop.run_forever()
            return


_OBJECTS = 10_000  # that stay, between two collections: some megabytes of garbage at most
_SWITCH_SECONDS = 0.0005


class _SettingUse:
    """The number of runs that need a setting, and its value before the first of them."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.runs = 0
        self.before = (0, 0, 0)


_RARELY = _SettingUse()


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Collect garbage less often while any such block of the process runs."""
    with _RARELY.lock:
        _RARELY.runs += 1
        if _RARELY.runs == 1:
            _RARELY.before = gc.get_threshold()
            if 0 < _RARELY.before[0] < _OBJECTS:  # 0 is never
                gc.set_threshold(_OBJECTS, *_RARELY.before[1:])
    try:
        yield
    finally:
        with _RARELY.lock:
            _RARELY.runs -= 1
            if not _RARELY.runs:
                gc.set_threshold(*_RARELY.before)


def switch_threads_often() -> None:
    """Shorten the interpreter's switch interval for the rest of the process."""
    sys.setswitchinterval(_SWITCH_SECONDS)


def leave_imports_uncollected() -> None:
    """Exempt all present objects from garbage collection, for good."""
    gc.collect()
    gc.freeze()


_muted: ContextVar[bool] = ContextVar("_muted", default=False)


class _MutableStream(io.TextIOBase):
    """Standard output or error without what is written under ``quiet``."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        return len(text) if _muted.get() else int(self.stream.write(text))

    def flush(self) -> None:
        with suppress(ValueError):  # the stream is closed, and this wrapper outlives it
            self.stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def quiet() -> Iterator[None]:
    """Swallow what this thread prints; other threads print as ever."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if not isinstance(stream, _MutableStream):
            setattr(sys, name, _MutableStream(stream))
    token = _muted.set(True)
    try:
        yield
    finally:
        _muted.reset(token)


Answer = TypeVar("Answer")


class _AbandonedError(Exception):
    """Whoever was asking has been stopped: somebody else has to."""


class SingleFlight(Generic[Answer]):
    """Questions under way, in any thread and event loop of this process."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._answers: dict[Hashable, Future[Answer]] = {}

    async def join(self, key: Hashable, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        """Wait for the answer that is under way, or ask.

        Args:
            key: the same for the same question.
            ask: gets the answer. It is called if nobody is asking, also if who was has been
                cancelled, or had no budget left: that says nothing of the next one's.

        Raises:
            Exception: what the one call of ``ask`` raised, for all who wait for it.
        """
        while True:
            with self._lock:
                answer = self._answers.get(key)
                mine = answer is None
                if answer is None:
                    answer = self._answers[key] = Future()
                    answer.set_running_or_notify_cancel()  # nobody who waits can cancel it
            if mine:
                return await self._ask(key, ask, answer)
            try:
                return await asyncio.wrap_future(answer)
            except _AbandonedError:
                continue

    async def _ask(
        self, key: Hashable, ask: Callable[[], Awaitable[Answer]], answer: Future[Answer]
    ) -> Answer:
        error: Exception = _AbandonedError()
        try:
            result = await ask()
        except BudgetError:
            raise
        except Exception as raised:
            error = raised
            raise
        else:
            answer.set_result(result)
            return result
        finally:
            with self._lock:
                del self._answers[key]
            if not answer.done():
                answer.set_exception(error)


_SHARED: ContextVar[bool] = ContextVar("shared_item", default=False)


@contextmanager
def shared_item(*, is_shared: bool) -> Iterator[None]:
    """Say that several tasks of models are about the same item within the block.

    Their prompts then begin with what they share: see ``lm.adapters``.
    """
    token = _SHARED.set(is_shared)
    try:
        yield
    finally:
        _SHARED.reset(token)


def is_item_shared() -> bool:
    """Say whether several tasks are about the item of the present call."""
    return _SHARED.get()
