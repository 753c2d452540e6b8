"""The filters and the order of the queue, set in the app, and what then comes next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import REVIEWER, Desk, suggested

from spanlab.schema import Annotation, Item, Kind, Record, Span

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWER = "one two three"
STEP = 0.05  # of the sliders


def _probabilities() -> list[Record]:
    """Five items whose likeliest span has 0.2, 0.4, 0.6, 0.9 and none."""
    items = {f"p{prob:g}": prob for prob in (0.2, 0.4, 0.6, 0.9)}
    records = [
        Record(item=item, annotations=(suggested(item, [("one", 0.1), ("two", prob)]),))
        for item, prob in ((Item(id=name, answer=ANSWER), prob) for name, prob in items.items())
    ]
    return [*records, Record(item=Item(id="unmarked", answer=ANSWER))]


def _opinions() -> list[Record]:
    """Two detectors: IoU 1, then 3/7 ("two" of "one two"), then 0; disagreement is 1 less that."""
    marked = {"same": ("two", "two"), "half": ("one two", "two"), "apart": ("one", "three")}
    records = []
    for name, (first, second) in marked.items():
        item = Item(id=name, answer=ANSWER)
        one, two = suggested(item, [(first, 0.9)]), suggested(item, [(second, 0.9)], name="b")
        records.append(Record(item=item, annotations=(one, two)))
    return records


def _open_queue(here: Desk) -> None:
    here.page.click("button:has-text('Queue')")


def _slide(here: Desk, label: str, to: float, thumb: int = 0) -> None:
    """Move a slider by arrow keys, one by one: each that arrives draws it anew."""
    slider = here.page.get_by_role("slider", name=label).nth(thumb)
    for _ in range(60):
        at = float(slider.evaluate("node => node.getAttribute('aria-valuenow') ?? node.value"))
        if abs(at - to) < STEP / 2:
            here.page.wait_for_timeout(400)  # a server that is busy may yet draw an older value
            now = slider.evaluate("node => node.getAttribute('aria-valuenow') ?? node.value")
            if float(now) == at:
                return
            continue
        slider.press("ArrowRight" if at < to else "ArrowLeft")
    raise AssertionError(f"{label} does not reach {to}")


def _walk(here: Desk, first: str) -> list[str]:
    """Go to the end of the queue by key; ids in the order in which they were shown."""
    here.page.keyboard.press("Escape")
    here.wait_for(first)
    seen = [first]
    while True:
        here.press("PageDown")
        here.page.wait_for_function(
            """last => document.querySelector(".sl-live").textContent.includes("last item")
                || ![last, ""].includes(document.querySelector(".sl").dataset.item)""",
            arg=seen[-1],
        )
        shown = here.page.get_attribute(".sl", "data-item")
        if shown == seen[-1] or shown is None:
            return seen
        seen.append(shown)


def test_a_range_of_probabilities_leaves_the_items_in_it(desk: Sit) -> None:
    here = desk(_probabilities())
    _open_queue(here)
    _slide(here, "Highest span probability", 0.25)
    here.page.wait_for_selector("text=probability 0.25 to 1")
    _slide(here, "Highest span probability", 0.85, thumb=1)
    here.page.wait_for_selector("text=probability 0.25 to 0.85")
    assert _walk(here, "p0.4") == ["p0.4", "p0.6"]


def test_disagreement_filters_and_orders_the_queue(desk: Sit) -> None:
    """ANCHORS 8: what annotators disagree on can be gone through first."""
    here = desk(_opinions())
    _open_queue(here)
    _slide(here, "Disagreement at least", 0.55)  # "half" has 1 - 3/7 = 0.57
    here.page.wait_for_selector("text=disagreement from 0.55")
    assert _walk(here, "half") == ["half", "apart"]
    _open_queue(here)
    here.page.get_by_text("Most disagreement first").click()
    assert _walk(here, "apart") == ["apart", "half"]
    _open_queue(here)
    _slide(here, "Disagreement at least", 0.0)
    here.page.wait_for_selector("text=disagreement from 0.55", state="detached")
    assert _walk(here, "apart") == ["apart", "half", "same"]


def test_items_that_one_person_has_done_wait_for_a_second(desk: Sit) -> None:
    records = []
    for name, people in (("none", ()), ("one", ("Grace",)), ("two", ("Grace", "Alan"))):
        mark = Span.of(ANSWER, 0, 3)
        done = [Annotation(annotator=who, kind=Kind.PERSON, spans=(mark,)) for who in people]
        records.append(Record(item=Item(id=name, answer=ANSWER), annotations=tuple(done)))
    here = desk(records)
    _open_queue(here)
    here.page.get_by_text("Needs a second annotator").click()
    here.page.wait_for_selector("text=· needs a second annotator")
    assert _walk(here, "one") == ["one"]
    here.press("w", "d")
    here.settle()
    assert here.texts("one") == ["one"]
    assert here.store.review(here.dataset, "one", REVIEWER).record.by("Grace") is not None


def test_filters_combine_and_an_empty_queue_says_where_to_widen_it(desk: Sit) -> None:
    here = desk(_opinions())
    _open_queue(here)
    _slide(here, "Disagreement at least", 0.1)
    here.page.wait_for_selector("text=disagreement from 0.1")
    _slide(here, "Highest span probability", 0.85, thumb=1)
    here.page.wait_for_selector("text=No item fits this filter. Widen it under Queue.")
