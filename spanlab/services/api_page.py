"""The page ``/docs`` of the JSON API: its OpenAPI description as plain HTML, without a script."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Iterator, Mapping
from hashlib import sha256
from html import escape
from typing import Any, Final

_STYLE: Final = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 56rem; padding: 0 1rem;
  color-scheme: light dark; }
h2 { border-top: 1px solid; font: 600 1.1rem/1.5 ui-monospace, monospace; padding-top: 1rem; }
pre { overflow-x: auto; padding: .75rem; background: color-mix(in srgb, currentColor 8%, Canvas); }
"""
_STYLE_HASH: Final = b64encode(sha256(_STYLE.encode()).digest()).decode()
POLICY: Final = f"default-src 'none'; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'"


def api_page(description: Mapping[str, Any]) -> str:
    """Return the page for an OpenAPI description; ``POLICY`` is its Content-Security-Policy."""
    title = escape(f"{description['info']['title']} {description['info']['version']}")
    parts = [part for path in description["paths"].items() for part in _path(*path)]
    shapes = description["components"]["schemas"]
    parts += [
        f"<h2 id='{escape(name)}'>{escape(name)}</h2>{_pre(of)}" for name, of in shapes.items()
    ]
    return (
        f"<!doctype html><html lang='en'><head><meta charset='utf-8'><title>{title}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{_STYLE}</style></head><body>"
        f"<main><h1>{title}</h1><p>Every request carries <code>Authorization: Bearer KEY</code>. "
        "For programs: <a href='/openapi.json'>openapi.json</a>.</p>"
        f"{''.join(parts)}</main></body></html>"
    )


def _path(path: str, methods: Mapping[str, Any]) -> Iterator[str]:
    for method, asked in methods.items():
        yield f"<h2>{escape(method.upper())} {escape(path)}</h2>"
        yield f"<p>{escape(asked.get('description', ''))}</p>"
        for parameter in asked.get("parameters", ()):
            name = f"{parameter['name']} ({parameter['in']})"
            yield f"<p>Parameter <code>{escape(name)}</code></p>{_pre(parameter['schema'])}"
        if "requestBody" in asked:
            yield f"<p>Body: {_shape(asked['requestBody'])}</p>"
        replies = (
            f"<li>{status}: {escape(reply['description'])} {_shape(reply)}</li>"
            for status, reply in asked["responses"].items()
        )
        yield f"<ul>{''.join(replies)}</ul>"


def _shape(body: Mapping[str, Any]) -> str:
    """Return the name of what a body holds, linked to its description, or its schema."""
    schema = body.get("content", {}).get("application/json", {}).get("schema", {})
    name = escape(schema.get("$ref", "").rpartition("/")[2])
    return f"<a href='#{name}'>{name}</a>" if name else _pre(schema) if schema else ""


def _pre(value: object) -> str:
    return f"<pre>{escape(json.dumps(value, indent=1, ensure_ascii=False))}</pre>"
