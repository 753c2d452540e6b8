"""One trace: its spans in the order of time, and what they say of question, answer and evidence."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, TypeVar

from spanlab.formats.known import spans as told
from spanlab.formats.known.spans import Span, TracedMessage, kind_of, messages_of, text_asked
from spanlab.formats.recording import Recorder
from spanlab.output.figures import counted

T = TypeVar("T")
_NUMBER: Final = re.compile(r"[0-9a-f]{16,}")  # an id of a node, which says nothing
_SPEAKERS: Final = told.USERS | {"assistant", "ai"}
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

# What is kept of a trace in meta: what any span says, and what its calls say in sum.
ABOUT: Final = ("model", "service", "session", "user", "environment", "tags")
_SUMS: Final = ("input_tokens", "output_tokens", "cost")
_CONVENTIONS: Final = (
    "the attributes of OpenInference, OpenLLMetry or gen_ai.*, MLflow's or Langfuse's"
)
MESSAGES: Final = (
    "messages, in spans or in log events (OTEL_EXPORTER_OTLP_LOGS_ENDPOINT); set "
    "OTEL_SEMCONV_STABILITY_OPT_IN=gen_ai_latest_experimental and "
    "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=span_only to have them in spans"
)


class Trace:
    """The spans of a trace in the order of time, and what lies above and below each."""

    def __init__(self, unordered: Sequence[Span]) -> None:
        self.spans: list[Span] = [
            {**span, "id": span.get("id") or f"span {number}", "kind": kind_of(span)}
            for number, span in enumerate(sorted(unordered, key=itemgetter("start")))
        ]
        self._by_id = {span["id"]: span for span in self.spans}
        self._roots = [span for span in self.spans if span.get("parent") not in self._by_id]
        self._kinds = {span["id"]: span["kind"] for span in self.spans}
        if not any(self._is(span, "model") and replies_of(span) for span in self.spans):
            # Frameworks that trace their agents alone, or whose models only call tools.
            self._kinds = {n: "model" if k == "agent" else k for n, k in self._kinds.items()}
        self.order = self._from_the_roots()
        named = self._inherited(lambda span: _stage_name(span["attributes"]))
        self.stages = {span["id"]: named[span["id"]] or _called(span) for span in self.order}
        self._aside = self._inherited(
            lambda span: self._is(span, "aside") or _ASIDE.search(str(span["name"])) is not None
        )

    def _is(self, span: Span, kind: str) -> bool:
        return bool(self._kinds[span["id"]] == kind)

    def _from_the_roots(self) -> list[Span]:
        """Return the spans, each behind the one around it; in circles, which are broken, as is."""
        inside: dict[Any, list[Span]] = {}
        for span in self.spans:
            parent = span.get("parent")
            inside.setdefault(parent if parent in self._by_id else None, []).append(span)
        order, waiting = list[Span](), list(reversed(inside.pop(None, [])))
        while waiting:
            order.append(waiting.pop())
            waiting += reversed(inside.pop(order[-1]["id"], []))
        return order + [span for rest in inside.values() for span in rest]

    def _inherited(self, own: Callable[[Span], T]) -> dict[Any, T]:
        """Return what each span has by itself, or from the nearest one around it that has it."""
        found: dict[Any, T] = {}
        for span in self.order:
            found[span["id"]] = own(span) or found.get(span.get("parent"), own(span))
        return found

    def _around(self, own: Callable[[Span], bool]) -> set[Any]:
        """Return the ids of the spans with one in them of which something holds."""
        around = set[Any]()
        for span in reversed(self.order):
            if span["id"] in around or own(span):
                around.add(span.get("parent"))
        return around

    def lacks(self) -> tuple[str, str]:
        """Return what was found in a trace without an answer, and what would make one."""
        if any(span.get("failed") for span in self.spans):
            return "spans that failed", _CONVENTIONS
        if calls := sum(span["kind"] == "model" for span in self.spans):
            return f"{counted(calls, 'model call')} without a text", MESSAGES
        return f"spans {', '.join(str(span['name']) for span in self.spans[:5])}", _CONVENTIONS

    @cached_property
    def heard(self) -> list[Span]:
        """Return the spans whose texts count, as they ended: of one call heard twice the inner.

        A model's call around another has what that has, and a retriever around or in one with
        documents only names them.
        """

        def is_documented(span: Span) -> bool:
            return self._is(span, "retriever") and told.has_documents(span)

        def is_counted(span: Span) -> bool:
            name, kind = span["id"], self._kinds[span["id"]]
            only_names = kind == "retriever" and not told.has_documents(span)
            only_names = only_names and (name in documenting or documented[name])
            doubled = kind == "model" and name in repeating
            return not (span.get("failed") or kind == "agent" or doubled or only_names)

        repeating = self._around(lambda span: self._is(span, "model") and bool(replies_of(span)))
        documenting, documented = self._around(is_documented), self._inherited(is_documented)
        return sorted(filter(is_counted, self.order), key=itemgetter("end"))

    @cached_property
    def calls(self) -> list[Span]:
        """Return the model's calls that count, as they ended."""
        return [span for span in self.heard if self._is(span, "model")]

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
        return path_to(span, self._by_id)[::-1]

    def answer(self) -> str | None:
        """Return the text that the run gave back, or that the last answering model said."""
        said = [message.text for span in self.named for message in replies_of(span)]
        for root in self._roots:
            if self._is(root, "model"):  # a call among others, and no run around them
                continue
            given = told.said_by(root)
            if given and any(given in text or text in given for text in said):
                return given
        said = [message.text for span in self.answering for message in replies_of(span)]
        return said[-1] if said else None

    def question(self) -> str:
        """Return what the run was given; a prompt only where nothing better is there."""
        said = (text_asked(_first(span, "run")) for span in self._roots)
        asked = next(filter(None, said), "") or self._asked_by("") or self._asked_by("agent")
        asked = asked or self._asked_by("model", self.passages())
        return asked or self._asked_by("retriever") or self._asked_by("model")

    def _asked_by(self, kind: str, documents: Sequence[str] = ()) -> str:
        """Return the question in the first span of a kind, without one that holds documents."""
        aside = {span["id"] for span in self.named} - {span["id"] for span in self.answering}
        for span in self.order:
            if not self._is(span, kind) or self._aside[span["id"]] or span["id"] in aside:
                continue
            asked = told.asked_of(span)
            if kind == "model":
                read = messages_of(span, read=True)
                asked = next((m.text for m in reversed(read) if m.role in {*told.USERS, ""}), asked)
            if asked and not any(document in asked for document in documents):
                return asked
        return ""

    def passages(self) -> list[str]:
        """Return what retrievers and tools found, each text once."""
        texts: dict[str, None] = {}
        for span in sorted(self.heard, key=itemgetter("start")):
            texts |= dict.fromkeys(told.documents_of(span))
            if self._is(span, "model"):
                read = messages_of(span, read=True)
                news = [message.text for message in read if message.role in ("tool", "function")]
                texts |= {new: None for new in news if not any(text in new for text in texts)}
        given = (text for span in self.order for text in told.context_of(span))
        return [text for text in texts or dict.fromkeys(given) if text.strip()]

    def about(self) -> dict[str, Any]:
        """Return what a trace says of itself, as fields to filter and group by."""
        root = next(iter(self._roots), self.spans[0])
        # A later call is likelier the one that answered, and the root knows of user and session.
        spans = (root, *reversed(self.spans))
        about: dict[str, Any] = {}
        for name in ABOUT:
            said = (_first(span, name) for span in spans)
            about[name] = next((value for value in said if value is not None), None)
        called = [span for span in self.heard if kind_of(span) == "model"] or self.calls
        about |= {
            name: sum(_number(_first(span, name)) for span in called) or None for name in _SUMS
        }
        about["time"] = _time(root["start"]) if root["start"] > _RECENT else None
        about["conversation"] = self._conversation() or None
        about |= {"trace_id": root["trace"], "span_id": root["id"]}
        return {name: value for name, value in about.items() if value is not None}

    def _conversation(self) -> list[dict[str, str]]:
        """Return the turns before the question in the call that read it last."""
        calls = [messages_of(span, read=True) for span in self.spans if self._is(span, "model")]
        talks = [[message for message in read if message.role in _SPEAKERS] for read in calls]
        last = next((talk for talk in reversed(talks) if len(talk) > 1), [])
        return [{"role": turn.role, "content": turn.text} for turn in last[:-1]]


