"""Passages that stand in a prompt, and the question that it asks."""

from __future__ import annotations

import pytest

from spanlab.formats.known.prompts import parts_of

ONE, TWO = "The tower was completed in 1889.", "It is 330 metres tall.\nIt stands in Paris."
ASKED = "When was it built?"
PROMPTS = {
    "numbers in brackets": f"Answer from these:\n[1] {ONE}\n[2] {TWO}\n\nQuestion: {ASKED}",
    "numbered words": f"Use the documents.\n\nDocument 1:\n{ONE}\n\nDocument 2:\n{TWO}\n\n{ASKED}",
    "numbers in Japanese brackets": (
        f"文書に基づいて答えてください。\n\n【文書1】\n{ONE}\n\n【文書2】\n{TWO}\n\n質問: {ASKED}"
    ),
    "a heading in Japanese brackets": (
        f"【資料1】{ONE}\n【資料2】{TWO}\n\n【質問】\n{ASKED}\n\n【回答】\n"
    ),
    "tags": f"<document>{ONE}</document>\n<document>{TWO}</document>\n\n{ASKED}",
    "tags in tags": (
        f"<context>\n<doc>{ONE}</doc>\n<doc>{TWO}</doc>\n</context>\n\n<question>{ASKED}</question>"
    ),
    "contents beside sources": (
        f"<documents>\n<document index='1'>\n<source>a.txt</source>\n<document_content>\n{ONE}\n"
        f"</document_content>\n</document>\n<document index='2'>\n<source>b.txt</source>\n"
        f"<document_content>\n{TWO}\n</document_content>\n</document>\n</documents>\n\n{ASKED}"
    ),
    "a question before them": f"<query>{ASKED}</query>\n<passage>{ONE}</passage>"
    f"<passage>{TWO}</passage>\nAnswer briefly.",
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_passages_with_certain_borders_are_told_from_the_question(prompt: str) -> None:
    assert parts_of(prompt) == ((ONE, TWO), ASKED)


@pytest.mark.parametrize(
    "prompt", [f"You are helpful. {ONE} {TWO} Be brief.", f"Context:\n\n{ONE}\n\n{TWO}\n\n{ASKED}"]
)
def test_what_has_no_certain_border_is_no_passage(prompt: str) -> None:
    assert parts_of(prompt).passages == ()
