"""Papelo: multi-hop evidence pursuit on the web.

Malon 2024, "Multi-hop Evidence Pursuit Meets the Web: Team Papelo at FEVER 2024". How it works:

1. **Claims** (``claims.extraction``): the answer is taken apart, or is one claim; speaker and date
   come from the item's ``meta``.
2. **First question**: the claim in other words, as a question.
3. **Pursuit** (``pursuit``, algorithm 1): answer, then ask for what is still missing, until the
   claim is settled or there are five pairs; fill up with the same questions in other words.
4. **Answers** (``answering``, algorithm 2): search with claim and question, again with the names
   alone if nothing is found; the one document that answers best is read around the snippet that
   the search engine showed, and the answer is given from that window.
5. **Verdict** over all pairs, supported or refuted unless four classes are asked for. It may
   overturn the verdict that ended the questions.
6. **Spans** (``claims.placing``): the words of the answer that state what is refuted.

Published, with GPT-4o, T5 and Google on AVeriTeC's development set: accuracy .754, AVeriTeC score
.486; all questions at once .340 against .495 on its first 200 claims.

Deviations. The prompts are our own, and verdicts, documents and questions come as fields, not as
marks in a text. The first question is a model's rephrasing where the paper trained T5.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final
from urllib.parse import quote

import dspy

from spanlab.detectors.common.claiming import ClaimDetector, ClaimProgram, Verified
from spanlab.detectors.common.modelled import Case
from spanlab.detectors.kit import Kit
from spanlab.detectors.papelo.answering import HITS, Answered, names_in, numbered, shown, window
from spanlab.detectors.papelo.entry import PapeloOptions
from spanlab.detectors.papelo.prompts import (
    AnswerFrom,
    AskFirst,
    AskNext,
    JudgeClaim,
    JudgeClaimOfFour,
    ParaphraseQuestion,
    PickDocument,
    RephraseAsQuestion,
    asked,
)
from spanlab.detectors.papelo.pursuit import Pair, Pursuit, pursue
from spanlab.errors import PageError
from spanlab.passages import joined
from spanlab.retrievers import Query
from spanlab.retrievers.dates import latest_day
from spanlab.schema import Evidence, Item, Passage, Retrieval, Stance, Verdict
from spanlab.trace import PairStep, RemarkStep, Step

PAGES: Final = "pages"  # the retriever that pages which were read are noted under
NOTHING: Final = "Nothing was found."
_DAY_FIRST = re.compile(r"(\d{1,2})[-/.](\d{1,2})[-/.](\d{4})")
_STANCES: Final[dict[Verdict, Stance]] = {"supported": "supports", "refuted": "refutes"}


class PapeloProgram(ClaimProgram):
    """The model's parts: extraction, questions, documents, answers, verdict, wrong words."""

    def __init__(self, options: PapeloOptions) -> None:
        super().__init__()
        self.first = dspy.Predict(RephraseAsQuestion if options.first == "rephrase" else AskFirst)
        self.follow = dspy.Predict(AskNext)
        self.paraphrase = dspy.Predict(ParaphraseQuestion)
        self.pick = dspy.Predict(PickDocument)
        self.answer = dspy.Predict(AnswerFrom)
        self.judge = dspy.Predict(JudgeClaim if options.classes == 2 else JudgeClaimOfFour)


class Papelo(ClaimDetector):
    """Pursues claims question by question."""

    program: PapeloProgram

    def __init__(self, kit: Kit) -> None:
        self.options = PapeloOptions.model_validate(kit.spec.options)
        program = PapeloProgram(self.options)
        super().__init__(kit, program, guided="judge", whole=self.options.claims == "answer")

    async def prepare(self, case: Case) -> None:
        """Search for nothing yet: every question is searched for by itself."""

    async def verify(self, case: Case, number: int, claim: str) -> Verified:
        """Pursue one claim."""
        hunt = _Hunt(self, case, claim)
        found = await hunt.pursue()
        verdict, reason = _verdict(found), hunt.reason
        steps: list[Step] = [
            _step(pair, number, at) for at, pair in enumerate(found.pairs, start=1)
        ]
        if found.early is not None:
            early = "supported" if found.early else "refuted"
            changed = "" if early == verdict else f", overturned: {verdict}"
            steps.append(RemarkStep(text=f"settled early as {early}{changed}", claim=number))
        return Verified(
            verdict=verdict,
            reason=reason,
            evidence=_evidence(case.item, found, verdict),
            steps=tuple(steps),
        )


