"""How a Signature becomes a prompt and an answer its fields: dspy's own adapters, with a memory.

An answer that does not parse is dropped from the cache, so that a retry asks the model again
instead of reading the same broken answer for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import dspy
from dspy.utils.exceptions import AdapterParseError

from spanlab.lm.line import forget_last_answer

if TYPE_CHECKING:
    from dspy.signatures.signature import Signature


class _Remembered:
    """Writes the part of a prompt that a Signature alone decides once, not for every call.

    It holds the JSON schemas of all fields, and to make it takes a third of a call's own time.
    """

    def format_system_message(self, signature: type[Signature]) -> str:
        """Return the message that explains fields and task."""
        known = _SYSTEM.setdefault(signature, {})
        key = (type(self), signature.instructions)
        if key not in known:
            known[key] = super().format_system_message(signature)  # type: ignore[misc]  # a mixin
        return known[key]


_SYSTEM: WeakKeyDictionary[type[Signature], dict[tuple[type, str], str]] = WeakKeyDictionary()


class JsonAnswers(_Remembered, dspy.JSONAdapter):
    """Asks for a JSON object."""

    def parse(self, signature: type[Signature], completion: str) -> dict[str, Any]:
        """Return the fields of an answer; one that cannot be read is forgotten."""
        try:
            fields: dict[str, Any] = super().parse(signature, completion)
        except AdapterParseError:
            forget_last_answer()
            raise
        return fields


class ChatAnswers(_Remembered, dspy.ChatAdapter):
    """Asks for marked sections, which every chat model manages; then once more for JSON."""

    def parse(self, signature: type[Signature], completion: str) -> dict[str, Any]:
        """Return the fields of an answer; one that cannot be read is forgotten."""
        try:
            fields: dict[str, Any] = super().parse(signature, completion)
        except AdapterParseError:
            forget_last_answer()
            raise
        return fields

    def _make_json_adapter_fallback(self) -> JsonAnswers:
        return JsonAnswers()


def adapter_for(lm: dspy.LM) -> dspy.Adapter:
    """Return the adapter for a model: JSON at once where the endpoint takes schemas."""
    return JsonAnswers() if lm.supports_response_schema else ChatAnswers()
