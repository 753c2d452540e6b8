"""`spanlab tools`."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]
STRANGE = Path(__file__).parents[1] / "tools" / "strange_server.py"


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
