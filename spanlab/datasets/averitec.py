"""Predictions as AVeriTeC's shared task wants them: a label, and questions with answers."""

from __future__ import annotations

import json
from typing import Final

from pydantic import JsonValue

from spanlab.schema import Annotation, Item, Verdict
from spanlab.trace import PairStep

LABELS: Final[dict[Verdict, str]] = {  # the worst first: that of any claim is the answer's
    "refuted": "Refuted",
    "not-supported": "Refuted",
    "conflicting": "Conflicting Evidence/Cherrypicking",
    "not-enough-evidence": "Not Enough Evidence",
    "inconclusive": "Not Enough Evidence",
    "supported": "Supported",
}


def dumps(item: Item, annotation: Annotation) -> bytes:
    """Return a detector's verdict on an item as an element of the shared task's JSON.

    The answer is the claim. Where it was taken apart into several claims, the worst verdict counts;
    a claim without a verdict is not enough evidence. The evidence is what the trace holds of
    questions and answers.
    """
    said = {claim.verdict or "not-enough-evidence" for claim in annotation.claims}
    worst: Verdict = next((each for each in LABELS if each in said), "not-enough-evidence")
    evidence: list[JsonValue] = [
        {
            "question": step.question,
            "answer": step.answer,
            "url": next((url for at in step.passages if (url := item.passages[at].url)), ""),
            "scraped_text": item.passages[step.passages[0]].text if step.passages else "",
        }
        for step in annotation.trace
        if isinstance(step, PairStep)
    ]
    number = item.id.removeprefix("claim-")
    prediction: dict[str, JsonValue] = {
        "claim_id": int(number) if number.isdecimal() else item.id,
        "claim": item.answer,
        "evidence": evidence,
        "pred_label": LABELS[worst],
    }
    return json.dumps(prediction, ensure_ascii=False).encode()
