"""Files of other tools and benchmarks: question, answer, passages and labels without a mapping."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from spanlab.formats import ReadOptions, read
from spanlab.schema import Record

ASKED = "When was the lighthouse built?"
SAID = "It was built in 1904."
PASSAGE = "The lighthouse of Ronn was built in 1894."
OTHER = "Ronn is an island with forty sheep."
EXTENT = [16, 20]


class Case(NamedTuple):
    """What a tool writes, and what of it is expected where that is not the usual."""

    written: object
    question: str = ASKED
    passages: tuple[str, ...] = (PASSAGE,)
    gold: tuple[str, ...] | None = None


RAG_PROMPT = (
    f"Briefly answer the following question:\n{ASKED}\nBear in mind that your response should be "
    f"strictly based on the following two passages:\npassage 1:{PASSAGE}\n\npassage 2:{OTHER}\n\n"
    "In case the passages do not contain the necessary information to answer the question, please "
    'reply with: "Unable to answer based on given passages."\noutput:'
)
TURNS = [
    {"type": "human", "content": "Where is Ronn?"},
    {"type": "ai", "content": "In the North Sea.", "tool_calls": []},
    {"type": "human", "content": ASKED},
    {"type": "ai", "content": "", "tool_calls": [{"name": "search", "args": {}}]},
    {"type": "tool", "content": PASSAGE},
    {"type": "ai", "content": SAID},
]
TALK = f"User: Where is Ronn?\n\nAssistant: In the North Sea.\n\nUser: {ASKED}"

CASES = {
    "RAGAS 0.1": Case(
        [{"question": ASKED, "answer": SAID, "contexts": [PASSAGE], "ground_truth": "In 1894."}]
    ),
    "RAGAS 0.2": Case(
        [
            {
                "user_input": ASKED,
                "retrieved_contexts": [PASSAGE],
                "reference_contexts": [OTHER],
                "response": SAID,
                "reference": "In 1894.",
            }
        ]
    ),
    "RAGAS 0.2 of several turns": Case(
        [{"user_input": TURNS, "reference": "In 1894."}], question=TALK
    ),
    "DeepEval": Case(
        [
            {
                "input": ASKED,
                "actual_output": SAID,
                "expected_output": "In 1894.",
                "context": None,
                "retrieval_context": [PASSAGE],
            }
        ]
    ),
    "DeepEval with context alone": Case(
        [{"input": ASKED, "actual_output": SAID, "retrieval_context": None, "context": [PASSAGE]}]
    ),
    "DeepEval's test run": Case(
        {
            "testPassed": 0,
            "testCases": [
                {
                    "name": "test_case_0",
                    "input": ASKED,
                    "actualOutput": SAID,
                    "expectedOutput": "In 1894.",
                    "retrievalContext": [PASSAGE],
                    "metricsData": [{"name": "Faithfulness", "score": 0.0, "reason": "No."}],
                }
            ],
            "conversationalTestCases": [],
            "metricsScores": [{"metric": "Faithfulness", "scores": [0.0]}],
        }
    ),
    "promptfoo": Case(
        {
            "evalId": "eval-1",
            "results": {
                "version": 3,
                "prompts": [{"raw": "{{context}} {{question}}", "label": "p", "metrics": {}}],
                "results": [
                    {
                        "id": "r-1",
                        "promptIdx": 0,
                        "provider": {"id": "openai:m", "label": ""},
                        "prompt": {"raw": f"{PASSAGE} {ASKED}", "label": "p"},
                        "vars": {"context": PASSAGE, "question": ASKED},
                        "response": {"output": SAID, "tokenUsage": {"total": 9}},
                        "gradingResult": {"pass": False, "reason": "It says 1904."},
                        "testCase": {"vars": {"context": PASSAGE, "question": ASKED}},
                    }
                ],
                "stats": {"successes": 0, "failures": 1},
            },
            "config": {"tests": [{"vars": {"question": ASKED}}], "providers": ["openai:m"]},
        }
    ),
    "promptfoo with a prompt alone": Case(
        {
            "results": {
                "results": [
                    {
                        "prompt": {"raw": ASKED, "label": "p"},
                        "vars": {},
                        "response": {"output": SAID},
                    }
                ]
            }
        },
        passages=(),
    ),
    "Langfuse's traces": Case(
        [
            {
                "id": "t-1",
                "name": "rag",
                "input": {"question": ASKED},
                "output": {"answer": SAID},
                "metadata": {"documents": [{"page_content": PASSAGE, "metadata": {"page": 3}}]},
                "scores": [],
            }
        ]
    ),
    "Langfuse's traces of chats": Case(
        [
            {
                "id": "t-1",
                "input": [
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": ASKED},
                ],
                "output": {"role": "assistant", "content": SAID},
                "metadata": {"context": PASSAGE},
            }
        ]
    ),
    "PsiloQA": Case(
        [
            {
                "id": "p-1",
                "lang": "en",
                "wiki_title": "Ronn",
                "wiki_passage": PASSAGE,
                "question": ASKED,
                "golden_answer": "In 1894.",
                "llm_checkpoint": "m",
                "llm_answer": SAID,
                "annotated_span": "It was built in [HAL]1904[/HAL].",
                "labels": [EXTENT],
            }
        ],
        gold=("1904",),
    ),
    "HaluEval's questions": Case(
        [
            {
                "knowledge": PASSAGE,
                "question": ASKED,
                "right_answer": "In 1894.",
                "hallucinated_answer": SAID,
            }
        ],
        gold=(),
    ),
    "HaluEval's dialogues": Case(
        [
            {
                "knowledge": PASSAGE,
                "dialogue_history": f"[Human]: {ASKED}",
                "right_response": "In 1894.",
                "hallucinated_response": SAID,
            }
        ],
        question=f"[Human]: {ASKED}",
        gold=(),
    ),
    "HaluEval's summaries": Case(
        [{"document": PASSAGE, "right_summary": "1894.", "hallucinated_summary": SAID}],
        question="",
        gold=(),
    ),
    "HaluEval's user queries": Case(
        [
            {
                "ID": "7",
                "user_query": ASKED,
                "chatgpt_response": SAID,
                "hallucination": "yes",
                "hallucination_spans": ["in 1904"],
            }
        ],
        passages=(),
        gold=("in 1904",),
    ),
    "FACTS": Case(
        [
            {
                "system_instruction": "Use the document alone.",
                "user_request": ASKED,
                "context_document": PASSAGE,
                "full_prompt": f"Use the document alone.\n{ASKED}\n{PASSAGE}",
                "response": SAID,
            }
        ]
    ),
    "LettuceDetect": Case(
        [
            {
                "prompt": RAG_PROMPT,
                "answer": SAID,
                "labels": [{"start": 16, "end": 20, "label": "Evident Conflict"}],
                "split": "train",
                "task_type": "QA",
                "dataset": "ragtruth",
                "language": "en",
            }
        ],
        passages=(PASSAGE, OTHER),
        gold=("1904",),
    ),
    "LettuceDetect's summaries": Case(
        [
            {
                "prompt": f"Summarize the following text within 9 words:\n{PASSAGE}\noutput:",
                "answer": SAID,
                "labels": [],
                "split": "test",
                "task_type": "Summary",
                "dataset": "ragtruth",
                "language": "en",
            },
            {"prompt": RAG_PROMPT, "answer": SAID, "labels": [{"start": 0, "end": 2}]},
        ],
        question="Summarize the following text within 9 words:",
        gold=(),
    ),
}


def only_record(path: Path) -> Record:
    return next(iter(read(path, ReadOptions(on_warning=lambda _: None))))


def check(record: Record, case: Case) -> None:
    item = record.item
    assert (item.question, item.answer) == (case.question, SAID)
    assert tuple(passage.text for passage in item.passages) == case.passages
    marked = [tuple(span.text for span in each.spans) for each in record.annotations]
    assert marked == ([] if case.gold is None else [case.gold])


@pytest.mark.parametrize("name", CASES)
def test_json_of_other_tools_needs_no_mapping(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    path = tmp_path / "file.json"
    path.write_text(json.dumps(case.written, indent=2))
    check(only_record(path), case)


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(CASES[name].written, list)])
def test_their_json_lines_need_none_either(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    assert isinstance(case.written, list)
    path = tmp_path / "file.jsonl"
    path.write_text("".join(f"{json.dumps(each)}\n" for each in case.written))
    check(only_record(path), case)


def as_csv(records: list[Mapping[str, Any]]) -> str:
    """Return records as pandas writes them: a list in a cell as Python prints it."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(records[0]))
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue()


