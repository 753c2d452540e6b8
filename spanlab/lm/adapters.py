"""How a Signature becomes a prompt and an answer its fields: dspy's own adapters.

What is added: an answer that cannot be read leaves the cache, so that a retry asks the model again
instead of reading the same answer for ever; and the system message, which a Signature alone
decides, is written once. dspy writes the JSON schemas of all fields anew for every call, which
takes 1.2 ms of processor time, more than all the rest of a call.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import dspy
from dspy.utils.exceptions import AdapterParseError

from spanlab.lm.background import run_in_background
from spanlab.lm.engine import forget_last_call

if TYPE_CHECKING:
    from dspy.signatures.signature import Signature


class _Adapter(dspy.ChatAdapter):
    """What both forms of answers have in common."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._system: WeakKeyDictionary[type[Signature], tuple[str | None, str]] = (
            WeakKeyDictionary()
        )

    def format_system_message(self, signature: type[Signature]) -> str:
        """Return the message that explains fields and task."""
        task = signature.__doc__  # the instructions, which may be changed in place
        known = self._system.get(signature)
        if known is None or known[0] != task:
            known = self._system[signature] = (task, super().format_system_message(signature))
        return known[1]

    def __call__(self, *args: Any, **asked: Any) -> Any:
        """Ask in the calling thread; see dspy."""
        try:
            return super().__call__(*args, **asked)
        except AdapterParseError:
            run_in_background(forget_last_call())
            raise

    async def acall(self, *args: Any, **asked: Any) -> Any:
        """Ask in the running event loop; see dspy."""
        try:
            return await super().acall(*args, **asked)
        except AdapterParseError:
            await forget_last_call()
            raise

    def parse(self, signature: type[Signature], completion: str) -> Any:
        """Return the fields of an answer; see dspy."""
        try:
            return super().parse(signature, completion)
        except RecursionError:  # thousands of brackets
            raise AdapterParseError(
                adapter_name=type(self).__name__,
                signature=signature,
                lm_response=completion,
                message="it is nested too deeply",
            ) from None


class JsonAnswers(_Adapter, dspy.JSONAdapter):
    """Asks for a JSON object."""


class ChatAnswers(_Adapter):
    """Asks for marked sections, which every chat model manages; then once more for JSON."""

    def __init__(self) -> None:
        super().__init__(use_json_adapter_fallback=False)
        self._json = JsonAnswers()

    def __call__(self, *args: Any, **asked: Any) -> Any:
        """Ask in the calling thread; see dspy."""
        try:
            return super().__call__(*args, **asked)
        except AdapterParseError:
            return self._json(*args, **asked)

    async def acall(self, *args: Any, **asked: Any) -> Any:
        """Ask in the running event loop; see dspy."""
        try:
            return await super().acall(*args, **asked)
        except AdapterParseError:
            return await self._json.acall(*args, **asked)
