"""Calls that judge an earlier answer are put aside; those that go on from it answer."""

from __future__ import annotations

from typing import Any

import pytest
from openinference_rows import call, row

from spanlab.traces.reader import record_of
from spanlab.traces.runs import runs_of

ANSWER = "The tower opened in 1889 and stands on the Champ de Mars in Paris."
QUESTION = "When did the tower open?"
FOUND = "The Eiffel Tower was opened to the public on 31 March 1889."
LONG = "It says please and is kind enough, as far as one can tell from so little of it."
STEPS = "It has 1665 steps, as the sign beside the door says."
CLEAR = "Is the tower in Paris older than a century?"


def pipeline(asks: str, reply: str, **more: Any) -> list[dict[str, Any]]:
    """Spans: a root, a search, a call that says ``first``, and one that reads ``asks`` behind."""
    question = more.get("question", QUESTION)
    system = [("system", more["system"])] if "system" in more else []
    root = {"asked": more["root"]} if "root" in more else {}
    query = {"asked": more["query"]} if "query" in more else {}
    return [
        row("run", **root),
        row("search", "run", (1, 2), kind="RETRIEVER", found=[FOUND], **query),
        call(
            "chat1",
            "run",
            (3, 4),
            ("user", f"Context: {FOUND}\n\nQuestion: {question}"),
            wrote=more.get("first", ANSWER),
        ),
        call("chat2", "run", (5, 6), *system, ("user", asks), wrote=reply),
    ]


def answers(spans: list[dict[str, Any]]) -> list[tuple[str, str]]:
    items = [record_of(run.spans, run.number).item for run in runs_of(spans)]
    return [(item.question, item.answer) for item in items]


POLITE = "Is this answer polite? Answer yes or no."
JUDGING: dict[str, tuple[str, str, dict[str, str]]] = {
    "a yes that is offered": (f"{POLITE}\n\n{ANSWER}", "yes", {}),
    "a run whose question is known": (f"{POLITE}\n\n{ANSWER}", "Yes.", {"query": QUESTION}),
    "a root with the question": (f"{POLITE}\n\n{ANSWER}", "Yes.", {"root": QUESTION}),
    "a yes that is not offered": (f"Is this answer polite?\n{ANSWER}", "Yes.", {}),
    "a yes with more behind it": (f"{POLITE} {ANSWER}", "Yes, it is polite.", {}),
    "beside the question": (
        f"Question: {QUESTION}\nAnswer: {ANSWER}\nIs it on topic? Reply TRUE or FALSE",
        "FALSE",
        {},
    ),
    "a question of its own about the run's answer": (
        f"Question: Is it polite? Answer yes or no.\nAnswer: {ANSWER}",
        "yes",
        {"query": QUESTION},
    ),
    "beside passages": (
        f"Documents:\n[1] {FOUND}\n[2] Another.\n\nAnswer: {ANSWER}\n\nBacked up? yes or no",
        "no",
        {},
    ),
    "German": (f"Ist das höflich? Antworte mit ja oder nein.\n{ANSWER}", "nein", {}),
    "Japanese": (f"丁寧ですか?はいかいいえで答えてください。\n{ANSWER}", "はい。", {}),
    "Thai": (f"คำตอบนี้สุภาพหรือไม่ ตอบ ใช่ หรือ ไม่ใช่: {ANSWER}", "ใช่", {}),
    "Korean": (f"공손합니까? 예 또는 아니오로 답하세요. {ANSWER}", "예", {}),
    "a number within a scale": (f"How kind is this, from 1 to 5?\n{ANSWER}", "4", {}),
    "the highest number": (f"How kind is this, from 1 to 5?\n{ANSWER}", "5", {}),
    "a number with a comma": (f"Wie höflich, von 0 bis 1?\n{ANSWER}", "0,8", {}),
    "a word that the answer has": (
        f"{POLITE}\n\nYes. {ANSWER}",
        "yes",
        {"first": f"Yes. {ANSWER}"},
    ),
    "a number of several": (
        f"Question: {QUESTION}\nAnswer: {ANSWER}\nHow helpful, out of 10?",
        "8/10",
        {},
    ),
    "a label": (f"Label as SAFE or UNSAFE: {ANSWER}", "SAFE", {}),
    "an object": (f"Return JSON. {ANSWER}", f'{{"polite": true, "reason": "{LONG}"}}', {}),
    "an object beside the question": (
        f"Question: {QUESTION}\nAnswer: {ANSWER}\nReturn JSON.",
        '{"polite": true}',
        {},
    ),
    "an object in a fence": (f"Return JSON. {ANSWER}", '```json\n{"tone": 0.4}\n```', {}),
    "a critic that is sent the answer": (ANSWER, "APPROVE", {"system": "APPROVE or REJECT it."}),
}
GOING_ON: dict[str, tuple[str, str, dict[str, str]]] = {
    "a better draft": (f"Improve this draft: {ANSWER}", "It opened on 31 March 1889.", {}),
    "a corrected one": (
        f"Correct this draft, say no more than is needed: {ANSWER}",
        "No, it opened on 31 March 1889, and not later than that.",
        {},
    ),
    "a shorter one": (f"Shorten this for '{QUESTION}': {ANSWER}", "In 1889.", {"query": QUESTION}),
    "a word, of which the task says more": (f"Name the tower: {ANSWER}", "Tower, of Paris.", {}),
    "a part of a word of the task": (f"О ком закон? {ANSWER}", "он", {}),
    "a sentence of the task": (
        f"Say 'it is as old as it is' or its age. {ANSWER}",
        "it is as old as it is",
        {},
    ),
    "a translation": (f"Translate: {ANSWER}", "Der Turm wurde 1889 eröffnet.", {}),
    "an object with an answer": (
        f"As JSON with answer and confidence: {ANSWER}",
        '{"answer": "Yes", "confidence": 0.9}',
        {},
    ),
    "a result of reasoning": (f"{QUESTION} {ANSWER} So the answer (a number) is", "1889", {}),
    "a number out of it": (f"How many is that? {STEPS}", "1665", {"first": STEPS}),
    "one of the question's choices": (
        f"Question: Was it 1887 or 1889?\nDraft: {ANSWER}\nGive the final answer.",
        "1889",
        {"question": "Was it 1887 or 1889?"},
    ),
    "a yes to the question": (f"Is it old? {ANSWER} So:", "Yes", {"question": "Is it old?"}),
    "a question about notes": (
        f"Context: {ANSWER}\n\nQuestion: Is it open? Answer yes or no.",
        "Yes",
        {"question": "Take notes."},
    ),
    "a question about notes that are its context": (
        f"Is it open? Answer yes or no.\n<context>{ANSWER}</context>",
        "Yes",
        {"question": "Take notes."},
    ),
    "the question of the search about notes": (
        f"Here are notes. {ANSWER} Is it open to all? Answer yes or no.",
        "Yes",
        {"question": "Take notes.", "query": "Is it open to all?"},
    ),
    "the run's question about notes": (
        f"Here are notes. {ANSWER} Is it open to all? Answer yes or no.",
        "Yes",
        {"question": "Take notes.", "root": "Is it open to all?"},
    ),
    "a rewritten question": (f"{FOUND}\n\n{CLEAR}", "Yes", {"first": CLEAR}),
    "a rewritten query": (
        f"{FOUND}\n\nage of the tower in Paris\n\nyes or no",
        "Yes",
        {"first": "age of the tower in Paris", "query": "age of the tower in Paris"},
    ),
}


