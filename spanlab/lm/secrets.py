"""Keys: read from the environment when a call needs one, and kept out of every text."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from spanlab.errors import MissingKeyError, UsageError
from spanlab.lm.choice import ModelChoice

_NO_KEY = "no-key"  # what a local server without keys is sent
_SECRET_HEADER = re.compile(r"key|token|auth|secret|cookie", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2
_LONG = 12  # characters: what is shorter may well be a word of an answer
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


def headers_of(choice: ModelChoice, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the headers that an endpoint is to be sent beside its key.

    They stand in the variable named like the key's, ``OPENAI_HEADERS`` beside ``OPENAI_API_KEY``,
    as ``name=value,name=value``; a comma inside a value is written ``%2C``.

    Raises:
        UsageError: the variable holds something else.
    """
    variable = choice.api_key_env.removesuffix("_KEY").removesuffix("_API") + "_HEADERS"
    headers: dict[str, str] = {}
    for pair in filter(str.strip, environ.get(variable, "").split(",")):
        name, sign, value = (unquote(part.strip()) for part in pair.partition("="))
        sound = value.isascii() and value.isprintable() and _HEADER_NAME.fullmatch(name)
        if not (sign and sound):
            raise UsageError(f"{variable} is name=value,name=value, such as X-Title=spanlab")
        headers[name] = value
        if _SECRET_HEADER.search(name):
            remember(value)
    return headers


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


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return a reply's text without the secrets that its request was sent with.

    Short ones stay: servers without keys are sent words such as "ollama", which an answer may hold.
    """
    for secret in secrets:
        if len(secret) >= _LONG and secret in _seen:
            text = text.replace(secret, "[key]")
    return text
