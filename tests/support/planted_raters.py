"""People who err at planted rates, one of them a spammer."""

from __future__ import annotations

import numpy as np

from spanlab.schema import Annotation, AnnotatorKind, Interval, Item, Record

PEOPLE = {"anna": (0.95, 0.97), "ben": (0.8, 0.95), "cora": (0.7, 0.9), "spam": (0.3, 0.7)}


def marked(who: str, words: np.ndarray, kind: AnnotatorKind = AnnotatorKind.PERSON) -> Annotation:
    """Every mark is a word of six characters."""
    hard = [Interval(start=6 * at, end=6 * at + 6) for at in np.flatnonzero(words).tolist()]
    return Annotation(annotator=who, kind=kind, hard=tuple(hard))


def planted(n: int = 200) -> tuple[list[Record], list[np.ndarray]]:
    """People that err at planted rates, on answers of ten words; ten items have gold labels."""
    rng = np.random.default_rng(2)
    truths = [rng.random(10) < 0.3 for _ in range(n)]
    records = []
    for at, truth in enumerate(truths):
        said = [
            marked(who, np.where(truth, rng.random(10) < sens, rng.random(10) > spec))
            for who, (sens, spec) in PEOPLE.items()
        ]
        gold = [marked("gold", truth, AnnotatorKind.GOLD)] if at < 10 else []
        item = Item(id=f"i{at}", lang="en", question="", answer="abcde " * 10)
        records.append(Record(item=item, annotations=(*said, *gold)))
    return records, truths
