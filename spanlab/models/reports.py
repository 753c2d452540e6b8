"""What a server reports as an error, read from whatever form its reply has.

OpenAI sends ``{"error": {"message": …, "code": …}}``; Ollama a string as error, vLLM
``{"object": "error", "message": …}``, FastAPI a ``detail``, OpenRouter an error inside a choice or
under status 200, and whatever stands in front of them a page of HTML.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from spanlab.schema import storable_json

_LOOKED_AT = 20_000  # characters of a page in which its words are looked for
_HIDDEN = re.compile(r"<(script|style)\b.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
# Statuses of errors that came without one, by their code or type.
_STATUSES = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "authentication_error": 401,
    "invalid_api_key": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "model_not_found": 404,
    "insufficient_quota": 429,
    "rate_limit_error": 429,
    "rate_limit_exceeded": 429,
    "api_error": 500,
    "server_error": 500,
    "overloaded_error": 503,
}


@dataclass(frozen=True)
class ServerReport:
    """An error as a server reports it; ``status`` is 0 where nothing says which kind it is.

    ``parameter`` is the part of the request that it names, "" for none. ``retry_after`` is in
    seconds.
    """

    status: int
    message: str
    code: str = ""
    parameter: str = ""
    retry_after: float | None = None

    @classmethod
    def read(cls, status: int, headers: Mapping[str, str], data: bytes) -> ServerReport:
        """Read a reply whose status says that it is an error.

        Args:
            status: of HTTP.
            headers: with names in lower case.
            data: the body, or its beginning.
        """
        text = data.decode("utf-8", errors="replace")
        try:
            report = read_report(storable_json(text))
        except ValueError:
            report = None
        report = report or cls(status, words_of(text))
        wait = seconds_of(headers.get("retry-after"))
        return replace(report, status=status, retry_after=wait)


def read_report(body: object) -> ServerReport | None:
    """Return the error that the JSON of a reply reports; None if it reports none."""
    if not isinstance(body, dict):
        return None
    choices = body.get("choices")
    if isinstance(choices, list) and choices:
        choice = choices[0] if isinstance(choices[0], dict) else {}
        error = body.get("error") or choice.get("error")
        return _read(error) if error else None
    if body.get("error"):
        return _read(body["error"])
    if body.get("object") == "error":
        return _read(body)
    message = next((body[name] for name in ("detail", "message", "errors") if body.get(name)), None)
    return None if message is None else _read(message)


def words_of(page: str) -> str:
    """Return the words of a text that may be a page of HTML."""
    page = page[:_LOOKED_AT]
    if page.lstrip()[:1] != "<":
        return page
    return " ".join(html.unescape(_TAG.sub(" ", _HIDDEN.sub(" ", page))).split())


def _read(error: object) -> ServerReport:
    """Read an error: a sentence, an object that has one, or a list of such."""
    if isinstance(error, list):
        return ServerReport(400, "; ".join(_read(inner).message for inner in error))
    if not isinstance(error, dict):
        return ServerReport(0, str(error))
    code = str(error.get("code") or error.get("type") or "")
    words = error.get("message") or error.get("msg") or error.get("detail")
    message = words if isinstance(words, str) else json.dumps(words or error, ensure_ascii=False)
    place = error.get("loc")
    if isinstance(place, list):
        message = f"{'.'.join(map(str, place))}: {message}"
    return ServerReport(
        _status(error), message + _upstream(error), code, str(error.get("param") or "")
    )


def _upstream(error: dict[str, Any]) -> str:
    """Return what the provider behind a gateway said."""
    metadata = error.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    return f": {raw}" if raw else ""


def _status(error: dict[str, Any]) -> int:
    for name in ("code", "status", "type"):
        value = error.get(name)
        if isinstance(value, int | str) and re.fullmatch(r"[45]\d\d", str(value)):
            return int(value)
        if value in _STATUSES:
            return _STATUSES[value]
    return 0


def seconds_of(retry_after: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for, None without a usable one."""
    if not retry_after:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        when = parsedate_to_datetime(retry_after)
    except ValueError:
        return None
    return max(0.0, (when.astimezone(UTC) - datetime.now(UTC)).total_seconds())
