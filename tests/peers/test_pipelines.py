"""Pipelines of other people's frameworks, traced as they trace: each trace becomes an item."""

from __future__ import annotations

import asyncio
import operator
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from opentelemetry.sdk.trace import TracerProvider

import spanlab
from spanlab.schema import Item, Process, Record
from spanlab.testing import ModelServer, call_tools, in_turn, say

# Questions, with what is found and said for each.
RUNS: dict[str, tuple[str, str]] = {
    "When was the Kolme lighthouse built?": ("It was completed in 1889.", "It was built in 1898."),
    "Who designed the Varda bridge?": ("Ines Holt designed it.", "Ida Holm designed that."),
    "ヴァルダ橋は何年に開通しましたか?": ("1932年に開通した。🌉", "1935年に開通しました。🌉"),
}
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
    model: ModelServer, provider: TracerProvider, stored: Callable[[int], list[Item]]
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
    items = stored(2)
    assert [(item.question, item.answer) for item in items] == [
        (asked[0], WRONG),
        (asked[1], "It is 330 m tall."),
    ]
    assert [[passage.text for passage in item.passages] for item in items] == [[BUILT], [TALL]]


def respond(ask: Any) -> Any:
    """Have a tool look the question up that was asked last, then answer it."""
    messages = ask.messages
    asked = [n for n, message in enumerate(messages) if asks_of(message)]
    question = asks_of(messages[asked[-1]])
    has_searched = any(message["role"] == "tool" for message in messages[asked[-1] :])
    if ask.body.get("tools") and not has_searched:
        return call_tools(search={"query": question})(ask)
    return say(RUNS[question][1])


def asks_of(message: dict[str, Any]) -> str:
    text = str(message.get("content") or "") if message["role"] == "user" else ""
    return max((q for q in RUNS if q in text), key=text.rfind, default="")


@pytest.fixture
def stored(command: Callable[..., Any], tmp_path: Path) -> Callable[[int], list[Item]]:
    """Return the items once there are so many: a trace is stored when nothing more comes of it."""

    def read(count: int) -> list[Item]:
        items = list[Item]()
        for _ in range(40):
            time.sleep(0.5)
            if "traces" in command("datasets").stdout:
                command("export", "traces", "-o", "stored.jsonl")
                items = [record.item for record in spanlab.load(tmp_path / "stored.jsonl")]
                if len(items) == count:
                    break
        return items

    return read


@pytest.fixture
def runs(stored: Callable[[int], list[Item]]) -> Callable[[], list[Any]]:
    """Return question, answer and passages of the items, once their traces are stored."""

    def read() -> list[Any]:
        told = {
            item.question: (item.answer, [passage.text for passage in item.passages])
            for item in stored(len(RUNS))
        }
        return [(question, *told.get(question, ("", []))) for question in RUNS]

    return read


EXPECTED = [(question, said, [found]) for question, (found, said) in RUNS.items()]


def test_agents_of_openai_side_by_side(
    model: ModelServer, provider: TracerProvider, runs: Callable[[], list[Any]]
) -> None:
    import agents
    from openai import AsyncOpenAI
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    @agents.function_tool
    def search(query: str) -> str:
        """Look it up."""
        return RUNS[query][0]

    client = AsyncOpenAI(base_url=model.url, api_key="any")
    bot = agents.OpenAIChatCompletionsModel("m", openai_client=client)
    agent = agents.Agent(name="guide", instructions="Search.", tools=[search], model=bot)

    async def ask() -> None:
        with agents.trace("batch"):
            await asyncio.gather(*(agents.Runner.run(agent, question) for question in RUNS))

    model.script(respond)
    tracing = OpenAIAgentsInstrumentor()
    tracing.instrument(tracer_provider=provider)
    try:
        asyncio.run(ask())
    finally:
        tracing.uninstrument()
    assert runs() == EXPECTED


def test_a_chat_of_pydantic_ai(
    model: ModelServer, provider: TracerProvider, runs: Callable[[], list[Any]]
) -> None:
    from pydantic_ai import Agent
    from pydantic_ai.models.instrumented import InstrumentationSettings
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    at = OpenAIProvider(base_url=model.url, api_key="any")
    agent = Agent(OpenAIChatModel("m", provider=at), name="guide")
    agent.instrument = InstrumentationSettings(tracer_provider=provider)

    @agent.tool_plain
    def search(query: str) -> list[str]:
        """Look it up."""
        return [RUNS[query][0]]

    model.script(respond)
    with provider.get_tracer("app").start_as_current_span("session"):
        history: Any = None
        for question in RUNS:
            history = agent.run_sync(question, message_history=history).all_messages()
    assert runs() == EXPECTED


