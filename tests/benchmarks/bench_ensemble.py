"""What the vote of the five-member ensemble gains, and what a detector costs beside its model.

The answers come from the scripted server, which knows the gold labels and makes them worse member
by member. Nothing here is a model's quality; only the direction counts.

Run with: python tests/benchmarks/bench_ensemble.py
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

_TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_TESTS / "model_server"))

if TYPE_CHECKING:
    from spanlab.schema import Item, Record

_PER_LANGUAGE = 20
_ITEMS = 1_000
_AT_ONCE = 128
_LATENCY = 0.2  # seconds


def main() -> None:
    """Print both tables."""
    os.environ["OPENAI_API_KEY"] = "none"
    with tempfile.TemporaryDirectory() as home, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = _records()
        if not records:
            print("no shared data: set SPANLAB_SHARED")
            return
        _voting(records, Path(home))
        _overhead(records, Path(home))


def _voting(records: Sequence[Record], home: Path) -> None:
    """Print Corr and IoU of every member and of their vote, by level of noise."""
    from gold_answers import GoldAnswers, Noise, by_prompt

    import spanlab
    from spanlab.detection import EnsembleSpec, spec_of
    from spanlab.scoring.report import score
    from spanlab.testing import ModelServer
    from spanlab.text.labels import labels_of

    spec = spec_of("ucsc")
    assert isinstance(spec, EnsembleSpec)
    print(
        f"Votes of five scripted members on {len(records)} items of Mu-SHROOM val, all languages\n"
        "(gold labels made worse by the server: not a model's quality)\n"
    )
    print(f"{'noise':<7}{'':<32}{'Corr':>7}{'IoU':>7}")
    for level in (0.3, 0.6, 0.9):
        script = GoldAnswers(records, noise=Noise.level(level), seed=1, member=by_prompt)
        with ModelServer(script, keep=False) as server:
            os.environ |= {"OPENAI_BASE_URL": server.url, "SPANLAB_HOME": str(home / f"{level}")}
            annotated = spanlab.annotate(records, spec, concurrency=80)
        best = 0.0
        for name in (*(member.signs for member in spec.members), spec.signs):
            done = [each for each in annotated if _is_done(each, name)]
            macro = score((labels_of(each, "gold"), labels_of(each, name)) for each in done).macro
            corr = macro.corr.mean
            gain = f"  {corr - best:+.3f} to the best member" if name == spec.signs else ""
            if len(done) < len(annotated):
                gain += f"  ({len(annotated) - len(done)} failed)"
            best = max(best, corr)
            print(f"{level:<7}{name:<32}{corr:>7.3f}{macro.iou.mean:>7.3f}{gain}")
        print()


def _is_done(record: Record, name: str) -> bool:
    from spanlab.schema import Status

    said = record.by(name)
    return said is not None and said.status is Status.DONE


def _overhead(records: Sequence[Record], home: Path) -> None:
    """Print CPU and wall time of an item for ucsc-extract, and for its program alone."""
    from spanlab.detection import DetectorSpec, build
    from spanlab.formats import write
    from spanlab.models import Meter, predicting

    path = home / "records.jsonl"
    write(records, path)
    items = [
        records[number % len(records)].item.model_copy(update={"question": f"Question {number}?"})
        for number in range(_ITEMS)
    ]
    with _server(path) as url:
        os.environ["OPENAI_BASE_URL"] = url
        rows: list[tuple[str, float, float]] = []
        for name in ("program alone", "ucsc-extract"):
            os.environ["SPANLAB_HOME"] = str(home / name)
            detector: Any = build(
                DetectorSpec.model_validate(
                    {"detector": "ucsc-extract", "model": {"model": "scripted"}}
                ),
                Meter(),
            )

            async def program(item: Item, detector: Any = detector) -> object:
                with predicting(detector.kit.lm()):
                    return await detector.program.acall(**detector.inputs(item))

            one = program if name == "program alone" else detector.detect
            rows.append((name, *asyncio.run(_timed(one, items, records))))
    ideal = _AT_ONCE / _LATENCY
    print(
        f"{_ITEMS:,} items, one call each, {_LATENCY * 1000:.0f} ms latency, {_AT_ONCE} at once "
        f"(ideal {ideal:.0f} items/s), server in its own process\n"
    )
    print(f"{'':<16}{'items/s':>9}{'CPU ms/item':>13}")
    for name, rate, cpu in rows:
        print(f"{name:<16}{rate:>9.0f}{cpu:>13.2f}")
    print(f"{'beside dspy':<16}{'':>9}{rows[1][2] - rows[0][2]:>13.2f}")


async def _timed(
    one: Callable[[Item], Awaitable[object]], items: Sequence[Item], first: Sequence[Record]
) -> tuple[float, float]:
    """Return items per second and milliseconds of CPU per item.

    Imports and the rules of each language, a second in all, are loaded before the clock starts.
    """
    for record in {record.item.lang: record for record in first}.values():
        await one(record.item)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def held(item: Item) -> None:
        async with slots:
            await one(item)

    began, cpu = time.perf_counter(), time.process_time()
    await asyncio.gather(*(held(item) for item in items))
    wall, used = time.perf_counter() - began, time.process_time() - cpu
    return len(items) / wall, 1000 * used / len(items)


@contextmanager
def _server(records: Path) -> Iterator[str]:
    command = [sys.executable, str(_TESTS / "model_server" / "serve.py")]
    options = ["--records", str(records), "--latency", str(_LATENCY)]
    with subprocess.Popen([*command, *options], stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            yield server.stdout.readline().strip()
        finally:
            server.terminate()


def _records() -> list[Record]:
    """Return the first items of each language that have gold spans, with their passages."""
    from spanlab.formats import ReadOptions, read

    shared = Path(os.environ.get("SPANLAB_SHARED", _TESTS.parent.parent / "shared")) / "mushroom"
    found: list[Record] = []
    for path in sorted((shared / "val").glob("*.jsonl")):
        lang = path.name.split(".")[1].split("-")[0]
        contexts = shared / "context" / f"{lang}-val.v2_perplexity-sonar-pro"
        records = read(path, ReadOptions(contexts=contexts, on_warning=lambda _: None))
        marked = [each for each in records if (gold := each.by("gold")) and gold.spans]
        found += [
            each.model_copy(
                update={"annotations": tuple(a for a in each.annotations if a.annotator == "gold")}
            )
            for each in marked[:_PER_LANGUAGE]
        ]
    return found


if __name__ == "__main__":
    main()
