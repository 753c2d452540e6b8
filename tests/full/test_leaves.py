"""A system, benchmarks or the memory can be taken out: the rest imports, helps, draws and reads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from steps import step

import spanlab
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span
from spanlab.storage import Store

_HOME = Path(spanlab.__file__).parent
LEAVES = (
    *(f"spanlab.systems.{file.parent.name}" for file in sorted(_HOME.glob("systems/*/doors.py"))),
    "spanlab.bench",
    "spanlab.memory",
)
_WITHOUT = """
import sys
from importlib import import_module
from importlib.abc import MetaPathFinder
from pathlib import Path
from spanlab import doors


class Gone(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if any(name == leaf or name.startswith(f"{leaf}.") for leaf in doors.hidden):
            raise ModuleNotFoundError(f"{name} is taken out")


doors.hidden.update(sys.argv[1].split(","))
sys.meta_path.insert(0, Gone())
"""
_HELP = f"""{_WITHOUT}
from spanlab.cli import main
sys.argv[1:] = ["--help"]
main()
"""
_ALL = f"""{_WITHOUT}
import spanlab
from streamlit.testing.v1 import AppTest
from typer.testing import CliRunner

home = Path(spanlab.__file__).parent
for file in sorted(home.rglob("*.py")):
    name = ".".join(("spanlab", *file.relative_to(home).with_suffix("").parts))
    name = name.removesuffix(".__init__")
    if not any(f"{{name}}.".startswith(f"{{leaf}}.") for leaf in doors.hidden):
        # Integrations import what they are for, which not everybody has.
        if not {{"migrations", "integrations", "__main__"}} & set(name.split(".")):
            import_module(name)
from spanlab.cli.app import app
for command in doors.commands():
    result = CliRunner().invoke(app, [command, "--help"])
    assert result.exit_code == 0, (command, result.output)
for page in doors.pages():
    if page.group != doors.OWN:
        code = f"from pkgutil import resolve_name; resolve_name({{page.place!r}})()"
        drawn = AppTest.from_string(code, default_timeout=60).run()
        assert not drawn.exception, (page.title, drawn.exception)
from spanlab.schema import OtherStep
from spanlab.storage import Store
with Store.open() as store:
    said = store.record("mine", "a").by("offline")
assert all(isinstance(step, OtherStep) for step in said.trace), said.trace
assert [step.root for step in said.trace] == [
    {{"kind": "revision", "text": "It is so."}},
    {{"kind": "thought", "text": "Look it up."}},
    {{"kind": "reasoning", "number": 1, "text": "It is NOT so.", "does": "Final Answer"}},
]
print("drawn", *(page.title for page in doors.pages()))
"""


def _run(program: str, leaves: tuple[str, ...]) -> str:
    command = [sys.executable, "-c", program, ",".join(leaves)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.mark.parametrize(
    ("leaf", "command"),
    [
        ("spanlab.systems.safe", "verifier-data"),
        ("spanlab.systems.veritrail", "stages"),
        ("spanlab.systems.encoder", "calibrate"),
        ("spanlab.systems.offline", "train-offline"),
        ("spanlab.bench", "bench"),
        ("spanlab.memory", "memory"),
    ],
)
def test_a_command_goes_with_its_room(leaf: str, command: str) -> None:
    if not (_HOME / leaf.removeprefix("spanlab.").replace(".", "/")).is_dir():
        pytest.skip(f"{leaf} is taken out")
    named = [line.split()[0] for line in _run(_HELP, (leaf,)).splitlines() if line.split()]
    assert command not in named
    assert "annotate" in named


def test_without_all_of_them_the_rest_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path))
    answer = "It is NOT so."
    said = Annotation(
        annotator="offline",
        kind=AnnotatorKind.DETECTOR,
        spans=(Span.of(answer, 6, 9),),
        trace=(
            step("revision", text="It is so."),
            step("thought", text="Look it up."),
            step("reasoning", number=1, text=answer, does="Final Answer"),
        ),
    )
    with Store.open() as store:
        store.import_records(
            "mine", [Record(item=Item(id="a", answer=answer), annotations=(said,))]
        )
    drawn = _run(_ALL, LEAVES).split()
    assert {"drawn", "Review", "Compare", "Detect"} <= {*drawn}
    assert "Memory" not in drawn
