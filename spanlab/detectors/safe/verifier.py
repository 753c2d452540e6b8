"""One step: checks that cost nothing, sums done again, and a model.

Each check says by which rule it found something. It keeps silent wherever a reader could disagree:
a step that it reports is wrong.
"""

from __future__ import annotations

import operator
import re
from calendar import month_name
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal, DivisionByZero, InvalidOperation
from typing import Final, NamedTuple

import dspy

from spanlab.detectors.safe.steps import (
    ErrorType,
    ReasoningStep,
    StepKind,
    final_answer,
    first_error,
    written,
)
from spanlab.scorers import RIGHT
from spanlab.text import terms

NO_STEPS = "(none yet)"


@dataclass(frozen=True)
class VerifiedStep:
    """What is said of a step.

    ``kind`` is what the step does, as it says itself or as the verifier sees it. ``sentence`` is
    what of a passage settles it, ``words`` are the wrong words of the step, ``query`` is what to
    search for where evidence is missing; each may be empty. ``free`` says that no model was asked.
    """

    error: ErrorType | None
    diagnosis: str
    guidance: str
    kind: StepKind = StepKind.ATTRIBUTION
    sentence: str = ""
    words: tuple[str, ...] = ()
    query: str = ""
    free: bool = False

    @property
    def verdict(self) -> str:
        """The type of error; ``RIGHT`` for a right step."""
        return RIGHT if self.error is None else str(self.error)

    @property
    def reason(self) -> str:
        """The diagnosis."""
        return self.diagnosis


async def verified(
    step: ReasoningStep,
    earlier: Sequence[ReasoningStep],
    passages: int,
    ask: Callable[[str], Awaitable[dspy.Prediction]],
    *,
    free: bool = True,
) -> VerifiedStep:
    """Verify a step, without a model where its error is certain.

    Args:
        step: the step.
        earlier: the steps before it.
        passages: how many passages there are.
        ask: ``ask(steps)`` has a model verify the last of the steps; ``ruling`` is its answer.
        free: whether checks without a model come first.

    Raises:
        SpanlabError: the model gave no answer that can be used.
    """
    flaw = flaw_in(step, earlier, passages) if free else None
    if flaw is not None:
        kind = step.kind or StepKind.ATTRIBUTION
        return VerifiedStep(flaw.error, flaw.diagnosis, flaw.guidance, kind, free=True)
    ruling = (await ask(listed([*earlier, step]))).ruling
    kind = step.kind or ruling.kind or StepKind.ATTRIBUTION
    return VerifiedStep(
        first_error(kind, ruling.errors),
        ruling.diagnosis.strip(),
        ruling.guidance.strip(),
        kind,
        ruling.sentence.strip(),
        tuple(ruling.words),
        getattr(ruling, "query", "").strip(),  # only where somebody searches
    )


def listed(steps: Sequence[ReasoningStep]) -> str:
    """Return steps as a prompt shows them: a list that grows at its end alone."""
    return written(steps)[0] or NO_STEPS


@dataclass(frozen=True)
class StepFlaw:
    """An error with the rule that a step breaks, and how to mend it."""

    error: ErrorType
    diagnosis: str
    guidance: str


def flaw_in(
    step: ReasoningStep, earlier: Sequence[ReasoningStep], passages: int
) -> StepFlaw | None:
    """Return what is certainly wrong with a step.

    Args:
        step: the step; one of unknown kind counts as attribution.
        earlier: the steps before it.
        passages: how many passages there are; 0 if they are not known.

    Returns:
        The first flaw in the order of the protocol; None if nothing is certain.
    """
    by_error = {flaw.error: flaw for flaw in _flaws(step, earlier, passages)}
    kind = step.kind or StepKind.ATTRIBUTION
    error = first_error(kind, by_error.keys())
    if error is None:
        return None
    known = by_error.get(error) or next(iter(by_error.values()))
    return StepFlaw(error, known.diagnosis, known.guidance)


def _flaws(
    step: ReasoningStep, earlier: Sequence[ReasoningStep], passages: int
) -> Iterator[StepFlaw]:
    if step.kind is StepKind.FINAL_ANSWER:
        if not final_answer(step.text):
            yield StepFlaw(
                ErrorType.WRONG_CONCLUSION,
                "A final answer has a value: this one has none.",
                "Give the value that the steps lead to, as ####ANSWER: <value>.",
            )
        return
    words = _words(step.text)
    for number, other in enumerate(earlier, start=1):
        if words and _words(other.text) == words:
            yield StepFlaw(
                ErrorType.REDUNDANCY,
                f"A step says something new: this one repeats step {number} word for word.",
                f"Do not repeat step {number}; take the next action.",
            )
            break
    if not words or _PLAN.match(step.text):
        yield StepFlaw(
            ErrorType.INEFFICIENCY,
            "A step states one fact or draws one conclusion: this one has no subject, relation "
            "and object.",
            "State one fact of one passage, or one conclusion from the steps.",
        )
    missing = [number for number in cited(step.text) if not 0 < number <= passages]
    if missing and passages:
        yield StepFlaw(
            ErrorType.UNSUPPORTED,
            f"A step cites a passage that exists: there is no passage {missing[0]} "
            f"(there are {passages}).",
            f"Cite one of the passages 1 to {passages}.",
        )
    wrong = next(wrong_results(step.text), None)
    if wrong is not None:
        yield StepFlaw(
            ErrorType.LOGICAL_FALLACY,
            f"What can be recomputed has to be right: {wrong}",
            f"Correct this: {wrong}",
        )


