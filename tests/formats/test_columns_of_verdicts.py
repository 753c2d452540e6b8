"""Tables with verdicts on whole answers, as people bring them to ``spanlab.load``."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import pytest

import spanlab
from spanlab.base.errors import InputError

_GOOD, _BAD = "faithful", "hallucinated"
Verdicts = dict[str, tuple[bool | None, ...]]


def _rows(columns: Sequence[str], *cells: Sequence[Any]) -> list[dict[str, Any]]:
    return [
        {
            "question": f"What is {n}?",
            "answer": f"It is {n} here.",
            **dict(zip(columns, row, strict=True)),
        }
        for n, row in enumerate(cells)
    ]


def _load(rows: list[dict[str, Any]], **options: Any) -> tuple[list[spanlab.Record], str]:
    """Return the records, and all remarks."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        records = spanlab.load(rows, **options)
    return records, "\n".join(str(one.message) for one in told)


def _read(rows: list[dict[str, Any]], **options: Any) -> tuple[Verdicts, str]:
    """Return what each annotator says of the answers in their order, and all remarks."""
    records, told = _load(rows, **options)
    names = dict.fromkeys(a.annotator for record in records for a in record.annotations)
    said: Verdicts = {}
    for name in names:
        by_name = [record.by(name) for record in records]
        said[name] = tuple(one.answer_hallucinated if one else None for one in by_name)
    return said, told


@pytest.mark.parametrize(
    ("columns", "judge"),
    [
        (("thumbs_up", "thumbs_down"), "thumbs"),
        (("user_thumbs_up", "user_thumbs_down"), "user"),
        (("upvotes", "downvotes"), "feedback"),
        (("votes_up", "votes_down"), "feedback"),
        (("like", "dislike"), "feedback"),
        (("n_likes", "n_dislikes"), "feedback"),
        (("positive", "negative"), "feedback"),
        (("👍", "👎"), "feedback"),
        (("correct", "incorrect"), "gold"),
        (("is_supported", "is_unsupported"), "gold"),
    ],
)
def test_what_is_for_and_against_an_answer_is_one_verdict(
    columns: tuple[str, str], judge: str
) -> None:
    said, told = _read(_rows(columns, (0, 1), (1, 0), (1, 0), (0, 0), (0, 0)))
    assert said == {judge: (True, False, False, None, None)}
    assert f"{columns[0]!r} and {columns[1]!r} together" in told
    assert "1 hallucinated, 2 not, 2 undecided" in told
    if judge != "gold":
        counted, _ = _read(_rows(columns, ("0", "5"), ("7", "1"), ("2", "2")))
        assert counted == {judge: (True, False, None)}


@pytest.mark.parametrize(
    "columns", [("correct", "incorrect"), ("good_answer", "bad_answer"), ("right", "wrong")]
)
def test_right_and_wrong_answers_that_are_numbers_are_no_votes(columns: tuple[str, str]) -> None:
    assert _read(_rows(columns, (1889, 1901), (4, 5)))[0] == {}


def test_votes_that_are_counted_are_told_by_their_names() -> None:
    said, _ = _read(_rows(("n_correct", "n_incorrect"), (0, 3), (2, 1)))
    assert said == {"gold": (True, False)}


def test_thumbs_of_several_people_are_theirs_and_down_means_hallucinated() -> None:
    columns = ("ada_thumbs_up", "ada_thumbs_down", "ben_thumbs_up", "ben_thumbs_down")
    said, _ = _read(_rows(columns, (0, 1, 1, 0), (1, 0, 0, 0)))
    assert said == {"ada": (True, False), "ben": (False, None)}
    alone, _ = _read(_rows(("ada_thumbs_down", "ben_thumbs_down"), (1, 0), (0, 1)))
    assert list(alone.values()) == [(True, None), (None, True)]


