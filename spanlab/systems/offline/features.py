"""The features of every word of an answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import NDArray

from spanlab.schema import Item
from spanlab.systems.offline.alignment import (
    PassageSlot,
    QuestionText,
    WeightedAnswer,
    align,
    slots,
)
from spanlab.systems.offline.dates import dates
from spanlab.systems.offline.lexicon import WordBackground
from spanlab.systems.offline.links import (
    Column,
    DateLinks,
    WordLinks,
    in_company,
    link,
    runs,
    with_dates,
)
from spanlab.systems.offline.neighbours import (
    NEGATIONS,
    NO,
    YES,
    NeighbourFeatures,
    gaps,
    hiragana,
    neighbours,
    repeats,
    smoothed,
    support,
    year,
)
from spanlab.systems.offline.passages import PassageTexts, PassageWords, read_passages
from spanlab.systems.offline.words import TokenizedText, WordKind, blank_citations, read

MOST_PLACES = 64
_RARE = 0.25  # share of the items below which a word counts as content
_MANY = 60.0  # words and sentences are counted up to here
_STOP = 0.5  # a stop word is at least as common as this
_STRONG = 0.5  # weight from which a word without support is a sign that something is wrong


@dataclass(frozen=True)
class AnswerFeatures:
    """An answer's words with their features.

    ``table`` has one row per word and one column per name in ``names``. ``weight`` is how much
    each word states, ``known`` is 1 where passages or question hold it, ``stop`` is true for words
    that carry no statement, ``stops`` are the language's; ``asked`` are the forms of the question's
    words; ``dated`` are words of dates, ``confirmed`` those that the passages have, too. ``best``
    is the number of the passage sentence where the word's neighbours stand (none without passages).
    """

    answer: TokenizedText
    passages: PassageWords
    links: WordLinks
    slots: dict[int, PassageSlot]
    best: NDArray[np.int64]
    weight: Column
    known: Column
    stop: NDArray[np.bool_]
    stops: frozenset[str]
    asked: frozenset[str]
    dated: frozenset[int]
    confirmed: frozenset[int]
    names: tuple[str, ...]
    table: NDArray[np.float32]

    def coverage(self, question: str, titles: Sequence[str]) -> float:
        """Return the share in [0, 1] of question and answer that passages and titles speak of.

        The answer's words count by how much they state, the question's one each, without stop
        words.
        """
        named = {form for title in titles for form in read(title).forms}
        asked = [
            form in named or form in self.passages.places
            for form in {*read(question).forms} - self.stops
        ]
        held = np.maximum(self.links.linked, [form in named for form in self.answer.forms])
        return (sum(asked) + float(self.weight @ held)) / max(
            len(asked) + float(self.weight.sum()), 1e-6
        )

    @cached_property
    def near(self) -> list[float]:
        """Share in [0, 1] of a word's neighbours that the passages have together somewhere."""
        return cast("list[float]", self.table[:, self.names.index("near_any")].tolist())


def question_of(item: Item) -> str:
    """Return an item's question and its passages' titles, which support an answer alike."""
    titles = dict.fromkeys(passage.title for passage in item.passages if passage.title)
    return "\n".join((item.question, *titles))


def describe(
    question: str, answer: str, passages: PassageTexts, lang: str, background: WordBackground
) -> AnswerFeatures:
    """Describe every word of an answer; an empty table if it has none.

    Args:
        question: with titles (see ``asked``); may be empty.
        answer: any text; its words are described.
        passages: texts to compare with; may be empty.
        lang: language code of the answer.
        background: how common words are in general.
    """
    words = read(blank_citations(answer))
    question_words = PassageWords(read_passages([question]))
    given = PassageWords(passages, frozenset(words.forms) | frozenset(question_words.places))
    if not len(words):
        nothing, links = np.zeros(0), link(words, given, MOST_PLACES)
        return AnswerFeatures(
            words, given, links, {}, nothing.astype(np.int64), nothing, nothing,
            nothing.astype(bool), frozenset(), frozenset(), frozenset(), frozenset(), (),
            np.zeros((0, 0), dtype=np.float32),
        )  # fmt: skip
    return _FeatureBuilder(words, given, question_words, lang, background).build()


