"""Synthetic answers made from passages, with known errors.

They teach a model (and measure whether it has learnt) to look at the passages: a sentence of
theirs is right, a number, name or word put in its place is wrong, and a sentence of one
passage whose numbers and names the other passages confirm is right in other words.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from spanlab.systems.offline.lexicon import base
from spanlab.systems.offline.words import TokenizedText, WordKind, blank_marks, read

_SHORTEST, _LONGEST = 5, 60  # words of a sentence that may stand as an answer; signs count half
_FEW = (1, 1, 2, 3)  # sentences of an answer, or errors in it: mostly one
_APART = 4  # words between two errors
_TRIES = 6
_RARE = 0.25  # share of the items below which a word counts as content
_LIKE_US = (0.35, 0.97)  # share of a paraphrase's content words that the other passages hold
_CASELESS_FROM = 0.6  # the same where names cannot be told by a capital


class SyntheticAnswer(NamedTuple):
    """A synthetic answer, its passages, and ``wrong``, the characters of its errors."""

    answer: str
    passages: tuple[str, ...]
    wrong: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class ReplacementPool:
    """Names, words and runs of signs from other items, to be put in where they do not belong."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    signs: tuple[str, ...]

    @classmethod
    def of(cls, texts: Sequence[str]) -> ReplacementPool:
        """Collect names, words and signs from texts."""
        replacements: dict[str, list[str]] = {"name": [], "word": []}
        signs = []
        for text in texts:
            words = read(blank_marks(text))
            for at in range(len(words)):
                sort = _sort(words, at)
                if sort in replacements:
                    replacements[sort].append(_written(words, at))
            signs += re.findall(r"[\u3400-\u9fff]{4}", text)
        return cls(tuple(replacements["name"]), tuple(replacements["word"]), tuple(signs))


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


def injected(
    made: SyntheticAnswer, pool: ReplacementPool, known_words: frozenset[str], rng: random.Random
) -> SyntheticAnswer | None:
    """Put one to three errors into a right answer: other numbers, or names and words of ``pool``.

    ``known_words`` are forms that are no errors because question or passages have them.

    Returns:
        The answer with its errors; None if there was no place for one.
    """
    words = read(made.answer)
    edits = sorted(_edits(words, pool, known_words, rng))
    if not edits:
        return None
    answer, wrong, done = "", [], 0
    for start, end, text in edits:
        answer += made.answer[done:start]
        wrong.append((len(answer), len(answer) + len(text)))
        answer += text
        done = end
    return SyntheticAnswer(answer + made.answer[done:], made.passages, tuple(wrong))


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


def _edits(
    words: TokenizedText, pool: ReplacementPool, known_words: frozenset[str], rng: random.Random
) -> list[tuple[int, int, str]]:
    by_sort: dict[str, list[int]] = {}
    for at in range(len(words)):
        sort = _sort(words, at)
        if sort:
            by_sort.setdefault(sort, []).append(at)
    chosen: list[int] = []
    edits = []
    for _ in range(rng.choice(_FEW) if by_sort else 0):
        sort = rng.choice(sorted(by_sort))
        at = rng.choice(by_sort[sort])
        if any(abs(at - other) <= _APART for other in chosen):
            continue
        chosen.append(at)
        end, text = _replacement(words, at, sort, pool, rng)
        forms = read(text).forms
        same = text == words.text[words.starts[at] : end]
        if text and not same and (sort == "sign" or known_words.isdisjoint(forms)):
            edits.append((words.starts[at], end, text))
    return edits


def _replacement(
    words: TokenizedText, at: int, sort: str, pool: ReplacementPool, rng: random.Random
) -> tuple[int, str]:
    """Return where what is replaced ends, and what comes there (nothing if the pool is empty)."""
    written, end = _written(words, at), words.ends[at]
    if sort == "number":
        return end, _other_number(written, rng)
    if sort != "sign":
        choices = pool.names if sort == "name" else pool.words
        return end, rng.choice(choices) if choices else ""
    last, longest = at, rng.randint(2, 4)
    while (
        last + 1 < len(words)
        and last + 1 - at < longest
        and words.kinds[last + 1] is WordKind.SIGN
        and words.starts[last + 1] == words.ends[last]
    ):
        last += 1
    signs = rng.choice(pool.signs) if pool.signs else ""
    return words.ends[last], signs[: last - at + 1]


def _other_number(written: str, rng: random.Random) -> str:
    if len(written) == 4 and written.isascii() and written.isdigit() and written[0] in "12":
        return str(int(written) + rng.choice((-1, 1)) * rng.randint(1, 60))
    characters = list(written)
    digits = [at for at, character in enumerate(characters) if character.isdigit()]
    for at in rng.sample(digits, k=min(len(digits), rng.randint(1, 2))):
        value = int(characters[at])
        other = rng.choice([digit for digit in range(0 if at else 1, 10) if digit != value])
        characters[at] = chr(ord(characters[at]) - value + other)
    return "".join(characters)


def _sort(words: TokenizedText, at: int) -> str | None:
    if words.kinds[at] is WordKind.NUMBER:
        return "number"
    if words.kinds[at] is WordKind.SIGN:
        return "sign"
    length = words.ends[at] - words.starts[at]
    opens = at == 0 or words.sentence[at] != words.sentence[at - 1]
    if words.capital(at) and length >= 3 and not opens:
        return "name"
    return "word" if length >= _SHORTEST and not words.capital(at) else None


def _written(words: TokenizedText, at: int) -> str:
    return words.text[words.starts[at] : words.ends[at]]


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
