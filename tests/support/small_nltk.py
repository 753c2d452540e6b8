"""The data that METEOR needs, of our own and small: a tower is a spire, and no word is another."""

from __future__ import annotations

from pathlib import Path

_SYNSET = "00000000 00 n 02 tower 0 spire 0 000 | a tall building\n"
_WORDS = {
    "lexnames": "00\tnoun.all\t1\n",
    "data.noun": _SYNSET,
    "index.noun": "spire n 1 0 1 0 00000000\ntower n 1 0 1 0 00000000\n",
}
_KINDS = ("adj", "adv", "noun", "verb")
_EMPTY = (
    *("cntlist.rev", "index.sense"),
    *(name for kind in _KINDS for name in (f"data.{kind}", f"index.{kind}", f"{kind}.exc")),
)
_SENTENCES = ("abbrev_types.txt", "collocations.tab", "ortho_context.tab", "sent_starters.txt")


def write_nltk(folder: Path) -> Path:
    """Write a WordNet of one meaning and a sentence model that has learnt nothing."""
    wordnet = folder / "corpora" / "wordnet"
    model = folder / "tokenizers" / "punkt_tab" / "english"
    wordnet.mkdir(parents=True)
    model.mkdir(parents=True)
    for name in _EMPTY:
        (wordnet / name).write_text("", encoding="utf-8")
    for name, text in _WORDS.items():
        (wordnet / name).write_text(text, encoding="utf-8")
    for name in _SENTENCES:
        (model / name).write_text("", encoding="utf-8")
    return folder
