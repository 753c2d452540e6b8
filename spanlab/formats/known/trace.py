"""One trace: its spans in the order of time, and what they say of question, answer and evidence."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from typing import Any, Final

from spanlab.formats.known.spans import (
    USERS,
    Span,
    TracedMessage,
    context_of,
    documents_of,
    has_documents,
    input_of,
    kind_of,
    messages_of,
    output_of,
    parse_json,
    text_asked,
    text_said,
)
from spanlab.formats.recording import Recorder

_OF_RUNS: Final = ("langfuse.trace.input", "mlflow.traceInputs")  # where a trace says it itself

# Where frameworks say which node, task or agent of theirs a span belongs to: LangGraph,
# OpenInference (LangChain, LlamaIndex, CrewAI), OpenLLMetry, and OpenTelemetry's own for agents.
_STAGES: Final = (
    *("langgraph_node", "langgraph.node", "metadata.langgraph_node"),
    *("langsmith.metadata.langgraph_node", "traceloop.association.properties.langgraph_node"),
    *("graph.node.name", "crewai.task.name", "crewai.agent.role", "haystack.component.name"),
    *("llama_index.step.name", "traceloop.entity.name", "gen_ai.task.name", "gen_ai.agent.name"),
    "graph.node.id",
)
_NUMBER: Final = re.compile(r"[0-9a-f]{16,}")  # an id of a node, which says nothing
_SPEAKERS: Final = USERS | {"assistant", "ai"}
_METADATA: Final = ("metadata", "langfuse.observation.metadata")  # that are objects, or their JSON

# A model's call of such a name checks, routes or titles, and does not answer.
_ASIDE: Final = re.compile(
    r"guard|moderat|judge|evaluat|grader|title|rewrite|rephrase|condense|classif|router|intent",
    re.IGNORECASE,
)
# … and one with such instructions, where calls have no names of their own, as OpenAI's client.
_INSTRUCTED: Final = re.compile(
    r"\W*(?:(?:you are|act as) (?:an? |the )?(?:[\w-]+ ){0,3}?"
    r"(?:guard(?:rail)?|moderator|judge|evaluator|grader|classifier|router)\b"
    r"|(?:please )?(?:classify|moderate|judge|grade|evaluate|rate)\b"
    r"|(?:please )?(?:write|generate|create|suggest|give|make)\b.{0,40}\b(?:title|headline)\b"
    r"|(?:please )?(?:rewrite|rephrase|condense|reformulate)\b.{0,60}\b(?:question|query)\b)",
    re.IGNORECASE,
)

# What is kept of a trace in meta, by the first attribute that says it.
ABOUT: Final = {
    "model": (
        "gen_ai.response.model",
        "gen_ai.request.model",
        "llm.model_name",
        "ai.model.id",
        *("langfuse.observation.model.name", "mlflow.llm.model"),
    ),
    "service": ("service.name",),
    "session": (
        *("session.id", "gen_ai.conversation.id", "langfuse.session.id", "mlflow.trace.session"),
        "traceloop.association.properties.session_id",
    ),
    "user": ("user.id", "enduser.id", "langfuse.user.id", "mlflow.trace.user"),
    "environment": (
        *("deployment.environment.name", "deployment.environment", "langfuse.environment"),
    ),
    "tags": ("tag.tags", "langfuse.trace.tags"),
}
_TOKENS: Final = {
    "input_tokens": (
        "gen_ai.usage.input_tokens",
        "llm.token_count.prompt",
        *("ai.usage.promptTokens", "usage.input", "usageDetails.input", "metrics.input_tokens"),
        "mlflow.chat.tokenUsage.input_tokens",
    ),
    "output_tokens": (
        *("gen_ai.usage.output_tokens", "llm.token_count.completion"),
        *("ai.usage.completionTokens", "usage.output", "usageDetails.output"),
        *("metrics.output_tokens", "mlflow.chat.tokenUsage.output_tokens"),
    ),
    "cost": ("llm.cost.total", "gen_ai.usage.cost", "mlflow.llm.cost.total_cost"),
}


class Trace:
    """The spans of a trace in the order of time, and what lies above and below each."""

    def __init__(self, unordered: Sequence[Span]) -> None:
        self.spans: list[Span] = [
            {**span, "id": span.get("id") or f"span {number}", "kind": kind_of(span)}
            for number, span in enumerate(sorted(unordered, key=itemgetter("start")))
        ]
        self._by_id = {span["id"]: span for span in self.spans}
        self._kinds = {span["id"]: span["kind"] for span in self.spans}
        if not any(self._kinds[span["id"]] == "model" and replies_of(span) for span in self.spans):
            # Frameworks that trace their agents alone, or whose models only call tools.
            self._kinds = {n: "model" if k == "agent" else k for n, k in self._kinds.items()}
        self.order = self._from_the_roots()
        self.stages: dict[Any, str] = {}
        self._named: dict[Any, str] = {}  # what a framework calls a span's part of the pipeline
        self._aside: dict[Any, bool] = {}
        self._documented: dict[Any, bool] = {}  # retrievers with documents, and what lies in them
        for span in self.order:
            self._look_up(span)
        self.has_failed = any(span.get("failed") for span in self.spans)

    def _from_the_roots(self) -> list[Span]:
        """Return the spans, each behind the one around it; in circles, which are broken, as is."""
        inside: dict[Any, list[Span]] = {}
        for span in self.spans:
            parent = span.get("parent")
            inside.setdefault(parent if parent in self._by_id else None, []).append(span)
        order, waiting = list[Span](), list(reversed(inside.get(None, [])))
        while waiting:
            span = waiting.pop()
            order.append(span)
            waiting += reversed(inside.pop(span["id"], []))
        placed = {span["id"] for span in order}
        return order + [span for span in self.spans if span["id"] not in placed]

    def _look_up(self, span: Span) -> None:
        """Note what a span has from those around it, which were looked at before."""
        name, parent = span["id"], span.get("parent")
        self._named[name] = _stage_name(span["attributes"]) or self._named.get(parent, "")
        self.stages[name] = self._named[name] or _called(span)
        is_aside = self._kinds[name] == "aside" or _ASIDE.search(str(span["name"])) is not None
        self._aside[name] = is_aside or self._aside.get(parent, False)
        documented = self._kinds[name] == "retriever" and has_documents(span)
        self._documented[name] = documented or self._documented.get(parent, False)

    def names(self) -> str:
        """Return the names of the first spans."""
        return ", ".join(str(span["name"]) for span in self.spans[:5])

    @cached_property
    def heard(self) -> list[Span]:
        """Return the spans whose texts count, as they ended: of one call heard twice the inner.

        A model's call around another has what that has, and a retriever around or in one with
        documents only names them.
        """
        holding = set[Any]()  # spans with a call in them that has messages
        documenting = set[Any]()  # … with a retriever in them that has documents
        for span in reversed(self.order):
            name, parent = span["id"], span.get("parent")
            is_call = self._kinds[name] == "model" and bool(replies_of(span))
            if is_call or name in holding:
                holding.add(parent)
            is_documented = self._kinds[name] == "retriever" and has_documents(span)
            if is_documented or name in documenting:
                documenting.add(parent)
        kept = []
        for span in self.order:
            name, kind = span["id"], self._kinds[span["id"]]
            doubled = kind == "model" and name in holding
            only_names = kind == "retriever" and not has_documents(span)
            only_names = only_names and (name in documenting or self._documented[name])
            if not (span.get("failed") or doubled or only_names or kind == "agent"):
                kept.append(span)
        return sorted(kept, key=itemgetter("end"))

    @cached_property
    def calls(self) -> list[Span]:
        """Return the model's calls that count, as they ended."""
        return [span for span in self.heard if self._kinds[span["id"]] == "model"]

    @cached_property
    def named(self) -> list[Span]:
        """The calls of models that no name says to be guards, judges or title makers."""
        return [span for span in self.calls if not self._aside[span["id"]]]

    @cached_property
    def answering(self) -> list[Span]:
        """Those of them whose instructions do not say so either, as they ended."""
        return [span for span in self.named if not _is_instructed_aside(span)] or self.named

    def path(self, span: Span) -> list[Span]:
        """Return the spans around one, the outermost first, and it itself."""
        path = {span["id"]: span}
        while (outer := self._by_id.get(span.get("parent"))) and outer["id"] not in path:
            path[outer["id"]] = span = outer
        return list(path.values())[::-1]

    def answer(self) -> str | None:
        """Return the text that the run gave back, or that the last answering model said."""
        said = [message.text for span in self.named for message in replies_of(span)]
        for root in self._roots():
            given = text_said(output_of(root))
            if given and any(given in text or text in given for text in said):
                return given
        said = [message.text for span in self.answering for message in replies_of(span)]
        return said[-1] if said else None

    def question(self) -> str:
        """Return what the run was given; a prompt only where nothing better is there."""
        said = (text_asked(_first_of(span["attributes"], _OF_RUNS)) for span in self._roots())
        asked = next(filter(None, said), "") or self._asked_by("") or self._asked_by("agent")
        asked = asked or self._asked_by("model", self.passages())
        return asked or self._asked_by("retriever") or self._asked_by("model")

    def _asked_by(self, kind: str, documents: Sequence[str] = ()) -> str:
        """Return the question in the first span of a kind, without one that holds documents."""
        for span in self.order:
            name = span["id"]
            if self._kinds[name] != kind or self._aside[name]:
                continue
            asked = text_asked(input_of(span))
            if kind == "model":
                read = messages_of(span, read=True)
                asked = next((m.text for m in reversed(read) if m.role in {*USERS, ""}), asked)
            if asked and not any(document in asked for document in documents):
                return asked
        return ""

    def passages(self) -> list[str]:
        """Return what retrievers and tools found, each text once."""
        texts: dict[str, None] = {}
        for span in sorted(self.heard, key=itemgetter("start")):
            texts |= dict.fromkeys(documents_of(span))
            if self._kinds[span["id"]] == "model":
                read = messages_of(span, read=True)
                told = [message.text for message in read if message.role in ("tool", "function")]
                texts |= {new: None for new in told if not any(text in new for text in texts)}
        given = (text for span in self.order for text in context_of(span))
        return [text for text in texts or dict.fromkeys(given) if text.strip()]

    def about(self) -> dict[str, Any]:
        """Return what a trace says of itself, as fields to filter and group by."""
        root = next(iter(self._roots()), self.spans[0])
        about: dict[str, Any] = {}
        # A later call is likelier the one that answered, and the root knows of user and session.
        for span in (*reversed(self.spans), root):
            for name, sources in ABOUT.items():
                found = _first_of(span["attributes"], sources)
                unsaid = found is None or (isinstance(found, float) and not math.isfinite(found))
                if not unsaid and (name not in about or span is root):
                    about[name] = found
        for name, sources in _TOKENS.items():
            spans = [span for span in self.heard if kind_of(span) == "model"] or self.calls
            counts = [_number(_first_of(span["attributes"], sources)) for span in spans]
            if any(counts):
                about[name] = sum(counts)
        if root["start"] > _RECENT and (time := _time(root["start"])):
            about["time"] = time
        turns = self._conversation()
        about |= {"conversation": turns} if turns else {}
        return about | {"trace_id": root["trace"], "span_id": root["id"]}

    def _conversation(self) -> list[dict[str, str]]:
        """Return the turns before the question in the call that read it last."""
        for span in reversed(self.spans):
            read = messages_of(span, read=True) if self._kinds[span["id"]] == "model" else []
            turns = [message for message in read if message.role in _SPEAKERS]
            if len(turns) > 1:
                return [{"role": turn.role, "content": turn.text} for turn in turns[:-1]]
        return []

    def _roots(self) -> list[Span]:
        return [span for span in self.spans if span.get("parent") not in self._by_id]


