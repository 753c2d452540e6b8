"""A dataset as an annotation campaign makes it: many people, of whom few see each item."""

from __future__ import annotations

import random
from collections.abc import Iterator

from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span

ANSWER = (
    "The bridge over the river was built in 1887 by the engineer Maria Feld, who was born in "
    "Lisbon. It is 412 metres long and carries two lanes and a tram. "
)
_LABELS = ("wrong number", "wrong name", "unsupported")


def crowd(people: int, items: int, *, per_item: int = 3, whole: int = 0) -> Iterator[Record]:
    """Yield items in two languages with gold labels, two detectors, a vote, and some of the people.

    Args:
        people: how many there are; each item has the next ``per_item`` of them.
        items: how many items.
        per_item: people on an item.
        whole: of so many items at the beginning, everybody has annotated each.
    """
    dice = random.Random(people)
    names = [f"annotator-{number:02}" for number in range(people)]
    for at in range(items):
        answer = ANSWER * (1 + at % 3)
        there = (
            names if at < whole else [names[(at * per_item + n) % people] for n in range(per_item)]
        )
        annotations = [_says("gold", AnnotatorKind.GOLD, answer, dice)]
        annotations += [_says(name, AnnotatorKind.PERSON, answer, dice) for name in there]
        annotations += [
            _says(name, AnnotatorKind.DETECTOR, answer, dice) for name in ("one", "two")
        ]
        annotations.append(_says("vote", AnnotatorKind.VOTE, answer, dice))
        item = Item(
            id=f"i{at:03}",
            lang="en" if at % 2 else "fr",
            question=f"What about bridge {at}?",
            answer=answer,
            meta={"model_id": f"model-{at % 3}"},
        )
        yield Record(item=item, annotations=tuple(annotations))


def _says(name: str, kind: AnnotatorKind, answer: str, dice: random.Random) -> Annotation:
    starts = sorted(dice.sample(range(0, len(answer) - 12, 12), dice.randint(0, 3)))
    soft = kind is not AnnotatorKind.PERSON
    spans = tuple(
        Span.of(
            answer,
            start,
            start + dice.randint(3, 12),
            prob=round(dice.uniform(0.1, 1.0), 2) if soft else 1.0,
            label=dice.choice(_LABELS),
        )
        for start in starts
    )
    return Annotation(annotator=name, kind=kind, spans=spans)
