"""A reasoning in Review: its steps as cards, and a type of error corrected by key."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from driving import REVIEWER, Desk
from playwright.sync_api import expect
from reasoning_script import ReasoningScript

import spanlab
from spanlab.schema import Item, Passage, Record
from spanlab.storage import LABEL_SETS
from spanlab.testing import ModelServer
from spanlab.workflows.verifier_data import SPLITS, write_verifier_data

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ITEM = Item(
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
RULING = {
    "diagnosis": "Passage 2 says Oslo.",
    "errors": ["Unsupported"],
    "guidance": "Say Oslo.",
    "sentence": "Ada Smith was born in Oslo.",
}


@pytest.fixture
def reasoned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Record:
    """An item that a scripted model reasoned about, with a step that stayed wrong."""
    steps = [f"{text} (Attribution)" for text in (BUILT, REFUSED, WRONG)]
    script = ReasoningScript(
        {"": [*steps, "####ANSWER: Paris"]}, {"Rome": RULING, "in Paris": RULING}
    )
    with ModelServer(script) as server, monkeypatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", server.url)
        patch.setenv("OPENAI_API_KEY", "any")
        patch.setenv("SPANLAB_MODEL", "scripted")
        patch.setenv("SPANLAB_HOME", str(tmp_path / "home"))
        (record,) = spanlab.reason([Record(item=ITEM)], retries=1)
    return record


def test_steps_are_cards_and_a_corrected_type_becomes_a_hard_case(
    desk: Sit, reasoned: Record, tmp_path: Path
) -> None:
    here = desk([reasoned])
    here.store.change_settings(
        here.dataset, lambda now: now.model_copy(update={"labels": LABEL_SETS["SAFE"]})
    )
    here.page.reload()
    here.wait_for("tower")

    here.press("t")
    trace = here.page.get_by_role("region", name="Trace of safe")
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
    assert here.page.locator(".sl-reasoning b b").count() == 0

    here.press("Escape", "a", "5", "Enter")  # a contradiction, not merely unsupported
    here.settle()
    (record,) = here.store.records(here.dataset)
    mine = record.by(REVIEWER)
    assert mine is not None
    assert [(span.text, span.label) for span in mine.spans] == [(WRONG, "Contradictory")]

    write_verifier_data([record], tmp_path / "verifier", inject=False)
    lines = [
        json.loads(line)
        for name in SPLITS
        for line in (tmp_path / "verifier" / f"{name}.jsonl").read_text("utf-8").splitlines()
    ]
    hard = [line for line in lines if line["origin"] == "corrected"]
    assert [(line["step"], line["error"]) for line in hard] == [(2, "Contradictory")]
