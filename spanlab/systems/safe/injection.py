"""Errors put into right steps by rules, for a verifier to learn from.

What the checks without a model would find teaches a verifier nothing, as nobody asks it then: steps
here are wrong in ways that show only beside the passages and the other steps.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from spanlab.schema import Item
from spanlab.systems.safe.steps import (
    ANSWER_MARK,
    ErrorType,
    ReasoningStep,
    StepKind,
    final_answer,
)
from spanlab.systems.safe.verifier import CITATION, cited, renumbered
from spanlab.text.terms import terms

_REPEATED: Final = (
    "In other words, {step}",
    "As was found before, {step}",
    "This means that {step}",
    "It follows that {step}",
    "So it is known that {step}",
    "To say it again, {step}",
)
_EMPTY: Final = (  # about what the reasoning needs: else the step would be off-topic
    "The next thing to check is what Passage {number} says about {title}.",
    "It remains to find out more about {title}.",
    "Passage {number} about {title} may hold what is needed.",
    "{title} could be of help with the question.",
    "More has to be found out about {title} before the question can be answered.",
    "The passages have to be read with {title} in mind.",
    "With Passage {number} the answer comes closer.",
    "Before anything is answered, {title} is worth a closer look.",
    "There are several passages here, and Passage {number} is the one to go on with.",
    "What was asked leads on to {title}.",
    "Looking at Passage {number} seems useful here.",
    "The question has several parts, of which {title} comes now.",
)
_OPENING: Final = re.compile(r"(?:The|An?|It|He|She|They|This|That|There|In|On|At)\b")
_YEAR: Final = re.compile(r"\b\d{4}\b")
_OPPOSITES: Final = {"yes": "no", "no": "yes"}
_MOST_SHARED: Final = 0.5  # of a step's new words that a passage has which does not say it


def injected(
    item: Item, right: Sequence[ReasoningStep], dice: random.Random
) -> Iterator[TaughtError]:
    """Yield a wrong step of each of four types, as far as a right reasoning allows it.

    Args:
        item: the question with its passages.
        right: its right steps, from the first.
        dice: chooses step and wording.
    """
    inner = [step for step in right if step.kind is not StepKind.FINAL_ANSWER]
    if len(inner) > 1:
        yield _repeated(inner[: dice.randrange(1, len(inner))], dice)
    if inner:
        yield _empty(item, inner, dice)
        yield _miscited(item, inner, dice)
    value = final_answer(right[-1].text) if right else None
    other = _other_value(item, value, inner, dice) if value else None
    if other:
        text = f"{ANSWER_MARK} {other}"
        yield TaughtError(
            tuple(right[:-1]),
            ReasoningStep(0, len(text), text, StepKind.FINAL_ANSWER),
            ErrorType.WRONG_CONCLUSION,
            f"The steps do not lead to {other}.",
            f"Give the value that they lead to: {right[-1].text}",
        )


def _repeated(before: Sequence[ReasoningStep], dice: random.Random) -> TaughtError:
    """Say an earlier step again, in a form of its own."""
    at = dice.randrange(len(before))
    text = CITATION.sub("", before[at].text)
    if _OPENING.match(text):
        text = text[0].lower() + text[1:]
    return _wrong(
        before,
        dice.choice(_REPEATED).format(step=text),
        ErrorType.REDUNDANCY,
        f"It says nothing that step {at + 1} does not say.",
        f"Do not repeat step {at + 1}; find out something new.",
        before[at].kind,
    )


def _empty(item: Item, inner: Sequence[ReasoningStep], dice: random.Random) -> TaughtError:
    """Announce what a step finds, instead of finding it."""
    at = dice.randrange(len(inner))
    many = len(item.passages)
    numbers = [number for number in cited(inner[at].text) if 0 < number <= many]
    title = item.passages[numbers[0] - 1].title if numbers else None
    number = numbers[0] if numbers else 1
    text = dice.choice(_EMPTY).format(number=number, title=title or "what the question names")
    return _wrong(
        inner[:at],
        text[0].upper() + text[1:],
        ErrorType.INEFFICIENCY,
        "It announces something and states no fact.",
        "State one fact of one passage.",
    )


def _miscited(item: Item, inner: Sequence[ReasoningStep], dice: random.Random) -> TaughtError:
    """Have a step cite a passage that does not say it; without one, a passage that is not there."""
    able = [
        (at, number)
        for at, step in enumerate(inner)
        if len(set(cited(step.text))) == 1
        for number in _silent_on(item, inner, at)
    ]
    if able:
        at, number = dice.choice(able)
        (source,) = set(cited(inner[at].text))
        return _wrong(
            inner[:at],
            renumbered(inner[at].text, lambda _: number),
            ErrorType.UNSUPPORTED,
            f"Passage {number} does not say this; Passage {source} does.",
            f"Cite Passage {source} for it.",
        )
    at, many = dice.randrange(len(inner)), len(item.passages)
    number = many + dice.randint(1, 5)
    return _wrong(
        inner[:at],
        f"According to Passage {number}, {CITATION.sub('', inner[at].text)}",
        ErrorType.UNSUPPORTED,
        f"There is no passage {number}.",
        f"Cite one of the passages 1 to {many}.",
    )


def _silent_on(item: Item, inner: Sequence[ReasoningStep], at: int) -> Iterator[int]:
    """Yield the numbers of passages that lack most of what a step tells for the first time."""
    known_terms = set(terms(" ".join((item.question, *(step.text for step in inner[:at])))))
    # Shorter words stand anywhere.
    new = {term for term in terms(CITATION.sub("", inner[at].text)) if len(term) > 3} - known_terms
    for number, passage in enumerate(item.passages, start=1):
        shared = new & set(terms(f"{passage.title or ''} {passage.text}"))
        if new and len(shared) <= _MOST_SHARED * len(new) and number not in cited(inner[at].text):
            yield number


def _other_value(
    item: Item, value: str, inner: Sequence[ReasoningStep], dice: random.Random
) -> str | None:
    """Return another value of the same sort: no for yes, another year, what the steps name."""
    if value.casefold().strip(".") in _OPPOSITES:
        return _OPPOSITES[value.casefold().strip(".")]
    year = _YEAR.search(value)
    if year:
        texts = [*(step.text for step in inner), *(passage.text for passage in item.passages)]
        years = sorted({number for text in texts for number in _YEAR.findall(text)} - {year[0]})
        if years:
            return value.replace(year[0], dice.choice(years))
    titles = {passage.title for passage in item.passages if passage.title}
    others = sorted(
        title
        for title in titles
        if title.casefold() not in value.casefold() and value.casefold() not in title.casefold()
    )
    named = [other for other in others if any(other in step.text for step in inner)]
    return dice.choice(named or others) if others else None


def _wrong(
    before: Sequence[ReasoningStep],
    text: str,
    error: ErrorType,
    diagnosis: str,
    guidance: str,
    kind: StepKind | None = None,
) -> TaughtError:
    step = ReasoningStep(0, len(text), text, kind or StepKind.ATTRIBUTION)
    return TaughtError(tuple(before), step, error, diagnosis, guidance)


@dataclass(frozen=True)
class TaughtError:
    """A wrong step after right ones ``before`` it, with what a verifier is to say of it."""

    before: tuple[ReasoningStep, ...]
    step: ReasoningStep
    error: ErrorType
    diagnosis: str
    guidance: str
