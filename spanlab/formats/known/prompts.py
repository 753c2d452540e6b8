"""Evidence that is in a prompt: the passages that it quotes, and the question that it asks.

    Answer from these passages only:        Context:
    [1] The tower was completed in 1889.    The tower was completed in 1889.
    [2] It is 330 metres tall.
                                            Question: When was it built?

A passage is taken only where its borders are certain: the prompt repeats a text that a span
returned, numbers its sections, has them in tags, or names where they begin and end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple


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
    sections = _repeated(prompt, returned) or _tagged(prompt) or _numbered(prompt)
    sections = sections or _named(prompt, asks=asks)
    sections = [section for section in sections if section.text.strip()]
    labelled = [m for m in _LABEL.finditer(prompt) if _is_label(m) and m["question"]]
    if asked := _ASKED.search(prompt):
        question = asked["text"].strip()
    elif labelled:
        end = _next_label(prompt, labelled[-1].end())
        question = prompt[labelled[-1].end() : end].strip()
        if "[[" in labelled[-1]["mark"]:  # DSPy's field, behind which it goes on without a label
            question = question.partition("\n\n")[0]
    else:
        question = _beside(prompt, sections) if sections else ""
    return PromptParts(tuple(section.text for section in sections), question)


def _repeated(prompt: str, returned: Iterable[str]) -> list[_Section]:
    found = {text: prompt.find(text) for text in returned if len(text) >= _SHORTEST}
    places = [(at, at + len(text), text) for text, at in found.items() if at >= 0]
    return [_Section(text, start, end) for start, end, text in sorted(places)]


def _tagged(prompt: str) -> list[_Section]:
    """Return the texts of elements such as ``<document>``, the innermost of them."""
    matches = list(_TAGGED.finditer(prompt)) if "</" in prompt else []
    contents = [match for match in matches if "content" in match["tag"].lower()]
    return [_Section(match["text"].strip(), *match.span()) for match in contents or matches]


def _numbered(prompt: str) -> list[_Section]:
    """Return sections that are numbered from 0 or 1; a plain list only under a name for it."""
    for kind in ("bracket", "word", "plain"):
        marks: list[re.Match[str]] = []
        for mark in _NUMBERED.finditer(prompt):
            if mark[kind] and int(mark[kind]) in ([int(marks[-1][kind]) + 1] if marks else (0, 1)):
                marks.append(mark)
        if marks and (kind != "plain" or _is_announced(prompt, marks[0].start())):
            return list(_between(prompt, marks))
    return []


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


def _named(prompt: str, *, asks: bool) -> list[_Section]:
    """Return what is under a name such as "Context:", if a label or the prompt's end ends it.

    Where nothing is labelled as the question, the last paragraph may be it: that is no border.
    """
    labels = [match for match in _LABEL.finditer(prompt) if _is_label(match)]
    named = [match for match in labels if match["context"]]
    spans = [(match.start(), match.end(), _next_label(prompt, match.end())) for match in named]
    sections = [_Section(_bare(prompt[end:last]), start, last) for start, end, last in spans]
    is_certain = any(match["question"] for match in labels)
    is_certain |= not asks and not any("\n\n" in section.text for section in sections)
    return sections if is_certain else []


def _is_label(match: re.Match[str]) -> bool:
    """Say whether a name has a colon behind it, or is a line's heading."""
    return bool(match["colon"]) or (bool(match["mark"].strip()) and match[0].endswith("\n"))


def _next_label(prompt: str, at: int) -> int:
    labels = (match.start() for match in _LABEL.finditer(prompt, at) if _is_label(match))
    return next((start for start in labels if start >= at), len(prompt))


def _bare(text: str) -> str:
    """Return a section's text without lines that only divide, and quotes around all of it."""
    text = _DIVIDER.sub("", text).strip()
    return text[1:-1] if text[:1] == "«" and text[-1:] == "»" else text


def _beside(prompt: str, sections: Sequence[_Section]) -> str:
    """Return what remains of a prompt beside its passages: behind them, or else before them."""
    behind = _DIVIDER.sub("", prompt[sections[-1].end :]).strip()
    if behind:
        return behind.rpartition("\n\n")[2]
    lines = prompt[: sections[0].start].strip().splitlines()
    return "\n".join(line for line in lines if not line.rstrip("* ").endswith(_COLONS)).strip()


_COLONS: Final = (":", "\uff1a")
_SHORTEST: Final = 8  # characters of a text that a prompt repeats by no chance
_CONTEXT: Final = (
    r"(?:retrieved |relevant |provided |given )?(?:contexts?|passages?|documents?|docs|sources?|"
    r"evidence|references?|search results|excerpts?|snippets?|chunks?|background|knowledge)"
    r"|kontext|contexte|contexto|contesto|kontekst|контекст|документы|سياق|السياق|संदर्भ|"
    r"dokumente|quellen|documentos|documenti|konteksti|testuingurua|文脈|コンテキスト|資料|文書|"
    r"上下文|背景|资料|文档|문맥|문서"
)
_QUESTION: Final = (
    r"(?:user )?(?:question|query)|frage|pregunta|domanda|pergunta|вопрос|سؤال|السؤال|सवाल|प्रश्न|"
    r"kysymys|fråga|otázka|galdera|پرسش|質問|问题|問題|질문"
)
_OTHER: Final = (
    r"(?:final |your )?answer|response|instructions?|task|completed|reasoning|antwort|respuesta|"
    r"réponse|risposta|resposta|ответ|回答|答案|답변"
)
_CONTEXTS: Final = re.compile(_CONTEXT, re.IGNORECASE)
_LABEL: Final = re.compile(
    rf"^(?P<mark>[#*\[【 \t]*)(?:(?P<context>{_CONTEXT})|(?P<question>{_QUESTION})|{_OTHER})"
    r"[#*\]】 \t]*(?P<colon>[:\uff1a]?)[* \t]*\n?",
    re.IGNORECASE | re.MULTILINE,
)
_NUMBERED: Final = re.compile(
    rf"^[ \t]*[#*-]*[ \t]*(?:(?:{_CONTEXT})?[ \t]*[\[【](?:{_CONTEXT})?[ \t]*#?"
    rf"(?P<bracket>\d{{1,3}})[\]】]|"
    rf"(?:{_CONTEXT})[ \t]*#?(?P<word>\d{{1,3}})\b|\(?(?P<plain>\d{{1,3}})[.)])"
    r"(?:[ \t]*\(Title:[^\n]*?\))?[*]*[ \t]*[:\uff1a]?[*]*[ \t]*\n?",
    re.IGNORECASE | re.MULTILINE,
)
_TAGGED: Final = re.compile(
    r"<(?P<tag>document_content|document|doc|passage|context|source|chunk|excerpt|snippet)\b[^<>]*>"
    r"(?P<text>(?:(?!<(?:(?P=tag)|document\w*|doc|passage|chunk|excerpt|snippet)\b)[\s\S])*?)</(?P=tag)>",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(
    rf"<(?P<tag>{_QUESTION}|user_(?:question|query|input))>(?P<text>(?:(?!<)[\s\S])+)</(?P=tag)>",
    re.IGNORECASE,
)
_DIVIDER: Final = re.compile(r"^[ \t]*[-=*_#]{3,}[ \t]*$", re.MULTILINE)
