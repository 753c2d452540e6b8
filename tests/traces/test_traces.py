"""OpenTelemetry traces of language models, exported as JSON."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, detect, read
from spanlab.schema import Process

TOWER = "The tower was built in 1889 by Gustave Eiffel."
CITY = "Paris is a city with many cafés."
NOTES = "Eiffel built the tower; it stands in Paris."
ANSWER = "The tower in Paris was built by Eiffel."
ASKED = f"Take notes.\n\n{TOWER}\n{CITY}"


def otlp(*spans: dict[str, Any]) -> dict[str, Any]:
    """Return an export request with spans as OTLP's JSON has them."""
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": [*spans]}]}]}


def span(at: int, name: str, attributes: dict[str, Any], trace: str = "t1") -> dict[str, Any]:
    def value(held: Any) -> dict[str, Any]:
        return {"stringValue": held} if isinstance(held, str) else {"doubleValue": held}

    return {
        "traceId": trace,
        "spanId": f"s{at}",
        "name": name,
        "startTimeUnixNano": str(at * 10),
        "endTimeUnixNano": str(at * 10 + 5) if at else "9999",
        "attributes": [{"key": key, "value": value(held)} for key, held in attributes.items()],
    }


CHAIN = span(
    0,
    "pipeline",
    {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"question": "Who built the tower?"}),
        "output.value": ANSWER,
    },
)
RETRIEVER = span(
    1,
    "search",
    {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.content": TOWER,
        "retrieval.documents.0.document.score": 0.9,
        "retrieval.documents.1.document.content": CITY,
    },
)
OPENINFERENCE = (
    span(
        2,
        "notes",
        {
            "openinference.span.kind": "LLM",
            "llm.input_messages.0.message.role": "system",
            "llm.input_messages.0.message.content": "You take notes, briefly and well.",
            "llm.input_messages.1.message.role": "user",
            "llm.input_messages.1.message.contents.0.message_content.text": ASKED,
            "llm.output_messages.0.message.role": "assistant",
            "llm.output_messages.0.message.content": NOTES,
        },
    ),
    span(
        3,
        "answer",
        {
            "openinference.span.kind": "LLM",
            "input.value": f"Answer from these notes: {NOTES}",
            "output.value": ANSWER,
        },
    ),
)


def parts(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


GEN_AI = (
    span(
        2,
        "notes",
        {
            "gen_ai.operation.name": "chat",
            "gen_ai.input.messages": parts("user", ASKED),
            "gen_ai.output.messages": parts("assistant", NOTES),
        },
    ),
    span(
        3,
        "answer",
        {
            "gen_ai.prompt.0.role": "user",
            "gen_ai.prompt.0.content": f"Answer from these notes: {NOTES}",
            "gen_ai.completion.0.role": "assistant",
            "gen_ai.completion.0.content": ANSWER,
        },
    ),
)


def printed(given: dict[str, Any], *, nested: bool) -> dict[str, Any]:
    """Return a span as SDKs print it, maybe with attributes as a tree."""
    flat = {each["key"]: next(iter(each["value"].values())) for each in given["attributes"]}
    tree: dict[str, Any] = {}
    for key, held in flat.items():
        inner = tree
        *way, last = key.split(".")
        for step in way:
            inner = inner.setdefault(step, {})
        inner[last] = held
    return {
        "name": given["name"],
        "context": {"trace_id": f"0x{given['traceId']}", "span_id": given["spanId"]},
        "start_time": given["startTimeUnixNano"].zfill(4),
        "end_time": given["endTimeUnixNano"].zfill(4),
        "attributes": tree if nested else flat,
    }


def lines(path: Path, values: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in values))
    return path


def of_jaeger(given: dict[str, Any]) -> dict[str, Any]:
    """Return a span as Jaeger's API has it: times in microseconds, attributes as tags."""
    start, end = (int(given[f"{end}TimeUnixNano"]) for end in ("start", "end"))
    return {
        "traceID": given["traceId"],
        "spanID": given["spanId"],
        "operationName": given["name"],
        "references": [],
        "startTime": start,
        "duration": end - start,
        "tags": [
            {"key": each["key"], "type": "string", "value": next(iter(each["value"].values()))}
            for each in given["attributes"]
        ],
        "processID": "p1",
    }


