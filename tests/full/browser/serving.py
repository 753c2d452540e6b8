"""A real server and a real browser, for browser tests and benchmarks."""

from __future__ import annotations

import os
import shutil
import socket
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial, partialmethod
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urljoin

import streamlit as st
from forks import Fork
from playwright.sync_api import Browser, BrowserContext, Error, Page, sync_playwright
from streamlit.runtime.state.session_state import SessionState

from spanlab.app.guard import serve
from spanlab.base.settings import Settings
from spanlab.jobs import worker

PATIENCE = 120_000  # milliseconds that a test waits for what it set off; tests end long before
_STARTUP = 120.0  # seconds; a busy machine takes its time
_NO_OTHER_HOST = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost"
_SHORT_LIVED = "--js-flags=--no-opt --no-maglev"  # pages are gone before such work pays off
REST = "between-tests"  # the path and class of the page where a browser waits
MOVING = "moving"  # the file that has each run of a page move all of it
SLOW = "slow"  # the path of a page whose runs take long to begin and to end
# Whether an app is open that has nothing more to do, and no test has changed what it runs on. What
# an app still says of the page that it leaves would lead back to it.
_IS_DONE = """() => Boolean(document.querySelector(
        "[data-test-connection-state=CONNECTED][data-test-script-state=notRunning]"))
    && !globalThis.isChanged && !globalThis.spanlab?.outbox?.writes.length
    && !globalThis.spanlab?.outbox?.waiting && !globalThis.spanlab?.editor?.conversation.wants()"""
# What a page shows, how far it and its editor are, and where its keys go.
_SHOWN = """() => {
    const { editor, outbox } = globalThis.spanlab ?? {};
    const { at, opening, place } = editor?.navigation ?? {};
    const app = document.querySelector("[data-test-script-state]")?.dataset;
    const focus = document.activeElement?.outerHTML.slice(0, 200);
    const state = { ...app, at, opening, place, writes: outbox?.writes, focus };
    return [location.href, JSON.stringify(state), document.body.innerText].join("\\n");
}"""
_ATTEMPTS = 3  # ports tried before a server counts as unable to start


