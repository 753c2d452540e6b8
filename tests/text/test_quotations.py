"""Quotations: what is quoted, and whether a source has it."""

from __future__ import annotations

import pytest

from spanlab.text.quotations import find_quotation, quotations_in

SOURCE = (
    "The bridge was opened on 19 March 1932 by the premier, Jack Lang. It took eight years to "
    "build and cost 6.25 million pounds, “a sum nobody had fore-\nseen”. It was efﬁcient work."
)

MARKS = {
    "en": "He said “it took eight years” here.",
    "de": "Er sagte „it took eight years“ dazu.",
    "cs": "Řekl „it took eight years” a dost.",
    "fr": "Il dit « it took eight years ».",
    "es": "Dijo «it took eight years» y calló.",
    "da": "Han sagde »it took eight years« der.",
    "sv": "Hon sade ”it took eight years” där.",
    "ja": "彼は「it took eight years」と言った。",
    "zh": "他说：“it took eight years”。",
    "ar": "قال «it took eight years» هنا.",
    "straight": 'He said "it took eight years" here.',
    "single": "He said ‘it took eight years’ and didn’t laugh.",
    "blockquote": "He said:\n> it took eight years",
    "low single": "Er sagte ‚it took eight years‘ dazu.",
}


@pytest.mark.parametrize("answer", MARKS.values(), ids=MARKS)
def test_quotation_marks_of_all_languages(answer: str) -> None:
    (place,) = quotations_in(answer)
    assert answer[place.start : place.end] == "it took eight years"


def test_short_ones_and_apostrophes_are_no_quotations() -> None:
    assert quotations_in("The “Times” isn't what it's said to be; it’s ‘new’.") == []


WORD_FOR_WORD = {
    "as it is": "opened on 19 March 1932",
    "line end": "a sum nobody had foreseen",
    "ligature": "it was efficient work",
    "spaces": "It took  eight\nyears to build",
    "typography": 'cost 6.25 million pounds, "a sum nobody',
    "ellipsis": "opened on 19 March 1932 … It took eight years",
    "bracketed ellipsis": "The bridge was opened […] by the premier",
    "bracketed letter": "[t]he bridge was opened",
    "inserted": "by the premier [of the state], Jack Lang",
    "blockquote": "It took eight years\n> to build",
}


@pytest.mark.parametrize("quotation", WORD_FOR_WORD.values(), ids=WORD_FOR_WORD)
def test_what_is_forgiven_is_word_for_word(quotation: str) -> None:
    found = find_quotation(quotation, SOURCE)
    assert found is not None
    assert found.changed == ()


CHANGED = {
    "a word": ("It took nine years to build and cost 6.25 million pounds", ["nine"]),
    "a compound": ("by the premier, Jack Langer. It took eight years", ["Langer"]),
    "added": ("It took eight long years to build", ["long"]),
    "a number": ("opened on 19 March 1933 by the premier", ["1933"]),
    "left out": ("It took years to build and cost 6.25 million pounds", ["years"]),
}


@pytest.mark.parametrize(("quotation", "words"), CHANGED.values(), ids=CHANGED)
def test_changed_words_are_named(quotation: str, words: list[str]) -> None:
    found = find_quotation(quotation, SOURCE)
    assert found is not None
    assert [quotation[start:end] for start, end in found.changed] == words


@pytest.mark.parametrize(
    "quotation",
    [
        pytest.param("It was the longest arch in the whole world by far", id="other words"),
        pytest.param("the premier said that the work had been worth it", id="some same words"),
        pytest.param("6.25 million pounds … opened on 19 March", id="the wrong way round"),
    ],
)
def test_what_no_run_of_the_source_is_like_is_not_there(quotation: str) -> None:
    assert find_quotation(quotation, SOURCE) is None
