"""Passages that come apart from the items reach the items they belong to."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, RejectedRecord, read, write
from spanlab.schema import Passage, Record


@pytest.fixture
def items(tmp_path: Path) -> Path:
    path = tmp_path / "items.jsonl"
    lines = [{"id": name, "answer": "x"} for name in ("val-en-1", "val-en-2", "../secret")]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def texts(records: list[Record]) -> list[list[str]]:
    return [[passage.text for passage in record.item.passages] for record in records]


def test_a_directory_of_context_files(tmp_path: Path, items: Path) -> None:
    folder = tmp_path / "contexts"
    folder.mkdir()
    (tmp_path / "secret.context.txt").write_text("not yours")
    (folder / "val-en-1.context.txt").write_bytes(b"\xef\xbb\xbf First.\r\nSecond.\n")
    (folder / "val-en-2.context.txt").write_text("  \n")
    said: list[str] = []
    records = list(read(items, ReadOptions(contexts=folder, on_warning=said.append)))
    # Line ends and outer spaces stay, and an id leads nowhere outside the directory.
    assert texts(records) == [[" First.\r\nSecond.\n"], [], []]
    assert said == [f"{folder}: no context for 2 of 3 items: val-en-2, ../secret"]


def test_a_directory_of_directories_gives_a_passage_from_each(tmp_path: Path, items: Path) -> None:
    for name in ("b-search", "a-search"):
        (tmp_path / "all" / name).mkdir(parents=True)
        (tmp_path / "all" / name / "val-en-1.context.txt").write_text(f"from {name}")
    options = ReadOptions(contexts=tmp_path / "all", on_warning=lambda _: None)
    assert texts(list(read(items, options)))[0] == ["from a-search", "from b-search"]


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "packed"])
def test_json_lines_of_contexts(tmp_path: Path, items: Path, packed: bool) -> None:
    lines = [
        {"id": "val-en-2", "passages": ["plain", {"text": "rich", "title": "T", "url": "u"}]},
        {"id": "val-en-1", "context": "one text", "rank": 3},
        {"id": "unused", "context": "of nothing"},
        {"id": "val-en-2", "passages": [{"text": "later", "date": "2024", "score": 0.5}, " "]},
    ]
    data = "\n".join(json.dumps(line) for line in lines).encode()
    path = tmp_path / "contexts.jsonl"
    path.write_bytes(gzip.compress(data) if packed else b"\xef\xbb\xbf" + data)
    records = list(read(items, ReadOptions(contexts=path, on_warning=lambda _: None)))
    assert records[0].item.passages == (Passage(text="one text"),)
    assert records[1].item.passages == (
        Passage(text="plain"),
        Passage(text="rich", title="T", url="u"),
        Passage(text="later", date="2024"),
    )


def test_passages_already_there_are_not_repeated(tmp_path: Path, items: Path) -> None:
    contexts = tmp_path / "contexts.jsonl"
    contexts.write_text('{"id":"val-en-1","context":"one text"}\n')
    options = ReadOptions(contexts=contexts, on_warning=lambda _: None)
    once = tmp_path / "once.jsonl"
    write(read(items, options), once)
    twice = tmp_path / "twice.jsonl"
    write(read(once, options), twice)
    assert twice.read_bytes() == once.read_bytes()


def test_an_empty_directory_is_said_so(tmp_path: Path, items: Path) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no context file.*files named <id>\.context\.txt"):
        read(items, ReadOptions(contexts=tmp_path / "empty"))


def test_a_wrong_line_of_contexts_is_named(tmp_path: Path, items: Path) -> None:
    path = tmp_path / "contexts.jsonl"
    path.write_text('{"id":"a","context":"x"}\n{"id":"b","passages":[{"title":"no text"}]}\n')
    with pytest.raises(InputError, match=r"contexts\.jsonl, line 2, ") as caught:
        read(items, ReadOptions(contexts=path))
    assert caught.value.field == "passages.0.text"


def test_a_context_file_that_is_not_utf8_is_named(tmp_path: Path, items: Path) -> None:
    (tmp_path / "contexts").mkdir()
    (tmp_path / "contexts" / "val-en-1.context.txt").write_bytes(b"caf\xe9")
    with pytest.raises(InputError, match=r"val-en-1\.context\.txt: not UTF-8"):
        list(read(items, ReadOptions(contexts=tmp_path / "contexts")))
    rejects: list[RejectedRecord] = []
    options = ReadOptions(
        contexts=tmp_path / "contexts", on_reject=rejects.append, on_warning=lambda _: None
    )
    assert [record.item.id for record in read(items, options)] == ["val-en-2", "../secret"]
    assert [reject.line for reject in rejects] == [1]


def test_published_contexts_reach_every_item(shared: Path) -> None:
    said: list[str] = []
    val = shared / "mushroom" / "val" / "mushroom.en-val.v2.jsonl"
    one = shared / "mushroom" / "context" / "en-val.v2_tavily-5"
    options = ReadOptions(contexts=one, on_warning=said.append)
    records = list(read(val, options))
    assert all(len(record.item.passages) == 1 for record in records)
    assert not [message for message in said if "context" in message.split(": ", 1)[1]]
    options = ReadOptions(contexts=one.parent, on_warning=said.append)
    # English has five: Perplexity in and through the language, DeepSeek, Tavily and you.com.
    assert {len(record.item.passages) for record in read(val, options)} == {5}


def test_more_keys_than_memory_should_hold_are_refused(
    tmp_path: Path, items: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", "1")
    path = tmp_path / "contexts.jsonl"
    path.write_text("".join(f'{{"id":"{n}","context":"x"}}\n' for n in range(9000)))
    options = ReadOptions(contexts=path, on_warning=lambda _: None)
    with pytest.raises(InputError, match=r"list of the keys is too large.*SPANLAB_RECORD_LIMIT=2"):
        list(read(items, options))
