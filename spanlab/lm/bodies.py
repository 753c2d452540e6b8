"""Reading what a server sends, up to a limit."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping

from spanlab.errors import UnparsableAnswerError, UsageError

_LIMIT = 16.0  # MiB


def reply_limit(environ: Mapping[str, str] = os.environ) -> int:
    """Return the most bytes that a reply may have: ``SPANLAB_REPLY_LIMIT`` in MiB, 16 by default.

    Raises:
        UsageError: the variable holds no number above 0.
    """
    given = environ.get("SPANLAB_REPLY_LIMIT") or _LIMIT
    try:
        limit = int(float(given) * 2**20)
    except (ValueError, OverflowError):
        limit = 0
    if limit < 1:
        raise UsageError(f"SPANLAB_REPLY_LIMIT is a number of MiB above 0, not {given!r}")
    return limit


async def collected(pieces: AsyncIterator[bytes], limit: int, host: str) -> bytes:
    """Return a whole body.

    Args:
        pieces: the body, decompressed.
        limit: the most bytes that it may have.
        host: who sends it, for the message.

    Raises:
        UnparsableAnswerError: it is longer; no more than the limit was read.
    """
    data = bytearray()
    async for piece in pieces:
        data += piece
        if len(data) > limit:
            raise UnparsableAnswerError(
                f"{host} sent more than {limit / 2**20:g} MiB, and the rest was not read; "
                "set SPANLAB_REPLY_LIMIT (MiB) if replies may be longer"
            )
    return bytes(data)
