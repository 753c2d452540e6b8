"""Answers that have something in common: what is true of one tells something of the others.

Answers to one question, the same answer given twice, and answers made from one document are no
independent observations: an interval, a test and a split for training count them as one cluster.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from spanlab.schema.item import Item

_COMMON: Final = 0.2  # share of the answers above which a text may relate nothing …
# What may relate nothing, if what differs, and of how many answers it is at least then.
_UNRELATED: Final = (
    ("question", "passages", 6),
    ("answer", "question", 2),
    ("passages", "question", 2),
)


class Relations(NamedTuple):
    """What an answer may have in common with others, as hashes; None where it lacks it."""

    question: int | None = None
    answer: int | None = None
    passages: int | None = None


def relations_of(question: str, answer: str, passages: Iterable[str] = ()) -> Relations:
    """Return the hashes of an answer's texts; case and spaces of question and answer are nothing.

    They are equal for equal texts in one process only.
    """
    question, answer, texts = _plain(question), _plain(answer), frozenset(passages)
    return Relations(
        hash(question) if question else None,
        hash(answer) if answer else None,
        hash(texts) if any(texts) else None,
    )


def relations_in(item: Item) -> Relations:
    """Return the relations of an item; see ``relations_of``."""
    return relations_of(item.question, item.answer, [passage.text for passage in item.passages])


def clusters(answers: Sequence[Relations]) -> list[int]:
    """Return the cluster of each answer, by the position of its first one.

    Answers with the same question, the same answer or the same set of passages are in one cluster.
    What more than a fifth of the answers have relates nothing if they differ in what it belongs to:
    a question with different passages is an instruction, such as "Summarise", an answer to
    different questions a stock reply, such as "Yes", and passages with different questions are all
    that there is to know.
    """
    alone = frozenset[Hashable]().union(*(_common(answers, *rule) for rule in _UNRELATED))
    parent = list(range(len(answers)))

    def root(at: int) -> int:
        while parent[at] != at:
            parent[at] = at = parent[parent[at]]
        return at

    first: dict[tuple[str, int], int] = {}
    for at, answer in enumerate(answers):
        for name, value in zip(Relations._fields, answer, strict=True):
            if value is None or value in alone:
                continue
            there, here = sorted((root(first.setdefault((name, value), at)), root(at)))
            parent[here] = there
    return [root(at) for at in range(len(answers))]


def related(items: Iterable[Item]) -> list[int]:
    """Return the cluster of each item, as ``clusters`` does."""
    return clusters([relations_in(item) for item in items])


def _common(
    answers: Sequence[Relations], name: str, unless: str, least: int
) -> frozenset[Hashable]:
    """Return values that many answers have, at least so many, which differ in something else.

    How much they differ does not depend on how many answers were asked for each time.
    """
    others: dict[int, set[int]] = defaultdict(set)
    different = {other for answer in answers if (other := getattr(answer, unless)) is not None}
    counts = Counter(value for answer in answers if (value := getattr(answer, name)) is not None)
    often = {value for value, n in counts.items() if n >= least and n > _COMMON * len(answers)}
    for answer in answers:
        value, other = getattr(answer, name), getattr(answer, unless)
        if value in often and other is not None:
            others[value].add(other)
    return frozenset(
        value for value in often if len(others[value]) > max(_COMMON * len(different), 1)
    )


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())
