"""The Memory page: what is kept, found by name, judged, and taken in and out."""

from __future__ import annotations

import json
from collections.abc import Callable

from streamlit.testing.v1 import AppTest

from spanlab.detection.entities import grams
from spanlab.memory.store import MemoryStore
from spanlab.schema.memory import MemoryEntry
from spanlab.storage import Store

OpenPage = Callable[..., AppTest]


def keep(scope: str, entity: str, *texts: str, **fields: object) -> None:
    entries = [
        MemoryEntry.model_validate({"text": text, "entities": (entity,), "at": 1e9, **fields})
        for text in texts
    ]
    with MemoryStore.open() as memory:
        memory.keep(scope, entries, {entity: grams(entity)})


def everything(app: AppTest) -> str:
    assert not app.exception
    parts = [*app.markdown, *app.caption, *app.info, *app.success, *app.warning, *app.error]
    return "\n".join(part.value for part in parts).replace("\\", "")


def test_an_empty_memory_says_what_fills_it(open_page: OpenPage) -> None:
    app = open_page("memory")
    assert "No evidence is stored yet" in everything(app)
    line = {"text": "It is tall.", "entities": ["The Eiffel Tower"], "at": 1.0}
    file = ("memory.jsonl", json.dumps(line).encode(), "application/jsonl")
    app.file_uploader[0].upload(*file).run()
    app.button[0].click().run()
    assert "1 passage imported." in everything(app)
    assert "eiffel tower" in everything(app)


def test_evidence_is_found_by_name_judged_and_deleted(open_page: OpenPage, store: Store) -> None:
    about = {"url": "https://a.example/*x*", "query": "tower", "tool": "search", "expires": 2e9}
    keep("", "eiffel tower", "It is 330 m tall.", **about)
    keep("", "eiffel bridge", *(f"It has part {number}." for number in range(12)))
    keep("team", "louvre", "<b>It is</b> in Paris.")
    app = open_page("memory")
    shown = everything(app)
    assert "It has part 11." in shown
    assert "It is 330 m" not in shown
    app.button(key="_block-13").click().run()
    assert ":red-badge[:material/block: Blocked]" in everything(app)
    app = app.button[[each.label for each in app.button].index("Next page")].click().run()
    assert "https://a.example/*x*. Found by search for “tower”" in everything(app)
    app.text_input(key="spanlab.memory.name").set_value("Eifel Tower").run()
    assert "It has part" not in everything(app)
    app.button(key="_pin-1").click().run()
    assert ":green-badge[:material/keep: Pinned]" in everything(app)
    app.text_input(key="spanlab.memory.name").set_value("eiffel").run()
    choice = app.selectbox(key="memory-entity--eiffel")
    assert sorted(choice.options) == ["eiffel bridge", "eiffel tower"]
    choice.set_value("eiffel tower").run()
    assert "It has part" not in everything(app)
    app.button(key="_delete-1").click().run()
    assert "It is 330 m" not in everything(app)
    app.text_input(key="spanlab.memory.name").set_value("Eiffel Tower").run()
    assert "No evidence is stored under “Eiffel Tower”" in everything(app)
    app.selectbox[0].set_value("team").run()
    app.text_input(key="spanlab.memory.name").set_value("").run()
    assert "<b>It is</b> in Paris." in everything(app)
    app.button[[each.label for each in app.button].index("Delete all")].click().run()
    assert "1 passage deleted." in everything(app)
    with MemoryStore.open() as memory:
        assert memory.scopes() == {"": 12}