@pytest.mark.parametrize(
    ("column", "cells", "verdicts"),
    [
        ("thumbs_up", (1, 0, 0), (False, None, None)),
        ("user_thumbs_up", (True, False, False), (False, None, None)),
        ("thumbs_up", (1, -1, -1), (False, True, True)),
        ("thumbs", (1, 0, 0), (False, True, True)),
    ],
)
def test_no_thumb_up_is_none_down(
    column: str, cells: tuple[Any, ...], verdicts: tuple[bool | None, ...]
) -> None:
    said, told = _read(_rows((column,), *((cell,) for cell in cells)))
    assert list(said.values()) == [verdicts]
    assert ("0 means no thumb given; hallucinated_if=" in told) == (None in verdicts)


def test_votes_that_are_no_number_are_refused() -> None:
    rows = _rows(("thumbs_up", "thumbs_down"), *[(1, 0)] * 60, (1, "many"))
    with pytest.raises(InputError, match="row 61, thumbs_down: this is not a number of votes"):
        _read(rows)


@pytest.mark.parametrize("columns", [("Ada", "Ben", "Cleo"), ("label_ada", "is_ben", "label_cleo")])
def test_each_column_of_a_rule_is_an_annotator(columns: tuple[str, ...]) -> None:
    rules = [f"{column}=1" for column in columns]
    said, _ = _read(_rows(columns, (1, 1, 0), (0, 0, 1)), hallucinated_if=rules)
    assert list(said.values()) == [(True, False), (True, False), (False, True)]


def test_a_rule_on_a_score_names_a_detector_and_leaves_other_judges_theirs() -> None:
    columns = ("faithfulness", "thumbs", "correct", "label")
    rows = _rows(columns, (0.9, "👎", "yes", 0), (0.2, "👍", "no", 1))
    rule = "faithfulness<0.5"
    said, told = _read(rows, hallucinated_if=rule)
    assert said == {"faithfulness": (False, True)} and "'label' may judge answers" in told
    said, _ = _read(
        [{n: v for n, v in row.items() if n != "label"} for row in rows], hallucinated_if=rule
    )
    assert said == {"faithfulness": (False, True), "gold": (False, True)}
    rows = _rows(("faithfulness", "thumbs"), (0.9, "👎"), (0.2, "👍"))
    said, _ = _read(rows, hallucinated_if=rule)
    assert said == {"faithfulness": (False, True), "thumbs": (True, False)}
    (first, _), _ = _load(rows, hallucinated_if=rule)
    assert [one.kind for one in first.annotations] == ["detector", "person"]


def test_a_rule_on_labels_leaves_another_judgement_of_nobodys_in_meta() -> None:
    said, told = _read(
        _rows(("label", "correct"), (1, "yes"), (0, "no")), hallucinated_if="label=1"
    )
    assert said == {"gold": (True, False)} and "'correct' may judge answers, and is kept" in told


def test_rules_on_a_label_and_a_metric_are_two_judgements() -> None:
    rows = _rows(("label", "faithfulness"), (1, 0.9), (0, 0.2))
    rules = ["label=1", "faithfulness<0.5"]
    said, _ = _read(rows, hallucinated_if=rules)
    assert said == {"gold": (True, False), "faithfulness": (False, True)}
    (first, _), _ = _load(rows, hallucinated_if=rules)
    assert [one.kind for one in first.annotations] == ["gold", "detector"]


@pytest.mark.parametrize(
    "columns",
    [
        ("Annotator A", "Annotator B", "Annotator C"),
        ("label_a", "label_b", "label_c"),
        ("A label", "B label", "C label"),
        ("Ada", "Ben", "Cleo"),
        ("rater1", "rater2", "rater3"),
        ("expert1", "coder1", "annotator1"),
    ],
)
def test_each_judge_by_name_letter_or_number_is_an_annotator(columns: tuple[str, ...]) -> None:
    said, _ = _read(_rows(columns, (_BAD, _GOOD, _GOOD), (_GOOD, _GOOD, _BAD)))
    assert list(said.values()) == [(True, False), (False, False), (False, True)]


