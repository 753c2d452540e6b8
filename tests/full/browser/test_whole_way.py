"""From an opened item to the exported file: with nothing but keys, with nothing but the mouse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import DETECTOR, REVIEWER, Desk, suggested, tab_to
from playwright.sync_api import expect

from spanlab import formats as datasets
from spanlab.schema import Annotation, AnnotatorKind, Evidence, Item, Passage, Record, Span, Status

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWER = "Curie was born in Paris 👩‍🔬 in 1867.\nShe won one prize."
ITEM = Item(id="curie", lang="en", question="Who was Curie?", answer=ANSWER)
LINE = Item(
    id="line",
    lang="en",
    question="Who was Curie?",
    answer="Curie 👩‍🔬 was born in Paris in 1867 and won one prize.",
    passages=(Passage(text="Curie was born in Warsaw in 1867."),),
)
NEXT = Item(id="next", lang="en", question="And?", answer="All is well.")


def test_review_and_export_need_no_mouse(desk: Sit) -> None:
    """Reviewed by key, and what comes out of the Export page is what was reviewed."""
    found = suggested(ITEM, [("in Paris", 0.8), ("1867", 0.6)])
    here = desk([Record(item=ITEM, annotations=(found,)), Record(item=NEXT)])
    here.press("{", "3", "c")  # "Paris", with a label and a comment
    here.page.keyboard.type("Warsaw")
    here.press("Enter", "j", "x")  # 1867 is right
    here.press("ArrowDown", "Home")
    here.press(*["Control+ArrowRight"] * 2, "Control+Shift+ArrowRight", "d")  # "one"
    here.press("Enter")
    here.wait_for("next")
    here.press("Enter")
    here.settle()
    assert here.texts("curie") == ["Paris", "one"]

    tab_to(here.page, here.page.get_by_role("link", name="Export").first, backwards=True)
    here.press("Enter")
    here.page.wait_for_selector("h1:has-text('Export')")
    tab_to(here.page, here.page.get_by_role("button", name="Create file").first)
    here.press("Enter")
    here.page.get_by_role("button", name="Download").wait_for()
    tab_to(here.page, here.page.get_by_role("button", name="Download").first)
    with here.page.expect_download() as caught:
        here.press("Enter")
    assert caught.value.suggested_filename == f"{here.dataset}.jsonl"
    first, after = datasets.read(caught.value.path())
    mine = _of(first, REVIEWER)
    assert mine.status is Status.DONE
    spans = [(span.text, span.label, span.note, span.source) for span in mine.spans]
    assert spans == [("Paris", "wrong name", "Warsaw", DETECTOR), ("one", None, None, None)]
    assert [span.text for span in mine.rejected] == ["1867"]
    assert _of(after, REVIEWER).status is Status.DONE
    assert _of(after, REVIEWER).spans == ()


def test_review_and_export_need_no_keyboard(desk: Sit) -> None:
    """Reviewed by mouse, and what is downloaded is what was reviewed."""
    quote = Evidence(start=18, end=24, text="Warsaw", passage=0, stance="refutes")
    start = LINE.answer.index("in Paris")
    paris = Span.of(LINE.answer, start, start + 8, prob=0.8, evidence=(quote,))
    year = suggested(LINE, [("1867", 0.6)]).spans
    found = Annotation(annotator=DETECTOR, kind=AnnotatorKind.DETECTOR, spans=(paris, *year))
    here = desk([Record(item=LINE, annotations=(found,)), Record(item=NEXT)])
    page = here.page
    page.get_by_role("link", name="Datasets").click()
    card = page.locator(f".st-key-dataset-{here.dataset}")
    card.get_by_role("link", name="Review").click()
    here.wait_for("line")

    here.click_on("Paris")
    here.until(
        """() => [...document.querySelectorAll(".sl-seg[data-n]")]
            .map((one) => one.dataset.n).join(" ") === "80 60" """
    )
    expect(page.locator(".sl-votes")).to_contain_text(f"{DETECTOR} 80 %")
    expect(page.locator(".sl-passages mark")).to_have_text("Warsaw")
    _tool(here, "accept")
    here.click_on("1867")
    _tool(here, "reject")
    here.click_on("Paris")
    here.drag_end("start", "Paris")
    here.drag_over("ne prize")  # snaps to whole words
    page.select_option(".sl-tools select", "wrong number")
    here.click_on("prize")
    _tool(here, "comment")
    page.fill(".sl-ask input", "two")  # what it says can only be typed
    page.click(".sl-ask [type=submit]")
    _action(here, "done")
    here.wait_for("next")
    _action(here, "skip")
    here.shows_status("skipped")
    here.drag_over("well")
    for command in ("undo", "undo", "redo"):
        _action(here, command)
    here.shows_status("skipped")
    _action(here, "done")
    here.settle()
    assert here.texts("line") == ["Paris", "one prize"]

    page.reload()
    here.wait_for("next")
    here.shows_status("done")
    _action(here, "previousItem")
    here.wait_for("line")
    here.shows_status("done")
    expect(page.locator(".sl-own")).to_have_text(["Paris", "one prize"])
    expect(page.locator(".sl-struck")).to_have_text(["1867"])
    here.click_on("prize")
    expect(page.locator(".sl-card .sl-note")).to_have_text("two")

    page.get_by_test_id("stTopNav").get_by_role("link", name="Export").click()
    page.get_by_role("button", name="Create file").click()
    with page.expect_download() as caught:
        page.get_by_role("button", name="Download").click()
    first, after = datasets.read(caught.value.path())
    mine = _of(first, REVIEWER)
    assert mine.status is Status.DONE
    spans = [(span.text, span.label, span.note, span.source) for span in mine.spans]
    assert spans == [("Paris", None, None, DETECTOR), ("one prize", "wrong number", "two", None)]
    assert mine.spans[0].evidence == (quote,)
    assert [span.text for span in mine.rejected] == ["1867"]
    assert _of(first, DETECTOR) == found
    assert (_of(after, REVIEWER).status, _of(after, REVIEWER).spans) == (Status.DONE, ())


def _tool(here: Desk, command: str) -> None:
    here.page.click(f'.sl-tools [data-command="{command}"]')


def _action(here: Desk, command: str) -> None:
    here.page.click(f'.sl-actions [data-command="{command}"]')


def _of(record: Record, annotator: str) -> Annotation:
    annotation = record.by(annotator)
    assert annotation is not None
    return annotation
