"""Passages that stand in a prompt, and the question that it asks."""

from __future__ import annotations

import json

import pytest

from spanlab.traces.prompts import parts_of

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
    "sources by id in a context": (
        f'<context>\n<source id="1" name="a.pdf">{ONE}</source>\n<source id="2">{TWO}</source>\n'
        f"</context>\n\n<user_query>\n{ASKED}\n</user_query>"
    ),
    "contents beside sources": (
        f"<documents>\n<document index='1'>\n<source>a.txt</source>\n<document_content>\n{ONE}\n"
        f"</document_content>\n</document>\n<document index='2'>\n<source>b.txt</source>\n"
        f"<document_content>\n{TWO}\n</document_content>\n</document>\n</documents>\n\n{ASKED}"
    ),
    "a question before them": f"<query>{ASKED}</query>\n<passage>{ONE}</passage>"
    f"<passage>{TWO}</passage>\nAnswer briefly.",
    "results with titles": (
        f"<search_results>\n<result>\n<title>A</title>\n<text>{ONE}</text>\n</result>\n<result>\n"
        f"<title>B</title>\n<text>{TWO}</text>\n</result>\n</search_results>\n\n{ASKED}"
    ),
    "letters": f"Passage A: {ONE}\nPassage B: {TWO}\n\nQuestion: {ASKED}",
    "ids in brackets": f"Chunks:\n[chunk_12] {ONE}\n[chunk_47] {TWO}\n\nQ: {ASKED}\nA:",
    "a list under its name, behind one of rules": (
        f"Rules:\n1. Be brief.\n2. Cite.\n\nDocuments:\n1. {ONE}\n2. {TWO}\n\nQuestion: {ASKED}"
    ),
    "files above texts": (
        f"Source: a.md\nContent: {ONE}\n\nSource: b.md\nContent: {TWO}\n\nQuestion: {ASKED}"
    ),
    "a list in JSON": (
        f"Use these documents: {json.dumps([{'id': 1, 'text': ONE}, {'id': 2, 'text': TWO}])}"
        f"\n\nQuestion: {ASKED}"
    ),
    "an object in JSON": json.dumps({"question": ASKED, "context": [ONE, TWO]}),
    "examples before it": (
        "Context: Bern is a city.\nQuestion: What is Bern?\nAnswer: A city.\n\n"
        f"Context:\n[1] {ONE}\n[2] {TWO}\nQuestion: {ASKED}\nAnswer:"
    ),
    "turns of a chat before it": (
        f"Documents:\n[1] {ONE}\n[2] {TWO}\n\nChat History:\nHuman: Which tower?\nAI: Eiffel's.\n"
        f"Follow Up Input: {ASKED}\nStandalone question:"
    ),
}
FENCED = {
    "lines": f"Context information is below.\n-----\n{ONE}\n-----\nQuery: {ASKED}\nAnswer: ",
    "quotes": f'Use the context.\n\nContext: """\n{ONE}\n"""\n\nQuestion: {ASKED}',
    "code": f"Answer the question from the text below.\n\n```\n{ONE}\n```\n\n{ASKED}",
    "tags in Japanese": f"<資料>\n{ONE}\n</資料>\n<質問>{ASKED}</質問>",
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_passages_with_certain_borders_are_told_from_the_question(prompt: str) -> None:
    assert parts_of(prompt) == ((ONE, TWO), ASKED)


@pytest.mark.parametrize("prompt", FENCED.values(), ids=FENCED)
def test_what_lies_between_two_dividing_lines_is_a_passage(prompt: str) -> None:
    assert parts_of(prompt) == ((ONE,), ASKED)


PAIRS = "Q: When do you open?\nA: At nine.\nQ: And on Mondays?\nA: We are closed."
FAQ = f"Opening hours\n{PAIRS}"


@pytest.mark.parametrize(
    ("prompt", "passages"),
    [
        (f"Context:\n{FAQ}\n\nQuestion: {ASKED}\nAnswer:", (FAQ,)),
        (f"Context:\n[1] {FAQ}\n[2] {ONE}\n\nQuestion: {ASKED}", (FAQ, ONE)),
        (f"<context>\n{FAQ}\n</context>\n\nQuestion: {ASKED}", (FAQ,)),
        (f"Context:\nA: {ONE}\nB: closed\n\nFrage: {ASKED}", (f"A: {ONE}\nB: closed",)),
        (
            f"Kontext:\nFrage: Wann?\nAntwort: 1889.\n\nQ: {ASKED}",
            ("Frage: Wann?\nAntwort: 1889.",),
        ),
        (f"Context: {ONE}\nQuestion: Which?\nUser: {ASKED}", (ONE,)),
        (f"Context: {ONE}\nHuman: Which?\nAI: Eiffel's.\n\nQuestion: {ASKED}", (ONE,)),
        (f"Q: Where?\nA: In Bern.\n\nContext:\n{FAQ}\n\nQuestion: {ASKED}", (FAQ,)),
        (f"Context:\n{PAIRS}\n\nQ: {ASKED}\nA:", (PAIRS,)),
        (f"Context: {ONE}\nQ: Which?\nA: Eiffel's.\n\nQ: {ASKED}\nA:", (ONE,)),
        (f"【参考資料】\n{ONE}\n【質問】\n{ASKED}", (ONE,)),
        (f"检索结果:\n{ONE}\n\n问题: {ASKED}", (ONE,)),
        (f"Bağlam:\n{ONE}\n\nSoru: {ASKED}\nCevap:", (ONE,)),
    ],
)
def test_questions_and_answers_of_a_context_do_not_end_it(
    prompt: str, passages: tuple[str, ...]
) -> None:
    """An FAQ was cut at its first question, or taken for examples."""
    assert parts_of(prompt) == (passages, ASKED)


def test_what_a_prompt_repeats_is_taken_out_with_its_mark() -> None:
    prompt = f"{ASKED}\n\nSearch results:\n1. {ONE}\n2. {TWO}"
    assert parts_of(prompt, [ONE, TWO]) == ((ONE, TWO), ASKED)


def test_a_long_prompt_is_read_in_a_time_that_grows_as_it_does() -> None:
    line = "text: context information, " * 10_000
    assert parts_of(f"{line}\n{'- ' * 5_000}\n\n{ASKED}").passages == ()
    examples = "Q: What is Bern?\nA: A city.\n" * 5_000
    assert parts_of(f"{examples}Context: {ONE}\nQ: {ASKED}") == ((ONE,), ASKED)
    listed = "Q: What is Bern?\n" * 20_000  # and never answered
    assert parts_of(f"Context:\n{listed}\nQuestion: {ASKED}").question == ASKED
    opened = "context: ---\n" * 10_000  # and never closed
    assert parts_of(f"{opened}\n{ASKED}").passages == ()


@pytest.mark.parametrize(
    "prompt",
    [
        f"You are helpful. {ONE} {TWO} Be brief.",
        f"Context:\n\n{ONE}\n\n{TWO}\n\n{ASKED}",
        f"Answer in the following text format:\n```\n{ONE}\n```\n\n{ASKED}",
        f"Context:\n---\n{ONE}\n---\n{TWO}\n---\n{ASKED}",
        'Choose one of ["tower", "bridge"].',
    ],
)
def test_what_has_no_certain_border_is_no_passage(prompt: str) -> None:
    assert parts_of(prompt).passages == ()
