"""Examples to train a verifier on: judged steps, ideal ones, and right ones made wrong (§3.3).

What people corrected in Review are the hard cases: where their type of error is not the verifier's.
An ideal reasoning (``ideal``) that nobody has judged counts as right.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Final, Literal

from spanlab.detection.common.context import context
from spanlab.models.adapters import ChatAnswers
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status
from spanlab.systems.safe.injection import TaughtError, injected
from spanlab.systems.safe.prompts import SearchRuling, StepRuling, verifying_prompt
from spanlab.systems.safe.steps import (
    IDEAL,
    ErrorType,
    ReasoningStep,
    StepKind,
    error_marked,
    spans_on,
    steps_in,
)
from spanlab.systems.safe.teacher import NOTHING_TAUGHT, HardCase, TaughtItem
from spanlab.systems.safe.trace import ReasoningTraceStep
from spanlab.systems.safe.verifier import CITATION, cited, listed, renumbered
from spanlab.text.terms import terms

Origin = Literal["reviewed", "corrected", "ideal", "injected"]
_KIND: Final = StepKind.ATTRIBUTION  # of a step that does not say it
_BUDGET: Final = 60_000  # characters of passages, as detectors show them
_WITH_SEARCH: Final = 0.5  # share of the examples whose prompt offers to search
_NEXT: Final = "Take the next step."
_MEND: Final = "Write this step again without that error."


@dataclass(frozen=True)
class VerifierExample:
    """A prompt of the verifier and the right reply.

    ``error`` is None for a right step; ``origin`` says who judged it: a person like the verifier,
    a person otherwise than the verifier, the free checks of an ideal reasoning, or nobody, for an
    error that was put in on purpose.
    """

    item: str
    question: str
    step: int
    error: ErrorType | None
    origin: Origin
    messages: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class _JudgedStep:
    """What is right to say of a step."""

    error: ErrorType | None
    diagnosis: str
    guidance: str
    kind: StepKind
    sentence: str = ""
    words: tuple[str, ...] = ()
    query: str = ""


def examples_of(
    record: Record,
    annotators: Sequence[str] = (),
    *,
    seed: int | None = 0,
    taught: TaughtItem = NOTHING_TAUGHT,
) -> Iterator[VerifierExample]:
    """Yield the examples that an item gives.

    Args:
        record: an answer that reasons, with what people and the verifier said of it.
        annotators: whose judgement is right; empty for all persons and gold labels.
        seed: which right steps are also made wrong, once for every type that needs no model: a
            repetition, a plan, a passage that does not say it, a passage that is taken away,
            another final answer. None makes none wrong.
        taught: wrong steps that a teacher made of the item's right ones, and what it says of hard
            cases.

    Returns:
        Of every annotation that counts one example a step; none without one.
    """
    item = record.item
    steps = steps_in(item.answer, item.lang)
    judged_steps = _steps_traced(record)
    for annotation in _counted(record, annotators):
        ideal = annotation.annotator == IDEAL
        right: list[ReasoningStep] = []
        for at, step in enumerate(steps):
            verifier = judged_steps.get(step.start)
            judged = _judge_steps(step, annotation, verifier, taught)
            differs = verifier is not None and verifier.error != judged.error
            origin: Origin = "ideal" if ideal else "corrected" if differs else "reviewed"
            yield _example(item, steps[: at + 1], judged, origin)
            if judged.error is None and len(right) == at:
                right.append(step)
        if seed is not None:
            dice = random.Random(f"{seed}:{item.id}")
            for error in injected(item, right, dice):
                yield _put_in(item, error)
            lacking = _without_evidence(item, right, judged_steps, dice)
            if lacking is not None:
                yield _example(*lacking, "injected")
            seed = None  # once for an item, however many people judged it
    for error in taught.errors:
        yield _put_in(item, error)


def _put_in(item: Item, put: TaughtError) -> VerifierExample:
    judged = _JudgedStep(put.error, put.diagnosis, put.guidance, put.step.kind or _KIND)
    return _example(item, [*put.before, put.step], judged, "injected")


def hard_cases(record: Record, annotators: Sequence[str] = ()) -> Iterator[HardCase]:
    """Yield the steps that somebody who counts judges otherwise than the verifier.

    A step that is wrong and that no verifier has judged is one, too: nobody has said why.
    """
    steps = steps_in(record.item.answer, record.item.lang)
    judged_steps = _steps_traced(record)
    for annotation in _counted(record, annotators):
        for at, step in enumerate(steps):
            spans = spans_on(step, annotation.spans)
            error, verifier = error_marked(step, spans), judged_steps.get(step.start)
            if error != (None if verifier is None else verifier.error):
                note = next((span.note for span in spans if span.note), "")
                yield HardCase(steps[: at + 1], error, note)


def right_steps(record: Record, annotators: Sequence[str] = ()) -> tuple[ReasoningStep, ...]:
    """Return the steps of an item before the first that somebody who counts calls wrong.

    Returns:
        Those of the annotation that has most of them; empty if nobody who counts has finished it.
    """
    steps = steps_in(record.item.answer, record.item.lang)
    counted = _counted(record, annotators)
    beginnings = (tuple(takewhile(partial(_is_right, counting), steps)) for counting in counted)
    return max(beginnings, key=len, default=())


def _is_right(annotation: Annotation, step: ReasoningStep) -> bool:
    return error_marked(step, annotation.spans) is None


def _counted(record: Record, annotators: Sequence[str]) -> list[Annotation]:
    """Return the annotations that say what is right; an ideal one where nobody else says it."""
    done = [annotation for annotation in record.annotations if annotation.status is Status.DONE]
    if annotators:
        return [annotation for annotation in done if annotation.annotator in annotators]
    judged = [
        annotation
        for annotation in done
        if annotation.kind in {AnnotatorKind.PERSON, AnnotatorKind.GOLD}
    ]
    return judged or [annotation for annotation in done if annotation.annotator == IDEAL]


def _steps_traced(record: Record) -> dict[int, ReasoningTraceStep]:
    """Return what the verifier said of the steps, by where they begin."""
    return {
        step.places[0].start: step
        for annotation in record.annotations
        for step in annotation.trace
        if isinstance(step, ReasoningTraceStep) and step.stands and step.places
    }


def _judge_steps(
    step: ReasoningStep,
    annotation: Annotation,
    verifier: ReasoningTraceStep | None,
    taught: TaughtItem,
) -> _JudgedStep:
    spans = spans_on(step, annotation.spans)
    kind = step.kind or StepKind.ATTRIBUTION
    error = error_marked(step, spans)
    if verifier is not None and verifier.error == error:
        diagnosis, guidance = verifier.diagnosis, verifier.guidance
    elif feedback := taught.feedback.get((step.start, error)):
        diagnosis, guidance = feedback.diagnosis, feedback.guidance
    elif error is None:
        diagnosis, guidance = "The step is right.", _NEXT
    else:
        notes = (span.note for span in spans if span.note and span.label == error)
        diagnosis, guidance = next(notes, f"The step is wrong: {error}."), _MEND
    return _JudgedStep(error, diagnosis, guidance, kind, _sentence(spans), _words(step, spans))


def _sentence(spans: Sequence[Span]) -> str:
    return next((quote.text for span in spans for quote in span.evidence), "")


def _words(step: ReasoningStep, spans: Sequence[Span]) -> tuple[str, ...]:
    inside = [span for span in spans if step.start <= span.start and span.end <= step.end]
    return tuple(span.text for span in inside if len(span.text) < len(step.text))


def _without_evidence(
    item: Item,
    right: Sequence[ReasoningStep],
    trace: Mapping[int, ReasoningTraceStep],
    dice: random.Random,
) -> tuple[Item, list[ReasoningStep], _JudgedStep] | None:
    """Take the passage away that a right step cites, so that what the step states is missing.

    Returns:
        The item with the other passages, the steps up to this one with their numbers, the last
        without its citation, and what is right to say of it; None if every passage is needed by
        an earlier step, or another one has all words of the step, too.
    """
    able = [at for at, step in enumerate(right) if _is_only_source(item, right, at)]
    if not able:
        return None
    at = dice.choice(able)
    (gone,) = set(cited(right[at].text))
    others = [passage for number, passage in enumerate(item.passages, start=1) if number != gone]
    steps = [_cited_without(step, gone) for step in right[:at]]
    text = CITATION.sub("", right[at].text)
    steps.append(ReasoningStep(0, len(text), text, right[at].kind))
    earlier = trace.get(right[at - 1].start) if at else None
    due = earlier.guidance if earlier is not None and earlier.error is None else ""
    query = due if due not in {"", _NEXT} else text
    judged = _JudgedStep(
        ErrorType.MISSING_EVIDENCE,
        "No passage says this.",
        f"Search for what is missing: {query}",
        right[at].kind or _KIND,
        query=query,
    )
    # Without what was retrieved: its indices are those of the passages before.
    kept = item.model_copy(update={"passages": tuple(others), "retrievals": (), "citations": ()})
    return kept, steps, judged


def _is_only_source(item: Item, right: Sequence[ReasoningStep], at: int) -> bool:
    """Say whether the passage that a step cites is the only one that can have told it."""
    numbers = set(cited(right[at].text))
    if right[at].kind is not StepKind.ATTRIBUTION or len(numbers) != 1 or len(item.passages) < 2:
        return False
    text = CITATION.sub("", right[at].text)
    before = {number for step in right[:at] for number in cited(step.text)}
    if numbers & {*before, *cited(text)}:
        return False
    known_terms = set(terms(" ".join((item.question, *(step.text for step in right[:at])))))
    new = set(terms(text)) - known_terms
    others = (
        passage for number, passage in enumerate(item.passages, start=1) if number not in numbers
    )
    return bool(new) and not any(
        new <= set(terms(f"{other.title or ''} {other.text}")) for other in others
    )


def _cited_without(step: ReasoningStep, gone: int) -> ReasoningStep:
    """Return a step whose citations count the passages after one that is gone."""
    text = renumbered(step.text, lambda number: number - (number > gone))
    return ReasoningStep(0, len(text), text, step.kind)


def _example(
    item: Item, steps: Sequence[ReasoningStep], judged: _JudgedStep, origin: Origin
) -> VerifierExample:
    passages = context(item, "given", _BUDGET).text
    adapter = ChatAnswers()
    inputs = {"passages": passages, "question": item.question, "steps": listed(steps)}
    # The verifier is asked with and without a search; half of what is alike in both is for each.
    dice = random.Random(f"{item.id}:{len(steps)}:{judged.error}")
    searches = judged.error is ErrorType.MISSING_EVIDENCE or dice.random() < _WITH_SEARCH
    prompt = verifying_prompt(searches=searches)
    messages = adapter.format(prompt, [], inputs)
    ruling = {
        "diagnosis": judged.diagnosis,
        "errors": [] if judged.error is None else [judged.error],
        "guidance": judged.guidance,
        "kind": judged.kind,
        "sentence": judged.sentence,
        "words": judged.words,
    }
    ruled = SearchRuling(**ruling, query=judged.query) if searches else StepRuling(**ruling)
    reply = adapter.format_assistant_message_content(prompt, {"ruling": ruled})
    return VerifierExample(
        item.id,
        item.question,
        len(steps),
        judged.error,
        origin,
        (*messages, {"role": "assistant", "content": reply.strip()}),
    )
