"""Steps of a job, whose results DBOS keeps, and the queue that a job with borrowed keys needs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from dbos import DBOS, error

from spanlab.base.errors import StoreError, UsageError
from spanlab.jobs import worker
from spanlab.models.secrets import KEY_IS_GONE, is_lent, lent_names
from spanlab.output.notices import notify

P = ParamSpec("P")
R = TypeVar("R")
Step = Callable[P, Coroutine[Any, Any, R]]
Workflow = Callable[[dict[str, Any]], Coroutine[Any, Any, dict[str, Any]]]
_PAUSES = (1.0, 2.0, 4.0, 8.0)  # seconds before another attempt; then a refusal is final


def step(name: str) -> Callable[[Callable[P, Awaitable[R]]], Step[P, R]]:
    """Make a coroutine function a step whose result is kept, under a name that stays.

    When a database refuses, the worker finds out whether it has lost its lease. If so the step is
    interrupted, for the worker that takes the job up; otherwise it is tried again a few times.
    """

    def wrap(work: Callable[P, Awaitable[R]]) -> Step[P, R]:
        @wraps(work)
        async def attempt(*args: P.args, **kwargs: P.kwargs) -> R:
            me = worker.current()
            cut_off = me.cut_off
            pauses = iter(_PAUSES)
            while True:
                try:
                    return await work(*args, **kwargs)
                except StoreError as refused:
                    if await me.has_lost_lease(cut_off):
                        raise interruption() from refused
                    pause = next(pauses, None)
                    if pause is None or type(refused) is not StoreError:  # what is not there, say
                        raise
                await asyncio.sleep(pause)

        durable_step: Step[P, R] = DBOS.step(name=name)(attempt)
        return durable_step

    return wrap


def notify_when_done(kind: str) -> Callable[[Workflow], Workflow]:
    """Have a job's workflow tell webhooks that it has ended, done or failed."""

    def wrap(workflow: Workflow) -> Workflow:
        @wraps(workflow)
        async def run_and_notify(request: dict[str, Any]) -> dict[str, Any]:
            job = DBOS.workflow_id or ""
            about = {"kind": kind, "job": job, "dataset": request.get("dataset")}
            try:
                result = await workflow(request)
            except Exception:
                notify("job done", job, state="failed", **about)
                raise
            notify("job done", job, state="done", **about)
            return result

        return run_and_notify

    return wrap


def interruption() -> BaseException:
    """Return what to raise where a step is no longer owned by this worker, or is paused.

    Nothing is kept of the step then: the worker that takes it begins it again.
    """
    return error.DBOSWorkflowCancelledError("this work is not this worker's any more")


def queue_for(request: dict[str, Any], shared: str) -> str:
    """Return the queue for a request's job or parts.

    Args:
        request: the request as JSON.
        shared: the queue for what any worker may do.

    Returns:
        That queue, or this process's own if the request needs a key that is here alone.

    Raises:
        UsageError: the key is gone, or this process does not work on jobs.
    """
    names = lent_names(json.dumps(request))
    if not names:
        return shared
    if not all(map(is_lent, names)):
        raise UsageError(KEY_IS_GONE)
    return worker.current().own_queue
