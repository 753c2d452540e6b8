"""What an item cites, in files: ours and tables; files of others that only look like ours."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, read, write
from spanlab.schema import Citation, Item, Passage, Record

RECORD = Record(
    item=Item(
        id="a",
        answer="It is so. It is red.",
        passages=[Passage(text="one"), Passage(text="two")],
        citations=[Citation(start=0, end=9, passages=(0, 1))],
    )
)


def read_lines(path: Path, *lines: object) -> list[Record]:
    path.write_text("\n".join(json.dumps(line) for line in lines), "utf-8")
    return list(read(path, ReadOptions(on_warning=lambda _: None)))


@pytest.mark.parametrize("format_", ["spanlab", "csv", "parquet", "labelstudio"])
def test_citations_come_back_as_they_were(tmp_path: Path, format_: str) -> None:
    stream = io.BytesIO()
    write([RECORD], stream, format=format_)
    path = tmp_path / "file"
    path.write_bytes(stream.getvalue())

    assert [record.item.citations for record in read(path, ReadOptions())] == [
        RECORD.item.citations
    ]


def test_a_table_of_before_is_read(tmp_path: Path) -> None:
    stream = io.BytesIO()
    write([RECORD], stream, format="csv")
    text = stream.getvalue().decode()
    cell = '"[{""start"":0,""end"":9,""passages"":[0,1]}]",'
    assert text.count('"citations",') == text.count(cell) == 1
    text = text.replace('"citations",', "").replace(cell, "")
    path = tmp_path / "old.csv"
    path.write_text(text, "utf-8")

    assert [record.item.citations for record in read(path, ReadOptions())] == [()]


@pytest.mark.parametrize(
    ("citation", "problem"),
    [
        ({"start": 0, "end": 99, "passages": [0]}, r"are no characters of the answer"),
        ({"start": 3, "end": 3, "passages": [0]}, r"are no characters of the answer"),
        ({"start": 0, "end": 3, "passages": [1]}, r"passage 1 does not exist, the item has 1"),
        ({"start": 0, "end": 3, "passages": []}, r"passages"),
    ],
    ids=["past the end", "empty", "no such passage", "of nothing"],
)
def test_a_citation_that_fits_nothing_is_refused(
    tmp_path: Path, citation: dict[str, object], problem: str
) -> None:
    line = {"id": "a", "answer": "It is so.", "passages": [{"text": "p"}], "citations": [citation]}
    with pytest.raises(InputError, match=problem):
        read_lines(tmp_path / "a.jsonl", line)


TOWER, BRIDGE = "The tower is 330 m tall.", "The bridge opened in 1932. 🌉"
GEMINI = {
    "candidates": [
        {
            "content": {"role": "model", "parts": [{"text": "🗼 It is 330 m. It opened in 1932."}]},
            "groundingMetadata": {
                "groundingChunks": [
                    {"retrievedContext": {"uri": "gs://t", "title": "t", "text": TOWER}},
                    {"retrievedContext": {"uri": "gs://b", "title": "b", "text": BRIDGE}},
                ],
                "groundingSupports": [
                    {"segment": {"endIndex": 17}, "groundingChunkIndices": [0]},
                    {
                        "segment": {"startIndex": 18, "endIndex": 36},
                        "groundingChunkIndices": [1, 0],
                    },
                ],
            },
        }
    ]
}
ANTHROPIC = {
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "text", "text": "As far as known, "},
        {
            "type": "text",
            "text": "it is 330 m tall",
            "citations": [{"type": "char_location", "cited_text": TOWER, "document_index": 0}],
        },
        {"type": "text", "text": " and "},
        {
            "type": "text",
            "text": "opened in 1932",
            "citations": [{"type": "char_location", "cited_text": BRIDGE, "document_index": 1}],
        },
    ],
}
COHERE = {
    "message": {
        "role": "assistant",
        "content": [{"type": "text", "text": "It is 330 m tall. It opened in 1932."}],
        "citations": [
            {
                "start": 6,
                "end": 16,
                "text": "330 m tall",
                "sources": [{"type": "document", "id": "d0", "document": {"text": TOWER}}],
            },
            {
                "start": 18,
                "end": 35,
                "text": "It opened in 1932",
                "sources": [
                    {"type": "document", "id": "d1", "document": {"text": BRIDGE}},
                    {"type": "document", "id": "d0", "document": {"text": TOWER}},
                ],
            },
        ],
    }
}
COHERE_1 = {
    "text": "It is 330 m tall.",
    "documents": [{"id": "doc_0", "snippet": TOWER}, {"id": "doc_1", "snippet": BRIDGE}],
    "citations": [{"start": 6, "end": 16, "text": "330 m tall", "document_ids": ["doc_0"]}],
    "generation_id": "g",
}
OPENAI = {
    "object": "response",
    "output": [
        {
            "type": "file_search_call",
            "results": [
                {"file_id": "t", "filename": "t.md", "text": TOWER},
                {"file_id": "b", "filename": "b.md", "text": BRIDGE},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [
                {
                    "type": "output_text",
                    "text": "It is 330 m tall. It opened in 1932.",
                    "annotations": [
                        {"type": "file_citation", "index": 16, "file_id": "t"},
                        {"type": "file_citation", "index": 35, "file_id": "b"},
                    ],
                }
            ],
        },
    ],
}
SEARCHED = {
    "choices": [
        {
            "message": {
                "role": "assistant",
                "content": "It is 330 m tall ([t.org](https://t.org)). More is not known.",
                "annotations": [
                    {
                        "type": "url_citation",
                        "url_citation": {
                            "start_index": 17,
                            "end_index": 41,
                            "url": "https://t.org",
                            "title": "T",
                        },
                    }
                ],
            }
        }
    ]
}
TREC = [{"text": "It is 330 m tall.", "citations": [0]}, {"text": "It opened.", "citations": [1]}]
REPLIES = {
    "gemini": (GEMINI, [("🗼 It is 330 m.", (0,)), ("It opened in 1932.", (1, 0))]),
    "anthropic": (ANTHROPIC, [("it is 330 m tall", (0,)), ("opened in 1932", (1,))]),
    "cohere": (COHERE, [("330 m tall", (0,)), ("It opened in 1932", (1, 0))]),
    "cohere 1": (COHERE_1, [("330 m tall", (0,))]),
    "openai files": (OPENAI, [("It is 330 m tall", (0,)), ("It opened in 1932", (1,))]),
    "openai pages": (SEARCHED, [("It is 330 m tall", (0,))]),
    "trec": (TREC, [("It is 330 m tall.", (0,)), ("It opened.", (1,))]),
}


@pytest.mark.parametrize(("reply", "expected"), REPLIES.values(), ids=REPLIES)
def test_what_an_api_cites_by_offsets_is_read(
    tmp_path: Path, reply: object, expected: list[tuple[str, tuple[int, ...]]]
) -> None:
    passages = [{"text": TOWER, "url": "https://t.org"}, {"text": BRIDGE}]
    line = {"question": "How tall, how old?", "response": reply, "passages": passages}
    (record,) = read_lines(tmp_path / "a.jsonl", line)

    item = record.item
    assert [(item.answer[c.start : c.end], c.passages) for c in item.citations] == expected


@pytest.mark.parametrize("name", ["gemini", "anthropic", "cohere 1", "openai files"])
def test_sources_that_come_with_a_reply_are_its_passages(tmp_path: Path, name: str) -> None:
    reply, expected = REPLIES[name]
    (record,) = read_lines(tmp_path / "a.jsonl", {"question": "How?", "response": reply})

    item = record.item
    assert [(item.answer[c.start : c.end], c.passages) for c in item.citations] == expected
