"""Keys: read from the environment when a call needs one, and kept out of every text."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping

from spanlab.errors import MissingKeyError
from spanlab.lm.choice import ModelChoice

_NO_KEY = "no-key"  # what a local server without keys is sent
_seen: set[str] = set()
_lock = threading.Lock()


def key_of(choice: ModelChoice, environ: Mapping[str, str] = os.environ) -> str:
    """Return the endpoint's key, or a placeholder for an endpoint of one's own that needs none.

    Args:
        choice: says which environment variable holds the key.
        environ: the environment variables.

    Raises:
        MissingKeyError: the variable is unset and the endpoint is OpenAI's.
    """
    key = environ.get(choice.api_key_env, "").strip()
    if key:
        remember(key)
        return key
    if choice.base_url is None:
        raise MissingKeyError(
            f"no key for {choice.host}: set {choice.api_key_env}, "
            "or set OPENAI_BASE_URL to an endpoint that needs none"
        )
    return _NO_KEY


def remember(secret: str) -> None:
    """Have ``redact`` remove this value from now on; very short values are left alone."""
    if len(secret) >= 6:
        with _lock:
            _seen.add(secret)


def redact(text: str) -> str:
    """Return the text with every key that was read replaced by ``[key]``."""
    with _lock:
        secrets = sorted(_seen, key=len, reverse=True)
    for secret in secrets:
        text = text.replace(secret, "[key]")
    return text
