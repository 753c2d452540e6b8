"""Files in which an answer's question, model or siblings stand somewhere else than beside it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, read

ASKED, SAID, RIGHT = "When was it built?", "It was built in 1904.", "In 1894."
TALK = f"User: Hello.\n\nAssistant: Hi.\n\nUser: {ASKED}"
SPEAKERS = [
    {"conversation_id": 1, "user": "anna", "text": ASKED},
    {"conversation_id": 1, "user": "max", "text": SAID},
]
MT_BENCH = {"question_id": 81, "model_id": "m", "choices": [{"index": 0, "turns": ["Hi.", SAID]}]}
MT_BENCH_ASKED = {"question_id": 81, "category": "w", "turns": ["Hello.", ASKED]}


def _message(role: str, text: str, *replies: object, **more: object) -> dict[str, object]:
    return {"message_id": text, "role": role, "text": text, "replies": list(replies), **more}


def _version(role: str, *steps: dict[str, Any]) -> dict[str, object]:
    return {
        "type": "multiStep",
        "role": role,
        "steps": [{"type": "contentBlock"} | s for s in steps],
    }


def _text(text: str, **more: object) -> dict[str, object]:
    return {"content": [{"type": "text", "text": text}], **more}


class Case(NamedTuple):
    """What a file holds, and its items' questions, answers and models."""

    rows: list[dict[str, Any]]
    items: list[tuple[str, str, str | None]]
    name: str = "file.jsonl"


DIALOGUE = {"history": ["Hello.", "Hi.", ASKED], "knowledge": RIGHT, "response": SAID}
CASES = {
    "FaithDial": Case(
        [DIALOGUE, DIALOGUE | {"history": [ASKED]}], [(TALK, SAID, None), (ASKED, SAID, None)]
    ),
    "FaithDial's dialogues": Case(
        [{"dialog_idx": 0, "utterances": [DIALOGUE]}] * 2, [(TALK, SAID, None)] * 2
    ),
    "turns": Case([{"user": ASKED, "assistant": SAID, "id": 1}] * 2, [(ASKED, SAID, None)] * 2),
    "HELM": Case(
        [
            {
                "adapter_spec": {"method": "generation"},
                "request_states": [
                    {
                        "instance": {"input": {"text": ASKED}, "id": "id7"},
                        "request": {"model": "m", "prompt": f"Who?\nAnn.\n{ASKED}"},
                        "result": {"success": True, "completions": [{"text": SAID}]},
                    }
                ],
            }
        ],
        [(ASKED, SAID, "m")],
    ),
    "MT-bench's answers": Case([MT_BENCH, MT_BENCH | {"question_id": 82}], [("", SAID, "m")] * 2),
    "LM Studio": Case(
        [
            {
                "name": "c",
                "messages": [
                    {"versions": [{"type": "singleStep", "role": "user", **_text(ASKED)}]},
                    {
                        "versions": [
                            _version("assistant", _text("Old.")),
                            _version(
                                "assistant", _text("Hm.", style={"type": "thinking"}), _text(SAID)
                            ),
                        ],
                        "currentlySelected": 1,
                    },
                ],
                "lastUsedModel": {"identifier": "m"},
            }
        ],
        [(ASKED, SAID, "m")],
    ),
    "UQLM": Case(
        [
            {
                "data": {
                    "prompts": [ASKED, "?"],
                    "responses": [SAID, "!"],
                    "sampled_responses": [["a"], ["b"]],
                },
                "metadata": {"temperature": 1.0},
            }
        ],
        [(ASKED, SAID, None), ("?", "!", None)],
    ),
    "OpenAssistant's trees": Case(
        [
            {
                "message_tree_id": "t",
                "prompt": _message(
                    "prompter", ASKED, _message("assistant", SAID), _message("assistant", RIGHT)
                ),
            }
        ]
        * 2,
        [(ASKED, SAID, None), (ASKED, RIGHT, None)] * 2,
    ),
    "models' answers side by side": Case(
        [
            {
                "question": ASKED,
                "answer": RIGHT,
                "gpt4_answer": SAID,
                "claude_answer": "No.",
                "gpt4_score": 1,
            }
        ],
        [(ASKED, SAID, "gpt4"), (ASKED, "No.", "claude")],
    ),
    "columns called by models": Case(
        [{"prompt": ASKED, "gpt-4o": SAID, "ChatGPT": "No."}],
        [(ASKED, SAID, "gpt-4o"), (ASKED, "No.", "ChatGPT")],
    ),
    "TruthfulQA with a model's answers": Case(
        [{"Question": ASKED, "Best Answer": RIGHT, "Incorrect Answers": "In 1900", "gpt-4o": SAID}],
        [(ASKED, SAID, "gpt-4o")],
    ),
}


def _written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def _items(path: Path, **options: Any) -> list[tuple[str, str, str | None]]:
    reading = ReadOptions(on_warning=lambda _: None, **options)
    items = [record.item for record in read(path, reading)]
    models = [item.meta.get("model") for item in items]
    names = [None if model is None else str(model) for model in models]
    return [(i.question, i.answer, name) for i, name in zip(items, names, strict=True)]


