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
from typing import Any, Final

from spanlab.formats.judged_parts import JudgedPart, gold_of, gold_of_parts
from spanlab.formats.known.json_table import JsonReader
from spanlab.formats.reader import FormatEntry
from spanlab.formats.verdict_words import verdict_of
from spanlab.schema import Annotation, Claim, Item, Span, Verdict

_SEGMENTS, _FACTS, _TAGGED = "segmented_response", "human-atomic-facts", "annotated"
_SENTENCES, _UNSUPPORTED = "response_sentences", "unsupported_response_sentence_keys"
_BIOGRAPHY: Final = ("gpt3_sentences", "annotation")  # of WikiBio, with "accurate"
_TAG: Final = re.compile(r"<(/?)(\w+)>")
_INSERTED, _DELETED = "mark", "delete"


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
            return gold_of((), tuple(_facts(sentences, item.answer)))
        parts = next((read(cells) for name, read in _READ.items() if name in cells), None)
        return None if parts is None else gold_of_parts(parts, item.answer, _SEGMENTS)


def _verdict(*, is_wrong: bool) -> Verdict:
    return "not-supported" if is_wrong else "supported"


def _biography(line: Mapping[str, Any]) -> Iterator[JudgedPart]:
    for text, kind in zip(*(line[name] for name in _BIOGRAPHY), strict=True):
        yield JudgedPart(text, _verdict(is_wrong=kind != "accurate"), kind)


def _sentences(line: Mapping[str, Any]) -> Iterator[JudgedPart]:
    for key, text in line[_SENTENCES]:
        yield JudgedPart(text, _verdict(is_wrong=key in (line.get(_UNSUPPORTED) or ())))


def _facts(sentences: list[Any], answer: str) -> Iterator[Claim]:
    for n, sentence in enumerate(sentences):
        text = sentence.get("text") or ""
        at = answer.find(text) if text else -1
        source = Span.of(answer, at, at + len(text)) if at >= 0 else None
        for fact in sentence.get(_FACTS) or ():
            if fact.get("label") != "IR":  # irrelevant: neither true nor false
                verdict = verdict_of(fact["label"], field=f"annotations.{n}.{_FACTS}.label")
                yield Claim(text=fact["text"], source=source, verdict=verdict)


def _segments(line: Mapping[str, Any]) -> Iterator[JudgedPart]:
    columns = (line[_SEGMENTS], *(line.get(name) or [] for name in ("labels", "type", "comment")))
    for text, is_true, kind, comment in zip_longest(*columns):
        verdict = _verdict(is_wrong=is_true is False)
        yield JudgedPart(text or "", verdict, kind or None, comment or None)


def _in_tags(line: Mapping[str, Any]) -> Iterator[JudgedPart]:
    """Yield the pieces of a text without its tags and insertions."""
    tagged = line[_TAGGED]
    open_tags: list[str] = []
    at = 0
    for tag in (*_TAG.finditer(tagged), None):
        text = tagged[at : tag.start() if tag else None]
        kinds = [name for name in open_tags if name not in (_INSERTED, _DELETED)]
        if text and _INSERTED not in open_tags:
            verdict = _verdict(is_wrong=bool(open_tags and text.strip()))
            yield JudgedPart(text, verdict, kinds[-1] if kinds else None)
        if tag is None:
            return
        at = tag.end()
        if not tag[1]:
            open_tags.append(tag[2])
        elif tag[2] in open_tags:
            open_tags.remove(tag[2])


_READ: Final = {
    _TAGGED: _in_tags,
    _BIOGRAPHY[0]: _biography,
    _SENTENCES: _sentences,
    _SEGMENTS: _segments,
}

FORMAT = FormatEntry(
    name="parts",
    title="Answers whose parts are judged (FELM, FActScore, FAVA)",
    reader=JudgedPartsReader,
    order=90,
)
