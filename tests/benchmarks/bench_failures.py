"""A run in which nine tenths of the items fail in nine ways, and what prompts have in common.

Run with: python tests/benchmarks/bench_failures.py
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from itertools import combinations
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(_TESTS / "model_server"))

_ITEMS = 2_000
_AT_ONCE = 64
_LATENCY = 0.2  # seconds
_PAUSE = 0.375  # seconds before the first retry, on average
_PASSAGES = 3_000  # characters, about those of three search results


def main() -> None:
    """Print both."""
    os.environ["OPENAI_API_KEY"] = "none"
    os.environ["SPANLAB_MODEL"] = "scripted"
    with tempfile.TemporaryDirectory() as home:
        _failures(Path(home))
        _prefixes(Path(home))


def _failures(home: Path) -> None:
    """Print the time of a run with failures, against the same run without."""
    from failing import Failing, cause, towers

    import spanlab
    from spanlab.schema import Status
    from spanlab.testing import ModelServer

    took, calls = {}, {}
    for failing in (False, True):
        with ModelServer(Failing(at_all=failing), latency=_LATENCY, keep=False) as server:
            os.environ |= {"OPENAI_BASE_URL": server.url, "SPANLAB_HOME": str(home / str(failing))}
            start = time.perf_counter()
            done = spanlab.annotate(towers(_ITEMS), "ucsc-extract", concurrency=_AT_ONCE)
            took[failing], calls[failing] = time.perf_counter() - start, server.count
        wrong = [
            record.item.id
            for number, record in enumerate(done)
            for said in record.annotations
            if failing and (said.status is Status.FAILED) != bool(cause(number))
        ]
        assert not wrong, wrong
    # Of every ten items one meets a 500 and one a dropped connection; a 429 asks for 0.1 s.
    pauses = _ITEMS / 10 * (2 * _PAUSE + 0.105) / _AT_ONCE
    print(
        f"{_ITEMS:,} items at {_AT_ONCE}, 10 % of each of nine kinds of failure: every item done "
        f"or failed with its cause\n  {took[True]:.1f} s with {calls[True]:,} calls, "
        f"{took[False]:.1f} s with {calls[False]:,} without failures; less {pauses:.1f} s of "
        f"pauses {(took[True] - pauses) / took[False]:.2f} times the time, "
        f"{calls[True] / calls[False]:.2f} times the calls\n"
    )


def _prefixes(home: Path) -> None:
    """Print how much of their prompts the detectors of one item have in common."""
    import spanlab
    from spanlab.detection import EnsembleSpec, spec_of
    from spanlab.schema import Item, Passage, Record
    from spanlab.testing import ModelServer, say_fields

    passage = "The tower of Norvik was built in 1889, says this passage. " * 60
    item = Item(
        id="tower",
        lang="en",
        question="When was the tower built?",
        answer="The tower was built in 1989 by Ada Smith.",
        passages=(Passage(text=passage[:_PASSAGES]),),
    )
    ensemble = spec_of("ucsc")
    assert isinstance(ensemble, EnsembleSpec)
    members = [spec.model_copy(update={"model": None}) for spec in ensemble.members]
    with ModelServer(lambda ask: say_fields(parts=[])) as server:
        os.environ |= {"OPENAI_BASE_URL": server.url, "SPANLAB_HOME": str(home / "prefixes")}
        spanlab.annotate(
            [Record(item=item)], ensemble.model_copy(update={"members": tuple(members)})
        )
        prompts = [ask.text for ask in server.requests if passage[:99] in ask.text]
    shared = [_in_common(*pair) for pair in combinations(prompts, 2)]
    print(
        f"prompts on one item with {_PASSAGES:,} characters of passages: {len(prompts)} calls of "
        f"the ensemble begin with the same {min(shared):,} characters, "
        f"{min(shared) / max(map(len, prompts)):.0%} of the longest prompt"
    )


def _in_common(one: str, other: str) -> int:
    """Return how many characters two prompts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


if __name__ == "__main__":
    main()
