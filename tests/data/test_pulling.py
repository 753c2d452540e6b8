"""Traces are fetched over HTTP from servers that answer as Langfuse and Phoenix do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from trace_homes import KEYS, TraceHomes, living

from spanlab.base.errors import InputError, UsageError
from spanlab.data import pulling
from spanlab.data.pulling import TraceSource, pull_traces
from spanlab.formats import ReadOptions, read

ROOT = Path(__file__).resolve().parents[2]
BAD = "a-wrong-key-of-the-test"
WRONG = KEYS | {"PHOENIX_API_KEY": BAD, "LANGFUSE_SECRET_KEY": BAD}


@pytest.fixture
def homes() -> Iterator[TraceHomes]:
    with living() as homes:
        homes.traces = json.loads((ROOT / "data/support_traces.json").read_text("utf-8"))
        spans = ROOT / "tests/cli/peers/phoenix_get_spans.json"
        homes.spans = json.loads(spans.read_text("utf-8"))
        yield homes


def test_whole_traces_of_langfuse_are_fetched_page_by_page(
    homes: TraceHomes, tmp_path: Path
) -> None:
    homes.page = 3
    target = tmp_path / "traces.jsonl"
    assert pull_traces(TraceSource("langfuse", homes.url, limit=7), target, KEYS) == 7
    quiet = ReadOptions(on_warning=lambda _: None)
    pulled = [record.item for record in read(target, quiet)]
    whole = [record.item for record in read(ROOT / "data/support_traces.json", quiet)]
    assert [item.answer for item in pulled] == [item.answer for item in whole[:7]]
    assert pulled[0].passages == whole[0].passages
    everything = TraceSource("langfuse", f"{homes.url}/", limit=500)
    assert pull_traces(everything, target, KEYS) == len(homes.traces)


def test_no_trace_of_phoenix_is_cut_at_a_page(homes: TraceHomes, tmp_path: Path) -> None:
    homes.page = 2
    target = tmp_path / "traces.jsonl"
    n_traces = len({span["context"]["trace_id"] for span in homes.spans})
    assert pull_traces(TraceSource("phoenix", homes.url), target, KEYS) == n_traces
    (record, *_) = read(target)
    (same, *_) = read(ROOT / "tests/cli/peers/phoenix_get_spans.json")
    assert record.item.answer == same.item.answer
    assert record.item.passages == same.item.passages
    assert sum("cursor=" in call for call in homes.calls) >= 1


def test_a_busy_server_is_asked_again_and_a_refusal_says_what_to_check(
    homes: TraceHomes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "_PAUSES", (0.0, 0.0, 0.0))
    target = tmp_path / "traces.jsonl"
    homes.statuses = [503, 429]
    assert pull_traces(TraceSource("phoenix", homes.url), target, KEYS) > 0
    for program, name in (("phoenix", "PHOENIX_API_KEY"), ("langfuse", "LANGFUSE_SECRET_KEY")):
        with pytest.raises(InputError, match="answers 401") as refused:
            pull_traces(TraceSource(program, homes.url), target, WRONG)  # type: ignore[arg-type]
        assert name in str(refused.value)
        assert BAD not in str(refused.value)
    homes.statuses = [503] * 9
    with pytest.raises(InputError, match="answers 503"):
        pull_traces(TraceSource("phoenix", homes.url), target, KEYS)
    homes.statuses = [302]
    with pytest.raises(InputError, match="answers 302"):
        pull_traces(TraceSource("phoenix", homes.url), target, KEYS)
    with pytest.raises(InputError, match="answers 404"):
        pull_traces(TraceSource("phoenix", homes.url, project="nowhere"), target, KEYS)
    with pytest.raises(UsageError, match="no key for Langfuse"):
        pull_traces(TraceSource("langfuse", homes.url), target, {})
    with pytest.raises(InputError, match="cannot be reached"):
        pull_traces(TraceSource("phoenix", "http://127.0.0.1:9"), target, KEYS)
    homes.spans, homes.statuses = [], []
    with pytest.raises(InputError, match="there is no trace"):
        pull_traces(TraceSource("phoenix", homes.url), target, KEYS)


def test_a_project_that_is_too_large_is_refused_rather_than_cut(
    homes: TraceHomes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulling, "_SPANS", 2)
    homes.page = 2
    with pytest.raises(InputError, match="more than 2 spans"):
        pull_traces(TraceSource("phoenix", homes.url), tmp_path / "t", KEYS)


@pytest.mark.parametrize(
    ("address", "source"),
    [
        ("phoenix+http://a:6006", TraceSource("phoenix", "http://a:6006")),
        ("phoenix+http://a?project=r&limit=5", TraceSource("phoenix", "http://a", "r", 5)),
        ("langfuse+https://b/c", TraceSource("langfuse", "https://b/c")),
        ("answers+more.jsonl", None),
        ("a.jsonl", None),
    ],
)
def test_an_address_names_program_project_and_limit(
    address: str, source: TraceSource | None
) -> None:
    assert TraceSource.named(address) == source
    with pytest.raises(UsageError, match="behind the"):
        TraceSource.named("phoenix+http://a?limit=0")
