"""What pages show as typed and answered: each transcript is typed, and prints what stands there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import run_here
from guide_blocks import TOPICS, blocks, environment, is_shown
from trace_homes import KEYS, living

from spanlab.formats import read

PEERS = Path(__file__).parents[1] / "cli" / "peers"


DATA = Path(__file__).resolve().parents[2] / "data"


RECORDED = {  # what a page calls a file, and the program's own that it stands for
    "chain.json": "traces/openinference-lcel.console.json",
    "project.json": "labelstudio_export_default.json",
    "spans.json": "phoenix_get_spans.json",
}


HOMES = r"http://localhost:\d+"  # Phoenix, as pages name it


def transcripts(topic: str) -> list[tuple[str, str]]:
    """Return the commands of a page's transcripts, each with what the page says it prints."""
    text = "".join(block for block in blocks(topic, "text") if block.startswith("$ "))
    pairs = (entry.partition("\n") for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:])
    return [(command, said) for command, _, said in pairs]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that transcripts name."""
    shutil.copytree(DATA, tmp_path / "data")
    (tmp_path / "eiffel.txt").write_text("The Eiffel Tower in Paris was finished in March 1889.")
    for name, recorded in RECORDED.items():
        shutil.copy(PEERS / recorded, tmp_path / name)
    items = [{"id": str(number), "answer": f"It is {number}."} for number in range(20)]
    items[1], items[7] = ({"id": name, "question": "Which number?"} for name in "bc")
    items[0]["id"] = items[5]["id"] = "a"
    lines = "".join(f"{json.dumps(item)}\n" for item in items)
    (tmp_path / "wrong.jsonl").write_text(lines, "utf-8")
    return tmp_path


@pytest.fixture
def homes() -> Iterator[str]:
    """A server that knows the traces which were recorded; yields its address."""
    with living() as found:
        for record in read(PEERS / RECORDED["spans.json"]):
            found.known |= {str(value) for value in record.item.meta.values()}
        yield found.url


@pytest.mark.parametrize("topic", [topic for topic in TOPICS if transcripts(topic)])
def test_a_transcript_shows_what_is_printed(topic: str, folder: Path, homes: str) -> None:
    for command, shown in transcripts(topic):
        said = typed(re.sub(HOMES, homes, command), folder)
        assert is_shown(shown, said), f"{command}\n{said}"


def typed(command: str, folder: Path) -> str:
    """Type a line; return what it prints, remarks and errors first."""
    words = shlex.split(command)
    assert words.pop(0) == "spanlab"
    done = run_here(words, folder, environment(folder) | KEYS)
    return f"{done.stderr}{done.stdout}"