def _is_instructed_aside(span: Span) -> bool:
    """Say whether a call's instructions have it judge, title or route."""
    said = (message.text for message in messages_of(span, read=True))
    return _INSTRUCTED.match(next(said, "")) is not None


_RECENT: Final = 10**18  # nanoseconds: the year 2001; clocks of tests and old spans begin at 0


def _number(value: Any) -> int | float:
    try:
        number = float(value)
        return int(number) if number.is_integer() else number if math.isfinite(number) else 0
    except (TypeError, ValueError):
        return 0


def _time(nanoseconds: int) -> str | None:
    """Return a time in ISO 8601; None for one that no clock of ours shows."""
    try:
        return datetime.fromtimestamp(nanoseconds / 1e9, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        return None


def _first(span: Span, meaning: str) -> Any:
    values = (span["attributes"].get(name) for name in told.NAMES[meaning])
    return next((value for value in values if str(value) not in ("", "None", "nan")), None)


def replies_of(span: Span) -> list[TracedMessage]:
    """Return what a model's call wrote; nothing of one that failed."""
    return [] if span.get("failed") else messages_of(span, read=False)


def _stage_name(attributes: Mapping[str, Any]) -> str:
    metadata = dict(attributes)
    for name in _METADATA:
        inner = told.parse_json(attributes.get(name))
        metadata |= inner if isinstance(inner, dict) else {}
    names = (str(metadata[name]) for name in told.NAMES["stage"] if metadata.get(name))
    return next((name for name in names if not _NUMBER.fullmatch(name)), "")


def _called(span: Span) -> str:
    return str(span["name"] or "model call")


def path_to(span: Span, by_id: Mapping[Any, Span]) -> list[Span]:
    """Return a span and those around it, the outermost last."""
    path = {span["id"]: span}
    while (outer := by_id.get(span.get("parent"))) and outer["id"] not in path:
        path[outer["id"]] = span = outer
    return list(path.values())


def stage_of(span: Span, by_id: Mapping[Any, Span]) -> str:
    """Return what a framework calls the part of a pipeline that a span belongs to."""
    names = (_stage_name(each["attributes"]) for each in path_to(span, by_id))
    return next(filter(None, names), "") or _called(span)


def note_span(recorder: Recorder, span: Span, stage: str, question: str = "") -> None:
    """Note what a span retrieved, or what a model's call read and wrote.

    Earlier turns of a chat are conversation, and no sources: of what people and the model said
    only the last is read, or what holds texts that were noted.
    """
    for text in told.documents_of(span):
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
