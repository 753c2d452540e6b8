"""Optimisation from the browser: choose, start, watch, see what it is worth, use it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import tab_to
from gold_answers import GoldAnswers, better_when_asked
from pictures import take_picture
from playwright.sync_api import Page, expect
from serving import Server, arrive, serving

from spanlab.formats import read
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import Record
from spanlab.storage import Store
from spanlab.testing import ModelServer

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def records(samples: Path) -> list[Record]:
    return [record for record in read(samples) if record.item.lang in {"en", "de"}]


@pytest.fixture(scope="module")
def model(records: list[Record]) -> Iterator[ModelServer]:
    with ModelServer(GoldAnswers(records, noise=better_when_asked())) as server:
        yield server


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> ProgramRegistry:
    return ProgramRegistry(tmp_path_factory.mktemp("programs"))


@pytest.fixture(scope="module")
def server(
    model: ModelServer, programs: ProgramRegistry, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """An app of its own, whose environment names the scripted model and the registry."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", model.url)
        patch.setenv("OPENAI_API_KEY", "sk-secret-of-the-browser-test")
        patch.setenv("SPANLAB_MODEL", "scripted-model")
        patch.setenv("SPANLAB_PROGRAMS", str(programs.folder))
        with serving(tmp_path_factory.mktemp("optimise")) as server:
            yield server


def test_a_better_prompt_is_found_watched_measured_and_used(
    server: Server,
    store: Store,
    page: Page,
    records: list[Record],
    programs: ProgramRegistry,
    tmp_path: Path,
) -> None:
    store.import_records("mine", records)
    arrive(page, server.url(dataset="mine").replace("/?", "/optimise?"))
    figure = page.get_by_test_id("stMetric")
    expect(figure.filter(has_text="Labelled items")).to_contain_text(str(len(records)))
    assert "sk-secret" not in page.content()
    tab_to(page, page.get_by_role("button", name="Start", exact=True))
    page.keyboard.press("Enter")

    # It goes on while nobody looks, and is there when one comes back.
    expect(page.get_by_text("ucsc-extract for iou on mine").first).to_be_visible()
    page.get_by_role("link", name="All jobs").click()
    expect(page.get_by_role("button", name="Details").first).to_be_visible()
    expect(page.get_by_text("ucsc-extract for iou").first).to_be_visible()
    page.get_by_test_id("stTopNav").get_by_text("Tools", exact=True).click()
    page.get_by_role("menuitem", name="Optimise").click()
    expect(page.get_by_text("Best prompt so far")).to_be_visible()
    expect(page.locator("[data-testid=stVegaLiteChart]").first).to_be_visible()

    # At the end: what it is worth on items it has not seen, by language, and one button.
    expect(page.get_by_text("Better than the untuned prompt").first).to_be_visible()
    expect(figure.filter(has_text="Held-out items").first).to_contain_text(str(len(records)))
    page.get_by_text("Better than the untuned prompt").first.scroll_into_view_if_needed()
    take_picture(page, "optimise", tmp_path)
    tab_to(page, page.locator("summary", has_text="What changed in the prompt").first)
    page.keyboard.press("Enter")
    expect(page.locator("code", has_text="--- untuned")).to_contain_text("+++ ucsc-extract-iou-1")
    tab_to(page, page.get_by_role("button", name="Use it for ucsc-extract").first)
    page.keyboard.press("Enter")
    expect(page.get_by_text("In use")).to_be_visible()
    (program,) = programs
    assert programs.default("ucsc-extract") == program.name
    assert program.held_out is not None
    assert program.held_out.better
    assert page.locator(".stException").count() == 0
