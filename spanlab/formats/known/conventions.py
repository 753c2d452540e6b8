"""The names that conventions of traces have for what a span says, a table for each meaning."""

from __future__ import annotations

import re
from typing import Final

# What a span is for, by the words that conventions have for it.
_WORDS: Final = {
    "model": (
        *("llm", "chat_model", "generation", "chat", "text_completion", "generate_content"),
        *("completion", "chat.completions", "call_llm", "ai.generatetext.dogenerate"),
        *("ai.streamtext.dostream", "ai.generateobject.dogenerate", "ai.streamobject.dostream"),
        "chat completion with {gen_ai.request.model!r}",
    ),
    "agent": ("agent", "invoke_agent"),
    "retriever": ("retriever", "reranker", "retrieval", "vector_db_retrieve"),
    "tool": ("tool", "execute_tool", "ai.toolcall", "function: {name}"),
    "aside": ("guardrail", "evaluator", "guard", "evaluation"),
    "embedding": ("embedding", "embeddings", "ai.embed.doembed", "ai.embedmany.doembed"),
}
KINDS: Final = {word: kind for kind, words in _WORDS.items() for word in words}
KIND_NAMES: Final = (
    *("openinference.span.kind", "mlflow.spanType", "langfuse.observation.type", "ai.operationId"),
    *("langsmith.span.kind", "operation.name", "gen_ai.operation.name", "traceloop.span.kind"),
    *("llm.request.type", "logfire.msg_template"),
)
COMPONENTS: Final = {"Generator": "model", "Retriever": "retriever", "Ranker": "retriever"}
MODEL_NAMES: Final = (
    *("gen_ai.completion.0.content", "gcp.vertex.agent.llm_response", "gen_ai.request.model"),
    "gen_ai.response.model",
)
INPUTS: Final = (
    *("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt", "ai.prompt.messages"),
    *("input.value", "traceloop.entity.input", "gen_ai.task.input", "mlflow.spanInputs"),
    *("langfuse.observation.input", "ai.prompt", "ai.toolCall.args", "gen_ai.tool.call.arguments"),
    *("gcp.vertex.agent.llm_request", "gcp.vertex.agent.tool_call_args"),
    *("haystack.component.input", "haystack.pipeline.input_data", "input", "question", "query"),
)
OUTPUTS: Final = (
    *("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion", "output.value"),
    *("traceloop.entity.output", "gen_ai.task.output", "mlflow.spanOutputs"),
    *("langfuse.observation.output", "ai.response.text", "final_result", "ai.toolCall.result"),
    *("gen_ai.tool.call.result", "tool_response", "gcp.vertex.agent.llm_response"),
    *("gcp.vertex.agent.tool_response", "haystack.component.output"),
    *("haystack.pipeline.output_data", "output", "answer"),
)
DOCUMENTS: Final = (
    *("retrieval.documents", "reranker.output_documents", "gen_ai.retrieval.documents"),
    "documents",
)
QUESTION_FIELDS: Final = (
    *("question", "query", "query_str", "user_input", "user_msg", "message", "input", "inputs"),
    *("prompt", "q", "content", "text", "query_bundle", "messages", "contents", "task"),
    *("value", "kwargs", "args", "data", "retriever"),
)

ANSWER_FIELDS: Final = (
    *("raw", "answer", "output", "response", "result", "text", "content", "generation"),
    *("messages", "replies", "outputs", "value"),
)
USERS: Final = frozenset(("user", "human"))

# Where an object has documents, a chat, or a reply.
LISTS: Final = (
    *("documents", "outputs", "output", "passages", "contexts", "results", "result", "chunks"),
    *("nodes", "context"),
)
CONTEXTS: Final = ("context", "contexts", "documents", "passages", "docs")
CHATS: Final = ("messages", "contents", "input", "inputs", "prompt", "kwargs")
API_FIELDS: Final = ("choices", "generations", "tool_calls", "message", "parts")  # … also empty
QUERY_RESULT: Final = "db.query.result.document"  # of OpenLLMetry's events, one a document
ENDING_TOOL: Final = re.compile(r"(finish|final_answer)\b")  # a tool by which an agent answers
SPEAKERS: Final = re.compile(r"^(system|user|assistant|tool|developer): ", re.MULTILINE)
