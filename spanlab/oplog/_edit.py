"""What all operations that change a review's state have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from spanlab.fields import Frozen
from spanlab.oplog._state import ReviewState
from spanlab.schema import Item

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
