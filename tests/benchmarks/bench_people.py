"""Ten people at once on PostgreSQL: from key to database, beside one person alone."""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("browser", "support", "model_server")]

from campaigning import OVERLAP, campaign
from playwright.sync_api import Browser
from postgres import postgres
from serving import chromium

PEOPLE = 10
ROUNDS = 6  # items that each finishes
PACE = 100.0  # milliseconds between keys of different people: each presses one a second


def main() -> None:
    """Print the table."""
    print(f"{'people':>6} {'servers':>8} {'p50 ms':>8} {'p95 ms':>8}")
    with postgres() as new_url, chromium() as browser:
        alone = _measured(browser, new_url(), people=1, servers=1)
        for servers, pace in ((1, PACE), (1, 0), (2, 0)):
            together = _measured(browser, new_url(), people=PEOPLE, servers=servers, pace=pace)
            print(f"{'':<25} {together / alone:.1f} times one's")


def _measured(
    browser: Browser, url: str, *, people: int, servers: int, pace: float = PACE
) -> float:
    items = PEOPLE * ROUNDS // OVERLAP + PEOPLE
    with (
        tempfile.TemporaryDirectory() as home,
        campaign(browser, Path(home), url, people=people, items=items, servers=servers) as here,
    ):
        times = here.work(ROUNDS, pace)
        here.check(ROUNDS)
    p95 = statistics.quantiles(times, n=20)[-1]
    how = "one after the other" if pace else "at the same moment"
    print(f"{people:>6} {servers:>8} {statistics.median(times):>8.0f} {p95:>8.0f}  keys {how}")
    return p95


if __name__ == "__main__":
    main()
