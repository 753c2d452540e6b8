"""Long answers: everything in the passages counts, and nothing else changes."""

from __future__ import annotations

import random
import re
from itertools import product

from spanlab.detection import detector
from spanlab.schema import Annotation, Item, Passage

TOWNS = ("Aldmere", "Brixholt", "Corvane", "Dunsby", "Eskerry", "Fallowick")
THINGS = ("lighthouse", "railway bridge", "town library", "grain mill", "observatory")
BUILDERS = ("Ann Tolley", "Piet Haverkamp", "Ruth Osei", "Jan Wolny", "Ida Brekke", "Leo Marchetti")
YEAR = re.compile(r"\b1[89]\d\d\b")


def passages() -> list[str]:
    rng = random.Random(5)
    return [
        f"The {thing} of {town} was designed by {rng.choice(BUILDERS)} and finished in "
        f"{rng.randrange(1800, 1990)}. It stands {rng.randrange(12, 90)} metres above the old "
        f"harbour, and {rng.randrange(2, 40)} thousand people came to see it in its first year. "
        f"After a fire in {rng.randrange(1800, 1990)} the upper floors were rebuilt in brick by "
        f"the firm of {rng.choice(BUILDERS)}. Since {rng.randrange(1800, 1990)} the {thing} is "
        f"owned by the district council, which opens it on {rng.randrange(3, 60)} days a year."
        for town, thing in product(TOWNS, (*THINGS, *(f"second {thing}" for thing in THINGS)))
    ]


def said_of(answer: str, texts: list[str]) -> Annotation:
    item = Item(
        id="a",
        lang="en",
        question="What is known of these buildings?",
        answer=answer,
        passages=tuple(Passage(text=text) for text in texts),
    )
    annotation = detector("offline").annotate(item)
    annotation.check(item)
    return annotation


def shuffled(texts: list[str]) -> str:
    sentences = [f"{each}." for text in texts for each in text.removesuffix(".").split(". ")]
    return " ".join(random.Random(7).sample(sentences, len(sentences)))


def test_an_answer_copied_from_sixty_passages_has_no_suggestions() -> None:
    texts = passages()
    answer = shuffled(texts)
    assert len(texts) == 60
    assert len(answer) > 20_000
    assert said_of(answer, texts).spans == ()


def test_years_that_no_passage_has_are_found_a_long_copied_answer() -> None:
    texts = passages()
    answer = shuffled(texts)
    changed = random.Random(9).sample([found.start() for found in YEAR.finditer(answer)], 20)
    wrong = "".join("7" if at - 1 in changed else one for at, one in enumerate(answer))
    found = said_of(wrong, texts)
    marked = {at for span in found.spans for at in range(span.start, span.end)}
    assert {at for at in changed if at not in marked} == set()
    assert len(found.spans) < 4 * len(changed)
