"""How fast model calls go beside the ideal, and beside a bare openai client in the same run.

The endpoint is scripted, in a process of its own, and answers every call after 200 ms. The ideal
is calls x latency / concurrency: a client that itself takes no time.
"""

from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CALLS = 2000
LATENCY = 0.2  # seconds
LONG = 20_000  # items of the run whose memory is looked at
MARKS = (0.05, 0.25, 0.5, 0.75, 1.0)
CONCURRENCY = (32, 128)
SERVER = Path(__file__).resolve().parents[1] / "model_server" / "serve.py"
ANSWER = "The tower was built in 1999 in Paris. " * 4
QUOTED = '[{"text": "1999", "reason": "it was 1889", "probability": 0.8}]'
PASSAGES = "\n\n".join(f"[{n}] " + "The tower was built in 1889 in Paris. " * 12 for n in range(5))


def main() -> None:
    """Print the tables."""
    print(f"{CALLS:,} calls, {LATENCY * 1000:.0f} ms each")
    print(
        f"{'':<34}{'at once':>8}{'wall s':>8}{'ideal s':>9}{'ratio':>7}{'CPU ms/call':>13}{'MB':>6}"
    )
    with endpoint() as url:
        os.environ["OPENAI_API_KEY"] = "sk-bench-0000000000"
        for at_once in CONCURRENCY:
            report("openai.AsyncOpenAI, bare", at_once, bare(url, at_once))
            with tempfile.TemporaryDirectory() as folder:
                for name in ("the detector's program and cache", "  again, from the cache"):
                    ask = through_dspy(url, Path(folder))
                    report(name, at_once, all_of(ask, at_once))
            with ready(at_once, url, CALLS) as run:
                report("a run of ucsc-extract, saved", at_once, run)
        report_memory(CONCURRENCY[-1], url)


def passage(number: int, part: int) -> str:
    """Return a text of about a hundred words that no other item has."""
    sentences = (
        f"Source {part} of {number} has the tower {place}, it says, begun in {1850 + part}."
        for place in (
            "in Paris",
            "on the Champ de Mars",
            "near the Seine",
            "by G. Eiffel",
            "at last",
        )
    )
    return " ".join(sentences) + " It was built in 1889 for the fair that opened in May."


Ask = Callable[[int], Awaitable[Any]]
Job = Callable[[], Coroutine[Any, Any, None]]


def report(name: str, at_once: int, work: Job) -> None:
    """Time all calls and print the line."""
    begun, spent = time.perf_counter(), time.process_time()
    asyncio.run(work())
    wall, cpu = time.perf_counter() - begun, time.process_time() - spent
    ideal = CALLS * LATENCY / at_once
    print(
        f"{name:<34}{at_once:>8}{wall:>8.2f}{ideal:>9.2f}{wall / ideal:>7.2f}"
        f"{cpu / CALLS * 1000:>13.2f}{resident():>6.0f}",
        flush=True,
    )


def resident() -> float:
    """Return this process's resident memory in MB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


def all_of(ask: Ask, at_once: int) -> Job:
    """Return the work of asking everything, so many at once."""

    async def work() -> None:
        left = iter(range(CALLS))

        async def worker() -> None:
            for number in left:
                await ask(number)

        await asyncio.gather(*(worker() for _ in range(at_once)))

    return work


def bare(url: str, at_once: int) -> Job:
    """Return the work of asking with nothing but OpenAI's client."""
    from openai import AsyncOpenAI

    async def work() -> None:
        async with AsyncOpenAI(base_url=url, max_retries=0) as client:

            async def ask(number: int) -> None:
                prompt = f"{PASSAGES}\n\nQuestion {number}?"
                await client.chat.completions.create(
                    model="gpt-4o-mini", messages=[{"role": "user", "content": prompt}]
                )

            await all_of(ask, at_once)()

    return work


def through_dspy(url: str, cache: Path | None) -> Ask:
    """Return a way of asking as a detector does: its program on spanlab's language model."""
    import dspy

    from spanlab.models import Meter, ModelChoice, language_model, predicting
    from spanlab.models.cache import answer_file
    from spanlab.systems.ucsc.extract import SpanExtraction

    choice = ModelChoice(model="gpt-4o-mini", base_url=url)
    lm = language_model(choice, Meter(), cache=answer_file(cache) if cache else None)
    program = SpanExtraction()

    async def ask(number: int) -> None:
        with predicting(lm), dspy.context(trace=None):
            await program.acall(passages=PASSAGES, question=f"Question {number}?", answer=ANSWER)

    return ask


def report_memory(at_once: int, url: str) -> None:
    """Print what is resident on the way through a longer run."""
    marks = iter(MARKS)
    following: float | None = next(marks)
    print(f"\nresident in a run of {LONG:,} items, {at_once} at once")

    def tell(done: int) -> None:
        nonlocal following
        while following is not None and done >= following * LONG:
            print(f"{following:>8.0%} done{resident():>8.0f} MB", flush=True)
            following = next(marks, None)

    with ready(at_once, url, LONG, tell) as run:
        asyncio.run(run())


@contextmanager
def ready(
    at_once: int, url: str, items: int, tell: Callable[[int], None] | None = None
) -> Iterator[Job]:
    """Prepare a whole run of a detector: reading, asking, mapping, and saving into SQLite.

    Args:
        at_once: items under way at once.
        url: the endpoint.
        items: how many there are.
        tell: hears 20 times a second how many are saved.
    """
    from spanlab.base.settings import Settings
    from spanlab.detection import DetectorSpec
    from spanlab.detection.request import RunRequest, ensemble_of
    from spanlab.detection.run import DatasetRun, ItemBatch
    from spanlab.models import Meter, ModelChoice
    from spanlab.schema import Item, Passage, Record
    from spanlab.storage import Store
    from spanlab.text.tokens import load

    records = (
        Record(
            item=Item(
                id=str(number),
                lang="en",
                question=f"Question {number}?",
                answer=ANSWER,
                passages=tuple(Passage(text=passage(number, part)) for part in range(3)),
            )
        )
        for number in range(items)
    )
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        settings = Settings(home=home, database_url=f"sqlite:///{home / 'bench.db'}")
        model = ModelChoice(model="gpt-4o-mini", base_url=url)
        spec = DetectorSpec(detector="ucsc-extract", model=model)
        request = RunRequest(dataset="bench", detectors=(spec,), concurrency=at_once)
        with Store.open(settings) as store:
            store.import_records("bench", records)
            ensemble = ensemble_of(request, Meter(), settings)
            load("en").result()  # once in a process

            async def run() -> None:
                work = ItemBatch("bench", range(items))
                running = DatasetRun(store, ensemble, work, at_once)
                watching = asyncio.create_task(watch(running, tell)) if tell else None
                await running.finish()
                if running.failed or running.done != items:
                    raise SystemExit(f"{running.failed} failed: {running.failures[:1]}")
                if watching is not None:
                    await watching

            async def watch(running: DatasetRun, tell: Callable[[int], None]) -> None:
                while running.done < items:
                    tell(running.done)
                    await asyncio.sleep(0.05)
                tell(running.done)

            yield run


@contextmanager
def endpoint() -> Iterator[str]:
    """Run the scripted endpoint; yield its base URL."""
    command = [sys.executable, str(SERVER), "--latency", str(LATENCY)]
    command += ["--field", "parts", "--value", QUOTED]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
