"""What pages show as typed and answered: each transcript is typed, and prints what stands there."""

from __future__ import annotations

from itertools import pairwise

import pytest
from guide_blocks import FOR_DEVELOPERS, TOPICS, blocks

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
    ("integrations", "offline marks 10.3 %"): "test_integrations.py compares it",
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
    assert met == {key for key in ELSEWHERE if key[0] in {*TOPICS, *FOR_DEVELOPERS}}


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
