"""A person at the editor, and what there is to review: for browser tests and benchmarks."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Literal

from playwright.sync_api import Error, FloatRect, Locator, Page, WebSocketRoute, expect
from rebuilt import rebuilt
from serving import PATIENCE, Server, arrive, follow

from spanlab.oplog.state import ReviewState
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Span
from spanlab.storage import Store

REVIEWER = "Ada"
DETECTOR = "detector-a"
# What goes on in the editor may still be under way: writes, those of the page before a reload
# included, and the opening of an item, which takes no keys.
_SETTLED = """() => {
    const { editor, outbox } = globalThis.spanlab ?? {};
    return Boolean(editor) && outbox.writes.length === 0 && editor.navigation.opening === null
        && localStorage.getItem(`spanlab.outbox.${outbox.before}`) === null
        && document.querySelector(".sl")?.dataset.unsaved === "0";
}"""


class Desk:
    """One reviewer at one dataset: the page, and the store behind it to check what arrived."""

    def __init__(self, server: Server, store: Store, page: Page, dataset: str) -> None:
        self.server = server
        self.store = store
        self.page = page
        self.dataset = dataset

    def visit(self, item: str | None = None) -> None:
        query = {"dataset": self.dataset, "reviewer": REVIEWER} | ({"item": item} if item else {})
        arrive(self.page, self.server.url(**query))
        self.wait_for(item)

    def wait_for(self, item: str | None = None) -> None:
        """Wait until an item (this one) is open and takes keys."""
        which = f'[data-item="{item}"]' if item else '[data-item]:not([data-item=""])'
        self.page.wait_for_selector(f".sl{which} .sl-p", timeout=PATIENCE, state="attached")
        self.page.focus(".sl-answer")

    def until(self, condition: str, arg: object = None) -> None:
        """Wait until a JavaScript function of ``arg`` answers with something true."""
        self.page.wait_for_function(condition, arg=arg, timeout=PATIENCE)

    def focus_rests(self) -> None:
        """Put the focus into the answer, and again if something that closes late takes it away."""
        focus_rests(self.page)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def settle(self) -> None:
        """Wait until everything typed is in the database."""
        self.until(_SETTLED)

    def knows_what_is_next(self) -> None:
        """Wait until the page is drawn, and the editor needs nothing more for the next item."""
        idle(self.page)
        self.until("() => !spanlab.editor.conversation.wants() && !spanlab.outbox.waiting")

    def show_weaker(self) -> None:
        """Have suggestions shown, too, that are no hard labels of their annotators."""
        self.page.get_by_role("slider", name="Suggestions from").fill("0")
        self.page.focus(".sl-answer")

    def state(self, item: str) -> ReviewState:
        """What the database has, held against what its log says."""
        state = self.store.review(self.dataset, item, REVIEWER).state
        assert state == rebuilt(self.store, self.dataset, item, REVIEWER)
        return state

    def texts(self, item: str) -> list[str]:
        """Texts of the reviewer's spans in the order of the answer."""
        spans = self.state(item).spans.values()
        return [span.text for span in sorted(spans, key=lambda span: (span.start, span.end))]

    def hears(self, text: str) -> None:
        """Wait until the screen reader's line says this; what is said follows what is done."""
        self.until("text => document.querySelector('.sl-live')?.innerText.includes(text)", text)

    def shows_status(self, status: str) -> None:
        """Wait until the head of the editor says how far the item is."""
        expect(self.page.locator(".sl")).to_have_attribute("data-status", status, timeout=PATIENCE)

    def has_focus(self, *, inside: bool) -> None:
        """Wait until the keys go to the answer, or to something else."""
        has = "document.activeElement.className === 'sl-answer'"
        self.until(f"inside => ({has}) === inside", inside)

    def open_queue(self) -> None:
        """Open the filters of the queue, unless they are open."""
        body = self.page.get_by_test_id("stPopoverBody")
        if not body.is_visible():
            self.page.click("button:has-text('Queue')")
        expect(body).to_be_visible(timeout=PATIENCE)

    def close_queue(self) -> None:
        """Close the filters, and take the focus back from where they leave it."""
        body = self.page.get_by_test_id("stPopoverBody")
        while body.is_visible():
            self.page.keyboard.press("Escape")  # a list that is open in it takes the first one
            self.page.wait_for_timeout(100)

    def wait_for_queue(self, **query: object) -> None:
        """Wait until the editor goes by a queue with these fields of ``QueueQuery``.

        The editor is not told of a field that has its default: false, for one that is switched.
        """
        self.until(
            """wanted => {
                const asked = JSON.parse(spanlab.editor?.navigation.place?.id ?? "{}").query ?? {};
                return Object.entries(wanted).every(
                    ([name, value]) => (asked[name] ?? false) === (value ?? false));
            }""",
            query,
        )

    def unit(self, text: str, after: int = 0) -> int:
        """Where ``text`` begins in the open answer, in UTF-16 units."""
        found = self.page.evaluate(
            "([text, after]) => spanlab.editor.item.text.whole.indexOf(text, after)", [text, after]
        )
        assert found >= 0, text
        return int(found)

    def point(self, unit: int, *, after: bool = False) -> tuple[float, float]:
        """A place on the screen just inside the character after (or before) a UTF-16 unit."""
        x, y = self.page.evaluate(
            """([unit, after]) => {
                const { view: { geometry }, item } = spanlab.editor;
                geometry.scrollTo(unit);
                const from = after ? unit - 1 : unit;
                const [start, end] = [geometry.position(from + 1), geometry.position(from)];
                const last = end.offset === end.node.length;
                const range = document.createRange();
                range.setStart(end.node, last ? end.offset - 1 : end.offset);
                range.setEnd(start.node, start.offset);
                const box = [...range.getClientRects()].at(-1);
                const rightToLeft = /[\u0590-\u08ff]/.test(item.text.whole[from]);
                const x = rightToLeft === after ? box.left + 1 : box.right - 1;
                return [x, box.top + box.height / 2];
            }""",
            [unit, after],
        )
        return float(x), float(y)

    def click_on(self, text: str) -> None:
        x, y = self.point(self.unit(text) + 1)
        self.page.mouse.click(x, y)
        self._pointed()

    def drag_over(self, text: str, *, exactly: bool = False) -> None:
        start = self.unit(text)
        end = start + len(text.encode("utf-16-le")) // 2
        (x, y), (u, v) = self.point(start), self.point(end, after=True)
        if exactly:
            self.page.keyboard.down("Alt")
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move((x + u) / 2, (y + v) / 2)
        self.page.mouse.move(u, v)
        self.page.mouse.up()
        self._pointed()
        if exactly:
            self.page.keyboard.up("Alt")

    def drag_end(self, side: Literal["start", "end"], to: str) -> None:
        """Drag an end of the span that was clicked into the middle of a word."""
        box = box_of(self.page.locator(f".sl-handle-{side}"))
        x, y = self.point(self.unit(to) + 2)
        self.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        self.page.mouse.down()
        self.page.mouse.move(x - 3, y, steps=4)
        self.page.mouse.move(x, y, steps=2)
        self.page.mouse.up()
        self._pointed()

    def _pointed(self) -> None:
        """Wait until the editor has taken in the mouse; it looks at the selection a task later."""
        self.page.evaluate("() => new Promise((done) => setTimeout(() => setTimeout(done)))")