ALL = (CHAIN, RETRIEVER, *OPENINFERENCE)
JAEGER = {
    "traceID": "t1",
    "spans": [of_jaeger(each) for each in ALL],
    "processes": {"p1": {"serviceName": "rag", "tags": []}},
}
FILES: dict[str, tuple[list[object], int | None]] = {
    # name: lines of the file, or one value that is the whole file with this indentation
    "OTLP, a request a line": ([otlp(each) for each in reversed(ALL)], None),
    "OTLP, one request": ([otlp(*ALL)], None),
    "OTLP, one request on many lines": ([otlp(*ALL)], 2),
    "Tempo": ([{"batches": otlp(*ALL)["resourceSpans"]}], 2),
    "Tempo's second API": ([{"trace": otlp(*ALL)}], None),
    "Jaeger": ([{"data": [JAEGER], "total": 0, "errors": None}], 1),
    "a trace of Jaeger's": ([JAEGER], None),
    "gen_ai": ([otlp(CHAIN, RETRIEVER, *GEN_AI)], None),
    "spans as printed": ([printed(each, nested=False) for each in ALL], None),
    "spans as printed, attributes as a tree": ([[printed(s, nested=True) for s in ALL]], 1),
}


@pytest.mark.parametrize(("values", "indent"), FILES.values(), ids=FILES)
def test_a_trace_becomes_an_answer_with_all_that_led_to_it(
    tmp_path: Path, values: list[object], indent: int | None
) -> None:
    path = lines(tmp_path / "traces.json", values)
    if indent is not None:
        path.write_text(json.dumps(values[0], indent=indent))
    assert detect(path) == "traces"
    (record,) = read(path)
    item, process = record.item, record.item.process
    assert (item.id, item.question, item.answer) == ("t1", "Who built the tower?", ANSWER)
    assert isinstance(process, Process)
    texts = {node.id: node.text for node in process.nodes}
    assert {
        node.text: (node.stage, {texts[source] for source in node.sources})
        for node in process.nodes
    } == {
        TOWER: ("source", set()),
        CITY: ("source", set()),
        NOTES: ("notes", {TOWER, CITY}),
        ANSWER: ("answer", {NOTES}),
    }


def framed(given: dict[str, Any]) -> dict[str, Any]:
    """Return a span as a row of Phoenix's frame."""
    said = {each["key"]: next(iter(each["value"].values())) for each in given["attributes"]}
    return {
        "context.span_id": given["spanId"],
        "context.trace_id": given["traceId"],
        "name": given["name"],
        "span_kind": said.pop("openinference.span.kind"),
        "start_time": given["startTimeUnixNano"].zfill(4),
        "end_time": given["endTimeUnixNano"].zfill(4),
        **{f"attributes.{name}": held for name, held in said.items()},
    }


@pytest.mark.parametrize("orient", ["records", "index", "columns", "split"])
def test_phoenixs_frame_is_read_however_pandas_wrote_it(tmp_path: Path, orient: str) -> None:
    rows = [framed(each) for each in ALL]
    names = list(dict.fromkeys(name for row in rows for name in row))
    index = [row["context.span_id"] for row in rows]
    cells = [[row.get(name) for name in names] for row in rows]
    written: Any = {
        "records": rows,
        "index": dict(zip(index, rows, strict=True)),
        "columns": {
            name: dict(zip(index, column, strict=True))
            for name, column in zip(names, zip(*cells, strict=True), strict=True)
        },
        "split": {"columns": names, "index": index, "data": cells},
    }[orient]
    path = tmp_path / "spans.json"
    path.write_text(json.dumps(written))
    assert detect(path) == "traces"
    (record,) = read(path)
    texts = [passage.text for passage in record.item.passages]
    assert (record.item.question, record.item.answer) == ("Who built the tower?", ANSWER)
    assert texts == [TOWER, CITY]


