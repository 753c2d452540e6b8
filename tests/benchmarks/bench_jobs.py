"""Jobs at full size: throughput with saving, kills, workers that share, and a long list of jobs.

Run with a number below 1 to shrink everything, such as ``bench_jobs.py 0.1``.
"""

from __future__ import annotations

import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "support"), str(ROOT / "model_server")]

import asyncio

from paid import again_after_kills, again_after_loss, killed, signed
from working_jobs import (
    fill,
    key_of,
    request,
    separate_server,
    states,
    wait_until,
    working,
)

from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec
from spanlab.detection.file_run import FileRun
from spanlab.detection.request import RunRequest, ensemble_of
from spanlab.detection.run import DatasetRun, ItemBatch
from spanlab.formats import read, write
from spanlab.jobs import Jobs
from spanlab.jobs.worker import WorkerPace
from spanlab.models import Meter
from spanlab.schema import Status
from spanlab.storage import Store
from spanlab.testing import ModelServer, caller_with
from spanlab.text.tokens import load

NOTHING = "[[ ## parts ## ]]\n[]\n\n[[ ## completed ## ]]"


class Served(ModelServer):
    """A model in this process, for its log of requests."""

    def __init__(self, latency: float) -> None:
        from spanlab.testing import say

        super().__init__(signed(lambda ask: say(NOTHING)), latency=latency)


@contextmanager
def home() -> Iterator[Settings]:
    """Give an empty SQLite database."""
    with tempfile.TemporaryDirectory(prefix="spanlab-bench-") as folder:
        path = Path(folder)
        yield Settings(home=path, database_url=f"sqlite:///{path / 'spanlab.db'}")


def throughput(items: int) -> None:
    """Print wall time over the ideal, beside a bare client, and the memory at its highest."""
    os.environ.setdefault("OPENAI_API_KEY", "sk-bench")
    print(f"{items:,} items, one call each, 200 ms latency, saved in SQLite")
    for at_once in (32, 128):
        ideal = items * 0.2 / at_once
        with home() as settings, separate_server(0.2) as url:
            fill(settings, items)
            bare = asyncio.run(_bare(url, items, at_once))
            with Store.open(settings) as store:
                ours = asyncio.run(_ours(store, settings, url, items, at_once))
            assert states(settings) == {Status.DONE: items}
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"  concurrency {at_once:4}: {ours:6.2f} s = {ours / ideal:.2f}x the ideal "
            f"{ideal:.2f} s; bare AsyncOpenAI {bare:.2f} s; at most {memory:.0f} MiB"
        )


async def _bare(url: str, items: int, at_once: int) -> float:
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, api_key="sk-bench", max_retries=2)
    slots = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with slots:
            await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": f"Number {number} it is."}]
            )

    await one(0)
    began = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(items)))
    took = time.perf_counter() - began
    await client.close()
    return took


async def _ours(store: Store, settings: Settings, url: str, items: int, at_once: int) -> float:
    class There:
        def __init__(self) -> None:
            self.url = url

    asked = request(There(), concurrency=at_once)  # type: ignore[arg-type]  # only its address is read
    ensemble = ensemble_of(asked, Meter(), settings)
    load("en").result()  # once in a process
    began = time.perf_counter()
    await DatasetRun(store, ensemble, ItemBatch("d", range(items)), at_once).finish()
    return time.perf_counter() - began


_IDLE = """
from spanlab.detection.entry import DetectorEntry
from spanlab.schema import Annotation, AnnotatorKind

class Idle:
    name = "idle"

    def annotate(self, item):
        return Annotation(annotator="idle", kind=AnnotatorKind.DETECTOR)

ENTRY = DetectorEntry(name="idle", what="does nothing", needs="nothing", create=lambda kit: Idle())
"""


def bookkeeping(items: int) -> None:
    """Print what a detector that does nothing does a second, as a job and from file to file."""
    with tempfile.TemporaryDirectory() as package, home() as settings:
        info = Path(package, "idle-1.dist-info")
        info.mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: idle\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[spanlab.detectors]\nidle = idle:ENTRY\n")
        Path(package, "idle.py").write_text(_IDLE)
        sys.path.insert(0, package)
        fill(settings, items)
        asked = RunRequest.of(dataset="d", detectors=[DetectorSpec(detector="idle")])
        with working(settings, "w", environ={"PYTHONPATH": package}, pace=WorkerPace()):
            few = asked.model_copy(update={"limit": 40})
            Jobs(settings).store.wait(Jobs(settings).submit(few), timeout=600)
            began = time.perf_counter()
            Jobs(settings).store.wait(Jobs(settings).submit(asked), timeout=600)
            job = time.perf_counter() - began
        assert states(settings, "idle") == {Status.DONE: items}
        source = settings.home / "items.jsonl"
        with Store.open(settings) as store:
            write(store.records("d", annotators=()), source)
        began = time.perf_counter()
        write(FileRun.of(asked, settings).annotate(read(source)), settings.home / "out.jsonl")
        files = time.perf_counter() - began
    print(
        f"{items:,} items of a detector that does nothing: {(items - 40) / job:,.0f} items/s as a "
        f"job, {items / files:,.0f} from file to file: {files / job:.2f} of it"
    )


