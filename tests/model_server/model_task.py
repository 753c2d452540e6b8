"""A small task on a scripted model: a Signature, the language model, and answers in its form."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from spanlab.models import Meter, ModelChoice, language_model, predicting
from spanlab.models.cache import answer_file
from spanlab.testing import ScriptedReply, say

if TYPE_CHECKING:
    import dspy


def marked(answer: str, **more: Any) -> ScriptedReply:
    """An answer in dspy's marked sections."""
    return say(f"[[ ## answer ## ]]\n{answer}\n\n[[ ## completed ## ]]", **more)


def signature() -> type[dspy.Signature]:
    """The task's signature: passages and question before the text that is checked."""
    import dspy

    fields = "passages, question, text -> answer"
    return cast("type[dspy.Signature]", dspy.Signature(fields, "Say what is wrong."))


class Task:
    """Asks a question of a model and returns its answer."""

    def __init__(self, choice: ModelChoice, meter: Meter, cache: Path | None) -> None:
        import dspy

        self.lm = language_model(choice, meter, cache=answer_file(cache) if cache else None)
        self._predict = dspy.Predict(signature())

    def ask(self, question: str, **more: Any) -> str:
        """Ask in this thread."""
        with predicting(self.lm):
            return str(self._predict(passages="P", question=question, text="T", **more).answer)

    async def aask(self, question: str, **more: Any) -> str:
        """Ask in this event loop."""
        with predicting(self.lm):
            found = await self._predict.acall(passages="P", question=question, text="T", **more)
            return str(found.answer)
