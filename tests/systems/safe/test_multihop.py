"""Multi-hop questions of three datasets become items to answer, with ten passages each."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.formats import detect, read

HOTPOT = {
    "_id": "5a7",
    "question": "Where?",
    "answer": "Oslo",
    "type": "bridge",
    "context": [[f"T{n}", [f"Sentence {n}.", " More."]] for n in range(10)],
    "supporting_facts": [["T3", 0], ["T7", 1]],
}
WIKI = {**HOTPOT, "context": [["T3", ["One.", "Two."]]], "evidences": [["a", "b", "c"]]}
MUSIQUE = {
    "id": "2hop__1_2",
    "question": "Where?",
    "answer": "Oslo",
    "answer_aliases": ["Christiania", "Oslo"],
    "answerable": True,
    "paragraphs": [
        {"idx": n, "title": f"T{n}", "paragraph_text": f"Text {n}.", "is_supporting": n in {3, 17}}
        for n in range(20)
    ],
    "question_decomposition": [{"id": 1, "question": "x", "answer": "y"}],
}


def write(path: Path, value: Any) -> Path:
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize(
    "whole", [[HOTPOT, HOTPOT | {"_id": "5a8"}], HOTPOT], ids=["array", "line"]
)
def test_hotpotqa_is_recognised_and_read(tmp_path: Path, whole: Any) -> None:
    path = write(tmp_path / "hotpot.json", whole)
    assert detect(path) == "multihop"
    item = next(read(path)).item
    assert (item.id, item.lang, item.question, item.answer) == ("5a7", "en", "Where?", "")
    assert item.meta["answers"] == ["Oslo"]
    assert item.meta["gold_titles"] == ["T3", "T7"]
    assert item.meta["supporting_facts"] == [["T3", 0], ["T7", 1]]
    assert sorted(str(each.title) for each in item.passages) == [f"T{n}" for n in range(10)]
    assert item.passages[0].text.endswith(". More.")


def test_sentences_of_2wikimultihopqa_get_the_space_between_them(tmp_path: Path) -> None:
    item = next(read(write(tmp_path / "wiki.json", [WIKI]))).item
    assert [each.text for each in item.passages] == ["One. Two."]
    assert item.meta["evidences"] == [["a", "b", "c"]]


def test_musique_keeps_what_supports_and_eight_others_in_an_order_of_its_own(
    tmp_path: Path,
) -> None:
    path = write(tmp_path / "musique.jsonl", MUSIQUE)
    first, again = (next(read(path)).item for _ in range(2))
    titles = [each.title for each in first.passages]
    assert len(titles) == 10
    assert {"T3", "T17"} <= set(titles)
    assert titles == [each.title for each in again.passages]
    other = write(tmp_path / "other.jsonl", MUSIQUE | {"id": "2hop__3_4"})
    assert titles != [each.title for each in next(read(other)).item.passages]
    assert first.meta["answers"] == ["Oslo", "Christiania"]
    assert first.meta["gold_titles"] == ["T17", "T3"]


def test_the_sample_questions_have_ten_passages_and_their_answers(shared: Path) -> None:
    items = [record.item for record in read(shared / "claims" / "safe_samples.jsonl")]
    assert len(items) == 12
    for item in items:
        assert len(item.passages) == 10
        titles = {each.title for each in item.passages}
        gold = item.meta["gold_titles"]
        assert isinstance(gold, list)
        assert titles >= set(gold)
        assert item.meta["answers"]
