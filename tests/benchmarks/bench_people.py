"""Ten people at once on PostgreSQL: from key to database, and whose processor time a key costs.

The browsers run on the same machine as the servers and the database; the last columns say how much
of a key is whose. `bench_people.py 1` runs the first so many rows alone.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / folder) for folder in ("full/browser", "support", "model_server")]

from campaigning import OVERLAP, campaign
from playwright.sync_api import Browser
from postgres import postgres
from serving import chromium

ROUNDS = 6  # items that each finishes, four keys an item
PACE = (1000.0, 2000.0)  # milliseconds from a person's key to their next one
_TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class _Case:
    """How many people type how; ``whole`` is with login, known answers and a question."""

    people: int = 10
    servers: int = 1
    whole: bool = False
    together: bool = False


CASES = (
    _Case(people=1),
    _Case(),
    _Case(whole=True),
    _Case(servers=2, whole=True),
    _Case(together=True),
    _Case(whole=True, together=True),
    _Case(servers=2, whole=True, together=True),
)


def main() -> None:
    """Print the table."""
    print(f"{'ms from key to stored':>68}{'processor ms a key':>26}")
    print(
        f"{'people':>6} {'servers':>8}  {'login and known':<15}  {'keys':<15}{'p50':>5} {'p95':>5} "
        f"{'max':>5}   {'server':>6} {'database':>8} {'others':>6}"
    )
    count = int(sys.argv[1]) if len(sys.argv) > 1 else len(CASES)
    with postgres() as new_url, chromium() as browser:
        for case in CASES[:count]:
            print(_row(browser, new_url(), case), flush=True)


def _row(browser: Browser, url: str, case: _Case) -> str:
    items = 10 * ROUNDS // OVERLAP + 10
    with (
        tempfile.TemporaryDirectory() as home,
        campaign(
            *(browser, Path(home), url),
            people=case.people,
            items=items,
            servers=case.servers,
            whole=case.whole,
        ) as here,
    ):
        servers = [server.pid for server in here.servers]
        before = _spent(servers)
        times = here.work(ROUNDS) if case.together else here.type(ROUNDS, *PACE)
        pairs = zip(_spent(servers), before, strict=True)
        spent = [1000 * (now - then) / len(times) for now, then in pairs]
        here.check(ROUNDS)
    p95 = statistics.quantiles(times, n=20)[-1]
    keys = "same moment" if case.together else "one in 1 to 2 s"
    return (
        f"{case.people:>6} {case.servers:>8}  {'on' if case.whole else 'off':<15}  {keys:<15}"
        f"{statistics.median(times):>5.0f} {p95:>5.0f} {max(times):>5.0f}   "
        f"{spent[0]:>6.0f} {spent[1]:>8.0f} {spent[2]:>6.0f}"
    )


def _spent(servers: list[int]) -> tuple[float, float, float]:
    """Return seconds of processor time of servers, PostgreSQL, and this program with browsers."""
    total = {"server": 0.0, "database": 0.0, "others": 0.0}
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended meanwhile
            name, _, rest = (folder / "stat").read_text().rpartition(")")
            found[int(folder.name)] = (name, rest.split())
    for pid, (name, fields) in found.items():
        if _is_ours(pid, found):
            which = "server" if pid in servers else "database" if "(postgres" in name else "others"
            total[which] += (int(fields[11]) + int(fields[12])) / _TICKS
    return total["server"], total["database"], total["others"]


def _is_ours(pid: int, found: dict[int, tuple[str, list[str]]]) -> bool:
    while pid in found and pid != os.getpid():
        pid = int(found[pid][1][1])  # its parent
    return pid == os.getpid()


if __name__ == "__main__":
    main()
