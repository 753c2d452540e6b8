"""The pictures of README and guide: the pages on the samples, and the traces of detectors."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from agent_answers import ARTICLE, agent
from driving import Desk
from gold_answers import GoldAnswers
from pictures import MovingPicture, take_picture
from playwright.sync_api import Page, expect
from pursuit_answers import ITEM as TOWER
from pursuit_answers import PursuitModel, ScriptedWeb
from reasoning_script import ReasoningScript
from serving import PATIENCE, Server
from tiny_encoders import NLI_LABELS, entailed, table, word_piece, write
from trail_answers import SUMMARISED, TrailAnswers

import spanlab
from spanlab.data.importing import DATASET, detection_of_samples, prepare_samples
from spanlab.formats import read
from spanlab.jobs import Jobs
from spanlab.measure.sample import measurement_queue, plan_measurement
from spanlab.schema import AnnotatorKind, Item, MeasurementPlan, Passage, Record
from spanlab.search.addresses import ALLOWED
from spanlab.storage import Store
from spanlab.testing import ModelServer, Script

pytestmark = pytest.mark.browser

SAMPLES = Path(__file__).parents[3] / "data" / "samples.jsonl"
SAMPLE = "sample-en-5"
Detect = Callable[..., Record]
REASONED = Item(
    id="born",
    lang="en",
    question="Where was the builder of the tower born?",
    answer="Step 1: According to Passage 1, Ada Smith built the tower. (Attribution)\n"
    "Step 2: According to Passage 2, Ada Smith was born in Paris. (Attribution)\n"
    "Step 3: ####ANSWER: Paris (Final Answer)",
    passages=(
        Passage(title="Tower", text="Ada Smith built the tower."),
        Passage(title="Ada Smith", text="Ada Smith was born in Oslo."),
    ),
)
WRONG = {
    "diagnosis": "Passage 2 says that she was born in Oslo.",
    "errors": ["Contradictory"],
    "guidance": "Say Oslo.",
    "sentence": "Ada Smith was born in Oslo.",
}


@pytest.fixture
def at_samples(server: Server, store: Store, page: Page) -> Desk:
    prepare_samples(store)
    detection = Jobs(server.settings).submit(detection_of_samples())
    desk = Desk(server, store, page, DATASET)
    desk.visit(SAMPLE)  # the first page lets the app work on jobs
    Jobs(server.settings).store.wait(detection, timeout=PATIENCE / 1000)
    page.evaluate("localStorage.setItem('spanlab.hints', '9')")
    desk.visit(SAMPLE)
    return desk


def test_the_pages_on_the_samples_and_a_review_by_keyboard(
    at_samples: Desk, page: Page, tmp_path: Path
) -> None:
    def go(to: str, text: str) -> None:
        at = at_samples.server.url(dataset=DATASET, item=SAMPLE, reviewer="Ada")
        page.goto(at.replace("/?", f"/{to}?"))
        expect(page.get_by_text(text).first).to_be_visible()

    at_samples.press("a")
    page.get_by_text("1981").first.wait_for()
    at_samples.settle()
    take_picture(page, "review", tmp_path)

    go("adjudicate", "Decided by")
    at_samples.wait_for(SAMPLE)
    at_samples.press("m")
    at_samples.settle()
    expect(page.locator(".sl-toast")).to_be_hidden(timeout=PATIENCE)
    take_picture(page, "adjudicate", tmp_path)

    go("compare", "Agreement")
    expect(page.locator(".marked article").first).to_be_visible(timeout=PATIENCE)
    take_picture(page, "compare", tmp_path)
    for name, text in (
        ("detect", "Quick and offline"),
        ("jobs", "offline on samples"),
        ("export", "Download"),
    ):
        go(name, text)
        if name == "detect":
            page.get_by_text("Quick and offline").click()
            expect(page.get_by_text("without any model call")).to_be_visible()
        take_picture(page, name, tmp_path)
    _film_a_review(at_samples, page, tmp_path)

    _measure(at_samples.store)
    go("measure", "40 of 67 items reviewed")
    page.get_by_role("tab", name="Rates of the plan").wait_for()
    take_picture(page, "measure", tmp_path)


def _measure(store: Store) -> None:
    """Plan a measurement of the samples, and review forty of them as their gold labels say."""
    plan_measurement(store, DATASET, MeasurementPlan(annotator="offline", reviewers=("Ben",)))
    gold = {
        record.item.id: annotation
        for record in read(SAMPLES)
        for annotation in record.annotations
        if annotation.annotator == "gold"
    }
    said = {"annotator": "Ben", "kind": AnnotatorKind.PERSON}
    queue = measurement_queue(store, DATASET)[:40]
    store.save_annotations(DATASET, [(name, gold[name].model_copy(update=said)) for name in queue])


def _film_a_review(at_samples: Desk, page: Page, tmp_path: Path) -> None:
    """Take the moving picture of a review by keyboard."""

    def show(*presses: tuple[str, int]) -> None:
        for key, milliseconds in presses:
            at_samples.press(key)
            at_samples.settle()
            film.take(milliseconds)

    film = MovingPicture(page)
    at_samples.visit("sample-en-1")
    film.take(1800)
    show(("a", 1200), ("5", 1400))
    at_samples.press("Enter")
    at_samples.settle()
    at_samples.wait_for("sample-en-2")
    film.take(1600)
    show(("x", 1400), ("u", 1400), ("a", 1400), ("e", 1600))
    film.save("by-keyboard", tmp_path)


@pytest.fixture
def detect(
    server: Server, store: Store, page: Page, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Detect]:
    """Have a detector annotate an item with a scripted model, and store it as `trace-…`."""
    monkeypatch.setenv("SPANLAB_HOME", str(server.settings.home))
    monkeypatch.setenv("SPANLAB_DATABASE_URL", server.settings.database_url)
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    monkeypatch.setenv("SPANLAB_MODEL", "scripted-model")

    def annotated(name: str, item: Item, script: Script, **options: object) -> Record:
        with ModelServer(script) as model:
            monkeypatch.setenv("OPENAI_BASE_URL", model.url)
            (record,) = spanlab.annotate([Record(item=item)], name, **options)
        store.import_records(f"trace-{name}", [record])
        return record

    yield annotated


def _checkpoints(item: Item, folder: Path) -> dict[str, list[str]]:
    """Write a checkpoint for each encoder, and return the options that name it."""
    text = " ".join((item.answer, *(passage.text for passage in item.passages)))
    words = word_piece(sorted(set(re.findall(r"\w+|[^\w\s]", text))))
    rates = write(folder / "rates", table(words, ["New", "South", "Wales", "1991"]), words)
    judges = write(folder / "judges", entailed(words), words, NLI_LABELS)
    return {"encoder": [f"model={rates}"], "encoder-nli": [f"model={judges}"]}


@contextmanager
def web(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedWeb]:
    with ModelServer() as server:
        found = ScriptedWeb(server)
        found.pages["/w/api.php"] = ARTICLE
        monkeypatch.setenv("SPANLAB_SEARCH_URL", f"{found.root}/search?q={{query}}&n={{k}}")
        monkeypatch.setenv("SPANLAB_WIKIPEDIA_URL", f"{found.root}/w/api.php")
        monkeypatch.setenv(ALLOWED, f"127.0.0.1:{server.port}")
        yield found


def test_the_traces_of_detectors(
    server: Server,
    store: Store,
    page: Page,
    detect: Detect,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    records = list(read(SAMPLES))
    (sample,) = (record.item for record in records if record.item.id == SAMPLE)
    gold = GoldAnswers(records)
    for name in ("offline", "ucsc-extract", "ucsc-kg", "ucsc-revise", "ucsc"):
        detect(name, sample, gold)
    for name, option in _checkpoints(sample, tmp_path).items():
        detect(name, sample, gold, option=option)
    detect("veritrail", SUMMARISED, TrailAnswers())
    detect("safe", REASONED, ReasoningScript({}, {"in Paris": WRONG}))
    with web(monkeypatch):
        pursued = PursuitModel(*[{"claim_is": "true", "question": ""}] * 9)
        detect("papelo", TOWER, pursued, search="search", option=["claims=answer"])
        tools = ["claims=answer", "tools=wikipedia"]
        detect("mermaid", TOWER, lambda ask: agent(ask) or pursued(ask), option=tools)
    page.goto(server.url())
    page.evaluate("localStorage.setItem('spanlab.hints', '9')")
    ours = ("ucsc-extract", "ucsc-kg", "ucsc-revise", "ucsc")
    for name in ("offline", "encoder", "encoder-nli", *ours, "safe", "papelo", "mermaid"):
        desk = Desk(server, store, page, f"trace-{name}")
        desk.visit()
        desk.press("j" if name in {"offline", "encoder"} else "t")
        take_picture(page, f"trace-{name}", tmp_path)
    desk = Desk(server, store, page, "trace-veritrail")
    desk.visit()
    page.get_by_role(
        "button", name="Evidence below"
    ).click()  # the panel below is wide enough for a trail
    page.focus(".sl-answer")
    desk.press("l")
    expect(page.locator(".sl-picture")).to_be_visible()
    take_picture(page, "trace-veritrail", tmp_path)
    page.goto(server.url().replace("/?", "/memory?"))
    expect(page.get_by_text("Tower of Aldmere").first).to_be_visible()
    take_picture(page, "memory", tmp_path)
