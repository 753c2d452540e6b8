"""How long a reviewer waits: from key to screen, from key to database, and for an item to open."""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path[:0] = [
    str(Path(__file__).resolve().parents[1] / folder) for folder in ("full/browser", "support")
]

from bench_processes import write
from driving import Desk, long_record
from playwright.sync_api import Page
from serving import chromium, serving
from timing import keys

from spanlab.data.importing import import_files
from spanlab.schema import Item, Record
from spanlab.storage import Store

NODES = 115_000
OPENINGS = 9  # the first one warms up and does not count
SIZES = {"10,000 / 500": (10_000, 500), "100,000 / 2,000": (100_000, 2_000)}

# From the key that opens the next item to the frame that shows it, its content not prefetched.
OPEN = """
(id) => new Promise((done) => {
    const editor = spanlab.editor;
    editor.cache.items.delete(id);
    const begin = performance.now();
    const look = () => {
        const shown = document.querySelector(`.sl[data-item="${id}"] [role=application]`);
        const opened = shown?.textContent && editor.navigation.opening === null;
        if (!opened) return requestAnimationFrame(look);
        const channel = new MessageChannel();
        channel.port1.onmessage = () => done(performance.now() - begin);
        channel.port2.postMessage(null);
    };
    editor.navigation.turnTo(id);
    requestAnimationFrame(look);
})
"""


def main() -> None:
    """Print the table."""
    with (
        tempfile.TemporaryDirectory() as home,
        serving(Path(home)) as server,
        chromium() as browser,
        Store.open(server.settings) as store,
    ):
        records = [long_record(name, *size) for name, size in SIZES.items()]
        blank = Record(item=Item(id="blank", lang="en", answer="Nothing."))
        store.import_records("bench", [blank, *records])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        desk = Desk(server, store, page, "bench")
        print(f"{'characters / spans':<18} {'':>8} {'p50 ms':>8} {'p95 ms':>8}")
        for name in SIZES:
            desk.visit(name)
            page.wait_for_timeout(1_500)
            page.evaluate("spanlab.editor.view.threshold.set(0)")  # all suggestions, hard or not
            seen, stored = keys(desk, page)
            _row(name, "visible", seen)
            _row(name, "stored", stored)
            _row(name, "opens", _openings(desk, page, name))
        write(Path(home) / "process.jsonl", NODES)
        import_files(store, [Path(home) / "process.jsonl"], "process")
        desk = Desk(server, store, page, "process")
        _row(f"{NODES:,} nodes", "opens", _openings(desk, page, "q"))


def _openings(desk: Desk, page: Page, name: str) -> list[float]:
    times = []
    for _ in range(OPENINGS):
        desk.visit("blank")
        page.wait_for_timeout(1_500)
        times.append(float(page.evaluate(OPEN, name)))
    return times[1:]


def _row(name: str, what: str, times: Sequence[float]) -> None:
    p95 = sorted(times)[min(len(times) - 1, round(0.95 * (len(times) - 1)))]
    print(f"{name:<18} {what:>8} {statistics.median(times):>8.1f} {p95:>8.1f}")


if __name__ == "__main__":
    main()
