"""Calls that judge an answer: they read it, and say a verdict of a word or two, or a number.

A verdict is told by its form, in any language: the task offers it ("answer with ja or nein", "from
1 to 5"), or it is a yes, a no or a number that the answer judged does not have. What repeats a part
of the earlier answer, as what a model says at the end of its reasoning, is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from spanlab.formats.prompt_labels import last_round
from spanlab.formats.verdict_words import NO, YES
from spanlab.formats.vocabulary import words_in
from spanlab.traces import spans as told
from spanlab.traces.prompts import core_of, parts_of
from spanlab.traces.quoting import START, Texts
from spanlab.traces.spans import Span, TracedMessage, parse_json, text_said

if TYPE_CHECKING:
    from spanlab.traces.trace import Trace

_REMARKS: Final = frozenset(words_in("judged", "remarks"))
_LONGEST: Final = 40  # characters of a verdict
_WORDS: Final = 6
_AROUND: Final = " \t\n.!*_`\"'“”「」。!"
_FENCED: Final = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)
_BEHIND: Final = re.compile(r"[,.;:!—–、。,:!]")  # a verdict, before what says more of it
_RATING: Final = re.compile(r"(\d+(?:[.,]\d+)?)\s*(?:%|/\s*\d+)?")
_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)?")
_INSTRUCTING: Final = told.USERS | {"", "system", "developer"}
_QUESTION_MARKS: Final = ("?", "\uff1f", "\u061f")


class EarlierAnswers:
    """What the calls of a trace said, and which of it a later call has read and judges."""

    def __init__(self, trace: Trace, calls: Iterable[Span]) -> None:
        self._trace = trace
        self._calls = {call["id"]: call for call in calls}
        self._replies, self._found, self._searched = Texts(), Texts(), Texts()
        for name, call in self._calls.items():
            for message in trace.messages(call, read=False):
                self._replies.add(message.text, name)
        for span in trace.heard:
            for text in told.documents_of(span):
                self._found.add(text, span["id"])
            if trace.kind(span) == "retriever":
                self._searched.add(core_of(told.asked_of(span)), span["id"])

    def judged_by(self, call: Span) -> Any | None:
        """Return the id of the call whose answer a verdict is about; None if it is no verdict."""
        read = [m.text for m in self._trace.news(call) if m.role in _INSTRUCTING]
        text = "\n".join(map(last_round, read))
        inside = self._replies.inside(text, START)
        (verdict,) = self._trace.messages(call, read=False)
        judged = None
        for reply, names in inside.items():
            owner = None if self._is_query(reply) else self._last_before(call, names)
            if owner is None:
                continue
            asked = self._trace.asked_in(owner)
            task, passages = self._task(text, (*inside, asked, core_of(asked)))
            is_own_run = any(reply in passage for passage in passages)
            is_own_run = is_own_run or self._is_asked_anew(task, call, owner)
            if (not is_own_run or self._was_asked_inside(asked, call, owner)) and is_verdict(
                verdict.text, task, "\n".join(inside), asked, asks=core_of(asked) in text
            ):
                judged = owner["id"]
        return judged

    def _is_query(self, text: str) -> bool:
        """Say whether a text was searched for, is a question, or a single word."""
        is_word = text.isascii() and len(text.split()) == 1
        return text.endswith(_QUESTION_MARKS) or is_word or bool(self._searched.owners(text))

    def _last_before(self, call: Span, names: Iterable[Any]) -> Span | None:
        """Return the nearest of the calls that had ended when one began, of several the last."""
        earlier = [self._calls[name] for name in names if name != call["id"]]
        earlier = [span for span in earlier if span["end"] <= call["start"]]
        around = self._trace.path(call)

        def closeness(span: Span) -> tuple[int, int]:
            return sum(outer in around for outer in self._trace.path(span)), span["end"]

        return max(earlier, key=closeness, default=None)

    def _task(self, text: str, known: Iterable[str]) -> tuple[str, Sequence[str]]:
        """Return what a call read without what is known of it, and the passages quoted there."""
        quoted = parts_of(text).passages
        for each in (*known, *self._found.inside(text), *quoted):
            text = text.replace(each, "")
        return text, quoted

    def _asked_around(self, call: Span, owner: Span) -> list[str]:
        """Return what the spans around both calls were asked."""
        around = self._trace.path(owner)
        return [told.asked_of(s) for s in self._trace.path(call)[:-1] if s in around]

    def _is_asked_anew(self, task: str, call: Span, owner: Span) -> bool:
        """Say whether a task has a question of its own, which the call then answers."""
        rest = parts_of(task)
        return (
            bool(self._searched.inside(task, START))
            or bool(rest.question and not rest.passages)
            or any(question and question in task for question in self._asked_around(call, owner))
        )

    def _was_asked_inside(self, asked: str, call: Span, owner: Span) -> bool:
        """Say whether what the earlier call was asked is what the run around both is about."""
        core = core_of(asked)
        return bool(self._searched.owners(core, START)) or any(
            core in core_of(question) for question in self._asked_around(call, owner)
        )


def is_like_verdict(replies: Sequence[TracedMessage]) -> bool:
    """Say whether what a call said has the form of a verdict; ``is_verdict`` says if it is one."""
    return len(replies) == 1 and next(_labels(replies[0].text), "") != ""


def is_verdict(reply: str, task: str, judged: str, asked: str, *, asks: bool) -> bool:
    """Say whether a reply is a verdict on a text, or on several.

    Args:
        reply: what a call said.
        task: what it read beside the texts judged, the question to these, and passages.
        judged: the texts.
        asked: the question that was answered with them.
        asks: whether the call has read that question, too.
    """
    labels = list(_labels(reply))
    is_object = "{" in reply
    return bool(labels) and all(
        len(label) < len(judged)
        and not (_has(judged, label) and _has(asked, label))
        and (
            _is_offered(label, task)
            or (_is_usual(label) and (is_object or not (asks or _has(judged, label))))
        )
        for label in labels
    )


def _labels(reply: str) -> Iterator[str]:
    """Yield the labels that are all of a reply, or all that an object says but its remarks."""
    fenced = _FENCED.fullmatch(reply.strip())
    text = fenced[1] if fenced else reply
    value = parse_json(text) if text.lstrip()[:1] == "{" else None
    if isinstance(value, dict):
        told = {name: said for name, said in value.items() if name.casefold() not in _REMARKS}
        labels = [_label(said) for said in told.values()]
        yield from labels if all(labels) and not text_said(value) else ()
    elif label := _label(text):
        yield label


def _label(value: Any) -> str:
    """Return a value as a label in small letters; "" if it is none."""
    if isinstance(value, bool | int | float):
        return str(value).casefold()
    label = value.strip(_AROUND).casefold() if isinstance(value, str) else ""
    is_short = len(label) <= _LONGEST and len(label.split()) <= _WORDS
    return label if is_short and "\n" not in label else ""


def _is_usual(label: str) -> bool:
    return label in YES or label in NO or _RATING.fullmatch(label) is not None


def _is_offered(label: str, task: str) -> bool:
    """Say whether a task has a label, or numbers of which the largest is no less."""
    if _has(task, label):
        return True
    if rating := _RATING.fullmatch(label):
        most = max(map(float, _NUMBERS.findall(task)), default=-1.0)
        return float(rating[1].replace(",", ".")) <= most
    head, *more = _BEHIND.split(label, maxsplit=1)
    return bool(more) and _is_usual(head) and _has(task, head)


def _has(text: str, label: str) -> bool:
    """Say whether a text has a label as words; where letters have no case, words are not apart."""
    if label.lower() == label.upper() and not label.isascii():
        return label in text
    return re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text, re.IGNORECASE) is not None
