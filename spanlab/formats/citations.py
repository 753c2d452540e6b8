"""What replies of models' APIs say of their citations, by offsets, as an item keeps it.

Understood are Anthropic's blocks of text with citations, Cohere's citations (v1 and v2), OpenAI's
annotations (web pages and files, in both of its APIs), Gemini's grounding supports, and answers in
sentences with citations, as in TREC's tracks. A source counts where it is one of the item's
passages, by text, name or address; others say nothing. Perplexity writes markers into the text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeGuard

from spanlab.formats.reader import as_passage
from spanlab.schema import Citation, Passage
from spanlab.text.citations import Marker, covered_by
from spanlab.text.extents import Extent

_NAMES: Final = ("id", "document_id", "doc_id", "file_id", "filename", "url", "uri", "source")


def said_citations(
    reply: object, answer: str, passages: Sequence[Passage], lang: str
) -> tuple[Citation, ...]:
    """Return the citations that a reply, or a record with one, says with offsets.

    Args:
        reply: the reply as JSON.
        answer: the text that was read of it.
        passages: the item's.
        lang: the answer's language, for its sentences.
    """
    if not passages:
        return ()
    reader = _CitationReader(reply, answer, passages)
    places = dict.fromkeys(
        (stretch.start, stretch.end, named)
        for stretch, named in reader.stretches(lang)
        if named and stretch.start < stretch.end <= len(answer)
    )
    return tuple(Citation(start=s, end=e, passages=named) for s, e, named in sorted(places))


class _CitationReader:
    def __init__(self, reply: object, answer: str, passages: Sequence[Passage]) -> None:
        self._reply, self._answer, self._at = reply, answer, 0
        self._texts = {passage.text: n for n, passage in reversed([*enumerate(passages)])}
        self._names = {p.url: n for n, p in enumerate(passages) if p.url}
        for source in _objects(reply):
            place = self._texts.get(_text(source))
            if place is not None:
                self._names |= {source[n]: place for n in _NAMES if isinstance(source.get(n), str)}

    def stretches(self, lang: str) -> Iterator[tuple[Extent, tuple[int, ...]]]:
        """Yield what is cited, and the passages' indices, which may be none."""
        markers: list[Marker] = []
        for part in _objects(self._reply):
            text, cited = part.get("text"), part.get("citations")
            if isinstance(cited, list) and isinstance(text, str) and _quotes(cited):
                yield self._located(text), self._places(cited)
            elif isinstance(cited, list):
                yield from self._with_offsets(cited)
            noted = part.get("annotations")
            if isinstance(noted, list):
                markers += self._markers(noted, text or part.get("content"))
            for name in ("groundingSupports", "grounding_supports"):
                yield from self._grounded(part, part.get(name))
        for stretch in covered_by(self._answer, lang, markers):
            yield Extent(stretch.start, stretch.end), stretch.passages

    def _located(self, text: str) -> Extent:
        """Return where the next part of the answer is; nothing if it is not there."""
        text = text.strip()
        start = self._answer.find(text, self._at)
        if start < 0 or not text:
            return Extent(0, 0)
        self._at = start + len(text)
        return Extent(start, self._at)

    def _with_offsets(self, cited: Sequence[object]) -> Iterator[tuple[Extent, tuple[int, ...]]]:
        for one in filter(_is_object, cited):
            start, end = one.get("start"), one.get("end")
            sources = one.get("sources") or one.get("document_ids")
            if isinstance(start, int) and isinstance(end, int) and isinstance(sources, list):
                yield self._checked(start, end, one.get("text")), self._places(sources)

    def _checked(self, start: int, end: int, text: object) -> Extent:
        """Return offsets if the answer has the text there, else where it has it."""
        if not isinstance(text, str) or self._answer[start:end] == text:
            return Extent(start, end)
        at = self._answer.find(text)
        return Extent(at, at + len(text)) if at >= 0 else Extent(0, 0)

    def _markers(self, noted: Sequence[object], text: object) -> Iterator[Marker]:
        """Yield OpenAI's annotations; the range of a page is its link, a file has a place alone."""
        by = self._answer.find(text) if isinstance(text, str) and text else 0
        for note in filter(_is_object, noted):
            about = note.get(str(note.get("type")))
            fields = {**note, **(about if isinstance(about, dict) else {})}
            start = fields.get("start_index", fields.get("index"))
            end = fields.get("end_index", start)
            places = self._places([fields])
            if by >= 0 and isinstance(start, int) and isinstance(end, int) and places:
                yield Marker(by + start, by + end, places)

    def _grounded(
        self, part: Mapping[str, Any], supports: object
    ) -> Iterator[tuple[Extent, tuple[int, ...]]]:
        chunks = part.get("groundingChunks") or part.get("grounding_chunks")
        if not isinstance(supports, list) or not isinstance(chunks, list):
            return
        encoded = self._answer.encode()
        for support in filter(_is_object, supports):
            segment = support.get("segment")
            named = support.get("groundingChunkIndices") or support.get("grounding_chunk_indices")
            if not isinstance(segment, dict) or not isinstance(named, list):
                continue
            ends = (
                segment.get("startIndex", segment.get("start_index")) or 0,
                segment.get("endIndex", segment.get("end_index")) or 0,
            )  # in bytes of UTF-8
            start, end = (len(encoded[:at].decode(errors="ignore")) for at in ends)
            sources = [
                source
                for n in named
                if isinstance(n, int) and 0 <= n < len(chunks) and _is_object(chunks[n])
                for source in chunks[n].values()
            ]
            yield self._checked(start, end, segment.get("text")), self._places(sources)

    def _places(self, sources: Sequence[object]) -> tuple[int, ...]:
        """Return the passages that sources are: by text, by a name, or by number."""
        found: list[int | None] = []
        for source in sources:
            if isinstance(source, dict):
                inner = source.get("document")
                texts = [_text(one) for one in (source, inner) if isinstance(one, dict)]
                names = [source[name] for name in _NAMES if isinstance(source.get(name), str)]
                by_text = (self._texts.get(text) for text in texts if text)
                by_name = (self._names.get(name) for name in names)
                found.append(next((n for n in (*by_text, *by_name) if n is not None), None))
            elif isinstance(source, str):
                found.append(self._names.get(source))
            elif isinstance(source, int) and 0 <= source < len(self._texts):
                found.append(source)
        return tuple(dict.fromkeys(place for place in found if place is not None))


def _objects(value: object) -> Iterator[dict[str, Any]]:
    """Yield all objects in a value, the outer ones first."""
    if isinstance(value, dict):
        yield value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for part in inner:
        yield from _objects(part)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _quotes(cited: Sequence[object]) -> bool:
    """Say whether the citations of a text are of all of it: Anthropic's, or numbers and names."""
    return bool(cited) and all(
        isinstance(one, int | str) or (isinstance(one, dict) and "cited_text" in one)
        for one in cited
    )


def _text(source: Mapping[str, Any]) -> str:
    """Return the text of a source as a passage has it; "" for none."""
    quoted = source.get("cited_text")
    passage = {"text": quoted} if isinstance(quoted, str) else as_passage(dict(source))
    text = passage.get("text") if isinstance(passage, dict) else None
    return text if isinstance(text, str) else ""
