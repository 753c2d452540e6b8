"""A benchmark that is killed: it goes on where it was, and its table is the same."""

from __future__ import annotations

import json
from pathlib import Path

from forks import Fork
from paid import again_after_kills, killed, signed
from working_jobs import NOTHING, SECONDS, environment, wait_until, working

from spanlab.base.settings import Settings
from spanlab.bench.plan import BenchDataset, BenchPlan, BenchSystem
from spanlab.detection import DetectorSpec
from spanlab.jobs import Jobs, JobState
from spanlab.models import ModelChoice
from spanlab.testing import ModelServer, say

CARD = """[[dataset]]
name = "numbers"
title = "Numbers"
licence = "ours"
source = "this test"
files = ["items.jsonl"]
"""


def record(number: int) -> dict[str, object]:
    return {
        "id": f"i{number}",
        "lang": "en",
        "answer": f"Number {number} it is.",
        "annotations": [{"annotator": "gold", "kind": "gold", "status": "done", "spans": []}],
    }


def test_a_killed_benchmark_goes_on_and_comes_to_the_same_bytes(
    settings: Settings, model: ModelServer, tmp_path: Path
) -> None:
    """Of 40 calls those that were under way at the kill are made again, and no other."""
    items = tmp_path / "items.jsonl"
    lines = (json.dumps(record(number)) + "\n" for number in range(40))
    items.write_text("".join(lines), encoding="utf-8")
    card = tmp_path / "cards.toml"
    card.write_text(CARD, encoding="utf-8")
    model.latency = 0.2
    model.script(signed(lambda ask: say(NOTHING)))
    command = ["spanlab", "bench", "--data", str(tmp_path), "--cards", str(card)]
    command += ["--dataset", "numbers", "--detector", "ucsc-extract", "--concurrency", "4"]
    variables = environment(settings) | {"OPENAI_BASE_URL": model.url, "SPANLAB_MODEL": "scripted"}
    log = tmp_path / "log"
    process = Fork([*command, "-o", str(tmp_path / "table")], variables, log)
    wait_until(lambda: model.count >= 12, "some calls")
    kill = killed(process, settings.home, model)
    assert not list((tmp_path / "table").rglob("extract*.json"))
    process = Fork([*command, "-o", str(tmp_path / "table")], variables, log)
    assert process.wait() == 0, log.read_text()
    again = again_after_kills(model, [kill], settings.home)
    assert model.count == 40 + len(again) <= 40 + 2 * 4
    assert again.known == 0
    asked = model.count
    process = Fork([*command, "-o", str(tmp_path / "other")], variables, log)
    assert process.wait() == 0, log.read_text()
    assert model.count == asked, "all is in the cache"
    for name in ("table.md", "table.tex", "table.csv", "table.html"):
        assert (tmp_path / "table" / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_a_benchmark_is_paused_resumed_and_retried_like_any_job(
    settings: Settings, model: ModelServer, tmp_path: Path
) -> None:
    (tmp_path / "items.jsonl").write_text(
        "".join(json.dumps(record(number)) + "\n" for number in range(24)), encoding="utf-8"
    )
    (tmp_path / "cards.toml").write_text(CARD, encoding="utf-8")
    choice = ModelChoice(model="scripted", base_url=model.url, retries=0)
    spec = DetectorSpec(detector="ucsc-extract", model=choice)
    plan = BenchPlan(
        output=tmp_path / "table",
        systems=(BenchSystem(name="extract", detector=spec),),
        datasets=(BenchDataset(name="numbers"),),
        data=(tmp_path,),
        cards=(tmp_path / "cards.toml",),
        controls=("nothing",),
        concurrency=4,
    )
    model.latency = 0.5
    job_id = Jobs(settings).submit(plan)
    with working(settings, "w"):
        wait_until(lambda: model.count >= 4, "some calls")
        Jobs(settings).pause(job_id)
        assert Jobs(settings).find(job_id).state is JobState.PAUSED
        Jobs(settings).resume(job_id)
        done = Jobs(settings).store.wait(job_id, timeout=SECONDS)
        assert (done.state, done.progress.done, done.progress.total) == (JobState.DONE, 2, 2)
        assert done.progress.usage.calls == 24, "all calls, those before the pause too"
        again = Jobs(settings).store.wait(Jobs(settings).retry(job_id), timeout=SECONDS)
        assert (again.state, again.progress.usage.calls) == (JobState.DONE, 0)
