"""Reasonings the whole way: import, detect, correct types by key, compare, tune, export."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import REVIEWER, Desk, choose, go, idle
from playwright.sync_api import FilePayload, Page, expect
from reasoning_script import ReasoningScript
from serving import Server, serving

import spanlab
from spanlab.formats import dumps
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import LABEL_SETS, Item, Passage, Record
from spanlab.storage import Store
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say_fields

pytestmark = pytest.mark.browser

TOWER = Item(
    id="tower",
    lang="en",
    question="Where was the builder of the tower born?",
    answer="",
    passages=(
        Passage(title="Tower", text="Ada Smith built the tower."),
        Passage(title="Ada Smith", text="Ada Smith was born in Oslo."),
    ),
)
BUILT = "According to Passage 1, Ada Smith built the tower."
REFUSED = "According to Passage 2, Ada <b>Smith</b> was born in Rome."
WRONG = "According to Passage 2, Ada Smith was born in Paris."
FINAL = "####ANSWER: Paris"
RULING = {
    "diagnosis": "Passage 2 says Oslo.",
    "errors": ["Unsupported"],
    "guidance": "Say Oslo.",
    "sentence": "Ada Smith was born in Oslo.",
}
# The same steps as an answer of which nobody has verified any.
BRIDGE = TOWER.model_copy(
    update={
        "id": "bridge",
        "question": "Where was Ada Smith born?",
        "answer": f"Step 1: {BUILT} (Attribution)\nStep 2: {WRONG} (Attribution)\n"
        f"Step 3: {FINAL}, France (Final Answer)",
    }
)


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    """A generator; and a verifier that tells the right type where it is asked to be strict."""
    steps = [f"{text} (Attribution)" for text in (BUILT, REFUSED, WRONG)]
    lax = ReasoningScript({"": [*steps, FINAL]}, {"Rome": RULING, "in Paris": RULING})
    strict = ReasoningScript({}, {"in Paris": RULING | {"errors": ["Contradictory"]}})

    def script(ask: ModelRequest) -> ScriptedReply:
        if "proposed_instruction" in ask.text:
            return say_fields(proposed_instruction="Verify the last step strictly.")
        if any(f"[[ ## {name} ## ]]" in ask.text for name in ("ruling", "step")):
            return strict(ask) if "strictly" in ask.text else lax(ask)
        return say_fields(observations="none", summary="none", tip="none")

    with ModelServer(script) as server:
        yield server


@pytest.fixture(scope="module")
def server(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An app of its own, whose environment names the scripted model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", model.url)
        patch.setenv("OPENAI_API_KEY", "any")
        patch.setenv("SPANLAB_MODEL", "scripted-model")
        with serving(tmp_path_factory.mktemp("reasoning")) as server:
            yield server


@pytest.fixture
def records(
    model: ModelServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> tuple[Record, Record]:
    """An item that was reasoned in, with a step that stayed wrong, and one that came as it is."""
    monkeypatch.setenv("OPENAI_BASE_URL", model.url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("SPANLAB_MODEL", "scripted-model")
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path / "home"))
    (reasoned,) = spanlab.reason([Record(item=TOWER)], retries=1)
    return reasoned, Record(item=BRIDGE)


def test_reasonings_are_imported_verified_corrected_compared_tuned_on_and_exported(
    server: Server, store: Store, page: Page, records: tuple[Record, Record], tmp_path: Path
) -> None:
    def at(place: str) -> str:
        return server.url(dataset="towers").replace("/?", f"/{place}?")

    lines = b"".join(map(dumps, records))
    page.goto(at("datasets"))
    page.locator("input[type=file]").first.set_input_files(
        FilePayload(name="towers.jsonl", mimeType="", buffer=lines)
    )
    expect(page.get_by_placeholder("towers")).to_be_visible()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("2 items imported into towers")).to_be_visible()
    safe = LABEL_SETS["SAFE"]
    store.change_settings("towers", lambda now: now.model_copy(update={"labels": safe}))

    go(page, at("detect"))
    page.get_by_text(re.compile(r"^All \d+ detectors$")).click()
    page.get_by_text("safe", exact=True).first.click()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("1 of 1 item · took").first).to_be_visible()

    desk = Desk(server, store, page, "towers")
    desk.visit("tower")
    desk.press("t")
    trace = page.get_by_role("region", name="Trace of safe")
    expect(trace).to_contain_text("3 steps of the reasoning, 1 wrong")
    cards = trace.locator(".sl-reasoning > .sl-step-card")
    expect(cards).to_have_count(3)
    wrong = cards.nth(1)
    expect(wrong.locator(".sl-step-head").first).to_contain_text("Step 2")
    expect(wrong.locator(".sl-error").first).to_contain_text("A Unsupported")
    expect(wrong).to_contain_text("Passage 2 says Oslo.")
    expect(wrong).to_contain_text("Next: Say Oslo.")
    refused = wrong.locator("details")
    expect(refused.locator("summary")).to_have_text("1 refused attempt")
    expect(refused).not_to_have_attribute("open", "")
    refused.locator("summary").click()
    expect(refused).to_contain_text(REFUSED)  # as text, not as markup
    expect(page.locator(".sl-reasoning b b")).to_have_count(0)
    desk.press("Escape")
    for item in ("tower", "bridge"):
        desk.wait_for(item)
        desk.press("a", "5", "Enter")  # a contradiction, not merely unsupported
        desk.settle()
    for record in store.records("towers"):
        mine = record.by(REVIEWER)
        assert mine is not None
        assert [(span.text, span.label) for span in mine.spans] == [(WRONG, "Contradictory")]

    go(page, at("compare"))
    page.get_by_role("tab", name="Reasoning").click()
    expect(page.get_by_text("Errors by position")).to_be_visible()
    expect(page.locator("[data-testid=stVegaLiteChart]")).to_have_count(2)

    go(page, at("optimise"))
    choose(page, "Detector", "safe")
    choose(page, "Reference labels", "What people have reviewed")
    choose(page, "Cross-validation folds", "none")
    steps = page.get_by_test_id("stMetric").filter(has_text="Labelled steps")
    expect(steps).to_contain_text("6")
    idle(page)
    page.get_by_role("button", name="Start", exact=True).click()
    expect(page.get_by_text("Not measured on held-out items").first).to_be_visible()
    (program,) = ProgramRegistry(server.settings.programs)
    assert (program.metric, program.search_score) == ("type-f1", 1.0)

    go(page, at("export"))
    page.get_by_text("Verifier training data").click()
    page.get_by_role("button", name="Create file").click()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download").click()
    caught.value.save_as(tmp_path / "verifier.zip")
    with zipfile.ZipFile(tmp_path / "verifier.zip") as archive:
        told = {name: archive.read(name).decode().splitlines() for name in archive.namelist()}
    assert "lora_r: 64" in told.pop("qlora.yaml")
    chats = [json.loads(line) for lines in told.values() for line in lines]
    hard = [chat for chat in chats if chat["origin"] == "corrected"]
    assert {(chat["id"], chat["step"], chat["error"]) for chat in hard} == {
        ("tower", 2, "Contradictory"),
        ("bridge", 2, "Contradictory"),
    }
