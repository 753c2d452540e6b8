"""Whatever a record holds, it comes back from a file as it was."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from spanlab.formats import ReadOptions, read, write
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Citation,
    Claim,
    Evidence,
    Interval,
    Item,
    Passage,
    Process,
    ProcessNode,
    Record,
    Span,
    Status,
)

# Emoji with joiners, flags, combining marks, right-to-left, CJK, line ends and things to escape.
CLUSTERS = [
    "\r\n",
    "😀",
    "👩‍👩‍👧‍👦",
    "🇳🇴",
    "e\u0301",
    "שלום",
    "مرحبا",
    "क्षि",
    "中文",
    "\\n",
    "</b>",
]
ALPHABET = "".join(CLUSTERS) + 'ab .𝔸\u2028\x00\ufeff"'
texts = st.text(ALPHABET, max_size=12)
answers = st.builds(
    lambda *parts: "".join(parts),
    texts,
    st.sampled_from(CLUSTERS),
    texts,
    st.sampled_from(CLUSTERS),
)
names = st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1, max_size=9)
probs = st.floats(0, 1)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def optional(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


@st.composite
def places(draw: st.DrawFn, text: str) -> tuple[int, int]:
    start = draw(st.integers(0, len(text) - 1))
    return start, draw(st.integers(start + 1, len(text)))


@st.composite
def evidence(draw: st.DrawFn, passages: tuple[Passage, ...]) -> tuple[Evidence, ...]:
    usable = [index for index, passage in enumerate(passages) if passage.text]
    if not usable or draw(st.booleans()):
        return ()
    index = draw(st.sampled_from(usable))
    start, end = draw(places(passages[index].text))
    return (
        Evidence(
            passage=index,
            start=start,
            end=end,
            text=passages[index].text[start:end],
            stance=draw(st.sampled_from(["supports", "refutes", "closest"])),
            note=draw(optional(texts)),
        ),
    )


@st.composite
def spans(draw: st.DrawFn, item: Item, prob: st.SearchStrategy[float] = probs) -> Span:
    start, end = draw(places(item.answer))
    return Span(
        start=start,
        end=end,
        text=item.answer[start:end],
        prob=draw(prob),
        label=draw(optional(names)),
        note=draw(optional(texts)),
        source=draw(optional(names)),
        evidence=draw(evidence(item.passages)),
    )


def some_spans(item: Item) -> st.SearchStrategy[tuple[Span, ...]]:
    return st.lists(spans(item), max_size=4).map(tuple)


@st.composite
def claims(draw: st.DrawFn, item: Item) -> Claim:
    return Claim(
        text=draw(texts),
        source=draw(optional(spans(item))),
        verdict=draw(optional(st.sampled_from(["supported", "refuted", "not-enough-evidence"]))),
        prob=draw(optional(probs)),
        evidence=draw(evidence(item.passages)),
    )


@st.composite
def items(draw: st.DrawFn) -> Item:
    passage = st.builds(
        Passage, text=texts, title=optional(texts), url=optional(texts), date=optional(texts)
    )
    counted = draw(st.booleans())
    nodes = [
        ProcessNode(
            id=f"n{index}",
            text=draw(texts),
            stage="" if counted else f"stage {index}",
            sources=tuple(f"n{earlier}" for earlier in range(index)),
        )
        for index in range(draw(st.integers(1, 3)))
    ]
    answer, passages = draw(answers), tuple(draw(st.lists(passage, max_size=3)))
    cited = st.lists(st.integers(0, max(len(passages) - 1, 0)), min_size=1, max_size=2).map(tuple)
    return Item(
        id=draw(names),
        lang=draw(st.sampled_from(["und", "en", "zh", "sr-Latn"])),
        question=draw(texts),
        answer=answer,
        passages=passages,
        citations=[
            Citation(start=start, end=end, passages=draw(cited))
            for start, end in draw(st.lists(places(answer), max_size=2 if passages else 0))
        ],
        process=draw(optional(st.just(Process(nodes=tuple(nodes))))),
        meta=draw(st.dictionaries(texts, json_values, max_size=3)),
    )


@st.composite
def records(draw: st.DrawFn) -> Record:
    item = draw(items())
    interval = places(item.answer).map(lambda place: Interval(start=place[0], end=place[1]))
    annotations = []
    for name in draw(st.lists(names, max_size=4, unique=True)):
        status = draw(st.sampled_from(Status))
        note = draw(texts.filter(bool) if status is Status.FAILED else optional(texts))
        annotations.append(
            Annotation(
                annotator=name,
                kind=draw(st.sampled_from(AnnotatorKind)),
                status=status,
                spans=draw(some_spans(item)),
                hard=draw(optional(st.lists(interval, max_size=2).map(tuple))),
                rejected=draw(some_spans(item)),
                claims=tuple(draw(st.lists(claims(item), max_size=2))),
                voters=tuple(draw(st.lists(names, max_size=2))),
                note=note,
            )
        )
    return Record(item=item, annotations=tuple(annotations))


def through(data: bytes) -> list[Record]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "file"
        path.write_bytes(data)
        return list(read(path, ReadOptions(on_warning=lambda _: None)))


def written(batch: list[Record], name: str) -> bytes:
    stream = io.BytesIO()
    write(batch, stream, format=name)
    return stream.getvalue()


@given(st.lists(records(), min_size=1, max_size=3))
def test_our_own_format_gives_back_the_same_records_and_the_same_bytes(
    batch: list[Record],
) -> None:
    first = written(batch, "spanlab")
    again = through(first)
    assert again == batch
    second = written(again, "spanlab")
    assert second == first
    assert written(through(second), "spanlab") == first


MARKER = "😀⟦end⟧"  # nothing else has these brackets, so this quote tells how offsets count


@st.composite
def labelled(draw: st.DrawFn) -> Record:
    """A record whose every annotation quotes the marker, in the states Label Studio knows."""
    item = draw(items().filter(lambda item: item.process is None))
    item = item.model_copy(update={"answer": item.answer + MARKER})
    end = len(item.answer)
    marker = Span.of(item.answer, end - 5, end)
    annotations: list[Annotation] = []
    for name in draw(st.lists(names, min_size=1, max_size=3, unique=True)):
        person = draw(st.booleans())
        prob = st.just(1.0) if person else probs
        found = draw(st.lists(spans(item, prob), max_size=3))
        annotations.append(
            Annotation(
                annotator="gold" if person and not annotations else f"{name}.",
                kind=(AnnotatorKind.GOLD if not annotations else AnnotatorKind.PERSON)
                if person
                else AnnotatorKind.DETECTOR,
                status=draw(st.sampled_from([Status.DONE, Status.SKIPPED]))
                if person
                else Status.DONE,
                spans=(*found, marker),
            )
        )
    return Record(item=item, annotations=tuple(annotations))


def as_utf16(tasks: list[dict[str, Any]]) -> None:
    """Count the offsets of all regions in UTF-16 units."""
    for task in tasks:
        answer = task["data"]["answer"]
        for value in values(task):
            for edge in ("start", "end"):
                value[edge] = len(answer[: value[edge]].encode("utf-16-le")) // 2


def values(task: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for results in (task["annotations"], task["predictions"]):
        for one in results:
            for region in one["result"]:
                yield region["value"]


def kept(record: Record) -> Any:
    """Return what Label Studio has a place for."""
    return (
        record.item,
        {
            a.annotator: (
                a.kind,
                a.status,
                [(s.start, s.end, s.text, s.prob, s.label, s.note) for s in a.spans],
                a.hard,
            )
            for a in record.annotations
        },
    )


@given(labelled(), st.booleans())
def test_label_studio_gives_back_the_spans_however_it_counts(record: Record, utf16: bool) -> None:
    """No emoji, line end or direction of writing moves a span."""
    tasks = json.loads(written([record], "labelstudio"))
    if utf16:
        as_utf16(tasks)
    (again,) = through(json.dumps(tasks).encode())
    assert kept(again) == kept(record)
