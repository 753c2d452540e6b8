"""What an encoder reads before the answer: the format that its checkpoint was trained on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, Literal, NamedTuple

from spanlab.errors import UsageError

FormatName = Literal["lettucedetect", "pair"]

# The languages besides English that LettuceDetect's checkpoints were trained in, with the word
# that stands before each passage's number; the file of Chinese is called otherwise.
_PASSAGE: Final = {
    "de": "Passage",
    "es": "pasaje",
    "fr": "passage",
    "hu": "szövegrészlet",
    "it": "brano",
    "pl": "fragment",
    "zh": "段落",
}
_FILES: Final = {"zh": "cn"}
_THEIRS: Final = {
    "question": "question",
    "context": "passages",
    "text": "passages",
    "num_passages": "count",
}
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
        return _PLACE.sub(lambda match: values[match[1]], template)


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


def in_language(lang: str) -> PromptFormat:
    """Return LettuceDetect's prompt in a language; in English where there is none.

    The checkpoints in other languages learnt prompts of their own, which LettuceDetect's package
    brings: they are read from there where it is installed, and nothing of it is imported.

    Args:
        lang: BCP 47 tag of an item.
    """
    word = _PASSAGE.get(code := lang.partition("-")[0].lower())
    package = find_spec("lettucedetect") if word else None
    if word is None or package is None or not package.submodule_search_locations:
        return FORMATS["lettucedetect"]
    folder = Path(package.submodule_search_locations[0]) / "prompts"
    files = (f"{kind}_prompt_{_FILES.get(code, code)}.txt" for kind in ("qa", "summary"))
    try:
        question_prompt, summary = ((folder / file).read_text(encoding="utf-8") for file in files)
    except OSError:
        return FORMATS["lettucedetect"]
    return PromptFormat(_places(question_prompt), _places(summary), f"{word} {{number}}: ")


def _places(template: str) -> str:
    """Return one of LettuceDetect's templates with our names of its places."""
    for theirs, ours in _THEIRS.items():
        template = template.replace(f"${{{theirs}}}", f"{{{ours}}}")
    return template


def format_of(name: FormatName, template: str, label: str = "") -> PromptFormat:
    """Return a format by name, or that of an own template.

    Args:
        name: one of ``FORMATS``.
        template: an own text; empty for the format that is named.
        label: what stands before each passage in an own template.

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
    return PromptFormat(template, template, label)
