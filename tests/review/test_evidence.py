"""Evidence that people add by hand: a page or a text becomes a passage of the item."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pursuit_answers import PAGE, ScriptedWeb

from spanlab.base.errors import NotFoundError, PageError, SpanlabError, UsageError
from spanlab.base.settings import Settings
from spanlab.review.writes import AddedEvidence, add_evidence
from spanlab.schema import BY_HAND, Item, Passage, Record
from spanlab.search.addresses import ALLOWED
from spanlab.storage import Store
from spanlab.testing import ModelServer

THERE = Passage(text="It is old.")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    with Store.open(settings) as store:
        item = Item(id="a", lang="en", answer="one", passages=(THERE,))
        store.import_records("words", [Record(item=item)])
        yield store


def test_a_text_and_a_page_become_passages_noted_as_added_by_hand(
    store: Store, settings: Settings, model_server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = ScriptedWeb(model_server)
    monkeypatch.setenv(ALLOWED, f"127.0.0.1:{model_server.port}")
    url = f"{web.root}/tower"
    pasted = AddedEvidence(text="The guilds\nbuilt it.", title=" Guilds ")
    assert add_evidence(store, "words", "a", pasted, settings)
    for _ in range(2):  # adding the same again changes nothing
        while not add_evidence(store, "words", "a", AddedEvidence(url=url), settings):
            pass  # each call waits for a second
    item = store.record("words", "a").item
    assert item.passages[:2] == (THERE, Passage(text="The guilds\nbuilt it.", title="Guilds"))
    page = item.passages[2]
    assert (page.title, page.url) == ("Towers", url)
    assert PAGE in page.text
    (noted,) = item.retrievals
    assert (noted.retriever, noted.passages, noted.queries) == (BY_HAND, (1, 2), (url,))
    assert web.read == ["/robots.txt", "/tower"]


@pytest.mark.parametrize(
    ("added", "item", "error"),
    [
        pytest.param(AddedEvidence(text=" "), "a", UsageError, id="nothing"),
        pytest.param(AddedEvidence(text="x" * 1_000_001), "a", UsageError, id="too-long"),
        pytest.param(AddedEvidence(url="http://10.0.0.1/"), "a", PageError, id="private"),
        pytest.param(AddedEvidence(url="file:///etc/passwd"), "a", PageError, id="no-web-page"),
        pytest.param(AddedEvidence(text="x"), "b", NotFoundError, id="no-such-item"),
    ],
)
def test_what_cannot_be_added_is_refused(
    store: Store, settings: Settings, added: AddedEvidence, item: str, error: type[SpanlabError]
) -> None:
    with pytest.raises(error):
        add_evidence(store, "words", item, added, settings)
    assert store.record("words", "a").item.passages == (THERE,)
