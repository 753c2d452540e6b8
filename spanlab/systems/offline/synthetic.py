"""Synthetic answers made from passages; all of them are right.

They teach a model that a short answer to a question may be right: nearly all of those that people
labelled are wrong somewhere. A sentence of the passages is right, and a sentence of one passage
whose numbers and names the others confirm is right in other words.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from spanlab.systems.offline.lexicon import base
from spanlab.systems.offline.words import TokenizedText, WordKind, blank_marks, read

_SHORTEST, _LONGEST = 5, 60  # words of a sentence that may stand as an answer; signs count half
_FEW = (1, 1, 2, 3)  # sentences of an answer: mostly one
_TRIES = 6
_RARE = 0.25  # share of the items below which a word counts as content
_LIKE_US = (0.35, 0.97)  # share of a paraphrase's content words that the other passages hold
_CASELESS_FROM = 0.6  # the same where names cannot be told by a capital


class SyntheticAnswer(NamedTuple):
    """A right answer, and the passages that it is compared with."""

    answer: str
    passages: tuple[str, ...]


def verbatim(passages: Sequence[str], lang: str, rng: random.Random) -> SyntheticAnswer | None:
    """Take one to three neighbouring sentences of a passage as an answer.

    Returns:
        The answer, to be compared with all passages or with that passage alone; None if no
        passage has a sentence of a fitting length.
    """
    for _ in range(_TRIES if passages else 0):
        text = rng.choice(passages)
        sentences = _sentences(text)
        if sentences:
            first = rng.randrange(len(sentences))
            space = "" if base(lang) in ("zh", "ja", "th") else " "
            answer = space.join(sentences[first : first + rng.choice(_FEW)])
            return SyntheticAnswer(answer, tuple(passages) if rng.random() < 0.6 else (text,))
    return None


def paraphrases(
    passages: Sequence[str], often: Callable[[str], float], rng: random.Random
) -> list[SyntheticAnswer]:
    """Find sentences of one passage that the other passages confirm in other words.

    The others have all numbers and names of such a sentence, but only part of its other content
    words, and not the sentence itself. ``often`` gives the share of items that hold a word; rare
    words are content.

    Returns:
        Right answers, each to be compared with the other passages, in random order.
    """
    answers = []
    for number, text in enumerate(passages):
        others = tuple(other for at, other in enumerate(passages) if at != number)
        if not others:
            continue
        forms = frozenset(form for other in others for form in read(blank_marks(other)).forms)
        whole = "\n".join(_clean(other) for other in others)
        answers += [
            SyntheticAnswer(sentence, others)
            for sentence in _sentences(text)
            if sentence not in whole and _confirmed(read(sentence), forms, often)
        ]
    rng.shuffle(answers)
    return answers


def _confirmed(words: TokenizedText, forms: frozenset[str], often: Callable[[str], float]) -> bool:
    facts = content = held = 0
    cased = False
    for at, form in enumerate(words.forms):
        capital = words.capital(at)
        cased = cased or capital
        if words.kinds[at] is WordKind.NUMBER or (capital and at):
            facts += 1
            if form not in forms:
                return False
        elif often(form) < _RARE:
            content += 1
            held += form in forms
    if cased and not facts:
        return False
    low, high = _LIKE_US
    return (low if cased else _CASELESS_FROM) <= held / max(content, 1) <= high


def _sentences(text: str) -> list[str]:
    """Return the sentences that could stand as an answer, without marks."""
    words = read(_clean(text))
    size: dict[int, float] = {}
    for number, kind in zip(words.sentence, words.kinds, strict=True):
        size[number] = size.get(number, 0) + (0.5 if kind is WordKind.SIGN else 1.0)
    fitting = []
    for number, (start, end) in enumerate(words.sentences):
        sentence = words.text[start:end].strip()
        fits = _SHORTEST <= size.get(number, 0) <= _LONGEST
        if fits and not sentence.endswith(":"):
            fitting.append(sentence)
    return fitting


def _clean(text: str) -> str:
    spaced = re.sub(r"[ \t]+", " ", blank_marks(text))
    return re.sub(r" ([.,;:!?。，])", r"\1", spaced)
