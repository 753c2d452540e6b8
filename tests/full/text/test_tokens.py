from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from perfect import answers

from spanlab.text.extents import Extent
from spanlab.text.tokens import tokens


def test_french_words_are_those_of_spacy_but_for_hyphens_which_alignment_parts_anyway(
    shared: Path,
) -> None:
    """Its own rules take seconds of every process for compounds that stay whole."""
    import spacy  # here, as it takes every process a second

    texts = [answer.text for answer in answers(shared) if answer.lang == "fr"]
    rules = spacy.blank("fr")

    for text in texts:
        theirs = [Extent(word.idx, word.idx + len(word)) for word in rules(text)]
        assert at_hyphens(text, tokens(text, "fr")) == at_hyphens(text, theirs)


def at_hyphens(text: str, words: list[Extent]) -> list[str]:
    pieces = (re.findall(r"[-‐‑–]|[^-‐‑–]+", text[start:end]) for start, end in words)
    return [piece for word in pieces for piece in word if not piece.isspace()]


def test_a_language_is_loaded_beside_what_else_goes_on() -> None:
    """In a process of its own: here others have loaded it."""
    program = (
        "import sys, time; from spanlab.text.tokens import load\n"
        "assert 'spacy' not in sys.modules\n"
        "loading, meanwhile = load('fr'), 0\n"
        "while not loading.done():\n"
        "    meanwhile += 1; time.sleep(0.01)\n"
        "assert meanwhile >= 10, meanwhile\n"
        "assert load('fr-CA').done() and not load('fi').done()\n"
        "load('xx-unknown').result()\n"
        "assert 'spacy.lang.fi' in sys.modules and 'spacy.lang.sv' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