class _FeatureBuilder:
    """The steps of a description, each adding columns."""

    def __init__(
        self,
        words: TokenizedText,
        given: PassageWords,
        question_words: PassageWords,
        lang: str,
        background: WordBackground,
    ) -> None:
        self._words, self._given, self._asked = words, given, question_words
        self._often = background.of(lang)
        self._months = background.months(lang)
        self._stops = background.stop(lang)
        self._stop = np.array([form in self._stops or hiragana(form) for form in words.forms])
        self._kinds = np.array(words.kinds)
        self._sentence = np.array(words.sentence)
        self._first = np.r_[True, self._sentence[1:] != self._sentence[:-1]]
        self._capital = np.array([words.capital(n) for n in range(len(words))], dtype=np.float64)
        self._length = np.array(words.ends, dtype=np.float64) - np.array(words.starts)
        often = np.array([self._often(form) for form in words.forms])
        self._frequency = np.maximum(often, np.where(self._stop, _STOP, 0.0))
        self._links, self._dated = self._link(given)
        self._asks, _ = self._link(question_words)
        self._known = np.maximum(self._links.linked, self._asks.linked)
        self._weight = self._weigh()
        self._columns: dict[str, Column] = {}
        self._best = np.zeros(0, dtype=np.int64)
        self._slots: dict[int, PassageSlot] = {}

    def build(self) -> AnswerFeatures:
        """Add all columns, and return the description."""
        self._add_links()
        if not self._given.empty:
            self._add_alignment()
        self._add_answer()
        self._add_shape()
        self._add_position()
        self._add_around()
        names = tuple(self._columns)
        table = np.stack([self._columns[name] for name in names], axis=1).astype(np.float32)
        return AnswerFeatures(
            self._words, self._given, self._links, self._slots, self._best,
            self._weight, self._known, self._stop, self._stops,
            frozenset(self._asked.places), self._dated.stated, self._dated.confirmed, names, table,
        )  # fmt: skip

    def _link(self, texts: PassageWords) -> tuple[WordLinks, DateLinks]:
        """Link words, then dates."""
        links = in_company(link(self._words, texts, MOST_PLACES), self._words, self._stop)
        answer_dates = dates(self._words.row(), self._months)
        return with_dates(
            links, answer_dates, dates(texts.row(), self._months) if answer_dates else ()
        )

    def _weigh(self) -> Column:
        """Weigh each word: numbers and rare, long or capital words weigh most."""
        common = np.clip(1 - 1.5 * self._frequency, 0.08, 1)
        weight = common * np.clip(self._length / 5, 0.25, 1.2)
        sign = np.clip(0.6 - 0.6 * self._frequency, 0.1, 0.6)
        weight = np.where(self._kinds == WordKind.SIGN, sign, weight)
        weight = np.where(self._kinds == WordKind.NUMBER, 1.0, weight)
        return np.asarray(weight * np.where(self._name(), 1.3, 1.0), dtype=np.float64)

    def _name(self) -> NDArray[np.bool_]:
        return np.asarray((self._capital > 0) & ~self._first)

    def _add_links(self) -> None:
        """Add how passages and question know each word."""
        for prefix, links in (("passages", self._links), ("question", self._asks)):
            for name in ("linked", "exact", "ratio", "prefix", "trigrams", "inside", "distance"):
                self._columns[f"{prefix}_{name}"] = getattr(links, name)
            shared_runs = runs(links.places)
            self._columns[f"{prefix}_run"] = np.minimum(shared_runs.length, 10)
            self._columns[f"{prefix}_run_left"] = np.minimum(shared_runs.left, 6)
            self._columns[f"{prefix}_run_right"] = np.minimum(shared_runs.right, 6)
        holders = max(len(self._given.readings), 1)
        text = self._given.text
        places = self._links.places
        self._columns["passages_count"] = np.log1p([len(place) for place in places])
        self._columns["passages_share"] = np.array(
            [len({text[place] for place in held}) / holders for held in places]
        )
        size = max(len(self._given), 1)
        self._columns["passages_place"] = np.array(
            [place[0] / size if place else 1.5 for place in places]
        )

    def _add_alignment(self) -> None:
        """Add how the answer aligns with the passages, and the slots."""
        forms = tuple(self._asked.places)
        question_of = QuestionText(
            tuple(tuple(self._given.places.get(form, ())) for form in forms),
            np.array([max(0.1, 1 - 1.5 * self._often(form)) for form in forms]),
            frozenset(forms),
        )
        weighted = WeightedAnswer(
            self._words, self._links.places, self._weight, 1 - self._asks.linked
        )
        aligned = align(weighted, question_of, self._given)
        self._columns.update(aligned.columns)
        self._best = aligned.best
        self._slots = slots(self._words, self._links.places, self._given)
        for at, place in self._dated.instead.items():
            self._slots[at] = PassageSlot(2, place, alike=True, date=True)
        for name in ("slot_sides", "slot_alike"):
            self._columns[name] = np.zeros(len(self._words))
        for at, slot in self._slots.items():
            self._columns["slot_sides"][at] = slot.sides
            self._columns["slot_alike"][at] = slot.alike
        common = sum(form in NEGATIONS for form in self._given.forms) / len(self._given)
        self._columns["passages_negations"] = np.full(len(self._words), 20.0 * common)

    def _add_answer(self) -> None:
        """Add features of the whole answer and of the sentence."""
        count = len(self._words)
        weight, known, new = self._weight, self._known, 1 - self._asks.linked
        doubt = weight * (1 - known)
        fresh = weight * new
        strong = np.flatnonzero((known == 0) & (weight > _STRONG))
        first = strong[0] if len(strong) else count
        per_sentence = np.bincount(self._sentence, doubt)
        total = np.maximum(np.bincount(self._sentence, weight), 1e-6)
        repeated = repeats(self._words.forms)
        unsupported = float((fresh * (1 - self._links.linked)).sum() / (fresh.sum() + 0.3))
        numbers = float((self._kinds == WordKind.NUMBER).sum())
        given = sum(form[0] == "#" for form in self._given.places)
        facts = (self._kinds == WordKind.NUMBER) | self._name()
        other = ~facts & ~self._stop & (self._frequency < _RARE)
        sides = NeighbourFeatures(facts, other, known > 0, self._links.linked > 0)
        self._columns |= {
            "answer_doubt": np.full(count, doubt.sum() / weight.sum()),
            "answer_new_doubt": np.full(count, unsupported),
            "sentence_doubt": (per_sentence / total)[self._sentence],
            "after_doubt": np.clip(np.arange(count) - first, -20.0, 20.0),
            **support(sides, self._sentence),
            "any_doubt": np.full(count, float(len(strong) > 0)),
            "repeated": np.minimum(repeated, 5),
            "answer_repeats": np.full(count, 1 - len(set(self._words.forms)) / count),
            "answer_words": np.full(count, np.log(count)),
            "answer_numbers": np.full(count, min(numbers, _MANY)),
            "passages_words": np.full(count, np.log1p(len(self._given))),
            "passages_numbers": np.full(count, min(given, 30.0)),
            "question_words": np.full(count, min(len(self._asked), _MANY)),
        }

    def _add_shape(self) -> None:
        """Add the word's shape, and the gaps to its neighbours."""
        forms = self._words.forms
        number, before = self._kinds == WordKind.NUMBER, gaps(self._words)
        self._columns |= {
            "length": self._length,
            "number": number.astype(np.float64),
            "sign": (self._kinds == WordKind.SIGN).astype(np.float64),
            "year": np.array([year(form) for form in forms], dtype=np.float64),
            "capital": self._capital,
            "name": self._name().astype(np.float64),
            "latin": np.array([form.isascii() for form in forms], dtype=np.float64),
            "frequency": self._frequency,
            "weight": self._weight,
            "stop": self._stop.astype(np.float64),
            "negation": np.array([form in NEGATIONS for form in forms], dtype=np.float64),
            "gap_before": np.array(before[:-1], dtype=np.float64),
            "gap_after": np.array(before[1:], dtype=np.float64),
        }

    def _add_position(self) -> None:
        """Add the word's position in answer and sentence."""
        count = len(self._words)
        at = np.arange(count)
        dense = np.cumsum(self._first) - 1
        size = np.bincount(dense)
        begins = np.r_[0, np.cumsum(size)[:-1]]
        opening = self._words.forms[0]
        self._columns |= {
            "place": at / count,
            "index": np.minimum(at, _MANY),
            "sentence_place": (at - begins[dense]) / size[dense],
            "sentence_index": np.minimum(dense, 10.0),
            "sentences": np.full(count, min(len(size), _MANY)),
            "sentence_words": np.minimum(size[dense], _MANY),
            "yes_or_no": np.full(count, float(opening in YES) - float(opening in NO)),
            "opening": (at == 0).astype(np.float64),
        }

    def _add_around(self) -> None:
        """Add features of the words around."""
        zeros = np.zeros(len(self._words))
        base = {
            "known": self._known,
            "linked": self._links.linked,
            "ratio": self._links.ratio,
            "asked": self._asks.linked,
            "weight": self._weight,
            "doubt": self._weight * (1 - self._known),
            "frequency": self._frequency,
            "number": self._columns["number"],
            "name": self._columns["name"],
            "run": np.minimum(self._columns["passages_run"], 6),
            "near": self._columns.get("near_in", zeros),
            "near_lost": self._columns.get("near_held_lost", zeros),
            "holds": self._columns.get("sentence_holds", zeros),
            "length": self._length,
        }
        self._columns |= {"known": base["known"], "doubt": base["doubt"]}
        self._columns |= neighbours(base, ("known", "run", "near", "doubt", "ratio", "length"))
        self._columns |= smoothed(base)
