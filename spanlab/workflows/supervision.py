"""Questions of benchmarks on their way to training data: verified, and reasoned about ideally."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from spanlab.detectors import DetectorResult, DetectorSpec
from spanlab.detectors.building import kit_of
from spanlab.errors import BudgetError
from spanlab.lm import Budget, Meter, Usage
from spanlab.results import ResultTable, columns_of
from spanlab.runtime import ahead
from spanlab.schema import Item, Record, Status
from spanlab.settings import Settings
from spanlab.workflows.choosing import DetectorSelection, specifications
from spanlab.workflows.runs import CONCURRENCY

Task = Literal["verify", "ideal"]
_AHEAD = 4  # times as many questions are begun as are under way


@dataclass
class SupervisionResult:
    """What came of the questions of a dataset.

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
        from spanlab.detectors.safe.benchmark import BenchmarkVerifier
        from spanlab.detectors.safe.ideal import IdealTrajectories

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

    def done(self, records: Iterable[Record]) -> Iterator[Record]:
        """Yield the questions in order: with the result in their ``meta``, or as an answer.

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
            done = record if finding is None else self._record(record, finding)
            self._count(done)
            yield done

    async def _one(self, record: Record) -> tuple[Record, DetectorResult | None]:
        from spanlab.detectors.safe.steps import flag_of

        skipped = not (self._verifies or self._flagged) and flag_of(record.item) is not None
        if skipped:
            return record, None
        async with self._slots:
            return record, await self._with.detect(record.item)

    def _record(self, record: Record, finding: DetectorResult) -> Record:
        said = finding.annotation
        before = [each for each in record.annotations if each.annotator != said.annotator]
        if self._verifies:  # the item says it all; nobody has looked at an answer
            told = [said] if said.status is Status.FAILED else []
            return Record(item=finding.item, annotations=(*before, *told))
        return Record(item=finding.item, annotations=(said,))

    def _count(self, record: Record) -> None:
        from spanlab.detectors.safe.steps import flag_of

        result = self.results.setdefault(_dataset(record.item), SupervisionResult())
        said = record.by(self._with.name)
        flag = flag_of(record.item)
        result.questions += 1
        if said is not None and said.status is Status.FAILED:
            result.failed += 1
            result.reasons[str(said.note)] += 1
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
