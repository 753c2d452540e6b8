"""Thumbs and scores on traces and in logs of evaluations, in the shapes that programs export."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
Said = list[tuple[str, str, bool]]  # annotator, kind, whether it calls the answer hallucinated
ANSWER = "Ada paid 3 pounds."
ASKED = "Who paid?"
TRACE, ROOT, CALL = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", "00f067aa0ba902b7"
CHAT = [{"role": "user", "content": ASKED}]


def langfuse(*scores: dict[str, Any]) -> dict[str, Any]:
    """A trace as ``GET /api/public/traces/ID`` gives it."""
    call = {
        **{"id": CALL, "traceId": TRACE, "type": "GENERATION", "name": "llm", "model": "gpt"},
        **{"startTime": "2026-11-01T10:00:00.1Z", "endTime": "2026-11-01T10:00:01.0Z"},
        **{"input": CHAT, "output": {"role": "assistant", "content": ANSWER}},
        **{"parentObservationId": None, "level": "DEFAULT"},
    }
    return {
        **{"id": TRACE, "name": "rag", "timestamp": "2026-11-01T10:00:00Z", "input": ASKED},
        **{"output": ANSWER, "observations": [call], "scores": list(scores)},
    }


def score(name: str, value: object, source: str, **more: Any) -> dict[str, Any]:
    return {"id": name, "traceId": TRACE, "name": name, "value": value, "source": source, **more}


def phoenix(*annotations: dict[str, Any]) -> dict[str, Any]:
    """A span as Phoenix's REST API has it, with the annotations on it."""
    return {
        **{"name": "llm", "context": {"trace_id": TRACE, "span_id": CALL}, "parent_id": None},
        **{"span_kind": "LLM", "start_time": "2026-11-01T10:00:00Z"},
        **{"end_time": "2026-11-01T10:00:01Z", "status_code": "OK", "events": []},
        "attributes": {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "user",
            "llm.input_messages.0.message.content": ASKED,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": ANSWER,
        },
        "annotations": list(annotations),
    }


def mlflow(*assessments: dict[str, Any]) -> dict[str, Any]:
    """A trace as ``Trace.to_json`` writes it."""
    spans = [
        {
            **{"trace_id": "rXOYjfz/eRLFRGGGWXmImA==", "span_id": "jWkGyKlCdl4="},
            **{"parent_span_id": None, "name": "llm", "events": []},
            **{"start_time_unix_nano": 1795650543545930751},
            **{"end_time_unix_nano": 1795650544412508319, "status": {"code": "STATUS_CODE_OK"}},
            "attributes": {
                "mlflow.spanType": '"CHAT_MODEL"',
                "mlflow.spanInputs": json.dumps({"messages": CHAT}),
                "mlflow.spanOutputs": json.dumps(ANSWER),
            },
        }
    ]
    about = {"trace_id": "tr-ad73", "state": "OK", "assessments": list(assessments)}
    return {"info": about, "data": {"spans": spans}}


def assessed(name: str, value: object, kind: str, who: str) -> dict[str, Any]:
    source = {"source_type": kind, "source_id": who}
    return {"assessment_name": name, "source": source, "feedback": {"value": value}}


def langsmith(**stats: dict[str, Any]) -> dict[str, Any]:
    """A run as LangSmith's API has it; of feedback, runs have statistics."""
    return {
        **{"id": ROOT, "trace_id": TRACE, "run_type": "llm", "name": "llm", "parent_run_id": None},
        **{"start_time": "2026-11-01T10:00:00", "end_time": "2026-11-01T10:00:01", "error": None},
        **{"inputs": {"messages": CHAT}, "feedback_stats": stats},
        "outputs": {"choices": [{"message": {"role": "assistant", "content": ANSWER}}]},
    }


def inspect(**scores: object) -> dict[str, Any]:
    """A sample of an Inspect log."""
    said = {name: {"value": value, "answer": "3", "metadata": {}} for name, value in scores.items()}
    choice = {"message": {"role": "assistant", "content": ANSWER}, "stop_reason": "stop"}
    return {
        **{"id": "a", "epoch": 1, "input": ASKED, "target": "Ada", "scores": said},
        "messages": [*CHAT, {"role": "assistant", "content": ANSWER}],
        "output": {"model": "mock", "choices": [choice], "completion": ANSWER},
    }


def openai(*results: dict[str, Any]) -> dict[str, Any]:
    """An item of a run's output, as OpenAI's evals API has it."""
    sample = {"input": CHAT, "output": [{"role": "assistant", "content": ANSWER}], "model": "gpt"}
    return {
        **{"object": "eval.run.output_item", "id": "o1", "status": "fail", "sample": sample},
        **{"datasource_item": {"question": ASKED}, "datasource_item_id": 0},
        "results": list(results),
    }


