"""One request to one endpoint, with budget, cache, time limit and bounded retries.

dspy hands a canonical request to an engine and takes a response back. Everything that must hold
for every model call of spanlab stands here, once for threads and once for event loops.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from spanlab.errors import BudgetError, ModelError
from spanlab.lm.attempts import insist, pause_after
from spanlab.lm.failures import at_first
from spanlab.lm.kept import keeping
from spanlab.lm.line import Line
from spanlab.lm.replies import check, setback_of, usage_of
from spanlab.lm.usage import Usage

if TYPE_CHECKING:
    from dspy.lm15 import Request, Response


class _Shared:
    """What dspy asks of an engine beside answering; a copy of an LM shares its engine."""

    supports_function_calling = True
    supports_reasoning = True
    supported_params = frozenset(
        {"max_completion_tokens", "max_tokens", "reasoning_effort", "response_format", "seed"}
        | {"stop", "temperature", "tools", "tool_choice", "top_p"}
    )

    def __init__(self, line: Line) -> None:
        self.line = line
        self.supports_response_schema = line.choice.structured

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> str:
        raise TypeError("an engine holds a key and open connections: it is never stored")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.line.choice.model!r} at {self.line.choice.host})"


class Engine(_Shared):
    """Answers in the calling thread; a process that outlives this one makes the calls."""

    def complete(self, request: Request) -> Response:
        """Return the answer, from the cache or from the endpoint.

        Raises:
            ModelError: there is none; the message says why.
        """
        request = self.line.addressed(request)
        slot = self.line.slot(request)
        found = self.line.remembered(slot)
        if found is None:
            found = self.line.sought(slot)
        if found is not None:
            return found
        with keeping(slot) as kept, _paid(self.line) as call:
            try:
                call.take(self._ask(request))
            except ModelError:
                if kept.done:
                    self.line.forget(slot)  # it came, and it is no answer
                raise
        if kept.done:
            self.line.note(slot)
        elif (stored := self.line.remember(slot, call.response)) is not None:
            stored.result()
        return call.response

    def _ask(self, request: Request) -> Response:
        choice, done = self.line.choice, 0
        while True:
            self.line.meter.turn_in_thread()
            try:
                return self.line.client().complete(request)
            except Exception as error:  # noqa: BLE001 - whatever a client raises is classified
                setback = setback_of(error, choice)
            pause = pause_after(setback, done, choice.retries)
            if pause is None:
                raise setback.error
            time.sleep(pause)
            done += 1


class AsyncEngine(_Shared):
    """Answers in the running event loop."""

    async def complete(self, request: Request) -> Response:
        """Return the answer, from the cache or from the endpoint.

        Raises:
            ModelError: there is none; the message says why.
        """
        line = self.line
        request = line.addressed(request)
        slot = line.slot(request)
        found = line.remembered(slot)
        if found is not None:
            return found
        if line.cache is None:
            return await self._pay(request, slot)
        mine = False

        async def get() -> Response:
            nonlocal mine
            mine = True
            sought = await line.sought_here(slot)
            return await self._pay(request, slot) if sought is None else sought

        # Others may be asking just that, in another part or job; with the same patience and key.
        response = await line.cache.flights.join((slot, line.key, line.choice), get)
        return response if mine else line.shared(slot, response)

    async def _pay(self, request: Request, slot: str) -> Response:
        with _paid(self.line) as call:
            call.take(await self._ask(request))
        stored = self.line.remember(slot, call.response)
        if stored is not None:
            await asyncio.wrap_future(stored)
        return call.response

    async def _ask(self, request: Request) -> Response:
        choice = self.line.choice

        async def attempt() -> Response:
            async with asyncio.timeout(choice.timeout):
                return await self.line.client_here().complete(request)

        return await insist(
            attempt,
            lambda error: setback_of(error, choice),
            choice.retries,
            self.line.meter.turn,
        )


@dataclass
class _Call:
    """A call that was started, and what it came to."""

    line: Line
    usage: Usage
    answer: Response | None = None

    @property
    def response(self) -> Response:
        if self.answer is None:
            raise RuntimeError("the call has no answer yet")
        return self.answer

    def take(self, response: Response) -> None:
        """Note what the answer cost, and refuse one that is none."""
        self.line.answered = True
        self.usage = usage_of(response, self.line.choice)
        check(response, self.line.choice)
        self.answer = response


@contextmanager
def _paid(line: Line) -> Iterator[_Call]:
    """Count a call: within the budget before it starts, and whatever it came to afterwards."""
    line.meter.start()
    call = _Call(line, Usage())
    try:
        yield call
    except BudgetError:
        raise  # nothing went out
    except ModelError as error:
        call.usage += Usage(failed=1)
        raise (error if line.answered else at_first(error)) from None
    finally:
        line.meter.finish(line.choice.model, call.usage)
