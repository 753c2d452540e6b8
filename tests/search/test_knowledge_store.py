"""AVeriTeC's knowledge store: every claim is searched for among its own documents."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from spanlab.base.errors import InputError
from spanlab.base.settings import Settings
from spanlab.models import Meter
from spanlab.schema import Item
from spanlab.search.base import SearchQuery, ensure
from spanlab.search.spec import AveritecSpec, retriever, retriever_spec


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A folder in the shared task's form, with documents for the first two claims."""
    folder = tmp_path / "dev"
    folder.mkdir()
    for number, town in enumerate(("Aldmere", "Borwick")):
        lines = [
            {
                "claim_id": number,
                "type": "gold",
                "query": "q",
                "url": f"https://{town.lower()}.example/tower",
                "url2text": ["Old towers.", f"The tower of {town} was finished in 1889."],
            },
            {"claim_id": number, "url": "https://empty.example", "url2text": []},
            {"claim_id": number, "url": "https://trees.example", "url2text": ["Trees are green."]},
        ]
        (folder / f"{number}.json").write_text("\n".join(map(json.dumps, lines)))
    return folder


def claim(name: str) -> Item:
    return Item(id=name, lang="en", answer="The tower was finished in 1989.")


@pytest.mark.parametrize(
    ("name", "town"), [("0", "Aldmere"), ("1", "Borwick"), ("claim-1", "Aldmere")]
)
def test_a_claim_finds_its_own_documents_and_no_others(
    name: str, town: str, store: Path, settings_here: Settings
) -> None:
    spec = AveritecSpec(corpus=store, k=1)
    assert retriever_spec(json.loads(spec.model_dump_json())) == spec
    found = retriever(spec, Meter(), settings_here)
    assert found.name == "averitec:dev/1"
    item = asyncio.run(ensure(claim(name), found, SearchQuery("When was the tower finished?")))
    (passage,) = item.passages
    assert passage.text == f"Old towers.\nThe tower of {town} was finished in 1889."
    assert passage.url == f"https://{town.lower()}.example/tower"


def test_the_same_words_of_two_claims_are_two_searches_and_an_index_is_built_once(
    store: Path, settings_here: Settings
) -> None:
    async def both() -> list[str]:
        found = retriever(AveritecSpec(corpus=store), Meter(), settings_here)
        asked = [ensure(claim(name), found) for name in ("0", "1", "0")]
        return [item.passages[0].url or "" for item in await asyncio.gather(*asked)]

    hosts = ["https://aldmere.example/tower", "https://borwick.example/tower"]
    assert asyncio.run(both()) == [*hosts, hosts[0]]
    indexes = {
        path: path.stat().st_mtime_ns for path in settings_here.home.glob("cache/averitec/*")
    }
    assert len(indexes) == 2
    assert asyncio.run(both()) == [*hosts, hosts[0]]
    assert {path: path.stat().st_mtime_ns for path in indexes} == indexes


@pytest.mark.parametrize("name", ["7", "../dev/0", "", "claim-0"])
def test_a_claim_without_documents_is_said_to_have_none(
    name: str, store: Path, settings_here: Settings
) -> None:
    found = retriever(AveritecSpec(corpus=store), Meter(), settings_here)
    with pytest.raises(InputError, match="no documents for this claim"):
        asyncio.run(found.search(SearchQuery("tower", item=name)))


def test_a_folder_that_is_not_there_is_named(tmp_path: Path, settings_here: Settings) -> None:
    with pytest.raises(InputError, match="no such folder"):
        retriever(AveritecSpec(corpus=tmp_path / "gone"), Meter(), settings_here)
