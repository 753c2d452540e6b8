"""How long a key takes to the screen and to the database, for benchmarks."""

from __future__ import annotations

from driving import Desk
from playwright.sync_api import Page

KEYS = 60  # presses, alternately accepting and rejecting

# The clock starts in the capture phase, before the editor sees the key. Seen: the first frame
# after the key has been painted. Stored: the answer that says the transaction was committed.
WATCH = """
() => {
    const root = document.querySelector(".sl");
    window.times = [];
    document.addEventListener("keydown", () => {
        const time = { key: performance.now() };
        times.push(time);
        requestAnimationFrame(() => {
            const channel = new MessageChannel();
            channel.port1.onmessage = () => (time.seen = performance.now());
            channel.port2.postMessage(null);
        });
    }, { capture: true });
    new MutationObserver(() => {
        if (root.dataset.unsaved !== "0") return;
        for (const time of times) time.stored ??= performance.now();
    }).observe(root, { attributeFilter: ["data-unsaved"] });
}
"""


def keys(desk: Desk, page: Page) -> tuple[list[float], list[float]]:
    """Press keys on the open item; return the milliseconds until each was seen, and stored."""
    page.evaluate(WATCH)
    for press in range(KEYS):
        page.keyboard.press("ax"[press % 2])
        desk.settle()
        page.wait_for_timeout(120)
    times = page.evaluate("times.map((time) => [time.seen - time.key, time.stored - time.key])")
    return [seen for seen, _ in times], [stored for _, stored in times]
