"""What rooms offer at their doors: all of it stands where it is said to, in ours and in others'."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from pkgutil import resolve_name

import pytest

from spanlab import doors
from spanlab.schema import Permission


def test_all_that_is_offered_stands_where_it_is_said_to() -> None:
    for place in (
        *(command.place for command in doors.commands().values()),
        *(page.place for page in doors.pages()),
    ):
        assert callable(resolve_name(place)), place
    assert {page.needs for page in doors.pages()} <= set(Permission.__members__)
    for offer in doors.offers("detectors"):
        assert offer.load().name == offer.name


_OTHER = """
from spanlab.doors import Command, Room

OURS = Command("Say hello, too.", "saying:hello")
ROOM = Room(commands={"hello": Command("Say hello.", "saying:hello"), "annotate": OURS})
"""


def test_a_package_brings_a_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, about = tmp_path / "greeter", tmp_path / "greeter-1.dist-info"
    package.mkdir()
    about.mkdir()
    (package / "__init__.py").touch()
    (package / "doors.py").write_text(_OTHER)
    (package / "saying.py").write_text("def hello() -> None:\n    print('hello')\n")
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: greeter\nVersion: 1\n")
    points = "[spanlab.rooms]\ngreeter = greeter.doors:ROOM\nbroken = greeter.nowhere:ROOM\n"
    (about / "entry_points.txt").write_text(points)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def spanlab(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "spanlab", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True)

    assert spanlab("hello").stdout == "hello\n"
    helped = spanlab("--help")
    assert helped.stdout.rstrip().endswith("Say hello.")
    assert "Say hello, too." not in helped.stdout, "no package takes a command of ours"
    assert "'broken' of another package is left out" in helped.stderr
