"""Where a search API is, how it wants its key, and how its answers look."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from spanlab.errors import UsageError
from spanlab.lm.secrets import remember
from spanlab.retrievers.results import Shape

KEY = "SPANLAB_SEARCH_API_KEY"
_LOOKS_LIKE = "https://api.example.com/search?q={query}"


@dataclass(frozen=True)
class Endpoint:
    """Where to ask, and how the answer looks.

    ``url`` has ``{query}`` where the query goes, ``{k}`` where the number of results does, and
    ``{before}`` where the day does before which they must be published (ISO, or nothing). One
    without ``{query}`` gets it as JSON, ``{"query": …}``, by POST. ``header`` carries the key:
    ``Authorization`` after the word Bearer, any other alone. ``timeout`` is in seconds and holds
    for one attempt; ``retries`` attempts may follow the first.
    """

    url: str = field(repr=False)  # some services want the key in it
    header: str = "Authorization"
    key: str = field(default="", repr=False)
    shape: Shape = field(default_factory=Shape)
    timeout: float = 30.0
    retries: int = 3

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in {"http", "https"} or not self.host:
            raise UsageError(f"SPANLAB_SEARCH_URL is no address: it looks like {_LOOKS_LIKE}")

    @property
    def host(self) -> str:
        """Host and port, as messages and names have them."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    @classmethod
    def read(
        cls,
        environ: Mapping[str, str] = os.environ,
        *,
        url: str | None = None,
        shape: Shape | None = None,
    ) -> Endpoint:
        """Read the environment.

        ``SPANLAB_SEARCH_URL``, ``SPANLAB_SEARCH_API_KEY``, ``SPANLAB_SEARCH_KEY_HEADER`` (default
        Authorization) and ``SPANLAB_SEARCH_FIELDS`` such as ``results=data.items,text=body``.

        Args:
            environ: the environment variables.
            url: goes before the environment's.
            shape: goes before the environment's.

        Raises:
            UsageError: no address is named, or a variable holds something unusable.
        """
        address = url or environ.get("SPANLAB_SEARCH_URL")
        if not address:
            raise UsageError(
                f"no search API is named: set SPANLAB_SEARCH_URL, such as {_LOOKS_LIKE}"
            )
        key = environ.get(KEY, "").strip()
        remember(key)
        return cls(
            url=address,
            header=environ.get("SPANLAB_SEARCH_KEY_HEADER") or "Authorization",
            key=key,
            shape=shape or _shape(environ.get("SPANLAB_SEARCH_FIELDS", "")),
        )


def _shape(text: str) -> Shape:
    """Read ``results=data.items,text=body``; empty text is the shape of the usual services."""
    fields: dict[str, str] = {}
    for pair in filter(None, (part.strip() for part in text.split(","))):
        name, sign, path = (part.strip() for part in pair.partition("="))
        if name not in Shape.model_fields or not sign or not path:
            raise UsageError(
                f"SPANLAB_SEARCH_FIELDS wants {', '.join(Shape.model_fields)} with paths, such as "
                f"results=data.items,text=body, not {pair!r}"
            )
        fields[name] = path
    return Shape(**fields)