def test_traces_of_one_file_are_told_apart(tmp_path: Path) -> None:
    other = span(9, "answer", {"openinference.span.kind": "LLM"}, trace="t2")
    said = {"gen_ai.prompt.0.content": "Why is it so?", "gen_ai.completion.0.content": "Because."}
    mixed = otlp(*ALL, span(10, "answer", said, trace="t3"))
    path = lines(tmp_path / "traces.jsonl", [otlp(other), mixed])
    remarks: list[str] = []
    records = list(read(path, ReadOptions(on_warning=remarks.append)))
    assert [record.item.question for record in records] == ["Who built the tower?", "Why is it so?"]
    assert "1 of 3 records have no answer and are left out" in remarks[0]
    assert "traces.jsonl, line 1: no span of this trace has a model's answer" in remarks[0]
    deep = tmp_path / ("far" * 60)  # the reason is told whole, however long the path
    deep.mkdir()
    whole = "line 1: no record of 1 has an answer: no span of this trace has a model's answer; exp"
    with pytest.raises(InputError, match=whole):
        list(read(lines(deep / "traces.jsonl", [otlp(other)])))


@pytest.mark.parametrize(
    "broken",
    [
        {"resourceSpans": [{"scopeSpans": [{}]}]},
        otlp({"name": "without a trace"}),
        otlp({**ALL[0], "parentSpanId": {"id": "s1"}}),
        otlp({**ALL[0], "spanId": ["s1"]}),
    ],
    ids=["no spans", "no trace", "a dict as parent", "a list as id"],
)
def test_what_is_no_span_is_refused_by_line(tmp_path: Path, broken: object) -> None:
    path = lines(tmp_path / "traces.jsonl", [otlp(*ALL), broken])
    with pytest.raises(InputError, match=r"traces.jsonl, line 2: not an OpenTelemetry span"):
        list(read(path))


def console(at: int, name: str, attributes: dict[str, Any], parent: int | None = None) -> str:
    """Return a span as Python's ``ConsoleSpanExporter`` prints it."""
    context = {"trace_id": "0xab", "span_id": f"0x{at}", "trace_state": "[]"}
    shown: dict[str, Any] = {
        "name": name,
        "context": context,
        "kind": "SpanKind.INTERNAL",
        "parent_id": None if parent is None else f"0x{parent}",
        "start_time": f"2026-03-01T10:00:0{at}.000000Z",
        "end_time": f"2026-03-01T10:00:0{at if at else 9}.500000Z",
        "status": {"status_code": "UNSET"},
        "attributes": attributes,
        "events": [],
        "links": [],
        "resource": {"attributes": {"service.name": "rag"}, "schema_url": ""},
    }
    return json.dumps(shown, indent=4) + "\n"


def printed_call(asked: str, said: str) -> dict[str, Any]:
    return {
        "openinference.span.kind": "LLM",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": asked,
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": said,
    }


NODE = json.dumps({"langgraph_step": 2, "langgraph_node": "draft"})
PRINTED = (
    console(
        1,
        "search",
        {
            "openinference.span.kind": "RETRIEVER",
            "retrieval.documents.0.document.content": TOWER,
            "retrieval.documents.1.document.content": CITY,
        },
    ),
    console(3, "ChatOpenAI", {**printed_call(ASKED, NOTES)}, parent=2),
    console(2, "node", {"openinference.span.kind": "CHAIN", "metadata": NODE}, parent=0),
    console(4, "ChatOpenAI", {**printed_call(NOTES, ANSWER), "crewai.agent.role": "Editor"}),
    console(
        0,
        "graph",
        {"openinference.span.kind": "CHAIN", "input.value": "Who built the tower?"},
    ),
)


