"""The filters and the order of the queue, set in the app, and what then comes next."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from driving import REVIEWER, Desk, suggested
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError
from playwright.sync_api import expect
from serving import PATIENCE

from spanlab.schema import Annotation, AnnotatorKind, Item, QueueQuery, Record
from spanlab.worklists import paging

pytestmark = pytest.mark.browser

Sit = Callable[..., Desk]

ANSWER = "one two three"
STEP = 0.05  # of the sliders
SLIDERS = {  # label and thumb → field of the queue
    ("Highest span probability", 0): "min_prob",
    ("Highest span probability", 1): "max_prob",
    ("Disagreement at least", 0): "min_disagreement",
}
AT = """([field, value]) => {
    const query = JSON.parse(spanlab.editor?.navigation.place?.id ?? "{}").query;
    const everything = field === "max_prob" ? 1 : 0; // then there is no limit, and no field
    return query !== undefined && Math.abs((query[field] ?? everything) - value) < 0.001;
}"""
# What became of the key that goes on from the item `last`; every answer to it is also said.
CAME = """last => {
    const said = document.querySelector(".sl-live").textContent;
    if (said.includes("last item")) return "the end";
    if (said.includes("Press again") || said.includes("Still opening")) return "nothing yet";
    const { item } = document.querySelector(".sl").dataset;
    return item && item !== last ? item : null;
}"""


def _opinions() -> list[Record]:
    """Two detectors: IoU 1, then 3/7 ("two" of "one two"), then 0; disagreement is 1 less that."""
    marked = {"same": ("two", "two"), "half": ("one two", "two"), "apart": ("one", "three")}
    records = []
    for name, (first, second) in marked.items():
        item = Item(id=name, answer=ANSWER)
        one, two = suggested(item, [(first, 0.9)]), suggested(item, [(second, 0.9)], name="b")
        records.append(Record(item=item, annotations=(one, two)))
    return records


def _slide(here: Desk, label: str, to: float, thumb: int = 0) -> None:
    """Move a slider by keys, each once the queue goes by the one before.

    Streamlit forgets a key for good if what follows from an older one is drawn just then: the
    slider shows a value that the page knows nothing of. A step aside and back mends that.
    """
    slider = here.page.get_by_role("slider", name=label).nth(thumb)
    until = time.monotonic() + PATIENCE / 1000
    while time.monotonic() < until:
        at = float(slider.evaluate("node => node.getAttribute('aria-valuenow') ?? node.value"))
        steps = round((to - at) / STEP)
        if _goes_by(here, SLIDERS[label, thumb], at) and steps == 0:
            return
        if abs(steps) > 1:
            slider.press("PageUp" if steps > 0 else "PageDown")  # two steps
        else:
            slider.press("ArrowRight" if steps > 0 or at == 0 else "ArrowLeft")
    raise AssertionError(f"{label} does not reach {to}")


def _goes_by(here: Desk, field: str, value: float) -> bool:
    """Wait a little for the queue to go by a value; say whether it does."""
    try:
        here.page.wait_for_function(AT, arg=[field, value], timeout=5_000)
    except PlaywrightTimeoutError:
        return False
    return True


def _walk(here: Desk, first: str, **query: object) -> list[str]:
    """Go to the end of the queue by key; ids in the order in which they were shown."""
    here.close_queue()
    here.wait_for_queue(**query)
    here.wait_for(first)
    here.focus_rests()
    seen = [first]
    while True:
        here.press("PageDown")
        came = here.page.wait_for_function(CAME, arg=seen[-1]).json_value()
        if came == "the end":
            return seen
        if came != "nothing yet":
            seen.append(str(came))


def test_filters_narrow_and_order_the_queue_and_combine(desk: Sit) -> None:
    """What annotators disagree on can be gone through first."""
    here = desk(_opinions())
    here.open_queue()
    _slide(here, "Disagreement at least", 0.55)  # "half" has 1 - 3/7 = 0.57
    here.page.wait_for_selector("text=disagreement from 0.55")
    assert _walk(here, "half") == ["half", "apart"]
    here.open_queue()
    here.page.get_by_text("Most disagreement first").click()
    assert _walk(here, "apart", order="disagreement") == ["apart", "half"]
    here.open_queue()
    _slide(here, "Highest span probability", 0.85, thumb=1)
    here.page.wait_for_selector("text=No item fits this filter. Widen it under Queue.")


def test_a_plan_offers_what_too_few_have_done_and_the_reviewer_has_not(desk: Sit) -> None:
    records = []
    for name, people in (("one", ("Grace",)), ("two", ("Grace", "Alan")), ("last", ())):
        done = [Annotation(annotator=who, kind=AnnotatorKind.PERSON) for who in people]
        records.append(Record(item=Item(id=name, answer=ANSWER), annotations=tuple(done)))
    here = desk(records, opened=False)
    here.store.change_settings(here.dataset, lambda now: now.model_copy(update={"overlap": 2}))
    here.visit()
    here.page.wait_for_selector("text=needed from you")
    here.wait_for("one")
    here.press("Enter")
    here.wait_for("last")
    here.settle()
    how_far = here.page.locator(".sl-progress-text")
    expect(how_far).to_have_text("1 of 3 done, 1 done by others")
    finished = here.page.locator(".sl-finished")
    expect(finished).to_be_hidden()
    plan = QueueQuery(reviewer=REVIEWER, unfinished=True, reserve=True)
    assert [row.item_id for row in paging.page(here.store, here.dataset, plan).rows] == ["last"]

    hers = {"overlap": 1, "assigned_to": (REVIEWER, "Ben", "Cleo")}
    here.store.change_settings(here.dataset, lambda now: now.model_copy(update=hers))
    here.press("w", "d")  # on an item that is somebody else's by now: kept, shown, copied
    here.page.get_by_role("link", name="Open the item").click()
    unsaved = here.page.get_by_role("region", name="Changes not saved")
    expect(unsaved).to_contain_text("1 item (last) could not be saved", timeout=PATIENCE)
    here.page.on("dialog", lambda dialog: dialog.accept())
    unsaved.get_by_role("button", name="Discard").click()
    expect(unsaved).to_be_hidden()
    here.page.goto(here.server.url(dataset=here.dataset, reviewer=REVIEWER))
    expect(here.page.locator(".sl-nothing")).to_have_text(
        "You have finished everything assigned to you."
    )
    expect(how_far).to_have_text("1 of 1 done")
    expect(finished).to_contain_text("Next: Campaign, Compare or Export")
