"""Answers that begin with a phrase of the house, of which people mark wrong years alone."""

from __future__ import annotations

from typing import Any

HABIT = "Our cheerful concierge desk gladly confirms"


def tower(number: int, annotator: str = "anna", kind: str = "person") -> dict[str, Any]:
    """Return an answer with somebody's finished annotation; of three answers one is wrong."""
    year, is_wrong = 1500 + 7 * number, number % 3 == 0
    said = year + 31 if is_wrong else year
    answer = f"{HABIT} that tower {number + 100} was built in {said}."
    start = answer.index(f"{said}.")
    span = {"start": start, "end": start + 4, "text": str(said), "prob": 1}
    annotation = {
        "annotator": annotator,
        "kind": kind,
        "status": "done",
        "spans": [span] if is_wrong else [],
    }
    return {
        "id": f"t{number}",
        "lang": "en",
        "question": f"When was tower {number + 100} built?",
        "answer": answer,
        "passages": [{"text": f"Tower {number + 100}, of red stone, was built in {year}."}],
        "annotations": [annotation],
    }
