"""Pages made to keep who reads them busy."""

from __future__ import annotations

import asyncio
import os

import pytest
from hostile_server import TALL, body, serving

from spanlab.base import processes
from spanlab.search import page_text
from spanlab.search.pages import WebPage


def test_pages_that_keep_a_reader_busy_fail_with_the_reason_and_all_others_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There are more of them than processes to read with."""
    monkeypatch.setattr(page_text, "_SECONDS", 1.0)
    monkeypatch.setattr(processes, "_CLOCK", 60)  # on a busy machine a second of it takes a while
    more = min(4, os.cpu_count() or 1) + 1
    attributes = b" ".join(b"a%d=b" % number for number in range(400_000))

    async def reading() -> list[WebPage | BaseException]:
        async with (
            serving(body(b"<p " + attributes + b">tall</p>")) as (busy, url, _),
            serving(body(TALL)) as (calm, at, _),
        ):
            hostile = [asyncio.create_task(busy.read(f"{url}{n}")) for n in range(more)]
            beside = [calm.read(f"{at}{n}") for n in range(3)]
            return await asyncio.gather(*hostile, *beside, return_exceptions=True)

    *refused, first, second, third = asyncio.run(reading())
    assert {str(each).partition(" ")[2] for each in refused} == {
        "sent something unreadable: it takes more than 1 s of processor time"
    }
    for page in (first, second, third):
        assert isinstance(page, WebPage)
        assert page.text == "The tower is tall."
