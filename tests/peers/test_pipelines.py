"""Pipelines of other people's frameworks, traced as they trace: each trace becomes an item."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider

import spanlab
from spanlab.schema import Process, Record
from spanlab.testing import ModelServer, call_tools, in_turn, say

ASKED = "When was the Eiffel Tower built?"
BUILT = "The Eiffel Tower was completed in 1889."
TALL = "It is 330 metres tall.\nIt stands in Paris."
WRONG = "The Eiffel Tower was built in 1989."


def check(record: Record, passages: list[str], stage: str) -> None:
    """Check what an item is made of, and that the wrong year is marked."""
    item = record.item
    assert (item.question, item.answer) == (ASKED, WRONG)
    assert [passage.text for passage in item.passages] == passages
    assert isinstance(item.process, Process)
    assert stage in item.process.stages
    (annotation,) = record.annotations
    assert [span.text for span in annotation.spans if span.prob > 0.5] == ["1989"]


@pytest.mark.parametrize(
    ("convention", "stage"), [("OpenInference", "ChatOpenAI"), ("OpenLLMetry", "RunnableSequence")]
)
def test_langchain(
    model: ModelServer,
    provider: TracerProvider,
    annotated: Callable[[], Record],
    convention: str,
    stage: str,
) -> None:
    from langchain_core.documents import Document
    from langchain_core.output_parsers import StrOutputParser
    from langchain_core.prompts import ChatPromptTemplate
    from langchain_core.runnables import RunnablePassthrough
    from langchain_core.vectorstores import InMemoryVectorStore
    from langchain_openai import ChatOpenAI, OpenAIEmbeddings
    from openinference.instrumentation.langchain import LangChainInstrumentor
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    at: dict[str, Any] = {"base_url": model.url, "api_key": "any"}
    vectors = OpenAIEmbeddings(model="m", check_embedding_ctx_length=False, **at)
    store = InMemoryVectorStore(vectors)
    store.add_documents([Document(BUILT), Document(TALL)])
    prompt = ChatPromptTemplate.from_template("Context: {context}\n\nQuestion: {question}")
    given = {"context": store.as_retriever(), "question": RunnablePassthrough()}
    chain = given | prompt | ChatOpenAI(model="m", **at) | StrOutputParser()
    instruments = {"OpenInference": LangChainInstrumentor, "OpenLLMetry": LangchainInstrumentor}
    tracing: Any = instruments[convention]()
    tracing.instrument(tracer_provider=provider)
    try:
        assert chain.invoke(ASKED) == WRONG
    finally:
        tracing.uninstrument()
    check(annotated(), [BUILT, TALL], stage)


def test_llamaindex(
    model: ModelServer, provider: TracerProvider, annotated: Callable[[], Record]
) -> None:
    """Its package for OpenAI wants an older `openai`: so the model here is one of its own kind."""
    from llama_index.core import Document, MockEmbedding, VectorStoreIndex
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.llms.callbacks import llm_completion_callback
    from openai import OpenAI
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    class Scripted(CustomLLM):
        """Asks the scripted model."""

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="m")

        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
            asked = [{"role": "user", "content": prompt}]
            client: Any = OpenAI(base_url=model.url, api_key="any")
            reply = client.chat.completions.create(model="m", messages=asked)
            return CompletionResponse(text=reply.choices[0].message.content)

        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
            yield self.complete(prompt)

    tracing = LlamaIndexInstrumentor()
    tracing.instrument(tracer_provider=provider)
    try:
        documents = [Document(text=BUILT), Document(text=TALL)]
        index = VectorStoreIndex.from_documents(documents, embed_model=MockEmbedding(8))
        assert str(index.as_query_engine(llm=Scripted()).query(ASKED)) == WRONG
    finally:
        tracing.uninstrument()
    record = annotated()
    texts = sorted(passage.text for passage in record.item.passages)
    assert texts == sorted([BUILT, TALL])  # of vectors that are all alike: in either order
    check(record, [passage.text for passage in record.item.passages], "Scripted.complete")


@pytest.mark.parametrize("streams", [False, True])
def test_pydantic_ai(
    model: ModelServer, provider: TracerProvider, annotated: Callable[[], Record], streams: bool
) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    model.script(in_turn(call_tools(look_up={"name": "Eiffel Tower"}), say(WRONG)))
    at = OpenAIProvider(base_url=model.url, api_key="any")
    agent = Agent(OpenAIChatModel("m", provider=at), name="guide")
    agent.instrument = InstrumentationSettings(tracer_provider=provider)

    @agent.tool_plain
    def look_up(name: str) -> str:
        """Look a building up."""
        return f"{BUILT}\n{TALL}" if name == "Eiffel Tower" else ""

    async def stream() -> list[str]:
        async with agent.run_stream(ASKED) as run:
            return [text async for text in run.stream_text()]

    if streams:
        assert asyncio.run(stream())[-1] == WRONG
    else:
        assert agent.run_sync(ASKED).output == WRONG
    check(annotated(), [f"{BUILT}\n{TALL}"], "guide")


def test_two_questions_in_one_span(
    model: ModelServer, provider: TracerProvider, command: Callable[..., Any], tmp_path: Path
) -> None:
    from langchain.agents import create_agent
    from langchain_openai import ChatOpenAI
    from langgraph.checkpoint.memory import InMemorySaver
    from openinference.instrumentation.langchain import LangChainInstrumentor

    def look_up(what: str) -> str:
        """Look something up."""
        return BUILT if what == "age" else TALL

    first, second = (call_tools(look_up={"what": what}) for what in ("age", "height"))
    model.script(in_turn(first, say(WRONG), second, say("It is 330 m tall.")))
    asked = [ASKED, "And how tall is it?"]
    bot = ChatOpenAI(model="m", base_url=model.url, api_key="any")
    agent = create_agent(bot, tools=[look_up], checkpointer=InMemorySaver())
    tracing = LangChainInstrumentor()
    tracing.instrument(tracer_provider=provider)
    try:
        with provider.get_tracer("app").start_as_current_span("session"):
            for question in asked:
                said = [{"role": "user", "content": question}]
                agent.invoke({"messages": said}, {"configurable": {"thread_id": "t"}})
    finally:
        tracing.uninstrument()
    command("export", "traces", "-o", "turns.jsonl")
    items = [record.item for record in spanlab.load(tmp_path / "turns.jsonl")]
    assert [(item.question, item.answer) for item in items] == [
        (asked[0], WRONG),
        (asked[1], "It is 330 m tall."),
    ]
    assert [[passage.text for passage in item.passages] for item in items] == [
        [BUILT],
        [BUILT, TALL],
    ]
