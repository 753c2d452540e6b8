"""``dspy.LM`` as the engine needs it: it hears which answer is wanted, and stays in its loop."""

from __future__ import annotations

from typing import Any

import dspy
from dspy.clients.errors import error_boundary
from dspy.clients.execution import _canonical, _result, finalize, prepare

from spanlab.lm.line import want_rollout


class Model(dspy.LM):
    """A language model on spanlab's engines.

    A call of dspy's in an event loop goes through two worker threads, for images read from disk
    and for its list of prices. There is neither here; without them a run of many short calls
    takes half the time, because threads that wait for the interpreter hold up everyone.
    """

    def __call__(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Answer in the calling thread; see dspy."""
        want_rollout(kwargs.get("rollout_id", self.kwargs.get("rollout_id")))
        return super().__call__(prompt, messages=messages, **kwargs)

    async def acall(self, prompt: Any = None, *, messages: Any = None, **kwargs: Any) -> Any:
        """Answer in the running event loop; see dspy."""
        want_rollout(kwargs.get("rollout_id", self.kwargs.get("rollout_id")))
        if not self._plain(messages, {**self.kwargs, **kwargs}):
            return await super().acall(prompt, messages=messages, **kwargs)
        call = prepare(self, prompt, messages, kwargs, asynchronous=True)
        call.legacy["model"] = self._async_engine_spec.line.choice.model
        with error_boundary(self.model):
            request = _canonical(call)
        with error_boundary(self.model, unexpected=True):
            response = await self._async_engine_spec.complete(request)
            result = _result(self, response, call, None, request, estimate=False)
        return finalize(self, call, result)

    def _plain(self, messages: Any, options: dict[str, Any]) -> bool:
        """Say whether a call is one text for one answer, which nobody listens in to."""
        listeners = (
            dspy.settings.get("callbacks", []) or self.callbacks or dspy.settings.send_stream
        )
        return (
            not listeners
            and options.get("n") in {None, 1}
            and options.get("prompt_cache") is None
            and messages is not None
            and all(isinstance(message.get("content"), str) for message in messages)
        )
