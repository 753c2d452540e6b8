"""Evidence selection: which sentences of some nodes settle a claim (§3.1.2 of the paper)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple

import dspy

from spanlab.mappers import sentences
from spanlab.schema import ProcessNode


class SelectEvidence(dspy.Signature):
    """Choose the sentences that settle whether a claim is true.

    Choose every sentence that strongly implies, by itself or together with others, that the claim
    or a part of it is true or that it is false. Choose also the sentences without which these
    cannot be understood: the heading above them, who "he" is, which year "then" was. A sentence
    that is merely on the same topic is not chosen. Then summarise what the chosen sentences say
    on the claim, with the names, numbers, dates and headings that it depends on, and add nothing
    that they do not say. If no sentence is chosen, the list is empty.
    """

    sentences: str = dspy.InputField(desc="numbered sentences; a line of dashes parts texts")
    claim: str = dspy.InputField(desc="the claim")
    parts: str = dspy.InputField(desc="what the claim says, part by part")
    chosen: list[str] = dspy.OutputField(desc="the numbers of the chosen sentences")
    summary: str = dspy.OutputField(desc='what they say on the claim; "none" if none is chosen')


class Sentence(NamedTuple):
    """Characters ``[start, end)`` of a node's text."""

    node: str
    start: int
    end: int
    text: str


@dataclass(frozen=True)
class Selected:
    """What one prompt chose: sentences in order, their summary, and ids that nobody gave."""

    sentences: tuple[Sentence, ...]
    summary: str
    unknown: int = 0


def sentences_of(nodes: Sequence[ProcessNode], lang: str) -> list[Sentence]:
    """Return the sentences of nodes, in order."""
    return [
        Sentence(node.id, place.start, place.end, node.text[slice(*place)])
        for node in nodes
        for place in sentences(node.text, lang)
    ]


def batches(found: Sequence[Sentence], most: int) -> Iterator[Sequence[Sentence]]:
    """Yield the sentences in groups of at most ``most``."""
    for start in range(0, len(found), most):
        yield found[start : start + most]


def numbered(found: Sequence[Sentence]) -> str:
    """Show sentences as a prompt does: numbered from 1, texts parted by a line of dashes."""
    lines = enumerate(found, start=1)
    texts = groupby(lines, key=lambda line: line[1].node)
    return "\n---\n".join(
        "\n".join(f"[{number}] {each.text}" for number, each in text) for _, text in texts
    )


def chosen(found: Sequence[Sentence], prediction: dspy.Prediction) -> Selected:
    """Read what a predictor of `SelectEvidence` returned for these sentences."""
    numbers = {_number(each) for each in prediction.chosen or ()}
    known = [each for index, each in enumerate(found, start=1) if index in numbers]
    summary = (prediction.summary or "").strip()
    return Selected(tuple(known), summary if known else "", len(numbers) - len(known))


def agreed(found: Sequence[Sentence], answers: Sequence[Selected], least: int) -> Selected:
    """Return the sentences that at least ``least`` answers chose.

    Args:
        found: the sentences that the prompt showed.
        answers: what several answers to one prompt chose, at least one.
        least: how many must agree.

    Returns:
        The sentences, with the summary of the answer whose choice comes closest to them.
    """
    votes = Counter(sentence for each in answers for sentence in each.sentences)
    kept = tuple(each for each in found if votes[each] >= least)
    closest = min(answers, key=lambda each: len(set(each.sentences).symmetric_difference(kept)))
    unknown = sum(each.unknown for each in answers)
    return Selected(kept, closest.summary if kept else "", unknown)


def _number(text: object) -> int | None:
    digits = str(text).strip(" []().#")
    return int(digits) if digits.isdecimal() and len(digits) < 10 else None
