"""Recording a pipeline: the texts that led to an answer, from decorated functions."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import openai
import pytest
from detector_cases import ANSWER, detect
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from prompts import prompt_of
from trail_answers import BUILT, TrailAnswers

import spanlab
from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorSpec, build
from spanlab.models import Meter, ModelChoice
from spanlab.schema import Process
from spanlab.testing import ModelRequest, ModelServer, ScriptedReply, say
from spanlab.traces.listening import span_processor

CHAPTERS = ["The tower was built in 1889.", "Paris is a city in France.", "Trees are green."]


@spanlab.recorded(stage="summary")
def summarise(chapter: str) -> str:
    return f"Summary of {chapter[:9]}"


@spanlab.recorded(stage="answer", inputs=["summaries"])
def combine(summaries: list[str], *, model: str = "scripted") -> str:
    return f"{len(summaries)} summaries by {model}"


def edges(process: Process) -> list[tuple[str, str, tuple[str, ...]]]:
    """Return text, stage and the texts it was made from, node by node."""
    return [
        (
            node.text,
            process.stage_of(node.id),
            tuple(process.by_id[source].text for source in node.sources),
        )
        for node in process.nodes
    ]


def test_a_pipeline_becomes_an_item_with_its_process() -> None:
    with spanlab.record() as process:
        combine([summarise(chapter) for chapter in CHAPTERS[:2]])
    item = process.item("report", "What happened?")
    assert (item.id, item.question, item.answer) == (
        "report",
        "What happened?",
        "2 summaries by scripted",
    )
    assert isinstance(item.process, Process)
    assert edges(item.process) == [
        (CHAPTERS[0], "source", ()),
        ("Summary of The tower", "summary", (CHAPTERS[0],)),
        (CHAPTERS[1], "source", ()),
        ("Summary of Paris is ", "summary", (CHAPTERS[1],)),
        (
            "2 summaries by scripted",
            "answer",
            ("Summary of The tower", "Summary of Paris is "),
        ),
    ]
    assert item.process.stages == ("source", "summary", "answer")


def test_what_did_not_lead_to_the_answer_is_left_out() -> None:
    with spanlab.record() as process:
        summarise(CHAPTERS[2])
        answer = combine([summarise(CHAPTERS[0])])
        summarise(CHAPTERS[1])
    assert {node.text for node in process.process(answer).nodes} == {
        CHAPTERS[0],
        "Summary of The tower",
        answer,
    }


def test_what_a_search_returns_are_sources_and_passages() -> None:
    @spanlab.recorded(stage="retrieve", sources=True)
    def search(query: str) -> list[dict[str, str]]:
        return [{"text": text} for text in CHAPTERS[:2]]

    @spanlab.recorded(stage="answer")
    def ask(documents: list[dict[str, str]], question: str) -> str:
        return "It was built in 1989."

    with spanlab.record() as process:
        ask(search("tower")[:1], "When?")
    item = process.item("a", "When?")
    assert [passage.text for passage in item.passages] == CHAPTERS[:2]
    assert isinstance(item.process, Process)
    assert edges(item.process) == [
        (CHAPTERS[0], "retrieve", ()),
        ("It was built in 1989.", "answer", (CHAPTERS[0],)),
    ]
    assert item.process.stages == ("retrieve", "answer")


def test_a_prompt_that_holds_earlier_texts_stands_for_them() -> None:
    @spanlab.recorded
    def ask(prompt: str) -> str:
        return "It was built in 1889."

    with spanlab.record() as process:
        summary = summarise(CHAPTERS[0])
        ask(f"Answer from this: {summary}")
    assert edges(process.process())[-1] == ("It was built in 1889.", "ask", (summary,))


def test_a_function_that_summarises_its_own_summaries_has_counted_stages() -> None:
    with spanlab.record() as process:
        summarise(summarise(CHAPTERS[0]) + " and more")
    assert [stage for _, stage, _ in edges(process.process())] == ["1", "2", "3"]


def test_threads_and_tasks_record_at_the_same_time() -> None:
    @spanlab.recorded(stage="answer")
    async def join(*texts: str) -> str:
        await asyncio.sleep(0)
        return " ".join(texts)

    chapters = [f"Chapter {number} has its own words." for number in range(40)]
    with spanlab.record() as process, ThreadPoolExecutor(8) as pool:
        summaries = list(pool.map(lambda text: combine([text], model=text), chapters))

        async def main() -> list[str]:
            return await asyncio.gather(*(join(a, b) for a, b in pairwise(summaries)))

        joined = asyncio.run(main())
    found = process.process(joined[6])
    assert {node.text for node in found.nodes} == {
        *chapters[6:8],
        *summaries[6:8],
        joined[6],
    }


def test_outside_of_a_recording_functions_do_what_they_did() -> None:
    assert summarise(CHAPTERS[0]) == "Summary of The tower"
    assert summarise.__name__ == "summarise"


def test_an_answer_that_nobody_returned_is_refused() -> None:
    with spanlab.record() as process:
        summarise(CHAPTERS[0])
    with pytest.raises(UsageError, match=r"@spanlab\.recorded"):
        process.process("something else")
    with spanlab.record() as nothing, pytest.raises(UsageError):
        nothing.process()


TOWER = "Trees are green. The tower was built in 1889."
CITY = "Paris is a city in France on the river Seine."
QUESTION = "When was the tower built, and by whom?"
WRONG = "Notes on trees. The tower was built in 1989."


def pipeline(client: openai.OpenAI) -> str:
    """Search, take notes and answer as scripts on openai do; nothing here knows of spanlab."""

    def search(query: str) -> list[str]:
        client.embeddings.create(model="m", input=[TOWER, CITY], encoding_format="float")
        client.embeddings.create(model="m", input=query, encoding_format="float")
        return [TOWER, CITY]

    def take_notes(document: str) -> str:
        reply = client.chat.completions.create(
            model="m",
            messages=[
                {"role": "system", "content": "Take notes for the question."},
                {"role": "user", "content": f"{QUESTION}\n{document}"},
            ],
        )
        return reply.choices[0].message.content or ""

    def write_answer(notes: list[str]) -> str:
        prompt = "\n".join(["Answer from these notes:", *notes, QUESTION])
        stream = client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": prompt}], stream=True
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)

    return write_answer([take_notes(document) for document in search(QUESTION)])


def asked(ask: ModelRequest) -> ScriptedReply:
    """Reply to the pipeline: the notes on the tower have the wrong year, which the answer keeps."""
    if ask.path.endswith("/embeddings"):
        inputs = ask.body["input"] if isinstance(ask.body["input"], list) else [ask.body["input"]]
        vectors = [
            {"object": "embedding", "index": i, "embedding": [0.5]} for i in range(len(inputs))
        ]
        return ScriptedReply(body={"object": "list", "model": "m", "data": vectors})
    if ask.body.get("stream"):
        return streaming(ANSWER[:20], ANSWER[20:])
    return say(WRONG if TOWER in prompt_of(ask) else "Paris is a city in France.")


def streaming(*pieces: str) -> ScriptedReply:
    chunks = [
        {
            "id": "1",
            "object": "chat.completion.chunk",
            "created": 0,
            "model": "m",
            "choices": [{"index": 0, "delta": {"content": piece}}],
        }
        for piece in pieces
    ]
    lines = [f"data: {json.dumps(chunk)}\n\n" for chunk in chunks]
    return ScriptedReply(
        body="".join([*lines, "data: [DONE]\n\n"]).encode(),
        headers={"Content-Type": "text/event-stream"},
    )


@pytest.mark.system("veritrail")
def test_an_unmodified_script_on_openai_is_traced_to_the_step_that_went_wrong(
    model_server: ModelServer, tmp_path: Path
) -> None:
    model_server.script(asked)
    plain = openai.OpenAI.request
    with spanlab.record() as process, openai.OpenAI(max_retries=0) as client:
        assert pipeline(client) == ANSWER
    assert openai.OpenAI.request is plain
    item = process.item("tower", QUESTION)
    assert isinstance(item.process, Process)
    notes = ("Paris is a city in France.", WRONG)
    assert edges(item.process)[-1] == (ANSWER, "write_answer", (WRONG, notes[0]))
    assert {node.text for node in item.process.nodes if not node.sources} == {TOWER, CITY}

    model_server.script(TrailAnswers(claims=(BUILT,)))
    choice = ModelChoice(model="scripted", base_url=model_server.url, retries=0)
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")
    detector = build(DetectorSpec(detector="veritrail", model=choice), Meter(), settings)
    with spanlab.record() as nothing:
        (claim,) = detect(detector, item).annotation.claims
    with pytest.raises(UsageError):  # detectors are no pipeline
        nothing.process()
    assert (claim.verdict, claim.error_stages) == ("not-supported", ("take_notes",))


def test_tasks_tools_and_responses_of_openai_are_heard_apart(model_server: ModelServer) -> None:
    def reply(ask: ModelRequest) -> ScriptedReply:
        if ask.path.endswith("/responses"):
            text = {"type": "output_text", "text": "By Ada Smith.", "annotations": []}
            message = {
                "type": "message",
                "id": "1",
                "role": "assistant",
                "status": "completed",
                "content": [text],
            }
            return ScriptedReply(body={"id": "1", "object": "response", "output": [message]})
        return say(f"Answer to {ask.messages[0]['content']}")

    model_server.script(reply)

    async def answer(number: int) -> Process:
        async with openai.AsyncOpenAI(max_retries=0) as client:
            with spanlab.record() as process:
                await client.chat.completions.create(
                    model="m",
                    messages=[
                        {"role": "user", "content": f"question {number}"},
                        {"role": "tool", "tool_call_id": "1", "content": f"Result {number}"},
                    ],
                )
            return process.process()

    async def main() -> list[Process]:
        return await asyncio.gather(*(answer(number) for number in range(4)))

    for number, process in enumerate(asyncio.run(main())):
        assert edges(process) == [
            (f"Result {number}", "source", ()),
            (f"Answer to question {number}", "answer", (f"Result {number}",)),
        ]
    with spanlab.record() as heard, openai.OpenAI(max_retries=0) as client:
        client.responses.create(
            model="m",
            instructions="Be short.",
            input=[
                {"role": "user", "content": QUESTION},
                {"type": "function_call_output", "call_id": "1", "output": CITY},
            ],
        )
    assert edges(heard.process())[-1][::2] == ("By Ada Smith.", (CITY,))


def events(ask: ModelRequest) -> ScriptedReply:
    """Reply to Responses with a stream, to a chat as `asked` does."""
    if not ask.path.endswith("/responses"):
        return asked(ask)
    deltas = [
        {
            "type": "response.output_text.delta",
            "item_id": "1",
            "output_index": 0,
            "content_index": 0,
            "sequence_number": number,
            "delta": piece,
            "logprobs": [],
        }
        for number, piece in enumerate((ANSWER[:20], ANSWER[20:]))
    ]
    lines = [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in deltas]
    return ScriptedReply(
        body="".join(lines).encode(), headers={"Content-Type": "text/event-stream"}
    )


@pytest.mark.parametrize("way", ["chat", "raw", "responses"])
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_streams_are_heard_to_their_end_however_they_are_asked_for(
    way: str, is_async: bool, model_server: ModelServer
) -> None:
    model_server.script(events)
    read = [{"role": "tool", "tool_call_id": "1", "content": CITY}]
    chat: dict[str, Any] = {"model": "m", "messages": read, "stream": True}
    output = {"type": "function_call_output", "call_id": "1", "output": CITY}
    responses: dict[str, Any] = {"model": "m", "input": [output], "stream": True}

    def begun(client: Any) -> Any:
        if way == "responses":
            return client.responses.create(**responses)
        create = client.chat.completions
        return (create.with_raw_response if way == "raw" else create).create(**chat)

    async def heard() -> int:
        async with openai.AsyncOpenAI(max_retries=0) as client:
            found = await begun(client)
            return len([each async for each in (found.parse() if way == "raw" else found)])

    with spanlab.record() as process:
        if is_async:
            assert asyncio.run(heard()) == 2
        else:
            with openai.OpenAI(max_retries=0) as client:
                found = begun(client)
                assert len(list(found.parse() if way == "raw" else found)) == 2
    stage = "heard" if is_async else "begun"
    assert edges(process.process()) == [(CITY, "source", ()), (ANSWER, stage, (CITY,))]


def test_a_tool_that_a_model_calls_is_what_its_answer_was_made_from(
    model_server: ModelServer,
) -> None:
    function = {"name": "look_up", "arguments": "{}"}
    wanted = {"id": "1", "type": "function", "function": function}

    def reply(ask: ModelRequest) -> ScriptedReply:
        if ask.messages[-1]["role"] == "tool":
            return say(ANSWER)
        message = {"role": "assistant", "content": None, "tool_calls": [wanted]}
        choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
        body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
        return ScriptedReply(body={**body, "choices": [choice]})

    model_server.script(reply)

    def agent(client: openai.OpenAI) -> str:
        messages: list[Any] = [{"role": "user", "content": QUESTION}]
        first = client.chat.completions.create(model="m", messages=messages).choices[0].message
        assert first.tool_calls
        messages += [first, {"role": "tool", "tool_call_id": "1", "content": CITY}]
        last = client.chat.completions.create(model="m", messages=messages)
        return last.choices[0].message.content or ""

    with spanlab.record() as process, openai.OpenAI(max_retries=0) as client:
        agent(client)
    assert edges(process.process()) == [(CITY, "source", ()), (ANSWER, "agent", (CITY,))]


def test_spans_of_a_framework_are_heard_with_the_names_of_its_parts() -> None:
    provider = TracerProvider()
    provider.add_span_processor(span_processor())
    tracer = provider.get_tracer("pipeline")
    with spanlab.record() as process:
        with tracer.start_as_current_span("retrieve") as span:
            span.set_attribute("openinference.span.kind", "RETRIEVER")
            span.set_attribute("retrieval.documents.0.document.content", TOWER)
        node = tracer.start_as_current_span("node", attributes={"langgraph_node": "notes"})
        with node, tracer.start_as_current_span("ChatOpenAI") as span:
            span.set_attribute("openinference.span.kind", "LLM")
            span.set_attribute("llm.input_messages.0.message.role", "user")
            span.set_attribute("llm.input_messages.0.message.content", f"Note: {TOWER}")
            span.set_attribute("llm.output_messages.0.message.content", WRONG)
        with tracer.start_as_current_span("chat m", attributes={"gen_ai.operation.name": "chat"}):
            parts = [{"type": "text", "content": f"{QUESTION} {WRONG}"}]
            read = [{"role": "user", "parts": parts}]
            wrote = [{"role": "assistant", "parts": [{"type": "text", "content": ANSWER}]}]
            trace.get_current_span().set_attribute("gen_ai.input.messages", json.dumps(read))
            trace.get_current_span().set_attribute("gen_ai.output.messages", json.dumps(wrote))
    assert edges(process.process()) == [
        (TOWER, "source", ()),
        (WRONG, "notes", (TOWER,)),
        (ANSWER, "chat m", (WRONG,)),
    ]


def test_messages_objects_and_what_is_yielded_are_noted_by_their_texts() -> None:
    @dataclass
    class Document:
        page_content: str
        id: str = "a long identifier of a document"

    @spanlab.recorded
    def retrieve(query: str) -> list[Document]:
        return [Document(CITY)]

    @spanlab.recorded
    def answer(messages: list[dict[str, str]]) -> Iterator[str]:
        yield "By Ada "
        yield "Smith."

    with spanlab.record() as process:
        (found,) = retrieve(QUESTION)
        messages = [{"role": "user", "content": f"{QUESTION} {found.page_content}"}]
        assert "".join(answer(messages)) == "By Ada Smith."
    assert edges(process.process()) == [
        (CITY, "retrieve", ()),
        ("By Ada Smith.", "answer", (CITY,)),
    ]
