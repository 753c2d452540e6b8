"""What is kept out of texts: keys; out of terminals: controls; out of logs: what nobody reads."""

from __future__ import annotations

import html
import json
import logging
import re
import threading
import time
import traceback
from base64 import b64encode, urlsafe_b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final
from urllib.parse import quote, quote_plus

_LONG: Final = 12  # characters: what is shorter may well be a word of an answer
_PART: Final = 6  # characters of a key's beginning or end that are told from words
_LONGEST: Final = 2_000  # characters of a record in the log
_MOST: Final = 100  # records a minute of a library
# Control characters, and those that turn the direction of what follows, could hide other words;
# the last two are no characters, and no XML.
_CONTROLS: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufffe\uffff]"
)
_CUT: Final = r"\.{2,}|…|\*{2,}|•{2,}"  # what stands for the rest
_ENCODED: Final = re.compile("%[0-9A-F]{2}")
_TEMPLATED: Final = {ord(c): f"&#x{ord(c):X};" for c in "/`="}  # by Handlebars and Mustache
_IN_SCRIPTS: Final = {ord(c): f"\\u{ord(c):04x}" for c in "&<>"}  # JSON of Go
_NOBODY: Final = -1  # a level below all that handlers take
# They log what servers, tools and files say, in its own words and as often as it comes.
_LIBRARIES: Final = frozenset(
    re.findall(
        r"\w+",
        "aiohttp alembic asyncio client dbos dspy fastapi httpcore httpcore2 httpx httpx2 "
        "huggingface_hub mcp openai pypdf sqlalchemy starlette streamlit tornado trafilatura "
        "transformers uvicorn",
    )
)
_seen: set[str] = set()
_lock = threading.Lock()


def remember(secret: str) -> None:
    """Have ``redact`` remove this value from now on; very short values are left alone.

    So are the forms in which servers quote what they were sent: in base64, also within the header
    of a name and password, %-encoded, in HTML and in JSON; and what they leave of a value that they
    shorten.
    """
    if len(secret) >= 6:
        with _lock:
            _seen.update(_forms(secret))


def _forms(secret: str) -> Iterator[str]:
    for text in (secret, *_packed(secret)):
        yield text
        for encoded in (quote(text, safe=""), quote(text), quote_plus(text)):
            yield from (encoded, _ENCODED.sub(lambda code: code[0].lower(), encoded))
            yield quote(encoded, safe="")  # by a proxy that encodes it once more
        escaped = html.escape(text)
        yield from (escaped, html.escape(text, quote=False), escaped.replace("&#x27;", "&#39;"))
        yield escaped.replace("&quot;", "&#34;").replace("&#x27;", "&#39;")  # as Go writes it
        yield escaped.replace("&#x27;", "&#39;").translate(_TEMPLATED)
        for number in ("&#{};", "&#x{:x};", "&#x{:X};", "\\u{:04x}"):
            yield "".join(c if c.isalnum() else number.format(ord(c)) for c in text)
            yield "".join(number.format(ord(c)) for c in text)
        yield text.encode().hex()
        quoted = json.dumps(text)[1:-1]
        yield from (quoted, quoted.replace("/", "\\/"), quoted.translate(_IN_SCRIPTS))


@lru_cache(maxsize=64)
def _forms_once(secret: str) -> tuple[str, ...]:
    """Return a secret's forms; making them anew for every reply would take longer than asking."""
    return tuple(dict.fromkeys(_forms(secret)))


def _packed(secret: str) -> Iterator[str]:
    """Yield a secret in base64, also within the header of a name and password."""
    packed = secret.encode()
    for encode in (b64encode, urlsafe_b64encode):
        whole = encode(packed).decode()
        yield from (whole, whole.rstrip("="))
        for before in range(3):  # bytes of a name before it, which shift what it is written as
            first, last = -(-8 * before // 6), 8 * (before + len(packed)) // 6
            inner = encode(bytes(before) + packed).decode()[first:last]
            if len(inner) >= _LONG:
                yield inner


def redact(text: str) -> str:
    """Return the text with every key that was read, and what is left of a cut one, as ``[key]``."""
    with _lock:
        secrets = sorted(_seen, key=len, reverse=True)
    near = [each for each in secrets if each[:_PART] in text or each[-_PART:] in text]
    longest = max(map(len, near), default=0)
    # Of all keys the longest parts first: keys begin alike, and one may be another's beginning.
    for count in range(longest, _PART - 1, -1):
        for secret in near:
            if count == len(secret):
                text = text.replace(secret, "[key]")
            elif count < len(secret):
                text = _without_part(text, secret[:count], secret[-count:])
    return text


def _without_part(text: str, head: str, tail: str) -> str:
    """Return a text without a key's beginning and end: long ones, and those beside dots or *."""
    if len(head) >= _LONG:
        text = text.replace(head, "[key]").replace(tail, "[key]")
    if head in text:
        text = re.sub(rf"{re.escape(head)}(?={_CUT}|\Z)", "[key]", text)
    if tail in text:
        text = re.sub(rf"({_CUT}){re.escape(tail)}", r"\1[key]", text)
    return text


def visible(text: str) -> str:
    """Return a text for a terminal, which what models, servers and files say could control.

    Returns:
        The same with a dot for every control character but tabs and line feeds.
    """
    return _CONTROLS.sub("·", text)


def hidden(text: str, secrets: Iterable[str]) -> str:
    """Return a reply's text without the secrets that its request was sent with.

    Short ones stay: servers without keys are sent words such as "ollama", which an answer may hold.
    """
    for secret in secrets:
        if len(secret) >= _LONG and secret in _seen:
            for form in _forms_once(secret):
                text = text.replace(form, "[key]")
    return text


def bound_logs() -> None:
    """Have what libraries log hold no key, be short, and end after a hundred records a minute.

    It holds wherever a record is written to, for libraries that have handlers of their own, too.
    """
    inner = logging.getLogRecordFactory()
    if not isinstance(inner, _BoundRecords):
        logging.setLogRecordFactory(_BoundRecords(inner))


class _BoundRecords:
    """Makes the records of libraries; others stay as they are."""

    def __init__(self, inner: Callable[..., logging.LogRecord]) -> None:
        self._inner = inner
        self._minute = 0
        self._counts: Counter[str] = Counter()

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self._inner(*args, **kwargs)
        library = record.name.partition(".")[0]
        if library not in _LIBRARIES:
            return record
        minute = int(time.monotonic() / 60)
        with _lock:
            if minute != self._minute:
                self._minute, self._counts = minute, Counter()
            self._counts[library] += 1
            count = self._counts[library]
        if count > _MOST:
            record.levelno = _NOBODY
            return record
        record.msg, record.args = _message(record), ()
        if count == _MOST:
            record.msg = f"{library} logs more than {_MOST} records a minute: the rest is left out"
        elif record.exc_info:
            whole = "".join(traceback.format_exception(record.exc_info[1]))
            record.exc_text = visible(redact(whole))[-_LONGEST:].rstrip()
        record.exc_info = None
        return record


def _message(record: logging.LogRecord) -> str:
    try:
        return visible(redact(record.getMessage()))[:_LONGEST]
    except Exception:  # noqa: BLE001 - what a library logs may not be what it thinks
        return f"{type(record.msg).__name__} that cannot be shown"
