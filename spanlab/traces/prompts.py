"""Evidence that is in a prompt: the passages that it quotes, and the question that it asks.

    Answer from these passages only:        Context:
    [1] The tower was completed in 1889.    The tower was completed in 1889.
    [2] It is 330 metres tall.
                                            Question: When was it built?

A passage is taken only where its borders are certain: the prompt repeats a text that a span
returned, has it in tags, in lines that fence it or in JSON, numbers its sections, or names where
they begin and end. Examples and earlier turns that a prompt quotes are neither question nor
evidence.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from spanlab.formats.vocabulary import words_in
from spanlab.traces.spans import context_in, parse_json, text_asked, texts_listed


class PromptParts(NamedTuple):
    """What a prompt quotes, and what it asks; "" where nothing says which part of it that is."""

    passages: tuple[str, ...]
    question: str


class _Section(NamedTuple):
    """A passage in a prompt, and the characters that it takes there with its marks."""

    text: str
    start: int
    end: int


def parts_of(prompt: str, returned: Iterable[str] = (), *, asks: bool = True) -> PromptParts:
    """Return the passages in a prompt, in their order, and its question.

    Args:
        prompt: a message that a model read.
        returned: texts that the prompt may repeat, such as the results of a function.
        asks: whether the question may be in it, as in no system message beside a user's.
    """
    whole = parse_json(prompt)
    if isinstance(whole, dict) and (asked := text_asked(whole)):
        return PromptParts(tuple(context_in(whole)), asked)
    prompt = last_round(prompt)
    sections = _repeated(prompt, returned) or _tagged(prompt) or _listed(prompt)
    sections = sections or _numbered(prompt) or _fenced(prompt) or _named(prompt, asks=asks)
    sections = [section for section in sections if section.text.strip()]
    labelled = [m for m in _labels(prompt) if m["question"] and _text_behind(prompt, m)]
    if asked_in_tags := _ASKED.search(prompt):
        question = asked_in_tags["text"].strip()
    elif labelled:
        question = _text_behind(prompt, labelled[-1])
        if "[[" in labelled[-1]["mark"]:  # DSPy's field, behind which it goes on without a label
            question = question.partition("\n\n")[0]
    else:
        question = _beside(prompt, sections) if sections else ""
    return PromptParts(tuple(section.text for section in sections), question)


def core_of(question: str) -> str:
    """Return what a prompt asks, without what is around it."""
    return (parts_of(question).question or question).strip()


def last_round(prompt: str) -> str:
    """Return a prompt without the examples, or the turns of a chat, that its question is behind."""
    labels = _labels(prompt)
    filled = [n for n, label in enumerate(labels) if _text_behind(prompt, label)]
    asked = [n for n in filled if labels[n]["question"]]
    said = [n for n in filled if labels[n]["answer"] and asked and asked[0] < n < asked[-1]]
    if not said:
        return prompt
    head = prompt[: labels[asked[0]].start()]
    tail = prompt[_next_label(prompt, labels[said[-1]].end()) :]
    return tail if any(label["context"] for label in _labels(tail)) else head + tail


def _repeated(prompt: str, returned: Iterable[str]) -> list[_Section]:
    found = {text: prompt.find(text) for text in returned if len(text) >= _SHORTEST}
    places = [(at, text) for text, at in found.items() if at >= 0]
    return [_Section(text, _mark_of(prompt, at), at + len(text)) for at, text in sorted(places)]


def _mark_of(prompt: str, at: int) -> int:
    """Return where the mark of a passage begins that starts a line."""
    line = prompt.rfind("\n", 0, at) + 1
    return line if _MARK.fullmatch(prompt, line, at) else at


def _tagged(prompt: str) -> list[_Section]:
    """Return the texts of elements such as ``<document>``, the innermost of them."""
    matches = list(_TAGGED.finditer(prompt)) if "</" in prompt else []
    contents = [match for match in matches if _CONTENT.search(match["tag"])]
    return [_Section(match["text"].strip(), *match.span()) for match in contents or matches]


def _listed(prompt: str) -> list[_Section]:
    """Return what stands by number or in JSON under a name such as "Documents:"."""
    found: list[_Section] = []
    for before in _BEFORE_JSON.finditer(prompt):
        value, size = _json_at(prompt[before.end() :])
        texts = texts_listed(value)
        found += [_Section(text, before.start(), before.end() + size) for text in texts]
    for label in (label for label in _labels(prompt) if label["context"]):
        start, end = label.end(), _next_label(prompt, label.end())
        inner = prompt[start:end]
        sections = _numbered(inner, is_named=True)
        found += [_Section(s.text, start + s.start, start + s.end) for s in sections]
    return found


def _json_at(text: str) -> tuple[object, int]:
    """Return the value that a text begins with, and its length; None if it is no JSON."""
    try:
        return json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, 0


def _numbered(prompt: str, *, is_named: bool = False) -> list[_Section]:
    """Return sections that are numbered from 0 or 1; a plain list only under a name for it."""
    for kind in ("bracket", "word", "plain"):
        marks: list[re.Match[str]] = []
        for mark in _NUMBERED.finditer(prompt):
            number = _number(mark[kind] or "")
            if number in ([_number(marks[-1][kind]) + 1] if marks else (0, 1)) or (
                kind == "bracket" and mark["named"]
            ):
                marks.append(mark)
        is_listed = marks and is_named and not prompt[: marks[0].start()].strip()
        is_listed = is_listed or (marks and not is_named and kind != "plain")
        if is_listed or (marks and not is_named and _is_announced(prompt, marks[0].start())):
            return list(_between(prompt, marks))
    return []


def _number(mark: str) -> int:
    """Return the number of a mark, of which "A" is 1; -1 for none."""
    return int(mark) if mark.isdecimal() else ord(mark.upper()) - 64 if mark else -1


def _between(prompt: str, marks: Sequence[re.Match[str]]) -> Iterator[_Section]:
    """Yield the sections behind marks; the last ends at a label, or where paragraphs do."""
    ends = [mark.start() for mark in marks[1:]]
    has_paragraphs = any(
        "\n\n" in prompt[m.end() : e].strip() for m, e in zip(marks, ends, strict=False)
    )
    paragraph = -1 if has_paragraphs else prompt.find("\n\n", marks[-1].end())
    last = _next_label(prompt, marks[-1].end())
    ends.append(min(last, paragraph) if paragraph >= 0 else last)
    for mark, end in zip(marks, ends, strict=True):
        yield _Section(_bare(prompt[mark.end() : end]), mark.start(), end)


def _is_announced(prompt: str, at: int) -> bool:
    line = prompt[:at].rstrip().rpartition("\n")[2]
    return line.rstrip("* ").endswith(_COLONS) and _CONTEXTS.search(line) is not None


def _fenced(prompt: str) -> list[_Section]:
    """Return what lies between two lines that divide, behind a line that says it is evidence."""
    sections, last = list[_Section](), 0
    lines: dict[str, list[re.Match[str]]] = {}  # that begin with a fence
    for opening in _FENCE.finditer(prompt):
        line = prompt[max(0, opening.start() - _LONGEST_LINE) : opening.start()].rstrip()
        line = line.rpartition("\n")[2].lower()
        if opening.start() < last or " format" in line or not _CONTEXTS.search(line):
            continue
        if (fence := opening["fence"]) not in lines:
            lines[fence] = [*re.finditer(rf"^{re.escape(fence)}(.*)", prompt, re.MULTILINE)]
        closing = [match for match in lines[fence][-2:] if match.start() >= opening.end()]
        if len(closing) == 1 and not closing[0][1].strip():
            last = closing[0].end()
            text = prompt[opening.end() : closing[0].start()].strip()
            sections.append(_Section(text, opening.start(), last))
    return sections


def _named(prompt: str, *, asks: bool) -> list[_Section]:
    """Return what is under a name such as "Context:", if a label or the prompt's end ends it.

    Where nothing is labelled as the question, the last paragraph may be it: that is no border.
    """
    labels = _labels(prompt)
    named = [match for match in labels if match["context"]]
    spans = [(match.start(), match.end(), _next_label(prompt, match.end())) for match in named]
    sections = [_Section(_bare(prompt[end:last]), start, last) for start, end, last in spans]
    is_certain = any(match["question"] for match in labels)
    is_certain |= not asks and not any("\n\n" in section.text for section in sections)
    return sections if is_certain else []


@lru_cache(maxsize=16)
def _labels(prompt: str) -> list[re.Match[str]]:
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


def _next_label(prompt: str, at: int) -> int:
    labels = _labels(prompt)
    place = bisect_left(labels, at, key=re.Match.start)
    return labels[place].start() if place < len(labels) else len(prompt)


def _text_behind(prompt: str, label: re.Match[str]) -> str:
    return prompt[label.end() : _next_label(prompt, label.end())].strip()


def _bare(text: str) -> str:
    """Return a section's text without lines that only divide, its source, and quotes around it."""
    text = _SOURCE.sub("", _DIVIDER.sub("", text).strip())
    return text[1:-1] if text[:1] == "«" and text[-1:] == "»" else text


