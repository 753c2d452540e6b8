"""Watches an optimisation: reports every evaluation, and stops a search that cannot go on."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import dspy
from dspy.utils.callback import BaseCallback

from spanlab.base.errors import (
    BudgetError,
    ConfigurationError,
    NoCreditError,
    SpanlabError,
    StoppedError,
    UnavailableError,
    UnparsableAnswerError,
)
from spanlab.base.fields import FrozenModel
from spanlab.models import Meter, translate
from spanlab.models.meter import CallKind
from spanlab.models.programs import program_state
from spanlab.schema import SearchTrial, Stage
from spanlab.schema.usage import Budget, CallLimits, Usage

HOPELESS = (ConfigurationError, NoCreditError, BudgetError)
PATIENCE = 5  # calls in a row that find no model, until the search gives up
MOST_UNPLACED = 20  # replies in a row of which nothing is in the answer, until it does


class SearchRemark(FrozenModel):
    """A line for the log."""

    text: str


Event = SearchTrial | SearchRemark
OnEvent = Callable[[Event], None]


class StoppableMeter(Meter):
    """A meter that lets no further call through once there is a reason to stop.

    Answers from the cache still come, so that a search that is stopped runs out quickly.

    Args:
        limits: see ``Meter``.
        spent: see ``Meter``.
        should_stop: asked before every attempt at a call.
        wait: returns when the next attempt may go out, or is not wanted any more; None lets every
            one go at once.
        concurrency: see ``Meter``.
    """

    def __init__(
        self,
        limits: CallLimits | Budget | None = None,
        *,
        spent: Usage | None = None,
        should_stop: Callable[[], bool] = lambda: False,
        wait: Callable[[], Awaitable[None]] | None = None,
        concurrency: int | None = None,
    ) -> None:
        super().__init__(limits, spent=spent, before_attempt=wait, concurrency=concurrency)
        self.reason: SpanlabError | None = None
        self._unplaced = 0
        self._should_stop = should_stop

    async def admit(self, kind: CallKind = "calls") -> None:
        """Let a call through, unless the search is to stop.

        Raises:
            SpanlabError: the reason why.
        """
        self._check_wanted()
        try:
            await super().admit(kind)
        except SpanlabError as error:  # of a search for evidence no model call would tell
            self.stop(error)
            raise

    async def before_attempt(self) -> None:
        """Wait until an attempt may go out, the first of a call or a later one.

        Raises:
            SpanlabError: the search is to stop; the reason why.
        """
        self._check_wanted()
        try:
            await super().before_attempt()
        except SpanlabError as error:
            self.stop(error)
        self._check_wanted()

    def _check_wanted(self) -> None:
        if self.reason is None and self._should_stop():
            self.stop(StoppedError("stopped before it was done"))
        if self.reason is not None:
            raise self.reason

    def note_placed(self, error: UnparsableAnswerError | None) -> None:
        """Note whether what a reply marks is in its answer; stop where that of many is not."""
        self._unplaced = 0 if error is None else self._unplaced + 1
        if error is not None and self._unplaced >= MOST_UNPLACED:
            in_a_row = f"{MOST_UNPLACED} replies in a row mark nothing that is in their answer"
            self.stop(UnparsableAnswerError(f"{in_a_row}; the last: {error}"))

    def stop(self, reason: SpanlabError) -> None:
        """Let no further call through; the first reason counts."""
        if self.reason is None:
            self.reason = reason


@dataclass
class SearchWatcher(BaseCallback):
    """Turns dspy's evaluations into trials, and stops a search that cannot succeed."""

    stopper: StoppableMeter
    on_event: OnEvent
    choose: int
    fold: int = 0
    stage: Stage = "search"
    _count: int = 0
    _missed: int = 0
    _running: dict[str, tuple[dspy.Module, int, bool]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __deepcopy__(self, memo: dict[int, Any]) -> SearchWatcher:
        """Stay one: dspy copies its settings with everything in them."""
        return self

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: dict[str, Any]) -> None:
        """Remember which program is being evaluated on how many items."""
        items = len(inputs.get("devset") or instance.devset)
        kind = (inputs.get("callback_metadata") or {}).get("metric_key")
        full = kind != "eval_minibatch" and items >= self.choose
        self._running[call_id] = (inputs["program"], items, full)

    def on_evaluate_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Report the evaluation as a trial."""
        program, items, full = self._running.pop(call_id)
        if outputs is None or self.stopper.reason is not None:
            return
        with self._lock:
            self._count += 1
            number = self._count
        self.on_event(
            SearchTrial(
                fold=self.fold,
                number=number,
                stage=self.stage,
                score=float(outputs.score) / 100,
                items=items,
                full=full,
                predictors=program_state(program),
            )
        )

    def on_lm_end(
        self, call_id: str, outputs: Any | None, exception: BaseException | None = None
    ) -> None:
        """Stop at errors that every further call would meet again."""
        if exception is None:
            self._missed = 0
            return
        error = translate(exception) if isinstance(exception, Exception) else None
        if isinstance(error, HOPELESS):
            self.stopper.stop(error)
        elif isinstance(error, UnavailableError):
            self._missed += 1
            if self._missed >= PATIENCE:
                self.stopper.stop(error)
