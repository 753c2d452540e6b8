"""Claims with verdicts: JSON Lines, CSV, and AVeriTeC's files.

{"claim": …, "label": …, "id": …, "context": …}
    {"prompt": …, "response": …, "claims": [{"claim": …, "label": …}, …]}     FacTool
    {"prompt": …, "response": …, "claims": [text, …], "claim_labels": […]}    FactCheck-Bench
    {"claim": …, "id": …, "evidence": {document: [{"label": …}]}, "cited_doc_ids": […]}    SciFact

``label`` says what the claim is (see ``VERDICTS``; true and false, too); null or absent is no gold
label. The claim becomes the answer of an item and its one gold claim; as nothing says which of its
words are wrong, all of a claim that counts as hallucinated is marked. ``context`` or ``question``
is the question; all other fields stay in ``meta``, such as AVeriTeC's speaker and date, and its
questions with answers, which a detector is to find by itself. Of a line with several claims each is
an item. HoVer's and FEVEROUS's files are read as they are; where ``label`` is null, as in the
four-way set of BingCheck, ``raw_label`` counts.

``label`` is the verdict and empty where there is none; ``rejected`` is a verdict that a person
refused. ``start`` and ``end`` are code points of the answer, quoted in ``words``.

{"claim_id": 0, "claim": …, "evidence": [{"question": …, "answer": …, "url": …,
     "scraped_text": …}, …], "pred_label": …}

The shared task counts its claims from 0; in its ``dev.json`` the position of a claim is its number.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from spanlab.datasets.files import FileRow
from spanlab.datasets.formats.csv_table import CsvReader
from spanlab.datasets.reader import FormatReader, checked, language
from spanlab.errors import InputError
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

VERDICTS: Final[dict[str, Verdict]] = {
    **dict.fromkeys(("supported", "supports", "support", "true"), "supported"),
    **dict.fromkeys(
        ("refuted", "refutes", "refute", "false", "contradict", "contradicts", "contradicted"),
        "refuted",
    ),
    **dict.fromkeys(
        ("not enough evidence", "not enough info", "not enough information", "nei"),
        "not-enough-evidence",
    ),
    **dict.fromkeys(("conflicting", "conflicting evidence/cherrypicking"), "conflicting"),
    **dict.fromkeys(
        ("not supported", "unsupported", "not fully supported", "partially supported"),
        "not-supported",
    ),
    "inconclusive": "inconclusive",
}

COUNTED: Final = "claim-{}"  # the id of a claim that comes without one: its line, from 1


class _ClaimLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    claim: str = Field(min_length=1)
    label: str | bool | None = None
    verdict: str | bool | None = None
    raw_label: str | bool | None = None
    id: str | None = Field(default=None, coerce_numbers_to_str=True)
    claim_id: str | None = Field(default=None, coerce_numbers_to_str=True)
    uid: str | None = None
    lang: str | None = None
    question: str | None = None
    context: str | None = None
    prompt: str | None = None

    @property
    def written(self) -> str | bool | None:
        """The label as it stands there, wherever it stands; None for none."""
        evidence = (self.model_extra or {}).get("evidence")
        if isinstance(evidence, dict) and "cited_doc_ids" in (self.model_extra or {}):
            found = (judgement.get("label") for some in evidence.values() for judgement in some)
            return next(found, "not enough information")
        given = (self.label, self.verdict, self.raw_label)
        return next((label for label in given if label not in (None, "")), None)


class _ClaimTable(CsvReader):
    """A table whose columns are the fields of a line."""

    def _map(self, columns: Sequence[str], samples: Sequence[Mapping[str, Any]]) -> dict[str, str]:
        return {}


class ClaimsReader(FormatReader):
    """Reads claims, one an item."""

    def rows(self) -> Iterator[FileRow]:
        """Yield the claims."""
        is_table = self._file.head().lstrip()[:1] not in (b"{", b"[")
        all_rows = _ClaimTable(self._file, self._options).rows() if is_table else super().rows()
        return chain.from_iterable(map(_apart, all_rows))

    def _record(self, row: FileRow) -> Record:
        line = _ClaimLine.model_validate_json(row.raw)
        meta: dict[str, JsonValue] = dict(line.model_extra or {})
        if line.id and line.claim_id:
            meta["claim_id"] = line.claim_id
        item = checked(
            Item(
                id=line.id or line.claim_id or line.uid or COUNTED.format(row.line),
                lang=language(line.lang),
                question=line.question or line.context or line.prompt or "",
                answer=line.claim,
                meta=meta,
            )
        )
        if line.written is None:
            return Record(item=item)
        verdict = verdict_of(line.written)
        whole = Span.of(line.claim, 0, len(line.claim))
        return Record(
            item=item,
            annotations=(
                Annotation(
                    annotator="gold",
                    kind=AnnotatorKind.GOLD,
                    spans=(whole,) if verdict in HALLUCINATED else (),
                    claims=(Claim(text=line.claim, source=whole, verdict=verdict),),
                ),
            ),
        )


class _ClaimList(BaseModel):
    """An answer with the claims in it; what is wrong with one is said of its own row."""

    model_config = ConfigDict(extra="allow")

    id: str | None = Field(default=None, coerce_numbers_to_str=True)
    response: str
    claims: list[str | dict[str, JsonValue]]
    claim_labels: list[JsonValue] = Field(default_factory=list)


def _apart(row: FileRow) -> Iterator[FileRow]:
    """Yield a row for each claim of an answer; any other row as it is."""
    if b'"claims"' not in row.beginning or row.refused is not None:
        yield row
        return
    try:
        told = _ClaimList.model_validate_json(row.raw)
    except ValidationError:
        yield row
        return
    shared = (told.model_extra or {}) | {"response": told.response, "label": None}
    for number, (claim, label) in enumerate(zip_longest(told.claims, told.claim_labels), start=1):
        own = claim if isinstance(claim, dict) else {"claim": claim, "label": label}
        name = f"{told.id or COUNTED.format(row.line)}-{number}"
        yield row._replace(beginning=json.dumps(shared | {"id": name} | own).encode())


def verdict_of(written: str | bool, *, field: str = "label") -> Verdict:
    """Return the verdict that a label of a dataset means; ``field`` is where it stands.

    Raises:
        InputError: it means none that is known.
    """
    text = str(written).strip().casefold().replace("_", " ").replace("-", " ")
    verdict = VERDICTS.get(text)
    if verdict is None:
        raise InputError(
            "this label is no verdict on a claim",
            field=field,
            found=str(written),
            expected="true, false or a verdict such as supported, refuted, not enough evidence, "
            "conflicting, not supported or inconclusive",
        )
    return verdict


COLUMNS: Final = (
    "claim",
    "label",
    "rejected",
    "item",
    "lang",
    "question",
    "annotator",
    "kind",
    "prob",
    "start",
    "end",
    "words",
    "note",
    "suggested_by",
    "voters",
    "error_stages",
    "evidence",
)


def rows(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield the rows of each record's claims, of all its annotations; none is empty bytes."""
    for record in records:
        lines = [
            _cells(claim, record.item, annotation, rejected=rejected)
            for annotation in record.annotations
            for claims, rejected in (
                (annotation.claims, False),
                (annotation.rejected_claims, True),
            )
            for claim in claims
        ]
        yield _encoded(lines)


