"""ucsc-revise: the answer revised, and what changed.

After Huang et al. 2025, "UCSC at SemEval-2025 Task 3: Context, Models and Prompt Optimization for
Automated Hallucination Detection in LLM Output", minimal-cost revision.

1. Context is retrieved for the question (``system``).
2. A reasoning model corrects the answer with the fewest changes: one call (``AnswerReviser``).
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

import re
from collections.abc import Iterator
from typing import Annotated, Final

import dspy
from rapidfuzz.distance import LCSseq

from spanlab.base.errors import UnparsableAnswerError
from spanlab.base.runtime import wait
from spanlab.detection.base import DetectorKit
from spanlab.detection.common.model_detector import span_of
from spanlab.models.adapters import PromptText
from spanlab.models.failures import quoted
from spanlab.models.parsing import PROSE, tagged_as
from spanlab.schema import Annotation, Item
from spanlab.systems.ucsc import RevisionOptions
from spanlab.systems.ucsc.system import UcscDetector
from spanlab.systems.ucsc.trace import RevisionStep
from spanlab.text.corrections import map_revision
from spanlab.text.terms import UNSPACED


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

    `rule` says what is wrong. Replace the wrong words by what the passages say; where nothing is
    known that would be right, delete them. Keep everything else letter by letter: do not correct
    spelling or grammar, do not polish. If everything is right, return the answer unchanged.
    """

    passages: str = dspy.InputField(desc="what was found on the question, numbered")
    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer to correct")
    rule: str = dspy.InputField(desc="what counts as wrong")
    revised: Annotated[str, PROSE] = dspy.OutputField(
        desc="the whole answer, corrected, and nothing else"
    )


INSISTING: Final = PromptText("""

An earlier reply to this was no corrected answer. Refuse nothing and explain nothing: return the
answer itself, with the wrong words replaced or deleted.""")


class AnswerReviser(dspy.Module):
    """The model's part: one call that corrects the answer; another if it does something else.

    Args:
        reasoning: let the model think in words first; reasoning models do so anyway.
    """

    def __init__(self, *, reasoning: bool = False) -> None:
        super().__init__()
        self.revise = (dspy.ChainOfThought if reasoning else dspy.Predict)(ReviseLittle)

    def forward(self, **inputs: str) -> dspy.Prediction:
        """Return ``revised``; blocks until the model has answered."""
        return wait(self.acall(**inputs))

    async def aforward(self, **inputs: str) -> dspy.Prediction:
        """Return ``revised``, the corrected answer, for passages, question, answer and rule."""
        answer, sources = inputs["answer"], f"{inputs['question']}\n{inputs['passages']}"
        prediction = await self.revise.acall(**inputs)
        revised = revision_in(answer, prediction.revised, sources)
        if revised is None:
            task = self.named_predictors()[0][1].signature
            insisting = task.with_instructions(task.instructions + INSISTING)
            prediction = await self.revise.acall(**inputs, signature=insisting, demos=[])
            revised = revision_in(answer, prediction.revised, sources)
        return dspy.Prediction(revised=prediction.revised if revised is None else revised)


LEAST_KEPT: Final = 0.15  # share of the answer, by letters of its words; refusals keep up to .1
LEAST_TAKEN: Final = 0.6  # share of a revision whose words stand in what it was made from
SHORT: Final = 20  # letters of an answer that a few other words may replace as a whole
_WORD: Final = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
_CLOSING: Final = re.compile(r"</([\w-]{1,40})>")
_FENCED: Final = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_QUOTES: Final = "\"“”„«»'*"
_MOST_TAGS: Final = 3  # names of tags that are looked into
_MOST_DROPPED: Final = 4  # paragraphs of talk before or after a revision


def revision_in(answer: str, reply: str, sources: str) -> str | None:
    """Return what of a reply is the corrected answer: the part most like it.

    Tags, fences and quotation marks around it, a line such as "Here is the corrected answer:"
    before it and remarks after it are left out.

    Args:
        answer: the answer to correct.
        reply: what the model returned.
        sources: passages and question; see ``is_revision``.

    Returns:
        The part; None if the reply is no revision at all.
    """
    old = _words(answer)
    parts = dict.fromkeys(text.strip() for text in (reply, *_parts(reply)))
    alike = {text: LCSseq.normalized_similarity(old, _words(text)) for text in parts}
    best = max(alike.values())
    ties = [text for text, score in alike.items() if score == best]
    part = min(ties, key=lambda tie: abs(len(tie) - len(answer)))
    return part if is_revision(answer, part, sources) else None


def is_revision(answer: str, revised: str, sources: str) -> bool:
    """Say whether a text is the answer corrected, and no refusal or talk about it.

    Args:
        answer: the answer to correct.
        revised: what is said to be its correction.
        sources: passages and question; a wholly wrong answer is corrected with their words.

    Returns:
        Whether enough of the answer is kept, or the new words are those of the sources; a short
        answer may also be replaced by one that is hardly longer.
    """
    old, new = _words(answer), _words(revised)
    if not new:
        return False
    if kept(answer, revised) >= LEAST_KEPT:
        return True
    letters = sum(map(len, old))
    if letters <= SHORT and sum(map(len, new)) <= 1.5 * letters:
        return True
    known_words = {*_words(sources), *old}
    return _share(new, [word in known_words for word in new]) >= LEAST_TAKEN


def kept(answer: str, revised: str) -> float:
    """Return the share of an answer, by letters of its words, that a revision keeps in order.

    Returns:
        A number in [0, 1]; 1.0 for an answer without words.
    """
    old = _words(answer)
    stays = [False] * len(old)
    for part in LCSseq.opcodes(old, _words(revised)):
        if part.tag == "equal":
            stays[part.src_start : part.src_end] = [True] * (part.src_end - part.src_start)
    return _share(old, stays)


def _share(words: list[str], counted: list[bool]) -> float:
    total = sum(map(len, words))
    return sum(len(w) for w, c in zip(words, counted, strict=True) if c) / total if total else 1.0


def _parts(reply: str) -> Iterator[str]:
    """Yield the parts of a reply that may be the revision."""
    names = list(dict.fromkeys(_CLOSING.findall(reply)))[:_MOST_TAGS]
    yield from filter(None, (tagged_as(name, reply) for name in names))
    fenced = _FENCED.search(reply)
    yield from [fenced[1]] if fenced else []
    paragraphs = re.split(r"\n\s*\n", reply.strip())
    for first in range(min(len(paragraphs), _MOST_DROPPED)):
        for last in range(len(paragraphs), max(len(paragraphs) - _MOST_DROPPED, first), -1):
            part = "\n\n".join(paragraphs[first:last])
            lead, colon, rest = part.partition(":")
            for text in (part, rest) if colon and "\n" not in lead else (part,):
                yield text
                yield text.strip().strip(_QUOTES)


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())


def create(kit: DetectorKit) -> UcscRevise:
    """Build ``ucsc-revise``."""
    return UcscRevise(kit, AnswerReviser(reasoning=kit.spec.reasoning), guided="revise")
