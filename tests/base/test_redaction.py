"""A key is removed in every form in which a server may quote it."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest

from spanlab.base import redaction
from spanlab.base.redaction import hidden, redact, remember

KEY = "sk-+/=&<'>\"ü 42 of somebody"
FORMS = {
    "plain": KEY,
    "base64": base64.b64encode(KEY.encode()).decode(),
    "base64 without its end": base64.b64encode(KEY.encode()).decode().rstrip("="),
    "base64 of addresses": base64.urlsafe_b64encode(KEY.encode()).decode(),
    "%-encoded": quote(KEY, safe=""),
    "of a form": quote_plus(KEY),
    "HTML": html.escape(KEY),
    "HTML of other servers": html.escape(KEY).replace("&#x27;", "&#39;"),
    "HTML with quotes": html.escape(KEY, quote=False),
    "JSON": json.dumps(KEY)[1:-1],
    "JSON of PHP": json.dumps(KEY)[1:-1].replace("/", "\\/"),
    "JSON of Go": json.dumps(KEY)[1:-1].translate({ord(c): f"\\u{ord(c):04x}" for c in "&<>"}),
    "HTML of Go": html.escape(KEY).replace("&quot;", "&#34;").replace("&#x27;", "&#39;"),
    "HTML of templates": html.escape(KEY)
    .replace("&#x27;", "&#39;")
    .translate({ord(c): f"&#x{ord(c):X};" for c in "/`="}),
    "HTML by number": "".join(c if c.isalnum() else f"&#{ord(c)};" for c in KEY),
    "HTML by number alone": "".join(f"&#x{ord(c):X};" for c in KEY),
    "JSON by number alone": "".join(f"\\u{ord(c):04x}" for c in KEY),
    "hexadecimal": KEY.encode().hex(),
    "%-encoded twice": quote(quote(KEY, safe=""), safe=""),
    "base64, %-encoded": quote(base64.b64encode(KEY.encode()).decode(), safe=""),
    "base64, in JSON of PHP": base64.b64encode(KEY.encode()).decode().replace("/", "\\/"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_removed_in_every_form(form: str) -> None:
    remember(KEY)
    assert redact(f"Invalid token '{FORMS[form]}' was sent") == "Invalid token '[key]' was sent"


def test_codes_in_small_letters_are_those_of_the_key_too() -> None:
    remember("a+key/of=somebody")
    assert redact("token=a%2bkey%2fof%3dsomebody") == "token=[key]"


@pytest.mark.parametrize("name", ["u", "us", "use", "somebody@example.org"])
def test_a_pair_of_a_name_and_a_key_in_base64_has_no_key(name: str) -> None:
    remember(KEY)
    header = base64.b64encode(f"{name}:{KEY}".encode()).decode()
    shown = redact(f"Authorization: Basic {header} is wrong")
    assert "[key]" in shown
    assert not any(header[at : at + 8] in shown for at in range(10 + len(name), len(header) - 8))
    assert KEY not in hidden(f"sent {KEY}", [KEY])
    assert base64.b64encode(KEY.encode()).decode() not in hidden(FORMS["base64"], [KEY])


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        (f"Incorrect key: {KEY[:8]}***{KEY[-6:]}.", "Incorrect key: [key]***[key]."),
        (f"no such key {KEY[:9]}...", "no such key [key]..."),
        (f"no such key {KEY[:7]}…", "no such key [key]…"),
        (f"…{KEY[-7:]} is wrong", "…[key] is wrong"),
        (f"the key {KEY[:15]}, it was cut", "the key [key], it was cut"),
        (f"cut at the end: {KEY[:8]}", "cut at the end: [key]"),
        (f"%-encoded and cut: {quote(KEY)[:16]}", "%-encoded and cut: [key]"),
        (f"only the end: {KEY[-13:]}", "only the end: [key]"),
        ("somebody has a key that begins with sk-", "somebody has a key that begins with sk-"),
    ],
)
def test_what_is_left_of_a_key_that_was_cut_is_removed(said: str, shown: str) -> None:
    remember(KEY)
    assert redact(said) == shown


def test_a_keys_forms_are_made_once_and_not_for_every_reply(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """For every reply they took a millisecond of each call to a model."""
    secret = "sk-only-for-this-test-0001"
    remember(secret)
    made = list[str]()

    def watched(text: str, **options: str) -> str:
        made.append(text)
        return quote(text, **options)

    monkeypatch.setattr(redaction, "quote", watched)
    assert secret not in hidden(secret, [secret])
    first = len(made)
    assert first > 0
    assert secret not in hidden(f"again {secret}", [secret])
    assert len(made) == first
