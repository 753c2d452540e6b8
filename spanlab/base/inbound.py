"""The one gate for what enters from outside, in any protocol: bytes, errors and words for prompts.

Replies of models and search services, pages, and what tool servers send come through here. Headers
are believed in nothing but how to unpack a body; JSON is read by ``spanlab.schema.storable_json``.
"""

from __future__ import annotations

import asyncio
import math
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, Final

from spanlab import doors
from spanlab.base.errors import SpanlabError, UnparsableAnswerError, UsageError
from spanlab.base.fields import storable
from spanlab.base.redaction import redact
from spanlab.base.settings import Settings

_PIECE: Final = 2**16  # bytes that are unpacked at a time: a packed one can be a thousand
_RAISE_LIMIT: Final = (
    ", and the rest was not read; set SPANLAB_REPLY_LIMIT (MiB) if replies may be longer"
)
_VALUES: Final = 1_000_000  # lists and objects of a reply: each takes up to 250 bytes of memory
ABOUT: Final = 500  # characters of a name, title or address in a prompt
_REASON: Final = 300  # characters of a library's words
_HEADS: Final = b"\x1f\x78"  # first bytes; servers send deflate without a head, too
_ZLIB, _BARE = 47, -15  # how zlib is told of heads: gzip or its own, and none
_PACKED: Final = frozenset(("gzip", "x-gzip", "deflate"))
_ENDS: Final = (KeyboardInterrupt, SystemExit, GeneratorExit, asyncio.CancelledError)


def reply_limit() -> int:
    """Return the most bytes that a reply may have.

    Raises:
        UsageError: ``SPANLAB_REPLY_LIMIT`` holds no number of MiB above 0.
    """
    return int(Settings.read().reply_limit * 2**20)


async def collected(
    pieces: AsyncIterator[bytes],
    limit: int,
    host: str,
    packed: str | None = None,
    advice: str = _RAISE_LIMIT,
) -> bytes:
    """Return a whole body, unpacked; see ``unpacked``."""
    body = unpacked(pieces, limit, host, packed, advice=advice)
    return b"".join([piece async for piece in body])


async def unpacked(
    pieces: AsyncIterator[bytes],
    limit: float,
    host: str,
    packed: str | None = None,
    values: int = _VALUES,
    advice: str = _RAISE_LIMIT,
) -> AsyncGenerator[bytes]:
    """Give a body as it comes, unpacked in small pieces, up to a limit.

    Args:
        pieces: the body as it was sent.
        limit: the most bytes that it may have, packed and unpacked; infinite for none.
        host: who sends it, for the message.
        packed: the header Content-Encoding.
        values: the most lists and objects that JSON in it may have.
        advice: the end of the message for a body that is too long.

    Raises:
        UnparsableAnswerError: it is longer, or packed in a way that was not asked for; no more
            than the limit was read.
    """
    coding = checked_coding(packed, host)
    given = opened = 0
    body = pieces if coding == "identity" else _inflated(pieces, limit, host, advice)
    async with _closing(body):
        async for piece in body:
            given += len(piece)
            opened += piece.count(b"[") + piece.count(b"{")
            if given > limit:
                raise _too_long(limit, host, advice)
            if opened > values and limit < math.inf:
                raise UnparsableAnswerError(f"{host} sent more than {values:,} lists and objects")
            yield piece


@asynccontextmanager
async def _closing(body: AsyncIterator[bytes]) -> AsyncIterator[None]:
    """Close a generator at the end of the block, not when nobody refers to it any more.

    What an event loop finds open at its end it closes all at once, one within the other.
    """
    try:
        yield
    finally:
        if isinstance(body, AsyncGenerator):
            await body.aclose()


def checked_coding(packed: str | None, host: str) -> str:
    """Return the one way in which a body is packed; raises as ``unpacked`` does."""
    coding = (packed or "identity").strip().lower()
    if coding not in {*_PACKED, "identity"}:
        raise UnparsableAnswerError(
            f"{host} sent a reply packed as {coding[:40]!r}, which was not asked for"
        )
    return coding


