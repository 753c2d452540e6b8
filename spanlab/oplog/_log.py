"""Operations in the order in which they were made."""

from __future__ import annotations

from collections.abc import Iterable

from spanlab.oplog._operations import Edit, Operation, Redo, Undo
from spanlab.oplog._state import ReviewState
from spanlab.schema import Item


def replay(item: Item, snapshot: ReviewState, operations: Iterable[Operation]) -> ReviewState:
    """Return the state after ``operations`` on ``snapshot``.

    Raises:
        OperationError: an operation names a missing span or characters outside the answer.
    """
    state = snapshot
    for operation in in_force(operations):
        state = operation.apply(item, state)
    return state


def in_force(operations: Iterable[Operation]) -> list[Edit]:
    """Return the operations left in force once undo and redo have done their work."""
    stack: list[Edit] = []
    undone: list[Edit] = []
    for operation in operations:
        if isinstance(operation, Undo):
            if stack:
                undone.append(stack.pop())
        elif isinstance(operation, Redo):
            if undone:
                stack.append(undone.pop())
        else:
            stack.append(operation)
            undone.clear()
    return stack