class HeldLine:
    """The line from the server to a page that is opened from now on; it can be held back."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._holding = False
        self._held: list[tuple[WebSocketRoute, str | bytes]] = []
        page.route_web_socket("**/_stcore/stream", self._connect)

    def hold(self) -> None:
        """Let nothing more through."""
        self._holding = True

    def wait_for(self, part: bytes) -> None:
        """Wait until a message with these bytes is among those that are held."""
        while not any(part in message for _, message in self._held if isinstance(message, bytes)):
            self._page.wait_for_timeout(20)

    def release(self) -> None:
        """Let what was held through, and all that follows."""
        self._holding = False
        for socket, message in self._held:
            socket.send(message)
        self._held.clear()
        self._page.evaluate("globalThis.isChanged = true")  # it still goes through here

    def _connect(self, socket: WebSocketRoute) -> None:
        def pass_on(message: str | bytes) -> None:
            if self._holding:
                self._held.append((socket, message))
            else:
                socket.send(message)

        socket.connect_to_server().on_message(pass_on)


def becomes(read: Callable[[], object], wanted: object) -> None:
    """Read something again until it is what is wanted: what a page shows follows what is done."""
    until = time.monotonic() + PATIENCE / 1000
    while (found := read()) != wanted:
        assert time.monotonic() < until, f"{found!r} instead of {wanted!r}"
        time.sleep(0.05)


def nodes_of(page: Page) -> list[str]:
    """The names of the texts in the picture of a claim's way, from left to right."""
    names: list[str] = page.locator(".sl-picture [data-node]").evaluate_all(
        "all => all.map((node) => node.dataset.node)"
    )
    return names


def tells(page: Page, *lines: str) -> None:
    """Wait until a screen reader finds all of this in the editor."""

    def missing() -> list[str]:
        tree = page.locator(".sl").aria_snapshot()
        return [line for line in lines if line not in tree]

    becomes(missing, [])


def box_of(target: Locator) -> FloatRect:
    """The box of something on the screen, once it is shown and stands still."""
    before, until = None, time.monotonic() + PATIENCE / 1000
    while True:
        target.wait_for()
        box = target.bounding_box()
        if box is not None and box == before:
            return box
        assert time.monotonic() < until, f"{target} does not come to rest"
        before = box
        target.page.wait_for_timeout(30)


