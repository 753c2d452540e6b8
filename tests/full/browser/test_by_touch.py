"""A whole review on a phone, by touch alone."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import pytest
from driving import DETECTOR, Desk, becomes, box_of, suggested
from playwright.sync_api import Browser, CDPSession, Locator, Page, ViewportSize, expect
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
# Counts what the page has heard of a finger, each time when its editor has heard of it, too.
FEEL = """() => {
    window.felt = { down: 0, up: 0, click: 0 };
    const names = { pointerdown: "down", pointerup: "up", pointercancel: "up", click: "click" };
    for (const [event, name] of Object.entries(names)) {
        const count = () => (felt[name] += 1);
        document.addEventListener(event, () => setTimeout(() => setTimeout(count)), true);
    }
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
    parts = [("Percy Shelley", 0.9), ("in Paris in 1821", 0.6), ("first published", 0.55)]
    records = [Record(item=ITEM, annotations=(suggested(ITEM, parts),)), Record(item=NEXT)]
    store.import_records(dataset, records)
    desk = Desk(server, store, phone, dataset)
    desk.visit()
    return desk


class Finger:
    """One finger on the glass; a page hears of it later than the browser that was told."""

    def __init__(self, here: Desk) -> None:
        self._here = here
        self._page = here.page
        self._session: CDPSession = here.page.context.new_cdp_session(here.page)
        self._lifted = 0
        here.page.evaluate(FEEL)

    def tap(self, target: Locator) -> None:
        with self._felt("click"):
            target.tap()

    def tap_on(self, text: str) -> None:
        self.down(*self._here.point(self._here.unit(text) + 1))
        self.up()

    def down(self, x: float, y: float) -> None:
        self._lifted = self._count("up")
        with self._felt("down"):
            self._send("touchStart", x, y)

    def move(self, x: float, y: float) -> None:
        self._send("touchMove", x, y)

    def up(self) -> None:
        """Lift it; a page that scrolled with it has already taken it for lifted."""
        self._send("touchEnd")
        self._here.until("count => felt.up > count", self._lifted)

    def select(self, text: str, until: str = "") -> None:
        """Press long on a text and, with ``until``, drag the handles that phones draw at it.

        A browser without a window draws none: it selects here what they would.
        """
        start = self._here.unit(text)
        end = (self._here.unit(until) + len(until)) if until else start + len(text)
        self.down(*self._here.point(start + 1))
        self._page.evaluate(SELECT, [start, start + len(text)])
        self._page.get_by_role("button", name=f"Mark “{text}”").wait_for()
        self.up()
        self._page.evaluate(SELECT, [start, end])

    def tool(self, command: str) -> None:
        self.tap(self._page.locator(f'.sl-tools [data-command="{command}"]'))

    def action(self, command: str) -> None:
        self.tap(self._page.locator(f'.sl-actions [data-command="{command}"]'))

    @contextmanager
    def _felt(self, what: Literal["down", "click"]) -> Iterator[None]:
        """Wait until the page has heard of what is done."""
        before = self._count(what)
        yield
        self._here.until("([what, count]) => felt[what] > count", [what, before])

    def _count(self, what: str) -> int:
        return int(self._page.evaluate("what => felt[what]", what))

    def _send(self, kind: str, *at: float) -> None:
        points = [dict(zip("xy", at, strict=True))] if at else []
        self._session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


def test_an_item_is_reviewed_by_touch_alone(here: Desk) -> None:
    finger = Finger(here)
    finger.tap_on("Percy")
    finger.tool("accept")
    finger.tap_on("first published")
    finger.tool("reject")
    finger.select("Geneva", until="and")
    mark = here.page.get_by_role("button", name="Mark “Geneva and”")
    finger.tap(mark)
    expect(mark).to_be_hidden()
    here.page.select_option(".sl-tools select", "wrong name")
    finger.tap_on("Paris")
    finger.tool("accept")
    finger.action("done")
    here.wait_for("next")
    finger.select("wrong")
    finger.action("skip")
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
    finger = Finger(here)
    finger.tap_on("Percy")
    (x, _) = here.point(here.unit("Percy") + 2)
    box = box_of(here.page.locator(".sl-handle-end"))
    y = box["y"] + box["height"] / 2
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
    finger = Finger(here)
    hint = here.page.get_by_role("note", name="Hint")
    finger.tap(hint.get_by_role("button", name="Got it"))  # what is seen
    expect(hint).to_contain_text("Tap a suggestion")
    for name in ("Evidence", "Spans", "Claims"):
        finger.tap(here.page.get_by_role("tab", name=name))
        becomes(lambda: here.page.evaluate("document.documentElement.scrollWidth"), 390)
        becomes(lambda: here.page.evaluate(CLIPPED), [])
    main = box_of(here.page.locator(".sl-main"))
    assert box_of(hint)["y"] >= main["y"] + main["height"]
    rows = here.page.locator(".sl-actions > .sl-button:visible").evaluate_all(
        "all => new Set(all.map((one) => Math.round(one.getBoundingClientRect().top))).size"
    )
    assert rows <= 2
    for text in ("press long", "Done"):
        hint.get_by_role("button", name="Got it").tap()
        expect(hint).to_contain_text(text)
    finger.tap_on("first published")
    expect(here.page.locator(".sl-tools")).to_be_visible()
    expect(hint).to_be_hidden()  # its place is the toolbar's
    becomes(lambda: here.page.evaluate(CLIPPED), [])
