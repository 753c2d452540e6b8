"""Bodies from outside are closed with all that reads them."""

from __future__ import annotations

import asyncio
import gzip
import math
import sys
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from spanlab.base.inbound import unpacked

TEXT = b"a" * 300_000  # more than is unpacked at a time


async def sent(body: bytes) -> AsyncGenerator[bytes]:
    for at in range(0, len(body), 100):
        yield body[at : at + 100]


@pytest.mark.parametrize(("packed", "body"), [("gzip", gzip.compress(TEXT)), (None, TEXT)])
def test_a_body_that_is_read_in_part_leaves_no_generator_open(
    packed: str | None, body: bytes
) -> None:
    """What the end of a loop finds open it closes at once, one generator while another runs."""
    opened = list[Any]()

    async def read() -> None:
        hooks = sys.get_asyncgen_hooks()
        sys.set_asyncgen_hooks(firstiter=opened.append, finalizer=hooks.finalizer)
        pieces = unpacked(sent(body), math.inf, "host", packed)
        assert await anext(pieces)
        await pieces.aclose()
        sys.set_asyncgen_hooks(*hooks)

    asyncio.run(read())
    assert len(opened) > 1
    assert [generator.ag_frame for generator in opened] == [None] * len(opened)
