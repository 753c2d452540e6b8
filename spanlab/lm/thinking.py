"""What a model thinks aloud before it answers, told apart from the answer.

Endpoints send it in a field of its own, or leave it in the content between the tags of the model's
chat template, sometimes with the closing tag alone. It may hold drafts of the answer, so that it is
taken away before anything is read.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from dspy.lm15 import Response

# DeepSeek, Qwen, GLM and many more; Seed; Mistral; Kimi; Cohere; Sky-T1; MedGemma.
_NAMES = r"(?:seed:)?think(?:ing)?|thoughts?|reasoning|reflection|scratchpad|analysis"
_OPEN = re.compile(
    rf"<(?:{_NAMES})>|\[THINK\]|◁think▷|<\|START_THINKING\|>|<\|begin_of_thought\|>|<unused94>",
    re.IGNORECASE,
)
_CLOSE = re.compile(
    rf"</(?:{_NAMES})>|\[/THINK\]|◁/think▷|<\|END_THINKING\|>|<\|end_of_thought\|>|<unused95>",
    re.IGNORECASE,
)
_ANSWERS = re.compile(r"\[\[\s*##|^\s*(?:```\w*\s*)?[\[{]")  # text in which the answer has begun
# gpt-oss's harmony format, with its special tokens or with what is left without them.
_CHANNEL = re.compile(r"<\|channel\|>\s*(\w+)(?:(?!<\|message\|>).){0,100}<\|message\|>", re.DOTALL)
_STRIPPED = re.compile(r"^\s*analysis.*assistantfinal", re.DOTALL)
_TOKENS = re.compile(
    r"(?:\s*(?:<\|(?:end|return|im_end|eot_id|endoftext|START_RESPONSE|END_RESPONSE)\|>|</s>))+\s*$"
)
_LAST = 200  # characters at the end in which tokens of the template may be left


class SplitReply(NamedTuple):
    """What a model thought aloud and what it answered; either may be empty."""

    thoughts: str
    answer: str


def told_apart(text: str) -> SplitReply:
    """Return what of a message's content is reasoning and what is the answer.

    Everything up to the last closing tag is reasoning, unless the answer has begun before that
    reasoning opened: then it speaks of such tags. Reasoning that never ends leaves no answer.
    """
    text = text[:-_LAST] + _TOKENS.sub("", text[-_LAST:])
    channels = list(_CHANNEL.finditer(text))
    if channels:
        *_, last = channels
        if last[1] != "final":
            return SplitReply(text, "")
        return SplitReply(text[: last.start()], text[last.end() :])
    stripped = _STRIPPED.match(text)
    if stripped:
        return SplitReply(stripped[0], text[stripped.end() :])
    cut = 0
    for closing in _CLOSE.finditer(text):
        opening = _OPEN.search(text, cut, closing.start())
        if opening and _ANSWERS.search(text[cut : opening.start()]):
            break
        cut = closing.end()
    unclosed = _OPEN.search(text, cut)
    if unclosed and not _ANSWERS.search(text[cut : unclosed.start()]):
        return SplitReply(text, "")
    return SplitReply(text[:cut], text[cut:])


def without_thoughts(response: Response) -> Response:
    """Return a response whose text is the answer alone; its reasoning is a part of its own."""
    from dspy.lm15 import Message, TextPart, ThinkingPart

    text = response.text
    if not text:
        return response
    said = told_apart(text)
    if said.answer == text:
        return response
    others = [part for part in response.message.parts if part.type != "text"]
    parts = [ThinkingPart(said.thoughts)] if said.thoughts.strip() else []
    answer = [TextPart(said.answer)] if said.answer.strip() else []
    message = Message(role="assistant", parts=(*others, *parts, *answer) or (TextPart(""),))
    return replace(response, message=message)


def thoughts_of(response: Response) -> str:
    """Return what a model thought aloud before its answer; "" if it did not."""
    parts = (part.text for part in response.message.parts if part.type == "thinking")
    return "\n".join(filter(str.strip, parts))