@pytest.mark.parametrize(
    "log",
    [
        pytest.param("".join(PRINTED), id="spans alone"),
        pytest.param(
            "INFO, starting {now\n" + "Done: [1\n".join(PRINTED) + "}\n",
            id="between lines of a log",
        ),
        pytest.param(
            "".join(json.dumps(json.loads(each)) + "\n" for each in PRINTED), id="on a line each"
        ),
    ],
)
def test_what_the_console_exporter_prints_is_read_with_the_frameworks_stages(
    tmp_path: Path, log: str
) -> None:
    path = tmp_path / "app.log"
    path.write_text(log)
    assert detect(path) == "traces"
    (record,) = read(path)
    assert (record.item.question, record.item.answer) == ("Who built the tower?", ANSWER)
    assert isinstance(record.item.process, Process)
    stages = {node.text: node.stage for node in record.item.process.nodes}
    assert stages == {TOWER: "source", CITY: "source", NOTES: "draft", ANSWER: "Editor"}


def test_a_printed_span_that_is_cut_off_is_refused_by_line(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    path.write_text("started\n" + PRINTED[0] + PRINTED[1][:300])
    with pytest.raises(InputError, match=r"app.log, line \d+: not an OpenTelemetry span") as caught:
        list(read(path))
    assert caught.value.line == 2 + PRINTED[0].count("\n")


def observation(at: int, kind: str, name: str, read: object, written: object) -> dict[str, Any]:
    return {
        "id": f"o{at}",
        "traceId": "t1",
        "parentObservationId": None if at == 0 else "o0",
        "type": kind,
        "name": name,
        "startTime": f"2026-03-01T10:00:0{at}.000Z",
        "endTime": f"2026-03-01T10:00:0{at if at else 9}.500Z",
        "input": read,
        "output": written,
        "metadata": {"langgraph_node": "draft"} if at == 2 else {},
    }


def said(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


OBSERVED = [
    observation(0, "SPAN", "rag", {"question": "Who built the tower?"}, ANSWER),
    observation(
        1, "RETRIEVER", "search", "tower", [{"page_content": TOWER}, {"page_content": CITY}]
    ),
    observation(2, "GENERATION", "llm", [said("user", ASKED)], said("assistant", NOTES)),
    observation(3, "GENERATION", "answer", {"messages": [said("user", NOTES)]}, ANSWER),
]
SNAKES = {
    "traceId": "trace_id",
    "parentObservationId": "parent_observation_id",
    "startTime": "start_time",
    "endTime": "end_time",
}


@pytest.mark.parametrize(
    "written",
    [
        pytest.param(json.dumps(OBSERVED), id="an array"),
        pytest.param(
            json.dumps({"trace": {"id": "t1"}, "observations": OBSERVED}, indent=2), id="a trace"
        ),
        pytest.param(
            "".join(
                json.dumps(
                    {
                        SNAKES.get(key, key): json.dumps(held)
                        if key in ("input", "output")
                        else held
                        for key, held in each.items()
                    }
                )
                + "\n"
                for each in OBSERVED
            ),
            id="lines of an export, with JSON in texts",
        ),
    ],
)
def test_langfuses_observations_become_their_traces_answers(tmp_path: Path, written: str) -> None:
    path = tmp_path / "langfuse.json"
    path.write_text(written)
    (record,) = read(path)
    item = record.item
    assert (item.id, item.question) == ("t1", "Who built the tower?")
    assert item.answer == ANSWER
    assert isinstance(item.process, Process)
    stages = {node.text: node.stage for node in item.process.nodes}
    assert stages == {TOWER: "source", CITY: "source", NOTES: "draft", ANSWER: "answer"}


def test_what_failed_is_no_answer_and_a_guard_neither(tmp_path: Path) -> None:
    def call(at: int, name: str, text: str, **more: object) -> dict[str, Any]:
        made = span(at, name, {"gen_ai.operation.name": "chat", "output.value": text})
        return {**made, **more}

    spans = [
        call(1, "answer", "It was Eiffel."),
        call(2, "answer again", "Cut o", status={"code": 2}),
        call(3, "guardrail check", "yes"),
        call(4, "make title", "Towers"),
    ]
    (record,) = read(lines(tmp_path / "traces.jsonl", [otlp(*spans)]))
    assert record.item.answer == "It was Eiffel."


def test_calls_without_names_are_told_by_their_instructions(tmp_path: Path) -> None:
    def call(at: int, asked: str, text: str) -> dict[str, Any]:
        attributes = {"gen_ai.operation.name": "chat", "gen_ai.output.messages": parts("ai", text)}
        return span(at, "chat m", attributes | {"gen_ai.input.messages": parts("user", asked)})

    spans = [
        call(1, "You are a strict content moderator. Is this safe? Who built it?", "yes"),
        call(2, "Who built it?", "It was Eiffel."),
        call(3, "Grade this answer: It was Eiffel.", "5"),
        call(4, "Write a short title for this chat: Who built it?", "Towers"),
    ]
    (record,) = read(lines(tmp_path / "traces.jsonl", [otlp(*spans)]))
    assert (record.item.question, record.item.answer) == ("Who built it?", "It was Eiffel.")
    (record,) = read(lines(tmp_path / "title.jsonl", [otlp(spans[-1])]))
    assert record.item.answer == "Towers"  # which is what this program is for


def chat(at: int, said: str, *earlier: str, inside: int = 0) -> dict[str, Any]:
    """A call that read what user and model said by turns."""
    roles = ("user", "assistant") * len(earlier)
    read = [parts(role, text) for role, text in zip(roles, earlier, strict=False)]
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": f"[{','.join(one[1:-1] for one in read)}]",
        "gen_ai.output.messages": parts("assistant", said),
    }
    return {**span(at, "chat", attributes), "parentSpanId": f"s{inside}"}


def test_questions_of_one_trace_are_turns_with_what_was_found_for_each(tmp_path: Path) -> None:
    found = {"retrieval.documents.0.document.content": CITY, "openinference.span.kind": "RETRIEVER"}
    spans = [
        span(0, "session", {"session.id": "s", "user.id": "Ann"}),
        {**RETRIEVER, "parentSpanId": "s0"},
        chat(2, "Eiffel did.", "Who built it?"),
        {**span(3, "search", found), "parentSpanId": "s0"},
        chat(4, "In Paris.", "Who built it?", "Eiffel did.", "Where?"),
        chat(
            5, "You are welcome.", "Who built it?", "Eiffel did.", "Where?", "In Paris.", "Thanks!"
        ),
    ]
    items = [record.item for record in read(lines(tmp_path / "traces.jsonl", [otlp(*spans)]))]
    assert [(item.id, item.question, item.answer) for item in items] == [
        ("t1-1", "Who built it?", "Eiffel did."),
        ("t1-2", "Where?", "In Paris."),
        ("t1-3", "Thanks!", "You are welcome."),
    ]
    assert [[passage.text for passage in item.passages] for item in items] == [
        [TOWER, CITY],
        [CITY],
        [],
    ]
    assert {(item.meta["session"], item.meta["user"]) for item in items} == {("s", "Ann")}


@pytest.mark.parametrize("around", [{"input.value": "Who built it?"}, {"output.value": "Eiffel."}])
def test_an_agent_that_is_corrected_is_one_run(tmp_path: Path, around: dict[str, Any]) -> None:
    spans = [
        span(0, "agent", around),
        chat(1, "Eiffel?", "Who built it?"),
        chat(2, "Eiffel.", "Who built it?", "Eiffel?", "Say it without a question mark."),
    ]
    (record,) = read(lines(tmp_path / "traces.jsonl", [otlp(*spans)]))
    assert (record.item.id, record.item.answer) == ("t1", "Eiffel.")


def test_what_a_model_criticises_is_no_turn(tmp_path: Path) -> None:
    critique = "Say it without a question mark."
    spans = [
        span(0, "pipeline", {}),
        chat(1, "Eiffel?", "Who built it?"),
        chat(2, critique, "Criticise: Eiffel?"),
        chat(3, "Eiffel.", "Who built it?", "Eiffel?", critique),
    ]
    (record,) = read(lines(tmp_path / "traces.jsonl", [otlp(*spans)]))
    assert (record.item.id, record.item.answer) == ("t1", "Eiffel.")


def test_a_message_without_a_text_hides_no_question(tmp_path: Path) -> None:
    """OpenInference has the roles of a graph's messages as attributes, and the texts as JSON."""
    messages = json.dumps({"messages": [said("user", "Where?")]})
    asked = {"llm.input_messages.0.message.role": "user", "input.value": messages}
    answer = chat(1, "In Paris.", "Who built it?", "Eiffel did.", f"Say where.\n{CITY}")
    (record,) = read(lines(tmp_path / "traces.jsonl", [otlp(span(0, "graph", asked), answer)]))
    assert (record.item.question, record.item.answer) == ("Where?", "In Paris.")


def test_the_text_that_the_run_gave_back_is_the_answer(tmp_path: Path) -> None:
    """A model's reply may be JSON of which a pipeline returns a part."""
    said = json.dumps({"answer": ANSWER, "sure": True})
    call = span(1, "call", {"openinference.span.kind": "LLM", "output.value": said})
    (record,) = read(lines(tmp_path / "traces.jsonl", [otlp(CHAIN, call)]))
    assert record.item.answer == ANSWER
    assert isinstance(record.item.process, Process)
    assert [node.text for node in record.item.process.nodes] == [said, ANSWER]


EVENTS: dict[str, list[dict[str, Any]]] = {
    "an event for each message": [
        {"name": "gen_ai.system.message", "attributes": {"content": "Be brief."}},
        {"name": "gen_ai.user.message", "attributes": {"content": "Who built it?"}},
        {"name": "gen_ai.tool.message", "attributes": {"content": TOWER}},
        {"name": "gen_ai.choice", "attributes": {"message": json.dumps({"content": ANSWER})}},
    ],
    "two events": [
        {
            "name": "gen_ai.content.prompt",
            "attributes": {
                "gen_ai.prompt": json.dumps(
                    [
                        {"role": "user", "content": "Who built it?"},
                        {"role": "tool", "content": TOWER},
                    ]
                )
            },
        },
        {
            "name": "gen_ai.content.completion",
            "attributes": {
                "gen_ai.completion": json.dumps([{"role": "assistant", "content": ANSWER}])
            },
        },
    ],
    "one event": [
        {
            "name": "gen_ai.client.inference.operation.details",
            "attributes": {
                "gen_ai.input.messages": json.dumps(
                    [
                        {
                            "role": "user",
                            "parts": [{"type": "text", "content": "Who built it?"}],
                        },
                        {
                            "role": "tool",
                            "parts": [{"type": "tool_call_response", "result": TOWER}],
                        },
                    ]
                ),
                "gen_ai.output.messages": json.dumps(
                    [
                        {
                            "role": "assistant",
                            "parts": [
                                {"type": "reasoning", "content": "hm"},
                                {"type": "text", "content": ANSWER},
                            ],
                        }
                    ]
                ),
            },
        }
    ],
}


@pytest.mark.parametrize("events", EVENTS.values(), ids=EVENTS)
def test_all_generations_of_the_convention_s_events_are_read(
    tmp_path: Path, events: list[dict[str, Any]]
) -> None:
    printed = {
        "name": "chat m",
        "context": {"trace_id": "0x1", "span_id": "0x2"},
        "parent_id": None,
        "start_time": "2026-01-01T00:00:00Z",
        "end_time": "2026-01-01T00:00:01Z",
        "status": {"status_code": "OK"},
        "attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"},
        "events": events,
    }
    (record,) = read(lines(tmp_path / "traces.jsonl", [printed]))
    assert (record.item.question, record.item.answer) == ("Who built it?", ANSWER)
    assert [passage.text for passage in record.item.passages] == [TOWER]
    assert (record.item.meta["model"], record.item.meta["trace_id"]) == ("m", "1")


