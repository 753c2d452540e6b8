"""People who review one dataset at once, through a proxy before several servers of one database."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from driving import Desk, words_item
from playwright.sync_api import Browser
from serving import PATIENCE, Server, serving

from spanlab.storage import Store
from spanlab.testing import InBackground

DATASET = "campaign"
OVERLAP = 2  # people who finish each item
_SEAT = re.compile(rb"seat=(\d+)")

# The clock starts before the editor sees a key, and stops when the answer has come that says that
# everything is committed.
_WATCH = """() => {
    window.times = [];
    const waiting = [];
    document.addEventListener("keydown", () => waiting.push(performance.now()), { capture: true });
    new MutationObserver(() => {
        if (document.querySelector(".sl")?.dataset.unsaved !== "0") return;
        const now = performance.now();
        while (waiting.length) times.push(now - waiting.shift());
    }).observe(document.body, { subtree: true, attributeFilter: ["data-unsaved"] });
}"""


class StickyProxy(InBackground):
    """A proxy that leads each browser, by the cookie ``seat``, to always the same server."""

    def __init__(self, ports: Sequence[int]) -> None:
        super().__init__("proxy")
        self.port, self.served = 0, set[int]()
        self._ports = ports
        self._server: asyncio.Server | None = None

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        links = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.sleep(0)  # each has begun, and closes what it holds
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with (
            suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError),
            _open_until_end(writer),
        ):
            head = await reader.readuntil(b"\r\n\r\n")
            seat = _SEAT.search(head)
            port = self._ports[int(seat[1]) % len(self._ports) if seat else 0]
            self.served.add(port)
            there, back = await asyncio.open_connection("127.0.0.1", port)
            with _open_until_end(back):
                back.write(head)
                await asyncio.gather(_pump(reader, back), _pump(there, writer))


@contextmanager
def _open_until_end(writer: asyncio.StreamWriter) -> Iterator[None]:
    try:
        yield
    finally:
        writer.transport.abort()


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while part := await source.read(65_536):
            target.write(part)
            await target.drain()
    if not target.transport.is_closing():
        target.close()


@dataclass
class Campaign:
    """People at their pages, and the database that all servers share."""

    store: Store
    desks: Sequence[Desk]
    proxy: StickyProxy

    def work(self, rounds: int, pace: float = 0) -> list[float]:
        """Have everybody finish so many items; return milliseconds from key to stored.

        Args:
            rounds: how many items each finishes.
            pace: milliseconds from one person's key to the next one's; 0 for all at one moment.
        """
        for desk in self.desks:
            desk.page.evaluate(_WATCH)
        for _ in range(rounds):
            before = [desk.page.evaluate("spanlab.editor.navigation.at") for desk in self.desks]
            for key in ("a", "x", "a", "Enter"):
                for desk in self.desks:
                    desk.press(key)
                    desk.page.wait_for_timeout(pace)
                for desk in self.desks:
                    desk.settle()
            for desk, item in zip(self.desks, before, strict=True):
                desk.until("item => spanlab.editor.navigation.at !== item", item)
                desk.page.focus(".sl-answer")
        return [time for desk in self.desks for time in desk.page.evaluate("times")]

    def check(self, rounds: int) -> None:
        """Check that nothing was lost, and that no item went beyond its overlap."""
        finished = self.store.finished(DATASET)
        people: dict[str, set[str]] = {}
        for done in finished:
            people.setdefault(done.item_id, set()).add(done.annotator)
            state = self.store.review(DATASET, done.item_id, done.annotator).state
            assert state == self.store.rebuild(DATASET, done.item_id, done.annotator)
            assert len(state.spans) == 2, "what was accepted is not there"
        assert len(finished) == rounds * len(self.desks), "something was lost"
        assert max(map(len, people.values())) <= OVERLAP, "an item has more people than it needs"


@contextmanager
def campaign(
    browser: Browser, home: Path, database_url: str, *, people: int, items: int, servers: int
) -> Iterator[Campaign]:
    """Serve a dataset with a plan by several servers, and seat people before it."""
    with ExitStack() as stack:
        ports = []
        for number in range(servers):
            folder = home / f"server-{number}"
            folder.mkdir()
            ports.append(stack.enter_context(serving(folder, database_url)).port)
        proxy = stack.enter_context(StickyProxy(ports))
        server = Server(home, database_url)
        server.port = proxy.port
        store = stack.enter_context(Store.open(server.settings))
        store.import_records(DATASET, [words_item(f"i{number:03}", 20) for number in range(items)])
        store.change_settings(DATASET, lambda now: now.model_copy(update={"overlap": OVERLAP}))
        desks = []
        for number in range(people):
            context = stack.enter_context(browser.new_context())
            url = f"http://127.0.0.1:{proxy.port}"
            context.add_cookies([{"name": "seat", "value": str(number), "url": url}])
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            desk = Desk(server, store, page, DATASET)
            page.goto(server.url(dataset=DATASET, reviewer=f"person-{number}"))
            desks.append(desk)
        for desk in desks:
            desk.wait_for()
        yield Campaign(store, desks, proxy)
