"""What pages show as typed and answered: each transcript is typed, and prints what stands there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
from commands import run_here
from guide_blocks import FOR_DEVELOPERS, TOPICS, blocks, environment, is_shown
from trace_homes import KEYS, living

from spanlab.formats import read

PEERS = Path(__file__).parent / "cli" / "peers"
DATA = Path(__file__).resolve().parent.parent / "data"
RECORDED = {  # what a page calls a file, and the program's own that it stands for
    "chain.json": "traces/openinference-lcel.console.json",
    "project.json": "labelstudio_export_default.json",
    "spans.json": "phoenix_get_spans.json",
}
HOMES = r"http://localhost:\d+"  # Phoenix, as pages name it
ELSEWHERE = {  # blocks of no terminal, by their first lines: what runs them, or why nothing does
    ("api", "Traces go into 'rag'"): "walks/test_first_quarter.py",
    ("adding", '[project.entry-points."spanlab.detectors"]'): "test_other_package.py",
    ("bench", 'data = ["../data"]          # paths are relative to the plan'): "test_guide.py",
    ("campaigns", "1 import"): "a drawing",
    ("campaigns", "{"): "test_guide.py",
    ("detectors", "answers with passages?"): "a drawing",
    ("formats", "{"): "test_guide.py",
    ("install", "python3 -m venv"): "test_wheel.py installs the wheel",
    ("measuring", "jobs:"): "runs on GitHub; its command is run by test_guide.py",
    ("measuring", "   "): "a drawing",
    ("rates", "rate = mean(y)"): "a formula",
    ("detector-span-model", 'system = "You name the spans of an answer'): "test_guide.py",
    ("detector-encoder", "spanlab encoder train reviewed.jsonl"): "needs torch: make test-torch",
    ("integrations", "assert:"): "make test-peers",
    ("integrations", "offline marks 10.3%"): "test_integrations.py compares it",
    ("integrations", "from deepeval import assert_test"): "make test-peers",
    ("integrations", "from ragas import"): "make test-peers",
    ("integrations", "from inspect_ai import"): "make test-peers",
    ("formats", 'records = "results.items"'): "test_guide.py imports by it",
    ("adding", 'title = "OpenCompass"'): "test_recipes.py compares it with the file",
    ("team", "browsers "): "a drawing",
    ("team", "SPANLAB_ALLOWED_HOSTS="): "test_guide.py reads its names",
    ("team", "SPANLAB_INVITE=yes"): "test_project.py reads which variables compose.yaml passes on",
    ("team", "# Caddyfile: TLS"): "configures Caddy, which is not installed",
    ("team", "# nginx\n"): "configures nginx, which is not installed",
    ("team", "# Caddyfile: two app processes"): "configures Caddy, which is not installed",
    ("words", "item "): "a drawing",
}


def transcripts(topic: str) -> list[tuple[str, str]]:
    """Return the commands of a page's transcripts, each with what the page says it prints."""
    text = "".join(block for block in blocks(topic, "text") if block.startswith("$ "))
    pairs = (entry.partition("\n") for entry in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:])
    return [(command, said) for command, _, said in pairs]


def test_every_block_is_run_or_it_is_said_why_not() -> None:
    """Blocks of commands and of Python are run, and lines of data read, by ``test_guide.py``."""
    met = set()
    for topic in (*TOPICS, *FOR_DEVELOPERS):
        for block in blocks(topic, "text", "toml", ""):
            if block.startswith("$ ") or (block.startswith('{"') and '"answer"' in block):
                continue
            known = [key for key in ELSEWHERE if key[0] == topic and block.startswith(key[1])]
            assert known, f"{topic}: nothing runs this\n{block}"
            met |= {known[0]}
    assert met == set(ELSEWHERE)


@pytest.mark.parametrize(
    ("topic", "begin"), [key for key in ELSEWHERE if "drawing" in ELSEWHERE[key]]
)
def test_a_drawing_fits_into_the_column_of_the_app_and_of_the_site(topic: str, begin: str) -> None:
    """Wider lines are broken there, or cut."""
    (drawn,) = (block for block in blocks(topic, "text") if block.startswith(begin))
    lines = drawn.splitlines()
    assert max(map(len, lines)) <= 80
    for line, below in pairwise(lines):
        if "╰──╯" in below:  # of the page Words: under a year
            at = below.index("╰")
            assert line[at : at + 4].isdigit()


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
