"""Steps of a reasoning: read, their errors, and what is known of them.

Answers are written in four ways: with tags ("Step 3: … (Attribution)"), numbered, with bullets, or
as free text, whose sentences are its steps.

After Kwon et al. 2026, "SAFE", Table 9 and the evaluation protocol of appendix A.9: a useless step
is reported before a false one, and of several errors the first in the protocol's order.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from spanlab.schema import Item, Span
from spanlab.text.tokens import sentences

ANSWER_MARK: Final = "####ANSWER:"


class StepKind(StrEnum):
    """What a step does: state one fact of one passage, conclude from steps, or give the answer."""

    ATTRIBUTION = "Attribution"
    LOGICAL = "Logical"
    FINAL_ANSWER = "Final Answer"


@dataclass(frozen=True)
class ReasoningStep:
    """A step: characters ``[start, end)`` of the answer, without number and tag.

    ``kind`` is None where the answer does not say it.
    """

    start: int
    end: int
    text: str
    kind: StepKind | None = None


# What may repeat is bounded: models repeat spaces and marks without end.
_LEAD = r"^[ \t]{0,8}[>*_#]{0,4}[ \t]{0,2}"

_STEP = re.compile(
    _LEAD + r"step[ \t]{0,3}\d{1,3}[*_]{0,3}[ \t]{0,3}[:.)–—-][*_]{0,3}", re.I | re.M
)

_NUMBER = re.compile(_LEAD + r"\d{1,3}[.)][ \t]", re.M)
_BULLET = re.compile(r"^[ \t]{0,8}[-*•‣·–][ \t]", re.M)

_TAG = re.compile(
    r"[*_`]{0,3}[(\[][ \t]{0,2}(attribution|logical|final[ \t_-]?answer)[ \t]{0,2}[)\]]"
    r"[*_`]{0,3}\.?",
    re.I,
)

_ANSWER = re.compile(r"#{2,6}[ \t]{0,4}answer[ \t]{0,4}[:：][*_]{0,3}", re.I)
_PARAGRAPH = re.compile(r"\n[ \t]{0,8}\n(?=\S)")

_KINDS: Final = {
    "attribution": StepKind.ATTRIBUTION,
    "logical": StepKind.LOGICAL,
    "finalanswer": StepKind.FINAL_ANSWER,
}


def steps_in(answer: str, lang: str) -> tuple[ReasoningStep, ...]:
    """Read an answer into its steps.

    Args:
        answer: the text as it is.
        lang: BCP 47 tag of the answer, for the sentences of free text.

    Returns:
        The steps in order; empty for a blank answer. In free text the kind is known only of a
        final answer with its mark.
    """
    marks = _marks(answer)
    if not marks:
        if _TAG.search(answer):
            return tuple(_tagged(answer, 0, len(answer)))
        return tuple(_free(answer, 0, len(answer), lang))
    starts = [mark.end() for mark in marks]
    ends = [*(mark.start() for mark in marks[1:]), len(answer)]
    before = _free(answer, 0, marks[0].start(), lang)
    steps = [step for step in before if not step.text.endswith((":", "："))]
    for start, end in zip(starts, ends, strict=True):
        steps += _tagged(answer, start, end)
    return tuple(steps)


def written(steps: Iterable[ReasoningStep]) -> tuple[str, list[ReasoningStep]]:
    """Return the answer that has these steps, numbered and tagged, and the steps as it has them."""
    lines: list[str] = []
    places: list[ReasoningStep] = []
    at = 0
    for number, step in enumerate(steps, start=1):
        start = at + len(f"Step {number}: ")
        places.append(ReasoningStep(start, start + len(step.text), step.text, step.kind))
        tag = f" ({step.kind})" if step.kind else ""
        lines.append(f"Step {number}: {step.text}{tag}")
        at += len(lines[-1]) + 1
    return "\n".join(lines), places


def first_step(reply: str) -> ReasoningStep | None:
    """Return the one step of a generator's reply, whatever it says before and after it.

    Returns:
        What follows the first mark or precedes the first tag; the first line of a reply without
        either. None for a blank reply.
    """
    marks = _marks(reply)
    start = marks[0].end() if marks else 0
    end = marks[1].start() if len(marks) > 1 else len(reply)
    step = next(_tagged(reply, start, end), None)
    if step is None or step.kind is not None:
        return step
    line = reply.find("\n", step.start, step.end)
    return step if line < 0 else _step(reply, step.start, line, None)


def final_answer(text: str) -> str | None:
    """Return the value of a final answer, without its mark and tag; None for any other step."""
    mark = _ANSWER.search(text)
    if mark is None:
        return None
    value = _TAG.split(text[mark.end() :], maxsplit=1)[0].strip()
    return value.partition("\n")[0].strip(" \t*_`")


def _marks(answer: str) -> list[re.Match[str]]:
    """Return what begins the steps, for the first way of writing that the answer has."""
    marks = list(_STEP.finditer(answer))
    for way in (_NUMBER, _BULLET):
        if not marks and len(listed := list(way.finditer(answer))) > 1:
            marks = listed
    return marks


def _tagged(answer: str, start: int, end: int) -> Iterator[ReasoningStep]:
    """Yield the steps of a part: what ends with a tag, and paragraphs."""
    at = start
    for tag in (*_TAG.finditer(answer, start, end), None):
        stop = end if tag is None else tag.start()
        paragraphs = [*(gap.start() for gap in _PARAGRAPH.finditer(answer, at, stop)), stop]
        kind = None if tag is None else _KINDS[re.sub(r"[\s_-]", "", tag[1].casefold())]
        for last in paragraphs:
            step = _step(answer, at, last, kind if last == stop else None)
            if step is not None:
                yield step
            at = last
        at = end if tag is None else tag.end()


def _free(answer: str, start: int, end: int, lang: str) -> Iterator[ReasoningStep]:
    for place in sentences(answer[start:end], lang):
        step = _step(answer, start + place.start, start + place.end, None)
        if step is not None:
            yield step


def _step(answer: str, start: int, end: int, kind: StepKind | None) -> ReasoningStep | None:
    """Return the step at some characters, without space and marks around; None if nothing is."""
    text = answer[start:end]
    start += len(text) - len(text.lstrip(" \t\r\n*_"))
    text = answer[start:end].rstrip(" \t\r\n*_")
    if not text:
        return None
    if final_answer(text) is not None:
        kind = StepKind.FINAL_ANSWER
    return ReasoningStep(start, start + len(text), text, kind)


class ErrorType(StrEnum):
    """What can be wrong with a step, in the order of the protocol.

    ``MISSING_EVIDENCE`` is the paper's extension for incomplete evidence (§5, finding 5). It stands
    before ``UNSUPPORTED``, of which it names the cause.
    """

    WRONG_CONCLUSION = "Wrong Conclusion"  # a final answer that does not follow from the steps
    OVERTHINKING = "Overthinking"  # the steps before give the answer already
    OFF_TOPIC = "Off-topic"  # true or not, it does not lead to the answer
    REDUNDANCY = "Redundancy"  # says nothing that the steps before do not say
    INEFFICIENCY = "Inefficiency"  # plans or sums up; states no fact and concludes nothing
    CONTRADICTORY = "Contradictory"  # a passage says otherwise
    MISSING_EVIDENCE = "Missing Evidence"  # no passage says what is needed here
    UNSUPPORTED = "Unsupported"  # the passage that it cites does not say so
    INFORMATION_MISS = "Information Miss"  # says that something is missing which is there
    PREMATURE_ATTRIBUTION = "Premature Attribution"  # of an entity not connected to the question
    LOGICAL_FALLACY = "Logical Fallacy"  # does not follow from the steps before

    @property
    def family(self) -> ErrorFamily:
        """The group that the error belongs to."""
        return _FAMILIES[self]


ATTRIBUTION: Final = (
    ErrorType.CONTRADICTORY,
    ErrorType.MISSING_EVIDENCE,
    ErrorType.UNSUPPORTED,
    ErrorType.INFORMATION_MISS,
    ErrorType.PREMATURE_ATTRIBUTION,
)

PROCEDURAL: Final = (
    ErrorType.OVERTHINKING,
    ErrorType.OFF_TOPIC,
    ErrorType.REDUNDANCY,
    ErrorType.INEFFICIENCY,
)


class ErrorFamily(StrEnum):
    """The groups of errors."""

    PROCEDURAL = "Procedural"
    ATTRIBUTION = "Attribution"
    LOGICAL = "Logical"
    FINAL_ANSWER = "Final Answer"


_FAMILIES: Final = {
    **dict.fromkeys(PROCEDURAL, ErrorFamily.PROCEDURAL),
    **dict.fromkeys(ATTRIBUTION, ErrorFamily.ATTRIBUTION),
    ErrorType.LOGICAL_FALLACY: ErrorFamily.LOGICAL,
    ErrorType.WRONG_CONCLUSION: ErrorFamily.FINAL_ANSWER,
}

_ORDER: Final = {
    StepKind.ATTRIBUTION: (*PROCEDURAL, *ATTRIBUTION),
    StepKind.LOGICAL: (*PROCEDURAL, ErrorType.LOGICAL_FALLACY),
    StepKind.FINAL_ANSWER: (ErrorType.WRONG_CONCLUSION,),
}

_OF_THE_KIND: Final = {  # what a false step of a kind is called, whatever else it was called
    StepKind.ATTRIBUTION: ErrorType.UNSUPPORTED,
    StepKind.LOGICAL: ErrorType.LOGICAL_FALLACY,
    StepKind.FINAL_ANSWER: ErrorType.WRONG_CONCLUSION,
}


def first_error(kind: StepKind, errors: Collection[ErrorType]) -> ErrorType | None:
    """Return the error to report of a step.

    Args:
        kind: what the step does.
        errors: everything that was found wrong with it.

    Returns:
        The first error in the order of the protocol for steps of this kind. An error that such a
        step cannot have stands for the one it can: a conclusion that contradicts a passage is a
        logical fallacy. A final answer is never useless. None if nothing is wrong.
    """
    in_order = (error for error in _ORDER[kind] if error in errors)
    false = any(error.family is not ErrorFamily.PROCEDURAL for error in errors)
    return next(in_order, _OF_THE_KIND[kind] if false else None)


# They sign; the first is also where ``meta`` has the result.
BENCHMARK: Final = "benchmark-verification"
IDEAL: Final = "ideal-trajectory"
_TYPES: Final = {str(error): error for error in ErrorType}


def spans_on(step: ReasoningStep, spans: Sequence[Span]) -> list[Span]:
    """Return the spans that touch a step."""
    return [span for span in spans if span.start < step.end and step.start < span.end]


def error_marked(step: ReasoningStep, spans: Sequence[Span]) -> ErrorType | None:
    """Return the type of error that spans give a step.

    Args:
        step: the step; one of unknown kind counts as attribution.
        spans: an annotation's, whose labels are types of error; one without such a label says
            that the step is wrong and nothing more.

    Returns:
        The first in the order of the protocol; None for a step without a span.
    """
    errors = {_TYPES.get(span.label or "", ErrorType.UNSUPPORTED) for span in spans_on(step, spans)}
    return first_error(step.kind or StepKind.ATTRIBUTION, errors)


def right_answers(item: Item) -> tuple[str, ...]:
    """Return the right answers that an item's ``meta`` has as ``answers``; empty for none."""
    given = item.meta.get("answers")
    return tuple(map(str, given)) if isinstance(given, list | tuple) else ()


def supporting(item: Item) -> tuple[int, ...]:
    """Return the indices of the passages that support an item's answer; all if none is named."""
    named = item.meta.get("gold_titles")
    titles = set(map(str, named)) if isinstance(named, list | tuple) else set()
    indices = tuple(at for at, passage in enumerate(item.passages) if passage.title in titles)
    return indices or tuple(range(len(item.passages)))


def flag_of(item: Item) -> str | None:
    """Return why an item's question has been found unverifiable; None if it has not."""
    result = item.meta.get(BENCHMARK)
    if isinstance(result, dict) and result.get("verified") is False:
        return str(result.get("reason", "unverifiable"))
    return None
