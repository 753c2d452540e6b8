"""Searching a local corpus: an index is whole or refused, and finds what shares rare words."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path

import pytest

from spanlab.base.errors import InputError, UsageError
from spanlab.base.settings import Settings
from spanlab.schema import Item, Passage
from spanlab.search.base import ensure, retrieve
from spanlab.search.index import PassageIndex, build, file_hash
from spanlab.search.local_search import bm25
from spanlab.search.spec import Bm25Spec, GivenSpec, retriever, retriever_spec

TOWER = "The Eiffel tower is 330 metres tall."
BRIDGE = "The Golden Gate bridge is 2737 metres long."
BEIJING = "北京是中华人民共和国的首都。"


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    path = tmp_path / "corpus.jsonl"
    lines = [
        {"text": TOWER, "title": "Tower", "url": "https://a.example/tower", "date": "2024-05-01"},
        {"text": BRIDGE, "title": "Bridge"},
        {"text": BEIJING, "title": "北京"},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def index(corpus: Path, tmp_path: Path) -> Path:
    build(corpus, tmp_path / "wiki")
    return tmp_path / "wiki"


def test_a_question_finds_its_passage_with_title_url_and_date(index: Path) -> None:
    found = asyncio.run(retrieve(_item("How tall is the Eiffel Tower?"), bm25(index)))
    assert found.queries == ("How tall is the Eiffel Tower?",)
    assert found.passages[0] == Passage(
        text=TOWER, title="Tower", url="https://a.example/tower", date="2024-05-01"
    )


@pytest.mark.parametrize(
    ("query", "texts"),
    [
        pytest.param("中国的首都在哪里？", [BEIJING], id="Chinese without spaces"),
        pytest.param("eiffeltower Eïffel", [TOWER], id="accents"),
        pytest.param("metres", [TOWER, BRIDGE], id="equally good in corpus order or by length"),
        pytest.param("zebra", [], id="no term in the corpus"),
        pytest.param("?!", [], id="no term at all"),
    ],
)
def test_search(index: Path, query: str, texts: list[str]) -> None:
    assert [hit.passage.text for hit in PassageIndex(index).search(query, 5)] == texts


def test_no_more_than_k_and_better_ones_first(index: Path) -> None:
    hits = PassageIndex(index).search("the golden bridge", 5)
    assert [hit.passage.text for hit in hits] == [BRIDGE, TOWER]
    assert hits[0].score > hits[1].score > 0
    assert PassageIndex(index).search("the golden bridge", 1) == hits[:1]


def test_without_a_question_the_answer_is_looked_up(index: Path) -> None:
    found = asyncio.run(retrieve(_item("  ", "The Eiffel tower"), bm25(index)))
    assert found.queries == ("The Eiffel tower",)
    assert found.passages[0].text == TOWER
    assert asyncio.run(retrieve(_item("", ""), bm25(index))).queries == ()


def test_a_long_document_becomes_passages_that_all_have_its_title(tmp_path: Path) -> None:
    """Evidence stands in chunks; every chunk is a passage, and several are found."""
    (tmp_path / "texts").mkdir()
    text = "\n\n".join(f"Section {n} says that the tower has {n} floors." for n in range(40))
    (tmp_path / "texts" / "tower.txt").write_text(text)
    manifest = build(tmp_path / "texts", tmp_path / "index", longest=200)
    assert (manifest.documents, manifest.passages) == (1, 10)
    item = asyncio.run(ensure(_item("What does section 17 say?"), bm25(tmp_path / "index", k=3)))
    assert len(item.passages) == 3
    assert "Section 17 says" in item.passages[0].text
    assert {passage.title for passage in item.passages} == {"tower"}
    assert all(len(passage.text) <= 200 for passage in item.passages)


def test_the_name_changes_with_the_corpus(corpus: Path, index: Path) -> None:
    before = bm25(index).name
    assert before.startswith("bm25:wiki@")
    assert bm25(index, k=9).name == f"{before}/9"
    corpus.write_text(json.dumps({"text": "Zebras are striped."}) + "\n")
    build(corpus, index)
    assert bm25(index).name != before
    found = asyncio.run(retrieve(_item("striped zebras"), bm25(index)))
    assert [passage.text for passage in found.passages] == ["Zebras are striped."]


def test_an_index_is_replaced_whole_or_not_at_all(corpus: Path, index: Path) -> None:
    before = {path.name: path.read_bytes() for path in index.iterdir()}
    corpus.write_text('{"text": "fine"}\n{"text": 7}\n')
    with pytest.raises(InputError, match=r"corpus\.jsonl, line 2, text: .*"):
        build(corpus, index)
    assert {path.name: path.read_bytes() for path in index.iterdir()} == before
    assert sorted(path.name for path in index.parent.iterdir()) == ["corpus.jsonl", "wiki"]


def test_what_is_no_index_is_not_overwritten(corpus: Path, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.txt").write_text("precious")
    for target in (tmp_path / "home", corpus):
        with pytest.raises(UsageError, match="is not an index of ours"):
            build(corpus, target)
    assert (tmp_path / "home" / "thesis.txt").read_text() == "precious"


def test_a_corpus_without_words_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.jsonl").write_text('{"text": "…!"}\n')
    with pytest.raises(InputError, match="nothing to search"):
        build(tmp_path / "c.jsonl", tmp_path / "index")
    assert not (tmp_path / "index").exists()


def test_progress_counts_passages(corpus: Path, tmp_path: Path) -> None:
    counts: list[int] = []
    build(corpus, tmp_path / "index", on_progress=counts.append)
    assert counts == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        pytest.param("manifest.json", None, "there is no index", id="no manifest"),
        pytest.param("manifest.json", b"{}", "not an index that this spanlab", id="foreign"),
        pytest.param("manifest.json", b"\xff", "not an index that this spanlab", id="no JSON"),
        pytest.param("offsets.npy", None, "offsets.npy: the index is not whole", id="missing"),
        pytest.param("passages.jsonl", b"{}", "passages.jsonl: the index is not", id="cut off"),
    ],
)
def test_a_broken_index_is_refused(
    index: Path, name: str, data: bytes | None, message: str
) -> None:
    (index / name).unlink()
    if data is not None:
        (index / name).write_bytes(data)
    with pytest.raises(InputError, match=message):
        bm25(index)


def test_a_changed_file_of_the_same_size_is_noticed(index: Path) -> None:
    lines = index / "passages.jsonl"
    lines.write_bytes(lines.read_bytes().replace(b"e", b"a"))
    with pytest.raises(InputError, match=r"passages\.jsonl: the file was changed after the index"):
        PassageIndex(index)


def test_damage_from_the_beginning_is_said_to_be_damage(index: Path) -> None:
    manifest = json.loads((index / "manifest.json").read_bytes())
    for path in index.iterdir():
        if path.name != "manifest.json":
            path.write_bytes(b"\x80" * path.stat().st_size)
            manifest["hashes"][path.name] = file_hash(path)
    (index / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="the index is damaged"):
        PassageIndex(index)


def test_a_passage_that_is_damaged_is_said_to_be(index: Path) -> None:
    lines = index / "passages.jsonl"
    opened = PassageIndex(index)
    shutil.copy(lines, index.parent / "copy")
    with lines.open("r+b") as stream:
        stream.write(b"\x80" * 40)
    with pytest.raises(InputError, match="the index is damaged"):
        opened.search("eiffel", 1)


def test_a_specification_leads_to_it(index: Path, tmp_path: Path) -> None:
    from spanlab.models import Meter

    spec = Bm25Spec(corpus=index, k=2)
    assert retriever_spec(json.loads(spec.model_dump_json())) == spec
    settings = Settings(home=tmp_path, database_url="sqlite:///unused.db")
    built = retriever(spec, Meter(), settings)
    assert built.name == bm25(index, k=2).name
    assert retriever(GivenSpec(), Meter(), settings).name == "given"
    with pytest.raises(ValueError, match="name the index"):
        retriever_spec({"kind": "bm25"})
    with pytest.raises(ValueError, match="given passages are not asked for"):
        retriever_spec({"queries": "claims"})


def _item(question: str, answer: str = "an answer") -> Item:
    return Item(id="a", question=question, answer=answer)
