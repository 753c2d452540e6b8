"""How far plans, people and runs are."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from spanlab.schema.usage import Usage


@dataclass(frozen=True)
class PersonProgress:
    """How far one person is with a plan, in items.

    ``assigned`` is what the plan gives them, None if it gives all to others; ``done`` and
    ``skipped`` are of these, and ``beyond`` they have finished without being asked. Where nothing
    is assigned to anybody, the plan gives them what they have finished or skipped and what still
    needs them.
    """

    annotator: str
    assigned: int | None = None
    done: int = 0
    skipped: int = 0
    beyond: int = 0

    @property
    def left(self) -> int:
        """The items that they have neither finished nor skipped."""
        return (self.assigned or 0) - self.done - self.skipped


@dataclass(frozen=True)
class PlanProgress:
    """How far a plan is: annotations that it asks for, those it has, and people by name.

    ``surplus`` is how many more people have finished an item than it asks for, where it names none.
    """

    needed: int
    done: int
    people: tuple[PersonProgress, ...]
    surplus: int = 0

    def of(self, annotator: str) -> PersonProgress | None:
        """Return how far a person is; None for one whom the plan does not know."""
        return next((person for person in self.people if person.annotator == annotator), None)


@dataclass(frozen=True)
class QueueProgress:
    """How far a reviewer is in items: of their list, else of the dataset.

    ``total`` stays the same while people work: ``by_others`` are the items of it that enough
    others have finished instead. ``planned`` says that a plan gives them these; ``waiting``, that
    others have at the moment all that is left.
    """

    done: int
    skipped: int
    total: int
    planned: bool = False
    waiting: bool = False
    by_others: int = 0

    @property
    def left(self) -> int:
        """The items that are still to be finished or skipped."""
        return self.total - self.done - self.skipped - self.by_others


class FinishedItem(NamedTuple):
    """An item that a person has finished.

    ``at`` is when Done was pressed last (UTC). ``seconds`` is the time that the item was worked
    on, as the browser measured it; None where it did not.
    """

    annotator: str
    item_id: str
    at: datetime
    seconds: float | None


@dataclass(frozen=True)
class FailedItem:
    """An item that a detector failed on, and why."""

    item_id: str
    detector: str
    reason: str


@dataclass(frozen=True)
class RunProgress:
    """The progress of a run.

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
