"""A file whose claims two runs have traced to the stages where errors came in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shared import item_line, node_lines, write_lines


def _claim(text: str, verdict: str, *stages: str) -> dict[str, Any]:
    return {"text": text, "verdict": verdict, **({"error_stages": stages} if stages else {})}


def _said(annotator: str, *claims: dict[str, Any]) -> dict[str, Any]:
    return {
        "annotator": annotator,
        "kind": "detector",
        "status": "done",
        "spans": [],
        "claims": claims,
    }


def traced_file(path: Path) -> Path:
    """Write two items; the first run finds errors in summaries and answers, the second in these."""
    return write_lines(
        path,
        [
            *node_lines(),
            item_line("q1", "who")
            | {
                "annotations": [
                    _said(
                        "first",
                        _claim("A.", "not-supported", "summary"),
                        _claim("B.", "not-supported", "summary", "answer"),
                        _claim("C.", "supported"),
                    ),
                    _said("second", _claim("A.", "not-supported", "answer")),
                ]
            },
            item_line("q2", "money")
            | {"annotations": [_said("first", _claim("D.", "not-supported"))]},
        ],
    )
