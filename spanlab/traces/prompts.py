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
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from spanlab.formats.prompt_labels import (
    CONTEXT,
    DIVIDER,
    QUESTION,
    Section,
    bare,
    labels_in,
    last_round,
    next_label,
    sections_named,
    text_behind,
)
from spanlab.traces.spans import context_in, parse_json, text_asked, texts_listed


class PromptParts(NamedTuple):
    """What a prompt quotes, and what it asks; "" where nothing says which part of it that is."""

    passages: tuple[str, ...]
    question: str


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
    sections = sections or _numbered(prompt) or _fenced(prompt) or sections_named(prompt, asks=asks)
    sections = [section for section in sections if section.text.strip()]
    labelled = [m for m in labels_in(prompt) if m["question"] and text_behind(prompt, m)]
    if asked_in_tags := _ASKED.search(prompt):
        question = asked_in_tags["text"].strip()
    elif labelled:
        question = text_behind(prompt, labelled[-1])
        if "[[" in labelled[-1]["mark"]:  # DSPy's field, behind which it goes on without a label
            question = question.partition("\n\n")[0]
    else:
        question = _beside(prompt, sections) if sections else ""
    return PromptParts(tuple(section.text for section in sections), question)


def core_of(question: str) -> str:
    """Return what a prompt asks, without what is around it."""
    return (parts_of(question).question or question).strip()


def _repeated(prompt: str, returned: Iterable[str]) -> list[Section]:
    found = {text: prompt.find(text) for text in returned if len(text) >= _SHORTEST}
    places = [(at, text) for text, at in found.items() if at >= 0]
    return [Section(text, _mark_of(prompt, at), at + len(text)) for at, text in sorted(places)]


def _mark_of(prompt: str, at: int) -> int:
    """Return where the mark of a passage begins that starts a line."""
    line = prompt.rfind("\n", 0, at) + 1
    return line if _MARK.fullmatch(prompt, line, at) else at


def _tagged(prompt: str) -> list[Section]:
    """Return the texts of elements such as ``<document>``, the innermost of them."""
    matches = list(_TAGGED.finditer(prompt)) if "</" in prompt else []
    contents = [match for match in matches if _CONTENT.search(match["tag"])]
    return [Section(match["text"].strip(), *match.span()) for match in contents or matches]


def _listed(prompt: str) -> list[Section]:
    """Return what stands by number or in JSON under a name such as "Documents:"."""
    found: list[Section] = []
    for before in _BEFORE_JSON.finditer(prompt):
        value, size = _json_at(prompt[before.end() :])
        texts = texts_listed(value)
        found += [Section(text, before.start(), before.end() + size) for text in texts]
    for label in (label for label in labels_in(prompt) if label["context"]):
        start, end = label.end(), next_label(prompt, label.end())
        inner = prompt[start:end]
        sections = _numbered(inner, is_named=True)
        found += [Section(s.text, start + s.start, start + s.end) for s in sections]
    return found


def _json_at(text: str) -> tuple[object, int]:
    """Return the value that a text begins with, and its length; None if it is no JSON."""
    try:
        return json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):
        return None, 0


def _numbered(prompt: str, *, is_named: bool = False) -> list[Section]:
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


def _between(prompt: str, marks: Sequence[re.Match[str]]) -> Iterator[Section]:
    """Yield the sections behind marks; the last ends at a label, or where paragraphs do."""
    ends = [mark.start() for mark in marks[1:]]
    has_paragraphs = any(
        "\n\n" in prompt[m.end() : e].strip() for m, e in zip(marks, ends, strict=False)
    )
    paragraph = -1 if has_paragraphs else prompt.find("\n\n", marks[-1].end())
    last = next_label(prompt, marks[-1].end())
    ends.append(min(last, paragraph) if paragraph >= 0 else last)
    for mark, end in zip(marks, ends, strict=True):
        yield Section(bare(prompt[mark.end() : end]), mark.start(), end)


def _is_announced(prompt: str, at: int) -> bool:
    line = prompt[:at].rstrip().rpartition("\n")[2]
    return line.rstrip("* ").endswith(_COLONS) and _CONTEXTS.search(line) is not None


def _fenced(prompt: str) -> list[Section]:
    """Return what lies between two lines that divide, behind a line that says it is evidence."""
    sections, last = list[Section](), 0
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
            sections.append(Section(text, opening.start(), last))
    return sections


def _beside(prompt: str, sections: Sequence[Section]) -> str:
    """Return what remains of a prompt beside its passages: behind them, or else before them."""
    behind = _CLOSING.sub("", DIVIDER.sub("", prompt[sections[-1].end :]).strip()).strip()
    if behind:
        return behind.rpartition("\n\n")[2]
    lines = prompt[: sections[0].start].strip().splitlines()
    return "\n".join(line for line in lines if not line.rstrip("* ").endswith(_COLONS)).strip()


_COLONS: Final = (":", "\uff1a")
_SHORTEST: Final = 8  # characters of a text that a prompt repeats by no chance
_CONTEXTS: Final = re.compile(rf"{CONTEXT}|text|information|情報|信息", re.IGNORECASE)
_BEFORE_JSON: Final = re.compile(
    rf"\b(?:{CONTEXT})\b[^\n:]{{0,60}}[:\uff1a]\s*(?=\[)", re.IGNORECASE
)
_NUMBERED: Final = re.compile(
    rf"^[ \t]*[#*-]*[ \t]*(?:(?:{CONTEXT})?[ \t]*[\[【](?P<named>{CONTEXT})?[_ \t]*#?"
    rf"(?P<bracket>\d{{1,3}})[\]】]|"
    rf"(?:{CONTEXT})[ \t]*#?(?P<word>\d{{1,3}}\b(?! +(?-i:[a-z]))|[A-Z](?=[:\uff1a]))|"
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
    rf"<(?P<tag>{QUESTION}|user_(?:question|query|input))>(?P<text>(?:(?!<)[\s\S])+)</(?P=tag)>",
    re.IGNORECASE,
)
_FENCE: Final = re.compile(
    r"(?:^|(?<=[:\uff1a])|(?<=[:\uff1a] ))"
    r"(?P<fence>-{3,}|={3,}|\"{3,}|`{3,}|'{3,}|\*{3,}|~{3,})\w*[ \t]*\n",
    re.MULTILINE,
)
_LONGEST_LINE: Final = 1000  # characters of one that announces what is fenced
_MARK: Final = re.compile(r"\W*\d*\W*")  # a number or what else stands before a passage
