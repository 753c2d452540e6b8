"""``ucsc-extract``: quote what the context does not support, find the quotes in the answer."""

from __future__ import annotations

import dspy

from spanlab.detectors.ucsc.replies import Part


class FindUnsupported(dspy.Signature):
    """Find the words of an answer that state what the passages contradict or do not support.

    These words are the answer's hallucinations. Copy each of them from the answer letter by
    letter, in the answer's own language, in the order in which they stand there. Copy as few
    words as carry the error: the wrong name, number, date or word, not the sentence around it;
    a whole sentence only if all of it is made up. Words that are wrong in several places are
    listed once for each place. What rephrases the passages or follows from them is right, and
    so is anything that is only a matter of style, spelling or grammar. Where the passages say
    nothing on a point, go by what you know for certain. If nothing is wrong, the list is empty.
    """

    passages: str = dspy.InputField(desc="what was found on the question, numbered")
    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer to check; only its words may be copied")
    parts: list[Part] = dspy.OutputField(
        desc="the hallucinated words in order; the probability is the share of careful readers "
        "who would mark them"
    )


class Extraction(dspy.Module):
    """The model's part: one call that names the hallucinated words.

    Args:
        reasoning: let the model think in words first.
    """

    def __init__(self, *, reasoning: bool = False) -> None:
        super().__init__()
        self.extract = (dspy.ChainOfThought if reasoning else dspy.Predict)(FindUnsupported)

    def forward(self, passages: str, question: str, answer: str) -> dspy.Prediction:
        """Return ``parts``; blocks until the model has answered."""
        return self.extract(passages=passages, question=question, answer=answer)

    async def aforward(self, passages: str, question: str, answer: str) -> dspy.Prediction:
        """Return ``parts``, a list of `Part`."""
        return await self.extract.acall(passages=passages, question=question, answer=answer)
