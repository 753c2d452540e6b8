"""Papelo: multi-hop evidence pursuit on the web.

Malon 2024, "Multi-hop Evidence Pursuit Meets the Web: Team Papelo at FEVER 2024". How it works:

1. **Claims** (``claims.ClaimExtractor``): the answer is taken apart, or is one claim; speaker and
   date come from the item's ``meta``.
2. **First question**: the claim in other words, as a question.
3. **Pursuit** (``pursuit``, algorithm 1): answer, then ask for what is still missing, until the
   claim is settled or there are five pairs; fill up with the same questions in other words.
4. **Answers** (``align``, algorithm 2): search with claim and question, again with the names
   alone if nothing is found; the one document that answers best is read around the snippet that
   the search engine showed, and the answer is given from that window.
5. **Verdict** over all pairs, supported or refuted unless four classes are asked for. It may
   overturn the verdict that ended the questions.
6. **Spans** (``claims.placed``): the words of the answer that state what is refuted.

Published, with GPT-4o, T5 and Google on AVeriTeC's development set: accuracy .754, AVeriTeC score
.486; all questions at once .340 against .495 on its first 200 claims.

With ``memory=on`` a question is first put to what is kept under the names in the claim, and
searched for only if that does not answer it; the paper has no memory.

Deviations. The prompts are our own, and verdicts, documents and questions come as fields, not as
marks in a text. The first question is a model's rephrasing where the paper trained T5,
unless such a checkpoint is at hand (``first_model``). Of a page that its site forbids to programs,
or that is too large, the paper reads the snippet; here the next best document is picked first, and
also where a page states a day after the claim's, of which nothing is read. Where no question has
found anything, no model judges: the claim is "not enough evidence", or failed where only two
verdicts are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator

from spanlab.base.errors import NoEvidenceError
from spanlab.detection.base import DetectorKit
from spanlab.detection.common.claim_detector import ClaimDetector, ClaimJudgement
from spanlab.detection.common.evidence import ClaimMemory, quote, stance_of
from spanlab.detection.common.model_detector import DetectionCase
from spanlab.networks.rewriter import TextRewriter
from spanlab.schema import Evidence, Item, PairStep, PassageQuote, Step, Verdict
from spanlab.systems.papelo import PapeloOptions
from spanlab.systems.papelo.claim_pursuit import OPEN, ClaimPursuit
from spanlab.systems.papelo.prompts import PapeloProgram
from spanlab.systems.papelo.pursuit import PursuitResult, SourcedAnswer
from spanlab.text.extents import Extent


class Papelo(ClaimDetector):
    """Pursues claims question by question."""

    program: PapeloProgram

    def __init__(self, kit: DetectorKit) -> None:
        self.options = PapeloOptions.model_validate(kit.spec.options)
        program = PapeloProgram(self.options)
        chosen = self.options.first_model
        self._rewriter = TextRewriter.load(chosen) if chosen else None
        self._memory = self.options.opened(kit)
        super().__init__(kit, program, guided="judge", whole=self.options.claims == "answer")

    async def prepare(self, case: DetectionCase) -> None:
        """Search for nothing yet: every question is searched for by itself."""

    async def verify(self, case: DetectionCase, number: int, claim: str) -> ClaimJudgement:
        """Pursue one claim; see ``claim_pursuit``.

        Raises:
            NoEvidenceError: nothing was found, and only two verdicts were asked for.
            SpanlabError: a model or the search failed.
        """
        claim_memory = ClaimMemory(self._memory, self, case, claim)
        pursuit = ClaimPursuit(self, self.program, self.options, case, claim_memory, self._rewriter)
        result = await pursuit.pursue()
        verdict = _verdict(result.verdict)
        steps = (*claim_memory.steps(number), *_steps(result, number))
        if verdict == OPEN and self.options.classes == 2:
            case.trace.extend(steps)  # of a claim that fails, too, people see what was asked
            raise NoEvidenceError(
                f"{pursuit.reason}; with two verdict classes there is none for that"
            )
        return ClaimJudgement(
            verdict=verdict,
            reason=pursuit.reason,
            evidence=_evidence(case.item, result, verdict),
            steps=steps,
        )


def _verdict(verdict: Verdict | bool) -> Verdict:
    if isinstance(verdict, bool):
        return "supported" if verdict else "refuted"
    return verdict


def _steps(result: PursuitResult[SourcedAnswer, Verdict], claim: int) -> Iterator[Step]:
    """Yield the pairs in order; the one that settled the claim says so."""
    for at, pair in enumerate(result.pairs, start=1):
        answer = pair.answer
        early = result.early if at == result.asked else None
        yield PairStep(
            question=pair.question,
            answer=answer.text,
            searched=answer.searched,
            passages=answer.passages,
            window=answer.window,
            sentence=answer.sentence,
            settled=None if early is None else _verdict(early),
            remark=answer.remark,
            claim=claim,
            round=at,
        )


def _evidence(
    item: Item, result: PursuitResult[SourcedAnswer, Verdict], verdict: Verdict
) -> tuple[Evidence, ...]:
    """Quote what was read, each part once, with what was asked of it.

    That is the window of the one document, which supports or refutes; an answer that no document
    was picked for rests on all that the search showed.
    """
    notes: dict[PassageQuote, list[str]] = {}
    for pair in result.pairs:
        for part in _read(item, pair.answer):
            notes.setdefault(part, []).append(f"{pair.question} {pair.answer.text}")
    windows = {pair.answer.window for pair in result.pairs}
    return tuple(
        quote(
            item,
            part.passage,
            Extent(part.start, part.end),
            stance_of(verdict) if part in windows else "closest",
            "; ".join(dict.fromkeys(note)),
        )
        for part, note in notes.items()
    )


def _read(item: Item, answer: SourcedAnswer) -> Iterator[PassageQuote]:
    if answer.window is not None:
        yield answer.window
        return
    for index in answer.passages:
        yield PassageQuote(passage=index, start=0, end=len(item.passages[index].text))
