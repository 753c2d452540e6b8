"""The pages around the review, in a real browser: a file in, looked at, compared, and out."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import playwright.sync_api as playwright
import pytest
from driving import go, idle
from playwright.sync_api import FilePayload, Locator, Page, expect
from serving import PATIENCE as WAIT
from serving import Server
from trace_homes import KEYS, living

from spanlab.data.export_choice import ExportChoice
from spanlab.data.exporting import export_dataset
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Span
from spanlab.storage import Store

ANSWER = "Marie Curie was born in Paris 👩‍🔬 in 1867."
PASSAGE = Passage(text="Marie Curie was born in Warsaw in 1867.")
HOSTILE = (
    '<script>window.ran=1</script><img src=x onerror="window.ran=1"> **bold** [x](javascript:1)'
)

_number = itertools.count()


def says(name: str, kind: AnnotatorKind, *quotes: str) -> Annotation:
    places = [ANSWER.index(quote) for quote in quotes]
    spans = (Span.of(ANSWER, p, p + len(q)) for p, q in zip(places, quotes, strict=True))
    return Annotation(annotator=name, kind=kind, spans=tuple(spans))


SPANS = Path(__file__).parents[2] / "cli" / "peers" / "phoenix_get_spans.json"


def records() -> list[Record]:
    """Three items: on "apart" Ann and Ben mark different words, on the others the same."""
    gold = says("gold", AnnotatorKind.GOLD, "Paris")
    ann = says("Ann", AnnotatorKind.PERSON, "Paris")
    other = says("Ben", AnnotatorKind.PERSON, "1867")
    same = says("Ben", AnnotatorKind.PERSON, "Paris")
    return [
        Record(
            item=Item(id=name, lang="en", question="Where?", answer=ANSWER, passages=(PASSAGE,)),
            annotations=(gold, ann, other if name == "apart" else same),
        )
        for name in ("one", "two", "apart")
    ]


@pytest.fixture
def dataset(store: Store) -> str:
    name = f"pages-{next(_number)}"
    store.import_records(name, records())
    return name


@pytest.fixture
def visit(server: Server, page: Page) -> Callable[..., Page]:
    def visit(path: str, **query: str) -> Page:
        url = server.url(**query).replace("/?", f"/{path}?")
        if page.url.startswith(server.url().removesuffix("?")):
            go(page, url)
        else:  # it is new, or at rest at another test's own server
            page.goto(url)
        expect(page.locator("h1")).to_be_visible(timeout=WAIT)
        return page

    return visit


def press_until(page: Page, key: str, text: str) -> None:
    """Press a key of the page until it shows a text: it is drawn before it listens to keys."""
    for _ in range(4):
        page.keyboard.press(key)
        with suppress(playwright.TimeoutError):
            page.get_by_text(text).wait_for(timeout=WAIT / 4)
            return
    raise AssertionError(f"{key} does not lead to {text}")


def card(page: Page, dataset: str) -> Locator:
    return page.locator(f".st-key-dataset-{dataset}")


def test_an_uploaded_file_is_counted_and_detected(visit: Callable[..., Page], store: Store) -> None:
    """Several annotators per item, and the counts of each."""
    source = f"upload-{next(_number)}"
    lines = BytesIO()
    store.import_records(f"{source}-seed", records())
    export_dataset(store, f"{source}-seed", lines)
    page = visit("datasets")
    page.set_viewport_size({"width": 1280, "height": 720})
    page.get_by_text("Import files").click()
    upload = FilePayload(name=f"{source}.jsonl", mimeType="", buffer=lines.getvalue())
    page.locator("input[type=file]").first.set_input_files(upload)
    expect(page.get_by_placeholder(source)).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("Recognised as")).to_be_in_viewport(timeout=WAIT)
    button = page.get_by_role("button", name="Import", exact=True)
    expect(button).to_be_in_viewport()
    expect(page.get_by_label("Format", exact=True)).not_to_be_visible()  # all else is folded
    button.click()
    expect(page.get_by_text(f"3 items imported into {source}")).to_be_in_viewport(timeout=WAIT)
    expect(page.get_by_text("Files contain").filter(visible=True)).to_have_count(0)  # closed
    assert list(store.records(source)) == records()
    mine = card(page, source)
    expect(mine.locator(".counts .row")).to_have_text(
        [re.compile(f"{name}.*3 of 3 done") for name in ("gold", "Ann", "Ben")]
    )
    # The rest by keyboard alone.
    mine.get_by_role("button", name="Detect…").press("Enter")
    start = page.get_by_role("dialog").get_by_role("button", name="Start")
    expect(start).to_be_visible(timeout=WAIT)
    start.press("Enter")
    expect(page.get_by_text(f"offline annotated 3 items of {source}")).to_be_visible(timeout=WAIT)
    expect(mine.locator(".counts .row", has_text="offline")).to_have_text(
        re.compile("offline.*3 of 3 done")
    )
    assert all(record.by("offline") for record in store.records(source))


def test_traces_are_fetched_by_what_is_typed_before_the_click(
    visit: Callable[..., Page], dataset: str
) -> None:
    """Fields outside of a form lose what is typed while the page is drawn again."""
    with living() as homes:
        homes.spans = json.loads(SPANS.read_text("utf-8"))
        page = visit("datasets", dataset=dataset)
        page.get_by_text("Import files").click()
        page.get_by_text("Langfuse or Phoenix").click()
        page.get_by_text("Phoenix", exact=True).click()
        key = page.get_by_label("API key", exact=True)
        page.get_by_label("Address", exact=True).fill(homes.url)
        key.fill(KEYS["PHOENIX_API_KEY"])
        page.get_by_role("button", name="Fetch traces").click()
        expect(page.get_by_text("2 traces fetched.")).to_be_visible(timeout=WAIT)
        expect(page.get_by_text("Recognised as")).to_be_visible(timeout=WAIT)


def test_a_link_to_a_heading_leads_below_the_head(visit: Callable[..., Page], dataset: str) -> None:
    page = visit("campaign", dataset=dataset)
    page.set_viewport_size({"width": 1280, "height": 500})
    heading, head = page.get_by_role("heading", name="Set up"), page.locator(".st-key-page-head")
    heading.evaluate("node => node.scrollIntoView()")  # as the link does
    above, below = (box.bounding_box() for box in (head, heading))
    assert above
    assert below
    assert above["y"] + above["height"] <= below["y"] < 200


def test_campaign_shows_by_itself_who_has_come(
    visit: Callable[..., Page], store: Store, dataset: str
) -> None:
    page = visit("campaign", dataset=dataset)
    expect(page.get_by_text("2 people have annotated")).to_be_visible(timeout=WAIT)
    cleo = Annotation(annotator="Cleo", kind=AnnotatorKind.PERSON)
    store.save_annotations(dataset, [("one", cleo)])
    expect(page.get_by_text("3 people have annotated")).to_be_visible(timeout=WAIT)


def test_compare_shows_the_most_disagreed_item_and_walks_on_by_key(
    visit: Callable[..., Page], dataset: str
) -> None:
    """Annotators side by side, most disagreement first."""
    page = visit("compare", dataset=dataset)
    expect(page.locator(".marked article")).to_have_count(3, timeout=WAIT)
    expect(page.get_by_text("apart · en", exact=True)).to_be_visible()
    expect(page.locator(".marked mark")).to_have_text(["Paris", "Paris", "1867"])
    expect(page.locator(".marked .answer")).to_have_text([ANSWER] * 3)
    idle(page)
    press_until(page, "n", "one · en")
    expect(page).to_have_url(re.compile("item=one"))
    idle(page)
    press_until(page, "p", "apart · en")


def test_a_download_is_what_the_workflow_writes(
    visit: Callable[..., Page], dataset: str, store: Store
) -> None:
    """An export finishes and is whole."""
    page = visit("export", dataset=dataset)
    idle(page)
    page.get_by_text("A task's form", exact=True).click()
    expect(page.get_by_text("Mu-SHROOM: Soft and hard labels")).to_be_visible(timeout=WAIT)
    # Gold labels, two persons: whose are meant has to be said.
    expect(page.get_by_test_id("stAlert")).to_contain_text("labels of one annotator", timeout=WAIT)
    page.get_by_role("button", name="Annotators: all 3").click()
    for name, left in (("gold · ", "2 of 3"), ("Ann · 3", "1 of 3")):
        page.get_by_role("button", name=name).click()
        expect(page.get_by_role("button", name=f"Annotators: {left}")).to_be_visible(timeout=WAIT)
        idle(page)
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Create file").click()
    button = page.get_by_role("button", name=f"Download {dataset}.Ben.jsonl")
    expect(button).to_be_visible(timeout=WAIT)
    with page.expect_download() as caught:
        button.click()
    expected = BytesIO()
    export_dataset(store, dataset, expected, ExportChoice(format="mushroom", annotators=("Ben",)))
    assert caught.value.suggested_filename == f"{dataset}.Ben.jsonl"
    assert caught.value.path().read_bytes() == expected.getvalue()


def test_hostile_texts_run_nothing_on_any_page(visit: Callable[..., Page], store: Store) -> None:
    name = f"hostile-{next(_number)}"
    item = Item(
        id="a", question=HOSTILE, answer=HOSTILE, passages=(Passage(text=HOSTILE, title=HOSTILE),)
    )
    mark = Span(start=0, end=8, text="<script>", label=HOSTILE, note=HOSTILE)
    evil = Annotation(annotator=HOSTILE, kind=AnnotatorKind.PERSON, spans=(mark,))
    store.import_records(name, [Record(item=item, annotations=(evil,))])
    page = visit("compare", dataset=name)
    expect(page.locator(".marked .answer")).to_have_text([HOSTILE], timeout=WAIT)
    page.get_by_text("Passages (1)").click()
    expect(page.locator(".passage")).to_have_text(HOSTILE)
    for path, place in (("datasets", ".counts .who"), ("export", "[data-testid=stMarkdown]")):
        page = visit(path, dataset=name)
        said = page.locator(place).get_by_text(HOSTILE).first
        expect(said).to_be_visible(timeout=WAIT)
        assert page.evaluate("window.ran") is None
        assert page.locator("img[onerror]").count() == 0


_DONE_HERE = {
    "campaign": "Save",
    "datasets": "Import files",
    "detect": "Start",
    "export": "Create file",
    "compare?view=Bench": "Start",
}


@pytest.mark.parametrize("path", _DONE_HERE)
def test_what_a_page_is_there_to_do_can_be_done_without_scrolling(
    visit: Callable[..., Page], dataset: str, page: Page, path: str
) -> None:
    page.set_viewport_size({"width": 1280, "height": 720})
    path, _, view = path.partition("?view=")
    visit(path, dataset=dataset, **({"view": view} if view else {}))
    name = _DONE_HERE[f"{path}?view={view}" if view else path]
    button = page.get_by_role("button", name=re.compile(f"{name}$"))
    expect(button.filter(visible=True)).to_be_in_viewport(ratio=1, timeout=WAIT)


def test_progress_is_on_campaign_and_the_address_of_1_0_leads_there(
    visit: Callable[..., Page], dataset: str
) -> None:
    page = visit("compare", dataset=dataset, view="Progress")
    expect(page.get_by_role("heading", name="Campaign", level=1)).to_be_visible(timeout=WAIT)
    page.get_by_test_id("stButtonGroup").get_by_text("Labels").click()
    expect(page.get_by_text("Spans by person and label").first).to_be_visible(timeout=WAIT)
    assert f"dataset={dataset}" in page.url
    go(page, page.url.replace("/campaign?", "/compare?"))
    expect(page.get_by_role("tab", name="Agreement")).to_be_visible(timeout=WAIT)
    assert page.get_by_role("tab", name="Progress").count() == 0
