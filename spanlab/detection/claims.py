"""Claims of an answer: taken out, taken apart, ruled on, and placed in its words.

extraction ─── an answer becomes self-contained claims, sentence by sentence
sub_claims ─── a claim is taken apart again and again until its parts stay whole
rulings ────── verdicts as models give them, and the reason
placing ────── the words of the answer that state the wrong part of a claim

The stages are those of Claimify (Metropolitansky and Larson 2025, "Towards Effective Extraction
and Evaluation of Factual Claims"): selection, disambiguation, decomposition. The prompts are our
own.

After Metropolitansky et al. 2025, "VeriTrail", §3.1.1.

A missing verdict is not enough evidence, so with two classes it is none, and the model is asked
again; so it is for words that are no verdict.

A model names them and the fact-to-span mapper finds them, as in the knowledge-graph detector of
Huang et al. 2025, "UCSC at SemEval-2025 Task 3".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Annotated, Final, NamedTuple

import dspy
from pydantic import BeforeValidator

from spanlab.base.runtime import wait
from spanlab.models.meter import keep, together
from spanlab.models.values import ReplyModel, Text, verdict
from spanlab.schema import Verdict
from spanlab.text.extents import Extent
from spanlab.text.facts import map_fact
from spanlab.text.quotes import FLOOR, ModelQuote, QuoteMapping
from spanlab.text.tokens import sentences

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


class DecomposeSentence(dspy.Signature):
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


class ExtractedClaim(NamedTuple):
    """A claim, and the characters of the answer that it came from."""

    text: str
    source: Extent


class ClaimExtractor(dspy.Module):
    """The three stages, for all sentences of an answer."""

    def __init__(self) -> None:
        super().__init__()
        self.select = dspy.Predict(SelectVerifiable)
        self.resolve = dspy.Predict(ResolveReferences)
        self.decompose = dspy.Predict(DecomposeSentence)

    def forward(self, question: str, answer: str, lang: str) -> dspy.Prediction:
        """Return what ``aforward`` returns; blocks until the model has answered."""
        return wait(self.acall(question=question, answer=answer, lang=lang))

    async def aforward(self, question: str, answer: str, lang: str) -> dspy.Prediction:
        """Return ``claims`` (`ExtractedClaim`, in order) and ``remarks`` (on sentences left out).

        Args:
            question: what the answer answers; may be empty.
            answer: the text as it is; offsets are code points of it.
            lang: BCP 47 tag of the answer.
        """
        places = sentences(answer, lang)
        work = (self._sentence(question, answer, places, index) for index in range(len(places)))
        sentences_done = await together(*work, at_once=SENTENCES_AT_ONCE)
        return dspy.Prediction(
            claims=[claim for claims, _ in sentences_done for claim in claims],
            remarks=[remark for _, remark in sentences_done if remark],
        )

    async def _sentence(
        self, question: str, answer: str, places: Sequence[Extent], index: int
    ) -> tuple[list[ExtractedClaim], str]:
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
        claims = [ExtractedClaim(text, place) for text in texts or [resolved.resolved.strip()]]
        for claim in claims:
            keep(claim)
        return claims, ""


def _is_nothing(text: str | None) -> bool:
    return (text or "").strip(" .\"'`").casefold() in _NOTHING


MOST_ATTEMPTS: Final = 20  # §3.1.1, footnote 2


async def sub_claims(
    claim: str,
    *,
    decompose: Callable[[str], Awaitable[Sequence[str]]],
    attempts: int = MOST_ATTEMPTS,
) -> tuple[str, ...]:
    """Take a claim apart.

    Args:
        claim: the claim.
        decompose: returns the parts of a claim, itself alone if it has none; several calls run at
            the same time.
        attempts: how often it is called at most.

    Returns:
        The parts that stayed whole, in the order in which they were found to, then those for which
        no attempt was left; empty where the claim itself stays whole.
    """
    known = {claim}
    whole: list[str] = []
    queue = [claim]
    while queue and attempts:
        now, queue = queue[:attempts], queue[attempts:]
        attempts -= len(now)
        for text, parts in zip(
            now, await together(*(_awaited(decompose(text)) for text in now)), strict=True
        ):
            new = [part for part in dict.fromkeys(parts) if part not in known]
            known.update(new)
            splits = len(set(parts)) > 1
            queue += new if splits else []
            whole += [text] if not splits or text in parts else []
    return tuple(part for part in (*whole, *queue) if part != claim)


async def _awaited(work: Awaitable[Sequence[str]]) -> Sequence[str]:
    return await work


def four_classes(value: object) -> Verdict:
    """Read a verdict of four classes.

    Raises:
        ValueError: it is none of them.
    """
    text = str(value if value is not None else "").casefold()
    return "conflicting" if "conflict" in text or "cherry" in text else verdict(value)


def two_classes(value: object) -> Verdict:
    """Read a verdict of two classes.

    Raises:
        ValueError: it is neither supported nor refuted.
    """
    verdict_of_four = four_classes(value)
    if verdict_of_four not in {"supported", "refuted"}:
        raise ValueError(f"{str(value)[:50]!r} is neither supported nor refuted")
    return verdict_of_four


class TwoClasses(ReplyModel):
    """Why, and the verdict: "supported" or "refuted"."""

    reason: Text
    verdict: Annotated[Verdict, BeforeValidator(two_classes)]


class FourClasses(ReplyModel):
    """Why, and the verdict."""

    reason: Text
    verdict: Annotated[Verdict, BeforeValidator(four_classes)]


class WrongWords(ReplyModel):
    """Words copied from the answer."""

    text: Text


class NameWrongWords(dspy.Signature):
    """Name the words of an answer that make a claim of it wrong.

    Copy them from the answer letter by letter, as few as carry the error: the wrong name, number,
    date or word, not the sentence around it. If everything that the claim says is made up, copy
    all the words that state it.
    """

    question: str = dspy.InputField(desc="what was asked")
    answer: str = dspy.InputField(desc="the answer; only its words may be copied")
    sentence: str = dspy.InputField(desc="the sentence of the answer that states the claim")
    claim: str = dspy.InputField(desc="the wrong claim")
    reason: str = dspy.InputField(desc="why it is wrong")
    words: list[WrongWords] = dspy.OutputField(desc="the wrong words in the order of the answer")


def wrong_words(prediction: dspy.Prediction) -> tuple[str, ...]:
    """Return the words that a predictor of `NameWrongWords` named; blank ones are left out."""
    words: list[WrongWords] = prediction.words or []
    return tuple(word.text for word in words if word.text.strip())


def placed(
    answer: str,
    sentence: str | None,
    words: Iterable[str],
    *,
    prob: float | None,
    lang: str,
    floor: float = FLOOR,
) -> QuoteMapping:
    """Find the words that a model named.

    Args:
        answer: the text as it is.
        sentence: the sentence of it that states the claim, None if that is not known.
        words: what was named.
        prob: probability of the spans, in [0, 1].
        lang: BCP 47 tag of the answer.
        floor: how alike the words and their place must be, in [0, 1].

    Returns:
        The places, and the words that were not found.
    """
    quotes = [ModelQuote(text, prob) for text in words]
    return map_fact(answer, sentence, quotes, lang=lang, floor=floor)
