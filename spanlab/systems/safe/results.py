"""Results of reasonings by way of verifying: answers, errors by type and position, and calls."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from statistics import fmean
from typing import Final, NamedTuple, Self

from pydantic import JsonValue

from spanlab.output.figures import counted, figure, percent
from spanlab.output.tables import P_VALUE, Chart, Column, ResultTable, columns_of
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status
from spanlab.scoring.answers import AnswerScore, score_answer
from spanlab.scoring.comparison import MeanDifference, paired
from spanlab.scoring.files import difference_cells
from spanlab.storage import Store
from spanlab.storage.datasets import with_progress
from spanlab.systems.safe.steps import ErrorType, error_marked, right_answers, steps_in
from spanlab.systems.safe.trace import ReasoningTraceStep

METHODS: Final = {"none": "No verification", "self": "Self-verification", "safe": "SAFE"}
_ERRORS: Final = frozenset(map(str, ErrorType))
_EARLY = 3  # steps, of which the share of errors is told (§A.8)
_REPORT_EVERY = 100


@dataclass
class MethodResult:
    """The results of one way of verifying, over a number of questions.

    Attributes:
        questions: how many were reasoned about, with those that failed.
        failed: how many have no answer, because a model gave none that can be used.
        scores: of those that have an answer and right ones to compare it with, by question.
        judged: how many were judged by a model, and how many of these are right.
        forced: answers that were forced.
        spurious: right answers of a reasoning in which a step stands that is wrong; None where
            nobody has verified steps.
        calls: model calls, also those that the cache answered; ``tokens`` of the others.
        errors: errors by type, over all attempts.
        positions: errors by the number of the step.
    """

    questions: int = 0
    failed: int = 0
    scores: dict[str, AnswerScore] = field(default_factory=dict)
    judged: tuple[int, int] = (0, 0)
    forced: int = 0
    spurious: int | None = None
    calls: int = 0
    tokens: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    positions: Counter[int] = field(default_factory=Counter)

    @property
    def score(self) -> AnswerScore | None:
        """The means of exact match and F1; None where no answer is scored."""
        exact, f1 = zip(*self.scores.values(), strict=True) if self.scores else ((), ())
        return AnswerScore(fmean(exact), fmean(f1)) if self.scores else None

    @property
    def early(self) -> float | None:
        """The share of errors in the first three steps; None without errors."""
        early = sum(count for number, count in self.positions.items() if number <= _EARLY)
        return early / self.positions.total() if self.positions else None

    @classmethod
    def of(cls, record: Record) -> Self:
        """Return the result of one question, from its reasoning and the annotations of it."""
        item, counts = record.item, cls(questions=1)
        for annotation in record.annotations:
            counts.add_errors(item, annotation)
        outcome = outcome_of(item)
        counts.failed = int(outcome.get("answer") is None)
        counts.calls, counts.tokens = (
            int(str(outcome.get(name, 0))) for name in ("calls", "tokens")
        )
        counts.forced = int(bool(outcome.get("forced")))
        if "judged" in outcome:
            counts.judged = (1, int(bool(outcome["judged"])))
        score = score_reasoning(item)
        if score is not None:
            counts.scores[question_of(item)] = score
            if record.finished or outcome.get("verification") != "none":
                wrong = outcome["unresolved"] or any(a.spans for a in record.finished)
                counts.spurious = int(bool(score.exact and wrong))
        return counts

    def add(self, more: Self) -> None:
        """Add the results of more questions."""
        for name in ("questions", "failed", "forced", "calls", "tokens"):
            setattr(self, name, getattr(self, name) + getattr(more, name))
        if more.spurious is not None:
            self.spurious = (self.spurious or 0) + more.spurious
        self.judged = (self.judged[0] + more.judged[0], self.judged[1] + more.judged[1])
        self.scores |= more.scores
        self.errors.update(more.errors)
        self.positions.update(more.positions)

    def add_errors(self, item: Item, annotation: Annotation) -> None:
        """Count the errors that a verifier named, or the types that a person gave the steps."""
        named = [
            (step.number, step.error)
            for step in annotation.trace
            if isinstance(step, ReasoningTraceStep) and step.error is not None
        ]
        if (
            annotation.kind is AnnotatorKind.PERSON
            and annotation.status is Status.DONE
            and annotation.spans
        ):
            steps = enumerate(steps_in(item.answer, item.lang), start=1)
            errors = ((number, error_marked(step, annotation.spans)) for number, step in steps)
            named = [(number, error) for number, error in errors if error is not None]
        for number, error in named:
            self.errors[error] += 1
            self.positions[number] += 1


def method_table(methods: Mapping[str, MethodResult]) -> ResultTable:
    """Return a row per way of verifying; unknown figures are empty."""
    count: Final = "count"
    columns = (
        *columns_of("text", "Method"),
        *columns_of(count, "Questions", "Failed"),
        *columns_of("score", "Exact match", "F1", "Judged correct"),
        Column(
            key="spurious",
            title="Correct despite a wrong step",
            unit=count,
            about="Unknown where nobody has verified the steps.",
        ),
        Column(key="forced", title="Forced answers", unit=count),
        Column(key="calls", title="Calls per question", unit=count, digits=1),
        Column(key="tokens", title="Tokens per question", unit=count, digits=0),
    )
    rows = []
    for way, result in methods.items():
        judged, right = result.judged
        exact, f1 = (result.score.exact, result.score.f1) if result.score else (None, None)
        named = (METHODS[way], result.questions, result.failed, exact, f1)
        per_question = (total / max(result.questions, 1) for total in (result.calls, result.tokens))
        share = right / judged if judged else None
        rows.append((*named, share, result.spurious, result.forced, *per_question))
    questions = max((result.questions for result in methods.values()), default=0)
    return ResultTable(
        key="methods",
        title=f"{counted(questions, 'question')} by verification method",
        columns=columns,
        rows=tuple(rows),
    )


def error_tables(judges: Mapping[str, MethodResult]) -> tuple[ResultTable, ...]:
    """Return errors by type and by position, a row for each and each who found some."""
    tables = []
    for key, head, title in (("type", "Type", "type"), ("step", "Step", "position")):
        by_judge = {
            name: result.errors if key == "type" else result.positions
            for name, result in judges.items()
        }
        rows = [
            (name, str(error), number, number / counts.total())
            for name, counts in by_judge.items()
            for error, number in sorted(counts.items())
        ]
        early = [
            f"{name} {percent(result.early)}" for name, result in judges.items() if result.early
        ]
        remark = f"In the first three steps: {', '.join(early)}."
        tables.append(
            ResultTable(
                key=f"errors-by-{key}",
                title=f"Errors by {title}",
                columns=(
                    *columns_of("text", "Annotator", head),
                    *columns_of("count", "Count"),
                    *columns_of("share", "Share of errors"),
                ),
                rows=tuple(rows),
                remarks=(remark,) if key == "step" and early else (),
                chart=Chart(kind="bars", x="share-of-errors", y=key, group="annotator"),
            )
        )
    return tuple(table for table in tables if table.rows)


class MethodPair(NamedTuple):
    """Two ways of verifying, and F1 of the second minus that of the first, question by question."""

    a: str
    b: str
    difference: MeanDifference


@dataclass(frozen=True)
class ReasoningResults:
    """The reasonings of a dataset.

    Attributes:
        methods: by way of verifying what the questions came to that all ways were tried on.
        left_out: questions that some ways were not tried on.
        judges: errors by who named them, also in answers that came from elsewhere.
    """

    methods: Mapping[str, MethodResult]
    left_out: int
    judges: Mapping[str, MethodResult]

    @property
    def sentence(self) -> str:
        """Which way of verifying has the best answers, or how many errors were found in steps."""
        scored = {way: result.score for way, result in self.methods.items() if result.score}
        if scored:
            best = max(scored, key=lambda way: scored[way].f1)
            n = counted(self.methods[best].questions, "question")
            return f"Best answers: {METHODS[best]}, F1 {figure(scored[best].f1)} on {n}."
        n_errors = sum(judge.errors.total() for judge in self.judges.values())
        return f"{counted(n_errors, 'error')} found in reasoning steps."

    def pairs(self) -> list[MethodPair]:
        """Compare every two ways of verifying that have scores on the same questions."""
        method_pairs = []
        for a, b in combinations(self.methods, 2):
            scores_a, scores_b = self.methods[a].scores, self.methods[b].scores
            common = [question for question in scores_a if question in scores_b]
            if common:
                f1_a = [scores_a[question].f1 for question in common]
                f1_b = [scores_b[question].f1 for question in common]
                method_pairs.append(MethodPair(a, b, paired(f1_b, f1_a)))
        return method_pairs

    def tables(self) -> tuple[ResultTable, ...]:
        """Return a table of the ways of verifying, and one of the F1 of every two of them."""
        left_out = f"{counted(self.left_out, 'question')} left out: not all methods were run on it."
        methods = method_table(self.methods)
        if self.left_out:
            methods = methods.model_copy(update={"remarks": (left_out,)})
        pairs = ResultTable(
            key="method-pairs",
            title="F1 on the same questions, paired",
            columns=(
                *columns_of("text", "Method", "minus"),
                *columns_of("difference", "F1"),
                P_VALUE,
            ),
            rows=tuple(
                (METHODS[pair.b], METHODS[pair.a], *difference_cells(pair.difference))
                for pair in self.pairs()
            ),
        )
        return tuple(table for table in (methods, pairs) if table.rows)


def reasoning_results(
    store: Store, dataset: str, on_progress: Callable[[int], None] | None = None
) -> ReasoningResults:
    """Compare the reasonings of a dataset by way of verifying, on the same questions.

    Args:
        store: the annotation database.
        dataset: an existing dataset; items in which nobody has judged steps count for nothing.
        on_progress: called now and then with the number of items read.

    Raises:
        NotFoundError: there is no such dataset.
    """
    tried: dict[str, dict[str, MethodResult]] = {}
    judges: dict[str, MethodResult] = {}
    for record in with_progress(store.records(dataset), on_progress, _REPORT_EVERY):
        way = outcome_of(record.item).get("verification")
        if way in METHODS:
            tried.setdefault(question_of(record.item), {})[str(way)] = MethodResult.of(record)
        if not _reasons(record):
            continue
        for annotation in record.annotations:
            judges.setdefault(annotation.annotator, MethodResult()).add_errors(
                record.item, annotation
            )
    ways = [way for way in METHODS if any(way in by_way for by_way in tried.values())]
    methods = {way: MethodResult() for way in ways}
    common = [by_way for by_way in tried.values() if len(by_way) == len(ways)]
    for by_way in common:
        for way, result in by_way.items():
            methods[way].add(result)
    named = {name: result for name, result in judges.items() if result.errors}
    return ReasoningResults(methods, len(tried) - len(common), named)


def _reasons(record: Record) -> bool:
    """Say whether an answer has steps that somebody has judged as such."""
    if outcome_of(record.item):
        return True
    return any(
        any(isinstance(step, ReasoningTraceStep) for step in annotation.trace)
        or any(span.label in _ERRORS for span in annotation.spans)
        for annotation in record.annotations
    )


def outcome_of(item: Item) -> Mapping[str, JsonValue]:
    """Return the outcome of a reasoning from its item's ``meta``; empty for other items."""
    reasoning = item.meta.get("reasoning")
    return reasoning if isinstance(reasoning, dict) else {}


def question_of(item: Item) -> str:
    """Return the id of the question that an item answers, whatever way of verifying it names."""
    return item.id.removesuffix(f"/{outcome_of(item).get('verification')}")


def score_reasoning(item: Item) -> AnswerScore | None:
    """Return the score of a reasoning's answer; None without one, or without right answers."""
    answer, right = outcome_of(item).get("answer"), right_answers(item)
    return None if answer is None or not right else score_answer(str(answer), right)
