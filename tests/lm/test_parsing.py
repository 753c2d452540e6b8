"""Answers read at once have the values that dspy gives them; all others are dspy's to read."""

from __future__ import annotations

from typing import Any, Literal

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError
from hypothesis import given, settings
from hypothesis import strategies as st

from spanlab.detectors.ucsc.replies import Judgement, Part
from spanlab.lm.adapters import ChatAnswers, JsonAnswers
from spanlab.lm.parsing import read_object, read_sections


class Find(dspy.Signature):
    """Find parts."""

    answer: str = dspy.InputField()
    reasoning: str = dspy.OutputField()
    parts: list[Part] = dspy.OutputField()
    judgement: Judgement = dspy.OutputField()


class Choose(dspy.Signature):
    """Choose."""

    answer: str = dspy.InputField()
    choice: Literal["a", "b"] = dspy.OutputField()


PARTS = '[{"text": "1999", "reason": "no", "probability": "80%"}, "2000"]'
JUDGED = '{"look_up": ["Eiffel"], "verdict": "refuted", "confidence": 0.9}'
SECTIONS = (
    f"So:\n[[ ## reasoning ## ]]\n  It is\n\nlate. \n[[ ## parts ## ]]\n{PARTS}\n\n"
    f"[[ ## judgement ## ]]\n{JUDGED}\n[[ ## completed ## ]]\n"
)
OBJECT = f'{{"more": 1, "parts": {PARTS}, "judgement": {JUDGED}, "reasoning": "It is"}}'


def test_sections_are_read_as_dspy_reads_them() -> None:
    read = read_sections(Find, SECTIONS)

    assert read == dspy.ChatAdapter().parse(Find, SECTIONS)
    assert read is not None
    assert list(read) == ["reasoning", "parts", "judgement"]
    assert read["reasoning"] == "It is\n\nlate."
    assert [(part.text, part.probability) for part in read["parts"]] == [
        ("1999", 0.8),
        ("2000", None),
    ]
    assert read["judgement"].look_up == ["Eiffel"]


def test_an_object_is_read_as_dspy_reads_it() -> None:
    read = read_object(Find, OBJECT)

    assert read == dspy.JSONAdapter().parse(Find, OBJECT)
    assert read is not None
    assert list(read) == ["reasoning", "parts", "judgement"]


UNUSUAL = {
    "text beside a marker": SECTIONS.replace("ning ## ]]\n", "ning ## ]] "),
    "a marker that is none": SECTIONS.replace("[[ ## parts ## ]]", "[[ ## parts"),
    "given twice": SECTIONS + SECTIONS,
    "one missing": SECTIONS.replace("judgement", "verdict"),
    "broken JSON": SECTIONS.replace(PARTS, PARTS[:-1]),
    "code block": SECTIONS.replace(PARTS, f"```json\n{PARTS}\n```"),
    "null": SECTIONS.replace(PARTS, "null"),
    "not a list": SECTIONS.replace(PARTS, "7"),
    "Python": SECTIONS.replace(PARTS, "['1999']"),
}


@pytest.mark.parametrize("answer", UNUSUAL.values(), ids=UNUSUAL.keys())
def test_what_is_unusual_is_left_to_dspy(answer: str) -> None:
    assert read_sections(Find, answer) is None
    assert outcome(ChatAnswers(), Find, answer) == outcome(dspy.ChatAdapter(), Find, answer)


ODD = {
    "no object": "[1]",
    "text where a list belongs": '{"reasoning": "", "parts": "[]", "judgement": {}}',
    "a number where text belongs": '{"reasoning": 7, "parts": [], "judgement": {}}',
    "null where text belongs": '{"reasoning": null, "parts": [], "judgement": {}}',
    "one missing": '{"reasoning": "", "parts": []}',
    "words around it": f"Here: {OBJECT} Done.",
    "cut off": OBJECT[:-9],
}


@pytest.mark.parametrize("answer", ODD.values(), ids=ODD.keys())
def test_an_odd_object_is_left_to_dspy(answer: str) -> None:
    assert read_object(Find, answer) is None
    assert outcome(JsonAnswers(), Find, answer) == outcome(dspy.JSONAdapter(), Find, answer)


def test_fields_of_other_kinds_are_left_to_dspy() -> None:
    answer = "[[ ## choice ## ]]\n'a'\n[[ ## completed ## ]]"

    assert read_sections(Choose, answer) is None
    assert ChatAnswers().parse(Choose, answer) == {"choice": "a"}


PIECES = [
    "[[ ## reasoning ## ]]",
    "[[ ## parts ## ]]",
    "[[ ## judgement ## ]]",
    "[[ ## completed ## ]]",
    "[[ ## reasoning",
    PARTS,
    JUDGED,
    "[]",
    '["a\u2028b"]',
    "text",
    "\n",
    "\n",
    "\n",
    " ",
    "\u2028",
    "\r\n",
]


@given(st.lists(st.sampled_from(PIECES), max_size=24).map("".join))
@settings(max_examples=400)
def test_whatever_comes_means_what_it_means_to_dspy(answer: str) -> None:
    assert outcome(ChatAnswers(), Find, answer) == outcome(dspy.ChatAdapter(), Find, answer)


@given(
    st.permutations(["reasoning", "parts", "judgement", "completed"]),
    st.lists(st.sampled_from([PARTS, JUDGED, "[]", '["a\u2028b"]', " x ", ""]), min_size=4),
)
@settings(max_examples=200)
def test_sections_in_any_order_mean_what_they_mean_to_dspy(
    names: list[str], values: list[str]
) -> None:
    pairs = zip(names, values, strict=False)
    answer = "\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in pairs)
    assert outcome(ChatAnswers(), Find, answer) == outcome(dspy.ChatAdapter(), Find, answer)


def outcome(adapter: dspy.Adapter, kind: type[dspy.Signature], answer: str) -> Any:
    """Return the fields, or that there are none."""
    try:
        return adapter.parse(kind, answer)
    except AdapterParseError:
        return AdapterParseError