class Server:
    """The server that `spanlab serve` becomes, forked, on a port and over a home of its own."""

    def __init__(
        self,
        home: Path,
        database_url: str | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> None:
        url = database_url or f"sqlite:///{home / 'spanlab.db'}"
        self.settings = Settings(home=home, database_url=url)
        self.port = _free_port()
        self.variables = dict(variables or {})
        self.log = home / "server.log"
        self._process: Fork | None = None
        self._started = False

    def start(self) -> None:
        """Start it; again on the same port, which a page that is open goes on asking."""
        for _ in range(_ATTEMPTS):
            process = self._process = self._start()
            if self._is_up(process):
                self._started = True
                return
            if not self._started:
                self.port = _free_port()  # somebody else was quicker to take the last one
        raise TimeoutError(self.log.read_text())

    def _start(self) -> Fork:
        environment = {**os.environ, "SPANLAB_HOME": str(self.settings.home)}
        environment["SPANLAB_DATABASE_URL"] = self.settings.database_url
        if self.variables:  # with a login: the provider sends people back to this port
            environment |= self.variables | {"SPANLAB_URL": f"http://127.0.0.1:{self.port}"}
        return Fork(["spanlab"], environment, self.log, act=partial(_serve, self.port))

    @property
    def pid(self) -> int:
        """The process that answers."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """End the server as a power cut would: SIGKILL, no goodbye."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def url(self, **query: str) -> str:
        return f"http://127.0.0.1:{self.port}/?{urlencode(query)}"

    def _is_up(self, process: Fork) -> bool:
        """Wait until it answers; False if it ended instead."""
        health = f"http://127.0.0.1:{self.port}/_stcore/health"
        until = time.monotonic() + _STARTUP
        while process.poll() is None:
            try:
                with urllib.request.urlopen(health, timeout=5):
                    return process.poll() is None
            except OSError:
                if time.monotonic() > until:
                    raise TimeoutError(self.log.read_text()) from None
                time.sleep(0.1)
        return False


def _serve(port: int) -> None:
    """Serve, and look for jobs once a second: more often takes a twentieth of a processor."""
    pace = worker.WorkerPace(poll=1.0)
    worker.WorkerRole = partial(worker.WorkerRole, pace=pace)  # type: ignore[assignment, misc]
    st.navigation = partial(_navigation, st.navigation)  # type: ignore[misc]
    SessionState.on_script_finished = partialmethod(  # type: ignore[assignment]
        _end, SessionState.on_script_finished
    )
    serve(port)


def _navigation(
    plain: Callable[..., st.Page], pages: dict[str, list[st.Page]], **as_is: Any
) -> st.Page:
    """Add the page at which a browser waits between two tests; no link leads there.

    Where a test has made the file ``MOVING``, every other run has a line more above the page.
    """
    pages[""].append(st.Page(_rest, title="Rest", url_path=REST, visibility="hidden"))
    pages[""].append(st.Page(_slow, title="Slow", url_path=SLOW, visibility="hidden"))
    chosen = plain(pages, **as_is)
    if (Path(os.environ["SPANLAB_HOME"]) / MOVING).exists():
        st.session_state[MOVING] = not st.session_state.get(MOVING)
        if st.session_state[MOVING]:
            st.caption("A line that comes and goes")
    return chosen


def _rest() -> None:
    """Draw next to nothing, and let the session be like a new one."""
    st.session_state.clear()
    st.html(f'<i class="{REST}"></i>')


def _slow() -> None:
    """Draw a button a second late, and take most of one to end once it is there."""
    st.session_state[SLOW] = True
    time.sleep(1.0)
    if st.button("Press"):
        st.text("It was pressed")


def _end(state: SessionState, plain: Callable[..., None], *args: Any, **as_is: Any) -> None:
    if SLOW in state:
        time.sleep(0.8)
    plain(state, *args, **as_is)


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(home: Path, database_url: str | None = None) -> Iterator[Server]:
    server = Server(home, database_url)
    server.start()
    try:
        yield server
    finally:
        server.kill()


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # The shell has the same engine, without the windows that nobody sees: a quarter less work.
        program = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        browser = playwright.chromium.launch(
            executable_path=program, args=["--no-sandbox", _NO_OTHER_HOST, _SHORT_LIVED]
        )
        # Streamlit's page at rest is drawn sixty times a second otherwise.
        browser.new_context = partial(browser.new_context, reduced_motion="reduce")  # type: ignore[method-assign]
        BrowserContext.__exit__ = _close  # type: ignore[assignment, method-assign]
        yield browser
        browser.close()


def _close(context: BrowserContext, failed: type[BaseException] | None, *_: object) -> None:
    """Close a context; where a test fails in it, print what its pages show."""
    if failed is not None:
        print(*map(shown, context.pages), sep="\n\n")
    context.close()


def shown(page: Page) -> str:
    """Return what a page shows, and where its keys go."""
    with suppress(Error):
        return str(page.evaluate(_SHOWN))
    return f"nothing can be said of {page.url}"


def patient(page: Page) -> Page:
    """Let a page wait long for what it is asked for.

    SPANLAB_SLOWDOWN=6 makes its scripts six times slower, to find tests that need a fast machine.
    """
    page.set_default_timeout(PATIENCE)
    # Asking at each frame, as is the default, has the page draw sixty of them a second.
    page.wait_for_function = partial(page.wait_for_function, polling=50)  # type: ignore[method-assign]
    slowdown = float(os.environ.get("SPANLAB_SLOWDOWN", "1"))
    if slowdown > 1:
        session = page.context.new_cdp_session(page)
        session.send("Emulation.setCPUThrottlingRate", {"rate": slowdown})
    return page


def follow(page: Page, url: str) -> None:
    """Have a page go to another address as the app's own links do."""
    page.evaluate(
        """url => {
            history.pushState(null, "", url);
            dispatchEvent(new PopStateEvent("popstate"));
        }""",
        url,
    )


def arrive(page: Page, url: str) -> None:
    """Open an address: as a link does if the page rests, which is a quarter of loading it."""
    if page.url == urljoin(url, f"/{REST}"):
        follow(page, url)
    else:
        page.goto(url)


def leave(page: Page) -> None:
    """Leave a page such that it is like a new one to whoever comes next."""
    for other in page.context.pages:
        if other is not page:
            other.close()
    page.unroute_all()
    page.mouse.move(0, 0)
    if page.url == "about:blank":  # nobody used it: it has no storage, and may not be asked for it
        return
    if page.evaluate(_IS_DONE):
        follow(page, f"/{REST}")
        page.locator(f".{REST}").wait_for(state="attached")
        page.locator("[data-test-script-state=notRunning]").wait_for(state="attached")
        page.evaluate("localStorage.clear(); sessionStorage.clear(); delete globalThis.spanlab")
        return
    origin = page.evaluate("sessionStorage.clear(); location.origin")
    page.goto("about:blank")
    page.context.clear_cookies()
    session = page.context.new_cdp_session(page)
    session.send("Storage.clearDataForOrigin", {"origin": origin, "storageTypes": "local_storage"})
    session.detach()
