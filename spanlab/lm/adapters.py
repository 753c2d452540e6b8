"""How a Signature becomes a prompt and an answer its fields: dspy's own adapters, with a memory.

An answer that does not parse is dropped from the cache, so that a retry asks the model again
instead of reading the same broken answer for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

import dspy
from dspy.utils.exceptions import AdapterParseError

from spanlab.lm.line import forget_last_answer
from spanlab.lm.parsing import read_object, read_sections

if TYPE_CHECKING:
    from dspy.signatures.signature import Signature


class _Remembered(dspy.ChatAdapter):
    """Writes what many calls have in common once, not for every call; forgets unreadable answers.

    In common they have the part of a prompt that a Signature alone decides, with the JSON schemas
    of all fields, and the demonstrations; to make them takes most of a call's own time.
    """

    # What reads an answer in the form asked for; None for any other, which is dspy's to read.
    _read = staticmethod(read_sections)

    def format_system_message(self, signature: type[Signature]) -> str:
        """Return the message that explains fields and task."""
        known = _SYSTEM.setdefault(signature, {})
        key = (type(self), signature.__doc__)  # the instructions as they were written
        if key not in known:
            known[key] = super().format_system_message(signature)
        return known[key]

    def format_demos(
        self, signature: type[Signature], demos: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the messages that show the demonstrations."""
        messages: list[dict[str, Any]]
        if not demos:
            return []
        # Instructions change with every candidate prompt; how fields are shown does not.
        key = (type(self), tuple(signature.fields), tuple(id(demo) for demo in demos))
        if key in _DEMOS:
            _, messages = _DEMOS[key]
        else:
            messages = super().format_demos(signature, demos)
            while len(_DEMOS) >= _MOST_DEMOS:
                _DEMOS.pop(next(iter(_DEMOS), key), None)
            _DEMOS[key] = (tuple(demos), messages)  # held, so that no other gets their ids
        return [dict(message) for message in messages]

    def format_user_message_content(
        self,
        signature: type[Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> str:
        """Return the message that shows a call's inputs; text is shown as it is, in no detour."""
        shown = {name: inputs[name] for name in signature.input_fields if name in inputs}
        if not all(type(value) is str for value in shown.values()):
            message: str = super().format_user_message_content(
                signature, inputs, prefix, suffix, main_request
            )
            return message
        parts = [prefix, *(f"[[ ## {name} ## ]]\n{value}" for name, value in shown.items())]
        if main_request:
            parts.append(self._wanted(signature))
        return "\n\n".join([*parts, suffix]).strip()

    def _wanted(self, signature: type[Signature]) -> str:
        known = _WANTED.setdefault(signature, {})
        if type(self) not in known:
            known[type(self)] = self.user_message_output_requirements(signature)
        return known[type(self)]

    def parse(self, signature: type[Signature], completion: str) -> dict[str, Any]:
        """Return the fields of an answer; one that cannot be read is forgotten."""
        fields: dict[str, Any] | None = self._read(signature, completion)
        if fields is not None:
            return fields
        try:
            fields = super().parse(signature, completion)
        except AdapterParseError:
            forget_last_answer()
            raise
        except RecursionError:  # thousands of brackets
            forget_last_answer()
            raise _too_deep(self, signature, completion) from None
        return cast("dict[str, Any]", fields)


_MOST_DEMOS = 64  # sets of demonstrations that are remembered
_DEMOS: dict[
    tuple[type, tuple[str, ...], tuple[int, ...]],
    tuple[tuple[dict[str, Any], ...], list[dict[str, Any]]],
] = {}
_WANTED: WeakKeyDictionary[type[Signature], dict[type, str]] = WeakKeyDictionary()
_SYSTEM: WeakKeyDictionary[type[Signature], dict[tuple[type, str | None], str]] = (
    WeakKeyDictionary()
)


class JsonAnswers(_Remembered, dspy.JSONAdapter):
    """Asks for a JSON object."""

    _read = staticmethod(read_object)


class ChatAnswers(_Remembered):
    """Asks for marked sections, which every chat model manages; then once more for JSON."""

    def _make_json_adapter_fallback(self) -> JsonAnswers:
        return JsonAnswers()


def adapter_for(lm: dspy.LM) -> dspy.Adapter:
    """Return the adapter for a model: JSON at once where the endpoint takes schemas."""
    if lm not in _ADAPTERS:
        _ADAPTERS[lm] = JsonAnswers() if lm.supports_response_schema else ChatAnswers()
    return _ADAPTERS[lm]


_ADAPTERS: WeakKeyDictionary[dspy.LM, dspy.Adapter] = WeakKeyDictionary()


def _too_deep(adapter: object, signature: type[Signature], answer: str) -> AdapterParseError:
    return AdapterParseError(
        adapter_name=type(adapter).__name__,
        signature=signature,
        lm_response=answer,
        message="it is nested too deeply",
    )