@pytest.mark.parametrize("case", JUDGING)
def test_a_verdict_on_the_answer_is_not_the_answer(case: str) -> None:
    asks, reply, more = JUDGING[case]
    assert answers(pipeline(asks, reply, **more)) == [(QUESTION, more.get("first", ANSWER))]


@pytest.mark.parametrize("case", GOING_ON)
def test_a_call_that_goes_on_from_an_answer_answers(case: str) -> None:
    asks, reply, more = GOING_ON[case]
    assert [answer for _, answer in answers(pipeline(asks, reply, **more))] == [reply]


def test_a_verdict_that_the_run_gives_back_is_its_answer() -> None:
    root, *calls = pipeline(f"{POLITE}\n\n{ANSWER}", "yes")
    root["attributes"]["output.value"] = "yes"
    assert [answer for _, answer in answers([root, *calls])] == ["yes"]


def test_of_an_answer_that_was_said_twice_the_last_is_judged() -> None:
    spans = pipeline(f"{POLITE}\n\n{ANSWER}", "yes")
    again = call("chat0", "run", (2, 3), ("user", f"Question: {QUESTION}"), wrote=ANSWER)
    assert answers([*spans[:2], again, *spans[2:]]) == [(QUESTION, ANSWER)]


def test_no_call_judges_what_is_said_while_it_runs() -> None:
    *spans, _ = pipeline("", "")
    beside = call("chat2", "run", (3, 6), ("user", f"{POLITE}\n\n{ANSWER}"), wrote="yes")
    assert [answer for _, answer in answers([*spans, beside])] == [ANSWER, "yes"]


def test_what_several_notes_say_of_a_question_is_the_answer() -> None:
    notes = [f"Notes: part {n} was done in {1886 + n}." for n in range(1, 4)]
    spans = [row("all")]
    for n, note in enumerate(notes, 1):
        spans += [call(f"a{n}", "all", (n, n), ("user", f"Note part {n}."), wrote=note)]
    for ask, reply in (("When was it done?", "In 1889."), ("Is it done? yes or no", "Yes")):
        asks = "\n".join((*notes, f"Question: {ask}"))
        last = call("b", "all", (8, 9), ("user", asks), wrote=reply)
        assert [answer for _, answer in answers([*spans, last])] == [reply]


def test_runs_side_by_side_keep_their_answers_and_what_judging_them_cost() -> None:
    spans = [row("all")]
    for n, at in enumerate((0, 1), 1):
        said = f"Tower number {n} was opened in the year 188{n}."
        asked = call(f"a{n}", "all", (at, 10), ("user", f"Tell of tower {n}."), wrote=said)
        judged = call(f"b{n}", "all", (11, 20 + n), ("user", f"{POLITE} {said}"), wrote="yes")
        judged["attributes"]["llm.token_count.prompt"] = n
        spans += [asked, judged]
    items = [record_of(run.spans, run.number).item for run in runs_of(spans)]
    assert [(item.question, item.meta["input_tokens"]) for item in items] == [
        ("Tell of tower 1.", 1),
        ("Tell of tower 2.", 2),
    ]