def test_times_are_numbers_and_a_deep_trace_is_read(tmp_path: Path) -> None:
    """9 comes before 10, whatever their texts do; each span of a chain is looked at once."""
    chain = [
        {**span(n, f"step {n}", {}), "parentSpanId": f"s{n - 1}" if n > 1 else ""}
        for n in range(1, 3000)
    ]
    said = {"gen_ai.operation.name": "chat", "output.value": ANSWER}
    chain.append({**span(3000, "chat", said), "parentSpanId": "s2999"})
    (record,) = read(lines(tmp_path / "traces.jsonl", [otlp(*reversed(chain))]))
    assert record.item.answer == ANSWER
    assert record.item.meta["span_id"] == "s1"


def test_what_one_span_says_wrong_costs_that_field_alone(tmp_path: Path) -> None:
    """A cost that is no number, a time that no clock shows, an attribute without a value."""
    chain = {**CHAIN, "startTimeUnixNano": str(9 * 10**20), "parentSpanId": CHAIN["spanId"]}
    chain["attributes"] = [
        *CHAIN["attributes"],
        {"key": "empty"},
        {"key": "llm.cost.total", "value": {"doubleValue": float("nan")}},
        {"key": "llm.token_count.prompt", "value": {"doubleValue": float("inf")}},
    ]
    model = span(2, "answer", {"openinference.span.kind": "LLM", "output.value": ANSWER})
    path = tmp_path / "traces.json"
    path.write_text(json.dumps(otlp(chain, RETRIEVER, model)))
    (record,) = read(path)
    assert record.item.answer == ANSWER
    assert [passage.text for passage in record.item.passages] == [TOWER, CITY]
    assert {"time", "cost", "input_tokens"}.isdisjoint(record.item.meta)


