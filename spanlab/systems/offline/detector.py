"""The detector, and notes and quotes for its spans.

It needs no language model, no network and no language data. It knows which words, numbers and
names stand where in the passages, not what they mean: it is strong where an answer contains errors
and the passages say otherwise in similar words, and it is no fact checker.

Each step is a module of its own:

1. ``words`` cuts texts into words, ``lexicon`` brings stop words and months of some 75 languages.
2. ``passages`` keeps of long ones what matches question and answer best, ``links`` links equal and
   similar words, which stands in for a stemmer, ``dates`` the parts of dates.
3. ``alignment`` finds shared runs, covering sentences, and what stands in the same *slot*.
4. ``features`` and ``neighbours`` describe each word by all of that, its shape and position.
5. ``model`` and ``raters`` estimate the share of annotators that mark a word, by boosted trees.
   Answers without passages have trees of their own, and small neural networks. ``training`` and
   ``learners`` make them.
6. ``fit`` corrects the estimate by what ``fitting`` learnt from reviews of a dataset, if anything.
7. ``spans`` joins words; what a passage has word for word is not doubted.
8. ``code`` compares commands, options and names in code with what passages show of them.
9. ``replies`` compares a yes, a no or a name with the sentence that answers the question.
10. ``rivals``, ``sides`` and ``amounts`` find what refutes a span; else a sentence is the closest.

Half of the weight in training is that of answers to a question, which were written without their
passages and are nearly all wrong (Mu-SHROOM); the other half is that of claims and summaries made
from their passages, as many right as wrong (WiCE, BUMP, SummEdits).

Limits. Correct statements in quite other words are doubted. Wrong passages are believed. Errors
made of words that the passages hold (a swapped relation, a dropped "not") are mostly missed.
Numbers written out as words match only themselves. In scripts without capitals only numbers are
said to be refuted. ``model.json`` beside the model gives data, date and scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from spanlab.base.errors import UsageError
from spanlab.detection.base import DetectorKit
from spanlab.detection.common.fit_options import FITTED, NO_FIT
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Evidence,
    Interval,
    Item,
    Passage,
    Span,
    Status,
)
from spanlab.systems.offline import Judge
from spanlab.systems.offline.code import CheckedCode, check_code
from spanlab.systems.offline.features import AnswerFeatures, describe, question_of
from spanlab.systems.offline.fit import WordFit, logits, sigmoid
from spanlab.systems.offline.lexicon import base
from spanlab.systems.offline.model import OfflineModel, WordProbabilities, installed
from spanlab.systems.offline.neighbours import year
from spanlab.systems.offline.passages import CopiedRuns, PassageTexts, read_passages
from spanlab.systems.offline.replies import RefutedReply, refuted_reply
from spanlab.systems.offline.rivals import NOUN_CAPITALS, RivalFinder
from spanlab.systems.offline.sides import DATE, NUMBER, OTHER
from spanlab.systems.offline.spans import WordStretch, decided, stretches
from spanlab.systems.offline.words import TokenizedText, WordKind, blocks, read
from spanlab.text.terms import share_language

NAME = "offline"
_LONG = 700  # words; no longer answer was learnt from
_MADE_UP = 0.9  # of what the rules for code mark, so much is wrong in data/code_answers.jsonl
_PART = 300  # words of a part of a longer one
_STATES = 0.5  # weight from which a word states something that a strict reader looks up
_SLOPE, _SHIFT = 0.91, 0.92  # of how likely an answer is wrong, by its likeliest word
_UNSAID = 0.6  # how probable it is at least that it is wrong, if nothing given has it
NO_PASSAGES = "no passages were given: the answer was judged without any"
_OTHER_LANGUAGE = "the passages seem to be in another language: what they say may be marked, too"


class OfflineDetector:
    """Marks words of an answer that its passages contradict or do not support."""

    name = NAME

    def __init__(
        self,
        model: OfflineModel,
        fit: WordFit | None = None,
        *,
        fit_id: str | None = None,
        judge: Judge = "usual",
    ) -> None:
        self._model, self._fit, self._judge = model, fit, judge
        self._fit_note = f"with what it learnt from reviews: fit “{fit_id}”" if fit_id else None

    def annotate(self, item: Item) -> Annotation:
        """Mark an item's answer; without passages it is judged in a mode of its own, with a note.

        Returns:
            An annotation that is done. Spans carry the estimated share of annotators that would
            mark them, ``hard`` the characters that are taken for hallucinated; both may be empty.
        """
        texts = read_passages([passage.text for passage in item.passages])
        code = _code_of(item)
        parts = [self._mark(part) for part in self._rate(item, texts, code)]
        spans = [span for part in parts for span in part.spans]
        hard = [interval for part in parts for interval in part.hard]
        made_up = _made_up(item.answer, code, spans) if code else []
        return Annotation(
            annotator=NAME,
            kind=AnnotatorKind.DETECTOR,
            status=Status.DONE,
            spans=tuple(sorted(spans + made_up, key=lambda span: span.start)),
            hard=tuple(
                sorted(
                    [*hard, *(Interval(start=span.start, end=span.end) for span in made_up)],
                    key=lambda interval: interval.start,
                )
            ),
            answer_prob=_answer_prob(
                [part.likeliest for part in parts] + [span.prob for span in made_up]
            ),
            note="; ".join(filter(None, (_note_on(item), self._fit_note))) or None,
        )

    def rate(self, item: Item) -> list[RatedPart]:
        """Return an answer with its words rated, before a fit; a long one in several parts."""
        texts = read_passages([passage.text for passage in item.passages])
        return list(self._rate(item, texts, _code_of(item)))

    def _rate(
        self, item: Item, texts: PassageTexts, code: CheckedCode | None
    ) -> Iterator[RatedPart]:
        """Rate the words of each part of an answer as those of an answer of its own.

        Sentences with code are left to the rules for it.
        """
        passed = CopiedRuns(texts.readings)
        titles = [passage.title or "" for passage in item.passages]
        nouns = base(item.lang) in NOUN_CAPITALS
        for begin, end in _parts(item.answer):
            described, alone = (
                describe(
                    question_of(item), item.answer[begin:end], given, item.lang,
                    self._model.background,
                )
                for given in (texts, PassageTexts((), ()))
            )  # fmt: skip
            is_empty = described.passages.empty
            coverage = 0.0 if is_empty else described.coverage(item.question, titles)
            reply = None if begin else refuted_reply(described, item.question, item.lang)
            yield RatedPart(
                begin=begin,
                text=item.answer[begin:end],
                described=described,
                rated=self._model.rate(
                    described, alone, coverage, closed_book=self._judge == "closed-book"
                ),
                exempt=passed.words(described.answer) | _beside_code(described.answer, begin, code),
                reply=reply,
                explainer=Explainer(described, item.passages, reply, nouns=nouns),
                has_code=code is not None,
            )

    def _mark(self, part: RatedPart) -> _MarkedPart:
        answer, begin = part.text, part.begin
        marked, likeliest = part.marked(self._fit, strict=self._judge == "passages")

        def span(stretch: WordStretch) -> Span:
            why = part.explainer.explain(stretch)
            return Span(
                start=begin + stretch.start,
                end=begin + stretch.end,
                text=answer[stretch.start : stretch.end],
                label=None if part.described.passages.empty else part.explainer.label(stretch),
                prob=round(stretch.prob, 3),
                note=why.note,
                evidence=why.quotes,
            )

        return _MarkedPart(
            tuple(span(stretch) for stretch in marked),
            tuple(
                Interval(start=begin + first, end=begin + last) for first, last in decided(marked)
            ),
            likeliest,
        )


@dataclass(frozen=True)
class RatedPart:
    """A part of an answer, ``begin`` characters behind its start, with its words rated.

    ``text`` is as the answer has it; in ``described`` its citation marks are blank.
    ``exempt`` says of each word whether it is never marked; ``reply`` is what the answer replies,
    if the passages reply otherwise; ``has_code`` says whether the answer has code.
    """

    begin: int
    text: str
    described: AnswerFeatures
    rated: WordProbabilities
    exempt: NDArray[np.bool_]
    reply: RefutedReply | None
    explainer: Explainer
    has_code: bool

    def marked(
        self, fit: WordFit | None, *, strict: bool = False
    ) -> tuple[list[WordStretch], float]:
        """Return the stretches that are marked, and the probability of the likeliest word of all.

        Words are corrected by a fit if there is one. ``strict`` also marks words that state
        something and that nothing given has.
        """
        rated = self.rated if fit is None else fit.apply(self.described, self.rated)
        if strict and not self.described.passages.empty:
            unsaid = (self.described.known == 0) & (self.described.weight >= _STATES)
            rated = WordProbabilities(*(np.where(unsaid, np.maximum(_UNSAID, p), p) for p in rated))
        doubt = self.reply.doubt if self.reply else lambda probs: probs
        share, anyone = (np.where(self.exempt, 0.0, doubt(probs)) for probs in rated)
        stretched = stretches(self.described, share, anyone)
        if not self.has_code:
            return stretched, float(share.max(initial=0.0))
        # Instructions say in other words what a manual says; numbers and names stay.
        kept = [stretch for stretch in stretched if self.explainer.label(stretch) != OTHER]
        return kept, max((stretch.prob for stretch in kept), default=0.0)


def _note_on(item: Item) -> str | None:
    """Return what is to be known of an item's passages."""
    texts = [passage.text for passage in item.passages if passage.text.strip()]
    if not texts:
        return NO_PASSAGES
    return None if share_language(item.answer, texts) else _OTHER_LANGUAGE


