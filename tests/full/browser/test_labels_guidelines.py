"""A dataset's own labels and guidelines, as an annotator meets them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from driving import Desk, suggested
from playwright.sync_api import expect

from spanlab.schema import LABEL_SETS, Item, Record, SpanLabel, Status
from spanlab.worklists import entrances

pytestmark = pytest.mark.browser

Sit = Callable[..., Desk]

ITEMS = [Item(id=name, lang="en", answer="one, two, three, four") for name in ("a", "b")]
MANY = tuple(SpanLabel(name=f"kind {n}", description=f"number {n}") for n in range(12))
GUIDE = """# What to mark

Mark **names** and `dates`; see [the paper](https://example.org/p).

1. <script>globalThis.stolen = true</script>
2. [no](javascript:globalThis.stolen=true) <img src=x onerror="globalThis.stolen=true">
3. ![a picture](https://example.org/pixel.png)
"""


def _sit(desk: Sit, **settings: Any) -> Desk:
    said = [suggested(item, [("one", 0.9), ("three", 0.6)]) for item in ITEMS]
    labelled = said[0].model_copy(
        update={
            "spans": tuple(s.model_copy(update={"label": "of the detector"}) for s in said[0].spans)
        }
    )
    pairs = zip(ITEMS, (labelled, said[1]), strict=True)
    return desk([Record(item=item, annotations=(one,)) for item, one in pairs], **settings)


def test_the_labels_of_a_shipped_set_are_given_by_key_and_stand_in_the_text(desk: Sit) -> None:
    here = _sit(desk, labels=LABEL_SETS["RAGTruth"])
    row = here.page.locator(".sl-labels")
    expect(row.get_by_role("button", name="Subtle Conflict")).to_have_attribute(
        "title", "Departs from the source in what it means or implies. (2)"
    )
    here.press("2")
    tag = here.page.locator('.sl-seg[data-tag="Subtle Conflict"]')
    expect(tag).to_have_text("one")
    content = tag.evaluate("node => getComputedStyle(node, '::before').content")
    assert "Subtle Conflict" in content  # a word beside the colour
    here.settle()
    assert [span.label for span in here.state("a").spans.values()] == ["Subtle Conflict"]


def test_any_number_of_labels_is_searched_and_a_detectors_own_are_among_them(desk: Sit) -> None:
    here = _sit(desk, labels=MANY)
    expect(here.page.locator(".sl-labels")).to_contain_text("4 more…")
    here.press("L")
    here.page.keyboard.type("number 11")
    options = here.page.get_by_role("listbox", name="Labels").get_by_role("option")
    expect(options).to_have_count(1)
    here.press("Enter")
    here.press("j", "L", "ArrowUp", "Enter")  # the last one: what the detector calls it
    here.press("Escape", "L")
    here.hears("Choose a span first")
    here.settle()
    labels = [span.label for span in here.state("a").spans.values()]
    assert labels == ["kind 11", "of the detector"]


def test_without_a_label_set_there_is_none_to_choose(desk: Sit) -> None:
    here = _sit(desk, labels=())
    here.press("Enter")
    here.wait_for("b")
    expect(here.page.locator(".sl-labels button")).to_have_count(0)


def test_done_needs_a_label_where_the_dataset_requires_one(desk: Sit) -> None:
    here = _sit(desk, label_required=True)
    here.press("Enter")  # nothing accepted: no label is missing
    here.wait_for("b")
    here.press("a", "Enter")
    here.hears("Not done: 1 span without a label")
    here.press("D")
    here.hears("Not done: 2 spans without a label")
    here.settle()
    assert here.state("b").status is Status.NOT_ANNOTATED
    here.press("1", "Enter")
    here.settle()
    assert here.state("b").status is Status.DONE


def test_guidelines_are_shown_at_the_first_item_and_by_key_as_harmless_markdown(desk: Sit) -> None:
    here = _sit(desk)
    here.press("g")
    here.hears("This dataset has no guidelines")
    here.store.change_settings(here.dataset, lambda now: now.with_guidelines(GUIDE))
    here.page.reload()
    sheet = here.page.get_by_role("dialog", name="Guidelines")
    expect(sheet).to_be_visible()
    expect(sheet.get_by_role("heading", name="Guidelines")).to_be_visible()
    expect(sheet).to_contain_text("Version 1")
    expect(sheet.get_by_role("heading", name="What to mark")).to_be_visible()
    expect(sheet.locator("strong")).to_have_text("names")
    expect(sheet).to_contain_text("<script>globalThis.stolen = true</script>")
    links = sheet.locator("a").evaluate_all("all => all.map((one) => one.href)")
    assert links == ["https://example.org/p", "https://example.org/pixel.png"]
    assert sheet.locator("img, script").count() == 0
    assert here.page.evaluate("globalThis.stolen") is None
    here.press("a")  # no key reaches the item behind it
    here.press("Escape")
    expect(sheet).to_be_hidden()
    here.page.reload()  # asked until they are confirmed
    expect(sheet.get_by_role("button", name="I have read them")).to_be_focused()
    here.press("Enter")
    expect(sheet).to_be_hidden()
    here.press("a", "Enter")
    here.wait_for("b")
    expect(sheet).to_be_hidden()
    here.settle()
    assert here.texts("a") == ["one"]
    done = here.store.record(here.dataset, "a").annotations[-1]
    assert done.guidelines == 1
    assert [(who, version) for who, version, _ in entrances.readings(here.store, here.dataset)] == [
        ("Ada", 1)
    ]
    here.page.reload()
    here.wait_for("b")
    expect(sheet).to_be_hidden()
    here.press("g")
    expect(sheet).to_be_visible()
    here.store.change_settings(here.dataset, lambda now: now.with_guidelines("Now *otherwise*."))
    here.page.reload()
    expect(sheet).to_contain_text("Version 2")
    here.press("g", "Enter")
    here.settle()
    assert here.store.record(here.dataset, "b").annotations[-1].guidelines == 2