def kills(items: int, times: int) -> None:
    """Print what is repeated when a worker is killed at random moments."""
    chance = random.Random(4)
    with home() as settings, Served(0.05) as model:
        fill(settings, items)
        job_id = Jobs(settings).submit(request(model, concurrency=16))
        kills = []
        for moment in sorted(chance.sample(range(1, items), times)):
            with working(settings, "w", pace=WorkerPace()) as process:
                wait_until(lambda moment=moment: model.count >= moment, "a moment to kill")  # type: ignore[misc]  # a default is no parameter to mypy
                kills.append(killed(process, settings.home, model))
        with working(settings, "w", pace=WorkerPace()):
            done = Jobs(settings).store.wait(job_id, timeout=600)
        again = again_after_kills(model, kills, settings.home)
        assert len(again) == sum(count - 1 for count in Counter(model.fingerprints()).values())
        assert states(settings) == {Status.DONE: items}
        print(
            f"{items} items, killed {times} times: {done.progress.done} annotated once each, "
            f"{again}; at most {16 * times} could be under way at the kills"
        )


def shared(items: int) -> None:
    """Print the rate of one worker, of two, and what a killed one loses."""
    from postgres import postgres

    with postgres() as new_database, Served(0.2) as model:
        for at_once in (16, 32):  # with 32 each, two want more than two cores
            rates = {}
            for workers in (1, 2):
                with tempfile.TemporaryDirectory() as folder:
                    settings = Settings(home=Path(folder), database_url=new_database())
                    rates[workers] = _shared_rate(settings, model, workers, items, at_once)
            print(
                f"{items:,} items on PostgreSQL, 200 ms, {at_once} at once: one worker "
                f"{rates[1]:.0f} items/s, two {rates[2]:.0f} = {rates[2] / rates[1]:.2f}x"
            )
        with tempfile.TemporaryDirectory() as folder:
            _one_of_two_killed(Path(folder), new_database(), model, items)


def _one_of_two_killed(folder: Path, url: str, model: ModelServer, items: int) -> None:
    """Print what becomes of a job when one of its two workers is killed midway.

    Each has a home of its own, as on two hosts: neither finds the other's answers on its disk.
    """
    homes = {name: folder / name for name in ("here", "first", "second")}
    for home in homes.values():
        home.mkdir()
    here, first, second = (Settings(home=home, database_url=url) for home in homes.values())
    fill(here, items)
    model.requests.clear()
    before = model.count
    with (
        working(first, "first", pace=WorkerPace()) as process,
        working(second, "second", pace=WorkerPace()),
    ):
        began = time.time()
        job_id = Jobs(here).submit(request(model, concurrency=32))
        wait_until(lambda: model.count - before >= items // 2, "half of the calls")
        at = time.time()
        process.kill()
        done = Jobs(here).store.wait(job_id, timeout=1200)
    assert states(here) == {Status.DONE: items}
    twice = sum(count - 1 for count in Counter(model.fingerprints()).values())
    again = again_after_loss(model, caller_with(key_of("first")), at, known=0.5)
    assert len(again) == twice
    print(
        f"{items:,} items, one of two workers killed after {at - began:.1f} s of "
        f"{time.time() - began:.1f}: {done.progress.done:,} annotated once each, "
        f"{done.progress.failed} failed; {again}"
    )


def _shared_rate(
    settings: Settings, model: ModelServer, workers: int, items: int, at_once: int
) -> float:
    from contextlib import ExitStack

    fill(settings, items)
    with ExitStack() as stack:
        for number in range(workers):
            stack.enter_context(working(settings, f"w{number}", pace=WorkerPace()))
        warm = Jobs(settings).submit(
            request(model, concurrency=at_once, items=tuple(f"i{n}" for n in range(128)))
        )
        Jobs(settings).store.wait(warm, timeout=600)
        model.requests.clear()
        job_id = Jobs(settings).submit(request(model, concurrency=at_once))
        Jobs(settings).store.wait(job_id, timeout=1200)
    times = [ask.at for ask in model.requests]
    assert len(times) == items - 128
    assert states(settings) == {Status.DONE: items}
    return len(times) / (max(times) - min(times))


def long_list(count: int) -> None:
    """Print how long queued jobs take to be listed."""
    with home() as settings, Served(0.0) as model:
        fill(settings, 1)
        began = time.perf_counter()
        for _ in range(count):
            Jobs(settings).submit(request(model), again=True)
        queued = time.perf_counter() - began
        began = time.perf_counter()
        assert len(Jobs(settings).list(count)) == count
        listed = time.perf_counter() - began
        began = time.perf_counter()
        pages = [Jobs(settings).list(10, page) for page in range(count // 10)]
        paged = time.perf_counter() - began
        assert sum(map(len, pages)) == count
        print(
            f"{count} jobs: queued in {queued * 1e3:.0f} ms, listed in {listed * 1e3:.0f} ms, "
            f"paged by ten in {paged * 1e3:.0f} ms"
        )


def main() -> None:
    """Run everything."""
    share = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    bookkeeping(max(int(10_000 * share), 500))
    throughput(max(int(2000 * share), 128))
    kills(max(int(500 * share), 50), max(int(10 * share), 2))
    shared(max(int(5000 * share), 400))
    long_list(100)


if __name__ == "__main__":
    main()
