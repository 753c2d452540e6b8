"""A revision of the answer in a trace, and what it changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from pydantic import JsonValue
from rapidfuzz.distance import Levenshtein

from spanlab.schema import Item
from spanlab.schema.trace import TraceStep
from spanlab.text.tokens import tokens

Tag = Literal["same", "deleted", "inserted"]


@dataclass(frozen=True)
class DiffPiece:
    """A part of a revision: characters of the answer that stayed or went, or new ``text``.

    ``start`` and ``end`` are code points of the answer; an insertion stands between the
    characters before and at ``start``, and its ``end`` equals it.
    """

    tag: Tag
    start: int
    end: int
    text: str


class RevisionStep(TraceStep):
    """The whole answer as a model corrected it."""

    kind: Literal["revision"] = "revision"
    text: str

    def shown(self, item: Item) -> dict[str, JsonValue]:
        """Return what it did to the answer, which the editor has."""
        diff: list[JsonValue] = [
            [piece.tag, piece.text]
            if piece.tag == "inserted"
            else [piece.tag, piece.start, piece.end]
            for piece in revision_pieces(item.answer, self.text, item.lang)
        ]
        return {"kind": self.kind, "diff": diff}


def revision_pieces(answer: str, revised: str, lang: str) -> tuple[DiffPiece, ...]:
    """Return the words that a revision kept, deleted and inserted.

    Words are those of the language (a BCP 47 tag), so single characters in Chinese. White space
    that both texts have before a changed word counts as kept.

    Returns:
        Pieces in reading order, no two neighbours of one kind: those that stayed or went make up
        the answer, those that stayed or came in the revision. A deletion precedes the insertion
        that replaces it. Empty if both texts are empty.
    """
    return tuple(_join_pieces(_pieces(answer, revised, lang)))


def _pieces(answer: str, revised: str, lang: str) -> Iterator[DiffPiece]:
    """Compare the words, and the white space before each of them."""
    old, new = tokens(answer, lang), tokens(revised, lang)
    words = Levenshtein.opcodes([answer[a:b] for a, b in old], [revised[a:b] for a, b in new])
    # Where the stretch of each word begins, white space before it included.
    olds, news = [0, *(end for _, end in old)], [0, *(end for _, end in new)]
    for change in words:
        a, b, c, d = change.src_start, change.src_end, change.dest_start, change.dest_end
        if change.tag == "equal":
            for old_at, new_at in zip(range(a, b), range(c, d), strict=True):
                word = revised[news[new_at] : news[new_at + 1]]
                yield from _compare_stretches(answer, olds[old_at], olds[old_at + 1], word)
        else:
            yield from _compare_stretches(answer, olds[a], olds[b], revised[news[c] : news[d]])
    yield from _compare_stretches(answer, olds[-1], len(answer), revised[news[-1] :])


def _compare_stretches(answer: str, start: int, end: int, new: str) -> Iterator[DiffPiece]:
    """Compare two stretches that begin with white space; the text around a change is kept."""
    old = answer[start:end]
    ahead = _common_space(old, new)
    word = old.lstrip()
    behind = len(word) if word and word == new.lstrip() else 0
    cut = end - behind
    yield DiffPiece("same", start, start + ahead, old[:ahead])
    yield DiffPiece("deleted", start + ahead, cut, answer[start + ahead : cut])
    yield DiffPiece("inserted", cut, cut, new[ahead : len(new) - behind])
    yield DiffPiece("same", cut, end, answer[cut:end])


def _common_space(old: str, new: str) -> int:
    """Return how many white characters both texts begin with."""
    pairs = enumerate(zip(old, new, strict=False))
    apart = (at for at, (a, b) in pairs if a != b or not a.isspace())
    return next(apart, min(len(old), len(new)))


def _join_pieces(pieces: Iterator[DiffPiece]) -> Iterator[DiffPiece]:
    """Join neighbours of one kind; between two kept pieces, deletions precede insertions."""
    filled = (piece for piece in pieces if piece.text)
    for is_same, group in groupby(filled, key=lambda piece: piece.tag == "same"):
        run = list(group)
        order: tuple[Tag, ...] = ("same",) if is_same else ("deleted", "inserted")
        for tag in order:
            parts = [piece for piece in run if piece.tag == tag]
            if parts:
                text = "".join(piece.text for piece in parts)
                start = run[-1].end if tag == "inserted" else parts[0].start
                yield DiffPiece(tag, start, parts[-1].end if tag != "inserted" else start, text)