class Asked(TypedDict):
    """The state of a graph."""

    questions: list[str]
    answers: Annotated[list[str], operator.add]


def test_langgraph_sends_each_question_to_a_node(
    model: ModelServer, provider: TracerProvider, runs: Callable[[], list[Any]]
) -> None:
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
    from langchain_openai import ChatOpenAI
    from langgraph.graph import END, START, StateGraph
    from langgraph.types import Send
    from openinference.instrumentation.langchain import LangChainInstrumentor

    class Search(BaseRetriever):
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
            return [Document(page_content=RUNS[query][0])]

    bot = ChatOpenAI(model="m", base_url=model.url, api_key="any")

    def answer(state: dict[str, str]) -> dict[str, list[str]]:
        (found,) = Search().invoke(state["question"])
        said = bot.invoke([("system", f"Use: {found.page_content}"), ("user", state["question"])])
        return {"answers": [said.content]}

    def split(state: dict[str, Any]) -> Any:
        return [Send("answer", {"question": question}) for question in state["questions"]]

    model.script(respond)
    graph = StateGraph(Asked)
    graph.add_node("answer", answer)
    graph.add_conditional_edges(START, split, ["answer"])
    graph.add_edge("answer", END)
    tracing = LangChainInstrumentor()
    tracing.instrument(tracer_provider=provider)
    try:
        graph.compile().invoke({"questions": list(RUNS), "answers": []})
    finally:
        tracing.uninstrument()
    assert runs() == EXPECTED


def test_a_chat_of_llamaindex_that_condenses_questions(
    model: ModelServer, provider: TracerProvider, runs: Callable[[], list[Any]]
) -> None:
    from llama_index.core.chat_engine import CondensePlusContextChatEngine
    from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
    from llama_index.core.llms.callbacks import llm_completion_callback
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
    from openai import OpenAI
    from openinference.instrumentation.llama_index import LlamaIndexInstrumentor

    class Scripted(CustomLLM):
        """Asks the scripted model; a question that is condensed stays as it is."""

        @property
        def metadata(self) -> LLMMetadata:
            return LLMMetadata(model_name="m")

        @llm_completion_callback()
        def complete(self, prompt: str, formatted: bool = False, **_: Any) -> CompletionResponse:
            if "standalone question" in prompt:
                return CompletionResponse(text=max(RUNS, key=prompt.rfind))
            asked = [{"role": "user", "content": prompt}]
            client: Any = OpenAI(base_url=model.url, api_key="any")
            reply = client.chat.completions.create(model="m", messages=asked)
            return CompletionResponse(text=reply.choices[0].message.content)

        @llm_completion_callback()
        def stream_complete(self, prompt: str, formatted: bool = False, **_: Any) -> Any:
            yield self.complete(prompt)

    class Search(BaseRetriever):
        def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
            found = RUNS[query_bundle.query_str][0]
            return [NodeWithScore(node=TextNode(text=found), score=0.9)]

    model.script(respond)
    tracing = LlamaIndexInstrumentor()
    tracing.instrument(tracer_provider=provider)
    try:
        engine = CondensePlusContextChatEngine.from_defaults(retriever=Search(), llm=Scripted())
        with provider.get_tracer("app").start_as_current_span("session"):
            for question in RUNS:
                engine.chat(question)
    finally:
        tracing.uninstrument()
    assert runs() == EXPECTED


def test_a_long_chat_of_mlflow(
    model: ModelServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its preview of what a trace was given is cut after 250 characters."""
    import mlflow
    from openai import OpenAI

    monkeypatch.chdir(tmp_path)  # where it leaves files of traces
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'mlflow.db'}")
    mlflow.set_experiment("chats")
    client: Any = OpenAI(base_url=model.url, api_key="any")
    model.script(respond)

    @mlflow.trace
    def chat(messages: list[dict[str, str]]) -> str:
        reply = client.chat.completions.create(model="m", messages=messages)
        return str(reply.choices[0].message.content)

    mlflow.openai.autolog()
    talk = [{"role": "system", "content": "Answer in one short sentence. " * 10}]
    lines = []
    for question in RUNS:
        talk.append({"role": "user", "content": question})
        talk.append({"role": "assistant", "content": chat(list(talk))})
        mlflow.flush_trace_async_logging()
        trace = mlflow.get_trace(str(mlflow.get_last_active_trace_id()))
        assert trace is not None
        lines.append(trace.to_json())
    mlflow.openai.autolog(disable=True)
    file = tmp_path / "traces.jsonl"
    file.write_text("\n".join(lines), "utf-8")
    told = [(record.item.question, record.item.answer) for record in spanlab.load(file)]
    assert told == [(question, said) for question, (_, said) in RUNS.items()]
