"""Writes from a reviewer's browser, and the replies to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field
from pydantic.dataclasses import dataclass as validated

from spanlab.oplog import Operation, ReviewState
from spanlab.schema import Kind, Name, Record


@validated(frozen=True)
class Write:
    """One operation as a writer sends it.

    ``seq`` counts the writes of ``session`` from 1; ``base`` is the number of operations that
    the writer believes the log to have before this one. ``author`` is the person who adjudicates:
    gold labels' logs alone have one, and several people may write to the same. ``guidelines``
    is the version of the dataset's guidelines that the writer had, 0 for none. ``seconds`` is how
    long the item was worked on, in a write that ends this.
    """

    session: Name
    seq: Annotated[int, Field(ge=1)]
    base: Annotated[int, Field(ge=0)]
    operation: Operation
    author: Name | None = None
    guidelines: Annotated[int, Field(ge=0)] = 0
    seconds: Annotated[float, Field(ge=0)] | None = None

    @property
    def kind(self) -> Kind:
        """What sort of annotator's log it belongs to."""
        return Kind.PERSON if self.author is None else Kind.GOLD


@dataclass(frozen=True)
class Refusal:
    """A write that was not stored; ``stale`` if somebody else changed the annotation meanwhile."""

    seq: int
    reason: str
    stale: bool


@dataclass(frozen=True)
class Applied:
    """The outcome of some writes.

    ``acknowledged`` is the highest ``seq`` of the session that is stored (0 if none is),
    ``version`` the number of operations that the log has now.
    """

    acknowledged: int
    version: int
    refused: tuple[Refusal, ...] = ()


@dataclass(frozen=True)
class Review:
    """One person's review of one item; ``version`` is the length of the log.

    ``hidden`` is how many annotations were left out of the record, None where not even that is to
    be told.
    """

    record: Record
    snapshot: ReviewState
    operations: tuple[Operation, ...]
    version: int
    state: ReviewState
    hidden: int | None = 0
