"""One trace: its spans in the order of time, and what they say of question, answer and evidence."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from operator import itemgetter
from typing import Any, Final, TypeVar

from spanlab.formats.prompt_labels import last_round
from spanlab.output.figures import counted
from spanlab.traces import spans as told
from spanlab.traces.judging import EarlierAnswers, is_like_verdict
from spanlab.traces.prompts import parts_of
from spanlab.traces.recording import Recorder
from spanlab.traces.spans import (
    Span,
    TracedMessage,
    kind_of,
    messages_of,
    results_in,
    text_asked,
    text_said,
)

T = TypeVar("T")
_NUMBER: Final = re.compile(r"[0-9a-f]{16,}")  # an id of a node, which says nothing
_NEW_TASK: Final = "New task:\n"  # before what smolagents asks a model
_SPEAKERS: Final = told.USERS | {"assistant", "ai"}
RESULTS: Final = frozenset(("tool", "function"))
_TURNS: Final = _SPEAKERS | RESULTS
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

# What programs ask a model about a chat behind its last turn.
_AFTERWARDS: Final = re.compile(
    r"\W*(?:task:?\s*)?(?:please |progressively )?"
    r"(?:(?:suggest|generate|write|create|give)\b.{0,60}"
    r"\b(?:follow-?up questions|(?:title|tags|headline|summary)\b.{0,60}\b(?:chat|conversation))"
    r"|summari[sz]e\b.{0,60}\b(?:chat|conversation))",
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
        self._messages: dict[tuple[Any, bool], list[TracedMessage]] = {}
        self._by_id = {span["id"]: span for span in self.spans}
        self._roots = [span for span in self.spans if span.get("parent") not in self._by_id]
        self._kinds = {span["id"]: span["kind"] for span in self.spans}
        if not any(self._is(span, "model") and replies_of(span) for span in self.spans):
            # Frameworks that trace their agents alone, or whose models only call tools.
            self._kinds = {n: "model" if k == "agent" else k for n, k in self._kinds.items()}
        self.order = self._from_the_roots()
        named = self._inherited(lambda span: _stage_name(span["attributes"]))
        self.stages = {span["id"]: named[span["id"]] or _called(span) for span in self.order}

    def kind(self, span: Span) -> str:
        """Return what a span is for; agents are models where no model says anything."""
        return str(self._kinds[span["id"]])

    def _is(self, span: Span, kind: str) -> bool:
        return self.kind(span) == kind

    def messages(self, span: Span, *, read: bool) -> list[TracedMessage]:
        """Return what a model's call read or wrote."""
        key = span["id"], read
        if key not in self._messages:
            self._messages[key] = messages_of(span, read=read)
        return self._messages[key]

    def asked_in(self, call: Span) -> str:
        """Return the last message of a user that a model's call read."""
        read = self.messages(call, read=True)
        users = [m.text for m in read if m.role in told.USERS and m.text not in self.said]
        users = users or [m.text for m in read if m.role in {*told.USERS, ""}]
        return users[-1] if users else told.asked_of(call)

    @cached_property
    def said(self) -> dict[str, int]:
        """What models said, which is no user's message even if a critic's comes as one.

        With each stands the end of the first call that said it.
        """
        said: dict[str, int] = {}
        for call in self.calls:
            for message in replies_of(call):
                said.setdefault(message.text, call["end"])
        return said

    def told_to(self, call: Span) -> list[TracedMessage]:
        """Return what a call read up to its question, which is the last; all if there is none."""
        read = self.messages(call, read=True)
        users = [n for n, m in enumerate(read) if m.role in told.USERS and m.text not in self.said]
        return read[: users[-1] + 1] if users else read

    def news(self, span: Span) -> list[TracedMessage]:
        """Return the instructions in a chat that a span was given, and its last turn."""
        read, told_to = self.messages(span, read=True), self.told_to(span)
        first = len(told_to) - 1 if told_to and told_to[-1].role in told.USERS else 0
        return [m for n, m in enumerate(read) if n >= first or m.role not in _TURNS]

    def said_inside(self) -> dict[Any, list[str]]:
        """Return what the answering calls in each span said, and each of these itself."""
        said: dict[Any, list[str]] = {}
        for call in self.answering:
            for outer in self.path(call):
                said.setdefault(outer["id"], []).extend(m.text for m in replies_of(call))
        return said

    @cached_property
    def agents(self) -> dict[Any, list[Span]]:
        """Return the answering calls of each agent, without those of agents in it."""
        calls: dict[Any, list[Span]] = {}
        for call in self.answering:
            outer = (span for span in reversed(self.path(call)) if self._is(span, "agent"))
            if agent := next(outer, None):
                calls.setdefault(agent["id"], []).append(call)
        return calls

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
    def _aside(self) -> dict[Any, bool]:
        """Say of each span whether it checks, routes or titles, by its kind or a name.

        A name says so of one call beside others: of no run, and of nothing that searches.
        """
        inside = Counter(outer["id"] for call in self.calls for outer in self.path(call))
        searching = self._around(lambda span: self.kind(span) in ("retriever", "tool"))
        return self._inherited(
            lambda span: (
                self.kind(span) == "aside"
                or (
                    inside[span["id"]] == 1 < len(self.calls)
                    and span["id"] not in searching
                    and (told.is_score(span) or _ASIDE.search(str(span["name"])) is not None)
                )
            )
        )

    @cached_property
    def _said(self) -> list[Span]:
        """The calls that neither a name nor their instructions put aside, as they ended.

        Where nothing is left, all are.
        """
        named = [span for span in self.calls if not self._aside[span["id"]]] or self.calls
        said = [span for span in named if replies_of(span)]
        return [span for span in said if not self._is_instructed_aside(span)] or named

    @cached_property
    def answering(self) -> list[Span]:
        """The calls that are not put aside, and do not judge what another one said."""
        return [span for span in self._said if span["id"] not in self.judged]

    @cached_property
    def judged(self) -> dict[Any, Any]:
        """The calls that say a verdict on an earlier answer, each with the call that said that."""
        verdicts = {call["id"]: replies_of(call) for call in self._said}
        judging = [c for c in self._said if is_like_verdict(verdicts[c["id"]])]
        if not judging or len(self._said) == 1:
            return {}
        answers = EarlierAnswers(self, self._said)
        found = ((call["id"], answers.judged_by(call)) for call in judging)
        return {name: judged for name, judged in found if judged is not None}

    def _is_instructed_aside(self, span: Span) -> bool:
        """Say whether a call's instructions have it judge, title or route."""
        said = [message.text for message in self.messages(span, read=True)] or [""]
        return bool(_INSTRUCTED.match(said[0]) or _AFTERWARDS.match(said[-1]))

    def path(self, span: Span) -> list[Span]:
        """Return the spans around one, the outermost first, and it itself."""
        return path_to(span, self._by_id)[::-1]

    @cached_property
    def _last(self) -> list[Span]:
        """The call that answered in the end: that said what the run gave back, or the last one."""
        given = self._given_back() or ""
        own = [c for c in self.answering if any(m.text == given for m in replies_of(c))]
        return (own or self.answering)[-1:]

    def _given_back(self) -> str | None:
        """Return the text that the run gave back, of what models said."""
        for root in sorted(self._roots, key=itemgetter("end"), reverse=True):
            # A call among others is no run around them, and a guard's or a title is no answer.
            if self._is(root, "model") or (self._aside[root["id"]] and len(self._roots) > 1):
                continue
            for given in (text_said(_first(root, "result")), told.said_by(root)):
                if given and any(given in text or text in given for text in self.said):
                    return given
        return None

    def answer(self) -> str | None:
        """Return the text that the run gave back, or that the last answering model said."""
        if given := self._given_back():
            return given
        said = [message.text for span in self.answering for message in replies_of(span)]
        if not said and any(self._is(span, "model") for span in self.spans):
            said = list(filter(None, (text_said(_first(r, "result")) for r in self._roots)))
            said = said or list(filter(None, map(told.ending_of, self.spans)))
        return said[-1] if said else None

    def question(self, passages: Sequence[str] = ()) -> str:
        """Return what the run was given, without passages in it; "" if nothing says so."""
        said = (text_asked(_first(span, "run")) for span in self._roots)
        asked = next(filter(None, said), "") or self._asked_by("") or self._asked_by("agent")
        asked = asked or self._asked_by("model") or self._asked_by("retriever")
        calls = [*self.answering, *self.calls]
        asked = asked or next(filter(None, map(self.asked_in, calls)), "")
        asked = asked or next(filter(None, map(_preview, self._roots)), "")
        parts = parts_of(asked, passages)
        is_quoting = parts.passages or last_round(asked) != asked
        return ((is_quoting and parts.question) or asked).removeprefix(_NEW_TASK)

    def _asked_by(self, kind: str) -> str:
        """Return the question in the first span of a kind.

        Of models it is the call that answered in the end, unless it was told to go on from what an
        earlier one had said; of one that rewrites, if its task is not in the same message.
        """
        spans = [s for s in self.order if self._is(s, kind) and not self._aside[s["id"]]]
        if kind == "model":
            spans = [*self._last, *self.answering]
            spans += [call for call in self.calls if self._tells_task_apart(call)]
        for span in spans:
            if kind != "model" and self._answers_a_part(span):
                continue
            asked = self.asked_in(span) if kind == "model" else told.asked_of(span)
            if kind == "model" and any(text in asked for text in self.said):
                asked = parts_of(asked).question or asked
            if asked and not self._was_said(asked, span, within=kind == "model"):
                return asked
        return ""

    def _answers_a_part(self, span: Span) -> bool:
        """Say whether a function answered what is no question of the call that answers in the end.

        That call reads what was answered to parts of its own question, which no model had said.
        """
        if (said := told.said_by(span)) not in self.said or not self._last:
            return False
        last = self._last[0]
        asked = parts_of(self.asked_in(last)).question or self.asked_in(last)
        is_own = not any(text in asked for text in self.said)
        return is_own and any(said in message.text for message in self.messages(last, read=True))

    def _was_said(self, asked: str, span: Span, *, within: bool) -> bool:
        """Say whether a model had said what a span was given, or a part of it (``within``).

        What a span was given before a model repeated it, as one that condenses questions, is not.
        """
        if within:
            return any(text in asked for text in self.said)
        return bool(self.said.get(asked, math.inf) <= span["start"])

    def _tells_task_apart(self, call: Span) -> bool:
        """Say whether a call has its task and the question in two messages, or in parts of one."""
        read = self.messages(call, read=True)
        return len(read) > 1 or any(last_round(message.text) != message.text for message in read)

    def passages(self) -> list[str]:
        """Return what retrievers and tools found in this turn, each text once.

        Where they found nothing, that is what the prompt quotes. What a model had said or was asked
        before is no evidence, even if a tool gives it back.
        """
        said = {text.strip(): at for text, at in reversed(self.said.items())}
        texts: dict[str, None] = {}
        alone = (span for span in self.heard if not span.get("is_shared"))
        own = [text for span in alone for text in told.documents_of(span)]
        for span in sorted(self.heard, key=itemgetter("start")):
            was_said = span.get("said", ())  # in other runs
            found = [(t, span["end"]) for t in told.documents_of(span) if t not in was_said]
            if span.get("is_shared"):  # with other runs: of those that this run's prompts repeat
                read = [m.text for call in self.calls for m in self.messages(call, read=True)]
                used = [(text, at) for text, at in found if any(text in prompt for prompt in read)]
                found = [(t, at) for t, at in used or found if not any(t in text for text in own)]
            if self._is(span, "model"):
                news = (m.text for m in self.news(span) if m.role in RESULTS)
                results = [text for new in news for text in results_in(new)]
                found += [(t, span["start"]) for t in results if not any(k in t for k in texts)]
            texts |= {text: None for text, at in found if not said.get(text.strip(), at) < at}
        given = (text for span in self.order for text in told.context_of(span))
        found_texts = texts or dict.fromkeys(given) or dict.fromkeys(self._quoted(said))
        return [text for text in found_texts if text.strip()]

    def _quoted(self, said: Iterable[str]) -> Iterator[str]:
        """Yield the passages in the prompts of the calls that answer."""
        kinds = ("", "retriever", "tool", "embedding")
        lists = (told.output_of(span) for span in self.order if self.kind(span) in kinds)
        returned = [text for value in lists for text in told.texts_listed(value)]
        returned = [text for text in returned if not any(text in reply for reply in said)]
        for call in [call for call in self.answering if self.news(call)] or self.calls:
            news = [m for m in self.news(call) if m.role not in _TURNS or m.role in told.USERS]
            for message in news:
                asks = message.role in told.USERS or len(news) == 1
                yield from parts_of(message.text, returned, asks=asks).passages

    def about(self) -> dict[str, Any]:
        """Return what a trace says of itself, as fields to filter and group by."""
        root = next(iter(self._roots), self.spans[0])
        # A later call is likelier the one that answered, and the root knows of user and session.
        spans = (root, *reversed(self.spans))
        about: dict[str, Any] = {}
        for name in ABOUT:
            said = (_first(span, name) for span in spans)
            about[name] = next((value for value in said if value is not None), None)
        if about["model"] is not None:  # which LiteLLM has behind the provider's name
            providers = (f"{_first(span, 'provider')}/" for span in spans)
            prefix = next((p for p in providers if str(about["model"]).startswith(p)), "")
            about["model"] = str(about["model"]).removeprefix(prefix)
        called = [span for span in self.heard if kind_of(span) == "model"] or self.calls
        about |= {
            name: sum(_number(_first(span, name)) for span in called) or None for name in _SUMS
        }
        about["time"] = _time(root["start"]) if root["start"] > _RECENT else None
        about["conversation"] = self._conversation() or None
        named = root if len(self._roots) == 1 else (self._last or [root])[0]
        about |= {"trace_id": root["trace"], "span_id": named["id"]}
        return {name: value for name, value in about.items() if value is not None}

    def _conversation(self) -> list[dict[str, str]]:
        """Return the turns before the question in the call that read it last."""
        calls = [messages_of(span, read=True) for span in self.spans if self._is(span, "model")]
        talks = [[message for message in read if message.role in _SPEAKERS] for read in calls]
        last = next((talk for talk in reversed(talks) if len(talk) > 1), [])
        return [{"role": turn.role, "content": turn.text} for turn in last[:-1]]


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


def _preview(span: Span) -> str:
    """Return the question in MLflow's preview of a trace's input, unless it is cut."""
    asked = text_asked(_first(span, "preview"))
    return "" if asked.endswith("...") else asked


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
    asked = max((n for n in turns if read[n].role in told.USERS), default=0)
    earlier = {*turns[:-1], *range(asked)}
    kept = [
        TracedMessage(message.role, text)
        for n, message in enumerate(read)
        for text in (results_in(message.text) if message.role in RESULTS else [message.text])
        if message.role not in _TURNS or n not in earlier or recorder.knows(text)
        if not (question.strip() and question.strip() in text) or recorder.knows(text)
    ]
    recorder.call(kept, [message.text for message in messages_of(span, read=False)], stage)