@pytest.mark.parametrize("name", CASES)
def test_what_belongs_to_an_answer_is_found(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    assert _items(_written(tmp_path / case.name, case.rows)) == case.items


def test_questions_of_mt_bench_are_joined_to_its_answers(tmp_path: Path) -> None:
    answers = _written(tmp_path / "m.jsonl", [MT_BENCH])
    asked = _written(tmp_path / "question.jsonl", [MT_BENCH_ASKED])
    assert _items(answers, requests=asked) == [(TALK, SAID, "m")]
    assert [item[1] for item in _items(answers, requests=asked, turns="all")] == ["Hi.", SAID]
    remarks: list[str] = []
    assert len(list(read(answers, ReadOptions(on_warning=remarks.append)))) == 1
    assert "--requests joins" in remarks[0]


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (SPEAKERS, "--speaker NAME"),
        ([{"user": "anna", "message": ASKED}, {"user": "max", "message": SAID}], "--speaker NAME"),
        (
            [{"id": 1, "chat": [{"from": "anna", "value": ASKED}, {"from": "max", "value": SAID}]}]
            * 2,
            "anna, max",
        ),
        (
            [{"Question": ASKED, "Best Answer": RIGHT, "Correct Answers": RIGHT}],
            "--column 'answer=Best Answer'",
        ),
        ([MT_BENCH_ASKED] * 2, "--requests"),
        (
            [{"sender": name, "text": SAID} for name in ("user", "BotA", "user", "BotB")],
            "BotA, BotB",
        ),
        ([{"question": ASKED, "answers": {"A": RIGHT, "B": SAID}}], "--column"),
        (
            [{"question": ASKED, "answers": {"text": [RIGHT, "1889"], "answer_start": [0]}}],
            "--column",
        ),
        ([{"question": ASKED, "outputs": {"thought": "Hm.", "final": SAID}}], "--column"),
        ([{"text": RIGHT, "machine_summaries": [SAID, "No."]}], "answer=machine_summaries.0"),
        ([{"question": ASKED, "answers": [RIGHT], "positive_ctxs": [{"text": RIGHT}]}], "--column"),
        ([{"body": ASKED, "snippets": [{"text": RIGHT}], "ideal_answer": [RIGHT]}], "--column"),
    ],
    ids=[
        "speakers",
        "two speakers",
        "speakers of chats",
        "reference answers",
        "questions",
        "two models and a user",
        "options",
        "SQuAD",
        "parts",
        "summaries",
        "DPR",
        "BioASQ",
    ],
)
def test_what_cannot_be_told_is_refused_with_the_option_that_says_it(
    tmp_path: Path, rows: list[dict[str, Any]], said: str
) -> None:
    with pytest.raises(InputError) as error:
        _items(_written(tmp_path / "file.jsonl", rows))
    assert said in str(error.value)


def test_who_the_model_is_can_be_said(tmp_path: Path) -> None:
    told: dict[str, str] = {}
    path = _written(tmp_path / "log.jsonl", SPEAKERS)
    said = _items(path, speaker="max", on_fields=lambda _, fields: told.update(fields))
    assert said == [(ASKED, SAID, None)]
    assert told == {"text": "messages", "conversation_id": "meta", "user": "meta"}


@pytest.mark.parametrize("name", ["user", "username", "author", "name"])
def test_texts_of_names_that_may_be_a_chat_are_not_read_as_answers_silently(
    tmp_path: Path, name: str
) -> None:
    told: list[str] = []
    rows = [{name: "anna", "text": ASKED}, {name: "max", "text": SAID}]
    path = _written(tmp_path / "log.jsonl", rows)
    assert len(list(read(path, ReadOptions(on_warning=told.append)))) == 2
    assert "anna, max; --speaker NAME" in told[0]
    assert _items(path, speaker="max") == [(ASKED, SAID, None)]


def test_no_field_is_reported_that_the_file_has_not(tmp_path: Path) -> None:
    told: dict[str, str] = {}
    rows = CASES["models' answers side by side"].rows
    reading = ReadOptions(on_fields=lambda _, fields: told.update(fields))
    assert len(list(read(_written(tmp_path / "file.jsonl", rows), reading))) == 2
    assert told["gpt4_answer, claude_answer"] == "answer" and told["answer"] == "reference"
    assert "id" not in told and "model" not in told


@pytest.mark.parametrize("name", ["x" * 201, "a\x01b"])
def test_a_mark_of_somebody_whose_name_nobody_can_have_is_refused(
    tmp_path: Path, name: str
) -> None:
    mark = {"start": 0, "end": 1, "annotator": name}
    rows = [{"question": ASKED, "answer": SAID, "annotations": [mark]}]
    with pytest.raises(InputError, match="annotator: expected"):
        list(read(_written(tmp_path / "file.jsonl", rows)))
