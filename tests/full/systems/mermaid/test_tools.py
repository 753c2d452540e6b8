"""`spanlab tools`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from spanlab.formats import write
from spanlab.schema import Item, Record
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
STRANGE = Path(__file__).parents[3] / "tools" / "strange_server.py"


def test_servers_are_listed_with_the_tools_that_may_be_called(spanlab: Run, tmp_path: Path) -> None:
    servers = {
        "strange": {"command": [sys.executable, str(STRANGE)], "tools": ["look_up"]},
        "gone": {"command": ["no-such-command-anywhere"]},
    }
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "tools.json").write_text(json.dumps({"servers": servers}))
    done = spanlab("tools", "strange", "gone")
    assert done.returncode == 1
    first, second, third = done.stdout.splitlines()
    assert (first, second.startswith("  strange.look_up: Look a tower up.")) == (
        "strange: answers",
        True,
    )
    assert third.startswith("gone: the tool server 'gone'")


def test_calls_of_tools_are_in_the_summary_and_bounded(
    model_server: ModelServer, spanlab: Run, tmp_path: Path
) -> None:
    """Each of three items asks the server once and searches its passages once."""
    servers = {"strange": {"command": [sys.executable, str(STRANGE)], "tools": ["look_up"]}}
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "tools.json").write_text(json.dumps({"servers": servers}))
    towers = [Item(id=name, lang="en", answer=f"{name} is a tower.") for name in ("Ald", "B", "C")]
    write([Record(item=item) for item in towers], tmp_path / "towers.jsonl")

    def think(ask: ModelRequest) -> ScriptedReply:
        if "no steps yet" in ask.text:
            name = next(each.id for each in towers if each.answer in ask.text)
            return say_fields(step={"action": "strange.look_up", "action_input": name})
        call = {"action": "search", "action_input": "tower"}
        return say_fields(step={"answer": "True"} if "Step 2" in ask.text else call)

    model_server.script(think)
    options = ("claims=answer", "decompose=false", "tools=strange", "memory=off")
    run = (
        *("annotate", "towers.jsonl", "--detector", "mermaid", "--model", "scripted"),
        *(word for option in options for word in ("--option", option)),
        *("--concurrency", "1", "-o", "found.jsonl"),
    )
    done = spanlab(*run)
    assert done.returncode == 0, done.stderr
    assert "3 searches · 6 tool calls" in done.stderr
    stopped = spanlab(*run, "--max-searches", "2")
    assert stopped.returncode == 3
    assert "the budget of 2 searches is used up" in stopped.stderr
    assert "2 searches · 4 tool calls" in stopped.stderr
