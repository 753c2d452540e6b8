"""Answers whose parts are judged: FELM's segments, FActScore's facts, FAVA's tags.

    {"prompt", "response", "segmented_response": [text, …], "labels": [true, …], "type", "comment"}
    {"input", "output", "annotations": [{"text", "human-atomic-facts": [{"text", "label": "NS"}]}]}
    {"prompt", "output", "annotated": "… <entity><mark>1889</mark><delete>1989</delete></entity>"}

A segment that is not true is a span, as are words that FAVA deletes or puts in a tag alone, with
the kind of error as label; what FAVA inserts between ``<mark>`` is not in the answer. A fact is a
claim, with the sentence that it was taken from. A part that does not stand in the answer is a claim
without a place; of repeated texts the order says which is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from pydantic_core import from_json

from spanlab.base.errors import InputError
from spanlab.formats.files import FileRow
from spanlab.formats.known.claims import verdict_of
from spanlab.formats.quotes import span_at
from spanlab.formats.reader import FormatEntry, FormatReader, checked, is_missing, text_of
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Record, Span

_SEGMENTS, _FACTS, _TAGGED = "segmented_response", "human-atomic-facts", "annotated"
_USED: Final = frozenset(
    (
        *("index", "id", "prompt", "input", "response", "output", "labels", "type", "comment"),
        *(_SEGMENTS, _TAGGED, "annotations"),
    )
)
_TAG: Final = re.compile(r"<(/?)(\w+)>")
_INSERTED, _DELETED = "mark", "delete"


class _Part(NamedTuple):
    """A part of an answer that is wrong: its text, and what is said of it."""

    text: str
    label: str | None = None
    note: str | None = None


class JudgedPartsReader(FormatReader):
    """Reads answers with judgements on their parts, one an item."""

    signatures = (
        frozenset(("response", _SEGMENTS, "labels")),
        frozenset(("output", _TAGGED)),
        frozenset(("output", "topic", "annotations")),
    )

    def _record(self, row: FileRow) -> Record:
        try:
            line = from_json(row.raw)
        except ValueError as error:
            raise InputError(f"not valid JSON: {error}") from None
        answer = line.get("response", line.get("output"))
        if not isinstance(answer, str) or not answer:
            raise InputError("there is no answer", field="output", expected="a text")
        question = text_of(line.get("prompt", line.get("input"))) or ""
        meta = {k: v for k, v in line.items() if k not in _USED and not is_missing(v)}
        name = text_of(line.get("id", line.get("index"))) or f"record-{row.line}"
        item = checked(Item(id=name, question=question, answer=answer, meta=meta))
        gold = _annotation(line, answer)
        return Record(item=item, annotations=() if gold is None else (gold,))


def _annotation(line: Mapping[str, Any], answer: str) -> Annotation | None:
    if isinstance(sentences := line.get("annotations"), list):
        claims = tuple(_facts(sentences, answer))
        return Annotation(annotator="gold", kind=AnnotatorKind.GOLD, claims=claims)
    if isinstance(tagged := line.get(_TAGGED), str):
        return _placed(list(_in_tags(tagged)), answer)
    return _placed(list(_segments(line)), answer) if _SEGMENTS in line else None


def _facts(sentences: list[Any], answer: str) -> Iterator[Claim]:
    for n, sentence in enumerate(sentences):
        text = sentence.get("text") or ""
        at = answer.find(text) if text else -1
        source = Span.of(answer, at, at + len(text)) if at >= 0 else None
        for fact in sentence.get(_FACTS) or ():
            if fact.get("label") != "IR":  # irrelevant: neither true nor false
                verdict = verdict_of(fact["label"], field=f"annotations.{n}.{_FACTS}.label")
                yield Claim(text=fact["text"], source=source, verdict=verdict)


def _segments(line: Mapping[str, Any]) -> Iterator[tuple[_Part, bool]]:
    """Yield all segments, in order, with whether each is wrong."""
    columns = (line[_SEGMENTS], *(line.get(name) or [] for name in ("labels", "type", "comment")))
    for text, is_true, kind, comment in zip_longest(*columns):
        yield _Part(text or "", kind or None, comment or None), is_true is False


def _in_tags(tagged: str) -> Iterator[tuple[_Part, bool]]:
    """Yield the pieces of a text without its tags and insertions, with whether each is wrong."""
    open_tags: list[str] = []
    at = 0
    for tag in (*_TAG.finditer(tagged), None):
        text = tagged[at : tag.start() if tag else None]
        kinds = [name for name in open_tags if name not in (_INSERTED, _DELETED)]
        if text and _INSERTED not in open_tags:
            yield _Part(text, kinds[-1] if kinds else None), bool(open_tags and text.strip())
        if tag is None:
            return
        at = tag.end()
        if not tag[1]:
            open_tags.append(tag[2])
        elif tag[2] in open_tags:
            open_tags.remove(tag[2])


def _placed(parts: list[tuple[_Part, bool]], answer: str) -> Annotation:
    """Return labels at the places of parts that follow each other in an answer."""
    spans: list[Span] = []
    claims: list[Claim] = []
    at = 0
    for part, is_wrong in parts:
        start = answer.find(part.text, at) if part.text else -1
        if start >= 0:
            at = start + len(part.text)
        if not is_wrong:
            continue
        if start >= 0:
            spans.append(span_at(answer, start, at, _SEGMENTS, label=part.label, note=part.note))
        else:
            claims.append(Claim(text=part.text.strip(), verdict="not-supported", note=part.note))
    return Annotation(
        annotator="gold", kind=AnnotatorKind.GOLD, spans=tuple(spans), claims=tuple(claims)
    )


FORMAT = FormatEntry(
    name="parts",
    title="Answers whose parts are judged (FELM, FActScore, FAVA)",
    reader=JudgedPartsReader,
    order=90,
)