# A plan says what it will look for, and nothing that could be true or false: after the verb comes
# no further clause and no result.
_PLAN = re.compile(
    r"(?:(?:first|next|now|then|so|okay|ok|well),?\s+)?"
    r"(?:let me|let us|let's|let’s|i will|i'll|i’ll|i need to|i am going to|i'm going to|"
    r"i’m going to|we will|we'll|we’ll|we need to|we should|i should|the next step is to)\s+"
    r"(?:(?:now|first|next|then|also|just)\s+)?"
    r"(?:analy[sz]e|begin|break|calculate|check|collect|compare|compute|continue|determine|"
    r"discover|examine|explore|extract|figure|find|focus|gather|get|go|identify|investigate|know|"
    r"learn|locate|look|move|plan|proceed|read|retrieve|review|scan|search|see|start|summari[sz]e|"
    r"take|think|try|turn|verify|work)\b"
    r"(?!.*(?:\s-\s|\b(?:that|as|because|since|conclude|to be|being|equals?|gives?|yields?|"
    r"says?|said|states?|stated|shows?|mentions?|tells?)\b))"
    r"[^.!?;:,(–—=]*[.!…]*\s*$",
    re.I,
)


CITATION = re.compile(r"^according to passage \d{1,4}[,:]?\s+", re.I)  # as steps begin


_CITED = re.compile(r"\bpassages?\s+(\d{1,4}(?:\s*(?:,|and|&|-|–)\s*\d{1,4})*)\b", re.I)


def _words(text: str) -> tuple[str, ...]:
    return tuple(terms(text))


def cited(text: str) -> Iterator[int]:
    """Yield the numbers of the passages that a step cites, of a range its ends."""
    for citation in _CITED.finditer(text):
        yield from map(int, re.findall(r"\d+", citation[1]))


def renumbered(text: str, number: Callable[[int], int]) -> str:
    """Return a step whose citations have other numbers: ``number`` of each that they have."""
    return _CITED.sub(
        lambda found: re.sub(r"\d+", lambda match: str(number(int(match[0]))), found[0]), text
    )


_VALUE = r"\d[\d,]{0,20}(?:\.\d{1,9})?"


_NOT_WITHIN = r"(?<![\w.,/:-])"  # a date, a version, a range


_ENDS = r"(?!\w|[.,/-]\d|\s*(?:[-+*/÷×=%]|(?:million|billion|trillion|thousand)\b))"


_SUM = re.compile(
    rf"{_NOT_WITHIN}({_VALUE})\s*([-+−–*×x·/÷])\s*({_VALUE})\s*(?:=|equals|is equal to)\s*"
    rf"([-−]?{_VALUE}){_ENDS}"
)


_OPERATORS: Final[dict[str, Callable[[Decimal, Decimal], Decimal]]] = {
    **dict.fromkeys("+", operator.add),
    **dict.fromkeys("-−–", operator.sub),
    **dict.fromkeys("*×x·", operator.mul),
    **dict.fromkeys("/÷", operator.truediv),
}


_COMPARED = re.compile(
    rf"{_NOT_WITHIN}({_VALUE})\s+(?:is|was)\s+(?:(greater|larger|more|higher|bigger)|"
    rf"(?:less|smaller|fewer|lower))\s+than\s+({_VALUE}){_ENDS}",
    re.I,
)


_MONTHS: Final = {
    name: number
    for number in range(1, 13)
    for name in (month_name[number].casefold(), month_name[number][:3].casefold())
} | {"sept": 9}


_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))


_DATE = (
    rf"(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTH})\.?,?\s+\d{{4}}"
    rf"|(?:{_MONTH})\.?\s+\d{{1,2}}(?:st|nd|rd|th)?,?\s+\d{{4}}"
    r"|\d{4}-\d{2}-\d{2}|\d{4})"
)


_ONE_DATE = re.compile(_DATE, re.I)