def header() -> bytes:
    """Return the first row."""
    return _encoded([COLUMNS])


def _cells(claim: Claim, item: Item, annotation: Annotation, *, rejected: bool) -> list[object]:
    source = claim.source
    return [
        claim.text,
        None if rejected else claim.verdict,
        claim.verdict if rejected else None,
        item.id,
        item.lang,
        item.question,
        annotation.annotator,
        annotation.kind.value,
        claim.prob,
        source and source.start,
        source and source.end,
        source and source.text,
        claim.note,
        claim.suggested_by,
        " | ".join(claim.voters),
        " | ".join(claim.error_stages),
        " | ".join(quote.text for quote in claim.evidence),
    ]


def _encoded(lines: Iterable[Iterable[object]]) -> bytes:
    written = io.StringIO()
    csv.writer(written, lineterminator="\n").writerows(lines)
    return written.getvalue().encode()


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

    def _record(self, row: FileRow) -> Record:
        line = _PredictedClaim.model_validate_json(row.raw)
        verdict = verdict_of(line.pred_label, field="pred_label")
        whole = Span.of(line.claim, 0, len(line.claim))
        read = dict.fromkeys(page for pair in line.evidence if (page := _page(pair)) is not None)
        places = {page: index for index, page in enumerate(read)}
        annotation = Annotation(
            annotator=SYSTEM,
            kind=AnnotatorKind.DETECTOR,
            spans=(whole,) if verdict in HALLUCINATED else (),
            claims=(Claim(text=line.claim, source=whole, verdict=verdict),),
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
    given = item.meta.get("claim_id")
    if given is not None:
        return str(given)
    return item.id if counted is None else str(int(counted[1]) - 1)


def dumps(item: Item, annotation: Annotation) -> bytes:
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
