"""What a run of detectors over a dataset is asked, and how far it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import Field, model_validator

from spanlab.detectors.ensemble import Ensemble, EnsembleVote
from spanlab.detectors.spec import DetectorSpec, EnsembleSpec, Spec
from spanlab.lm import CallLimits, Meter, Usage
from spanlab.options import option
from spanlab.schema import Name, unique

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from spanlab.settings import Settings

__all__ = ["FailedItem", "RunLimits", "RunProgress", "RunRequest", "ensemble_of"]

CONCURRENCY = 32  # items annotated at once, unless a request says otherwise


class RunLimits(CallLimits):
    """How much of a dataset a run does, how fast, and what it may come to."""

    limit: int | None = option(
        None,
        title="Maximum items",
        help="At most so many items.",
        group="Limits",
        placeholder="no limit",
        ge=1,
    )
    concurrency: int | None = option(
        None,
        title="Concurrent items",
        help="Items under way at once, as far as the endpoint lets you (default 32), for offline "
        "processes (default 1).",
        group="Limits",
        ge=1,
        le=1024,
    )
    vote: Name | None = option(
        None,
        title="Vote of these detectors (optional)",
        help="Name of a vote of all these detectors, cast as well: which share of them marks each "
        "character.",
        group="Limits",
        placeholder="name of the vote",
    )


class RunRequest(RunLimits):
    """Which detectors are to annotate which items of a dataset.

    Of an ensemble every member annotates, and its vote is cast. ``vote`` names a vote of all
    detectors of the run. ``concurrency`` is how many detectors work on items at once in each
    worker. ``rate`` counts the calls of all workers and repeated attempts together; jobs keep it,
    runs that are none do not. ``retry_failed`` takes up items on which a detector failed before.
    ``items`` are the ids to do (None: all that are not finished); ``again`` does those also, and
    without ``items`` all that there are.
    """

    dataset: Name
    detectors: Annotated[tuple[Spec, ...], Field(min_length=1)]
    concurrency: Annotated[int, Field(ge=1, le=1024)] = CONCURRENCY
    retry_failed: bool = True
    items: tuple[Name, ...] | None = None
    again: bool = False

    @model_validator(mode="after")
    def _everyone_signs_differently(self) -> Self:
        unique(self.annotators, "annotator")
        return self

    @property
    def specs(self) -> tuple[DetectorSpec, ...]:
        """The detectors, ensembles taken apart."""
        return tuple(_members(self.detectors))

    @property
    def votes(self) -> tuple[EnsembleVote, ...]:
        """The votes to cast: those of the ensembles, and the run's own."""
        votes = [
            EnsembleVote(spec.name, tuple(member.signs for member in spec.members))
            for spec in self.detectors
            if isinstance(spec, EnsembleSpec)
        ]
        if self.vote is not None:
            votes.append(EnsembleVote(self.vote, tuple(spec.signs for spec in self.specs)))
        return tuple(votes)

    @property
    def annotators(self) -> tuple[str, ...]:
        """Everybody whose annotation an item has in the end: detectors, then votes."""
        signed = (spec.signs for spec in self.specs)
        return (*signed, *(vote.name for vote in self.votes))


def ensemble_of(
    request: RunRequest, meter: Meter, settings: Settings, executor: Executor | None = None
) -> Ensemble:
    """Build the detectors of a request, which may load models and take seconds.

    Args:
        request: which detectors and votes, and how many at once.
        meter: counts the model calls and stops them at its budget.
        settings: where answers of models are cached and tuned prompts lie.
        executor: does the work of detectors that ask no model; None takes a thread.

    Raises:
        UsageError: a detector cannot be built as it was asked for.
    """
    from spanlab.detectors import build

    built = [build(spec, meter, settings, executor) for spec in request.specs]
    return Ensemble(built, request.votes, request.concurrency)


@dataclass(frozen=True)
class FailedItem:
    """An item that a detector failed on, and why."""

    item_id: str
    detector: str
    reason: str


@dataclass(frozen=True)
class RunProgress:
    """How far a run is.

    ``done`` items of ``total`` have been dealt with; ``failed`` of these failed under at least one
    detector. ``started`` is in seconds since 1970, ``rate`` in items per second, ``remaining`` in
    seconds (None before it can be known). ``stopped`` says why the run ended before its last item,
    such as a spent budget. ``last_failures`` are the newest ones, a few.
    """

    done: int = 0
    failed: int = 0
    total: int = 0
    usage: Usage = field(default_factory=Usage)
    started: float | None = None
    rate: float = 0.0
    remaining: float | None = None
    stopped: str | None = None
    last_failures: tuple[FailedItem, ...] = ()


def _members(specs: tuple[Spec, ...]) -> Iterator[DetectorSpec]:
    for spec in specs:
        if isinstance(spec, EnsembleSpec):
            yield from spec.members
        else:
            yield spec
