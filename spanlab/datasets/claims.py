"""Claims with verdicts: one claim a line, also as CSV, or AVeriTeC's ``dev.json``.

    {"claim": …, "label": …, "id": …, "context": …}

``label`` says what the claim is (see ``VERDICTS``; true and false, too); null or absent is no gold
label. The claim becomes the answer of an item and its one gold claim; as nothing says which of its
words are wrong, all of a claim that counts as hallucinated is marked. ``context`` or ``question``
is the question; all other fields stay in ``meta``, such as AVeriTeC's speaker and date, and its
questions with answers, which a detector is to find by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from spanlab.datasets.csv_table import CsvReader
from spanlab.datasets.files import Row
from spanlab.datasets.given import checked, language
from spanlab.datasets.reader import Reader
from spanlab.errors import InputError
from spanlab.schema import HALLUCINATED, Annotation, Claim, Item, Kind, Record, Span, Verdict

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


class _ClaimLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    claim: str = Field(min_length=1)
    label: str | bool | None = None
    verdict: str | bool | None = None
    id: str | None = Field(default=None, coerce_numbers_to_str=True)
    claim_id: str | None = Field(default=None, coerce_numbers_to_str=True)
    lang: str | None = None
    question: str | None = None
    context: str | None = None


class _Table(CsvReader):
    """A table whose columns are the fields of a line."""

    def _map(self, columns: Sequence[str]) -> dict[str, str]:
        return {}


class ClaimsReader(Reader):
    """Reads claims, one an item."""

    def rows(self) -> Iterator[Row]:
        """Yield the claims."""
        is_table = self._file.head().lstrip()[:1] not in (b"{", b"[")
        return _Table(self._file, self._options).rows() if is_table else super().rows()

    def _record(self, row: Row) -> Record:
        line = _ClaimLine.model_validate_json(row.raw)
        meta: dict[str, JsonValue] = dict(line.model_extra or {})
        item = checked(
            Item(
                id=line.id or line.claim_id or f"claim-{row.line}",
                lang=language(line.lang),
                question=line.question or line.context or "",
                answer=line.claim,
                meta=meta,
            )
        )
        written = line.verdict if line.label in (None, "") else line.label
        if written in (None, ""):
            return Record(item=item)
        verdict = verdict_of(written)
        whole = Span.of(line.claim, 0, len(line.claim))
        return Record(
            item=item,
            annotations=(
                Annotation(
                    annotator="gold",
                    kind=Kind.GOLD,
                    spans=(whole,) if verdict in HALLUCINATED else (),
                    claims=(Claim(text=line.claim, source=whole, verdict=verdict),),
                ),
            ),
        )


def verdict_of(written: str | bool) -> Verdict:
    """Return the verdict that a label of a dataset means.

    Raises:
        InputError: it means none that is known.
    """
    text = str(written).strip().casefold().replace("_", " ").replace("-", " ")
    found = VERDICTS.get(text)
    if found is None:
        raise InputError(
            "this label is no verdict on a claim",
            field="label",
            found=str(written),
            expected="true, false or a verdict such as supported, refuted, not enough evidence, "
            "conflicting, not supported or inconclusive",
        )
    return found
