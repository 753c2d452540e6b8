"""A reasoning whose steps were verified, in Review and Compare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import REVIEWER, Desk, go
from playwright.sync_api import Page, expect
from reasoning_script import ReasoningScript
from serving import Server

import spanlab
from spanlab.schema import LABEL_SETS, Item, Passage, Record
from spanlab.storage import Store
from spanlab.testing import ModelServer

pytestmark = [pytest.mark.browser, pytest.mark.system("safe")]

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
    """A generator and a verifier."""
    steps = [f"{text} (Attribution)" for text in (BUILT, REFUSED, WRONG)]
    script = ReasoningScript({"": [*steps, FINAL]}, {"Rome": RULING, "in Paris": RULING})
    with ModelServer(script) as server:
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
    (bridge,) = spanlab.annotate([Record(item=BRIDGE)], "safe")
    return reasoned, bridge


def test_steps_are_shown_with_what_was_refused_corrected_by_key_and_compared(
    server: Server, store: Store, page: Page, records: tuple[Record, Record]
) -> None:
    store.import_records("towers", records)
    safe = LABEL_SETS["SAFE"]
    store.change_settings("towers", lambda now: now.model_copy(update={"labels": safe}))
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

    go(page, server.url(dataset="towers").replace("/?", "/compare?"))
    page.get_by_role("tab", name="Reasoning").click()
    expect(page.get_by_text("Errors by position")).to_be_visible()
    expect(page.locator("[data-testid=stVegaLiteChart]")).to_have_count(2)
