"""A whole review without a keyboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from driving import DETECTOR, Desk, suggested
from playwright.sync_api import expect

from spanlab.schema import Annotation, Item, Kind, Record, Span, Status

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWER = (
    "Frankenstein was written by Percy Shelley in Geneva and first published, in Paris in 1821."
)
ITEM = Item(id="frankenstein", lang="en", question="Who wrote Frankenstein?", answer=ANSWER)
NEXT = Item(id="next", lang="en", question="And then?", answer="Nothing was wrong here.")


def _records() -> list[Record]:
    parts = [("Percy Shelley", 0.9), ("in Paris in 1821", 0.6), ("first published", 0.2)]
    return [Record(item=ITEM, annotations=(suggested(ITEM, parts),)), Record(item=NEXT)]


def _tool(here: Desk, command: str) -> None:
    here.page.click(f'.sl-tools [data-command="{command}"]')


def _action(here: Desk, command: str) -> None:
    here.page.click(f'.sl-actions [data-command="{command}"]')


def test_everything_of_a_review_works_by_mouse_alone(desk: Sit) -> None:
    """Suggestions of a detector from the page, editable."""
    here = desk(_records())
    here.click_on("Percy")
    _tool(here, "accept")
    here.click_on("first published")
    _tool(here, "reject")
    here.drag_over("eneva")  # snaps to the whole word
    here.page.select_option(".sl-tools select", "wrong name")
    here.click_on("Paris")
    _tool(here, "accept")
    here.click_on("Paris")
    _tool(here, "comment")
    here.page.fill(".sl-ask input", "London")
    here.page.click(".sl-ask [type=submit]")
    _action(here, "done")
    here.wait_for("next")
    _action(here, "skip")
    here.settle()

    state = here.state("frankenstein")
    assert here.texts("frankenstein") == ["Percy Shelley", "Geneva", "in Paris in 1821"]
    assert [(span.text, span.label, span.note, span.source) for span in state.spans.values()] == [
        ("Percy Shelley", None, None, DETECTOR),
        ("Geneva", "wrong name", None, None),
        ("in Paris in 1821", None, "London", DETECTOR),
    ]
    assert [span.text for span in state.rejected] == ["first published"]
    assert state.status is Status.DONE
    assert here.state("next").status is Status.SKIPPED

    _action(here, "previousItem")
    here.wait_for("frankenstein")
    _action(here, "undo")
    _action(here, "undo")
    here.settle()
    assert here.state("frankenstein").status is Status.NOT_ANNOTATED
    assert here.state("frankenstein").spans[list(state.spans)[-1]].note is None
    _action(here, "redo")
    here.page.reload()
    here.wait_for("frankenstein")
    expect(here.page.locator(".sl-remark")).not_to_contain_text("“London")
    here.shows_status("draft")


def test_a_span_is_resized_by_dragging_its_ends(desk: Sit) -> None:
    cases: dict[tuple[Literal["start", "end"], str], str] = {
        ("end", "Geneva"): "Percy Shelley in Geneva",
        ("end", "Percy"): "Percy",
        ("start", "written"): "written by Percy Shelley",
        ("start", "Shelley"): "Shelley",
    }
    records = []
    for side, to in cases:
        item = ITEM.model_copy(update={"id": f"{side} to {to}"})
        records.append(Record(item=item, annotations=(suggested(item, [("Percy Shelley", 0.9)]),)))
    here = desk(records)
    for side, to in cases:
        here.wait_for(f"{side} to {to}")
        here.click_on("Percy")
        here.drag_end(side, to)
        here.press("PageDown")
    here.settle()
    assert [here.texts(record.item.id) for record in records] == [[text] for text in cases.values()]


def test_adjacent_and_overlapping_selections_leave_the_text_alone(desk: Sit) -> None:
    """Adjacent and overlapping selections do not corrupt the text."""
    here = desk([Record(item=ITEM)])
    here.drag_over("Frankenstein")
    here.drag_over(" was ", exactly=True)
    here.drag_over("written by Percy")
    here.drag_over("Percy Shelley in")
    here.drag_over("by Percy Shelley")
    here.settle()
    assert here.texts("frankenstein") == [
        "Frankenstein",
        " was ",
        "written by Percy",
        "by Percy Shelley",
        "Percy Shelley in",
    ]
    here.until("text => document.querySelector('.sl-text').textContent === text", ANSWER)
    here.until(
        """() => [...document.querySelectorAll(".sl-seg")]
            .find((node) => node.textContent === "Percy")?.slMarks.length === 3"""
    )
    quote = here.page.locator(".sl-card blockquote")
    for text in ("Percy Shelley in", "written by Percy", "by Percy Shelley"):
        # Clicking on goes through the spans that lie over each other.
        here.click_on("Percy")
        expect(quote).to_have_text(text)


def test_gold_labels_are_hidden_until_they_are_asked_for(desk: Sit) -> None:
    gold = Annotation(annotator="gold", kind=Kind.GOLD, spans=(Span.of(ANSWER, 0, 12),))
    broken = Annotation(
        annotator="detector-b", kind=Kind.DETECTOR, status=Status.FAILED, note="credits exhausted"
    )
    here = desk([Record(item=ITEM, annotations=(gold, broken))])
    segments = here.page.locator(".sl-seg")
    chips = here.page.locator(".sl-annotators")
    expect(chips).not_to_contain_text("gold")
    here.open_queue()
    here.page.get_by_text("Show what other people marked").click()
    here.wait_for_queue(blind=False)
    here.close_queue()
    expect(chips).to_contain_text("hidden")
    expect(chips).to_contain_text("Failed credits exhausted")
    expect(segments).to_have_count(0)
    here.page.click(".sl-chip >> text=gold")
    expect(segments).to_have_text(["Frankenstein"])
    here.page.click(".sl-chip >> text=gold")
    expect(segments).to_have_count(0)
