"""What a run of detectors over a dataset is asked, and how far it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from spanlab.detectors.spec import DetectorSpec
from spanlab.fields import Frozen, Name, unique
from spanlab.lm import Budget, Usage

__all__ = ["Failure", "Progress", "RunRequest"]

CONCURRENCY = 32  # detectors at work on items at once, if nobody says how many


class RunRequest(Frozen):
    """Which detectors are to annotate which items of a dataset.

    ``vote`` names the vote of all these detectors, cast on an item once all of them are done with
    it. ``concurrency`` is how many detectors work on items at once in each worker. ``limit``
    bounds the number of items, ``budget`` what the model calls of the whole run may come to.
    ``retry_failed`` takes up items on which a detector failed before. ``items`` are the ids to do
    (None: all that are not finished).
    """

    dataset: Name
    detectors: Annotated[tuple[DetectorSpec, ...], Field(min_length=1)]
    vote: Name | None = None
    concurrency: Annotated[int, Field(ge=1, le=1024)] = CONCURRENCY
    limit: Annotated[int, Field(ge=1)] | None = None
    budget: Budget | None = None
    retry_failed: bool = True
    items: tuple[Name, ...] | None = None

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        unique(self.annotators, "annotator")
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """What the detectors sign as."""
        return tuple(spec.name or spec.detector for spec in self.detectors)

    @property
    def annotators(self) -> tuple[str, ...]:
        """What the detectors sign as, and the vote if there is one."""
        return self.names if self.vote is None else (*self.names, self.vote)


@dataclass(frozen=True)
class Failure:
    """An item that a detector failed on, and why."""

    item_id: str
    detector: str
    reason: str


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    ``done`` items of ``total`` have been dealt with; ``failed`` of these failed under at least one
    detector. ``rate`` is in items per second, ``remaining`` in seconds (None before it can be
    known). ``stopped`` says why the run ended before its last item, such as a spent budget.
    ``last_failures`` are the newest ones, a few.
    """

    done: int = 0
    failed: int = 0
    total: int = 0
    usage: Usage = Usage()
    started: float | None = None
    rate: float = 0.0
    remaining: float | None = None
    stopped: str | None = None
    last_failures: tuple[Failure, ...] = ()
