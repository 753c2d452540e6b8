"""What a function that is a detector may return."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import spanlab
from spanlab import Item, Span
from spanlab.base.errors import InputError, UsageError
from spanlab.schema import Status
from spanlab.testing import assert_grounded

ANSWER = "Built in 1989, opened in 1989."
ROWS = [{"question": "When?", "answer": ANSWER}, {"question": "When is it?", "answer": ANSWER}]


def marks(found: Any) -> list[tuple[int, int, float, str | None]]:
    def judge(item: Item) -> Any:
        return found

    record = spanlab.annotate(ROWS, judge)[0]
    annotation = record.by("judge")
    assert annotation is not None
    assert annotation.status is Status.DONE, annotation.note
    return [(span.start, span.end, span.prob, span.label) for span in annotation.spans]


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (None, []),
        ([], []),
        ((9, 13), [(9, 13, 1.0, None)]),
        ([(9, 13), (25, 29)], [(9, 13, 1.0, None), (25, 29, 1.0, None)]),
        ([(np.int64(9), np.int64(13), np.float32(0.5))], [(9, 13, 0.5, None)]),
        (np.array([[9, 13]]), [(9, 13, 1.0, None)]),
        ([(9, 13, "date")], [(9, 13, 1.0, "date")]),
        ({"start": 9, "end": 13, "prob": 0.25}, [(9, 13, 0.25, None)]),
        ([{"start": 9.0, "end": 13.0, "label": "date"}], [(9, 13, 1.0, "date")]),
        ("opened", [(15, 21, 1.0, None)]),
        (["1989", "1989"], [(9, 13, 1.0, None), (25, 29, 1.0, None)]),
        ([{"start": 9, "end": 13, "score": 0.25}], [(9, 13, 0.25, None)]),
        ([{"text": "opened", "probability": 0.75}], [(15, 21, 0.75, None)]),
        ([Span.of(ANSWER, 9, 13, prob=0.5), (25, 29)], [(9, 13, 0.5, None), (25, 29, 1.0, None)]),
    ],
)
def test_what_a_function_returns_are_its_marks(
    found: Any, expected: list[tuple[int, int, float, str | None]]
) -> None:
    assert marks(found) == expected


def test_a_text_that_is_not_in_the_answer_is_told_of() -> None:
    def judge(item: Item) -> list[str]:
        return ["opened", "closed"]

    annotation = spanlab.annotate(ROWS, judge)[0].by("judge")
    assert annotation is not None
    assert annotation.note == "1 of 2 texts not in the answer, or more than once: kept as claims"
    assert [claim.text for claim in annotation.claims] == ["closed"]


@pytest.mark.parametrize("end", [SystemExit(4), KeyboardInterrupt()])
def test_what_ends_a_program_ends_the_call_and_not_the_next(end: BaseException) -> None:
    def judge(item: Item) -> None:
        raise end

    async def judge_later(item: Item) -> None:
        raise end

    for function in (judge, judge_later):
        with pytest.raises(type(end)):
            spanlab.annotate(ROWS, function)
    assert spanlab.detect("Paris", detector=lambda item: "Paris").spans


def test_a_coroutine_function_is_a_detector_and_a_span_keeps_what_it_says() -> None:
    async def judge(item: Item) -> list[Span]:
        return [Span.of(item.answer, 9, 13).model_copy(update={"note": "another year"})]

    annotation = spanlab.annotate(ROWS, judge)[0].by("judge")
    assert annotation is not None
    assert annotation.spans[0].note == "another year"


@pytest.mark.parametrize("found", [7, [(9, 99)], [object()], [{"begins": 3}]])
def test_what_no_mark_is_fails_and_all_that_fail_are_no_clean_answers(found: Any) -> None:
    def judge(item: Item) -> Any:
        return found

    with pytest.raises(InputError, match=r"annotate: all 2 records failed, the first one by: "):
        spanlab.annotate(ROWS, judge)
    calls: list[str] = []

    def sometimes(item: Item) -> Any:
        calls.append(item.id)
        return found if len(calls) == 1 else []

    with pytest.warns(UserWarning, match="annotate: 1 of 2 records failed, the first one by: "):
        first, second = spanlab.annotate(ROWS, sometimes)
    states = [a.status for record in (first, second) for a in record.annotations]
    assert states == [Status.FAILED, Status.DONE]


def test_what_is_no_input_is_refused_with_what_would_be_right() -> None:
    rows = [{"answer": "Paris has 3 million inhabitants."}]
    anything: Any = None  # what a type checker would refuse
    three: Any = 3
    for call, said in (
        (
            lambda: spanlab.annotate(rows, [lambda _: [], lambda _: []]),
            "the name that `def` gives it",
        ),
        (lambda: spanlab.annotate(anything), "expected rows, a frame or a path, found None"),
        (lambda: spanlab.load(anything), "expected rows, a frame or a path, found None"),
        (
            lambda: spanlab.detect("Paris", passages=[anything]),
            "expected texts, dicts or documents, found",
        ),
        (
            lambda: spanlab.detect("Paris", passages=three),
            "expected texts, dicts or documents, found 3",
        ),
        (lambda: spanlab.check("Paris", "x", detector=["offline"]), "take one detector"),
        (lambda: spanlab.annotate(rows, []), "no detector is named"),
        (lambda: assert_grounded("Paris", [anything]), "expected texts, dicts or documents, found"),
    ):
        with pytest.raises((UsageError, InputError), match=re.escape(said)):
            call()


def test_columns_by_name_are_annotated_and_one_name_is_no_list_of_letters() -> None:
    columns: Any = {"answer": ["Paris is big.", "Rome is old."]}
    records = spanlab.annotate(columns, "offline")
    assert [record.item.answer for record in records] == ["Paris is big.", "Rome is old."]
    assert spanlab.rates(records, annotators="offline").annotators == ("offline",)
    assert set(spanlab.agreement(records, "offline").kinds) == {"offline"}


def test_a_failed_annotation_does_not_print_as_a_clean_answer() -> None:
    def judge(item: Item) -> Any:
        return [(9, 99)]

    found = spanlab.detect(ANSWER, detector=judge)
    assert str(found).startswith("judge failed: ")
    assert ANSWER not in found._repr_html_()
