"""The scripted model that answers from gold labels, as far from them as it is told to be."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from gold_answers import INSTRUCTIONS, GoldAnswers, Noise, better_when_asked, by_prompt

from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span
from spanlab.testing import ModelRequest, Script

ANSWER = "Bern is the capital of France. It has 9 inhabitants. It lies on the Aare."
GOLD = ((0, 4), (38, 39))  # "Bern" and "9"


@pytest.fixture
def record() -> Record:
    """An item of which people marked two spans."""
    spans = tuple(
        Span(start=start, end=end, text=ANSWER[start:end], prob=0.8) for start, end in GOLD
    )
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=spans)
    item = Item(id="i", lang="en", question="Which city?", answer=ANSWER)
    return Record(item=item, annotations=(gold,))


def asked(
    fields: dict[str, str],
    wanted: str,
    *,
    task: str = "Find mistakes.",
    shown: int = 0,
    as_json: bool = False,
) -> ModelRequest:
    """Return a request as the adapters write it."""
    given = "\n\n".join(f"[[ ## {name} ## ]]\n{value}" for name, value in fields.items())
    examples = "\n\n[[ ## answer ## ]]\nAnother.\n\nThe reply:\n\n…" * shown
    form = f"`{wanted}`" if as_json else f"`[[ ## {wanted} ## ]]`"
    respond = "a JSON object that has these" if as_json else "these"
    asked = f"Respond with {respond} fields:\n- {form} (a JSON list): some"
    content = f"{given}\n\n# Task\n\n{task}\n\nThe inputs:{examples}\n\n# Reply\n\n{asked}"
    messages = [{"role": "user", "content": content}]
    return ModelRequest(
        0, "POST", "/v1/chat/completions", {"model": "m", "messages": messages}, {}, 0.0
    )


def value(script: Script, ask: ModelRequest) -> Any:
    """Return what the model's answer holds in its one field."""
    text = script(ask).body["choices"][0]["message"]["content"]
    if text.startswith("{"):
        return next(iter(json.loads(text).values()))
    found = re.match(r"\[\[ ## \w+ ## \]\]\n(.*)\n\n\[\[ ## completed ## \]\]$", text, re.DOTALL)
    assert found is not None
    return json.loads(found[1]) if found[1].startswith(("[", "{")) else found[1]


ASKED = {"passages": "P", "question": "Which city?", "answer": ANSWER}


@pytest.mark.parametrize("as_json", [False, True], ids=["chat", "json"])
def test_without_noise_the_quotes_are_gold(record: Record, as_json: bool) -> None:
    parts = value(GoldAnswers([record]), asked(ASKED, "parts", as_json=as_json))
    assert [part["text"] for part in parts] == ["Bern", "9"]
    assert [part["probability"] for part in parts] == [0.8, 0.8]


def test_a_revision_replaces_what_is_wrong_alone(record: Record) -> None:
    revised = value(GoldAnswers([record]), asked(ASKED, "revised"))
    assert revised == ANSWER.replace("Bern", "otherwise").replace("9", "otherwise")


def test_facts_are_sentences_and_wrong_where_they_hold_a_span(record: Record) -> None:
    script = GoldAnswers([record])
    facts = [fact["fact"] for fact in value(script, asked(ASKED, "facts"))]
    assert facts == [
        "Bern is the capital of France.",
        "It has 9 inhabitants.",
        "It lies on the Aare.",
    ]
    judged = [value(script, asked({"fact": fact}, "judgement"))["verdict"] for fact in facts]
    assert judged == ["refuted", "refuted", "supported"]
    words = value(script, asked({"answer": ANSWER, "claim": facts[1]}, "words"))
    assert words == [{"text": "9"}]


def test_a_member_says_the_same_every_time_and_another_something_else(record: Record) -> None:
    records = [
        record.model_copy(update={"item": record.item.model_copy(update=update)})
        for number in range(30)
        for update in [{"id": str(number), "answer": f"{ANSWER} No. {number}"}]
    ]

    def answers(seed: int) -> list[Any]:
        script = GoldAnswers(records, noise=0.6, seed=seed)
        return [value(script, asked({"answer": each.item.answer}, "parts")) for each in records]

    assert answers(1) == answers(1)
    assert answers(1) != answers(2)


def test_noise_misses_invents_moves_and_doubles(record: Record) -> None:
    ask = asked(ASKED, "parts")

    def quoted(noise: Noise) -> list[str]:
        return [part["text"] for part in value(GoldAnswers([record], noise=noise), ask)]

    assert quoted(Noise(drop=1)) == []
    assert quoted(Noise(double=1)) == ["Bern", "Bern", "9", "9"]
    assert len(quoted(Noise(invent=1))) == 3
    moved = quoted(Noise(shift=1))
    assert moved != ["Bern", "9"]
    assert "9" in moved[1]


def test_a_better_prompt_gets_better_answers() -> None:
    noise = better_when_asked(0.8)
    plain = noise(asked(ASKED, "parts"))
    short = noise(asked(ASKED, "parts", task=INSTRUCTIONS[0]))
    shown = noise(asked(ASKED, "parts", task=INSTRUCTIONS[0], shown=4))
    assert plain.drop > short.drop > shown.drop
    assert by_prompt(asked(ASKED, "parts")) == "m Find mistakes."


def test_a_proposer_gets_instructions_and_some_ask_for_short_quotes(record: Record) -> None:
    script = GoldAnswers([record])
    proposed = {
        value(script, asked({"tip": str(number)}, "proposed_instruction")) for number in range(60)
    }
    assert proposed == set(INSTRUCTIONS)
    assert 0 < sum("short" in each for each in INSTRUCTIONS) < len(INSTRUCTIONS)


def test_what_nobody_knows_is_answered_in_form(record: Record) -> None:
    assert value(GoldAnswers([record]), asked({"answer": "another"}, "parts")) == []
