"""`spanlab backup` and `spanlab restore` at the command line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_a_backup_comes_back_under_another_home_and_overwrites_only_with_yes(
    spanlab: Run,
    tmp_path: Path,
    write: Callable[..., Path],
    record: Callable[..., dict[str, object]],
) -> None:
    path = write(tmp_path / "items.jsonl", record(1, "The tower leans."))
    assert spanlab("import", path, "--dataset", "mine").returncode == 0
    assert "the database and 0 files" in spanlab("backup", "b.zip").stderr
    refused = spanlab("backup", "b.zip")
    assert refused.returncode == 2
    assert "b.zip already exists: add --yes" in refused.stderr
    assert spanlab("backup", "b.zip", "--yes").returncode == 0
    assert "restored what b.zip" in spanlab("restore", "b.zip", SPANLAB_HOME="other").stderr
    assert "mine" in spanlab("datasets", SPANLAB_HOME="other").stdout
    refused = spanlab("restore", "b.zip", SPANLAB_HOME="other")
    assert refused.returncode
    assert "the database is not empty" in refused.stderr
    assert spanlab("restore", "b.zip", "--yes", SPANLAB_HOME="other").returncode == 0
    assert "packed already" in spanlab("backup", "b.zip.gz").stderr