@pytest.mark.parametrize(
    "name",
    ["RAGAS 0.1", "RAGAS 0.2", "HaluEval's user queries", "FACTS", "PsiloQA", "LettuceDetect"],
)
def test_tables_that_pandas_wrote_need_none_either(tmp_path: Path, name: str) -> None:
    case = CASES[name]
    assert isinstance(case.written, list)
    path = tmp_path / "file.csv"
    path.write_text(as_csv(case.written))
    check(only_record(path), case)


@pytest.mark.parametrize(
    "column",
    ["LLM_output", "llmOutput", "Model Response", "generated-answer", "Answer", "ai.reply"],
)
def test_names_are_compared_by_their_words(tmp_path: Path, column: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(as_csv([{column: SAID, "User Prompt": ASKED, "source doc": PASSAGE}]))
    check(only_record(path), Case(None))


def test_marked_texts_without_one_place_are_claims_that_are_not_supported(tmp_path: Path) -> None:
    path = tmp_path / "file.jsonl"
    spans = [["in 1904"], ["was"], ["nowhere"]]
    said = "It was built in 1904, it was."
    path.write_text(
        "".join(
            json.dumps({"ID": f"q{n}", "chatgpt_response": said, "hallucination_spans": each})
            + "\n"
            for n, each in enumerate(spans)
        )
    )
    remarks: list[str] = []
    first, *others = read(path, ReadOptions(on_warning=remarks.append))
    assert [span.text for span in first.annotations[0].spans] == ["in 1904"]
    gold = [record.annotations[0] for record in others]
    assert [(annotation.spans, annotation.claims[0].text) for annotation in gold] == [
        ((), "was"),
        ((), "nowhere"),
    ]
    assert {annotation.claims[0].verdict for annotation in gold} == {"not-supported"}
    assert "marked texts of 2 items do not stand" in remarks[0] and "q1, q2" in remarks[0]


@pytest.mark.parametrize("graded", ["in columns", "before the text"])
def test_promptfoos_answers_beside_each_other_are_items_of_one_question(
    tmp_path: Path, graded: str
) -> None:
    apart = graded == "in columns"
    columns = ["Status", "Score"] if apart else []
    prompts = ("[openai:a] Say: {{asked}}", "[openai:b] Say: {{asked}}", "[openai:b] {{asked}}")
    answers = (("PASS", SAID), ("FAIL", "In 1894."), ("ERROR", "429 Too Many Requests"))
    header = ["asked", "context", *(name for prompt in prompts for name in (prompt, *columns))]
    row = [ASKED, PASSAGE]
    for status, text in answers:
        row += [text, status, "0"] if apart else [f"[{status}] {text}"]
    path = tmp_path / "out.csv"
    with path.open("w", newline="") as stream:
        csv.writer(stream).writerows([header, row])
    remarks: list[str] = []
    items = [record.item for record in read(path, ReadOptions(on_warning=remarks.append))]
    assert [(item.id, item.meta["model"], item.question, item.answer) for item in items] == [
        ("out-1", "openai:a", f"Say: {ASKED}", SAID),
        ("out-1", "openai:b", f"Say: {ASKED}", "In 1894."),
    ]
    assert all([passage.text for passage in item.passages] == [PASSAGE] for item in items)
    (remark,) = remarks
    assert "1 of 3 records have no answer" in remark


def test_promptfoos_providers_of_one_id_are_told_by_their_labels(tmp_path: Path) -> None:
    providers = [{"id": "echo", "label": "terse"}, {"id": "echo", "label": ""}, {"id": "echo"}]
    results = [
        {"vars": {"question": ASKED}, "provider": provider, "response": {"output": SAID}}
        for provider in providers
    ]
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"results": {"version": 3, "results": results}}))
    models = [record.item.meta["model"] for record in read(path)]
    assert models == ["terse", "echo", "echo"]


# As promptfoo wrote it with two providers called echo, labelled model-a and model-b.
_RECORDED = """\
question,"[model-a] Say: {{question}}",Status,Score,Named Scores,Grader Reason,Comment,\
"[model-b] Say: {{question}}",Status,Score,Named Scores,Grader Reason,Comment
Who built it?,Say: Who built it?,PASS,1.00,,All assertions passed,,Say: Who built it?,FAIL,0.00,,\
Expected output to contain Paris,
"""


def test_a_table_that_promptfoo_wrote_with_two_providers_is_read(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text(_RECORDED, encoding="utf-8")
    items = [record.item for record in read(path, ReadOptions(on_warning=lambda _: None))]
    assert [item.meta["model"] for item in items] == ["model-a", "model-b"]
    assert {item.question for item in items} == {"Who built it?"}
    assert {item.answer for item in items} == {"Say: Who built it?"}
    assert [item.meta["Status"] for item in items] == ["PASS", "FAIL"]
