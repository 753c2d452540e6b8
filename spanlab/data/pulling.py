"""Traces fetched from where they live: Langfuse and Phoenix, by their public APIs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import parse_qs, quote, urlsplit

from pydantic_core import to_json

from spanlab.base.errors import InputError, PageError, UsageError
from spanlab.base.inbound import bounding, reply_limit
from spanlab.base.redaction import redact, remember
from spanlab.base.runtime import wait
from spanlab.models.failures import ServerReport, quoted
from spanlab.schema import OWNER, Actor, Permission, storable_json
from spanlab.search.addresses import AGENT, certificates, check_url

if TYPE_CHECKING:
    import httpx

Program = Literal["langfuse", "phoenix"]
KEYS: Final[Mapping[Program, tuple[str, ...]]] = {  # the variables that hold them
    "langfuse": ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"),
    "phoenix": ("PHOENIX_API_KEY",),
}
_TIMEOUT: Final = 60.0  # seconds of a request
_PAUSES: Final = (1.0, 5.0, 20.0)  # seconds before another attempt
_LONGEST: Final = 60.0  # … that a server may ask to wait
_SPANS: Final = 50_000  # of a project of Phoenix: all are read, so that no trace is cut


@dataclass(frozen=True)
class TraceSource:
    """Where traces are fetched from; ``project`` is Phoenix's, ``limit`` the most traces."""

    program: Program
    url: str
    project: str = "default"
    limit: int = 100

    @classmethod
    def named(cls, address: str) -> TraceSource | None:
        """Return what an address such as ``phoenix+http://localhost:6006?project=rag`` names.

        Returns:
            None for what is no such address.

        Raises:
            UsageError: the part behind the ``?`` is not understood.
        """
        program, plus, url = address.partition("+")
        if not plus or program not in KEYS or "://" not in url:
            return None
        base, _, query = url.partition("?")
        asked = {name: values[-1] for name, values in parse_qs(query).items()}
        limit = asked.pop("limit", "100")
        project = asked.pop("project", "default")
        if asked or not limit.isdecimal() or not int(limit):
            raise UsageError(f"{address!r}: behind the ? stand project=NAME and limit=NUMBER")
        return cls("phoenix" if program == "phoenix" else "langfuse", base, project, int(limit))


def pull_traces(
    source: TraceSource,
    target: Path,
    keys: Mapping[str, str] | None = None,
    on_progress: Callable[[int], None] | None = None,
    *,
    actor: Actor = OWNER,
) -> int:
    """Fetch whole traces into a file that an import reads, the newest first.

    Args:
        source: the server.
        target: the file, JSON Lines.
        keys: by the names in ``KEYS``; None for those of the environment.
        on_progress: called in another thread with the number of traces or spans fetched.
        actor: who asks.

    Returns:
        The number of traces.

    Raises:
        AccessError: the actor is no lead of all datasets, who alone import.
        UsageError: the address or a key is none.
        InputError: the server cannot be reached, refuses, or answers otherwise than its program.
    """
    actor.require(Permission.ADMINISTER)
    return wait(_pull(source, target, os.environ if keys is None else keys, on_progress))


async def _pull(
    source: TraceSource,
    target: Path,
    keys: Mapping[str, str],
    on_progress: Callable[[int], None] | None,
) -> int:
    server = _Server(source, keys)
    try:
        with target.open("wb") as stream:
            seen = set[str]()
            n_done = 0
            async for trace, rows in _PULLERS[source.program](server, source):
                seen.add(trace)
                stream.write(to_json(rows) + b"\n")
                n_done += 1
                if on_progress:
                    on_progress(n_done)
    except (KeyError, TypeError, AttributeError):
        title = source.program.capitalize()
        raise InputError(f"does not answer as {title} does", file=source.url) from None
    finally:
        await server.client.aclose()
    if not seen:
        raise InputError("there is no trace", file=source.url)
    return len(seen)