async def _inflated(
    pieces: AsyncIterator[bytes], limit: float, host: str, advice: str
) -> AsyncIterator[bytes]:
    unpack: Any = None
    taken = 0
    async with _closing(pieces):
        async for piece in pieces:
            taken += len(piece)
            if taken > limit:
                raise _too_long(limit, host, advice)
            if unpack is None and piece:
                unpack = zlib.decompressobj(_ZLIB if piece[0] in _HEADS else _BARE)
            rest = piece
            while rest and not unpack.eof:  # whatever follows is nothing
                try:
                    yield unpack.decompress(rest, _PIECE)
                except zlib.error:
                    raise UnparsableAnswerError(f"{host} sent what cannot be unpacked") from None
                rest = unpack.unconsumed_tail


def _too_long(limit: float, host: str, advice: str) -> UnparsableAnswerError:
    return UnparsableAnswerError(f"{host} sent more than {limit / 2**20:g} MiB{advice}")


def bounding(library: Any, limit: int, values: int = _VALUES) -> Callable[[Any], Awaitable[None]]:
    """Return a hook for responses that an HTTP client runs before it reads anything of them.

    So it holds for redirects and errors, too, and whatever reads the client's responses.

    Args:
        library: the client's, ``httpx`` or one with the same types.
        limit: the most bytes of a response; a stream of events has none, as each of these has.
        values: the most lists and objects of a response.
    """

    async def bound(response: Any) -> None:
        packed = response.headers.pop("content-encoding", None)
        kind = response.headers.get("content-type", "").lower()
        events = kind.startswith("text/event-stream") and response.status_code == 200
        most = math.inf if events and response.request.method != "DELETE" else limit
        pieces = unpacked(
            aiter(response.stream), most, response.url.host, packed=packed, values=values
        )
        body = type("Body", (_BoundedBody, library.AsyncByteStream), {})
        response.stream = body(response.stream, pieces)

    return bound


class _BoundedBody:
    """What a response reads in place of its stream."""

    def __init__(self, stream: Any, pieces: AsyncGenerator[bytes]) -> None:
        self._stream, self._pieces = stream, pieces

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces

    async def aclose(self) -> None:
        await self._pieces.aclose()
        await self._stream.aclose()


@contextmanager
def foreign(what: str, kind: type[SpanlabError] = SpanlabError) -> Iterator[None]:
    """Turn whatever a library raises into an error of ours, without keys.

    Rust's panics are no ``Exception``; what ends a task or a process passes, as do time limits.

    Args:
        what: is broken then, such as "the tokenizer".
        kind: the error's type.
    """
    try:
        yield
    except (SpanlabError, TimeoutError):
        raise
    except BaseException as error:
        if is_end(error):
            raise
        raise kind(f"{what}: {reason_of(error)}") from None


def is_end(error: BaseException) -> bool:
    """Say whether an exception ends a task or a process, and is nobody's failure."""
    if isinstance(error, BaseExceptionGroup):
        return any(map(is_end, error.exceptions))
    return isinstance(error, _ENDS)


def reason_of(error: BaseException) -> str:
    """Return what a library's exception says, without keys, in one bounded line."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return one_line(redact(str(error)), _REASON) or type(error).__name__


def one_line(text: str, longest: int) -> str:
    """Return a name or a description for a prompt: on one line, storable, cut at ``longest``."""
    return storable(" ".join(text[: 4 * longest].split()))[:longest]


def offered(kind: str) -> tuple[str, ...]:
    """Return the names of what rooms and installed packages offer of a kind; nothing is loaded.

    Args:
        kind: such as "metrics".
    """
    return tuple(dict.fromkeys(offer.name for offer in doors.offers(kind)))


def brought(kind: str, name: str) -> Any:
    """Return what a room or an installed package offers under a name.

    Args:
        kind: such as "metrics".
        name: the name.

    Raises:
        UsageError: there is none of this name, or its package is broken.
    """
    offer = doors.offer(kind, name)
    what = kind.removesuffix("s")
    if offer is None:
        installed = ", ".join(offered(kind)) or "none"
        raise UsageError(f"no installed package has a {what} {name!r}; available: {installed}")
    with foreign(f"the {what} {name!r} cannot be loaded", UsageError):
        return offer.load()
