"""Replies against the sentence that answers the question, and numbers that state nothing."""

from __future__ import annotations

import pytest

from spanlab.schema import Annotation, Item, Passage
from spanlab.systems.offline.detector import OfflineDetector
from spanlab.systems.offline.model import SHIPPED, load

LAKE = "The Serpentine is a lake in Hyde Park, London."
BRITAIN = "London is the capital of the United Kingdom, a country in Europe."
CAPITAL = "Canberra is the capital of Australia. Sydney is its largest city."


def annotated(lang: str, question: str, answer: str, passage: str) -> Annotation:
    item = Item(
        id="1", lang=lang, question=question, answer=answer, passages=(Passage(text=passage),)
    )
    return OfflineDetector(load(SHIPPED)).annotate(item)


@pytest.mark.parametrize(
    ("lang", "question", "answer", "passage", "wrong"),
    [
        ("en", "Is there a lake in Hyde Park?", "No, there is not.", LAKE, "No, there is not"),
        ("en", "Is there a lake in Hyde Park?", "No.", LAKE, "No"),
        (
            "en",
            "Did Ada win the prize?",
            "Yes, Ada won the prize.",
            "Ada did not win the prize in 1990.",
            "Yes",
        ),
        (
            "es",
            "¿Hay un lago en el parque?",
            "No, no hay.",
            "El parque tiene un lago.",
            "No, no hay",
        ),
        (
            "de",
            "Gibt es im Park einen See?",
            "Nein, es gibt keinen See.",
            "Im Park gibt es einen großen See.",
            "Nein, es gibt keinen See",
        ),
        (
            "fr",
            "La tour est-elle ouverte le lundi ?",
            "Oui. Elle ouvre à neuf heures.",
            "La tour n'est pas ouverte le lundi.",
            "Oui",
        ),
        ("ar", "هل الأب في البيت اليوم؟", "نعم", "الأب ليس في البيت اليوم.", "نعم"),
    ],
)
def test_what_another_sentence_answers_otherwise_is_marked_and_refuted(
    lang: str, question: str, answer: str, passage: str, wrong: str
) -> None:
    annotation = annotated(lang, question, answer, passage)
    assert next(answer[part.start : part.end] for part in annotation.hard or ()) == wrong
    (quote,) = annotation.spans[0].evidence
    assert quote.stance == "refutes" and passage[quote.start : quote.end] == quote.text
    assert passage.startswith(quote.text)


@pytest.mark.parametrize(
    ("lang", "question", "answer", "passage"),
    [
        ("en", "What is the capital of Australia?", "Canberra", CAPITAL),
        ("en", "Is there a lake in Hyde Park?", "Yes, there is.", LAKE),
        ("en", "Is there a lake in Hyde Park?", "No idea.", LAKE),
        ("en", "How many moons does Mars have?", "2", "Mars has two moons."),
        ("en", "How many moons does Mars have?", "Two.", "Mars has 2 moons."),
        ("en", "When was the tower built?", "I don't know.", "The tower was built in 1889."),
        ("en", "Who built the tower?", "Unknown", "The tower was built by Gustave Eiffel."),
        ("en", "Which country is London the capital of?", "The UK", BRITAIN),
        ("en", "Which country is London the capital of?", "Britain", BRITAIN),
        ("en", "Is the tower in Rome?", "No, the tower is in Paris.", "The tower is in Paris."),
        ("en", "Is there no lake in Hyde Park?", "No, there is none.", LAKE),
        (
            "en",
            "Is the museum open on Mondays?",
            "No.",
            "The museum is not open on Mondays. The museum is open on all days but Mondays.",
        ),
        ("de", "Gibt es im Park einen See?", "Ja.", "Im Park gibt es einen großen See."),
    ],
)
def test_what_the_passages_answer_alike_or_leave_open_is_refuted_by_nothing(
    lang: str, question: str, answer: str, passage: str
) -> None:
    annotation = annotated(lang, question, answer, passage)
    assert not [quote for span in annotation.spans for quote in span.evidence if quote.note]


def test_a_name_that_the_sentence_does_not_have_is_marked_beside_what_it_says() -> None:
    annotation = annotated("en", "What is the capital of Australia?", "Sydney", CAPITAL)
    assert [(part.start, part.end) for part in annotation.hard or ()] == [(0, 6)]
    (quote,) = annotation.spans[0].evidence
    assert (quote.stance, quote.text) == ("closest", "Canberra is the capital of Australia.")


@pytest.mark.parametrize("sign", [".", ")", " -"])
def test_the_numbers_of_a_list_are_not_marked_but_wrong_lines_are_whole(sign: str) -> None:
    passage = "The Danube flows through Vienna, Bratislava, Budapest and Belgrade."
    question = "Which capitals does the river Danube flow through?"
    answer = f"The Danube flows through:\n\n1{sign} Vienna\n2{sign} Madrid\n3{sign} Budapest"
    annotation = annotated("en", question, answer, passage)
    assert [answer[part.start : part.end] for part in annotation.hard or ()] == ["Madrid"]