class _MarkedPart(NamedTuple):
    """What was found in a part of an answer, in offsets of the whole."""

    spans: tuple[Span, ...]
    hard: tuple[Interval, ...]
    likeliest: float


def _answer_prob(likeliest: Sequence[float]) -> float:
    """Return how likely an answer is hallucinated, by its likeliest word, marked or not.

    The two numbers are of a logistic regression on the answers that trained the model, each set of
    documents judged by a model of the others, right and wrong answers weighing the same.
    """
    top = np.array([max(likeliest, default=0.0)])
    return round(float(sigmoid(_SLOPE * logits(top) + _SHIFT)[0]), 3)


def _code_of(item: Item) -> CheckedCode | None:
    passages = [passage.text for passage in item.passages]
    return check_code(item.answer, question_of(item), passages)


def _parts(answer: str) -> list[tuple[int, int]]:
    """Cut a long answer at ends of sentences; what is short enough is one part."""
    words = read(answer)
    if len(words) <= _LONG:
        return [(0, len(answer))]
    cuts = [words.starts[first] for first, _ in blocks(words, _PART)]
    return list(pairwise([0, *cuts[1:], len(answer)]))


def _beside_code(words: TokenizedText, begin: int, code: CheckedCode | None) -> NDArray[np.bool_]:
    """Return which words stand in a sentence with code; words count from ``begin``."""
    pieces = code.pieces if code else []
    coded = [
        any(piece.start < begin + end and begin + start < piece.end for piece in pieces)
        for start, end in words.sentences
    ]
    return np.array([coded[sentence] for sentence in words.sentence], dtype=bool)


