"""Aligns an answer with its passages: shared runs, sentences that say the same, gaps in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from spanlab.systems.offline.links import Column
from spanlab.systems.offline.passages import BREAK, PassageWords
from spanlab.systems.offline.words import TokenizedText, WordKind, blocks

Table = NDArray[np.float32]
_REACH = 6  # words on either side that count as local
_CHUNK = 12  # words of a passage that count as one place
_BLOCK = 400  # words of an answer that are aligned at once: bounds the memory
_QUESTION = 0.35  # weight of the question's words in choosing a sentence
_ONE_SIDE = 40  # places looked at for a neighbour


class AlignedAnswer(NamedTuple):
    """Features by name (one value per word), and for each word its ``best`` passage sentence.

    That is the sentence in which the word's neighbours stand, the question's words deciding ties.
    """

    columns: dict[str, Column]
    best: NDArray[np.int64]


class WeightedAnswer(NamedTuple):
    """The answer to align, its links to the passages, and the weight of each word."""

    answer: TokenizedText
    places: tuple[tuple[int, ...], ...]
    weight: Column
    new: Column  # 1 for words that the question does not hold


class QuestionText(NamedTuple):
    """The question's words: their places in the passages and their weights."""

    places: tuple[tuple[int, ...], ...]
    weight: Column
    forms: frozenset[str]


def align(answer: WeightedAnswer, question: QuestionText, passages: PassageWords) -> AlignedAnswer:
    """Align an answer of at least one word with passages of at least one word."""
    unit = np.array(passages.sentence)
    relevance = _share(question, unit, passages.n_sentences)
    extra = _unsaid(answer.answer, question, passages)
    parts = [
        _block(answer, slice(low, high), passages, relevance, extra)
        for low, high in blocks(answer.answer, _BLOCK)
    ]
    columns = {
        name: np.concatenate([part.columns[name] for part in parts]) for name in parts[0].columns
    }
    return AlignedAnswer(columns, np.concatenate([part.best for part in parts]))


def _block(
    answer: WeightedAnswer, part: slice, passages: PassageWords, relevance: Column, extra: Column
) -> AlignedAnswer:
    places, weight = answer.places[part], answer.weight[part]
    rows = np.arange(len(places))
    sentence = np.array(answer.answer.sentence[part])
    sentence -= sentence[0]
    begins = np.flatnonzero(np.r_[True, sentence[1:] != sentence[:-1]])
    number = np.repeat(np.arange(len(begins)), np.diff(np.r_[begins, len(sentence)]))
    held = _incidence(places, np.array(passages.sentence), passages.n_sentences)
    covered = _covered(held, weight, begins, 1e-6)
    fresh = _covered(held, weight * answer.new[part], begins, 0.3)
    score = covered + _QUESTION * relevance
    order = np.argsort(-score, axis=1, kind="stable")[:, :3]
    in_order = np.stack([held[rows, order[number, at]] for at in range(order.shape[1])])
    chunks = _chunks(places, passages)
    near = _local(chunks, weight)
    near_sentence = _local(held, weight)
    best = np.argmax(near_sentence + _QUESTION * relevance, axis=1)
    any_held = held.any(axis=1)
    near_in = np.where(chunks > 0, near, -1).max(axis=1)
    near_held = np.where(held > 0, near_sentence, -1).max(axis=1)
    columns = {
        "sentence_cover": covered.max(axis=1)[number],
        "sentence_cover_new": fresh.max(axis=1)[number],
        "sentence_holds": in_order[0],
        "three_hold": in_order.max(axis=0),
        "question_cover": np.full(len(rows), relevance.max()),
        "relevant_holds": held[:, int(np.argmax(relevance))],
        "held_relevance": np.where(any_held, (held * relevance).max(axis=1), -0.1),
        "held_score": np.where(any_held, (held * score[number]).max(axis=1), -0.1)
        - score.max(axis=1)[number],
        "near_in": near_in,
        "near_any": near.max(axis=1),
        "near_lost": near_in - near.max(axis=1),
        "near_held": near_held,
        "near_held_lost": near_held - near_sentence.max(axis=1),
        "unsaid_numbers": extra[best, 0],
        "unsaid_names": extra[best, 1],
        "unsaid_words": extra[best, 2],
    }
    return AlignedAnswer(
        {name: np.asarray(c, dtype=np.float64) for name, c in columns.items()}, best
    )


def _incidence(places: Sequence[tuple[int, ...]], unit: NDArray[np.int64], n_units: int) -> Table:
    """Table of words × units: 1 where the unit holds the word."""
    table = np.zeros((len(places), n_units), dtype=np.float32)
    rows = np.repeat(np.arange(len(places)), [len(place) for place in places])
    flat = [place for held in places for place in held]
    if flat:
        table[rows, unit[flat]] = 1
    return table


