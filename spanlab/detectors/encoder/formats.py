"""What an encoder reads before the answer: the format that its checkpoint was trained on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from spanlab.errors import UsageError

FormatName = Literal["lettucedetect", "pair"]

_PLACE: Final = re.compile(r"\{(question|passages|count)\}")


class PromptFormat(NamedTuple):
    """A text with ``{question}``, ``{passages}`` and ``{count}`` in it.

    ``unasked`` is the text for items without a question. ``label`` stands before each passage,
    with its number for ``{number}``.
    """

    text: str
    unasked: str
    label: str = ""

    def render(self, question: str, passages: Sequence[str]) -> str:
        """Return the text for a question and passages; nothing in them is read as a place."""
        shown = (
            self.label.replace("{number}", str(number)) + passage
            for number, passage in enumerate(passages, start=1)
        )
        values = {
            "question": question,
            "passages": "\n".join(shown),
            "count": str(len(passages)),
        }
        template = self.text if question.strip() else self.unasked
        return _PLACE.sub(lambda found: values[found[1]], template)


# The prompts of RAGTruth (Niu et al. 2024), on whose inputs LettuceDetect's checkpoints were
# trained (Kovács and Recski 2025): a checkpoint is to read what it has learnt to read.
FORMATS: Final[dict[FormatName, PromptFormat]] = {
    "lettucedetect": PromptFormat(
        "Briefly answer the following question:\n{question}\nBear in mind that your response "
        "should be strictly based on the following {count} passages:\n{passages}\nIn case the "
        "passages do not contain the necessary information to answer the question, please reply "
        'with: "Unable to answer based on given passages."\noutput:',
        "Summarize the following text:\n{passages}\noutput:",
        "passage {number}: ",
    ),
    "pair": PromptFormat("{question}\n{passages}", "{passages}"),
}


def format_of(name: FormatName, template: str) -> PromptFormat:
    """Return a format by name, or that of an own template.

    Args:
        name: one of ``FORMATS``.
        template: an own text; empty for the format that is named.

    Raises:
        UsageError: the template has no place for passages.
    """
    if not template:
        return FORMATS[name]
    if "{passages}" not in template:
        raise UsageError(
            f"the template {template[:60]!r} has no {{passages}} (it may have {{question}}, "
            "{passages} and {count})"
        )
    return PromptFormat(template, template)