CASES = [
    pytest.param(
        langfuse(
            score("hallucination", 1, "EVAL", stringValue="True", dataType="BOOLEAN"),
            score("user-thumbs", 0, "API"),
            score("correct", 1, "ANNOTATION", stringValue="True", authorUserId="anna"),
            score("helpfulness", 0.3, "EVAL"),
        ),
        [("hallucination", "detector", True), ("user-thumbs", "person", True),
         ("anna", "person", False)],
        id="Langfuse",
    ),
    pytest.param(
        langfuse(score("hallucination", 1, "EVAL", observationId="another")), [],
        id="Langfuse-on-another-observation",
    ),
    pytest.param(
        phoenix(
            {"name": "hallucination", "annotator_kind": "LLM",
             "result": {"label": "factual", "score": 0}},
            {"name": "correctness", "annotator_kind": "HUMAN", "result": {"label": "incorrect"}},
        ),
        [("hallucination", "detector", False), ("correctness", "person", True)],
        id="Phoenix",
    ),
    pytest.param(
        mlflow(assessed("is_correct", False, "HUMAN", "ben"),
               assessed("groundedness", "yes", "LLM_JUDGE", "gpt"),
               assessed("relevance", 0.5, "CODE", "x")),
        [("ben", "person", True), ("groundedness", "detector", False)],
        id="MLflow",
    ),
    pytest.param(
        langsmith(hallucinated={"n": 1, "avg": 1.0, "values": {}},
                  user_thumbs={"n": 1, "avg": 1.0, "values": {}},
                  faithfulness={"n": 4, "avg": 0.5, "values": {}}),
        [("hallucinated", "detector", True), ("user_thumbs", "person", False)],
        id="LangSmith",
    ),
    pytest.param(
        inspect(model_graded_fact="I", match="C", length=0.4),
        [("model_graded_fact", "detector", True), ("match", "detector", False)],
        id="Inspect",
    ),
    pytest.param(
        openai({"name": "grader-1", "score": 0.0, "passed": False}),
        [("grader-1", "detector", True)],
        id="OpenAI",
    ),
]  # fmt: skip


def import_rows(
    spanlab: Run, path: Path, rows: object, *options: str
) -> subprocess.CompletedProcess[str]:
    path.write_text(json.dumps(rows))
    done = spanlab("import", path, "--dataset", path.stem, *options)
    assert done.returncode == 0, done.stderr
    return done


def verdicts(spanlab: Run, dataset: str = "traces") -> dict[str, Said]:
    done = spanlab("export", dataset, "--format", "spanlab")
    assert done.returncode == 0, done.stderr
    return {
        record["answer"]: [
            (one["annotator"], one["kind"], one["answer_hallucinated"])
            for one in record.get("annotations", [])
        ]
        for record in map(json.loads, done.stdout.splitlines())
    }


@pytest.mark.parametrize(("exported", "said"), CASES)
def test_feedback_is_a_verdict_on_the_answer(
    tmp_path: Path, spanlab: Run, exported: dict[str, Any], said: Said
) -> None:
    done = import_rows(spanlab, tmp_path / "traces.json", [exported])
    assert verdicts(spanlab) == {ANSWER: said}
    for name, _, is_wrong in said:
        counts = "1 hallucinated, 0 not" if is_wrong else "0 hallucinated, 1 not"
        assert f"feedback of {name!r} judges whole answers: {counts}" in done.stderr


def test_a_verdict_on_several_answers_is_told_and_left_out(tmp_path: Path, spanlab: Run) -> None:
    """But one on a span that gave one of them is a verdict on that."""
    trace = langfuse(
        score("correct", "no", "API"), score("faithful", "no", "API", observationId=ROOT)
    )
    (first,) = trace["observations"]
    other = {
        **first,
        **{"id": ROOT, "startTime": "2026-11-01T10:00:02Z", "endTime": "2026-11-01T10:00:03Z"},
        "input": [{"role": "user", "content": "How tall is the Eiffel tower in Paris?"}],
        "output": {"role": "assistant", "content": "It has 999 metres."},
    }
    trace |= {"observations": [first, other], "input": None, "output": None}
    done = import_rows(spanlab, tmp_path / "traces.json", [trace])
    assert "verdicts on traces that hold several answers are left out" in done.stderr
    assert TRACE in done.stderr
    assert verdicts(spanlab) == {
        ANSWER: [],
        "It has 999 metres.": [("faithful", "detector", True)],
    }


SCALES = [
    pytest.param(langfuse(score("faithfulness", 0.3, "EVAL")), id="Langfuse"),
    pytest.param(mlflow(assessed("faithfulness", 0.3, "CODE", "x")), id="MLflow"),
    pytest.param(openai({"name": "faithfulness", "score": 0.3}), id="OpenAI"),
]


@pytest.mark.parametrize("exported", SCALES)
def test_a_scale_is_kept_and_a_threshold_makes_verdicts_of_it(
    tmp_path: Path, spanlab: Run, exported: dict[str, Any]
) -> None:
    import_rows(spanlab, tmp_path / "traces.json", [exported])
    assert verdicts(spanlab) == {ANSWER: []}
    assert "0.3" in json.dumps(json.loads(spanlab("export", "traces").stdout)["meta"])
    rule = ("--hallucinated-if", "faithfulness<0.5")
    import_rows(spanlab, tmp_path / "judged.json", [exported], *rule)
    assert verdicts(spanlab, "judged") == {ANSWER: [("faithfulness", "detector", True)]}


def test_a_threshold_for_feedback_that_is_not_there_is_refused(
    tmp_path: Path, spanlab: Run
) -> None:
    path = tmp_path / "traces.json"
    path.write_text(json.dumps([langfuse(score("faithfulness", 0.3, "EVAL"))]))
    done = spanlab("import", path, "--dataset", "traces", "--hallucinated-if", "faithful<0.5")
    assert done.returncode != 0
    assert "no feedback 'faithful'" in done.stderr and "'faithfulness'" in done.stderr
