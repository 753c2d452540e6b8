"""The table of items, and which item of the queue one is at: by keyboard, as a reviewer would."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import REVIEWER, Desk, suggested
from playwright.sync_api import expect
from serving import PATIENCE

from spanlab.oplog.operations import CommentSpan, SentOperation
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Passage, Record, Span

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWERS = {
    "first": ("Who?", "The tower was built by Eiffel."),
    "second": ("How tall?", "It has 330 metres."),
    "third": ("塔有多高?", "东京塔高333米。"),
    "fourth": ("", "<b>Nobody</b> knows."),
}


def _records() -> list[Record]:
    """Probabilities that rise; two claims and one passage each at other items."""
    records = []
    for n, (name, (question, answer)) in enumerate(ANSWERS.items()):
        passages = (Passage(text="evidence"),) if n == 1 else ()
        item = Item(id=name, question=question, answer=answer, passages=passages)
        said = suggested(item, [(answer[:3], 0.2 + 0.2 * n)])
        claims = tuple(Claim(text=f"claim {k}") for k in range(2 if n == 2 else 0))
        records.append(Record(item=item, annotations=(said.model_copy(update={"claims": claims}),)))
    return records


def _shows(here: Desk, *ids: str) -> None:
    """Wait until the table has these items, in this order."""
    cells = here.page.locator(".sl-items tbody td:first-child")
    expect(cells).to_have_text(list(ids), timeout=PATIENCE)


def test_a_search_finds_items_and_enter_opens_one_from_which_back_leads_back(desk: Sit) -> None:
    here = desk(_records())
    here.store.apply(
        here.dataset, "fourth", REVIEWER, [SentOperation("x", 1, 0, CommentSpan(text="odd one"))]
    )
    here.press("/")
    _shows(here, "first", "second", "third", "fourth")
    for searched, found in (
        ("京塔", "third"),
        ("metr", "second"),
        ("odd", "fourth"),
        ("who", "first"),
    ):
        here.page.get_by_role("searchbox", name="Search items").fill(searched)
        _shows(here, found)
    here.page.keyboard.type("zzz")
    expect(here.page.locator(".sl-items [role=status]")).to_have_text("No item fits")
    here.page.get_by_role("searchbox", name="Search items").fill("")
    _shows(here, "first", "second", "third", "fourth")
    here.press("ArrowDown", "ArrowDown", "Enter")
    here.wait_for("third")
    expect(here.page.locator(".sl-standing")).to_have_text("3 of 4 in this queue")
    here.page.go_back()
    here.wait_for("first")
    here.page.go_forward()
    here.wait_for("third")
    here.press("/")
    here.press("Escape")
    here.has_focus(inside=True)


def test_enter_right_after_typing_opens_what_was_searched_for(desk: Sit) -> None:
    here = desk(_records())
    here.press("/")
    _shows(here, "first", "second", "third", "fourth")
    here.page.keyboard.type("metr")
    here.page.keyboard.press("Enter")  # before anything was asked, let alone found
    here.wait_for("second")
    here.press("/")
    here.page.get_by_role("searchbox", name="Search items").fill("t")  # this one is the second
    _shows(here, "first", "second", "third")
    here.press("Enter")
    here.wait_for("first")


def test_the_table_is_sorted_and_narrowed_and_says_what_an_item_has(desk: Sit) -> None:
    here = desk(_records())
    here.press("Enter")
    here.settle()
    here.wait_for("second")
    here.press("/")
    heads = {"Probability": "fourth", "Claims": "third", "Passages": "second", "Status": "second"}
    for name, first in heads.items():
        here.page.get_by_role("columnheader", name=name).get_by_role("button").press("Enter")
        expect(here.page.locator(".sl-items tbody td").first).to_have_text(first)
    here.page.get_by_role("columnheader", name="Status").get_by_role("button").press("Enter")
    _shows(here, "first", "second", "third", "fourth")
    row = here.page.locator(".sl-items tbody tr").first
    expect(row.locator("td")).to_have_text(
        ["first", "Done", "Who? — The tower was built by Eiffel.", "20 %", "", "", "", ""]
    )
    expect(here.page.locator(".sl-items tbody tr").last.locator("td").nth(2)).to_have_text(
        "<b>Nobody</b> knows."
    )
    here.page.get_by_label("Status", exact=True).select_option("Done")
    _shows(here, "first")


def test_a_queue_says_where_one_is_and_opens_at_the_first_unfinished_item(desk: Sit) -> None:
    here = desk(_records())
    standing = here.page.locator(".sl-standing")
    expect(standing).to_have_text("1 of 4 in this queue")
    here.press("Enter")
    here.wait_for("second")
    expect(standing).to_have_text("2 of 4 in this queue")
    here.press("PageDown")
    here.wait_for("third")
    here.settle()
    here.visit()
    here.wait_for("second")
    expect(standing).to_have_text("2 of 4 in this queue")
    here.open_queue()
    here.page.click("[aria-label*='Your status']")
    here.page.click("[role=option]:has-text('Not annotated')")
    here.close_queue()
    expect(standing).to_have_text("1 of 3 in this queue")
    here.focus_rests()
    here.press("Enter")
    here.wait_for("third")
    expect(standing).to_have_text("2 of 3 in this queue")


def test_a_search_can_be_the_queue_to_go_through(desk: Sit) -> None:
    here = desk(_records())
    here.open_queue()
    here.page.get_by_role("textbox", name="Search").fill("33")
    here.page.keyboard.press("Enter")
    here.close_queue()
    here.wait_for_queue(text="33")
    here.wait_for("second")
    expect(here.page.locator(".sl-standing")).to_have_text("1 of 2 in this queue")
    here.focus_rests()
    here.press("PageDown")
    here.wait_for("third")


def test_a_blind_table_has_nothing_of_what_others_said(desk: Sit) -> None:
    answer = ANSWERS["first"][1]
    mark = Span.of(answer, 0, 3, label="secret label").model_copy(update={"note": "secret"})
    ben = Annotation(
        annotator="Ben", kind=AnnotatorKind.PERSON, spans=(mark,), claims=(Claim(text="c"),)
    )
    item = Item(id="first", answer=answer)
    here = desk([Record(item=item, annotations=(suggested(item, [("The", 0.9)]), ben))])
    here.press("/")
    _shows(here, "first")
    row = here.page.locator(".sl-items tbody tr").first.locator("td")
    expect(row).to_have_text(["first", "Not annotated yet", answer, "90 %", "", "", "", ""])
    assert "secret" not in here.page.locator(".sl").inner_text()
    here.page.get_by_role("searchbox", name="Search items").fill("secret")
    expect(here.page.locator(".sl-items [role=status]")).to_have_text("No item fits")
