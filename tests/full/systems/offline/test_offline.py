"""The offline detector as others see it: items in, annotations out.

Answers and passages are ours. The spans expected are the words that were made wrong.
"""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from offline_answers import LIGHTHOUSE, annotate

from spanlab.schema import Status

HANGZHOU = "杭州湾跨海大桥全长36公里，于2008年5月1日通车，连接嘉兴和宁波。"


@pytest.mark.parametrize(
    ("lang", "answer", "passage"),
    [
        pytest.param("en", "The tower opened in 1871. " * 500, LIGHTHOUSE * 1000, id="words"),
        pytest.param("zh", "全长52公里。" * 400, HANGZHOU * 600, id="signs"),
        pytest.param("en", "(" * 100_000, "'" * 100_000, id="runs-of-punctuation"),
        pytest.param("en", "One" + "." * 200_000, "Two" + "!?" * 100_000, id="dotted-lines"),
        pytest.param("en", "a" * 100_000, "a1" * 100_000, id="one-word"),
        pytest.param("en", "12 " * 10_000, "13 " * 30_000, id="numbers"),
    ],
)
def test_very_long_texts_come_through(lang: str, answer: str, passage: str) -> None:
    annotation = annotate(answer, passage, lang=lang)
    assert annotation.status is Status.DONE


@given(
    lang=st.sampled_from(["en", "de", "zh", "ar", "hi", "ja", "und"]),
    answer=st.text(max_size=200),
    passages=st.lists(st.text(max_size=200), max_size=3),
    question=st.text(max_size=50),
)
def test_any_text_gives_spans_that_fit(
    lang: str, answer: str, passages: list[str], question: str
) -> None:
    annotation = annotate(answer, *passages, question=question, lang=lang)
    assert annotation.status is Status.DONE
    assert all(one.end <= other.start for one, other in pairwise(annotation.spans))
    covered = {at for part in annotation.hard or () for at in range(part.start, part.end)}
    for span in annotation.spans:  # what is decided is whole spans
        inside = covered & set(range(span.start, span.end))
        assert len(inside) in (0, span.end - span.start)
