"""``ucsc-revise``: correct the answer with the fewest changes, mark what was changed."""

from __future__ import annotations

import dspy


class ReviseLittle(dspy.Signature):
    """Correct an answer with the fewest possible changes.

    Afterwards it says nothing that the passages contradict or do not support. Replace only the
    words that are wrong, by what the passages say. Where they do not say what would be right,
    go by what you know for certain, or delete the wrong words. Leave everything else as it is,
    letter by letter: wording, order, language, punctuation and line breaks. Do not correct
    spelling or grammar, do not polish, add nothing and drop nothing that is right. If nothing
    is wrong, return the answer unchanged.
    """

    passages: str = dspy.InputField(desc="what was found on the question, numbered")
    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer to correct")
    revised: str = dspy.OutputField(desc="the whole answer, corrected, and nothing else")


class Revision(dspy.Module):
    """The model's part: one call that corrects the answer.

    Args:
        reasoning: let the model think in words first; reasoning models do so anyway.
    """

    def __init__(self, *, reasoning: bool = False) -> None:
        super().__init__()
        self.revise = (dspy.ChainOfThought if reasoning else dspy.Predict)(ReviseLittle)

    def forward(self, passages: str, question: str, answer: str) -> dspy.Prediction:
        """Return ``revised``; blocks until the model has answered."""
        return self.revise(passages=passages, question=question, answer=answer)

    async def aforward(self, passages: str, question: str, answer: str) -> dspy.Prediction:
        """Return ``revised``, the corrected answer."""
        return await self.revise.acall(passages=passages, question=question, answer=answer)
