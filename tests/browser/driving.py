"""A real server, a real browser, a person at the editor: for browser tests and benchmarks."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import Browser, Page, sync_playwright

from spanlab.cli.server import command
from spanlab.oplog import ReviewState
from spanlab.schema import Annotation, Item, Kind, Passage, Record, Span
from spanlab.settings import Settings
from spanlab.storage import Store

REVIEWER = "Ada"
DETECTOR = "detector-a"
_STARTUP = 60.0  # seconds; a busy machine takes its time


class Server:
    """The server that `spanlab serve` starts, on a port and over a home of its own."""

    def __init__(self, home: Path) -> None:
        self.settings = Settings(home=home, database_url=f"sqlite:///{home / 'spanlab.db'}")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.log = home / "server.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        environment = {**os.environ, "SPANLAB_HOME": str(self.settings.home)}
        environment.pop("SPANLAB_DATABASE_URL", None)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command(self.port),
                env=environment,
                stdout=log,
                stderr=log,
            )
        self._wait()

    def kill(self) -> None:
        """End the server as a power cut would: SIGKILL, no goodbye."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def url(self, **query: str) -> str:
        return f"http://127.0.0.1:{self.port}/?{urlencode(query)}"

    def _wait(self) -> None:
        health = f"http://127.0.0.1:{self.port}/_stcore/health"
        until = time.monotonic() + _STARTUP
        while True:
            try:
                with urllib.request.urlopen(health, timeout=1):
                    return
            except OSError:
                if time.monotonic() > until:
                    raise TimeoutError(self.log.read_text()) from None
                time.sleep(0.1)


@contextmanager
def serving(home: Path) -> Iterator[Server]:
    server = Server(home)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path="/usr/bin/chromium", args=["--no-sandbox"]
        )
        yield browser
        browser.close()


class Desk:
    """One reviewer at one dataset: the page, and the store behind it to check what arrived."""

    def __init__(self, server: Server, store: Store, page: Page, dataset: str) -> None:
        self.server = server
        self.store = store
        self.page = page
        self.dataset = dataset

    def visit(self, item: str | None = None) -> None:
        query = {"dataset": self.dataset, "reviewer": REVIEWER} | ({"item": item} if item else {})
        self.page.goto(self.server.url(**query))
        self.wait_for(item)

    def wait_for(self, item: str | None = None) -> None:
        """Wait until an item (this one) is open and takes keys."""
        which = f'[data-item="{item}"]' if item else '[data-item]:not([data-item=""])'
        self.page.wait_for_selector(f".sl{which} .sl-p", timeout=30_000, state="attached")
        self.page.focus(".sl-answer")

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def settle(self) -> None:
        """Wait until everything typed is in the database."""
        self.page.wait_for_selector('.sl[data-unsaved="0"]', timeout=30_000)

    def state(self, item: str) -> ReviewState:
        """What the database has, held against what its log says."""
        state = self.store.review(self.dataset, item, REVIEWER).state
        assert state == self.store.rebuild(self.dataset, item, REVIEWER)
        return state

    def texts(self, item: str) -> list[str]:
        """Texts of the reviewer's spans in the order of the answer."""
        spans = self.state(item).spans.values()
        return [span.text for span in sorted(spans, key=lambda span: (span.start, span.end))]

    def hears(self, text: str) -> None:
        """Wait until the screen reader's line says this; what is said follows what is done."""
        self.page.wait_for_function(
            "text => document.querySelector('.sl-live')?.innerText.includes(text)",
            arg=text,
            timeout=30_000,
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
                const { view, item } = spanlab.editor;
                view.scrollTo(unit);
                const from = after ? unit - 1 : unit;
                const [start, end] = [view.position(from + 1), view.position(from)];
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
        self.page.wait_for_timeout(30)

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
        self.page.wait_for_timeout(30)
        if exactly:
            self.page.keyboard.up("Alt")


def suggested(
    item: Item, parts: Sequence[tuple[str, float]], *, name: str = DETECTOR, note: str | None = None
) -> Annotation:
    """A detector's annotation that marks the first place of each text with a probability."""
    spans = []
    for text, prob in parts:
        start = item.answer.index(text)
        spans.append(Span.of(item.answer, start, start + len(text), prob=prob))
    return Annotation(annotator=name, kind=Kind.DETECTOR, spans=tuple(spans), note=note)


def words_item(name: str, count: int) -> Record:
    """An item of ``count`` numbered words, each of them suggested."""
    answer = " ".join(f"word{index}" for index in range(count))
    item = Item(id=name, lang="en", question="Which words?", answer=answer)
    return Record(
        item=item,
        annotations=(
            Annotation(
                annotator=DETECTOR,
                kind=Kind.DETECTOR,
                spans=tuple(_numbered(answer, count)),
            ),
        ),
    )


def _numbered(answer: str, count: int) -> Iterator[Span]:
    start = 0
    for index in range(count):
        end = start + len(f"word{index}")
        yield Span.of(answer, start, end, prob=round(0.2 + 0.7 * index / count, 3))
        start = end + 1


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
        Annotation(annotator=f"detector-{index}", kind=Kind.DETECTOR, spans=tuple(marks[index::2]))
        for index in range(2)
    )
    passage = Passage(text=answer[:3_000], title="A passage")
    item = Item(id=name, lang="en", question="What?", answer=answer, passages=(passage,))
    return Record(item=item, annotations=annotations)
