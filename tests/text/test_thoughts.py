"""Where an answer begins behind what a model thought aloud."""

from __future__ import annotations

import pytest

from spanlab.text.thoughts import answer_after_thoughts

TEXT = "It was 1901."


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        pytest.param(TEXT, TEXT, id="none"),
        pytest.param(f"<think>a</think>\n\n{TEXT}", TEXT, id="tags"),
        pytest.param(f"  <THINKING>a</THINKING>{TEXT}", TEXT, id="white space and capitals"),
        pytest.param(f"<think>a <think>b</think> c</think>{TEXT}", TEXT, id="nested"),
        pytest.param(f"<think>a</think><reflection>b</reflection>{TEXT}", TEXT, id="two"),
        pytest.param(f"<think>a</think> <answer> {TEXT} </answer>\n", TEXT, id="answer in tags"),
        pytest.param(f"a\n</think>\n{TEXT}", TEXT, id="closing tag on its line"),
        pytest.param(f"a</think>{TEXT}", f"a</think>{TEXT}", id="closing tag in a line"),
        pytest.param(f"Was it 1889? No.</think>{TEXT}", TEXT, id="between sentences"),
        pytest.param(f"Was it 1889? No. </think> **{TEXT}**", f"**{TEXT}**", id="and markup"),
        pytest.param(f"A.</think> ends it. {TEXT}", f"A.</think> ends it. {TEXT}", id="in one"),
        pytest.param(f"{TEXT} <think>so</think>", f"{TEXT} <think>so</think>", id="on tags"),
        pytest.param(f"◁think▷a◁/think▷{TEXT}", TEXT, id="Kimi"),
        pytest.param(
            f"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>{TEXT}",
            TEXT,
            id="harmony",
        ),
        pytest.param(
            f"<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>"
            f"{TEXT}<|return|>",
            TEXT,
            id="harmony with its last token",
        ),
        pytest.param(f"<think>a</think>{TEXT}<|im_end|>\n", TEXT, id="end of turn"),
        pytest.param("<|channel|>analysis<|message|>a", "", id="harmony, cut off"),
        pytest.param(f"<think>a {TEXT}", "", id="cut off"),
        pytest.param("<think>a</think>\n", "", id="nothing else"),
        pytest.param("", "", id="empty"),
    ],
)
def test_an_answer_begins_behind_reasoning_that_begins_the_text(text: str, answer: str) -> None:
    start, end = answer_after_thoughts(text)
    assert text[start:end] == answer
