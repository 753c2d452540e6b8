"""What was asked again, and whether it had been answered before: each answer says its number.

The scripted model signs as ``scripted 17`` what it answers to request 17, and the cache keeps that;
so after a kill the cache of a home tells which answers had been put away by then.
"""

from __future__ import annotations

import json
import math
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import psycopg
from working_jobs import Process, wait_until

from spanlab.base.settings import Settings
from spanlab.testing import ModelRequest, ModelServer, Script, ScriptedReply

_SIGNED = "scripted "


def signed(script: Script) -> Script:
    """Let every answer of a script say which request it answers."""

    def reply(ask: ModelRequest) -> ScriptedReply:
        given = script(ask)
        if not isinstance(given.body, dict) or "choices" not in given.body:
            return given
        body: dict[str, Any] = {**given.body, "model": f"{_SIGNED}{ask.number}"}
        return replace(given, body=body)

    return reply


def put_away(home: Path) -> set[int]:
    """Return the numbers of the requests whose answers are in the cache of a home."""
    file = home / "cache" / "models" / "answers.db"
    if not file.exists():
        return set()
    with closing(sqlite3.connect(file)) as connection:
        return _numbers(connection.execute("SELECT answer FROM answers"))


def put_away_for_all(settings: Settings) -> set[int]:
    """Return the numbers of the requests whose answers are in the cache of all workers."""
    with closing(psycopg.connect(settings.database_url)) as connection:
        return _numbers(connection.execute("SELECT answer FROM answers"))


def _numbers(rows: Iterable[Sequence[Any]]) -> set[int]:
    return {int(json.loads(row[0])["model"].removeprefix(_SIGNED)) for row in rows}


@dataclass(frozen=True)
class Kill:
    """When a worker was killed, which answers its home had by then, and how many were asked for."""

    at: float
    had: frozenset[int]
    asked: int


def killed(process: Process, home: Path, model: ModelServer) -> Kill:
    """Kill a worker (SIGKILL), the only one; what it had sent has come in when this returns."""
    at = time.time()
    process.kill()
    process.wait()
    wait_until(lambda: not model.connected, "the model to hear that it is gone")
    return Kill(at, frozenset(put_away(home)), model.count)


@dataclass
class Again:
    """Requests that were made again because of a kill or a cut.

    ``flying`` had not been answered by then. ``answered`` had been, so many seconds before, and
    nobody could know it who was left. ``known`` had been answered and was known: never right.
    """

    flying: int = 0
    answered: list[float] = field(default_factory=list)
    known: int = 0

    def __len__(self) -> int:
        return self.flying + len(self.answered) + self.known

    def __str__(self) -> str:
        late = f" (at most {max(self.answered) * 1e3:.0f} ms before)" if self.answered else ""
        return (
            f"{len(self)} requests made again: {self.flying} not answered by then, "
            f"{len(self.answered)} just answered and not yet put away{late}, "
            f"{self.known} answered and put away"
        )


def again_after_kills(model: ModelServer, kills: Sequence[Kill], home: Path) -> Again:
    """Return what was asked again of one worker's requests, which all went into one cache.

    A request whose answer is not in the cache at the end was made again: the later answer to the
    same has taken its place, or it never came.
    """
    again, last = Again(), put_away(home)
    for ask in model.requests:
        if ask.number in last:
            continue
        kill = next(kill for kill in kills if ask.number < kill.asked)
        answered = model.answered.get(ask.number)
        if ask.number in kill.had:
            again.known += 1
        elif answered is None or answered >= kill.at:
            again.flying += 1
        else:
            again.answered.append(kill.at - answered)
    return again


def again_after_loss(
    model: ModelServer, caller: str, at: float, known: float, until: float = math.inf
) -> Again:
    """Return what others asked again of what ``caller`` had asked before it was lost.

    Args:
        model: what was asked.
        caller: see ``model_server.caller_with``.
        at: when it was killed or cut off.
        known: seconds before ``at`` from which on an answer has to be known to the others.
        until: when it came back; what arrives from then on is not looked at.
    """
    asked: dict[str, list[ModelRequest]] = {}
    for ask in model.requests:
        asked.setdefault(ask.fingerprint, []).append(ask)
    again = Again()
    for first, *more in asked.values():
        if not more or first.caller != caller or first.at >= until:
            continue
        answered = model.answered.get(first.number)
        if answered is None or answered >= at:
            again.flying += 1
        elif answered >= at - known:
            again.answered.append(at - answered)
        else:
            again.known += 1
    return again
