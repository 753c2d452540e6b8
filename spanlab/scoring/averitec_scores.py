"""Predictions in the form of AVeriTeC's shared task, scored by its own measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, Field, ValidationError

from spanlab.base.errors import InputError
from spanlab.formats.files import InputFile
from spanlab.formats.reader import input_error
from spanlab.output.figures import counted, named_ids
from spanlab.output.tables import Column, ResultTable
from spanlab.scoring.answers import (
    LABELS,
    MOST_PAIRS,
    AveritecReport,
    GoldClaim,
    PredictedClaim,
    averitec,
)

NO_ANSWER = "No answer could be found."


@dataclass(frozen=True)
class AveritecEvaluation:
    """Scores of predictions.

    ``missing`` are the claims that have none, which are not scored; ``others`` are those whose
    prediction quotes another claim than the gold file has there, as where numbers are wrong.
    """

    report: AveritecReport
    missing: tuple[str, ...]
    others: tuple[str, ...] = ()

    def tables(self) -> tuple[ResultTable, ...]:
        """Return a table with a row for each measure."""
        report = self.report
        figures = {
            **{f"F1 of {label}": f1 for label, f1 in report.f1.items()},
            "Macro F1": report.macro_f1,
            "Accuracy": report.accuracy,
            "Questions, METEOR": report.questions,
            "Questions and answers, METEOR": report.evidence,
            **{f"AVeriTeC score at {level}": score for level, score in report.score.items()},
        }
        n_missing, n_different = (counted(len(ids), "claim") for ids in (self.missing, self.others))
        remarks = {
            f"{n_missing} without a prediction: {named_ids(self.missing)}": self.missing,
            f"{n_different} whose prediction quotes another claim than the gold file has under its "
            f"claim_id: {named_ids(self.others)}": self.others,
        }
        return (
            ResultTable(
                key="averitec",
                title=f"AVeriTeC's measures over {counted(len(report.items), 'claim')}",
                columns=(
                    Column(key="measure", title="Measure"),
                    Column(key="value", title="Value", unit="score"),
                ),
                rows=tuple(figures.items()),
                remarks=tuple(remark for remark, ids in remarks.items() if ids),
            ),
        )

    def figures(self) -> dict[str, Any]:
        """Return all figures."""
        return {**self.report.model_dump(), "missing": self.missing, "others": self.others}


class _ClaimId(BaseModel):
    claim_id: str = Field(coerce_numbers_to_str=True)
    claim: str = ""


class _EvidencePair(BaseModel):
    question: str
    answer: str


class _SubmittedClaim(_ClaimId):
    pred_label: str
    evidence: list[_EvidencePair] = Field(default_factory=list)


class _GoldAnswer(BaseModel):
    answer: str
    answer_type: str | None = None
    boolean_explanation: str | None = None


class _GoldQuestion(BaseModel):
    question: str
    answers: list[_GoldAnswer] = Field(default_factory=list)


class _GoldClaim(_ClaimId):
    claim_id: str = Field(default="", coerce_numbers_to_str=True)  # its position, if it has none
    label: str
    questions: list[_GoldQuestion] = Field(default_factory=list)


Model = TypeVar("Model", bound=_ClaimId)
T = TypeVar("T")


def score_averitec_files(
    predictions: Sequence[Path], golds: Sequence[Path], *, repeat_pairs: bool = False
) -> AveritecEvaluation:
    """Score predictions, joined to gold claims by ``claim_id``.

    Args:
        predictions: JSON or JSONL of the shared task: claim_id, pred_label, evidence.
        golds: AVeriTeC's files with labels, or their parts, as JSON or JSONL; a claim without a
            claim_id, as in the official ones, is numbered by its position, from 0.
        repeat_pairs: repeat each prediction's pairs in turn up to the ten that are read, as in
            Malon 2024, §4.4; that can only raise the scores of its evidence.

    Raises:
        InputError: a line is wrong, an id occurs twice, or no claim is common to both sides.
        UsageError: NLTK, WordNet or its sentence model is not there.
    """
    gold = _by_id(golds, _GoldClaim, lambda line: line.label)
    predicted = _by_id(predictions, _SubmittedClaim, lambda line: line.pred_label)
    common = [number for number in gold if number in predicted]
    if not common:
        raise InputError(
            "no claim is in both files",
            field="claim_id",
            found=f"{next(iter(predicted), 'nothing')!r}… and {next(iter(gold), 'nothing')!r}…",
            expected="predictions of the gold file's claims",
        )
    pairs = MOST_PAIRS if repeat_pairs else 0
    sides = [(_prediction(predicted[number], pairs), _to_gold(gold[number])) for number in common]
    missing = tuple(number for number in gold if number not in predicted)
    different = tuple(
        number for number in common if _differ(predicted[number].claim, gold[number].claim)
    )
    return AveritecEvaluation(averitec(sides), missing, different)


def repeat_pairs_in_turn(pairs: Sequence[T], at_least: int) -> tuple[T, ...]:
    """Return ``at_least`` so many pairs, repeated in turn where there are fewer; none stay none."""
    return tuple(islice(cycle(pairs), max(at_least, len(pairs))))


def _differ(a: str, b: str) -> bool:
    """Say whether two texts, if neither is empty, differ in their words."""
    return bool(a and b) and a.casefold().split() != b.casefold().split()


def _prediction(line: _SubmittedClaim, at_least: int) -> PredictedClaim:
    """Return a prediction with at least so many pairs, if it has any; repeats come in turn."""
    pairs = [(pair.question, pair.answer) for pair in line.evidence]
    return PredictedClaim(
        id=line.claim_id, label=line.pred_label, pairs=repeat_pairs_in_turn(pairs, at_least)
    )


def _to_gold(line: _GoldClaim) -> GoldClaim:
    answered = [
        f"{question.question} {_text(answer)}"
        for question in line.questions
        for answer in question.answers or [_GoldAnswer(answer=NO_ANSWER)]
    ]
    questions = tuple(question.question for question in line.questions)
    return GoldClaim(label=line.label, questions=questions, answered=tuple(answered))


def _text(answer: _GoldAnswer) -> str:
    if answer.answer_type == "Boolean":
        return f"{answer.answer}. {answer.boolean_explanation or ''}"
    return answer.answer


def _by_id(
    files: Sequence[Path], model: type[Model], label: Callable[[Model], str]
) -> Mapping[str, Model]:
    by_number: dict[str, Model] = {}
    rows = ((path, row) for path in files for row in InputFile(path, str(path)).rows())
    for position, (path, row) in enumerate(rows):
        try:
            line = model.model_validate_json(row.raw)
            if not line.claim_id:
                line = line.model_copy(update={"claim_id": str(position)})
            _check(line.claim_id, label(line), by_number)
        except ValidationError as error:
            problem = input_error(error)
        except InputError as error:
            problem = error
        else:
            by_number[line.claim_id] = line
            continue
        raise problem.at(file=str(path), line=row.line, unit=row.unit)
    return by_number


def _check(claim: str, label: str, seen_claims: Mapping[str, object]) -> None:
    if label not in LABELS:
        raise InputError(
            "this is not a label of AVeriTeC", found=label, expected=" or ".join(map(repr, LABELS))
        )
    if claim in seen_claims:
        raise InputError(
            "a claim with this id already exists",
            field="claim_id",
            found=claim,
            expected="every claim once",
        )