def test_reasoning_before_the_answer_of_a_trace_is_kept_beside_it(tmp_path: Path) -> None:
    thoughts = "<think>\nWas it 1891? No.\n</think>\n\n"
    call = span(2, "chat", printed_call(ASKED, thoughts + ANSWER))
    chain = span(0, "pipeline", {
        "openinference.span.kind": "CHAIN",
        "input.value": json.dumps({"question": "Who built the tower?"}),
        "output.value": thoughts + ANSWER,
    })  # fmt: skip
    path = tmp_path / "t.json"
    path.write_text(json.dumps(otlp(chain, RETRIEVER, call)))
    (record,) = read(path)
    assert (record.item.question, record.item.answer) == ("Who built the tower?", ANSWER)
    assert record.item.meta["reasoning"] == thoughts
    path.write_text(json.dumps(otlp(span(2, "chat", printed_call(ASKED, "<think>Was it 1891?")))))
    with pytest.raises(InputError, match="reasoning does not end in an answer"):
        list(read(path))


def test_runs_without_a_span_of_their_own_are_named_by_the_call_that_answers(
    tmp_path: Path,
) -> None:
    """Two items had the span of one retriever, and one a passage that another run had found."""
    short, long = "Shipping costs 4.90 euros.", "Shipping costs 4.90 euros. It is free from 50."
    days, shoes = "Shipping takes 3 to 5 days.", "Shoes may be returned within 30 days."
    runs = [
        ("How long may I return shoes?", [shoes, days], "Within 60 days."),
        ("How long does shipping take?", [days, short], "It takes 3 to 5 days."),
        ("What does shipping cost?", [long], "It costs 9.90 euros."),
    ]
    spans = [span(0, "POST", {})]
    for at, (question, found, said) in enumerate(runs, start=1):
        documents = {
            f"retrieval.documents.{n}.document.content": text for n, text in enumerate(found)
        }
        kind = "openinference.span.kind"
        spans += [
            span(at, "search", {kind: "RETRIEVER", "input.value": question, **documents}),
            span(10 + at, "chat", printed_call("\n".join([*found, "", question]), said)),
        ]
    for child in spans[1:]:
        child["parentSpanId"] = "s0"
    path = tmp_path / "t.json"
    path.write_text(json.dumps(otlp(*spans)))
    read_runs = list(read(path))
    assert [r.item.question for r in read_runs] == [question for question, _, _ in runs]
    assert [[p.text for p in r.item.passages] for r in read_runs] == [found for _, found, _ in runs]
    assert [r.item.meta["span_id"] for r in read_runs] == ["s11", "s12", "s13"]