def _beside(prompt: str, sections: Sequence[_Section]) -> str:
    """Return what remains of a prompt beside its passages: behind them, or else before them."""
    behind = _CLOSING.sub("", _DIVIDER.sub("", prompt[sections[-1].end :]).strip()).strip()
    if behind:
        return behind.rpartition("\n\n")[2]
    lines = prompt[: sections[0].start].strip().splitlines()
    return "\n".join(line for line in lines if not line.rstrip("* ").endswith(_COLONS)).strip()


_COLONS: Final = (":", "\uff1a")
_SHORTEST: Final = 8  # characters of a text that a prompt repeats by no chance
_CONTEXT: Final = "|".join(
    (
        r"(?:retrieved |relevant |provided |given )?(?:contexts?|passages?|documents?|docs|"
        r"sources?|evidence|references?|search[ _]results|excerpts?|snippets?|chunks?|background|"
        r"knowledge|articles?)|документы|dokumente|quellen|documentos|documenti|コンテキスト|背景|"
        r"已知信息|문서|(?:参考|関連)?(?:資料|文書)|(?:参考|関連)情報|検索結果|(?:参考|相关)?(?:资料|文档)|检索结果",
        *words_in("parts", "passages_elsewhere"),
    )
)
_QUESTION: Final = "|".join(
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
_CONTEXTS: Final = re.compile(rf"{_CONTEXT}|text|information|情報|信息", re.IGNORECASE)
_BEFORE_JSON: Final = re.compile(
    rf"\b(?:{_CONTEXT})\b[^\n:]{{0,60}}[:\uff1a]\s*(?=\[)", re.IGNORECASE
)
_LABEL: Final = re.compile(
    rf"^(?P<mark>[#*\[【< \t]*)(?:(?P<context>{_CONTEXT})|(?P<question>{_QUESTION})"
    rf"|(?P<answer>{_ANSWER})|{_OTHER})(?![\w<])"
    r"[#*\]】> \t]*(?P<colon>[:\uff1a]?)[* \t]*\n?",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERED: Final = re.compile(
    rf"^[ \t]*[#*-]*[ \t]*(?:(?:{_CONTEXT})?[ \t]*[\[【](?P<named>{_CONTEXT})?[_ \t]*#?"
    rf"(?P<bracket>\d{{1,3}})[\]】]|"
    rf"(?:{_CONTEXT})[ \t]*#?(?P<word>\d{{1,3}}\b(?! +(?-i:[a-z]))|[A-Z](?=[:\uff1a]))|"
    r"\(?(?P<plain>\d{1,3})[.)])"
    r"(?:[ \t]*\(Title:[^\n]*?\))?[*]*[ \t]*[:\uff1a]?[*]*[ \t]*\n?",
    re.IGNORECASE | re.MULTILINE,
)
_TAGS: Final = r"document\w*|doc|passage|chunk|excerpt|snippet|(?:search_)?result"
_TAGGED: Final = re.compile(
    rf"<(?P<tag>{_TAGS}|context|source|text|content|資料|文書)\b[^<>]*>"
    rf"(?P<text>(?:(?!<(?:(?P=tag)|{_TAGS}|text|content|source +id)\b)[\s\S])*?)</(?P=tag)>",
    re.IGNORECASE,
)
_CONTENT: Final = re.compile(r"content$|text$", re.IGNORECASE)
_CLOSING: Final = re.compile(r"(?:</\w+>\s*)+")
_ASKED: Final = re.compile(
    rf"<(?P<tag>{_QUESTION}|user_(?:question|query|input))>(?P<text>(?:(?!<)[\s\S])+)</(?P=tag)>",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(
    r"(?:^|(?<=[:\uff1a])|(?<=[:\uff1a] ))"
    r"(?P<fence>-{3,}|={3,}|\"{3,}|`{3,}|'{3,}|\*{3,}|~{3,})\w*[ \t]*\n",
    re.MULTILINE,
)
_LONGEST_LINE: Final = 1000  # characters of one that announces what is fenced
_DIVIDER: Final = re.compile(r"^[ \t]*[-=*_#]{3,}[ \t]*$", re.MULTILINE)
_MARK: Final = re.compile(r"\W*\d*\W*")  # a number or what else stands before a passage
_SOURCE: Final = re.compile(  # what stands above a passage's text, such as its file
    r"\A(?:[^\n:\uff1a]{1,80}\n|[\w ]{1,30}[:\uff1a][^\n]*\n)*(?:page_)?content[:\uff1a]\s*",
    re.IGNORECASE,
)
