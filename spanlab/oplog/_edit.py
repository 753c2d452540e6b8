"""What all operations that change a review's state have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeVar

from pydantic import Field

from spanlab.errors import OperationError
from spanlab.oplog._state import ReviewState
from spanlab.schema import Frozen, Item

_T = TypeVar("_T")
Comment = Annotated[str, Field(max_length=10_000)]  # empty takes a comment away


class BaseEdit(Frozen):
    """An operation that makes one state from another; undo and redo need the whole log."""

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        """Return the state after this edit.

        Raises:
            OperationError: it names a span or claim that is not there, or characters outside the
                answer.
        """
        raise NotImplementedError


def named(kind: str, names: Sequence[str], marks: Sequence[_T]) -> list[tuple[str, _T]]:
    """Return what an operation of this kind takes over, each with the id it gets.

    Raises:
        OperationError: there are not as many ids as suggestions, or one is there twice.
    """
    if len(set(names)) < len(names):
        raise OperationError(f"{kind} has an id twice")
    if len(names) != len(marks):
        raise OperationError(f"{kind} has {len(names)} ids for {len(marks)} suggestions")
    return list(zip(names, marks, strict=True))
