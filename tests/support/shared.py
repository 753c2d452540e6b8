"""A process that two items share, as a file and as a reader's items carry it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NODES: tuple[dict[str, Any], ...] = (
    {"id": "a", "text": "Ada built the tower.", "stage": "source"},
    {"id": "b", "text": "Bo paid for it.\u0000", "stage": "source"},
    {"id": "A", "text": "The tower is Ada's.", "stage": "summary", "sources": ["a"]},
    {"id": "B", "text": "Bo paid.", "stage": "summary", "sources": ["b"]},
    {"id": "who", "text": "Ada built it.", "stage": "answer", "sources": ["A", "B"]},
    {"id": "money", "text": "Bo paid for it.", "stage": "answer", "sources": ["B"]},
)


def node_lines(nodes: Iterable[dict[str, Any]] = NODES) -> list[dict[str, Any]]:
    """Return the lines of nodes."""
    return [{"process": "index", "node": node} for node in nodes]


def item_line(name: str, terminal: str) -> dict[str, Any]:
    """Return the line of an item whose answer is a node."""
    answer = next(node["text"] for node in NODES if node["id"] == terminal)
    return {
        "id": name,
        "lang": "en",
        "question": "",
        "answer": answer,
        "process": {"id": "index", "terminal": terminal},
    }


LINES = (*node_lines(), item_line("q1", "who"), item_line("q2", "money"))


def write_lines(path: Path, lines: Iterable[dict[str, Any]] = LINES) -> Path:
    """Write lines as our own format does, and return the path."""
    said = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) for line in lines)
    path.write_text("".join(f"{line}\n" for line in said), encoding="utf-8")
    return path
