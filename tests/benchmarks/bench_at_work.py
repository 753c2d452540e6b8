"""The app while its own worker is at a job: how long a key takes, how late progress is shown."""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("full/browser", "support", "model_server")]

from driving import Desk, long_record
from playwright.sync_api import Page
from serving import Server, chromium, serving
from timing import keys
from working_jobs import fill, request, separate_server, wait_until

from spanlab.jobs import Jobs
from spanlab.schema import Status
from spanlab.storage import Store

SIZE = (10_000, 500)  # characters and spans of the item that is reviewed
ITEMS = 20_000  # more than there is time for
AT_ONCE = 32
LATENCY = 0.1  # seconds
WATCHED = 15.0  # seconds in which progress is looked at

# Every number of items that the page says are done, with the time at which it first says so.
WATCH = """
() => {
    window.shown = [];
    const look = () => {
        const said = document.body.innerText.match(/([\\d,]+) of [\\d,]+/);
        const done = said && Number(said[1].replaceAll(",", ""));
        if (said && shown.at(-1)?.[0] !== done) shown.push([done, Date.now() / 1000]);
    };
    new MutationObserver(look).observe(document.body,
        { subtree: true, childList: true, characterData: true });
}
"""


@dataclass
class Served:
    """Stands for a model server: a request wants its address alone."""

    url: str


@dataclass
class Stored:
    """How many items were done, and when that was first seen."""

    seen: list[tuple[int, float]] = field(default_factory=list)


def main() -> None:
    """Print the tables."""
    os.environ["OPENAI_API_KEY"] = "sk-bench"
    name = f"{SIZE[0]:,} / {SIZE[1]}"
    with (
        tempfile.TemporaryDirectory() as home,
        separate_server(LATENCY) as url,
        serving(Path(home)) as server,
        chromium() as browser,
        Store.open(server.settings) as store,
    ):
        store.import_records("bench", [long_record(name, *SIZE)])
        fill(server.settings, ITEMS)
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        desk = Desk(server, store, page, "bench")
        desk.visit(name)
        page.wait_for_timeout(3_000)
        print(f"an item of {name}: {'p50 ms':>20} {'p95 ms':>8}")
        _row("no job", keys(desk, page))
        job_id = _begin(server, url)
        _row("a job in the app", keys(desk, page))
        view = Jobs(server.settings).find(job_id)
        assert not view.is_over, view
        print(f"the job meanwhile: {view.progress.rate:.0f} items/s of {AT_ONCE / LATENCY:.0f}")
        _progress(browser.new_page(), server, store)
        _row("the job, watched", keys(desk, page))
        Jobs(server.settings).cancel(job_id)


def _begin(server: Server, url: str) -> str:
    asked = request(Served(url), concurrency=AT_ONCE)  # type: ignore[arg-type]  # only its address is read
    job_id = Jobs(server.settings).submit(asked)
    wait_until(
        lambda: Jobs(server.settings).find(job_id).progress.done > 200, "the job to be going"
    )
    return job_id


def _progress(page: Page, server: Server, store: Store) -> None:
    """Print how long what was stored takes to be on the Jobs page."""
    page.goto(server.url().replace("/?", "/jobs?"))
    page.wait_for_selector("text=/[\\d,]+ of [\\d,]+/")
    with _watching(store) as stored:
        page.evaluate(WATCH)
        page.wait_for_timeout(WATCHED * 1_000)
        shown = page.evaluate("shown")
    late = [
        next(at for done, at in shown if done >= count) - since
        for count, since in stored.seen
        if shown[0][0] <= count <= shown[-1][0]
    ]
    page.close()
    print(
        f"from stored to shown: {statistics.median(late):.2f} s, at most {max(late):.2f} s "
        f"({len(shown)} pictures in {WATCHED:.0f} s)"
    )


@contextmanager
def _watching(store: Store) -> Iterator[Stored]:
    stored, over = Stored(), threading.Event()

    def look() -> None:
        while not over.wait(0.05):
            done = store.counts("d", "ucsc-extract").get(Status.DONE, 0)
            if not stored.seen or stored.seen[-1][0] != done:
                stored.seen.append((done, time.time()))

    watcher = threading.Thread(target=look)
    watcher.start()
    try:
        yield stored
    finally:
        over.set()
        watcher.join()


def _row(when: str, times: tuple[Sequence[float], Sequence[float]]) -> None:
    for what, values in zip(("visible", "stored"), times, strict=True):
        p95 = sorted(values)[round(0.95 * (len(values) - 1))]
        print(f"{when:<18} {what:>8} {statistics.median(values):>14.1f} {p95:>8.1f}", flush=True)


if __name__ == "__main__":
    main()