def tab_to(page: Page, wanted: Locator, *, backwards: bool = False) -> None:
    """Press Tab until something has the focus; it must not take for ever."""
    wanted.wait_for()
    idle(page)  # what is drawn anew loses the focus
    for _ in range(120):
        if wanted.evaluate("node => node === document.activeElement"):
            return
        page.keyboard.press("Shift+Tab" if backwards else "Tab")
    raise AssertionError(f"{wanted} cannot be reached by Tab")


def focus_rests(page: Page) -> None:
    """Put the focus into the answer, and again if something that closes late takes it away."""
    page.wait_for_function(
        """async () => {
            const answer = document.querySelector(".sl-answer");
            answer.focus({ preventScroll: true });
            await new Promise((done) => setTimeout(done, 150));
            return document.activeElement === answer;
        }""",
        timeout=PATIENCE,
    )


def idle(page: Page) -> None:
    """Wait until the server has drawn all that it had to, and the browser has what that needs."""
    if not page.locator("iframe[src^='data:']").count():  # the frame of a report never is
        page.wait_for_load_state("networkidle")
    still = page.locator('[data-test-script-state="notRunning"]')
    expect(still).to_be_attached(timeout=PATIENCE)
    # Kinds of widgets that no page had yet are fetched: a button that is not there has no key.
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=PATIENCE)


def go(page: Page, url: str) -> None:
    """Go to another page of the app as its links do, in a third of the work of loading it."""
    headline = "document.querySelector('.stMain h1')?.textContent"
    before = page.evaluate(headline)
    follow(page, url)
    page.wait_for_function(f"before => {headline} !== before", arg=before, timeout=PATIENCE)
    page.locator("h1, .sl").first.wait_for()
    idle(page)


def open_detectors(page: Page) -> None:
    """Open the list of all detectors on the page Detect, once nothing is drawn anew any more."""
    idle(page)
    page.get_by_text(re.compile(r"^All \d+ detectors$")).click()


def choose(page: Page, label: str, option: str) -> None:
    """Choose in a list, again where the page is drawn anew meanwhile and closes it.

    Raises:
        AssertionError: no such option comes into view; far down in a long list none does.
    """
    idle = page.locator("[data-test-script-state=notRunning]")
    wanted = page.get_by_role("option", name=option, exact=True)
    for _ in range(10):
        expect(idle).to_be_visible()
        page.get_by_role("combobox", name=label).click()
        with suppress(Error):
            wanted.click(timeout=3000)
            return
        page.keyboard.press("Escape")
    raise AssertionError(f"the list {label!r} shows no option {option!r}")


def suggested(
    item: Item, parts: Sequence[tuple[str, float]], *, name: str = DETECTOR, note: str | None = None
) -> Annotation:
    """A detector's annotation that marks the first place of each text with a probability."""
    spans = []
    for text, prob in parts:
        start = item.answer.index(text)
        spans.append(Span.of(item.answer, start, start + len(text), prob=prob))
    return Annotation(annotator=name, kind=AnnotatorKind.DETECTOR, spans=tuple(spans), note=note)


def words_item(name: str, count: int) -> Record:
    """An item of ``count`` numbered words, each of them suggested; a comma keeps them apart."""
    answer = ", ".join(f"word{index}" for index in range(count))
    item = Item(id=name, lang="en", question="Which words?", answer=answer)
    return Record(
        item=item,
        annotations=(
            Annotation(
                annotator=DETECTOR,
                kind=AnnotatorKind.DETECTOR,
                spans=tuple(_numbered(answer, count)),
            ),
        ),
    )


def _numbered(answer: str, count: int) -> Iterator[Span]:
    start = 0
    for index in range(count):
        end = start + len(f"word{index}")
        yield Span.of(answer, start, end, prob=round(0.55 + 0.4 * index / count, 3))
        start = end + 2


def long_record(name: str, characters: int, spans: int) -> Record:
    """An answer of so many characters in paragraphs, with so many spans of two detectors."""
    dice = random.Random(characters)
    words = "the quick brown fox jumps over seven lazy dogs while wizards brew potions at night"
    lines: list[str] = []
    while sum(map(len, lines)) + len(lines) < characters:
        lines.append(" ".join(dice.choices(words.split(), k=dice.randint(30, 160))) + ".")
    answer = "\n".join(lines)[:characters]
    starts = sorted(dice.sample(range(characters - 60), spans))
    marks = [
        Span.of(answer, start, start + dice.randint(5, 50), prob=round(dice.random(), 3))
        for start in starts
    ]
    annotations = tuple(
        Annotation(
            annotator=f"detector-{index}", kind=AnnotatorKind.DETECTOR, spans=tuple(marks[index::2])
        )
        for index in range(2)
    )
    passage = Passage(text=answer[:3_000], title="A passage")
    item = Item(id=name, lang="en", question="What?", answer=answer, passages=(passage,))
    return Record(item=item, annotations=annotations)
