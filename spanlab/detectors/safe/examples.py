"""Examples to train a verifier on: steps that people judged, and right steps made wrong (§3.3).

What people corrected in Review are the hard cases: where their type of error is not the verifier's.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Final, Literal

from spanlab.detectors.common.context import context
from spanlab.detectors.safe.labels import error_marked, spans_on
from spanlab.detectors.safe.prompts import Ruling, VerifyStep
from spanlab.detectors.safe.protocol import ErrorType
from spanlab.detectors.safe.reading import ANSWER_MARK, ReasoningStep, StepKind, steps_in
from spanlab.detectors.safe.teaching import TaughtError
from spanlab.detectors.safe.verifying import listed
from spanlab.lm.adapters import ChatAnswers
from spanlab.schema import Annotation, Item, Kind, Record, Span, Status
from spanlab.trace import ReasoningTraceStep

Origin = Literal["reviewed", "corrected", "injected"]
_KIND: Final = StepKind.ATTRIBUTION  # of a step that does not say it
_BUDGET: Final = 60_000  # characters of passages, as detectors show them
_NEXT: Final = "Take the next step."
_MEND: Final = "Write this step again without that error."


@dataclass(frozen=True)
class VerifierExample:
    """A prompt of the verifier and the right reply.

    ``error`` is None for a right step; ``origin`` says who judged it: a person like the verifier,
    a person otherwise than the verifier, or nobody, for an error that was put in on purpose.
    """

    item: str
    question: str
    step: int
    error: ErrorType | None
    origin: Origin
    messages: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class _Judged:
    """What is right to say of a step."""

    error: ErrorType | None
    diagnosis: str
    guidance: str
    kind: StepKind
    sentence: str = ""
    words: tuple[str, ...] = ()


def examples_of(
    record: Record,
    annotators: Sequence[str] = (),
    *,
    inject: bool = True,
    seed: int = 0,
    taught: Sequence[TaughtError] = (),
) -> Iterator[VerifierExample]:
    """Yield the examples that an item gives.

    Args:
        record: an answer that reasons, with what people and the verifier said of it.
        annotators: whose judgement is right; empty for all persons and gold labels.
        inject: whether right steps are also made wrong, once for every type that needs no model:
            a repetition, a plan, a passage that does not exist, another final answer.
        seed: which steps, and which other answers.
        taught: wrong steps that a teacher made of the item's right ones.

    Returns:
        Of every annotation that counts one example a step; none without one.
    """
    item = record.item
    steps = steps_in(item.answer, item.lang)
    said = _said(record)
    for annotation in record.annotations:
        if not _counts(annotation, annotators):
            continue
        right: list[ReasoningStep] = []
        for at, step in enumerate(steps):
            judged = _judged(step, annotation, said.get(step.start))
            verifier = said.get(step.start)
            differs = verifier is not None and verifier.error != judged.error
            origin: Origin = "corrected" if differs else "reviewed"
            yield _example(item, steps[: at + 1], judged, origin)
            if judged.error is None and len(right) == at:
                right.append(step)
        if inject:
            dice = random.Random(f"{seed}:{item.id}")
            for prefix, broken in _injected(item, right, dice):
                yield _example(item, prefix, broken, "injected")
            inject = False  # once for an item, however many people judged it
    for each in taught:
        told = _Judged(each.error, each.diagnosis, each.guidance, each.step.kind or _KIND)
        yield _example(item, [*each.before, each.step], told, "injected")


def right_steps(record: Record, annotators: Sequence[str] = ()) -> tuple[ReasoningStep, ...]:
    """Return the steps of an item before the first that somebody who counts calls wrong.

    Returns:
        Those of the annotation that has most of them; empty if nobody who counts has finished it.
    """
    steps = steps_in(record.item.answer, record.item.lang)
    counted = (each for each in record.annotations if _counts(each, annotators))
    found = (tuple(takewhile(partial(_is_right, each), steps)) for each in counted)
    return max(found, key=len, default=())


def _is_right(annotation: Annotation, step: ReasoningStep) -> bool:
    return error_marked(step, annotation.spans) is None


def _counts(annotation: Annotation, annotators: Sequence[str]) -> bool:
    if annotation.status is not Status.DONE:
        return False
    if annotators:
        return annotation.annotator in annotators
    return annotation.kind in {Kind.PERSON, Kind.GOLD}


def _said(record: Record) -> dict[int, ReasoningTraceStep]:
    """Return what the verifier said of the steps, by where they begin."""
    return {
        step.places[0].start: step
        for annotation in record.annotations
        for step in annotation.trace
        if isinstance(step, ReasoningTraceStep) and step.stands and step.places
    }


def _judged(
    step: ReasoningStep, annotation: Annotation, verifier: ReasoningTraceStep | None
) -> _Judged:
    spans = spans_on(step, annotation.spans)
    kind = step.kind or StepKind.ATTRIBUTION
    error = error_marked(step, spans)
    if verifier is not None and verifier.error == error:
        diagnosis, guidance = verifier.diagnosis, verifier.guidance
    elif error is None:
        diagnosis, guidance = "The step is right.", _NEXT
    else:
        notes = (span.note for span in spans if span.note and span.label == error)
        diagnosis, guidance = next(notes, f"The step is wrong: {error}."), _MEND
    return _Judged(error, diagnosis, guidance, kind, _sentence(spans), _words(step, spans))


def _sentence(spans: Sequence[Span]) -> str:
    return next((quote.text for span in spans for quote in span.evidence), "")


def _words(step: ReasoningStep, spans: Sequence[Span]) -> tuple[str, ...]:
    inside = [span for span in spans if step.start <= span.start and span.end <= step.end]
    return tuple(span.text for span in inside if len(span.text) < len(step.text))


def _injected(
    item: Item, right: Sequence[ReasoningStep], dice: random.Random
) -> Iterator[tuple[list[ReasoningStep], _Judged]]:
    """Yield beginnings of a right reasoning whose last step is wrong, and what is wrong with it."""
    inner = [step for step in right if step.kind is not StepKind.FINAL_ANSWER]
    if not inner:
        return
    at = dice.randrange(len(inner))
    if at:
        yield _broken(
            *(inner[:at], inner[dice.randrange(at)].text, ErrorType.REDUNDANCY),
            *("It repeats an earlier step.", "Do not repeat it; find out something new."),
        )
    yield _broken(
        *(inner[:at], "Now I will look at the passages again.", ErrorType.INEFFICIENCY),
        *("It announces something and states no fact.", "State one fact of one passage."),
    )
    many = len(item.passages)
    number = many + dice.randint(1, 5)
    yield _broken(
        *(inner[:at], f"According to Passage {number}, {inner[at].text}", ErrorType.UNSUPPORTED),
        *(f"There is no passage {number}.", f"Cite one of the passages 1 to {many}."),
    )
    titles = sorted({each.title for each in item.passages if each.title})
    others = [title for title in titles if title not in right[-1].text]
    if others and right[-1].kind is StepKind.FINAL_ANSWER:
        value = f"{ANSWER_MARK} {dice.choice(others)}"
        yield _broken(
            *(right[:-1], value, ErrorType.WRONG_CONCLUSION, "The steps do not lead to this."),
            f"Give the value that they lead to: {right[-1].text}",
        )


def _broken(
    before: Sequence[ReasoningStep],
    text: str,
    error: ErrorType,
    diagnosis: str,
    guidance: str,
) -> tuple[list[ReasoningStep], _Judged]:
    is_final = error is ErrorType.WRONG_CONCLUSION
    kind = StepKind.FINAL_ANSWER if is_final else StepKind.ATTRIBUTION
    step = ReasoningStep(0, len(text), text, kind)
    return [*before, step], _Judged(error, diagnosis, guidance, kind)


def _example(
    item: Item, steps: Sequence[ReasoningStep], judged: _Judged, origin: Origin
) -> VerifierExample:
    passages = context(item, "given", _BUDGET).text
    adapter = ChatAnswers()
    inputs = {"passages": passages, "question": item.question, "steps": listed(steps)}
    messages = adapter.format(VerifyStep, [], inputs)
    ruling = Ruling(
        diagnosis=judged.diagnosis,
        errors=[] if judged.error is None else [judged.error],
        guidance=judged.guidance,
        kind=judged.kind,
        sentence=judged.sentence,
        words=list(judged.words),
        query="",
    )
    reply = adapter.format_assistant_message_content(VerifyStep, {"ruling": ruling})
    return VerifierExample(
        item.id,
        item.question,
        len(steps),
        judged.error,
        origin,
        (*messages, {"role": "assistant", "content": reply.strip()}),
    )
