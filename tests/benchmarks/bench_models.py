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
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CALLS = 2000
LATENCY = 0.2  # seconds
CONCURRENCY = (32, 128)
SERVER = Path(__file__).resolve().parents[1] / "model_server" / "serve.py"
PASSAGES = "\n\n".join(f"[{n}] " + "The tower was built in 1889 in Paris. " * 12 for n in range(5))


def main() -> None:
    """Print the table."""
    print(f"{CALLS:,} calls, {LATENCY * 1000:.0f} ms each")
    print(
        f"{'':<34}{'at once':>8}{'wall s':>8}{'ideal s':>9}{'ratio':>7}{'CPU ms/call':>13}{'MB':>6}"
    )
    with endpoint() as url:
        os.environ["OPENAI_API_KEY"] = "sk-bench-0000000000"
        for at_once in CONCURRENCY:
            report("openai.AsyncOpenAI, bare", at_once, bare(url))
            report("language_model, dspy, no cache", at_once, through_dspy(url, None))
            with tempfile.TemporaryDirectory() as folder:
                report("language_model, dspy, cache", at_once, through_dspy(url, Path(folder)))
                report("  again, from the cache", at_once, through_dspy(url, Path(folder)))


Ask = Callable[[int], Awaitable[Any]]


def report(name: str, at_once: int, ask: Ask) -> None:
    """Time one way of asking and print its line."""
    begun, spent = time.perf_counter(), time.process_time()
    asyncio.run(all_of(ask, at_once))
    wall, cpu = time.perf_counter() - begun, time.process_time() - spent
    ideal = CALLS * LATENCY / at_once
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{name:<34}{at_once:>8}{wall:>8.2f}{ideal:>9.2f}{wall / ideal:>7.2f}"
        f"{cpu / CALLS * 1000:>13.2f}{memory:>6.0f}"
    )


async def all_of(ask: Ask, at_once: int) -> None:
    """Ask everything, so many at once."""
    left = iter(range(CALLS))

    async def worker() -> None:
        for number in left:
            await ask(number)

    await asyncio.gather(*(worker() for _ in range(at_once)))


def bare(url: str) -> Ask:
    """Return a way of asking with nothing but OpenAI's client."""
    from openai import AsyncOpenAI

    client = AsyncOpenAI(base_url=url, max_retries=0)

    async def ask(number: int) -> None:
        await client.chat.completions.create(
            model="gpt-4o-mini",
            messages=[{"role": "user", "content": f"{PASSAGES}\n\nQuestion {number}?"}],
        )

    return ask


def through_dspy(url: str, cache: Path | None) -> Ask:
    """Return a way of asking as detectors do: a Signature on spanlab's language model."""
    import dspy

    from spanlab.lm import Meter, ModelChoice, language_model, predicting

    class Check(dspy.Signature):
        """Say what the passages do not support."""

        passages: str = dspy.InputField()
        question: str = dspy.InputField()
        answer: list[str] = dspy.OutputField()

    meter = Meter()
    lm = language_model(ModelChoice(model="gpt-4o-mini", base_url=url), meter, cache=cache)
    check = dspy.Predict(Check)

    async def ask(number: int) -> None:
        with predicting(lm), dspy.context(trace=None):
            await check.acall(passages=PASSAGES, question=f"Question {number}?")

    return ask


@contextmanager
def endpoint() -> Iterator[str]:
    """Run the scripted endpoint; yield its base URL."""
    command = [sys.executable, str(SERVER), "--latency", str(LATENCY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


if __name__ == "__main__":
    main()
