"""What a release does before tests, and what the forge runs."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_release_takes_its_steps_in_order_and_tags_last() -> None:
    command = ["make", "--dry-run", "release", "VERSION=99.0.1"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    steps = (
        "release.py",
        "lock guide check test test-peers",
        "uv build",
        "commit",
        'tag "v99.0.1"',
    )
    assert sorted(steps, key=done.stdout.index) == list(steps)
