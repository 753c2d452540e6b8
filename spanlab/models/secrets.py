"""Keys: read when a call needs one, from the environment or memory, and kept out of every text."""

from __future__ import annotations

import os
import re
import secrets
import threading
from collections.abc import Mapping
from urllib.parse import unquote

from spanlab.base.errors import MissingKeyError, UsageError
from spanlab.base.redaction import remember
from spanlab.base.settings import EndpointSettings
from spanlab.models.choice import ModelChoice

_NO_KEY = "no-key"  # what a local server without keys is sent
_SECRET_HEADER = re.compile(r"key|token|auth|secret|cookie", re.IGNORECASE)
_HEADER_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")  # RFC 9110, 5.6.2
KEY_IS_GONE = (
    "the key that was given in the browser is gone: it was kept for its session and never stored; "
    "give it again on the page where the work was started, and start it there; what is finished is "
    "not done again"
)
_LENT = "key-of-a-browser-session-"
_LENT_NAME = re.compile(rf"{_LENT}[0-9a-f]{{16}}")
_lent: dict[str, str] = {}  # name → key, in this process's memory alone
_lock = threading.Lock()


def key_of(choice: ModelChoice, environ: Mapping[str, str] = os.environ) -> str:
    """Return the endpoint's key, or a placeholder for an endpoint of one's own that needs none.

    Args:
        choice: says which environment variable holds the key.
        environ: the environment variables.

    Raises:
        MissingKeyError: the variable is unset and the endpoint is OpenAI's, or the key was lent
            by somebody who has taken it back.
    """
    name = choice.api_key_env
    if _LENT_NAME.fullmatch(name) and name not in _lent:
        raise MissingKeyError(f"{choice.host}: {KEY_IS_GONE}")
    key = _lent.get(name) or environ.get(name, "").strip()
    if key:
        remember(key)
        return key
    if choice.base_url is None:
        raise MissingKeyError(
            f"no key for {choice.host}: set {choice.api_key_env}, "
            "or set OPENAI_BASE_URL to an endpoint that needs none"
        )
    return _NO_KEY


def lend(key: str) -> str:
    """Keep a key in the memory of this process, and return the name that stands for it."""
    name = f"{_LENT}{secrets.token_hex(8)}"
    remember(key.strip())
    with _lock:
        _lent[name] = key.strip()
    return name


def take_back(name: str) -> None:
    """Forget a key that was lent."""
    with _lock:
        _lent.pop(name, None)


def is_lent(name: str) -> bool:
    """Say whether a name stands for a key in this process."""
    return name in _lent


def lent_names(text: str) -> set[str]:
    """Return the names of lent keys, here or in another process, in a text."""
    return set(_LENT_NAME.findall(text))


def headers_of(choice: ModelChoice, environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the headers that an endpoint is to be sent beside its key.

    They stand in the variable named like the key's, ``OPENAI_HEADERS`` beside ``OPENAI_API_KEY``,
    as ``name=value,name=value``; a comma inside a value is written ``%2C``.

    Raises:
        UsageError: the variable holds something else.
    """
    prefix = EndpointSettings.prefix_of(choice.api_key_env)
    headers: dict[str, str] = {}
    for pair in filter(str.strip, EndpointSettings.read(environ, prefix=prefix).headers.split(",")):
        name, sign, value = (unquote(part.strip()) for part in pair.partition("="))
        sound = value.isascii() and value.isprintable() and _HEADER_NAME.fullmatch(name)
        if not (sign and sound):
            variable = EndpointSettings.variable("headers", prefix=prefix)
            raise UsageError(f"{variable} is name=value,name=value, such as X-Title=spanlab")
        headers[name] = value
        if _SECRET_HEADER.search(name):
            remember(value)
    return headers
