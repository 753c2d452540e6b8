"""`spanlab memory`, command by command."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]

ENTRY = {
    "text": "The tower is\t330 metres tall.",
    "entities": ["The Eiffel Tower"],
    "url": "https://a.example/",
    "tool": "search",
    "at": time.time() - 60,
}


def test_evidence_is_imported_listed_pinned_blocked_exported_and_cleared(
    spanlab: Run, tmp_path: Path
) -> None:
    file, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    lie = ENTRY | {"text": "It is 3 metres tall.", "url": None}
    file.write_text(f"{json.dumps(ENTRY)}\n{json.dumps(lie)}\n")
    assert spanlab("memory", "import", file).stderr == "2 passages kept.\n"
    assert spanlab("memory", "import", file).returncode == 0
    listed = spanlab("memory", "list", "--entity", "eiffel tower")
    assert listed.stderr == "shared memory: 2 passages\n"
    second, first = (line.split("\t") for line in listed.stdout.splitlines())
    assert first[2:] == ["eiffel tower", "The tower is 330 metres tall."]
    assert "search, https://a.example/" in first[1]
    assert "unknown source" in second[1]
    assert spanlab("memory", "pin", first[0]).returncode == 0
    assert spanlab("memory", "block", second[0]).returncode == 0
    marked = spanlab("memory", "list").stdout
    assert "https://a.example/, pinned" in marked
    assert "unknown source, blocked" in marked
    assert spanlab("memory", "export", "-o", out).returncode == 0
    (kept,) = map(json.loads, out.read_text().splitlines())
    assert kept == ENTRY | {"entities": ["eiffel tower"]}
    assert spanlab("memory", "delete", second[0]).returncode == 0
    refused = spanlab("memory", "clear")
    assert (refused.returncode, "Add --yes" in refused.stderr) == (2, True)
    assert spanlab("memory", "clear", "--yes").stderr == "1 passage deleted.\n"
    assert spanlab("memory", "list").stdout == ""


def test_a_line_that_is_no_entry_is_named(spanlab: Run, tmp_path: Path) -> None:
    file = tmp_path / "in.jsonl"
    file.write_text(json.dumps(ENTRY) + '\n{"text": "x", "at": "yesterday"}\n')
    done = spanlab("memory", "import", file)
    assert (done.returncode, "in.jsonl, line 2, at: no entry" in done.stderr) == (1, True)
    assert "no entry 7" in spanlab("memory", "pin", "7").stderr