def test_a_retriever_around_one_with_documents_only_names_them(tmp_path: Path) -> None:
    kind = "openinference.span.kind"
    names = json.dumps(["tower.md", "city.md"])
    around = span(3, "lookup", {kind: "RETRIEVER", "output.value": names})
    inner = {**RETRIEVER, "parentSpanId": "s3"}
    path = tmp_path / "t.json"
    path.write_text(
        json.dumps(otlp(CHAIN, around, inner, span(4, "chat", printed_call(ASKED, ANSWER))))
    )
    (record,) = read(path)
    assert [passage.text for passage in record.item.passages] == [TOWER, CITY]


def langfuse_rows(case: str, *, as_json: bool) -> list[dict[str, Any]]:
    """Two traces as Langfuse's documentation says that its tables and its buckets have them."""
    rows = []
    for n, (question, answer) in enumerate((("Who built it?", ANSWER), ("誰が建てた?", CITY)), 1):
        held = [
            ("SPAN", None, {"question": question}, {"answer": answer}),
            ("RETRIEVER", f"o{n}0", question, [{"page_content": TOWER}]),
            ("GENERATION", f"o{n}0", [{"role": "user", "content": question}], {"content": answer}),
        ]
        for at, (kind, parent, given, gave) in enumerate(held):
            row: dict[str, Any] = {"id": f"o{n}{at}", "traceId": f"t{n}", "type": kind}
            row |= {"parentObservationId": parent, "name": kind.lower(), "level": "DEFAULT"}
            row |= {"startTime": f"2026-11-01T10:0{n}:0{at}.000Z", "metadata": {}}
            row |= {"endTime": f"2026-11-01T10:0{n}:09.000Z", "statusMessage": None}
            row |= {"providedModelName": "gpt-4o" if kind == "GENERATION" else None}
            row |= {"input": json.dumps(given) if as_json else given}
            row |= {"output": json.dumps(gave) if as_json else gave}
            if case == "snake":
                row = {re.sub("[A-Z]", lambda m: f"_{m[0].lower()}", k): v for k, v in row.items()}
                for name in ("start_time", "end_time"):
                    row[name] = row[name].replace("T", " ").replace("Z", "000")
            rows.append(row)
    return rows


@pytest.mark.parametrize("case", ["camel", "snake"])
@pytest.mark.parametrize("form", ["table", "lines", "csv", "page"])
@pytest.mark.parametrize("as_json", [True, False])
def test_langfuses_tables_and_buckets_are_read_as_documented(
    tmp_path: Path, case: str, form: str, as_json: bool
) -> None:
    rows, path = langfuse_rows(case, as_json=as_json), tmp_path / "langfuse.json"
    if form == "csv":
        path = tmp_path / "langfuse.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            table = csv.DictWriter(file, list(rows[0]))
            table.writeheader()
            for row in rows:
                packed = {n: json.dumps(v) for n, v in row.items() if isinstance(v, dict | list)}
                table.writerow(row | packed)
    else:
        whole = {"data": rows, "meta": {"cursor": "abc"}} if form == "page" else rows
        lines = rows if form == "lines" else [whole]
        path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    items = [record.item for record in read(path)]
    assert [(item.question, item.answer) for item in items] == [
        ("Who built it?", ANSWER),
        ("誰が建てた?", CITY),
    ]
    assert [[p.text for p in item.passages] for item in items] == [[TOWER]] * 2
    assert [item.meta["model"] for item in items] == ["gpt-4o"] * 2
