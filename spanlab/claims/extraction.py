"""An answer becomes self-contained claims, sentence by sentence.

The stages are those of Claimify (Metropolitansky and Larson 2025, "Towards Effective Extraction
and Evaluation of Factual Claims"): selection, disambiguation, decomposition. The prompts are our
own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import dspy

from spanlab.extents import Extent
from spanlab.lm.gathering import keep, together
from spanlab.mappers import sentences
from spanlab.runtime import wait

NEIGHBOURS: Final = 5  # sentences before and after that a prompt shows
SENTENCES_AT_ONCE: Final = 4
_NOTHING: Final = frozenset(("", "none", "n/a", "nothing", "(none)"))


class SelectVerifiable(dspy.Signature):
    """Keep of a sentence what can be verified.

    A statement can be verified if evidence could show it true or false. Opinions, advice, wishes,
    questions, introductions, conclusions and remarks on what is not known cannot. If the sentence
    states something specific besides, rewrite it with its verifiable part alone and change nothing
    else. Judge the sentence only; the text around it is there to understand it. Whether the
    sentence is true does not matter here.
    """

    question: str = dspy.InputField(desc="what the text answers")
    context: str = dspy.InputField(desc="the text around the sentence")
    sentence: str = dspy.InputField(desc="the sentence, in the language to stay in")
    reason: str = dspy.OutputField(desc="what can be verified and what cannot, briefly")
    verifiable: str = dspy.OutputField(desc='the sentence or its verifiable part; "none" if none')


class ResolveReferences(dspy.Signature):
    """Make a sentence clear to somebody who does not know the text around it.

    Replace pronouns, short names, "there", "then" and the like by what the context says that they
    mean, and write incomplete names and terms in full where the context has them. Do this only
    where readers of the context would agree. If the sentence can be read in several ways and the
    context does not settle which, it cannot be resolved.
    """

    question: str = dspy.InputField(desc="what the text answers")
    context: str = dspy.InputField(desc="the text around the sentence")
    sentence: str = dspy.InputField(desc="the sentence, in the language to stay in")
    reason: str = dspy.OutputField(desc="what is unclear and what settles it, briefly")
    resolved: str = dspy.OutputField(desc='the clear sentence; "none" if it cannot be resolved')


class Decompose(dspy.Signature):
    """Take a sentence apart into the simplest claims that can each be verified by itself.

    Each claim states one thing and names its subject in full. Together they say what the sentence
    says, neither more nor less; keep who said something and under which condition. Put words that
    the sentence lacks, but that a claim needs to be understood, into [brackets]. A sentence that
    states one thing only is its own single claim.
    """

    question: str = dspy.InputField(desc="what the text answers")
    context: str = dspy.InputField(desc="the text around the sentence")
    sentence: str = dspy.InputField(desc="the sentence to take apart")
    claims: list[str] = dspy.OutputField(desc="the claims in the order of the sentence")


class Extracted(NamedTuple):
    """A claim, and the characters of the answer that it came from."""

    text: str
    source: Extent


class Extraction(dspy.Module):
    """The three stages, for all sentences of an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.select = dspy.Predict(SelectVerifiable)
        self.resolve = dspy.Predict(ResolveReferences)
        self.decompose = dspy.Predict(Decompose)

    def forward(self, question: str, answer: str, lang: str) -> dspy.Prediction:
        """Return what ``aforward`` returns; blocks until the model has answered."""
        return wait(self.acall(question=question, answer=answer, lang=lang))

    async def aforward(self, question: str, answer: str, lang: str) -> dspy.Prediction:
        """Return ``claims`` (`Extracted`, in order) and ``remarks`` (on sentences left out).

        Args:
            question: what the answer answers; may be empty.
            answer: the text as it is; offsets are code points of it.
            lang: BCP 47 tag of the answer.
        """
        places = sentences(answer, lang)
        work = (self._sentence(question, answer, places, index) for index in range(len(places)))
        found = await together(*work, at_once=SENTENCES_AT_ONCE)
        return dspy.Prediction(
            claims=[claim for claims, _ in found for claim in claims],
            remarks=[remark for _, remark in found if remark],
        )

    async def _sentence(
        self, question: str, answer: str, places: Sequence[Extent], index: int
    ) -> tuple[list[Extracted], str]:
        place = places[index]
        shown = answer[slice(*place)]
        first = places[max(index - NEIGHBOURS, 0)]
        last = places[min(index + NEIGHBOURS, len(places) - 1)]
        around = {"question": question, "context": answer[first.start : last.end]}
        selected = await self.select.acall(**around, sentence=shown)
        if _is_nothing(selected.verifiable):
            return [], f"not verifiable: {shown}"
        resolved = await self.resolve.acall(**around, sentence=selected.verifiable)
        if _is_nothing(resolved.resolved):
            return [], f"ambiguous, no claim taken from it: {shown}"
        taken = await self.decompose.acall(**around, sentence=resolved.resolved)
        texts = [text.strip() for text in taken.claims or () if not _is_nothing(text)]
        claims = [Extracted(text, place) for text in texts or [resolved.resolved.strip()]]
        for claim in claims:
            keep(claim)
        return claims, ""


def _is_nothing(text: str | None) -> bool:
    return (text or "").strip(" .\"'`").casefold() in _NOTHING
