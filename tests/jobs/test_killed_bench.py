"""A benchmark that is killed: it goes on where it was, and its table is the same."""

from __future__ import annotations

import json
from pathlib import Path

from forks import Fork
from paid import again_after_kills, killed, signed
from working_jobs import NOTHING, environment, wait_until

from spanlab.settings import Settings
from spanlab.testing import ModelServer, say

CARD = """[[dataset]]
name = "numbers"
title = "Numbers"
licence = "ours"
source = "this test"
files = ["items.jsonl"]
"""


def test_a_killed_benchmark_goes_on_and_comes_to_the_same_bytes(
    settings: Settings, model: ModelServer, tmp_path: Path
) -> None:
    """Of 40 calls those that were under way at the kill are made again, and no other."""
    records = [
        {
            "id": f"i{number}",
            "lang": "en",
            "answer": f"Number {number} it is.",
            "annotations": [{"annotator": "gold", "kind": "gold", "status": "done", "spans": []}],
        }
        for number in range(40)
    ]
    items = tmp_path / "items.jsonl"
    items.write_text("".join(json.dumps(each) + "\n" for each in records), encoding="utf-8")
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
