"""Calls that judge an answer: they read it, and say a verdict of a word or two, or a number.

A verdict is told by its form, in any language: the task offers it ("answer with ja or nein", "from
1 to 5"), or it is a yes, a no or a number that the answer judged does not have. What repeats a part
of the earlier answer, as what a model says at the end of its reasoning, is the answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from spanlab.formats.verdict_words import NO, YES
from spanlab.formats.vocabulary import words_in
from spanlab.traces.spans import parse_json, text_said

_REMARKS: Final = frozenset(words_in("judged", "remarks"))
_LONGEST: Final = 40  # characters of a verdict
_WORDS: Final = 6
_AROUND: Final = " \t\n.!*_`\"'“”「」。!"
_FENCED: Final = re.compile(r"```\w*\s*(.*?)\s*```", re.DOTALL)
_BEHIND: Final = re.compile(r"[,.;:!—–、。,:!]")  # a verdict, before what says more of it
_RATING: Final = re.compile(r"(\d+(?:[.,]\d+)?)\s*(?:%|/\s*\d+)?")
_NUMBERS: Final = re.compile(r"\d+(?:\.\d+)?")


def may_judge(reply: str) -> bool:
    """Say whether a reply has the form of a verdict; ``is_verdict`` says whether it is one."""
    return next(_labels(reply), "") != ""


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
