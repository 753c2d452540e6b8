"""A claim from Detect to Review: pursued on a scripted web, and given more evidence."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

import pytest
from driving import Desk, choose, idle, open_detectors
from playwright.sync_api import Page, expect
from playwright.sync_api import TimeoutError as TooLate
from pursuit_answers import CLAIM, FIRST, ITEM, SNIPPET, WINDOW, PursuitModel, ScriptedWeb, html
from serving import PATIENCE, Server, serving

from spanlab.schema import Annotation, Record, Verdict
from spanlab.search.addresses import ALLOWED
from spanlab.storage import Store
from spanlab.testing import ModelServer

pytestmark = [pytest.mark.browser, pytest.mark.system("papelo")]

SETTLED = {"claim_is": "true", "question": ""}
ADDED = "The guilds of Aldmere say that they built it in 1890."


@pytest.fixture(scope="module")
def web() -> Iterator[ScriptedWeb]:
    with ModelServer() as server:
        yield ScriptedWeb(server)


@pytest.fixture(scope="module")
def model() -> PursuitModel:
    return PursuitModel(*[SETTLED] * 9)


@pytest.fixture(scope="module")
def server(
    web: ScriptedWeb, model: PursuitModel, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """An app of its own, whose environment names the scripted model and search."""
    with ModelServer(model) as answering, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", answering.url)
        patch.setenv("OPENAI_API_KEY", "any")
        patch.setenv("SPANLAB_MODEL", "scripted-model")
        patch.setenv("SPANLAB_SEARCH_URL", f"{web.root}/search?q={{query}}&n={{k}}")
        patch.setenv(ALLOWED, f"127.0.0.1:{web.server.port}")
        with serving(tmp_path_factory.mktemp("pursuit")) as server:
            yield server


def test_a_claim_is_pursued_shown_and_given_more_evidence(
    server: Server, store: Store, page: Page, web: ScriptedWeb
) -> None:
    store.import_records("towers", [Record(item=ITEM)])
    desk = Desk(server, store, page, "towers")
    detect(desk, "detect?dataset=towers", "refuted")
    assert web.searched[0] == f"{CLAIM} {FIRST}"
    desk.visit("tower")
    expect(page.locator(".sl-seg")).to_have_text(["1989"])
    desk.press("t")
    chain = page.locator(".sl-pair").first
    window = chain.locator(".sl-read")
    expect(chain).to_contain_text(FIRST)
    expect(window).to_contain_text(f"Towers 127.0.0.1:{web.server.port} · 2019-05-01{WINDOW}")
    expect(window.locator("mark")).to_have_text(SNIPPET)
    expect(chain).to_contain_text("Early verdict: ✓ supported")
    expect(page.locator(".sl-trace-body")).to_contain_text(
        "Verdict: ✕ refuted, which overturns the early one"
    )

    desk.press("Escape")
    page.get_by_role("tab", name="Evidence").click()
    page.get_by_role("button", name="Add evidence").press("Enter")
    text = page.get_by_label("Text of the passage")
    text.fill(ADDED)
    page.get_by_role("button", name="Add passage").press("Enter")
    expect(page.locator(".sl-passages")).to_contain_text(ADDED)
    web.pages["/guilds"] = html("The roll of the guilds, of 1890.")
    page.get_by_label("Address of a page").fill(f"{web.root}/guilds")
    page.keyboard.press("Enter")
    expect(page.locator(".sl-passages")).to_contain_text("The roll of the guilds")
    page.get_by_label("Address of a page").fill("http://10.0.0.1/")
    page.keyboard.press("Enter")
    expect(page.locator(".sl-evidence-form [role=status]")).to_contain_text("Not added: ")

    link = page.get_by_role("link", name="Detect again").get_attribute("href")
    assert link == "detect?dataset=towers&item=tower"


def detect(desk: Desk, place: str, verdict: Verdict) -> None:
    """Run papelo where a place of the Detect page says, until it has come to a verdict."""
    choose_detector(desk, place, "papelo")
    choose(desk.page, "Source of passages", "A search API")
    start(desk.page)
    wait_for(desk, "tower", "papelo", verdict)


def choose_detector(desk: Desk, place: str, detector: str) -> None:
    page = desk.page
    page.goto(desk.server.url().partition("?")[0] + place)
    open_detectors(page)
    options = page.get_by_text(f"Options of {detector}")
    for _ in range(3):  # as with Start: what is drawn anew just then misses the press
        idle(page)
        page.get_by_text(detector, exact=True).first.click()
        with suppress(TooLate):
            options.wait_for(timeout=15_000)
            break
    options.click()
    choose(page, "Claims", "answer")


def start(page: Page) -> None:
    """Press Start, again where a rerun drew it anew just then: one job alone is ever started."""
    told = page.get_by_text(re.compile(r"\d of \d items?\b")).first
    for _ in range(3):
        idle(page)
        page.get_by_role("button", name="Start").click()
        with suppress(TooLate):
            told.wait_for(timeout=15_000)
            return


def wait_for(desk: Desk, item: str, detector: str, verdict: Verdict) -> Annotation:
    for _ in range(int(PATIENCE) // 100):
        said = desk.store.record(desk.dataset, item).by(detector)
        if said is not None and said.claims and said.claims[0].verdict == verdict:
            return said
        desk.page.wait_for_timeout(100)
    raise AssertionError(f"{detector} has not come to {verdict!r}")
