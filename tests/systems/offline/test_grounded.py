"""Answers made from their passages: what training makes of them, and what is read of many."""

from __future__ import annotations

import random

import numpy as np
import pytest
from offline_answers import annotate, marked

from spanlab.detection import DetectorSpec, detector
from spanlab.schema import Item, Passage, Span
from spanlab.systems.offline.links import link
from spanlab.systems.offline.passages import PassageWords, read_passages
from spanlab.systems.offline.training import LabelledItem, balanced
from spanlab.systems.offline.words import read
from spanlab.text.extents import Extent
from spanlab.text.labels import ItemLabels

OWN = "The lighthouse of Graaholm was designed by Niels Nebelong. It is 33 metres tall."


def item(*, question: str, wrong: bool) -> LabelledItem:
    hard = (Extent(0, 4),) if wrong else ()
    labels = ItemLabels(id="x", lang="en", soft=(), hard=hard, length=9)
    return LabelledItem(Item(id="x", lang="en", question=question, answer="It stands"), labels)


def test_answers_with_and_without_a_question_weigh_the_same_and_so_do_right_and_wrong() -> None:
    asked, wrong, right = (
        item(question="Does it?", wrong=True),
        item(question="", wrong=True),
        item(question="", wrong=False),
    )
    # Six wrong and two right ones: a right one weighs as three wrong, so twelve against four.
    labelled = [*[asked] * 4, *[wrong] * 6, *[right] * 2]
    weights = balanced(labelled)
    assert weights == pytest.approx([3.0] * 4 + [1.0] * 6 + [3.0] * 2)


def test_no_answer_weighs_more_than_eight_others() -> None:
    labelled = [item(question="Does it?", wrong=True), *[item(question="", wrong=True)] * 100]
    assert balanced(labelled)[0] == 8.0


def others(count: int) -> list[str]:
    draw = random.Random(count)
    return [
        f"The lighthouse of {draw.choice('ABCDE')}{number}by is {draw.randint(10, 60)} metres tall."
        for number in range(count)
    ]


@pytest.mark.parametrize("count", [0, 100, 2000])
def test_what_one_passage_supports_stays_supported_among_many(count: int) -> None:
    passages = others(count)
    passages.insert(count // 2, OWN)
    said = annotate(
        "The lighthouse of Graaholm is 33 metres tall.",
        *passages,
        question="How tall is the lighthouse of Graaholm?",
    )
    assert said.hard == ()


def test_of_many_passages_those_that_match_best_are_read_with_the_sentence_beside() -> None:
    passages = [*others(300), OWN]
    kept = PassageWords(read_passages(passages), frozenset({"graaholm", "tall", "metres"}))
    assert len(kept) < 1_500
    assert {"graaholm", "nebelong", "#33"} <= set(kept.places)


def test_a_strict_reader_marks_what_no_passage_has() -> None:
    answer, passage = "The museum opened in 1901 and shows porcelain.", "The museum opened in 1901."
    strict = DetectorSpec(detector="offline", options={"judge": "passages"})
    found = detector(strict).annotate(
        Item(id="x", lang="en", answer=answer, passages=(Passage(text=passage),))
    )
    start = answer.index("porcelain")
    assert any(span.start <= start < span.end for span in found.hard or ())
    assert all(span.end <= start or span.start >= start - 6 for span in found.hard or ())


@pytest.mark.parametrize(("letters", "linked"), [(80, 1.0), (150, 0.0)])
def test_a_text_without_spaces_is_not_compared_letter_by_letter(
    letters: int, linked: float
) -> None:
    """It took seconds for 100,000 letters, four times as much for twice as many."""
    word = "".join(random.Random(letters).choices("abcdefghij", k=letters))
    texts = PassageWords(read_passages([f"{word}s"]))
    assert link(read(word), texts, 8).linked.tolist() == [linked]


def test_a_span_says_what_stands_in_the_passage_instead() -> None:
    said = annotate("It is 44 metres tall.", "It is 33 metres tall.", question="How tall is it?")
    assert "44" in "".join(marked(said))
    notes = [quote.note for span in said.spans for quote in span.evidence]
    assert "says “33”, not “44”" in notes
    assert isinstance(said.spans[0], Span)


def test_the_probability_of_an_answer_follows_its_likeliest_word_marked_or_not() -> None:
    right = annotate("It is 33 metres tall.", OWN, question="How tall is it?")
    odd = annotate("The lighthouse of Graaholm was planned by Niels Nebelong.", OWN)
    wrong = annotate("It is 91 metres tall.", OWN, question="How tall is it?")
    assert not right.hallucinated
    assert wrong.hallucinated
    probs = [said.answer_prob or 0.0 for said in (right, odd, wrong)]
    assert 0 < probs[0] < probs[1] < probs[2]
    top = max(span.prob for span in wrong.spans)
    assert probs[2] == pytest.approx(
        1 / (1 + np.exp(-(0.91 * np.log(top / (1 - top)) + 0.92))), abs=0.01
    )


def test_a_closed_book_answer_is_also_judged_by_its_own_form() -> None:
    """A word that the passages lack is doubted as it would be without them, and as beside them."""
    passage = "The lighthouse of Graaholm was built of granite by fishermen of the island."
    item = Item(
        id="x",
        lang="en",
        question="When was the lighthouse of Graaholm built?",
        answer="It was built in 1871 by fishermen.",
        passages=(Passage(text=passage),),
    )

    def doubt(item: Item, judge: str) -> float:
        spans = detector(DetectorSpec(detector="offline", options={"judge": judge})).annotate(item)
        return max(span.prob or 0 for span in spans.spans if "1871" in span.text)

    beside, itself = doubt(item, "usual"), doubt(item.model_copy(update={"passages": ()}), "usual")
    both = doubt(item, "closed-book")
    assert min(beside, itself) < both < max(beside, itself)
