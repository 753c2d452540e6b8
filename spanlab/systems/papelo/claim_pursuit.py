"""The pursuit of one claim with models, a search and pages: what ``pursue`` is given."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Final
from urllib.parse import quote

from spanlab.base.errors import PageError, RefusedPageError
from spanlab.detection.common.evidence import ClaimMemory, about, published_before, searched_for
from spanlab.detection.common.model_detector import DetectionCase, ModelDetector
from spanlab.detection.entities import names_of
from spanlab.networks.rewriter import TextRewriter
from spanlab.schema import Passage, PassageQuote, Retrieval, Verdict, joined
from spanlab.search.base import GivenPassages, SearchQuery
from spanlab.systems.papelo import PapeloOptions
from spanlab.systems.papelo.prompts import PapeloProgram, question_in
from spanlab.systems.papelo.pursuit import (
    HITS,
    SNIPPET,
    PursuitResult,
    QuestionAnswer,
    SourcedAnswer,
    answering,
    ask_at_once,
    names_in,
    numbered,
    part_about,
    pursue,
    quoted,
    shown,
    window,
)

PAGES: Final = "pages"  # the retriever that pages which were read are noted under
MOST: Final = 100_000  # characters of a page that are stored with the item
_PREFIX: Final = "question: "  # appendix A: before what the T5 reads
NOTHING: Final = "Nothing was found."
_REMEMBERED: Final = "answered from memory: nothing was searched for"
OPEN: Final = "not-enough-evidence"
_NO_SEARCH: Final = "there is nothing to search: no search was chosen, and no passages were given"
_NOTHING_FOUND: Final = "nothing was found for any question"
PICKED: Final = 3  # documents of which one question tries to read the page
_SETTLED: Final = {"true": True, "false": False}


class _TooNewError(RefusedPageError):
    """A page was published after the claim, which the search did not say."""


class ClaimPursuit:
    """Asks the models and the web about one claim.

    Args:
        detector: whose models and retriever are asked.
        program: the prompts.
        options: how the claim is pursued.
        case: the item; what is found is noted with it.
        claim_memory: what the memory holds about the claim, whose text it has, too.
        rewriter: writes the first question, in place of the detector's model.
    """

    def __init__(
        self,
        detector: ModelDetector,
        program: PapeloProgram,
        options: PapeloOptions,
        case: DetectionCase,
        claim_memory: ClaimMemory,
        rewriter: TextRewriter | None = None,
    ) -> None:
        self._detector, self._program, self._options = detector, program, options
        self._case, self._claim, self._rewriter = case, claim_memory.claim, rewriter
        self._about = about(case.item, claim_memory.claim)
        self._before = published_before(case.item)
        self._known, self._answers = claim_memory, dict[str, SourcedAnswer]()
        self._refused: dict[int, RefusedPageError] = {}
        self.reason = ""

    async def pursue(self) -> PursuitResult[SourcedAnswer, Verdict]:
        """Ask, answer and judge; ``reason`` says why the verdict was given.

        Returns:
            The pairs and the verdict; that is not enough evidence where no question found any,
            whatever a model makes of that, and whichever verdicts were asked for.
        """
        await self._known.recall(names_of(self._claim), self._before)
        if isinstance(self._detector.kit.retriever, GivenPassages) and not self._case.item.passages:
            self.reason = _NO_SEARCH
            return PursuitResult((), 0, None, OPEN)
        pursued = await self._pursued()
        if not any(pair.answer.passages for pair in pursued.pairs):
            self.reason = _NOTHING_FOUND
            return replace(pursued, verdict=OPEN)
        read = (index for pair in pursued.pairs for index in pair.answer.passages)
        await self._known.keep(searched_for(self._case.item, read))
        return pursued

    async def _pursued(self) -> PursuitResult[SourcedAnswer, Verdict]:
        options = self._options
        ways: dict[str, Callable[[str], Awaitable[Sequence[str]]] | None] = {
            "paraphrase": self._paraphrases,
            "repeat": self._repeated,
            "none": None,
        }
        if options.questions == "at-once":
            return await ask_at_once(
                self._claim,
                questions=self._all,
                answer=self._answer,
                paraphrase=ways[options.fill],
                verdict=self._judge,
                n=options.n,
            )
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

    async def _all(self, _claim: str) -> list[str]:
        prediction = await self._detector.ask(self._program.all, claim=self._about)
        questions = map(str.strip, prediction.questions or ())
        return list(dict.fromkeys(filter(None, questions)))

    async def _first(self, _claim: str) -> str:
        if self._rewriter is not None:
            text = f"{_PREFIX}{self._claim}"
            return await asyncio.to_thread(self._rewriter.rewrite, text) or self._claim
        prediction = await self._detector.ask(self._program.first, claim=self._about)
        return question_in(prediction.question or "", self._case.item.lang) or self._claim

    async def _follow(
        self, _claim: str, pairs: Sequence[QuestionAnswer[SourcedAnswer]]
    ) -> str | bool:
        prediction = await self._detector.ask(
            self._program.follow, claim=self._about, pairs=_listed(pairs)
        )
        if (settled := _SETTLED.get(prediction.next.claim_is)) is not None:
            return settled
        return question_in(prediction.next.question, self._case.item.lang) or pairs[-1].question

    async def _paraphrases(self, question: str) -> list[str]:
        prediction = await self._detector.ask(self._program.paraphrase, question=question)
        return [way.strip() for way in prediction.ways or () if way.strip()]

    async def _repeated(self, question: str) -> list[str]:
        return [question]

    async def _judge(self, _claim: str, pairs: Sequence[QuestionAnswer[SourcedAnswer]]) -> Verdict:
        if not any(pair.answer.passages for pair in pairs):
            return OPEN  # nothing to judge by, of which no model is asked
        prediction = await self._detector.ask(
            self._program.judge, claim=self._about, pairs=_listed(pairs)
        )
        self.reason = prediction.ruling.reason
        verdict: Verdict = prediction.ruling.verdict
        return verdict

    async def _answer(self, claim: str, question: str) -> SourcedAnswer:
        """Answer a question; one that was asked in the same words is not asked again."""
        if question not in self._answers:
            self._answers[question] = await self._answer_anew(claim, question)
        return self._answers[question]

    async def _answer_anew(self, claim: str, question: str) -> SourcedAnswer:
        searched = f"{claim} {question}"
        recalled = tuple(self._known.notes)
        if recalled and self._options.documents == "one":
            answer = await self._from(question, searched, recalled)
            if answer.window is not None:
                return replace(answer, remark=_REMEMBERED)
            recalled = ()
        hits = await self._search(searched)
        if not hits and (names := names_in(searched)):
            searched = names
            hits = await self._search(names)
        if not (recalled or hits):
            return SourcedAnswer(NOTHING, searched, remark="the search found nothing")
        return await self._from(question, searched, (*recalled, *hits))

    async def _from(self, question: str, searched: str, hits: tuple[int, ...]) -> SourcedAnswer:
        """Answer a question from some passages of the item, or from the best one of them.

        Where the page of the best one may not be read, the next best is picked. If none is, the
        refused one is read by its snippet, unless it is too new to be read at all.
        """
        if self._options.documents == "many":
            text = await self._answered(question, self._listed(hits, searched))
            return SourcedAnswer(text, searched, hits)
        rests_on: tuple[int, ...] = ()
        text, picked = NOTHING, list[int]()
        for _ in range(PICKED):
            left = tuple(index for index in hits if index not in self._refused)
            if not left:
                break
            listed = self._listed(left, searched)
            prediction = await self._detector.ask(
                self._program.pick, question=question, documents=listed
            )
            number = prediction.picked.document
            if number is None or not 0 < number <= len(left):
                rests_on, text = left, prediction.picked.answer or NOTHING
                break
            picked.append(left[number - 1])
            try:
                answered = await self._read(question, searched, picked[-1])
            except RefusedPageError as error:
                self._refused[picked[-1]] = error
            else:
                return replace(answered, remark=self._remark(hits, answered.remark))
        refused = picked or (() if rests_on else hits)  # all of them earlier, if none was offered
        readable = (
            index for index in refused if not isinstance(self._refused[index], _TooNewError)
        )
        if (hit := next(readable, None)) is not None:
            answered = await self._read(question, searched, hit, page=False)
            return replace(answered, remark=self._remark(hits, "read by its snippet"))
        return SourcedAnswer(text, searched, rests_on, remark=self._remark(hits))

    def _listed(self, hits: Sequence[int], searched: str) -> str:
        item = self._case.item
        passages = [item.passages[index] for index in hits]
        parts = [(passage, part_about(passage.text, searched, item.lang)) for passage in passages]
        return numbered(parts, metadata=self._options.metadata)

    def _remark(self, hits: Sequence[int], last: str | None = None) -> str | None:
        """Say which pages among some were refused, each once, and how one was read instead."""
        refused = [str(self._refused[hit]) for hit in hits if hit in self._refused]
        return "; ".join(dict.fromkeys(filter(None, (*refused, last)))) or None

    async def _search(self, text: str) -> tuple[int, ...]:
        query = SearchQuery(text, language=self._case.item.lang, k=HITS, before=self._before)
        hits = await self._case.retrieve(self._detector.kit.retriever, query)
        kept = [index for index in hits if self._case.item.passages[index].text.strip()]
        return tuple(kept[:HITS])

    async def _read(
        self, question: str, searched: str, hit: int, *, page: bool = True
    ) -> SourcedAnswer:
        """Answer from the window of a page, or from the snippet where there is none.

        Raises:
            RefusedPageError: the page may not be read.
        """
        snippet, remark = self._case.item.passages[hit], None
        rests_on = (hit,)
        part = part_about(snippet.text, searched, self._case.item.lang)
        read = PassageQuote(passage=hit, start=part.start, end=part.end)
        is_document = len(snippet.text) > SNIPPET
        is_whole = is_document or hit in self._known.notes
        if page and self._options.long_document and snippet.url and not is_whole:
            try:
                rests_on, read = await self._window(snippet)
            except RefusedPageError:
                raise
            except PageError as error:
                remark = f"read by its snippet: {error}"
        document = self._case.item.passages[read.passage]
        shown_text = shown(
            document, document.text[read.start : read.end], metadata=self._options.metadata
        )
        text = await self._answered(question, shown_text)
        sentence = answering(self._case.item, read, text)
        return SourcedAnswer(text, searched, rests_on, read, sentence, remark)

    async def _window(self, snippet: Passage) -> tuple[tuple[int], PassageQuote]:
        """Read a page, unless the item has what was read of it before.

        Returns:
            The passage that is the window around the snippet, and where it stands in the page.

        Raises:
            PageError: the page cannot be read, or does not hold the snippet.
        """
        query = f"{snippet.url}#:~:text={quote(snippet.text[:80])}"
        asked_for = Retrieval(retriever=PAGES, query=query)
        if not self._noted(asked_for):
            texts = await self._page(snippet)
            if not self._noted(asked_for):  # nor by another question meanwhile
                self._case.item = joined(self._case.item, asked_for, texts)
        places = self._noted(asked_for)
        read, document = places[0], places[min(1, len(places) - 1)]
        passages = self._case.item.passages
        start = passages[document].text.find(passages[read].text)
        if start < 0:
            raise PageError("the page that is stored with the item is another one")
        end = start + len(passages[read].text)
        return (read,), PassageQuote(passage=document, start=start, end=end)

    def _noted(self, asked_for: Retrieval) -> tuple[int, ...]:
        noted, key = self._case.item.retrievals, asked_for.key
        return next((retrieval.passages for retrieval in noted if retrieval.key == key), ())

    async def _page(self, snippet: Passage) -> list[Passage]:
        """Return the window of a page around a snippet, and the whole text, ``MOST`` of it."""
        pages = self._detector.kit.pages
        if pages is None or snippet.url is None:
            raise PageError("there is nothing to read pages with")
        page = await pages.read(snippet.url)
        dated = snippet.model_copy(update={"date": snippet.date or page.date})
        if not SearchQuery("", before=self._before).admits(dated):
            raise _TooNewError(f"the page says that it is from {page.date}, after the claim")
        part = window(page.text, snippet.text, self._case.item.lang)
        if part is None:
            raise PageError("the page does not hold what the search showed of it")
        first = max(min(part.start - MOST // 2, len(page.text) - MOST), 0)
        whole = page.text[first : max(first + MOST, part.end)]
        fields = {"title": snippet.title or page.title, "url": snippet.url, "date": dated.date}
        return [Passage(text=text, **fields) for text in (page.text[slice(*part)], whole)]

    async def _answered(self, question: str, shown_text: str) -> str:
        prediction = await self._detector.ask(
            self._program.answer, question=question, found=shown_text
        )
        return (prediction.answer or "").strip() or NOTHING


def _listed(pairs: Sequence[QuestionAnswer[SourcedAnswer]]) -> str:
    return "\n".join(
        f"{number}. {pair.question}\n{quoted(pair.answer.text)}"
        for number, pair in enumerate(pairs, start=1)
    )
