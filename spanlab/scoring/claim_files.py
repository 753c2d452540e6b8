"""Claims with verdicts: JSON Lines and CSV.

    {"claim": …, "label": …, "id": …, "context": …}
    {"prompt": …, "response": …, "claims": [{"claim": …, "label": …}, …]}     FacTool
    {"prompt": …, "response": …, "claims": [text, …], "claim_labels": […]}    FactCheck-Bench
    {"claim": …, "id": …, "evidence": {document: [{"label": …}]}, "cited_doc_ids": […]}    SciFact

``label`` says what the claim is (see ``verdict_words``; true and false, 1 and 0, too); null or
absent is no gold label. The claim becomes the answer of an item and its one gold claim; as nothing
says which of its words are wrong, all of a claim that counts as hallucinated is marked.
``question``, ``prompt``, or a ``context`` that asks, is the question; ``evidence``, ``doc``,
``document``, ``context`` and the like are passages, if they are texts. All other fields stay in
``meta``, such as AVeriTeC's speaker and date, and its questions with answers, which a detector is
to find by itself. Of a line with several claims each is an item. HoVer's and FEVEROUS's files are
read as they are; where ``label`` is null, as in the four-way set of BingCheck, ``raw_label``
counts.

In CSV ``label`` is the verdict and empty where there is none; ``rejected`` is a verdict that a
person refused. ``start`` and ``end`` are code points of the answer, quoted in ``words``.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, Final

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, JsonValue, ValidationError

from spanlab.doors import Export
from spanlab.formats.annotator_rows import names_annotator
from spanlab.formats.cells import passages_in
from spanlab.formats.columns import words_of
from spanlab.formats.files import FileRow, InputFile
from spanlab.formats.known.csv_table import CsvReader
from spanlab.formats.read_options import ReadOptions
from spanlab.formats.reader import (
    FormatEntry,
    FormatReader,
    Preamble,
    as_passage,
    checked,
    has_text,
    language,
    parse_list,
)
from spanlab.formats.verdict_words import verdict_of
from spanlab.output.csv_text import further_columns, write_rows
from spanlab.output.figures import counted
from spanlab.schema import (
    HALLUCINATED,
    Annotation,
    AnnotatorKind,
    Citation,
    Claim,
    Item,
    Record,
    Span,
)

_ASKS: Final = ("?", "？", "؟")  # a context that ends so is what was asked, as in FacTool
_EVIDENCE: Final = (  # fields with the texts that a claim is judged by, in this order
    *("evidence", "doc", "docs", "document", "documents", "passages", "passage", "contexts"),
    *("evidence_text", "context", "source", "article", "premise", "sentence1", "grounding"),
    "references",  # of AttributionBench; those of a summary are right ones
)
COUNTED: Final = "claim-{}"  # the id of a claim that comes without one: its line, from 1


_CLAIMS: Final = (
    *("claim", "hypothesis", "statement", "sentence", "sentence2", "summary", "generated_text"),
    "summ_sent",  # of TofuEval
)
_JUDGED: Final = (
    "sentence",
    "summary",
    "generated_text",
)  # which are claims beside a label and what it is of
_LABELS: Final = (  # fields that may have the label
    *("label", "verdict", "raw_label", "gold_label", "is_supported", "supported"),
    *("attribution_label", "sent_label"),
)
_Label = str | bool | int | float | None


class _ClaimLine(BaseModel):
    model_config = ConfigDict(frozen=True, extra="allow")

    claim: str = Field(min_length=1, validation_alias=AliasChoices(*_CLAIMS))
    label: _Label = Field(None, validation_alias=AliasChoices("label", "sent_label"))
    verdict: _Label = None
    raw_label: _Label = None
    gold_label: _Label = Field(
        None, validation_alias=AliasChoices("gold_label", "attribution_label")
    )
    is_supported: _Label = Field(None, validation_alias=AliasChoices("is_supported", "supported"))
    id: str | None = Field(default=None, coerce_numbers_to_str=True)
    claim_id: str | None = Field(default=None, coerce_numbers_to_str=True)
    uid: str | None = None
    lang: str | None = None
    question: str | None = None
    prompt: str | None = None

    def evidence_field(self) -> str | None:
        """Return the field with the texts that the claim is to be judged by; None for none.

        Evidence that is an object (SciFact's, FEVER's sentence numbers) is none to read.
        """
        extra = self.model_extra or {}
        for name in _EVIDENCE:
            value = parse_list(extra.get(name))
            parts = value if isinstance(value, list) else [value]
            are_links = all(str(part).startswith(("http://", "https://")) for part in parts)
            if value and not are_links and all(has_text(as_passage(part)) for part in parts):
                return name
        return None

    @property
    def has_class_number(self) -> bool:
        """Whether the label is the number of a class, which differs from one set to the next."""
        number = str(self.label).removesuffix(".0").removeprefix("-").isdecimal()
        extra = self.model_extra or {}
        return number and not extra.keys().isdisjoint(("premise", "sentence1"))

    @property
    def written(self) -> _Label:
        """The label, wherever it is in the file; None for none."""
        evidence = (self.model_extra or {}).get("evidence")
        if isinstance(evidence, dict) and "cited_doc_ids" in (self.model_extra or {}):
            judgements = chain.from_iterable(evidence.values())
            labels = (judgement.get("label") for judgement in judgements)
            return next(labels, "not enough information")
        if self.has_class_number:
            return None
        stated = (self.label, self.verdict, self.raw_label, self.gold_label, self.is_supported)
        return next((label for label in stated if label not in (None, "")), None)


_NAMES: Final = frozenset((*_CLAIMS, *_EVIDENCE, *_LABELS, *_ClaimLine.model_fields))


class _ClaimTable(CsvReader):
    """A table whose columns are the fields of a line."""

    def is_ours(self, columns: Sequence[str]) -> bool:
        """Say whether a table of claims was written here."""
        return set(COLUMNS) <= set(columns)


class ClaimsReader(FormatReader):
    """Reads claims, one an item."""

    signatures = (
        frozenset(("claim", "label")),
        frozenset(("claim", "verdict")),
        frozenset(("claim", "gold_label")),
        frozenset(("claim", "attribution_label")),
        frozenset(("claim", "supported")),
        frozenset(("claim", "is_supported")),
        frozenset(("statement", "verdict")),
        frozenset(("statement", "label")),
        frozenset(("summ_sent", "sent_label")),
        frozenset(("sentence1", "sentence2", "gold_label")),
        frozenset(("premise", "hypothesis")),
        frozenset(("claim", "cited_doc_ids")),
        frozenset(("prompt", "response", "claims")),
        *(frozenset((claim, "label", of)) for claim in _JUDGED for of in _EVIDENCE[:-1]),
    )
    in_tables = in_parquet = True

    @classmethod
    def recognises(cls, record: Mapping[str, object]) -> bool:
        """Say whether a record has the fields of a claim, in any case, and one label.

        Where they say who annotates, too, several may say something of one claim or answer.
        """
        named = _with_our_names(record)
        if names_annotator(record) and not record.keys() >= _OF_JUDGES:
            return False
        return super().recognises(named) and not isinstance(named.get("label"), list | dict)

    def __init__(self, file: InputFile, options: ReadOptions) -> None:
        super().__init__(file, options)
        self._n_numbers = 0  # labels that are numbers of classes
        self._judging: set[str] = set()  # columns that verdicts were read from

    @property
    def fields(self) -> Mapping[str, str]:
        """The columns of the labels."""
        return dict.fromkeys(self._judging, "labels")

    def _remarks(self) -> Iterator[str]:
        if self._n_numbers:
            yield (
                "what a number says of a hypothesis differs from one set to the next: "
                f"{counted(self._n_numbers, 'label')} stay in meta; words such as entailment "
                "become verdicts"
            )

    def rows(self) -> Iterator[FileRow]:
        """Yield the claims."""
        is_table = self._file.head().lstrip()[:1] not in (b"{", b"[")
        all_rows = _ClaimTable(self._file, self._options).given() if is_table else super().rows()
        return chain.from_iterable(map(_split_claims, all_rows))

    def _record(self, row: FileRow) -> Record:
        given = row.value
        line = _ClaimLine.model_validate(_with_our_names(given))
        meta: dict[str, JsonValue] = dict(line.model_extra or {})
        evidence = line.evidence_field()
        texts = meta.pop(evidence, None) if evidence else None
        if line.has_class_number:
            meta["label"] = line.label
            self._n_numbers += 1
        asked = ""
        if evidence == "context" and isinstance(texts, str) and texts.rstrip().endswith(_ASKS):
            asked, texts = texts, None
        if line.id and line.claim_id:
            meta["claim_id"] = line.claim_id
        judge, kind = "gold", AnnotatorKind.GOLD
        if meta.keys() >= _OF_JUDGES:  # as written here
            judge, kind = str(meta.pop("annotator")), AnnotatorKind(str(meta.pop("kind")))
        passages = passages_in(texts, evidence or "")
        every = tuple(range(len(passages)))  # of AttributionBench: those that the claim cites
        cites = "attribution_label" in given and passages
        item = checked(
            Item(
                id=line.id or line.claim_id or line.uid or COUNTED.format(row.line),
                lang=language(line.lang),
                question=line.question or line.prompt or asked,
                answer=line.claim,
                passages=passages,
                citations=[Citation(start=0, end=len(line.claim), passages=every)] if cites else (),
                meta=meta,
            )
        )
        if line.written is None:
            return Record(item=item)
        self._judging |= {name for name in given if _our_name(name) in _LABELS}
        verdict = verdict_of(line.written)
        whole_answer = Span.of(line.claim, 0, len(line.claim))
        return Record(
            item=item,
            annotations=(
                Annotation(
                    annotator=judge,
                    kind=kind,
                    spans=(whole_answer,) if verdict in HALLUCINATED else (),
                    claims=(Claim(text=line.claim, source=whole_answer, verdict=verdict),),
                ),
            ),
        )


def _with_our_names(fields: Any) -> Any:
    """Return fields with those of a claim in small letters, as "Claim" or "goldLabel"."""
    if not isinstance(fields, Mapping):
        return fields
    names = {name: _our_name(name) for name in fields}
    return {
        ours if ours in _NAMES and ours not in fields else name: fields[name]
        for name, ours in names.items()
    }


def _our_name(name: str) -> str:
    return words_of(name).replace(" ", "_")


class _ClaimList(BaseModel):
    """An answer with the claims in it; what is wrong with one is said of its own row."""

    model_config = ConfigDict(extra="allow")

    id: str | None = Field(default=None, coerce_numbers_to_str=True)
    response: str
    claims: list[str | dict[str, JsonValue]]
    claim_labels: list[JsonValue] = Field(default_factory=list)


def _split_claims(row: FileRow) -> Iterator[FileRow]:
    """Yield a row for each claim of an answer; any other row as it is."""
    if b'"claims"' not in row.beginning or row.refused is not None:
        yield row
        return
    try:
        line = _ClaimList.model_validate_json(row.raw)
    except ValidationError:
        yield row
        return
    shared = (line.model_extra or {}) | {"response": line.response, "label": None}
    for number, (claim, label) in enumerate(zip_longest(line.claims, line.claim_labels), start=1):
        own = claim if isinstance(claim, dict) else {"claim": claim, "label": label}
        name = f"{line.id or COUNTED.format(row.line)}-{number}"
        yield row._replace(beginning=json.dumps(shared | {"id": name} | own).encode())


COLUMNS: Final = (
    *("claim", "label", "rejected", "item", "lang", "question", "annotator", "kind", "prob"),
    *("start", "end", "words", "note", "suggested_by", "voters", "error_stages", "evidence"),
)
_OF_JUDGES: Final = frozenset(COLUMNS) - frozenset(_ClaimLine.model_fields) - {"evidence"}


def chunks(records: Iterable[Record]) -> Iterator[bytes]:
    """Yield each record's claims as rows, of all its annotations; empty bytes if it has none."""
    yield Preamble(_csv_bytes([(*COLUMNS, *further_columns())]))
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
        yield _csv_bytes(lines)


def has_claims(record: Record) -> bool:
    """Say whether anyone has stated a claim, or rejected one."""
    return any(annotation.claims or annotation.rejected_claims for annotation in record.annotations)


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


def _csv_bytes(lines: Iterable[Iterable[object]]) -> bytes:
    text = io.StringIO()
    write_rows(text, lines)
    return text.getvalue().encode()


FORMAT = FormatEntry(
    name="claims",
    title="Claims with labels (AVeriTeC)",
    reader=ClaimsReader,
    chunks=chunks,
    export=Export(
        "Claims as CSV",
        "One row per claim with its verdict.",
        "csv",
        "text/csv",
        in_record=f"{__name__}:has_claims",
    ),
    order=80,
)