def _made_up(answer: str, code: CheckedCode, others: Sequence[Span]) -> list[Span]:
    """Return a span for what is made up in code, where no other marks it already."""
    return [
        Span(
            start=made.start,
            end=made.end,
            text=answer[made.start : made.end],
            label=NUMBER if made.number else "unsupported",
            prob=_MADE_UP,
            note=f"no passage has it; closest is “{made.closest}”" if made.closest else None,
        )
        for made in code.made_up
        if not any(span.start < made.end and made.start < span.end for span in others)
    ]


def create(kit: DetectorKit) -> OfflineDetector:
    """Build the detector with the model that ``SPANLAB_OFFLINE_MODEL`` names, or the shipped one.

    The option ``fitted`` adds what was learnt from reviews, which is read from the database.

    Raises:
        InputError: the file it names is not there or is no model.
        NotFoundError: there is no such fit.
        UsageError: the fit was made with another model.
    """
    current, options = installed(), kit.spec.options
    name, judge = str(options.get(FITTED, "")), cast("Judge", options.get("judge", "usual"))
    if not name:
        return OfflineDetector(current.model, judge=judge)
    if judge == "closed-book":
        raise UsageError(
            f"the fit {name!r} was learnt from answers judged beside their passages: choose "
            f"--option {FITTED}={NO_FIT} with judge=closed-book"
        )
    from spanlab.detection.fits import find_fit  # with the database: most are built without

    fit = find_fit(name, NAME)
    if fit.base != current.digest:
        raise UsageError(
            f"the fit {fit.id!r} belongs to another model of {NAME!r}: run `spanlab fit "
            f"{fit.name}` again, or choose --option {FITTED}={NO_FIT}"
        )
    learnt = WordFit.parse(fit.numbers)
    return OfflineDetector(current.model, learnt, fit_id=fit.id, judge=judge)