def _chunks(places: Sequence[tuple[int, ...]], passages: PassageWords) -> Table:
    """Words × stretches of the passages, each stretch overlapping half of its neighbours."""
    units = [(np.arange(len(passages)) + shift) // _CHUNK for shift in (0, _CHUNK // 2)]
    tables = [_incidence(places, unit, int(unit[-1]) + 1) for unit in units]
    return np.concatenate(tables, axis=1)


def _covered(held: Table, weight: Column, begins: NDArray[np.int64], least: float) -> Column:
    """Share of each answer sentence's weight that each passage sentence holds."""
    weighted = (weight[:, None] * held).astype(np.float32)
    shared = np.add.reduceat(weighted, begins, axis=0)
    total = np.add.reduceat(weight, begins)
    return np.asarray(shared / (total + least)[:, None], dtype=np.float64)


def _local(held: Table, weight: Column) -> Table:
    """Share of each word's neighbours (nearer ones count more) that each unit holds."""
    weighted = (weight[:, None] * held).astype(np.float32)
    total = np.full(len(weight), 1e-6, dtype=np.float32)
    shared = np.zeros_like(weighted)
    for step in range(1, min(_REACH, len(weight) - 1) + 1):
        factor = np.float32(1 / (1 + step / 4))
        shared[step:] += factor * weighted[:-step]
        shared[:-step] += factor * weighted[step:]
        total[step:] += factor * weight[:-step].astype(np.float32)
        total[:-step] += factor * weight[step:].astype(np.float32)
    return shared / total[:, None]


def _share(question: QuestionText, unit: NDArray[np.int64], n_units: int) -> Column:
    """Share of the question's weight that each passage sentence holds."""
    if not len(question.weight):
        return np.zeros(n_units)
    held = _incidence(question.places, unit, n_units)
    return np.asarray(question.weight @ held / (question.weight.sum() + 1e-6), dtype=np.float64)


def _unsaid(answer: TokenizedText, question: QuestionText, passages: PassageWords) -> Column:
    """Numbers, names and other words per passage sentence that the answer does not mention."""
    known_forms = frozenset(answer.forms) | question.forms
    counts = [[0.0, 0.0, 0.0] for _ in range(passages.n_sentences)]
    for at, form in enumerate(passages.forms):
        if passages.kinds[at] == BREAK or form in known_forms:
            continue
        number = passages.kinds[at] == WordKind.NUMBER
        if number or passages.capital[at] or len(form) > 3:
            sort = 0 if number else 1 if passages.capital[at] else 2
            counts[passages.sentence[at]][sort] += 1
    return np.minimum(counts, 8.0)


class PassageSlot(NamedTuple):
    """The word that a passage has between the neighbours of a word that is not there."""

    sides: int  # 1: two words on one side agree, 2: a word on either side
    position: int
    alike: bool  # a number for a number, a name for a name
    date: bool = False  # the same part of a date that agrees in the other parts


def slots(
    answer: TokenizedText, places: Sequence[tuple[int, ...]], passages: PassageWords
) -> dict[int, PassageSlot]:
    """Find for each word another one that takes its place in the passages.

    Returns:
        Slots by the number of the answer's word; words whose neighbours agree with no passage,
        or enclose the word itself there, have none.
    """

    def alike(at: int, place: int) -> bool:
        same_kind = passages.kinds[place] == answer.kinds[at]
        return same_kind and passages.capital[place] == answer.capital(at)

    by_word: dict[int, PassageSlot] = {}
    for at in range(len(answer)):
        if answer.kinds[at] is WordKind.SIGN:
            continue
        candidates = [
            PassageSlot(sides, place, alike(at, place))
            for sides, place in _candidates(at, places)
            if 0 <= place < len(passages)
            and passages.kinds[place] != BREAK
            and place not in places[at]
        ]
        if candidates:
            by_word[at] = max(candidates, key=lambda slot: (slot.alike, slot.sides, -slot.position))
    return by_word


def _candidates(at: int, places: Sequence[tuple[int, ...]]) -> Iterator[tuple[int, int]]:
    """Yield the positions at which a word is expected from its neighbours."""
    left = places[at - 1][:_ONE_SIDE] if at else ()
    right = places[at + 1][:_ONE_SIDE] if at + 1 < len(places) else ()
    rights = set(right)
    for place in left:
        if place + 2 in rights or place + 3 in rights:
            yield 2, place + 1
    if at > 1:
        further = set(places[at - 2])
        yield from ((1, place + 1) for place in left if place - 1 in further)
    if at + 2 < len(places):
        further = set(places[at + 2])
        yield from ((1, place - 1) for place in right if place + 1 in further)
