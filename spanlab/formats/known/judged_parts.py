"""Answers whose parts are judged, of FELM, RAGBench, FActScore and FAVA.

    {"prompt", "response", "segmented_response": [text, …], "labels": [true, …], "type", "comment"}
    {"response", "response_sentences": [[key, …], …], "unsupported_response_sentence_keys": [key]}
    {"input", "output", "annotations": [{"text", "human-atomic-facts": [{"text", "label": "NS"}]}]}
    {"gpt3_text", "gpt3_sentences": [text, …], "annotation": ["accurate", "major_inaccurate", …]}
    {"prompt", "output", "annotated": "… <entity><mark>1889</mark><delete>1989</delete></entity>"}

A part that is not true is a span, as are words that FAVA deletes or puts in a tag alone, with the
kind of error as label; what FAVA inserts between ``<mark>`` is not in the answer. A fact is a
claim, with the sentence that it was taken from. A part that does not stand in the answer is a claim
without a place; of repeated texts the order says which is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from typing import Any, Final, NamedTuple

from spanlab.formats.known.json_table import JsonReader
from spanlab.formats.quotes import span_at
from spanlab.formats.reader import FormatEntry
from spanlab.formats.verdict_words import verdict_of
from spanlab.schema import HALLUCINATED, Annotation, AnnotatorKind, Claim, Item, Span

_SEGMENTS, _FACTS, _TAGGED = "segmented_response", "human-atomic-facts", "annotated"
_SENTENCES, _UNSUPPORTED = "response_sentences", "unsupported_response_sentence_keys"
_BIOGRAPHY: Final = ("gpt3_sentences", "annotation")  # of WikiBio, with "accurate"
_TAG: Final = re.compile(r"<(/?)(\w+)>")
_INSERTED, _DELETED = "mark", "delete"


class _Part(NamedTuple):
    """A part of an answer that is wrong: its text, and what is said of it."""

    text: str
    label: str | None = None
    note: str | None = None


class JudgedPartsReader(JsonReader):
    """Reads answers with judgements on their parts, one an item."""

    maps_columns = False
    in_parquet = True
    signatures = (
        frozenset(("response", _SEGMENTS, "labels")),
        frozenset(("response", _SENTENCES, _UNSUPPORTED)),
        frozenset(("output", _TAGGED)),
        frozenset(("output", "topic", "annotations")),
        frozenset(("gpt3_text", *_BIOGRAPHY)),
    )
    judgements = frozenset(
        (*("labels", "type", "comment", "annotations", "index"), _SEGMENTS, _TAGGED, _SENTENCES)
    ) | {_UNSUPPORTED, *_BIOGRAPHY}

    def _gold(self, cells: Mapping[str, Any], marked: Any, item: Item) -> Annotation | None:
        if isinstance(sentences := cells.get("annotations"), list):
            claims = tuple(_facts(sentences, item.answer))
            return _gold_of(claims=claims)
        if isinstance(tagged := cells.get(_TAGGED), str):
            return _placed(_in_tags(tagged), item.answer)
        if _BIOGRAPHY[0] in cells:
            judged = zip(*(cells[name] for name in _BIOGRAPHY), strict=True)
            parts = ((_Part(text, kind), kind != "accurate") for text, kind in judged)
            return _placed(parts, item.answer)
        if _SENTENCES in cells:
            return _placed(_sentences(cells), item.answer)
        return _placed(_segments(cells), item.answer) if _SEGMENTS in cells else None


def _sentences(line: Mapping[str, Any]) -> Iterator[tuple[_Part, bool]]:
    for key, text in line[_SENTENCES]:
        yield _Part(text), key in (line.get(_UNSUPPORTED) or ())


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


def _placed(parts: Iterator[tuple[_Part, bool]], answer: str) -> Annotation:
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
    return _gold_of(tuple(spans), tuple(claims))


def _gold_of(spans: tuple[Span, ...] = (), claims: tuple[Claim, ...] = ()) -> Annotation:
    """Return gold labels; an answer with a wrong part is hallucinated, wherever that part is."""
    return Annotation(
        annotator="gold",
        kind=AnnotatorKind.GOLD,
        answer_hallucinated=any(claim.verdict in HALLUCINATED for claim in claims) or None,
        spans=spans,
        claims=claims,
    )


FORMAT = FormatEntry(
    name="parts",
    title="Answers whose parts are judged (FELM, FActScore, FAVA)",
    reader=JudgedPartsReader,
    order=90,
)
