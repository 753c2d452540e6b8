"""What real programs wrote (``peers``, see its README) becomes what they meant."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pandas
import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, read
from spanlab.schema import AnnotatorKind, Process, Record, Status

_PEERS = Path(__file__).parent / "peers"
_ASKED = "When was the Eiffel Tower built?"
_ANSWER = "The Eiffel Tower was built in 1989 and is 330 m tall. 🗼"
_BUILT = "The Eiffel Tower was completed in 1889."
_TALL = "It is 330 metres tall.\r\nIt stands in Paris. 🗼"
_WRONG = "The Eiffel Tower was built in 1989."
_FOUND = f"{_BUILT}\nIt is 330 metres tall.\nIt stands in Paris. 🗼"
_PHOENIX = ["When was the tower built?", "It was built in 1989.", [_BUILT]]
_AGENTS = (
    *("adk-agent.console.json", "crewai.console.json", "logfire-agents.console.json"),
    *("smolagents-tool.console.json", "strands.console.json", "vercel-generate.json"),
    *("vercel-stream.json", "agent-framework.console.jsonl", "agno.console.jsonl"),
    *("autogen.console.jsonl", "dspy-react.console.jsonl", "haystack-agent.console.jsonl"),
    *("lli-agent.console.jsonl", "mlflow-langgraph.json", "openllmetry-agents.console.jsonl"),
)
_SEARCHES = (
    *("dspy-oi.console.json", "langfuse-otel.console.json", "langsmith-otel.console.json"),
    *("logfire-openai.console.json", "traceloop-rag.console.json", "langsmith-runs.jsonl"),
    *("datadog-llmobs.json", "mlflow-openai.json", "trulens.console.jsonl"),
    *("openllmetry-app.console.jsonl", "openllmetry-lli.console.jsonl"),
)
_TRACES: dict[str, list[Any]] = {
    "traces/openinference-lcel.console.json": [_ASKED, _ANSWER, [_BUILT, _TALL]],
    "traces/openinference-dictq.console.json": [_ASKED, _ANSWER, [_BUILT, _TALL]],
    "traces/openinference-graph.console.json": [_ASKED, _ANSWER, [_BUILT, _TALL]],
    "traces/openinference-chat.console.json": ["When was the tower built?", _ANSWER, []],
    "traces/openllmetry-lcel.console.json": [_ASKED, _ANSWER, [_BUILT, _TALL]],
    "traces/lli-rag.console.json": [
        _ASKED,
        _ANSWER,
        [_BUILT.replace("Eiffel Tower", '"Eiffel Tower"'), _TALL.replace("\r", "")],
    ],
    "traces/lli-tree.console.json": [_ASKED, _ANSWER, [_BUILT, _TALL]],
    "traces/pydantic.console.json": [
        _ASKED,
        "The Eiffel Tower was built in 1989. 🗼",
        [f"{_BUILT}\nIt is 330 m tall."],
    ],
    **{f"traces/{name}": [_ASKED, _WRONG, [_FOUND]] for name in _AGENTS},
    **{f"traces/{name}": [_ASKED, _WRONG, _FOUND.split("\n", 1)] for name in _SEARCHES},
    "traces/haystack-oi.console.json": [_ASKED, _WRONG, [_BUILT]],
    "traces/haystack.console.jsonl": [_ASKED, _WRONG, [_BUILT]],
    "traces/openai-genai.console.jsonl": [_ASKED, _WRONG, []],
    "traces/openai-events.jsonl": [_ASKED, _WRONG, []],  # log records, then spans
    "traces/litellm.console.jsonl": [_ASKED, _WRONG, []],
    "traces/openlit.console.json": [_ASKED, _WRONG, []],  # which stand in its instructions
    "traces/semantic-kernel.console.json": [_ASKED, _WRONG, []],
    "phoenix_get_spans.json": _PHOENIX,
    "phoenix_spans_dataframe.jsonl": _PHOENIX,
    "mlflow_trace.json": [
        "When was the tower built?",
        "The Eiffel Tower was built in 1989.",
        [_BUILT, "It is 330 metres tall.\nIt stands in Paris."],
    ],
}


def _stem(told: Path) -> str:
    return told.name.removesuffix(".expected.json")


def _records(name: str, remarks: list[str] | None = None) -> list[Record]:
    told: list[str] = [] if remarks is None else remarks
    return list(read(_PEERS / name, ReadOptions(on_warning=told.append)))


def _fields_of(file: Path) -> set[str]:
    """Return what stands at the top of the objects of a file of traces, and says something."""
    text, values = file.read_text(encoding="utf-8"), list[Any]()
    while text:
        value, end = json.JSONDecoder().raw_decode(text)
        values.append(value)
        text = text[end:].lstrip()
    objects = [part for value in values for part in (value if isinstance(value, list) else [value])]
    nothing: tuple[object, ...] = (None, "", [], {}, {"attributes": {}})
    return {name.partition(".")[0] for one in objects for name in one if one[name] not in nothing}


@pytest.mark.parametrize("name", _TRACES)
def test_no_field_of_a_trace_is_without_a_word_in_the_report(name: str) -> None:
    told: dict[str, str] = {}
    list(read(_PEERS / name, ReadOptions(on_fields=lambda _, fields: told.update(fields))))
    words = {part for path in told for part in path.replace(" ", ".").split(".")}
    assert _fields_of(_PEERS / name) - words == set()
    assert "id" in told.values()


@pytest.mark.parametrize("name", ["pydantic-turns", "langgraph-turns"])
def test_each_turn_of_a_chat_in_one_trace_is_an_item(name: str) -> None:
    """Two questions to an agent with a tool, inside one span; the model sees what was said."""
    first, second = (record.item for record in _records(f"traces/{name}.console.json"))
    answer, tall = "The Eiffel Tower was built in 1989.", "It is 330 metres tall."
    assert (first.question, first.answer) == (_ASKED, answer)
    assert (second.question, second.answer) == ("And how tall is it?", "It is 330 m tall.")
    assert [passage.text for passage in first.passages] == [_BUILT]
    assert [passage.text for passage in second.passages] == [tall]  # what this turn found
    assert isinstance(second.process, Process)
    assert answer not in {node.text for node in second.process.nodes}
    assert second.meta["conversation"] == [
        {"role": "user", "content": _ASKED},
        {"role": "assistant", "content": answer},
    ]
    assert [first.meta["turn"], second.meta["turn"]] == [1, 2]
    assert first.meta["trace_id"] == second.meta["trace_id"]
    assert first.meta["session"] == second.meta["session"]
    assert first.meta["span_id"] != second.meta["span_id"]  # so that each gets its own verdict
    assert (first.id, second.id) == tuple(f"{first.meta['trace_id']}-{n}" for n in (1, 2))


@pytest.mark.parametrize("told", sorted((_PEERS / "runs").glob("*.expected.json")), ids=_stem)
def test_each_run_of_a_trace_is_an_item_with_its_own_evidence(told: Path) -> None:
    """Programs that ran several times; their passages are in any order, or none where allowed."""
    expected = json.loads(told.read_text("utf-8"))["items"]
    (file,) = (path for path in told.parent.glob(f"{_stem(told)}.*") if path != told)
    items = [record.item for record in _records(f"runs/{file.name}")]
    assert sorted((item.question, item.answer.strip()) for item in items) == sorted(
        (one["question"], one["answer"]) for one in expected
    )
    found = {item.answer.strip(): {passage.text for passage in item.passages} for item in items}
    models = {item.answer.strip(): item.meta.get("model") for item in items}
    for one in expected:
        assert found[one["answer"]] == set(one["passages"])
        wanted = str(one.get("model", "")).removesuffix("*")
        assert str(models[one["answer"]] or "").startswith(wanted)


@pytest.mark.parametrize("name", _TRACES)
def test_a_trace_brings_its_question_answer_and_evidence(name: str) -> None:
    question, answer, passages = _TRACES[name]
    records = _records(name)
    assert len(records) == (2 if "phoenix" in name else 1)
    for item in (record.item for record in records):
        assert (item.question, item.answer.rstrip()) == (question, answer)
        assert [passage.text for passage in item.passages] == passages
        assert item.meta["trace_id"] == item.id
        assert isinstance(item.process, Process)
        if passages and "trulens" not in name:  # which says of no call what it read
            assert item.process.stages[0] == "source"


@pytest.mark.parametrize(
    ("name", "stage", "model", "tokens"),
    [
        ("agno.console.jsonl", "OpenAILike.invoke", "m", 44),
        ("haystack.console.jsonl", "llm", None, None),
        ("mlflow-openai.json", "Completions", "m", 30),
        ("openai-genai.console.jsonl", "chat m", "m", 122),
        ("openllmetry-app.console.jsonl", "write", "m", 108),
    ],
)
def test_a_trace_says_its_stages_model_and_tokens(
    name: str, stage: str, model: str | None, tokens: int | None
) -> None:
    (record,) = _records(f"traces/{name}")
    assert isinstance(record.item.process, Process)
    assert record.item.process.stages[-1] == stage
    assert record.item.meta.get("model") == model
    assert record.item.meta.get("input_tokens") == tokens


def test_stages_are_the_nodes_of_the_graph() -> None:
    (record,) = _records("traces/openinference-graph.console.json")
    assert isinstance(record.item.process, Process)
    assert record.item.process.stages == ("source", "summarise_node", "answer_node")


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("traces/retriever_only.json", "no span of this trace has a model's answer"),
        ("inspect_log.eval", "the calls failed.*ConnectionError"),
    ],
)
def test_a_run_without_an_answer_is_refused_with_the_reason(name: str, reason: str) -> None:
    with pytest.raises(InputError, match=f"(?s)no record.*{reason}"):
        _records(name)


def test_samples_of_inspect_without_a_completion_are_left_out_and_counted(tmp_path: Path) -> None:
    def sample(number: int, text: str, **more: object) -> dict[str, object]:
        choices = [{"message": {"role": "assistant", "content": text}}]
        output = {"model": "m", "choices": choices, "completion": text}
        return {"id": number, "epoch": 1, "input": _ASKED, "output": output, **more}

    failed = sample(2, "", error={"message": "ConnectionError"})
    samples = [sample(1, _WRONG), failed, sample(3, "")]
    path = tmp_path / "log.json"
    about = {"version": 2, "status": "success", "eval": {"task": "t"}, "plan": {}}
    path.write_text(json.dumps({**about, "samples": samples}), "utf-8")
    remarks: list[str] = []
    (record,) = read(path, ReadOptions(on_warning=remarks.append))
    assert (record.item.question, record.item.answer) == (_ASKED, _WRONG)
    assert any("2 of 3 records have no answer and are left out" in said for said in remarks)


def test_an_agent_of_smolagents_whose_root_never_comes_has_its_question(tmp_path: Path) -> None:
    """As where a stream of it is not read to its end."""
    text, spans = (_PEERS / "traces/smolagents-tool.console.json").read_text("utf-8"), list[Any]()
    while text:
        value, end = json.JSONDecoder().raw_decode(text)
        spans += value if isinstance(value, list) else [value]
        text = text[end:].lstrip()
    path = tmp_path / "spans.json"
    path.write_text(json.dumps([span for span in spans if span["parent_id"]]), "utf-8")
    (record,) = read(path)
    assert (record.item.question, record.item.answer) == (_ASKED, _WRONG)
    assert [passage.text for passage in record.item.passages] == [_FOUND]


def test_openais_batch_is_answers_by_their_custom_ids() -> None:
    remarks: list[str] = []
    records = _records("openai_batch_output.jsonl", remarks)
    assert [record.item.id for record in records] == ["req-0", "req-1", "req-2"]
    assert records[0].item.meta["model"] == "gpt-4o-mini-2024-07-18"
    asked, failed = remarks
    assert "--requests joins" in asked
    assert "1 of 4 records have no answer and are left out" in failed and "expired" in failed


def test_promptfoos_table_names_its_answers_by_provider_and_prompt() -> None:
    (record,) = _records("promptfoo_out.csv")
    assert record.item.question == "When was the tower built?"
    assert [passage.text for passage in record.item.passages] == ["Built in 1889."]
    assert record.item.meta["model"] == "echo"


def test_label_studios_export_has_people_gold_and_numbers_for_predictions() -> None:
    remarks: list[str] = []
    records = _records("labelstudio_export_default.json", remarks)
    sent = {record.item.id: record for record in _records("labelstudio_items_sent.jsonl")}
    assert len(records) == 8
    for record in records:
        kinds = [(a.kind, a.status) for a in record.annotations]
        assert kinds == [
            (AnnotatorKind.PERSON, Status.DONE),
            (AnnotatorKind.PERSON, Status.SKIPPED),
            (AnnotatorKind.GOLD, Status.DONE),
        ]
        person, _, gold = record.annotations
        for ours, name in ((person, "Ada Löß"), (gold, "gold")):
            expected = sent[record.item.id].by(name)
            assert expected is not None
            assert {(s.start, s.end, s.text, s.label, s.note) for s in ours.spans} == {
                (s.start, s.end, s.text, s.label, s.note) for s in expected.spans
            }
    assert "annotations or predictions that are only numbers here" in remarks[0]


def test_label_studios_table_says_who_annotated() -> None:
    records = _records("labelstudio_export.csv")
    assert len(records) == 8
    annotations = [a for record in records for a in record.annotations]
    assert {a.kind for a in annotations} == {AnnotatorKind.PERSON}
    assert {a.annotator for a in annotations} == {"1", "1 2", "2"}
    assert records[0].item.meta["model"] == "m1"
    assert [passage.title for passage in records[0].item.passages] == ["T"]
    (second,) = [a for a in records[0].annotations if a.annotator == "2"]
    assert (second.responses["fluency"], second.responses["overall"]) == (5, "bad & ugly")


def test_a_log_that_is_read_twice_is_unpacked_once_and_again_when_it_changes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "log.eval"
    shutil.copy(_PEERS / "inspect_log.eval", path)
    for _ in range(2):
        with pytest.raises(InputError, match="the calls failed"):
            list(read(path))
    path.write_text('{"id": "a", "answer": "x"}\n')
    assert [record.item.answer for record in read(path)] == ["x"]
    assert time.time() > path.stat().st_mtime - 1


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_frames_of_spans_are_read_from_tables(tmp_path: Path, ending: str) -> None:
    """Phoenix's ``get_spans_dataframe`` as pandas writes it, and MLflow's ``search_traces``."""
    frames = {
        "phoenix": pandas.read_json(_PEERS / "phoenix_spans_dataframe.jsonl", lines=True),
        "mlflow": pandas.DataFrame([_mlflow_row()]),
    }
    for name, frame in frames.items():
        path = tmp_path / f"{name}.{ending}"
        write = frame.to_csv if ending == "csv" else frame.to_parquet
        write(path, index=False)
        items = [record.item for record in read(path)]
        assert {(item.question, item.answer) for item in items} == {
            ("When was the tower built?", items[0].answer)
        }
        assert all(item.passages[0].text == _BUILT for item in items)
        assert [item.id for item in items] == [item.meta["trace_id"] for item in items]


@pytest.mark.parametrize("orient", ["index", "columns", "records"])
def test_a_frame_of_phoenix_is_read_as_pandas_writes_it_by_its_index(
    tmp_path: Path, orient: Any
) -> None:
    """Its index are the ids of the spans, which records leave out."""
    frame = pandas.read_json(_PEERS / "phoenix_spans_dataframe.jsonl", lines=True)
    path = tmp_path / "frame.json"
    frame.set_index("context.span_id").to_json(path, orient=orient, date_format="iso")
    items = [record.item for record in read(path)]
    told = [(i.question, i.answer, [passage.text for passage in i.passages]) for i in items]
    assert told == [tuple(_PHOENIX)] * 2


def _mlflow_row() -> dict[str, object]:
    trace = json.loads((_PEERS / "mlflow_trace.json").read_text("utf-8"))
    about = {name: trace["info"][name] for name in ("trace_id", "state", "tags")}
    said = {"request": {"question": "When was the tower built?"}, "response": "In 1989."}
    return {**about, "trace": json.dumps(trace), **said, "spans": trace["data"]["spans"]}


def test_datadogs_api_answers_with_the_same_spans(tmp_path: Path) -> None:
    sent = json.loads((_PEERS / "traces/datadog-llmobs.json").read_text("utf-8"))
    spans = [span for event in sent for span in event["spans"]]
    about = [{**span, **span["meta"], "span_kind": span["meta"]["span"]["kind"]} for span in spans]
    page = {"data": [{"id": span["span_id"], "type": "span", "attributes": span} for span in about]}
    for span in about:
        del span["meta"], span["span"]
    path = tmp_path / "page.json"
    path.write_text(json.dumps(page), "utf-8")
    (record,) = read(path)
    (same,) = _records("traces/datadog-llmobs.json")
    assert record == same
    assert record.item.meta["model"] == "m"


def test_a_run_of_langsmith_says_its_model() -> None:
    (record,) = _records("traces/langsmith-runs.jsonl")
    assert record.item.meta["model"] == "m"
