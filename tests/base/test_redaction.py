"""A key is removed in every form in which a server may quote it."""

from __future__ import annotations

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest

from spanlab.base.redaction import redact, remember

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
}


@pytest.mark.parametrize("form", FORMS)
def test_a_key_is_removed_in_every_form(form: str) -> None:
    remember(KEY)
    assert redact(f"Invalid token '{FORMS[form]}' was sent") == "Invalid token '[key]' was sent"


def test_codes_in_small_letters_are_those_of_the_key_too() -> None:
    remember("a+key/of=somebody")
    assert redact("token=a%2bkey%2fof%3dsomebody") == "token=[key]"
