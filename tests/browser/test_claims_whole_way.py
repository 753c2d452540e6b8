"""Claims from a process to scores: import, detect, review with the trail, export, score."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run_here
from driving import REVIEWER, Desk, becomes, nodes_of, open_detectors
from playwright.sync_api import FilePayload, Page, expect
from serving import Server, serving
from trail_answers import BUILDER, BUILT, PLACE, SUMMARISED, TrailAnswers

from spanlab.formats import dumps, read
from spanlab.schema import Annotation, AnnotatorKind, Claim, Record, Verdict
from spanlab.storage import Store
from spanlab.testing import ModelServer

pytestmark = pytest.mark.browser

GOLD: dict[str, Verdict] = {BUILT: "not-supported", BUILDER: "inconclusive", PLACE: "supported"}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """An app of its own, whose environment names the scripted model."""
    with ModelServer(TrailAnswers()) as model, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_BASE_URL", model.url)
        patch.setenv("OPENAI_API_KEY", "any")
        patch.setenv("SPANLAB_MODEL", "scripted-model")
        with serving(tmp_path_factory.mktemp("claims")) as server:
            yield server


def test_a_process_is_imported_its_claims_judged_corrected_exported_and_scored(
    server: Server, store: Store, page: Page, tmp_path: Path
) -> None:
    upload = FilePayload(name="towers.jsonl", mimeType="", buffer=dumps(Record(item=SUMMARISED)))
    page.goto(server.url().replace("/?", "/datasets?"))
    page.locator("input[type=file]").first.set_input_files(upload)
    expect(page.get_by_placeholder("towers")).to_be_visible()
    page.get_by_role("button", name="Import", exact=True).click()
    expect(page.get_by_text("1 item imported into towers")).to_be_visible()

    page.goto(server.url(dataset="towers").replace("/?", "/detect?"))
    open_detectors(page)
    page.get_by_text("veritrail", exact=True).first.click()
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_text("1 of 1 item · took").first).to_be_visible()

    desk = Desk(server, store, page, "towers")
    desk.visit("tower")
    expect(page.locator(".sl-seg")).to_have_text(["1989", "Ada Smith"])  # the spans
    desk.press("l")
    expect(page.locator(".sl-claim .sl-verdict")).to_have_text(
        ["✕ not supported", "✕ not supported", "✓ supported"]
    )
    expect(page.locator(".sl-trail-view")).to_contain_text("Error introduced here")
    becomes(lambda: nodes_of(page), ["chapter 1", "summary 1", "end"])
    desk.press("a")  # the year
    desk.press("6")  # who built it: nothing is said of that
    desk.press("a", "Escape", "x", "x")  # the place, and no spans
    desk.press("Enter")
    desk.settle()

    page.get_by_test_id("stTopNav").get_by_role("link", name="Export").click()
    page.get_by_role("button", name="Create file").click()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download").click()
    exported = tmp_path / "towers.jsonl"
    caught.value.save_as(exported)
    (record,) = read(exported)
    mine = record.by(REVIEWER)
    assert mine is not None
    assert {claim.text: claim.verdict for claim in mine.claims} == GOLD
    assert mine.claims[0].error_stages == ("summary",)

    # Of three claims gold calls one inconclusive, which counts only if asked for.
    assert _accuracy(exported, "veritrail", tmp_path) == 1.0
    every = ("--keep-inconclusive",)
    assert _accuracy(exported, "veritrail", tmp_path, *every) == pytest.approx(2 / 3)
    assert _accuracy(exported, REVIEWER, tmp_path, *every) == 1.0


def _accuracy(exported: Path, annotator: str, folder: Path, *options: str) -> float:
    gold = Annotation(
        annotator="gold",
        kind=AnnotatorKind.GOLD,
        claims=tuple(Claim(text=text, verdict=verdict) for text, verdict in GOLD.items()),
    )
    labels = folder / "gold.jsonl"
    labels.write_bytes(dumps(Record(item=SUMMARISED, annotations=(gold,))))
    words = ["score", str(exported), str(labels), "--claims", "--annotator", annotator, "--json"]
    words += options
    done = run_here(words, folder, {**os.environ, "SPANLAB_HOME": str(folder / "home")})
    assert done.returncode == 0, done.stderr
    return float(json.loads(done.stdout)["accuracy"]["mean"])
