"""Questions answered step by step, verified, and made ideal."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import JsonValue

from spanlab.base.errors import BudgetError, UsageError
from spanlab.base.runtime import ahead
from spanlab.base.settings import Settings
from spanlab.detection import DetectorResult, DetectorSpec
from spanlab.detection.building import kit_of
from spanlab.detection.request import CONCURRENCY
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.specifications import specifications
from spanlab.formats import ReadOptions, read
from spanlab.models import Meter, ModelChoice
from spanlab.output.tables import ResultTable, columns_of
from spanlab.schema import CallsStep, Item, Record, Status
from spanlab.schema.usage import Budget, Usage
from spanlab.systems.safe.entries import GENERATOR
from spanlab.systems.safe.results import MethodResult, outcome_of
from spanlab.systems.safe.steps import flag_of

if TYPE_CHECKING:
    from pathlib import Path

    from spanlab.systems.safe.reasoner import ReasonOptions, StepReasoner


_AHEAD = 4  # times as many questions are begun as are under way


class QuestionReasoner:
    """Reasons about questions, with each of some ways of verifying.

    ``spent`` is the error by which the budget ended it, if it did; ``results`` says by way of
    verifying what the questions so far came to.

    Args:
        choice: models, retriever and prompts; its detectors are not looked at.
        ways: how to reason; with more than one, every question has an item for each.
        generator: the model that reasons, if it is another than the choice's.
        concurrency: questions under way at once.
        budget: limits on the model calls.

    Raises:
        UsageError: something is missing, or a way of verifying is there twice.
    """

    def __init__(
        self,
        choice: DetectorSelection,
        ways: Sequence[ReasonOptions],
        *,
        generator: str | ModelChoice | None = None,
        concurrency: int = CONCURRENCY,
        budget: Budget | None = None,
    ) -> None:
        from spanlab.systems.safe.reasoner import StepReasoner

        names = [way.verification for way in ways]
        if len(set(names)) < len(names):
            raise UsageError(f"name each way of verifying once, not {', '.join(names)}")
        self._meter = Meter(budget, concurrency=concurrency)
        kit = kit_of(_specification(choice, generator), self._meter, Settings.read())
        self._reasoners = [StepReasoner(kit, way) for way in ways]
        self._slots = asyncio.Semaphore(concurrency)
        self._ahead = _AHEAD * concurrency
        self.results: Mapping[str, MethodResult] = {name: MethodResult() for name in names}
        self.spent: BudgetError | None = None

    @property
    def usage(self) -> Usage:
        """What the model calls so far came to."""
        return self._meter.usage

    def answer(self, records: Iterable[Record]) -> Iterator[Record]:
        """Reason about questions: yield each with its reasoning as the answer, in order.

        Where several ways of verifying are compared, each item's id ends with its way.

        Raises:
            ConfigurationError: key, address or name of the model is wrong.
        """
        calls = (
            self._one(reasoner, question.item)
            for question in records
            for reasoner in self._reasoners
        )
        for future in ahead(calls, self._ahead):
            try:
                reasoner, finding = future.result()
            except BudgetError as error:
                self.spent = error
                calls.close()
                continue
            record = self._record(reasoner, finding)
            self.results[reasoner.options.verification].add(MethodResult.of(record))
            yield record

    async def _one(self, reasoner: StepReasoner, item: Item) -> tuple[StepReasoner, DetectorResult]:
        async with self._slots:
            return reasoner, await reasoner.detect(item)

    def _record(self, reasoner: StepReasoner, finding: DetectorResult) -> Record:
        way, annotation = reasoner.options.verification, finding.annotation
        calls = [step for step in annotation.trace if isinstance(step, CallsStep)]
        outcome: dict[str, JsonValue] = {
            "verification": way,
            **outcome_of(finding.item),
            "calls": sum(call.calls + call.from_cache for call in calls),
            "tokens": sum(call.input_tokens + call.output_tokens for call in calls),
        }
        meta = {**finding.item.meta, "reasoning": outcome}
        item = finding.item.model_copy(update={"meta": meta})
        if len(self._reasoners) > 1:
            item = item.model_copy(update={"id": f"{item.id}/{way}"})
        # Nobody has verified anything there: steps without spans are not "nothing found".
        unverified = way == "none" and annotation.status is Status.DONE
        return Record(item=item, annotations=() if unverified else (annotation,))


def questions_in(files: Sequence[Path], options: ReadOptions | None = None) -> Iterator[Record]:
    """Yield the questions of files of any format.

    Raises:
        InputError: a file cannot be read, or a record of it.
    """
    for file in files:
        yield from read(file, options)


def _specification(choice: DetectorSelection, generator: str | ModelChoice | None) -> DetectorSpec:
    """Return the verifier's specification, with the generator's model in its role."""
    safe = choice.model_copy(update={"detectors": ("safe",)})
    (spec,) = specifications(safe)
    assert isinstance(spec, DetectorSpec)  # it is no ensemble
    if not generator:
        return spec

    (generator_spec,) = specifications(safe.model_copy(update={"model": generator}))
    assert isinstance(generator_spec, DetectorSpec)
    models = {**spec.models, GENERATOR: generator_spec.choice(GENERATOR)}
    return spec.model_copy(update={"models": models})


Task = Literal["verify", "ideal"]


@dataclass
class SupervisionResult:
    """Counts of the questions of a dataset: how many failed or were flagged, and why.

    Attributes:
        questions: how many there are, with those that failed.
        failed: those that a model gave no answer for that can be used, or no right one.
        flagged: those that are unverifiable, found so now or before.
        reasons: the flagged by reason, or the failed by theirs.
    """

    questions: int = 0
    failed: int = 0
    flagged: int = 0
    reasons: Counter[str] = field(default_factory=Counter)


class QuestionSupervisor:
    """Has a model verify questions, or write ideal reasonings for them.

    ``results`` says by dataset (``dataset`` in an item's ``meta``) what came of the questions so
    far, ``spent`` is the error by which the budget ended it, if it did.

    Args:
        task: what is done.
        choice: the model; its detectors are not looked at.
        flagged: whether a reasoning is also written for questions that are unverifiable.
        concurrency: questions under way at once.
        budget: limits on the model calls.

    Raises:
        UsageError: nothing names a model.
    """

    def __init__(
        self,
        task: Task,
        choice: DetectorSelection,
        *,
        flagged: bool = False,
        concurrency: int = CONCURRENCY,
        budget: Budget | None = None,
    ) -> None:
        from spanlab.systems.safe.benchmark import BenchmarkVerifier
        from spanlab.systems.safe.ideal import IdealTrajectories

        (spec,) = specifications(choice.model_copy(update={"detectors": ("safe",)}))
        assert isinstance(spec, DetectorSpec)  # it is no ensemble
        self._meter = Meter(budget, concurrency=concurrency)
        kit = kit_of(spec, self._meter, Settings.read())
        self._verifies = task == "verify"
        self._with = BenchmarkVerifier(kit) if self._verifies else IdealTrajectories(kit)
        self._flagged = flagged
        self._slots = asyncio.Semaphore(concurrency)
        self._ahead = _AHEAD * concurrency
        self.results: dict[str, SupervisionResult] = {}
        self.spent: BudgetError | None = None

    @property
    def usage(self) -> Usage:
        """What the model calls so far came to."""
        return self._meter.usage

    def supervise(self, records: Iterable[Record]) -> Iterator[Record]:
        """Supervise questions: yield each in order, with the result in ``meta`` or as the answer.

        A question that failed says why in an annotation. One that is flagged stays as it is.

        Raises:
            ConfigurationError: key, address or name of the model is wrong.
        """
        work = (self._one(record) for record in records)
        for future in ahead(work, self._ahead):
            try:
                record, finding = future.result()
            except BudgetError as error:
                self.spent = error
                work.close()
                continue
            result = record if finding is None else self._record(record, finding)
            self._count(result)
            yield result

    async def _one(self, record: Record) -> tuple[Record, DetectorResult | None]:
        skipped = not (self._verifies or self._flagged) and flag_of(record.item) is not None
        if skipped:
            return record, None
        async with self._slots:
            return record, await self._with.detect(record.item)

    def _record(self, record: Record, finding: DetectorResult) -> Record:
        annotation = finding.annotation
        by_others = [a for a in record.annotations if a.annotator != annotation.annotator]
        if self._verifies:  # the item says it all; nobody has looked at an answer
            failed = [annotation] if annotation.status is Status.FAILED else []
            return Record(item=finding.item, annotations=(*by_others, *failed))
        return Record(item=finding.item, annotations=(annotation,))

    def _count(self, record: Record) -> None:
        result = self.results.setdefault(_dataset(record.item), SupervisionResult())
        annotation = record.by(self._with.name)
        flag = flag_of(record.item)
        result.questions += 1
        if annotation is not None and annotation.status is Status.FAILED:
            result.failed += 1
            result.reasons[str(annotation.note)] += 1
        elif flag is not None:
            result.flagged += 1
            result.reasons[flag] += 1


def _dataset(item: Item) -> str:
    return str(item.meta.get("dataset") or "questions")


def supervision_table(results: Mapping[str, SupervisionResult]) -> ResultTable:
    """Return how many questions of each dataset failed, and how many are unverifiable."""
    return ResultTable(
        key="supervision",
        title="",
        columns=(
            *columns_of("text", "Dataset"),
            *columns_of("count", "Questions", "Failed", "Unverifiable"),
            *columns_of("share", "Share"),
        ),
        rows=tuple(
            (
                *(name, result.questions, result.failed, result.flagged),
                _share(result),
            )
            for name, result in results.items()
        ),
    )


def _share(result: SupervisionResult) -> float | None:
    judged = result.questions - result.failed
    return result.flagged / judged if judged else None
