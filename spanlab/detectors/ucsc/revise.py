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
unless the options give one. What was only added marks nothing unless asked for. A reply that keeps
next to nothing of the answer and does not take its words from the passages is no revision: it is
asked for once more, and then failed. What is unsupported is an option, as in ``extract``.
"""

from __future__ import annotations

from typing import Annotated

import dspy

from spanlab.detectors.common.model_detector import span_of
from spanlab.detectors.ucsc.entries import RevisionOptions
from spanlab.detectors.ucsc.revisions import is_revision, revision_in
from spanlab.detectors.ucsc.system import UcscDetector, show_examples
from spanlab.errors import UnparsableAnswerError
from spanlab.lm.failures import quoted
from spanlab.lm.parsing import PROSE
from spanlab.mappers import map_revision
from spanlab.runtime import wait
from spanlab.schema import Annotation, Item, RevisionStep


class UcscRevise(UcscDetector):
    """Marks what a model changes when it corrects the answer."""

    def mark(self, item: Item, prediction: dspy.Prediction) -> Annotation:
        """Mark the words that the revision deleted or replaced."""
        options = RevisionOptions.model_validate(self.kit.spec.options)
        revised = str(prediction.revised or "")
        if not revised.strip():
            raise UnparsableAnswerError("the model returned an empty revision; retry the item")
        sources = "\n".join([item.question, *(passage.text for passage in item.passages)])
        if not is_revision(item.answer, revised, sources):
            raise UnparsableAnswerError(
                "the model did not correct the answer, but said something else"
                f"{quoted(revised)}; retry the item or use another model"
            )
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

    Afterwards it says nothing that is unsupported, as `rule` defines it. Replace only the words
    that are wrong, by what the passages say. Where they do not say what would be right, go by
    what you know for certain, or delete the wrong words. Leave everything else as it is, letter
    by letter: wording, order, language, punctuation and line breaks. Do not correct spelling or
    grammar, do not polish, add nothing and drop nothing that is right, even if it is beside the
    question. Passages on something else say nothing. If nothing is wrong, return the answer
    unchanged.
    """

    passages: str = dspy.InputField(desc="what was found on the question, numbered")
    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer to correct")
    rule: str = dspy.InputField(desc="what counts as unsupported")
    revised: Annotated[str, PROSE] = dspy.OutputField(
        desc="the whole answer, corrected, and nothing else"
    )


INSISTING = """

An earlier reply to this was no corrected answer. Refuse nothing and explain nothing: return the
answer itself, with the wrong words replaced or deleted."""


class Revision(dspy.Module):
    """The model's part: one call that corrects the answer; another if it does something else.

    Args:
        reasoning: let the model think in words first; reasoning models do so anyway.
    """

    def __init__(self, *, reasoning: bool = False) -> None:
        super().__init__()
        self.revise = (dspy.ChainOfThought if reasoning else dspy.Predict)(ReviseLittle)
        show_examples(self)

    def forward(self, **inputs: str) -> dspy.Prediction:
        """Return ``revised``; blocks until the model has answered."""
        return wait(self.acall(**inputs))

    async def aforward(self, **inputs: str) -> dspy.Prediction:
        """Return ``revised``, the corrected answer, for passages, question, answer and rule."""
        answer, sources = inputs["answer"], f"{inputs['question']}\n{inputs['passages']}"
        said = await self.revise.acall(**inputs)
        revised = revision_in(answer, said.revised, sources)
        if revised is None:
            task = self.named_predictors()[0][1].signature
            insisting = task.with_instructions(task.instructions + INSISTING)
            said = await self.revise.acall(**inputs, signature=insisting)
            revised = revision_in(answer, said.revised, sources)
        return dspy.Prediction(revised=said.revised if revised is None else revised)
