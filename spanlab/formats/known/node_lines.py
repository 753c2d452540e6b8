"""Processes that items share, in our JSON Lines: a line for each node, before the items.

    {"process": "index", "node": {"id": …, "text": …, "stage": …, "sources": […]}}
    {"id": …, "answer": …, "process": {"id": "index", "terminal": …}}

``terminal`` is the node that holds the item's answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pydantic import ValidationError
from pydantic_core import to_json

from spanlab.base.errors import InputError
from spanlab.base.fields import FrozenModel
from spanlab.formats.files import FileRow
from spanlab.formats.limits import TOGETHER, too_many
from spanlab.formats.reader import input_error
from spanlab.schema import BadNodeError, Name, NodesInMemory, NodeTable, ProcessNode, SharedProcess

_BEGINS: Final = re.compile(rb'\s*\{\s*"(?:process|node)"\s*:')
_NODE: Final = 600  # bytes of memory that a node takes, without its text
_PIECE: Final = 4096  # nodes written at once


class _NodeLine(FrozenModel):
    process: Name
    node: ProcessNode


class _CollectedProcess:
    """The nodes of one process so far, and the lines that they came from."""

    def __init__(self) -> None:
        self.nodes: list[ProcessNode] = []
        self.lines: list[int] = []
        self.checked: NodesInMemory | InputError | None = None  # or why it is none

    def close(self, file: str) -> NodesInMemory | InputError:
        """Check the nodes, once the first item comes that names them."""
        if self.checked is None:
            try:
                self.checked = NodesInMemory(NodeTable(self.nodes))
            except BadNodeError as error:
                # Of two lines with one id, the second is one too many.
                lines = zip(self.nodes, self.lines, strict=True)
                line = max(line for node, line in lines if node.id == error.node)
                self.checked = InputError(str(error), file=file, line=line)
            self.nodes, self.lines = [], []
        return self.checked


class NodeLines:
    """Collects the node lines of a file, and hands each item the process that it names.

    Args:
        file: what messages call the file.
        limit: bytes of memory that a record may take.
    """

    def __init__(self, file: str, limit: int) -> None:
        self._file, self._limit, self._size = file, limit, 0
        self._processes: dict[str, _CollectedProcess] = {}
        self._named: set[str] = set()

    def collect(self, row: FileRow) -> bool:
        """Keep the node that a line holds, if it holds one, and say whether it does.

        Raises:
            InputError: it is a node that cannot be read, or comes too late; names the line.
        """
        if not _BEGINS.match(row.beginning) or b'"node"' not in row.beginning:
            return False
        try:
            line = _NodeLine.model_validate_json(row.raw)
        except ValidationError as error:
            raise input_error(error).at(file=self._file, line=row.line, unit=row.unit) from None
        collected = self._processes.setdefault(line.process, _CollectedProcess())
        if collected.checked is not None:
            raise InputError(
                f"a node of the process {line.process!r} after an item that came from it",
                found=line.node.id,
                expected="all nodes of a process before its items",
            ).at(file=self._file, line=row.line, unit=row.unit)
        self._size += _NODE + 2 * len(line.node.text)
        if self._size > TOGETHER * self._limit:
            raise too_many("what the processes hold", self._limit, self._file, row.line)
        collected.nodes.append(line.node)
        collected.lines.append(row.line)
        return True

    def with_nodes(self, reference: SharedProcess) -> SharedProcess:
        """Return a process that an item names, with its nodes.

        Raises:
            InputError: the file has no such process or terminal node, or the process is none;
                names the line of the node where that shows.
        """
        self._named.add(reference.id)
        nodes = self._checked_nodes(reference.id)
        if not nodes.find([reference.terminal]):
            raise InputError(
                f"the process {reference.id!r} has no such node",
                field="process.terminal",
                found=reference.terminal,
            )
        return reference.among(nodes)

    def unused(self) -> list[str]:
        """Return the ids of processes that no item came from."""
        return [name for name in self._processes if name not in self._named]

    def _checked_nodes(self, name: str) -> NodesInMemory:
        collected = self._processes.get(name)
        if collected is None:
            raise InputError(
                "no line before this one has a node of this process",
                field="process.id",
                found=name,
                expected='lines such as {"process": …, "node": {…}}',
            )
        nodes = collected.close(self._file)
        if isinstance(nodes, InputError):
            raise nodes
        return nodes


def node_lines(process: SharedProcess) -> Iterator[bytes]:
    """Yield the lines of a process's nodes, many at once; none if they are not at hand."""
    if process.source is None:
        return
    piece: list[bytes] = []
    for node in process.source.all():
        line = {"process": process.id, "node": node.model_dump(exclude_defaults=True)}
        piece.append(to_json(line) + b"\n")
        if len(piece) == _PIECE:
            yield b"".join(piece)
            piece = []
    yield b"".join(piece)
