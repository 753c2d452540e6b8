"""A full disk: what is said, what is kept, how it goes on. The disk is a small one in memory."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# In a namespace of its own, so that nobody has to be root and nothing stays mounted.
_MOUNTED = 'mount -t tmpfs -o size=16m spanlab "$1" && shift && exec "$@"'
_DAY = Path(__file__).parents[2] / "support" / "day_of_a_full_disk.py"

FULL = "the disk is full; this change is not stored, everything stored before it is kept"

# Of the table of annotators: done, skipped, failed, not annotated.
_DONE_2 = re.compile(r"offline +detector +2 +0 +0 +38")
_DONE_40 = re.compile(r"offline +detector +40 +0 +0 +0")


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, str]]:
    """What each command of ``day_of_a_full_disk.py`` came to: exit status and words."""
    disk = tmp_path_factory.mktemp("disk")
    inside = ["unshare", "--map-root-user", "--mount", "sh", "-c", _MOUNTED, "sh"]
    done = subprocess.run(
        [*inside, disk, sys.executable, _DAY, disk],
        env={name: value for name, value in os.environ.items() if "SPANLAB" not in name},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, f"this needs root or user namespaces: {done.stderr}"
    return {name: (status, words) for name, status, words in json.loads(done.stdout)}


def test_an_import_that_fills_the_disk_says_so_and_keeps_what_was_there(
    day: dict[str, tuple[int, str]],
) -> None:
    status, words = day["import"]
    assert (status, "imported 40 items into 'd'" in words.splitlines()) == (0, True)
    status, words = day["import too much"]
    assert (status, FULL in words) == (1, True)
    status, words = day["read"]
    assert (status, _DONE_2.search(words) is not None) == (0, True)


def test_no_other_import_is_said_to_be_under_way(day: dict[str, tuple[int, str]]) -> None:
    status, words = day["import another"]
    assert (status, FULL in words, "under way" in words) == (1, True, False)


def test_work_on_a_full_disk_ends_with_the_reason_and_is_finished_later(
    day: dict[str, tuple[int, str]],
) -> None:
    """DBOS itself would try to write for ever without a word."""
    status, words = day["annotate"]
    assert (status, FULL in words) == (1, True)
    status, words = day["jobs"]
    assert (status, FULL in words, "locked" in words) == (0, True, False)
    assert "offline annotated" in day["annotate with space"][1]
    status, words = day["read at the end"]
    assert (status, _DONE_40.search(words) is not None) == (0, True)


def test_an_import_goes_on_where_there_is_space_again(day: dict[str, tuple[int, str]]) -> None:
    status, words = day["import with space"]
    assert (status, "imported 40 items into 'e'" in words.splitlines()) == (0, True)
