"""How a Signature becomes a prompt and an answer its fields: dspy's own adapters.

What is added: an answer that cannot be read leaves the cache, so that a retry asks the model again
instead of reading the same answer for ever. And what takes dspy most of a call's processor time is
done once or more directly: the system message with the JSON schemas of all fields, which a
Signature alone decides (1.2 ms a call), inputs that are text (0.1 ms), and answers in exactly the
form asked for (0.14 ms).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import dspy
from dspy.utils.exceptions import AdapterParseError

from spanlab.background import wait
from spanlab.fields import storable
from spanlab.lm.engine import forget_last_call
from spanlab.lm.parsing import read_object, read_sections

if TYPE_CHECKING:
    from dspy.signatures.signature import Signature


class _Adapter(dspy.ChatAdapter):
    """What both forms of answers have in common."""

    # What reads an answer in the form asked for; None for any other, which is dspy's to read.
    _read = staticmethod(read_sections)

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

    def format_user_message_content(
        self,
        signature: type[Signature],
        inputs: dict[str, Any],
        prefix: str = "",
        suffix: str = "",
        main_request: bool = False,
    ) -> Any:
        """Return the message that shows a call's inputs; text is shown as it is."""
        shown = {name: inputs[name] for name in signature.input_fields if name in inputs}
        if not all(type(value) is str for value in shown.values()):
            return super().format_user_message_content(
                signature, inputs, prefix, suffix, main_request
            )
        parts = [prefix, *(f"[[ ## {name} ## ]]\n{value}" for name, value in shown.items())]
        if main_request:
            parts.append(self.user_message_output_requirements(signature))
        return "\n\n".join([*parts, suffix]).strip()

    def __call__(self, *args: Any, **asked: Any) -> Any:
        """Ask in the calling thread; see dspy."""
        try:
            return super().__call__(*args, **asked)
        except AdapterParseError:
            wait(forget_last_call())
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
        fields = self._read(signature, completion)
        if fields is not None:
            return storable(fields)
        try:
            return storable(super().parse(signature, completion))
        except RecursionError:  # thousands of brackets
            raise AdapterParseError(
                adapter_name=type(self).__name__,
                signature=signature,
                lm_response=completion,
                message="it is nested too deeply",
            ) from None


class JsonAnswers(_Adapter, dspy.JSONAdapter):
    """Asks for a JSON object."""

    _read = staticmethod(read_object)


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
