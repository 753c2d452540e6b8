"""What is done is told to the addresses that SPANLAB_WEBHOOKS names: webhooks, signed.

A notice is JSON by POST; its header ``X-Spanlab-Signature`` is ``sha256=`` and the hexadecimal
HMAC-SHA256 of the body by SPANLAB_WEBHOOK_SECRET. It has an ``id`` and the time ``at``, so that one
that comes twice, or much later, is known. It holds names and numbers alone, no texts of items.
Notices are sent in the background: nobody waits for them, and what cannot be told is logged.
"""

from __future__ import annotations

import asyncio
import atexit
import hmac
import logging
import time
from concurrent.futures import Future, wait
from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit
from uuid import uuid4

from pydantic import JsonValue
from pydantic_core import to_json

from spanlab.runtime import submit
from spanlab.settings import Settings

if TYPE_CHECKING:
    import httpx

SIGNATURE: Final = "X-Spanlab-Signature"
_SECONDS: Final = 10.0  # that an attempt may take in all
_PAUSES: Final = (1.0, 10.0, 60.0)  # seconds before another attempt; then it is given up
_WAITING: Final = 1000  # notices under way at once; further ones are dropped
_AT_EXIT: Final = 15.0  # seconds that a process that ends waits for them
_LOG: Final = logging.getLogger(__name__)


def notify(event: str, key: str = "", **fields: JsonValue) -> None:
    """Tell all configured addresses of an event; returns at once, and raises nothing of theirs.

    Args:
        event: "item done" or "job done".
        key: the notice's ``id``, for what may be told twice; empty for one of its own.
        **fields: what is said of it.

    Raises:
        UsageError: the environment names addresses without a secret, or something unusable.
    """
    settings = Settings.read()
    if not settings.webhooks:
        return
    body = to_json({"event": event, "id": key or uuid4().hex, "at": time.time(), **fields})
    signature = hmac.digest(settings.webhook_secret.encode(), body, "sha256").hex()
    headers = {"Content-Type": "application/json", SIGNATURE: f"sha256={signature}"}
    for url in map(str, settings.webhooks):
        if len(_under_way()) < _WAITING:
            notice = submit(_deliver(url, headers, body))
            _under_way().add(notice)
            notice.add_done_callback(_under_way().discard)
        else:
            _LOG.warning("%s was not told of %s: too many wait", urlsplit(url).hostname, event)


@cache
def _under_way() -> set[Future[None]]:
    under_way: set[Future[None]] = set()
    atexit.register(lambda: wait(list(under_way), _AT_EXIT))
    return under_way


@cache
def _client() -> httpx.AsyncClient:
    import httpx

    return httpx.AsyncClient(timeout=_SECONDS, follow_redirects=False)


async def _deliver(url: str, headers: dict[str, str], body: bytes) -> None:
    """Send one notice; what the other side answers, beside its status, is not read."""
    problem = ""
    for pause in (0.0, *_PAUSES):
        await asyncio.sleep(pause)
        try:
            async with (
                asyncio.timeout(_SECONDS),
                _client().stream("POST", url, headers=headers, content=body) as reply,
            ):
                if reply.is_success:
                    return
                problem = f"it answers {reply.status_code}"
        except Exception as error:  # noqa: BLE001 - whatever the other side does, it ends nothing here
            problem = type(error).__name__
    _LOG.warning("%s was not told: %s", urlsplit(url).hostname, problem)