def _is_instructed_aside(span: Span) -> bool:
    """Say whether a call's instructions have it judge, title or route."""
    said = (message.text for message in messages_of(span, read=True))
    return _INSTRUCTED.match(next(said, "")) is not None


_RECENT: Final = 10**18  # nanoseconds: the year 2001; clocks of tests and old spans begin at 0


def _number(value: Any) -> int | float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return 0
    if not math.isfinite(number):
        return 0
    return int(number) if number.is_integer() else number


def _time(nanoseconds: int) -> str | None:
    """Return a time in ISO 8601; None for one that no clock of ours shows."""
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _first_of(attributes: Mapping[str, Any], names: Sequence[str]) -> Any:
    return next(
        (attributes[name] for name in names if attributes.get(name) not in (None, "")), None
    )


def replies_of(span: Span) -> list[TracedMessage]:
    """Return what a model's call wrote; nothing of one that failed."""
    return [] if span.get("failed") else messages_of(span, read=False)


def _called(span: Span) -> str:
    return str(span["name"] or "model call")


def _stage_name(attributes: Mapping[str, Any]) -> str:
    metadata = dict(attributes)
    for name in _METADATA:
        inner = parse_json(attributes.get(name))
        metadata |= inner if isinstance(inner, dict) else {}
    names = (str(metadata[name]) for name in _STAGES if metadata.get(name))
    return next((name for name in names if not _NUMBER.fullmatch(name)), "")