async def _of_langfuse(server: _Server, source: TraceSource) -> AsyncIterator[tuple[str, Any]]:
    page = n_done = 0
    while n_done < source.limit:
        page += 1
        listed = await server.ask("/api/public/traces", page=page, limit=min(source.limit, 50))
        for trace in listed["data"][: source.limit - n_done]:
            name = str(trace["id"])
            yield name, await server.ask(f"/api/public/traces/{quote(name, safe='')}")
            n_done += 1
        if page >= int(listed["meta"]["totalPages"]):
            return


async def _of_phoenix(server: _Server, source: TraceSource) -> AsyncIterator[tuple[str, Any]]:
    path = f"/v1/projects/{quote(source.project, safe='')}/spans"
    traces: dict[str, list[Any]] = {}
    cursor, n_spans = None, 0
    while True:
        listed = await server.ask(path, limit=1000, cursor=cursor)
        for span in listed["data"]:
            traces.setdefault(str(span["context"]["trace_id"]), []).append(span)
        n_spans += len(listed["data"])
        cursor = listed["next_cursor"]
        if not cursor:
            break
        if n_spans >= _SPANS:
            what = f"the project has more than {_SPANS:,} spans"
            raise InputError(what, file=source.url, expected="an export of the part that you want")
    for name, spans in list(traces.items())[: source.limit]:
        for span in spans:
            yield name, span


_PULLERS: Final = {"langfuse": _of_langfuse, "phoenix": _of_phoenix}


class _Server:
    """A server of traces, asked with its keys; no redirect is followed."""

    def __init__(self, source: TraceSource, keys: Mapping[str, str]) -> None:
        import httpx

        try:
            check_url(source.url)
        except PageError as error:
            raise UsageError(f"the address of the server: {error}") from None
        self._url, self._host = source.url.strip().rstrip("/"), urlsplit(source.url).netloc
        names = KEYS[source.program]
        values = [keys.get(name, "").strip() for name in names]
        for name, value in zip(names, values, strict=True):
            if not (value.isascii() and value.isprintable()):
                raise UsageError(f"{name} holds what cannot be sent as a key")
            remember(value)
        if source.program == "langfuse" and not all(values):
            raise UsageError(f"no key for Langfuse: {' and '.join(names)}")
        self._keys = " and ".join(names)
        bearer = {"Authorization": f"Bearer {values[0]}"} if len(values) == 1 and values[0] else {}
        self.client: httpx.AsyncClient = httpx.AsyncClient(
            headers={"User-Agent": AGENT, **bearer},
            auth=(values[0], values[1]) if len(values) > 1 else None,
            timeout=_TIMEOUT,
            verify=certificates(),
            event_hooks={"response": [bounding(httpx, reply_limit())]},
        )

    async def ask(self, path: str, **query: object) -> Any:
        """Return the JSON of a reply, after further attempts where these help."""
        import httpx

        for pause in (*_PAUSES, None):
            try:
                params = {name: str(value) for name, value in query.items() if value is not None}
                reply = await self.client.get(self._url + path, params=params)
            except httpx.HTTPError as error:
                why, after = (
                    f"cannot be reached: {redact(str(error)) or type(error).__name__}",
                    None,
                )
            else:
                if reply.is_success:
                    return self._json_of(reply.text)
                report = ServerReport.read(reply.status_code, reply.headers, reply.content)
                why, after = (
                    f"answers {report.status}{quoted(redact(report.message))}",
                    report.retry_after,
                )
                if report.status in {401, 403}:
                    raise InputError(f"{why}; check {self._keys}", file=self._host)
                if report.status != 429 and report.status < 500:
                    break
            if pause is not None:
                await asyncio.sleep(min(after or pause, _LONGEST))
        raise InputError(why, file=self._host)

    def _json_of(self, text: str) -> Any:
        try:
            return storable_json(text)
        except ValueError:
            raise InputError("answers no JSON; check its address", file=self._host) from None
