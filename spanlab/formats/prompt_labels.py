"""What a prompt names in it: sections such as "Context:", and the question that it asks."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from spanlab.formats.vocabulary import words_in


class Section(NamedTuple):
    """A passage in a prompt, and the characters that it takes there with its marks."""

    text: str
    start: int
    end: int


def last_round(prompt: str) -> str:
    """Return a prompt without the examples, or the turns of a chat, that its question is behind."""
    labels = labels_in(prompt)
    filled = [n for n, label in enumerate(labels) if text_behind(prompt, label)]
    asked = [n for n in filled if labels[n]["question"]]
    said = [n for n in filled if labels[n]["answer"] and asked and asked[0] < n < asked[-1]]
    if not said:
        return prompt
    head = prompt[: labels[asked[0]].start()]
    tail = prompt[next_label(prompt, labels[said[-1]].end()) :]
    return tail if any(label["context"] for label in labels_in(tail)) else head + tail


def sections_named(prompt: str, *, asks: bool) -> list[Section]:
    """Return what is under a name such as "Context:", if a label or the prompt's end ends it.

    Where nothing is labelled as the question, the last paragraph may be it: that is no border.
    """
    labels = labels_in(prompt)
    named = [match for match in labels if match["context"]]
    spans = [(match.start(), match.end(), next_label(prompt, match.end())) for match in named]
    sections = [Section(bare(prompt[end:last]), start, last) for start, end, last in spans]
    is_certain = any(match["question"] for match in labels)
    is_certain |= not asks and not any("\n\n" in section.text for section in sections)
    return sections if is_certain else []


@lru_cache(maxsize=16)
def labels_in(prompt: str) -> list[re.Match[str]]:
    """Return the names that have a colon behind them, or are a line's heading.

    Questions with answers in a context, as an FAQ has them, are no names of the prompt if these are
    others, or if the context begins with them.
    """
    labels = [
        match
        for match in _LABEL.finditer(prompt)
        if match["colon"] or (match["mark"].strip() and match[0].endswith("\n"))
    ]
    asked = max((n for n, label in enumerate(labels) if label["question"]), default=len(labels))
    own = {_name(label) for label in _own(labels[asked:])}
    kept, quoted, in_context = list[re.Match[str]](), list[re.Match[str]](), False
    begins = False  # whether a context begins with a question
    for number, label in enumerate(labels):
        name = _name(label)
        before = labels[number - 1] if number else label
        if label["question"] and before["context"]:
            begins = number < asked and not prompt[before.end() : label.start()].strip()
        is_own = name in own and not (begins and number < asked)
        if in_context and name and not is_own and name not in _SPEAKERS:
            if label["answer"]:
                quoted = []
            else:
                quoted.append(label)
            continue
        kept += [*quoted, label]  # questions without an answer are the prompt's
        quoted, in_context = [], bool(label["context"])
    return kept + quoted


def _own(labels: Sequence[re.Match[str]]) -> list[re.Match[str]]:
    """Return a prompt's own question, which is its last, and the name of the answer to it."""
    return [*labels[:1], *[label for label in labels if label["answer"]][:1]]


def _name(label: re.Match[str]) -> str:
    return (label["question"] or label["answer"] or "").casefold()


def next_label(prompt: str, at: int) -> int:
    """Return where the next name is, or the prompt's end."""
    labels = labels_in(prompt)
    place = bisect_left(labels, at, key=re.Match.start)
    return labels[place].start() if place < len(labels) else len(prompt)


def text_behind(prompt: str, label: re.Match[str]) -> str:
    """Return what is between a name and the next."""
    return prompt[label.end() : next_label(prompt, label.end())].strip()


def bare(text: str) -> str:
    """Return a section's text without lines that only divide, its source, and quotes around it."""
    text = _SOURCE.sub("", DIVIDER.sub("", text).strip())
    return text[1:-1] if text[:1] == "«" and text[-1:] == "»" else text


CONTEXT: Final = "|".join(
    (
        r"(?:retrieved |relevant |provided |given )?(?:contexts?|passages?|documents?|docs|"
        r"sources?|evidence|references?|search[ _]results|excerpts?|snippets?|chunks?|background|"
        r"knowledge|articles?)|документы|dokumente|quellen|documentos|documenti|コンテキスト|背景|"
        r"已知信息|문서|(?:参考|関連)?(?:資料|文書)|(?:参考|関連)情報|検索結果|(?:参考|相关)?(?:资料|文档)|检索结果",
        *words_in("parts", "passages_elsewhere"),
    )
)
QUESTION: Final = "|".join(
    (
        r"(?:user |follow[ -]?up )?(?:question|query|input|message)|user|human|q",
        *words_in("parts", "question_elsewhere"),
    )
)
_ANSWER: Final = "|".join(
    (r"(?:final |your )?answer|response|assistant|ai|bot|a", *words_in("parts", "answer_elsewhere"))
)
_SPEAKERS: Final = {"user", "human", "assistant", "ai", "bot"}
_OTHER: Final = (
    r"instructions?|task|completed|reasoning|(?:chat )?history|conversation|standalone question"
)
_LABEL: Final = re.compile(
    rf"^(?P<mark>[#*\[【< \t]*)(?:(?P<context>{CONTEXT})|(?P<question>{QUESTION})"
    rf"|(?P<answer>{_ANSWER})|{_OTHER})(?![\w<])"
    r"[#*\]】> \t]*(?P<colon>[:\uff1a]?)[* \t]*\n?",
    re.IGNORECASE | re.MULTILINE,
)
DIVIDER: Final = re.compile(r"^[ \t]*[-=*_#]{3,}[ \t]*$", re.MULTILINE)
_SOURCE: Final = re.compile(  # what stands above a passage's text, such as its file
    r"\A(?:[^\n:\uff1a]{1,80}\n|[\w ]{1,30}[:\uff1a][^\n]*\n)*(?:page_)?content[:\uff1a]\s*",
    re.IGNORECASE,
)
