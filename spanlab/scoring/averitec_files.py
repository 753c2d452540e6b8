"""AVeriTeC's predictions, read and written as the shared task has them.

{"claim_id": 0, "claim": …, "evidence": [{"question": …, "answer": …, "url": …,
     "scraped_text": …}, …], "pred_label": …}

The shared task counts its claims from 0; in its ``dev.json`` the position of a claim is its number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from pydantic import BaseModel, Field, JsonValue

from spanlab.doors import Export
from spanlab.formats.files import FileRow
from spanlab.formats.reader import FormatEntry, FormatReader, checked
from spanlab.formats.verdict_words import verdict_of
from spanlab.schema import (
    HALLUCINATED,
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    PairStep,
    Passage,
    Record,
    Span,
    Verdict,
)
from spanlab.scoring.claim_files import COUNTED

SYSTEM: Final = "averitec"  # signs predictions that are read without a name
LABELS: Final[dict[Verdict, str]] = {  # the worst first: that of any claim is the answer's
    "refuted": "Refuted",
    "not-supported": "Refuted",
    "conflicting": "Conflicting Evidence/Cherrypicking",
    "not-enough-evidence": "Not Enough Evidence",
    "inconclusive": "Not Enough Evidence",
    "supported": "Supported",
}
_COUNTED: Final = re.compile(COUNTED.format(r"([1-9][0-9]*)"))
_NUMBER: Final = re.compile("0|[1-9][0-9]*")


class _QuestionEvidence(BaseModel):
    question: str
    answer: str
    url: str | None = None
    scraped_text: str | None = None


class _PredictedClaim(BaseModel):
    claim_id: str = Field(coerce_numbers_to_str=True)
    claim: str = Field(min_length=1)
    pred_label: str
    evidence: list[_QuestionEvidence] = Field(default_factory=list)


class AveritecReader(FormatReader):
    """Reads predictions: the claim is the answer, its pairs are the trace of the verdict."""

    signatures = (frozenset(("claim_id", "claim", "pred_label")),)

    def _record(self, row: FileRow) -> Record:
        line = _PredictedClaim.model_validate_json(row.raw)
        verdict = verdict_of(line.pred_label, field="pred_label")
        whole_answer = Span.of(line.claim, 0, len(line.claim))
        pages = dict.fromkeys(page for pair in line.evidence if (page := _page(pair)) is not None)
        places = {page: index for index, page in enumerate(pages)}
        annotation = Annotation(
            annotator=SYSTEM,
            kind=AnnotatorKind.DETECTOR,
            spans=(whole_answer,) if verdict in HALLUCINATED else (),
            claims=(Claim(text=line.claim, source=whole_answer, verdict=verdict),),
            trace=tuple(_step(pair, at, places) for at, pair in enumerate(line.evidence, start=1)),
        )
        item = checked(Item(id=line.claim_id, answer=line.claim, passages=tuple(places)))
        return Record(item=item, annotations=(annotation,))


def _page(pair: _QuestionEvidence) -> Passage | None:
    """Return the page that a pair rests on, None where its text is not there."""
    text = pair.scraped_text or ""
    return Passage(text=text, url=pair.url or None) if text.strip() else None


def _step(pair: _QuestionEvidence, number: int, places: dict[Passage, int]) -> PairStep:
    page = _page(pair)
    return PairStep(
        question=pair.question,
        answer=pair.answer,
        searched="",
        passages=() if page is None else (places[page],),
        remark=f"source: {pair.url}" if page is None and pair.url else None,
        claim=0,
        round=number,
    )


def claim_id(item: Item) -> str:
    """Return the number of an item in the shared task's files, or the id that it came with.

    A claim without an id was called by its place, counted from 1, when it was read.
    """
    counted = _COUNTED.fullmatch(item.id)
    own_id = item.meta.get("claim_id")
    if own_id is not None:
        return str(own_id)
    return item.id if counted is None else str(int(counted[1]) - 1)


def prediction_line(item: Item, annotation: Annotation) -> bytes:
    """Return a detector's verdict on an item as an element of the shared task's JSON.

    The answer is the claim. Where it was taken apart into several claims, the worst verdict counts;
    a claim without a verdict is not enough evidence. The evidence is what the trace holds of
    questions and answers.
    """
    verdicts = {claim.verdict or "not-enough-evidence" for claim in annotation.claims}
    worst: Verdict = next(
        (verdict for verdict in LABELS if verdict in verdicts), "not-enough-evidence"
    )
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
    number = claim_id(item)
    prediction: dict[str, JsonValue] = {
        "claim_id": int(number) if _NUMBER.fullmatch(number) else number,
        "claim": item.answer,
        "evidence": evidence,
        "pred_label": LABELS[worst],
    }
    return json.dumps(prediction, ensure_ascii=False).encode()


def chunks(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield an element for each record, which has one annotation."""
    return (prediction_line(record.item, record.annotations[0]) for record in records)


FORMAT = FormatEntry(
    name="averitec",
    title="AVeriTeC predictions",
    reader=AveritecReader,
    chunks=chunks,
    around=(b"[\n", b",\n", b"\n]\n"),
    of_one=True,
    export=Export(
        "AVeriTeC",
        "Verdicts with questions and answers, as the task's evaluator reads them.",
        "json",
        "application/json",
        in_record="spanlab.scoring.claim_files:has_claims",
    ),
    order=100,
)
