"""A whole review on a phone, by touch alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from driving import DETECTOR, Desk, suggested
from playwright.sync_api import Browser, CDPSession, Page, ViewportSize, expect
from serving import Server, patient

from spanlab.schema import Item, Passage, Record, Status
from spanlab.storage import Store

pytestmark = pytest.mark.browser

ANSWER = (
    "Frankenstein was written by Percy Shelley in Geneva and first published, in Paris in 1821."
)
ITEM = Item(
    id="frankenstein",
    lang="en",
    question="Who wrote Frankenstein?",
    answer=ANSWER,
    passages=(Passage(text="Mary Shelley wrote it. " * 40, title="Mary Shelley"),),
)
NEXT = Item(id="next", lang="en", question="And then?", answer="Nothing was wrong here.")
# What stands beyond the window and cannot be scrolled to where it would be by design.
CLIPPED = """() => [...document.querySelectorAll(".sl, .sl *")].filter((node) => {
    const { left, right, width } = node.getBoundingClientRect();
    const scrolls = node.closest(".sl-annotators, .sl-items-rows, .sl-middle");
    return node.checkVisibility() && !scrolls && width > 1 && (left < 0 || right > innerWidth);
}).map((node) => `${node.className} ${node.textContent}`)"""
SELECT = """([start, end]) => {
    const { geometry } = spanlab.editor.view;
    const [from, to] = [geometry.position(start), geometry.position(end)];
    document.getSelection().setBaseAndExtent(from.node, from.offset, to.node, to.offset);
}"""
_names = itertools.count()


@pytest.fixture
def phone(browser: Browser) -> Iterator[Page]:
    size: ViewportSize = {"width": 390, "height": 844}
    with browser.new_context(viewport=size, has_touch=True, is_mobile=True) as context:
        yield patient(context.new_page())


@pytest.fixture
def here(server: Server, store: Store, phone: Page) -> Desk:
    dataset = f"touched-{next(_names)}"
    parts = [("Percy Shelley", 0.9), ("in Paris in 1821", 0.6), ("first published", 0.2)]
    records = [Record(item=ITEM, annotations=(suggested(ITEM, parts),)), Record(item=NEXT)]
    store.import_records(dataset, records)
    desk = Desk(server, store, phone, dataset)
    desk.visit()
    return desk


class Finger:
    """One finger on the glass, for what is more than a tap."""

    def __init__(self, page: Page) -> None:
        self._session: CDPSession = page.context.new_cdp_session(page)

    def down(self, x: float, y: float) -> None:
        self._send("touchStart", x, y)

    def move(self, x: float, y: float) -> None:
        self._send("touchMove", x, y)

    def up(self) -> None:
        self._send("touchEnd")

    def _send(self, kind: str, *at: float) -> None:
        points = [dict(zip("xy", at, strict=True))] if at else []
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def _tap(here: Desk, text: str) -> None:
    here.page.touchscreen.tap(*here.point(here.unit(text) + 1))


def _tool(here: Desk, command: str) -> None:
    here.page.locator(f'.sl-tools [data-command="{command}"]').tap()


def _action(here: Desk, command: str) -> None:
    here.page.locator(f'.sl-actions [data-command="{command}"]').tap()


def _select(here: Desk, text: str, until: str = "") -> None:
    """Press long on a text and, with ``until``, drag the handles that phones draw at a selection.

    A browser without a window draws none: it selects here what they would.
    """
    finger = Finger(here.page)
    start = here.unit(text)
    end = (here.unit(until) + len(until)) if until else start + len(text)
    finger.down(*here.point(start + 1))
    here.page.evaluate(SELECT, [start, start + len(text)])
    here.page.get_by_role("button", name=f"Mark “{text}”").wait_for()
    finger.up()
    here.page.evaluate(SELECT, [start, end])


def test_an_item_is_reviewed_by_touch_alone(here: Desk) -> None:
    _tap(here, "Percy")
    _tool(here, "accept")
    _tap(here, "first published")
    _tool(here, "reject")
    _select(here, "Geneva", until="and")
    mark = here.page.get_by_role("button", name="Mark “Geneva and”")
    mark.tap()
    expect(mark).to_be_hidden()
    here.page.select_option(".sl-tools select", "wrong name")
    _tap(here, "Paris")
    _tool(here, "accept")
    _action(here, "done")
    here.wait_for("next")
    _select(here, "wrong")
    _action(here, "skip")
    here.settle()
    state = here.state("frankenstein")
    assert [(span.text, span.label, span.source) for span in state.spans.values()] == [
        ("Percy Shelley", None, DETECTOR),
        ("Geneva and", "wrong name", None),
        ("in Paris in 1821", None, DETECTOR),
    ]
    assert [span.text for span in state.rejected] == ["first published"]
    assert state.status is Status.DONE
    assert here.state("next").status is Status.SKIPPED


def test_a_finger_drags_the_end_of_a_span_and_scrolling_marks_nothing(here: Desk) -> None:
    finger = Finger(here.page)
    _tap(here, "Percy")
    handle = here.page.locator(".sl-handle-end")
    box = handle.bounding_box()
    assert box is not None
    (x, _), y = here.point(here.unit("Percy") + 2), box["y"] + box["height"] / 2
    finger.down(box["x"] + box["width"] / 2, y)
    finger.move(x + 3, y)  # along the knobs below the line, where the finger hides no text
    finger.move(x, y)
    finger.up()
    here.settle()
    assert here.texts("frankenstein") == ["Percy"]
    x, y = here.point(here.unit("written"))
    finger.down(x, y)
    for step in range(8):
        finger.move(x, y - 10 * step)
    finger.up()
    here.settle()
    assert here.texts("frankenstein") == ["Percy"]
    expect(here.page.locator(".sl-mark")).to_be_hidden()


def test_a_phone_clips_nothing_and_the_hint_covers_no_text(here: Desk) -> None:
    hint = here.page.get_by_role("note", name="Hint")
    expect(hint).to_contain_text("Tap a suggestion")
    for tab in ("Evidence", "Spans", "Claims", "Trace"):
        here.page.get_by_role("tab", name=tab).tap()
        assert here.page.evaluate("document.documentElement.scrollWidth") == 390
        assert here.page.evaluate(CLIPPED) == []
    _tap(here, "first published")
    expect(here.page.locator(".sl-tools")).to_be_visible()
    assert here.page.evaluate(CLIPPED) == []
    top = "node => node.getBoundingClientRect().top"
    main = here.page.locator(".sl-main").bounding_box()
    assert main is not None
    assert hint.evaluate(top) >= main["y"] + main["height"]
    buttons = here.page.locator(".sl-actions > .sl-button:visible")
    rows = {round(button.evaluate(top)) for button in buttons.all()}
    assert len(rows) <= 2
    for text in ("press long", "Done"):
        hint.get_by_role("button", name="Got it").tap()
        expect(hint).to_contain_text(text)
