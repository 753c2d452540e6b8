"""``ucsc-revise``: correct the answer with the fewest changes, mark what was changed.

After Huang et al. 2025, "UCSC at SemEval-2025 Task 3: Context, Models and Prompt Optimization for
Automated Hallucination Detection in LLM Output", minimal-cost revision.

1. Context is retrieved for the question (``system``).
2. A reasoning model corrects the answer with the fewest changes: one call (``Revision``).
3. Words that were deleted or replaced, by minimum edit distance, are the hallucination
   (``UcscRevise.mark``).

Published scores on the English test set, the paper's and not of this code: IoU .53, Corr .49.

Deviations. The prompt is our own. Words are the language's (characters in Chinese and the like)
instead of what stands between spaces. The probability of a span follows the size of the change
unless the options give one. What was only added marks nothing unless asked for.
"""

from __future__ import annotations

import dspy

from spanlab.detectors.common.marking import span_of
from spanlab.detectors.ucsc.entries import RevisionOptions
from spanlab.detectors.ucsc.system import UcscDetector
from spanlab.errors import UnparsableAnswerError
from spanlab.mappers import map_revision
from spanlab.schema import Annotation, Item
from spanlab.trace import RevisionStep


class UcscRevise(UcscDetector):
    """Marks what a model changes when it corrects the answer."""

    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Mark the words that the revision deleted or replaced."""
        options = RevisionOptions.model_validate(self.kit.spec.options)
        revised = str(prediction.revised or "")
        if not revised.strip():
            raise UnparsableAnswerError("the model returned an empty revision; retry the item")
        changed = map_revision(
            item.answer,
            revised,
            lang=item.lang,
            refine=options.refine,
            insertions=options.insertions,
            prob=options.prob,
        )
        return self.annotation(
            spans=[span_of(item.answer, span) for span in changed],
            trace=[RevisionStep(text=revised)],
        )


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
