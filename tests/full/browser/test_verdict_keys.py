"""Whole answers judged in Review: one key calls them hallucinated, a queue asks where."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import Desk, suggested
from playwright.sync_api import expect
from serving import PATIENCE

from spanlab.schema import Annotation, AnnotatorKind, Item, QueueQuery, Record, Status
from spanlab.worklists import paging

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]


def test_a_key_judges_the_answer_and_a_queue_asks_where_it_is(desk: Sit) -> None:
    items = [Item(id=f"i{n}", lang="en", answer="The tower has 330 metres.") for n in range(4)]
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, answer_hallucinated=True)
    records = [Record(item=item, annotations=(gold,) if item.id == "i3" else ()) for item in items]
    records[0] = Record(item=items[0], annotations=(suggested(items[0], [("330", 0.9)]),))
    here = desk(records)
    here.wait_for("i0")
    here.press("h")
    here.wait_for("i1")
    here.press("Enter")
    here.wait_for("i2")
    here.press("PageUp", "PageUp")
    here.wait_for("i0")
    here.settle()
    assert (here.state("i0").status, here.state("i0").answer_hallucinated) == (Status.DONE, True)
    assert not here.state("i0").rejected  # h says nothing of the place, so nothing of a suggestion
    assert (here.state("i1").status, here.state("i1").answer_hallucinated) == (Status.DONE, None)
    status = here.page.locator(".sl-status")
    expect(status).to_have_text("Done: hallucinated, no place marked", timeout=PATIENCE)
    here.open_queue()
    here.page.get_by_text("Show other people's marks").click()
    here.wait_for_queue(blind=False)
    here.page.get_by_text("Where is it?", exact=True).click()
    here.wait_for_queue(unplaced=True)
    here.close_queue()
    here.wait_for("i3")
    expect(here.page.locator(".sl-standing")).to_have_text("2 of 2 in this queue")
    expect(here.page.locator(".sl-remark")).to_have_text(
        "gold: hallucinated, no place marked", timeout=PATIENCE
    )
    here.press("/")
    cells = here.page.locator(".sl-items td:nth-child(3)")
    expect(here.page.get_by_role("columnheader", name="Hallucinated")).to_be_visible()
    expect(cells).to_have_text(["1 of 1", "1 of 1"], timeout=PATIENCE)
    here.press("Escape", "Control+ArrowRight", "Control+Shift+ArrowRight", "d", "Enter")
    here.settle()
    assert here.texts("i3") == ["tower"]
    said = here.state("i3").annotation("Ada")
    assert (said.status, said.hallucinated, said.is_verdict_only) == (Status.DONE, True, False)
    still_open = paging.page(
        here.store, here.dataset, QueueQuery(reviewer="Ada", unplaced=True)
    ).rows
    assert [row.item_id for row in still_open] == ["i0"]