def stage_of(span: Span, by_id: Mapping[str, Span]) -> str:
    """Return what a framework calls the part of a pipeline that a span belongs to."""
    enclosing: Span | None = span
    n_spans = 0
    while enclosing is not None and n_spans < len(by_id):
        if name := _stage_name(enclosing["attributes"]):
            return name
        enclosing = by_id.get(str(enclosing.get("parent")))
        n_spans += 1
    return _called(span)


def note_span(recorder: Recorder, span: Span, stage: str, question: str = "") -> None:
    """Note what a span retrieved, or what a model's call read and wrote.

    Earlier turns of a chat are conversation, and no sources: of what people and the model said
    only the last is read, or what holds texts that were noted.
    """
    for text in documents_of(span):
        recorder.source(text)
    if kind_of(span) not in ("model", "agent"):
        return
    read = messages_of(span, read=True)
    if kind_of(span) == "agent":  # which has read what was found meanwhile
        read += [TracedMessage("tool", text) for text in recorder.found()]
    turns = [n for n, message in enumerate(read) if message.role in _SPEAKERS]
    earlier = {n for n in turns[:-1] if not recorder.knows(read[n].text)}
    kept = [message for n, message in enumerate(read) if n not in earlier]
    kept = [message for message in kept if message.text.strip() != question.strip()]
    recorder.call(kept, [message.text for message in messages_of(span, read=False)], stage)
