"""What the environment says about language models; never a key."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from spanlab.retrievers.providers import PROVIDERS

_OPENAI = "https://api.openai.com/v1"
_KEY = "OPENAI_API_KEY"
_SEARCH_KEY = "SPANLAB_SEARCH_API_KEY"


@dataclass(frozen=True)
class ModelEnvironment:
    """What the environment says about language models; never a key.

    ``model`` and ``price`` are empty if it says nothing. ``endpoint`` is the address of the API
    without user, password and query. ``problem`` says what has to be done before any model can be
    asked, None if nothing has. ``search_variables`` are the variables of search services that are
    set.
    """

    model: str
    price: str
    endpoint: str
    key_name: str
    has_key: bool
    problem: str | None
    search_key_name: str = _SEARCH_KEY
    has_search_key: bool = False
    search_variables: frozenset[str] = frozenset()


def model_environment(
    environ: Mapping[str, str] = os.environ, *, set_up: bool = False
) -> ModelEnvironment:
    """Return what the environment says about language models.

    Args:
        environ: the environment variables.
        set_up: whether somebody has given an endpoint or a key elsewhere.
    """
    url = environ.get("OPENAI_BASE_URL", "").strip()
    has_key = bool(environ.get(_KEY, "").strip())
    problem = None
    if not has_key and not url and not set_up:
        problem = (
            f"No language model can be reached yet: set {_KEY} to a key of OpenAI, or "
            "OPENAI_BASE_URL to another endpoint of the same protocol, and start the app again."
        )
    return ModelEnvironment(
        model=environ.get("SPANLAB_MODEL", "").strip(),
        price=environ.get("SPANLAB_PRICE", "").strip(),
        endpoint=_bare(url) if url else _OPENAI,
        key_name=_KEY,
        has_key=has_key,
        problem=problem,
        has_search_key=bool(environ.get(_SEARCH_KEY, "").strip()),
        search_variables=frozenset(
            name
            for provider in PROVIDERS.values()
            for name in (provider.key, provider.variable, *provider.environment.values())
            if name and environ.get(name, "").strip()
        ),
    )


def _bare(url: str) -> str:
    """Return an address without what may be a secret in it."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "an address that cannot be read"
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}".rstrip("/")
