"""Spans as readers of traces make them, with OpenInference's attributes."""

from __future__ import annotations

from typing import Any


def row(name: str, inside: str = "", at: tuple[int, int] = (0, 99), **said: Any) -> dict[str, Any]:
    """A span: its id is its name up to a slash; what it read and wrote; or what it found."""
    named = {"asked": "input.value", "answered": "output.value", "kind": "openinference.span.kind"}
    attributes = {named[key]: value for key, value in said.items() if key in named}
    for n, text in enumerate(said.get("found", ())):
        attributes[f"retrieval.documents.{n}.document.content"] = text
    for n, (role, text) in enumerate(said.get("read", ())):
        attributes[f"llm.input_messages.{n}.message.role"] = role
        attributes[f"llm.input_messages.{n}.message.content"] = text
    if "wrote" in said:
        attributes["llm.output_messages.0.message.content"] = said["wrote"]
        attributes["llm.output_messages.0.message.role"] = "assistant"
    return {
        "trace": "t",
        "id": name,
        "parent": inside or None,
        "name": name.rstrip("0123456789"),
        "start": at[0],
        "end": at[1],
        "failed": said.get("failed", False),
        "attributes": attributes,
    }


def call(
    name: str, inside: str, at: tuple[int, int], *read: tuple[str, str], wrote: str
) -> dict[str, Any]:
    return row(name, inside, at, kind="LLM", read=read, wrote=wrote)