def test_an_article_is_no_judge() -> None:
    said, _ = _read(_rows(("is_a_hallucination",), ("yes",), ("no",)))
    assert said == {"gold": (True, False)}


@pytest.mark.parametrize(
    ("column", "values", "judge"),
    [
        ("annotator1", (_BAD, _GOOD), "annotator1"),
        ("feedback", ("negative", "positive"), "feedback"),
        ("gold", (_BAD, _GOOD), "gold"),
        ("ground_truth", (_BAD, _GOOD), "gold"),
    ],
)
def test_a_column_is_read_where_values_are_verdicts(
    column: str, values: tuple[str, str], judge: str
) -> None:
    said, _ = _read(_rows((column,), *[(value,) for value in values]))
    assert said == {judge: (True, False)}


def test_neutral_feedback_judges_nothing() -> None:
    said, _ = _read(_rows(("feedback",), ("neutral",), ("negative",)))
    assert said == {"feedback": (None, True)}


@pytest.mark.parametrize("column", ["Ada", "status", "expected", "thumbs_down"])
def test_what_may_judge_and_is_not_read_is_remarked(column: str) -> None:
    values = (1, 0) if column == "thumbs_down" else (_BAD, _GOOD)
    said, told = _read(_rows((column,), *[(value,) for value in values]))
    assert not said and f"{column!r} may judge answers" in told and "hallucinated_if=" in told


def test_the_reference_of_answers_that_are_verdicts_stays_it() -> None:
    rows = [{"question": "Is it so?", "answer": _BAD, "gold": _GOOD}]
    (record,) = spanlab.load(rows)
    assert (record.item.meta["reference"], record.annotations) == (_GOOD, ())


@pytest.mark.parametrize(
    ("rule", "values"),
    [("1", (True, False)), ("1", ("TRUE", "FALSE")), ("true", (1, 0)), ("False", ("0", "1"))],
)
def test_one_and_true_are_the_same_for_a_rule(rule: str, values: tuple[Any, Any]) -> None:
    rows = _rows(("label",), *[(value,) for value in values])
    said, told = _read(rows, hallucinated_if=f"label={rule}")
    assert said == {"gold": (True, False)} and "nowhere" not in told


@pytest.mark.parametrize(
    ("column", "rule", "cells", "says"),
    [
        ("label", "2", (1, 0), "'label' is nowhere '2', so it calls no answer hallucinated; its"),
        ("label", "bad,wrong", ("bad", "ok"), "'label' is nowhere 'wrong'; its values are bad, ok"),
        ("votes", "2", ({"ann": "yes"}, {"ann": "no"}), "its values are yes, no"),
    ],
)
def test_a_rule_whose_value_is_nowhere_is_told_with_those_that_are(
    column: str, rule: str, cells: tuple[Any, Any], says: str
) -> None:
    rows = _rows((column,), *[(cell,) for cell in cells])
    _, told = _read(rows, hallucinated_if=f"{column}={rule}")
    assert says in told


def test_a_rule_on_a_list_is_refused_and_on_its_elements_are_annotators() -> None:
    rows = _rows(("labels",), ([1, 1, 0],), ([0, 0, 0],))
    with pytest.raises(InputError, match=r"row 1, labels: .*this is a list.*labels\.0=VALUE"):
        _read(rows, hallucinated_if="labels=1")
    said, _ = _read(rows, hallucinated_if=[f"labels.{n}=1" for n in range(3)])
    assert list(said.values()) == [(True, False), (True, False), (False, False)]


def test_an_id_that_comes_again_is_refused() -> None:
    rows = [{"id": name, "answer": f"It is {name}."} for name in ("a", "b", "a")]
    with pytest.raises(InputError, match="row 3, id: an item with this id already exists"):
        spanlab.load(rows)
    by_models = [{**row, "model": f"model {n}"} for n, row in enumerate(rows)]
    assert len(spanlab.load(by_models)) == 3
