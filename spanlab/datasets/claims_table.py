"""Claims as a table in CSV, one a row: what annotators say of the claims of all items.

``label`` is the verdict and empty where there is none; ``rejected`` is a verdict that a person
refused. ``start`` and ``end`` are code points of the answer, quoted in ``words``.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Final

from spanlab.schema import Annotation, Claim, Item, Record

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
