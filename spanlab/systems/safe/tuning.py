"""What the verifier's and the generator's prompts are tuned on: steps, and questions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from optimizers.examples import (
    LabelledItem,
    LabelSource,
    PartLabel,
    check_source,
    majority,
    sources_of,
)
from optimizers.metrics import ScoredAnswer, shorten
from optimizers.units import TuningUnit
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.detection.building import kit_of
from spanlab.models import Meter
from spanlab.schema import Record
from spanlab.scoring.answers import score_answer
from spanlab.scoring.claims import RIGHT
from spanlab.systems.safe.steps import error_marked, right_answers, steps_in


def labelled_steps(records: Iterable[Record], source: LabelSource) -> Iterator[LabelledItem]:
    """Yield the steps of reasonings that the source has judged, with their types of errors.

    Of several types of one step the most frequent counts, and a step with a tie is passed over.

    Raises:
        UsageError: a vote names nobody.
    """
    check_source(source)
    for record in records:
        item, judges = record.item, sources_of(record, source)
        for number, step in enumerate(steps_in(item.answer, item.lang), start=1):
            counts = Counter(str(error_marked(step, judge.spans) or RIGHT) for judge in judges)
            if error := majority(counts):
                label = PartLabel(id=item.id, text=step.text, verdict=error, number=number)
                yield LabelledItem.of(item, label)


def labelled_questions(records: Iterable[Record], _source: LabelSource) -> Iterator[LabelledItem]:
    """Yield the questions to which the dataset itself has right answers."""
    for record in records:
        item = record.item
        right = "\n".join(right_answers(item))
        if right and item.question.strip():
            yield LabelledItem.of(item, PartLabel(id=item.id, text="", verdict=right))


def _reasoner(spec: DetectorSpec, meter: Meter, settings: Settings) -> object:
    from spanlab.systems.safe.reasoner import ReasonOptions, StepReasoner

    return StepReasoner(kit_of(spec, meter, settings), ReasonOptions())


def judge_answer(gold: str, predicted: str | None, reason: str = "") -> ScoredAnswer:
    """Score an answer to a question by F1 of its words, and say what would be right.

    Args:
        gold: the right answers, a line each.
        predicted: the answer; None where there is none, which scores 0.
        reason: how the answer was reached.
    """
    score = score_answer(predicted or "", gold.splitlines()).f1
    if score == 1.0:
        return ScoredAnswer(score=score, feedback=f"Right: {predicted}.")
    why = f" {shorten(reason)}" if reason else ""
    right = " or ".join(gold.splitlines())
    return ScoredAnswer(
        score=score, feedback=f"The answer was {predicted or 'none'}, right is {right}.{why}"
    )


STEPS = TuningUnit(
    labelled_steps,
    "no item has steps with {labels} types of errors",
    {"type-f1": "macro F1 of types of errors in steps"},
    "types of errors in steps",
    also=("items", "questions"),
)
QUESTIONS = TuningUnit(
    labelled_questions,
    "no item has a question with right answers in its meta (`answers`)",
    {"answer-f1": "F1 of the generator's answers to questions"},
    "answers to questions",
    judge_answer,
    build=_reasoner,
)
