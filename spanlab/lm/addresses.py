"""Addresses of endpoints as people write them, Azure's among them."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

_PATH = "/chat/completions"
_AZURE = (".openai.azure.com", ".cognitiveservices.azure.com")
_AT_AZURE = (
    "at Azure an address is https://NAME.openai.azure.com/openai/v1 or "
    "https://NAME.openai.azure.com/openai/deployments/DEPLOYMENT?api-version=VERSION"
)


@dataclass(frozen=True)
class EndpointAddress:
    """Where an endpoint is.

    ``base`` lacks a trailing slash and the part that calls add; ``query`` stands behind it, and is
    empty but for Azure's ``api-version``.
    """

    base: str
    query: str = ""

    @classmethod
    def parse(cls, text: str) -> EndpointAddress:
        """Read an address.

        Raises:
            ValueError: it is none, or holds what might be a key.
        """
        parts = urlsplit(text)
        host, path = parts.hostname or "", parts.path.rstrip("/").removesuffix(_PATH)
        if parts.scheme not in {"http", "https"} or not host:
            raise ValueError("an endpoint's address begins with http:// or https:// and has a host")
        if "@" in parts.netloc or {name for name, _ in parse_qsl(parts.query)} - {"api-version"}:
            raise ValueError("keep keys and passwords out of the address: set api_key_env instead")
        deployed = "/openai/deployments/" in path and parts.query
        if host.endswith(_AZURE) and not (deployed or path.endswith("/openai/v1")):
            raise ValueError(_AT_AZURE)
        return cls(f"{parts.scheme}://{parts.netloc}{path}", parts.query)

    def __str__(self) -> str:
        return f"{self.base}?{self.query}" if self.query else self.base

    def completed(self, url: str) -> str:
        """Return a URL below ``base`` with the query behind it."""
        return f"{url}?{self.query}" if self.query else url

    def key_header(self, key: str) -> dict[str, str]:
        """Return the header that carries the key here."""
        host = urlsplit(self.base).hostname or ""
        if self.query or host.endswith(_AZURE):
            return {"api-key": key}
        return {"Authorization": f"Bearer {key}"}
