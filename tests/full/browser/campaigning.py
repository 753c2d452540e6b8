"""People who review one dataset at once, through a proxy before several servers of one database."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from driving import Desk, words_item
from playwright.sync_api import Browser
from rebuilt import rebuilt
from serving import PATIENCE, Server

from spanlab.people.entrance import change_checks
from spanlab.people.logins import COOKIE
from spanlab.schema import Annotation, AnnotatorKind, Question, Role
from spanlab.storage import Store
from spanlab.testing import InBackground
from spanlab.worklists import check_items, plans

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


# A person who presses a key every one to two seconds, by a clock of the page's own: neither the
# others nor the program that drives the browser set the pace.
_TYPE = """([keys, rounds, shortest, longest]) => {
    const pause = (least, most) =>
        new Promise((done) => setTimeout(done, least + Math.random() * (most - least)));
    const type = async () => {
        await pause(0, longest);
        for (let round = 0; round < rounds; round += 1) {
            for (const key of keys) {
                while (spanlab.editor.navigation.opening !== null) await pause(20, 20);
                const target = document.querySelector(".sl-answer");
                target.focus({ preventScroll: true });
                const options = { key, bubbles: true, cancelable: true };
                target.dispatchEvent(new KeyboardEvent("keydown", options));
                await pause(shortest, longest);
            }
        }
    };
    window.typed = type();
}"""
_KEYS = ("a", "x", "a", "Enter")  # accept, reject, accept, done


@dataclass
class Campaign:
    """People at their pages, and the database that all servers share."""

    store: Store
    desks: Sequence[Desk]
    proxy: StickyProxy
    servers: Sequence[Server]

    def work(self, rounds: int) -> list[float]:
        """Have all finish so many items, all pressing each key at the same moment.

        Returns:
            Milliseconds from key to stored.
        """
        for desk in self.desks:
            desk.page.evaluate(_WATCH)
        for _ in range(rounds):
            before = [desk.page.evaluate("spanlab.editor.navigation.at") for desk in self.desks]
            for key in _KEYS:
                for desk in self.desks:
                    desk.press(key)
                for desk in self.desks:
                    desk.settle()
            for desk, item in zip(self.desks, before, strict=True):
                desk.until("item => spanlab.editor.navigation.at !== item", item)
                desk.page.focus(".sl-answer")
        return [time for desk in self.desks for time in desk.page.evaluate("times")]

    def type(self, rounds: int, shortest: float, longest: float) -> list[float]:
        """Have all finish so many items, each at a pace of their own, as ``work`` does.

        Args:
            rounds: how many items each finishes.
            shortest: milliseconds from a person's key to their next one, at least.
            longest: and at most; drawn evenly.
        """
        for desk in self.desks:
            desk.page.evaluate(_WATCH)
            desk.page.evaluate(_TYPE, [_KEYS, rounds, shortest, longest])
        for desk in self.desks:
            desk.page.evaluate("window.typed")
            desk.settle()
        return [time for desk in self.desks for time in desk.page.evaluate("times")]

    def check(self, rounds: int) -> None:
        """Check that nothing was lost, and that no item went beyond its overlap."""
        finished = plans.finished(self.store, DATASET)
        people: dict[str, set[str]] = {}
        known = check_items.check_ids(self.store, DATASET)  # everybody may get these
        for done in finished:
            if done.item_id not in known:
                people.setdefault(done.item_id, set()).add(done.annotator)
            state = self.store.review(DATASET, done.item_id, done.annotator).state
            assert state == rebuilt(self.store, DATASET, done.item_id, done.annotator)
            assert len(state.spans) == 2, "what was accepted is not there"
        assert len(finished) == rounds * len(self.desks), "something was lost"
        assert max(map(len, people.values())) <= OVERLAP, "an item has more people than it needs"


@contextmanager
def campaign(
    browser: Browser,
    home: Path,
    database_url: str,
    *,
    people: int,
    items: int,
    servers: int,
    whole: bool = False,
) -> Iterator[Campaign]:
    """Serve a dataset with a plan by several servers, and seat people before it.

    Args:
        browser: where they sit, each in a context of their own.
        home: an empty folder.
        database_url: an empty database.
        people: how many.
        items: how many.
        servers: how many.
        whole: with a login, by which people came with invitations, items with known answers among
            the others, and a question of each item.
    """
    with ExitStack() as stack:
        running = []
        for number in range(servers):
            folder = home / f"server-{number}"
            folder.mkdir()
            server = Server(folder, database_url, _LOGIN if whole else None)
            stack.callback(server.kill)
            server.start()
            running.append(server)
        proxy = stack.enter_context(StickyProxy([server.port for server in running]))
        server = Server(home, database_url)
        server.port = proxy.port
        store = stack.enter_context(Store.open(server.settings))
        store.import_records(DATASET, [words_item(f"i{number:03}", 20) for number in range(items)])
        if whole:
            _with_known(store)
        store.change_settings(DATASET, lambda now: now.model_copy(update={"overlap": OVERLAP}))
        desks = []
        for number in range(people):
            context = stack.enter_context(browser.new_context())
            url = f"http://127.0.0.1:{proxy.port}"
            cookies = {"seat": str(number)}
            if whole:
                cookies[COOKIE] = _invited(store, f"person-{number}")
            for name, value in cookies.items():
                context.add_cookies([{"name": name, "value": value, "url": url}])
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            desk = Desk(server, store, page, DATASET)
            page.goto(server.url(dataset=DATASET, reviewer=f"person-{number}"))
            desks.append(desk)
        for desk in desks:
            desk.wait_for()
        yield Campaign(store, desks, proxy, running)


_LOGIN = {  # nobody logs in at this provider: all come by invitations
    "SPANLAB_OIDC_ISSUER": "http://127.0.0.1:9",
    "SPANLAB_OIDC_CLIENT_ID": "spanlab",
    "SPANLAB_OIDC_CLIENT_SECRET": "secret",
}


def _with_known(store: Store) -> None:
    """Add items with known answers to be hidden among the others, and a question."""
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD)
    known = [words_item(f"known{number:02}", 20) for number in range(10)]
    store.import_records(
        DATASET,
        [one.model_copy(update={"annotations": (*one.annotations, gold)}) for one in known],
    )
    asked = Question(name="fluent", kind="choice", options=("yes", "no"))
    change_checks(store, DATASET, {"share": 0.2})
    store.change_settings(DATASET, lambda now: now.model_copy(update={"questions": (asked,)}))


def _invited(store: Store, name: str) -> str:
    """Return the cookie of somebody who has accepted an invitation."""
    end = datetime.now(UTC) + timedelta(days=1)
    link = store.access.make_token("invitation", Role.ANNOTATOR, DATASET, label=name, expires=end)
    token = store.access.accept(link)
    assert token is not None
    return token
