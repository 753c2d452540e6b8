"""Detection from the browser: choose, estimate, start, watch, try again, and see the trace."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from driving import Desk, open_detectors
from gold_answers import GoldAnswers
from playwright.sync_api import Page, expect
from serving import Server, arrive, serving

from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Span, Status
from spanlab.storage import Store
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, fail

pytestmark = pytest.mark.browser

PASSAGE = "Some towns are old. {name} lies on the river Aare. It has a clock tower."
NAMES = ("Bern", "Thun", "Olten", "Aarau")
POOR = "Olten"  # the model refuses to answer on it, for want of money


def record(name: str) -> Record:
    answer = f"{name} lies on the river Rhine."
    passage = Passage(text=PASSAGE.format(name=name), title="Towns")
    item = Item(
        id=name.lower(),
        lang="en",
        question=f"On which river does {name} lie?",
        answer=answer,
        passages=(passage,),
    )
    start = answer.index("Rhine")
    gold = Annotation(
        annotator="gold",
        kind=AnnotatorKind.GOLD,
        spans=(Span.of(answer, start, start + len("Rhine")),),
    )
    return Record(item=item, annotations=(gold,))


RECORDS = [record(name) for name in NAMES]


@dataclass
class Model:
    """What the scripted model does: answers from gold labels, once it may."""

    server: ModelServer
    has_money: threading.Event


@pytest.fixture(scope="module")
def model() -> Iterator[Model]:
    gold, has_money = GoldAnswers(RECORDS), threading.Event()

    def script(ask: ModelRequest) -> ScriptedReply:
        if POOR in ask.text and not has_money.is_set():
            return fail(402, "no funds", code="insufficient_quota")
        return gold(ask)

    with ModelServer(script) as server:
        yield Model(server, has_money)


@pytest.fixture(scope="module")
def server(model: Model, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An app of its own, whose environment names the scripted model."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", model.server.url)
        patch.setenv("OPENAI_API_KEY", "sk-secret-of-the-browser-test")
        patch.setenv("SPANLAB_MODEL", "scripted-model")
        patch.setenv("SPANLAB_PRICE", "1,0.5,2")
        with serving(tmp_path_factory.mktemp("detect")) as server:
            yield server


def done(store: Store, annotator: str) -> set[str]:
    return {
        record.item.id
        for record in store.records("towns")
        if (found := record.by(annotator)) and found.status is Status.DONE
    }


def test_from_choosing_detectors_to_the_trace_of_what_they_found(
    server: Server, store: Store, page: Page, model: Model
) -> None:
    """A model's suggestions from the page; a failure is a state to repeat."""
    store.import_records("towns", RECORDS)
    arrive(page, server.url(dataset="towns").replace("/?", "/detect?"))
    open_detectors(page)
    page.get_by_text("ucsc-extract", exact=True).first.click()
    expect(page.get_by_test_id("stMetric").filter(has_text="Calls at most")).to_contain_text("4")
    page.get_by_text("ucsc-revise", exact=True).first.click()
    expect(page.get_by_test_id("stMetric").filter(has_text="Calls at most")).to_contain_text("8")
    expect(page.get_by_test_id("stMetric").filter(has_text="Cost")).to_contain_text("$0.0")
    assert "sk-secret" not in page.content()
    page.get_by_role("button", name="Start").click()

    # It goes on by itself to the end, and says what failed, and why.
    expect(page.get_by_text("4 of 4 items · 1 failed").first).to_be_in_viewport()
    expect(page.get_by_text("credits exhausted").first).to_be_visible()
    again = page.get_by_role("button", name="Retry")
    expect(again).to_have_count(1)
    rest = {name.lower() for name in NAMES if name != POOR}
    assert done(store, "ucsc-extract") == done(store, "ucsc-revise") == rest

    # Another page and back: the job is found again, and a second try does what failed, alone.
    page.get_by_role("link", name="All jobs").first.click()
    expect(page.get_by_role("heading", name="Jobs")).to_be_visible()
    expect(page.get_by_text("ucsc-extract, ucsc-revise on towns").first).to_be_visible()
    page.get_by_role("link", name="Detect").click()
    expect(page.get_by_role("radiogroup", name="Detectors")).to_be_visible()
    asked = len(model.server.requests)
    model.has_money.set()
    expect(again).to_have_count(1)
    again.click()
    expect(page.get_by_text("1 of 1 item · took").first).to_be_visible()
    assert done(store, "ucsc-extract") == done(store, "ucsc-revise") == {*rest, "olten"}
    assert all(POOR in ask.text for ask in model.server.requests[asked:])

    # In Review the suggestion can be edited, and the trace says where it comes from.
    desk = Desk(server, store, page, "towns")
    desk.visit("olten")
    desk.press("t")
    trace = page.get_by_role("region", name="Trace of ucsc-extract")
    expect(trace.locator(".sl-read mark")).to_contain_text("Olten lies on the river Aare.")
    expect(trace.locator(".sl-found")).to_have_text("Rhine")
    expect(trace).to_contain_text("scripted-model")
    desk.press("T")
    diff = page.get_by_role("region", name="Trace of ucsc-revise").locator(".sl-diff")
    expect(diff.locator("del")).to_contain_text("Rhine")
    desk.press("Escape")
    expect(page.locator(".sl-answer")).to_be_focused()
    desk.press("a", "[")
    desk.settle()
    assert desk.texts("olten") == ["river Rhine"]
