"""How much of reasoning's prompts an earlier one began with, and how near to ideal a run is.

100 questions are reasoned about with the passages of the shared sample questions, by a scripted
generator and verifier. What counts as shared is the longest beginning that a prompt has in common
with an earlier one of the same question and role, and of the first prompts of a question with those
of the question before. The second part has 500 questions at 100 ms a call.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
_ROOT = _TESTS.parent
sys.path[:0] = [str(_TESTS / "model_server")]

from reasoning_script import ReasoningScript, inputs

import spanlab
from spanlab.detection.selection import DetectorSelection
from spanlab.formats import read
from spanlab.schema import Record
from spanlab.systems.safe.reasoner import ReasonOptions
from spanlab.systems.safe.reasoning import QuestionReasoner
from spanlab.testing import ModelRequest, ModelServer

QUESTIONS, LATENCY, AT_ONCE = 500, 0.1, 32
STEPS = [
    *(
        f"According to Passage {n}, the thing in question has property {n}. (Attribution)"
        for n in range(1, 6)
    ),
    "So the thing has all properties. (Logical)",
    "####ANSWER: the thing (Final Answer)",
]
WRONG = {"property 2": {"errors": ["Unsupported"], "diagnosis": "Passage 2 does not say so."}}


def main() -> None:
    """Print both tables."""
    shared = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if not shared.is_dir():
        print("no shared data: set SPANLAB_SHARED")
        return
    records = list(read(shared / "claims" / "safe_samples.jsonl"))
    os.environ |= {"OPENAI_API_KEY": "sk-bench-0000000000", "SPANLAB_MODEL": "scripted"}
    prefixes(records)
    wall(records)


def questions(records: list[Record], count: int) -> Iterator[Record]:
    """Yield so many questions, all different."""
    for number in range(count):
        item = records[number % len(records)].item
        question = f"{item.question} ({number})"
        yield Record(item=item.model_copy(update={"id": f"q{number}", "question": question}))


def prefixes(records: list[Record]) -> None:
    """Print the share of prompt characters that an earlier prompt began with."""
    with (
        tempfile.TemporaryDirectory() as home,
        ModelServer(ReasoningScript({"": STEPS}, WRONG)) as server,
    ):
        os.environ |= {"SPANLAB_HOME": home, "OPENAI_BASE_URL": server.url}
        spanlab.reason(questions(records, 100))
        found = shares(server.requests)
    for role, (shared_characters, characters) in found.items():
        print(f"{role:<10} {shared_characters / characters:.1%} of {characters:,} characters")


def shares(asked: list[ModelRequest]) -> dict[str, tuple[int, int]]:
    """Return shared and all characters of the prompts, by role and together."""
    known: dict[tuple[str, str], list[str]] = {}
    sums: dict[str, tuple[int, int]] = {}
    for ask in asked:
        given = inputs(ask)
        role = "generator" if "feedback" in given else "verifier"
        earlier = known.setdefault((role, given["question"]), [])
        before = [*earlier, *known.setdefault((role, ""), [])]
        begun = max((shared_beginning(ask.text, each) for each in before), default=0)
        earlier.append(ask.text)
        known[role, ""] = [ask.text]
        for name in (role, "together"):
            one, other = sums.get(name, (0, 0))
            sums[name] = (one + begun, other + len(ask.text))
    return sums


def shared_beginning(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


def wall(records: list[Record]) -> None:
    """Print how long many questions take beside the ideal: the steps of one follow each other."""
    script = ReasoningScript({"": STEPS}, WRONG)
    with (
        tempfile.TemporaryDirectory() as home,
        ModelServer(script, latency=LATENCY, keep=False) as server,
    ):
        os.environ |= {"SPANLAB_HOME": home, "OPENAI_BASE_URL": server.url}
        work = QuestionReasoner(
            DetectorSelection(detectors=("safe",)), [ReasonOptions()], concurrency=AT_ONCE
        )
        list(islice(work.answer(questions(records, AT_ONCE)), AT_ONCE))  # connections, imports
        calls, started, worked = server.count, time.perf_counter(), time.process_time()
        more = islice(questions(records, QUESTIONS + AT_ONCE), AT_ONCE, None)
        count = len(list(work.answer(more)))
        took, worked = time.perf_counter() - started, time.process_time() - worked
        calls = server.count - calls
    ideal = calls * LATENCY / AT_ONCE
    print(
        f"{count} questions, {calls:,} calls: {took:.1f} s of an ideal {ideal:.1f} s "
        f"({took / ideal:.2f}); {worked:.1f} s of processor time, the server's with it"
    )


if __name__ == "__main__":
    main()