_ORDERED = re.compile(
    rf"(?<![\w,.-])(?P<left>{_DATE})\)?\s+(?:is|was|comes|came|falls|fell)\s+"
    r"(?:(?P<before>before|earlier than|prior to)|after|later than)\s+"
    rf"(?P<right>{_DATE})(?![\w-]|[.,]\d)",
    re.I,
)


_WORD = r"[^\W\d_][\w'’.-]{0,30}"


_NAMED = re.compile(rf"(?P<name>{_WORD}(?:\s{_WORD}){{0,5}})\s\((?P<date>{_DATE})\)", re.I)


_CAME = (
    "died|was born|was released|came out|was founded|was established|was built|premiered|"
    "was published|was formed"
)


_CONCLUDED = re.compile(
    rf"\b(?:(?:{_CAME})\s+(?:earlier|later|first|last)|(?:is|was)\s+(?:older|younger))\b",
    re.I,
)


class DatePeriod(NamedTuple):
    """The first and the last day that a date may mean."""

    first: date
    last: date

    def precedes(self, other: DatePeriod) -> bool:
        """Say whether every day of this one is before every day of the other."""
        return self.last < other.first


def wrong_results(text: str) -> Iterator[str]:
    """Yield what a step computes or compares wrongly, each with what is right.

    Read are sums of two numbers, "12 is less than 9", "1930 is after 1946", and the conclusion
    about two names that have their dates in brackets.
    """
    yield from _sums(text)
    yield from _comparisons(text)
    yield from _dates(text)
    named = list(_NAMED.finditer(text))
    if len(named) == 2:
        yield from _conclusion(text[named[1].end() :], named)


def period(text: str) -> DatePeriod | None:
    """Return the days that a date means, such as "10 April 1930" or "1930"; None for others."""
    return _period(text) if _ONE_DATE.fullmatch(text.strip()) else None


def _sums(text: str) -> Iterator[str]:
    for match in _SUM.finditer(text):
        if text[: match.start()].rstrip()[-1:] in {*_OPERATORS, "(", "="} - {"x"}:
            continue  # the end of a longer sum
        left, right, said = (_number(match[at]) for at in (1, 3, 4))
        try:
            value = _OPERATORS[match[2]](left, right)
        except (DivisionByZero, InvalidOperation):
            continue
        # What was rounded to fewer digits is not wrong.
        if abs(value - said) >= Decimal(10) ** int(said.as_tuple().exponent):
            yield f"{match[0]}, where the result is {round(value, 6).normalize():f}"


def _comparisons(text: str) -> Iterator[str]:
    for match in _COMPARED.finditer(text):
        left, right = _number(match[1]), _number(match[3])
        if left == right or (left > right) is not bool(match[2]):
            yield f"“{match[0]}” is not so"


def _dates(text: str) -> Iterator[str]:
    for match in _ORDERED.finditer(text):
        left, right = _period(match["left"]), _period(match["right"])
        if not match["before"]:
            left, right = right, left
        if right.precedes(left) or (left == right and left.first == left.last):
            yield f"“{match[0]}” is not so"


def _conclusion(text: str, named: Sequence[re.Match[str]]) -> Iterator[str]:
    """Yield the conclusion about two named dates if it is the wrong way round."""
    concluded = list(_CONCLUDED.finditer(text))
    negated = re.search(r"\bnot?\b|n['’]t\b", text, re.I)
    if len(concluded) != 1 or negated:
        return
    subject = re.findall(r"[\w'’.-]+", text[: concluded[0].start()])
    last_names = [person["name"].split()[-1] for person in named]
    about = [name in subject for name in last_names]
    left, right = (_period(event["date"]) for event in named)
    certain = left.precedes(right) or right.precedes(left)
    if not certain or sum(about) != 1 or last_names[0] == last_names[1]:
        return
    said_first = re.search("earlier|first|older", concluded[0][0], re.I) is not None
    first = 0 if left.precedes(right) else 1
    if about[first] is not said_first:
        yield f"“{concluded[0][0]}”, where {named[first]['date']} is before the other date"


def _number(text: str) -> Decimal:
    return Decimal(text.rstrip(",").replace(",", "").replace("−", "-"))


def _period(text: str) -> DatePeriod:
    """Read a date; where there is no such day it is the whole year."""
    year = max(int(re.findall(r"\d{4}", text)[0]), 1)
    iso = re.fullmatch(r"\d{4}-(\d{2})-(\d{2})", text)
    month = re.search(_MONTH, text, re.I)
    number = re.search(r"\b\d{1,2}(?!\d)", text)
    try:
        if iso:
            day = date(year, int(iso[1]), int(iso[2]))
        elif month and number:
            day = date(year, _MONTHS[month[0].casefold()], int(number[0]))
        else:
            return DatePeriod(date(year, 1, 1), date(year, 12, 31))
    except ValueError:
        return DatePeriod(date(year, 1, 1), date(year, 12, 31))
    return DatePeriod(day, day)
