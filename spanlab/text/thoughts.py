"""What a model thinks aloud in its text, told from its answer by the tags of chat templates."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from spanlab.base.errors import InputError
from spanlab.text.extents import Extent

UNJUDGED: Final = "the reasoning before the answer was not judged"
REASONING: Final = "reasoning"  # where it is kept in an item's meta

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


def split_reply(text: str) -> SplitReply:
    """Split the content of a message into reasoning and answer.

    Everything up to the last closing tag is reasoning, unless the answer has begun before that
    reasoning opened: then it speaks of such tags. Reasoning that never ends leaves no answer.
    """
    text = text[:-_LAST] + _TOKENS.sub("", text[-_LAST:])
    channels = list(_CHANNEL.finditer(text))
    if channels:
        channel = channels[-1]
        if channel[1] != "final":
            return SplitReply(text, "")
        return SplitReply(text[: channel.start()], text[channel.end() :])
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


_WORD: Final = re.compile(r"\S")
# Some templates put the opening tag into the prompt: a closing one is left, on a line of its own or
# between two sentences. An answer that speaks of tags has them inside one.
_CLOSING: Final = ("</think>", "[/THINK]", "◁/think▷")
_TAG: Final = "|".join(map(re.escape, _CLOSING))
_CLOSED: Final = re.compile(
    rf"(?:^|\n)[ \t]*(?:{_TAG})[ \t]*(?=\n)"
    rf"|(?:\n|[.!?…。！？])[ \t]*(?:{_TAG})\s*(?=[^\W_a-z]|[*#“«])"
)
_WRAPPED: Final = re.compile(r"<answer>\s*(.*?)\s*</answer>\s*", re.DOTALL | re.IGNORECASE)
_EITHER: Final = re.compile(f"{_OPEN.pattern}|{_CLOSE.pattern}", re.IGNORECASE)


def answer_after_thoughts(text: str) -> Extent:
    """Return where the answer is in the text of a message that nobody parsed.

    Reasoning is what certainly is: a text that begins with a tag, up to the tag that closes it, or
    what ends with such a tag alone on its line, or between two sentences. An answer may speak of
    tags anywhere else. What stands in ``<answer>`` behind reasoning is the answer; tokens of a
    template at its end are not.

    Returns:
        Its place; an empty one at the end for reasoning that never ends, or is all there is; the
        whole text where there is no reasoning.
    """
    start = _channels_end(text) or _tags_end(text)
    if start == 0:
        return Extent(0, len(text))
    start = _behind_space(text, start)
    wrapped = _WRAPPED.fullmatch(text, start)
    if wrapped:
        return Extent(*wrapped.span(1))
    rest = text[max(start, len(text) - _LAST) :]
    return Extent(start, len(text) - len(rest) + len(_TOKENS.sub("", rest)))


def without_thoughts(text: str) -> tuple[str, dict[str, str]]:
    """Return an answer without reasoning in tags before it, and that reasoning for ``meta``.

    Raises:
        InputError: the reasoning does not end in an answer.
    """
    place = answer_after_thoughts(text)
    if place == Extent(0, len(text)):
        return text, {}
    if place.start == place.end:
        raise InputError("the model's reasoning does not end in an answer", field="answer")
    return text[place.start : place.end], {REASONING: text[: place.start]}


def _behind_space(text: str, start: int) -> int:
    word = _WORD.search(text, start)
    return word.start() if word else len(text)


def _channels_end(text: str) -> int:
    """Return where the final channel begins; 0 for a text without channels."""
    channels = list(_CHANNEL.finditer(text)) if text.startswith("<|") else []
    if not channels:
        return 0
    return channels[-1].end() if channels[-1][1] == "final" else len(text)


def _tags_end(text: str) -> int:
    """Return the end of the reasoning in tags that a text begins with; 0 if it does not."""
    end = 0
    while opening := _OPEN.match(text, _behind_space(text, end)):
        depth, end = 1, opening.end()
        for tag in _EITHER.finditer(text, end):
            depth += 1 if _OPEN.fullmatch(tag[0]) else -1
            if depth == 0:
                end = tag.end()
                break
        else:
            return len(text)
    may_close = end == 0 and any(tag in text for tag in _CLOSING)  # which costs a tenth
    closed = _CLOSED.search(text) if may_close else None
    return closed.end() if closed else end