_MOST_QUOTES = 2
_MOST_NAMED = 3
_LONGEST_QUOTE = 400  # characters
_LONGEST_STRETCH = 30  # words of a stretch that are looked up
_FADES = 0.8  # what a word counts less for each word that it stands further from a number
_TELLING = 0.5  # weight from which a word is worth naming


class SpanExplanation(NamedTuple):
    """The note on a span and the quotes that go with it."""

    note: str | None
    quotes: tuple[Evidence, ...]


class Explainer:
    """Explains stretches of an answer by its passages.

    Args:
        described: the answer.
        passages: the item's, as they are numbered in quotes.
        reply: what the answer replies, if the passages reply otherwise.
        nouns: whether the language writes every noun with a capital.
    """

    def __init__(
        self,
        described: AnswerFeatures,
        passages: Sequence[Passage],
        reply: RefutedReply | None,
        *,
        nouns: bool,
    ) -> None:
        self._described, self._passages, self._reply = described, passages, reply
        self._rivals = RivalFinder(described, nouns=nouns)

    def explain(self, stretch: WordStretch) -> SpanExplanation:
        """Explain a stretch.

        A number or name with a rival in the passages is contradicted: that sentence refutes it,
        and the quote's note sets the two against each other. Otherwise nothing is said to refute:
        the note names the words of which nothing was found, and the sentence is the closest, the
        one that holds most of the words around.

        Returns:
            A note, None if a sentence refutes or every word is somewhere in the passages, and up
            to two quotes; none without passages, or if nothing in them comes near.
        """
        if self._described.passages.empty:
            return SpanExplanation(None, ())
        if self._reply and stretch.first in self._reply.words:
            note = "this answers the question otherwise" if self._reply.is_sure else None
            quote = self._quote(self._reply.position, note)
            return SpanExplanation(None, (quote,))
        refuting = self._refuting(stretch)
        if refuting:
            return SpanExplanation(None, refuting)
        return SpanExplanation(_missing(stretch, self._described), self._closest(stretch))

    def label(self, stretch: WordStretch) -> str:
        """Return the label for what most of a stretch states, unsupported words counting double."""
        described, kinds = self._described, dict[str, float]()
        for at in _looked_at(stretch):
            is_date = at in described.dated or year(described.answer.forms[at])
            kind = DATE if is_date else self._rivals.answer.kind(at)
            states = float(described.weight[at] * (2 - described.known[at]))
            kinds[kind] = kinds.get(kind, 0.0) + states
        return max(kinds, key=lambda kind: kinds[kind])

    def _refuting(self, stretch: WordStretch) -> tuple[Evidence, ...]:
        """Quote the sentences that have rivals of a stretch's words."""
        answer, passages = self._described.answer, self._described.passages
        places: dict[tuple[int, int, int], tuple[int, list[str]]] = {}  # first position and notes
        for rival in self._rivals.of(_looked_at(stretch)):
            place = passages.sentence_of(rival.stands.start)
            replaced = answer.text[answer.starts[rival.said[0]] : answer.ends[rival.said[-1]]]
            stands = " ".join(passages.words_at(rival.stands).split())
            _, notes = places.setdefault(place, (rival.stands.start, []))
            notes.append(f"says “{stands}”, not “{' '.join(replaced.split())}”")
        return tuple(
            self._quote(position, "; ".join(dict.fromkeys(notes)))
            for position, notes in list(places.values())[:_MOST_QUOTES]
        )

    def _closest(self, stretch: WordStretch) -> tuple[Evidence, ...]:
        described = self._described
        near, weight = described.near, described.weight
        at = max(_looked_at(stretch), key=lambda at: near[at] * weight[at])
        if near[at] <= 0:
            return ()
        sentence = self._of_same_kind(stretch)
        positions = described.passages.positions(
            int(described.best[at]) if sentence is None else sentence
        )
        position = next((place for place in positions if described.passages.word[place] >= 0), None)
        return () if position is None else (self._quote(position, None),)

    def _of_same_kind(self, stretch: WordStretch) -> int | None:
        """Return the sentence that has a number like the stretch's and most of the words close by.

        Beside "finished in 1968 and 330 metres tall", the sentence with "finished in 1958" helps,
        not the one that repeats the height.
        """
        described, passages = self._described, self._described.passages
        unknown = (at for at in _looked_at(stretch) if not described.known[at])
        at = next((at for at in unknown if self._rivals.answer.number(at)), None)
        if at is None:
            return None
        is_year = year(described.answer.forms[at])
        alike = {
            passages.sentence[place]
            for place, kind in enumerate(passages.kinds)
            if kind == WordKind.NUMBER and year(passages.forms[place]) == is_year
        }
        shared = dict[int, float]()
        around = range(max(at - _LONGEST_STRETCH, 0), at + _LONGEST_STRETCH)
        for other, places in zip(
            around, described.links.places[around.start : around.stop], strict=False
        ):
            if described.answer.sentence[other] == described.answer.sentence[at]:
                closeness = float(described.weight[other]) * _FADES ** abs(other - at)
                for sentence in sorted({passages.sentence[place] for place in places} & alike):
                    shared[sentence] = shared.get(sentence, 0.0) + closeness
        return max(shared, key=lambda sentence: shared[sentence], default=None)

    def _quote(self, position: int, note: str | None) -> Evidence:
        """Quote the sentence around a position, or as much of it as a reader wants to read."""
        indexed = self._described.passages
        passage, start, end = indexed.sentence_of(position)
        text = self._passages[passage].text
        reading = indexed.readings[indexed.text[position]]
        at = indexed.word[position]
        if end - start > _LONGEST_QUOTE:
            start = max(start, min(reading.starts[at] - _LONGEST_QUOTE // 2, end - _LONGEST_QUOTE))
            end = max(min(end, start + _LONGEST_QUOTE), reading.ends[at])
        piece = text[start:end]
        start += len(piece) - len(piece.lstrip())
        piece = piece.strip()
        return Evidence(
            passage=passage,
            start=start,
            end=start + len(piece),
            text=piece,
            stance="refutes" if note else "closest",
            note=note,
        )


def _looked_at(stretch: WordStretch) -> range:
    return range(stretch.first, min(stretch.last + 1, stretch.first + _LONGEST_STRETCH))


def _missing(stretch: WordStretch, described: AnswerFeatures) -> str | None:
    answer = described.answer
    named: dict[str, None] = {}
    end = -1  # of the last sign named: signs in a row are one word
    for at in _looked_at(stretch):
        sign = answer.kinds[at] is WordKind.SIGN
        if described.known[at] or not (sign or described.weight[at] >= _TELLING):
            continue
        word = answer.text[answer.starts[at] : answer.ends[at]]
        if sign and answer.starts[at] == end:
            word = named.popitem()[0] + word
        named[word] = None
        end = answer.ends[at] if sign else -1
    if not named:
        return None
    shown = ", ".join(f"“{word[:40]}”" for word in list(named)[:_MOST_NAMED])
    rest = len(named) - _MOST_NAMED
    return f"not in the passages: {shown}" + (f" and {rest} more" if rest > 0 else "")
