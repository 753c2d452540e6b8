"""Answers are read in the forms in which models give them; what is not certain is not read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

import dspy
import pytest
from dspy.utils.exceptions import AdapterParseError
from hypothesis import given
from hypothesis import strategies as st

from spanlab.models.adapters import ChatAnswers, JsonAnswers
from spanlab.models.parsing import PROSE
from spanlab.models.values import Judged, Prob, ReplyModel, Text, Texts, field_value, has_field
from spanlab.text.thoughts import split_reply


class ExplainedPart(ReplyModel):
    """Words that are wrong, and why."""

    text: Text
    probability: Prob
    reason: Text

    @classmethod
    def is_one(cls, given: Mapping[str, object]) -> bool:
        return has_field(given, "text")


class FactJudgement(ReplyModel):
    """Names to look up next, or the verdict."""

    look_up: Texts
    reason: Text
    verdict: Judged
    confidence: Prob

    @classmethod
    def is_one(cls, given: Mapping[str, object]) -> bool:
        return bool(field_value(given, "look_up") or field_value(given, "verdict"))


class Find(dspy.Signature):
    """Find parts."""

    answer: str = dspy.InputField()
    reasoning: str = dspy.OutputField()
    parts: list[ExplainedPart] = dspy.OutputField()


class Judge(dspy.Signature):
    """Judge a fact."""

    fact: str = dspy.InputField()
    judgement: FactJudgement = dspy.OutputField()


class Write(dspy.Signature):
    """Write a text."""

    answer: str = dspy.InputField()
    revised: Annotated[str, PROSE] = dspy.OutputField()


class Translate(dspy.Signature):
    """Translate a text."""

    question: str = dspy.InputField()
    english: str = dspy.OutputField()


class Choose(dspy.Signature):
    """Choose."""

    answer: str = dspy.InputField()
    choice: Literal["a", "b"] = dspy.OutputField()


PARTS = '[{"text": "1999", "reason": "it\'s [2] late", "probability": "80%"}, {"text": "two"}]'
PYTHON = "[Part(text='1999', reason=\"it's [2] late\", probability='80%'), Part(text=\"two\")]"
ONE, TWO = PARTS[1:-1].split(", {", maxsplit=1)[0], '{"text": "two"}'
END = "[[ ## completed ## ]]"
READ = [("1999", "it's [2] late", 0.8), ("two", "", None)]

FORMS = {
    "sections": f"So:\n[[ ## reasoning ## ]]\nIt is.\n[[ ## parts ## ]]\n{PARTS}\n{END}",
    "no reasoning": f"[[ ## parts ## ]]\n{PARTS}",
    "text after the end": f"[[ ## parts ## ]]\n{PARTS}\n[[ ## completed ## ]]\nOr [1]?",
    "words around the list": f"[[ ## parts ## ]]\nHere [1]:\n{PARTS}\nDone.",
    "one line": f"[[ ## reasoning ## ]] It is. [[ ## parts ## ]] {PARTS} [[ ## completed ## ]]",
    "bold markers": f"**[[ ## reasoning ## ]]**\nIt is.\n\n**[[ ## parts ## ]]**:\n{PARTS}",
    "names in bold": f"**reasoning:** It is.\n\n**Parts:** {PARTS}",
    "names as headings": f"## reasoning ##\nIt is.\n\n### Parts\n{PARTS}",
    "tags": f"<reasoning>It is.</reasoning>\n<parts>\n{PARTS}\n</parts>",
    "fence in a section": f"[[ ## parts ## ]]\n```json\n{PARTS}\n```\n[[ ## completed ## ]]",
    "object": f'{{"more": 1, "parts": {PARTS}, "reasoning": "It is"}}',
    "object in words": f'I think [1] so:\n```json\n{{"parts": {PARTS}}}\n```\nThat is all.',
    "text in JSON": json.dumps({"reasoning": "", "parts": PARTS}),
    "list": PARTS,
    "list in a fence": f"```json\n{PARTS}\n```",
    "list in words": f"The answer [see 1] is wrong:\n\n{PARTS}\n\nI hope it helps.",
    "list twice": f"{PARTS}\n\nIn short: {PARTS}",
    "another name": f'{{"incorrect_spans": {PARTS}, "sources": []}}',
    "two floors": f'{{"result": {{"spans": {PARTS}}}}}',
    "own name twice": f'{{"parts": {{"parts": {PARTS}}}}}',
    "lines of objects": f"{ONE}\n{TWO}",
    "other keys": PARTS.replace('"text"', '"Quote"').replace("probability", "Confidence"),
    "Python": PYTHON,
    "Python in a section": f"[[ ## parts ## ]]\n```python\nparts = {PYTHON}\n```",
    "Python's literals": str(json.loads(PARTS)),
    "trailing comma": PARTS.replace("},", ",},").replace("}]", "},]"),
}


@pytest.mark.parametrize("answer", FORMS.values(), ids=FORMS.keys())
@pytest.mark.parametrize("adapter", [ChatAnswers(), JsonAnswers()], ids=["chat", "json"])
def test_parts_are_read_in_every_form(adapter: dspy.Adapter, answer: str) -> None:
    parts = adapter.parse(Find, answer)["parts"]
    assert [(part.text, part.reason, part.probability) for part in parts] == READ


def test_what_was_reasoned_is_read_with_its_lines() -> None:
    fields = ChatAnswers().parse(Find, "[[ ## reasoning ## ]]\n It\n\nis.\n[[ ## parts ## ]]\n[]")
    assert fields == {"reasoning": "It\n\nis.", "parts": []}
    assert list(fields) == ["reasoning", "parts"]


UNCERTAIN = {
    "prose": "I would rather talk about towers.",
    "a word": "[[ ## parts ## ]]\nmaybe",
    "nothing of the kind": '{"answer": 42}',
    "an empty object": "{}",
    "a number": "[[ ## parts ## ]]\n7",
    "two drafts": f'{PARTS}\nNo: [{{"text": "2000"}}]',
    "two sections": f'[[ ## parts ## ]]\n[{{"text": "2000"}}]\n[[ ## parts ## ]]\n{PARTS}',
    "two objects": f'{{"parts": []}} or {{"parts": {PARTS}}}',
    "two lists": f'{{"wrong": {PARTS}, "right": [{{"text": "2000"}}]}}',
    "cut in a text": PARTS[:-9],
    "cut after an element": PARTS[:-16],
    "cut in a section": f"[[ ## parts ## ]]\n{PARTS[:-9]}\n[[ ## completed ## ]]",
    "no text in a part": '[{"reason": "it is wrong", "probability": 0.9}]',
    "a list as text": '[{"text": ["1999", "2000"]}]',
    "texts among words": 'The words ["1999", "2000"] are wrong.',
    "references": "It is right [1], [2].",
    "broken Python": "[Part(text='it's', probability=0.9)]",
    "positions": "[Part('1999', 'late', 0.8)]",
    "code": "[__import__('os')]",
    "deep": "[[ ## parts ## ]]\n" + "[" * 3000,
    "deep in Python": "[Part(text=" + "(" * 3000,
}


NOTHING = {
    "none": "[[ ## parts ## ]]\nNone\n\n[[ ## completed ## ]]",
    "an empty section": "[[ ## parts ## ]]\n\n[[ ## completed ## ]]",
    "not available": "[[ ## parts ## ]]\nN/A",
    "null": '{"parts": null}',
    "a word in JSON": '{"parts": "none"}',
    "bare": "None.",
    "a sentence": "[[ ## parts ## ]]\nThere are no hallucinated words in the answer.",
    "a sentence alone": "No unsupported words were found.",
    "all is right": "[[ ## parts ## ]]\nThe answer is fully supported by the passages.",
}


@pytest.mark.parametrize("answer", NOTHING.values(), ids=NOTHING.keys())
@pytest.mark.parametrize("adapter", [ChatAnswers(), JsonAnswers()], ids=["chat", "json"])
def test_that_nothing_is_wrong_is_an_empty_list_in_any_words(
    adapter: dspy.Adapter, answer: str
) -> None:
    """As a failure it would lose clean answers alone."""
    assert adapter.parse(Find, answer)["parts"] == []


@pytest.mark.parametrize("answer", UNCERTAIN.values(), ids=UNCERTAIN.keys())
@pytest.mark.parametrize("adapter", [ChatAnswers(), JsonAnswers()], ids=["chat", "json"])
def test_what_is_not_certain_is_not_read(adapter: dspy.Adapter, answer: str) -> None:
    with pytest.raises(AdapterParseError):
        adapter.parse(Find, answer)


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        pytest.param('["1999", 2000]', ["1999", "2000"], id="all there is"),
        pytest.param("[[ ## parts ## ]]\n['1999']", ["1999"], id="in its section"),
        pytest.param('[[ ## parts ## ]]\n["1999"]\nSo.', ["1999"], id="in its section, in words"),
        pytest.param('{"parts": ["1999"]}', ["1999"], id="under its name"),
        pytest.param('{"text": "1999"}', ["1999"], id="one object"),
        pytest.param('{"spans": []}', [], id="none under another name"),
        pytest.param('[{"text": "the "best" one"}]', ['the "best" one'], id="quotes in a text"),
        pytest.param("[{'text': '1999'}", ["1999"], id="no bracket at the end"),
    ],
)
def test_a_list_may_be_short(answer: str, texts: list[str]) -> None:
    assert [part.text for part in ChatAnswers().parse(Find, answer)["parts"]] == texts


@pytest.mark.parametrize(
    "piece", [" ", "\n", "#", "*", "[", "{", '"', "'", "<parts>", "```", "P(a=", "[[ ## "]
)
def test_what_a_model_repeats_without_end_is_given_up_soon(piece: str) -> None:
    """Each of these took longer than anybody waits where an expression could begin anywhere."""
    for signature in (Find, Write):
        for answer in (piece * 60_000, f"[[ ## parts ## ]]\n{PARTS[:-1]}{piece * 60_000}."):
            with suppress(AdapterParseError):
                ChatAnswers().parse(signature, split_reply(answer).answer)


JUDGED = '{"look_up": [], "verdict": "refuted", "confidence": 0.9}'


@pytest.mark.parametrize(
    "answer",
    [
        f"[[ ## judgement ## ]]\n{JUDGED}",
        f'{{"judgement": {JUDGED}}}',
        JUDGED,
        f"```json\n{JUDGED}\n```",
        f'{{"result": {JUDGED}}}',
        "Judgement(look_up=[], verdict='Incorrect', confidence=0.9)",
        "[[ ## judgement ## ]]\n{'verdict': 'false', 'score': '90%', 'look_up': None}",
    ],
)
def test_an_object_is_read_in_every_form(answer: str) -> None:
    judged = ChatAnswers().parse(Judge, answer)["judgement"]
    assert (judged.look_up, judged.verdict, judged.confidence) == ([], "refuted", 0.9)


@pytest.mark.parametrize(
    "answer",
    ["{}", '{"judgement": {}}', '{"verdict": ""}', '{"verdict": "banana"}', '"refuted"'],
)
def test_a_judgement_that_decides_nothing_is_none(answer: str) -> None:
    with pytest.raises(AdapterParseError):
        ChatAnswers().parse(Judge, answer)


TEXT = "It was built\n\nin 1889, “parts: all”."


@pytest.mark.parametrize(
    "answer",
    [
        f"[[ ## revised ## ]]\n{TEXT}\n[[ ## completed ## ]]",
        f"**revised:** {TEXT}",
        f"<revised>{TEXT}</revised>",
        json.dumps({"revised": TEXT}),
        json.dumps({"corrected_answer": TEXT}),
        json.dumps([TEXT]),
        f"```\n{TEXT}\n```",
        TEXT,
    ],
)
def test_a_text_is_read_in_every_form(answer: str) -> None:
    assert ChatAnswers().parse(Write, answer) == {"revised": TEXT}


@pytest.mark.parametrize("answer", [TEXT, '{"reply": "It"}', '{"english": 7}', "{}", "[]"])
def test_bare_text_is_read_only_where_a_field_takes_it(answer: str) -> None:
    with pytest.raises(AdapterParseError):
        ChatAnswers().parse(Translate, answer)


def test_fields_of_other_kinds_are_left_to_dspy() -> None:
    answer = "[[ ## choice ## ]]\n'a'\n[[ ## completed ## ]]"
    assert ChatAnswers().parse(Choose, answer) == {"choice": "a"}


PIECES = ["[[ ## parts ## ]]", "[[ ## completed ## ]]", "**parts**:", PARTS, PYTHON, "[]", '["a"]']
NOISE = ["{", "}", "[", "]", "'", '"', "text", "\n", "\u2028", "```json\n", "\n```", "Part(", ")"]


@given(st.lists(st.sampled_from(PIECES + NOISE), max_size=16).map("".join))
def test_whatever_comes_is_read_as_it_stands_or_not_at_all(answer: str) -> None:
    try:
        parts = ChatAnswers().parse(Find, answer)["parts"]
    except AdapterParseError:
        return
    assert {part.text for part in parts} <= {"1999", "two", "a"}, "nothing is made up"


@given(
    st.lists(
        st.builds(ExplainedPart, text=st.text(), reason=st.text(), probability=st.none()),
        max_size=3,
    )
)
def test_any_text_survives_in_json_and_in_python(parts: list[ExplainedPart]) -> None:
    written = [part.model_dump() for part in parts]
    calls = ", ".join(f"Part(text={p.text!r}, reason={p.reason!r})" for p in parts)
    for answer in (json.dumps(written), str(written), f"[{calls}]"):
        assert read_parts(answer) == [(p.text, p.reason) for p in parts]


def read_parts(answer: str) -> list[tuple[str, Any]]:
    """Return texts and reasons in an answer's section."""
    read = ChatAnswers().parse(Find, f"[[ ## parts ## ]]\n{answer}\n[[ ## completed ## ]]")
    return [(part.text, part.reason) for part in read["parts"]]
