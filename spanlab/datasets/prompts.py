"""Prompts with their passages in them, taken apart: the question by itself, and what to check with.

RAGTruth's prompts, which LettuceDetect's files and models keep, have the passages numbered behind
the question, one text to be summarised, or the data to be told of.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from spanlab.schema import Passage

_NUMBERED: Final = re.compile(r"^passage \d+:[ \t]*", re.MULTILINE)
_ASKED: Final = "question:\n"
_KINDS: Final = ("text", "article", "document", "structured data")  # of what stands below a line
_REFUSAL: Final = "In case the passages do not contain"
_ENDS: Final = ("output:", "overview:", "summary:", "answer:")


class ApartPrompt(NamedTuple):
    """What a prompt asks for, and the passages in it."""

    question: str
    passages: tuple[Passage, ...]


def taken_apart(prompt: str) -> ApartPrompt | None:
    """Return a prompt's question and passages; None if it has none that can be told apart."""
    numbered = list(_NUMBERED.finditer(prompt))
    body, ended = _without_end(prompt)
    if numbered:
        asked = prompt[: numbered[0].start()].strip()
        _, found, question = asked.partition(_ASKED)
        ends = [each.start() for each in numbered[1:]] + [len(body)]
        texts = [
            body[each.end() : end].strip("\n") for each, end in zip(numbered, ends, strict=True)
        ]
        passages = tuple(Passage(text=text) for text in texts if text.strip())
        return ApartPrompt(question.partition("\n")[0].strip() if found else asked, passages)
    place = 0
    task = 0
    for line in body.splitlines(keepends=True):
        place += len(line)
        if line.rstrip().endswith(":") and any(kind in line.lower() for kind in _KINDS):
            task = place
    if not ended or not task or not body[task:].strip():
        return None
    return ApartPrompt(body[:task].strip(), (Passage(text=body[task:].strip("\n")),))


def _without_end(prompt: str) -> tuple[str, bool]:
    """Return a prompt without the words that have the model begin, and whether it had them."""
    body = prompt.rstrip()
    end = next((end for end in _ENDS if body.lower().endswith(end)), "")
    body = body[: len(body) - len(end)].rstrip()
    before, refusal, _ = body.rpartition(_REFUSAL)
    return (before.rstrip() if refusal else body), bool(end)
