"""What of the passages a prompt shows: all that fits, else what speaks of question and answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_same_pieces_are_chosen_in_every_process() -> None:
    """The cache of answers is asked by the prompt's letters."""
    program = (
        "from tests_of_context import FACT, FILLER, context, item\n"
        "texts = [f'{FILLER} {n} {FACT[:n]}' for n in range(30)]\n"
        "print(hash(FACT), context(item(*texts), 'given', 4000).passages)\n"
    ).replace("tests_of_context", "test_context")
    beside = Path(__file__).parents[3] / "detection" / "common"  # those of the fast tier
    path = f"import sys; sys.path.insert(0, {str(beside)!r})\n"
    told = set()
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", path + program],
            capture_output=True,
            text=True,
            check=True,
            timeout=120,
        )
        told.add(done.stdout.split(maxsplit=1)[1])
    assert len(told) == 1