class _Hunt:
    """Asks the models and the web about one claim."""

    def __init__(self, detector: Papelo, case: Case, claim: str) -> None:
        self._detector, self._case, self._claim = detector, case, claim
        self._about = about(case.item, claim)
        self._before = published_before(case.item)
        self.reason = ""

    async def pursue(self) -> Pursuit[Answered, Verdict]:
        options = self._detector.options
        ways = {"paraphrase": self._paraphrases, "repeat": self._repeated, "none": None}
        return await pursue(
            self._claim,
            first=self._first,
            follow=self._follow,
            answer=self._answer,
            paraphrase=ways[options.fill],
            verdict=self._judge,
            n=options.n,
            late=options.late,
        )

    async def _first(self, _claim: str) -> str:
        said = await self._detector.ask(self._detector.program.first, claim=self._about)
        return asked(said.question or "", self._case.item.lang) or self._claim

    async def _follow(self, _claim: str, pairs: Sequence[Pair[Answered]]) -> str | bool:
        program = self._detector.program
        said = await self._detector.ask(program.follow, claim=self._about, pairs=_listed(pairs))
        if said.next.settled is not None:
            return bool(said.next.settled)
        return asked(said.next.question, self._case.item.lang) or pairs[-1].question

    async def _paraphrases(self, question: str) -> list[str]:
        said = await self._detector.ask(self._detector.program.paraphrase, question=question)
        return [way.strip() for way in said.ways or () if way.strip()]

    async def _repeated(self, question: str) -> list[str]:
        return [question]

    async def _judge(self, _claim: str, pairs: Sequence[Pair[Answered]]) -> Verdict:
        program = self._detector.program
        said = await self._detector.ask(program.judge, claim=self._about, pairs=_listed(pairs))
        self.reason = said.ruling.reason
        verdict: Verdict = said.ruling.verdict
        return verdict

    async def _answer(self, claim: str, question: str) -> Answered:
        searched = f"{claim} {question}"
        hits = await self._search(searched)
        if not hits and (names := names_in(searched)):
            searched = names
            hits = await self._search(names)
        if not hits:
            return Answered(NOTHING, searched, remark="the search found nothing")
        options, item = self._detector.options, self._case.item
        passages = [item.passages[index] for index in hits]
        listed = numbered(passages, metadata=options.metadata)
        if options.documents == "many":
            return Answered(await self._answered(question, listed), searched, hits)
        program = self._detector.program
        said = await self._detector.ask(program.pick, question=question, documents=listed)
        number = said.picked.document
        if number is None or not 0 < number <= len(hits):
            return Answered(said.picked.answer or NOTHING, searched, hits)
        return await self._read(question, searched, hits[number - 1])

    async def _search(self, text: str) -> tuple[int, ...]:
        query = Query(text, language=self._case.item.lang, k=HITS, before=self._before)
        found = await self._case.retrieve(self._detector.kit.retriever, query)
        kept = [each for each in found if self._case.item.passages[each].text.strip()]
        return tuple(kept[:HITS])

    async def _read(self, question: str, searched: str, hit: int) -> Answered:
        """Answer from the window of a page, or from the snippet where there is none."""
        passage, remark = self._case.item.passages[hit], None
        document = hit
        if self._detector.options.long_document and passage.url:
            try:
                document = await self._window(passage)
            except PageError as error:
                remark = f"read by its snippet: {error}"
        read = self._case.item.passages[document]
        found = shown(read, metadata=self._detector.options.metadata)
        text = await self._answered(question, found)
        return Answered(text, searched, (document,), document, remark)

    async def _window(self, passage: Passage) -> int:
        """Note a page with the item: the window around the snippet, and the whole text after it."""
        pages = self._detector.kit.pages
        if pages is None or passage.url is None:
            raise PageError("there is nothing to read pages with")
        page = await pages.read(passage.url)
        part = window(page.text, passage.text, self._case.item.lang)
        if part is None:
            raise PageError("the page does not hold what the search showed of it")
        fields = {"title": passage.title or page.title, "url": passage.url, "date": passage.date}
        texts = [Passage(text=text, **fields) for text in dict.fromkeys((part, page.text))]
        retrieval = Retrieval(
            retriever=PAGES, query=f"{passage.url}#:~:text={quote(passage.text[:80])}"
        )
        known = {each.key: each for each in self._case.item.retrievals}.get(retrieval.key)
        if known is None:
            self._case.item = joined(self._case.item, retrieval, texts)
            known = self._case.item.retrievals[-1]
        return known.passages[0]

    async def _answered(self, question: str, found: str) -> str:
        program = self._detector.program
        said = await self._detector.ask(program.answer, question=question, found=found)
        return (said.answer or "").strip() or NOTHING


def about(item: Item, claim: str) -> str:
    """Return a claim with who said it and when, as far as the item's ``meta`` says."""
    speaker, day = item.meta.get("speaker"), item.meta.get("claim_date") or item.meta.get("date")
    said = [f"by {speaker}" if speaker else "", f"on {day}" if day else ""]
    known = " ".join(filter(None, said))
    return f"{claim} (said {known})" if known else claim


def published_before(item: Item) -> date | None:
    """Return the day after a claim's, before which evidence must be published; None if unknown."""
    written = str(item.meta.get("claim_date") or item.meta.get("date") or "")
    found = _DAY_FIRST.fullmatch(written.strip())
    try:
        day = date(int(found[3]), int(found[2]), int(found[1])) if found else latest_day(written)
    except ValueError:
        return None
    return None if day is None else day + timedelta(days=1)


def _listed(pairs: Sequence[Pair[Answered]]) -> str:
    return "\n".join(
        f"{number}. {pair.question}\n{pair.answer.text}"
        for number, pair in enumerate(pairs, start=1)
    )


def _verdict(found: Pursuit[Answered, Verdict]) -> Verdict:
    if isinstance(found.verdict, bool):
        return "supported" if found.verdict else "refuted"
    return found.verdict


def _step(pair: Pair[Answered], claim: int, at: int) -> Step:
    said = pair.answer
    return PairStep(
        question=pair.question,
        answer=said.text,
        searched=said.searched,
        passages=said.passages,
        remark=said.remark,
        claim=claim,
        round=at,
    )


def _evidence(
    item: Item, found: Pursuit[Answered, Verdict], verdict: Verdict
) -> tuple[Evidence, ...]:
    """Quote every document that was read, once, with what was asked of it."""
    stance = _STANCES.get(verdict, "closest")
    notes: dict[int, list[str]] = {}
    for pair in found.pairs:
        if pair.answer.document is not None:
            notes.setdefault(pair.answer.document, []).append(f"{pair.question} {pair.answer.text}")
    return tuple(
        Evidence(
            passage=index,
            start=0,
            end=len(item.passages[index].text),
            text=item.passages[index].text,
            stance=stance,
            note="; ".join(said),
        )
        for index, said in notes.items()
    )
