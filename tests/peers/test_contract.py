"""The contract of LettuceDetect's trained models, from their installed package."""

from __future__ import annotations

import json

from spanlab.schema import Item, Passage
from spanlab.systems.span_model.contract import read_contract

PASSAGE = Passage(text="The tower was built in 1889 in Paris.")
ITEM = Item(id="a", lang="en", question="When?", answer="In 1989 {answer}.", passages=(PASSAGE,))


def test_its_prompt_and_labels_are_read_and_filled() -> None:
    contract = read_contract("lettucedetect", ITEM, explain=True)
    system, user = (m["content"] for m in contract.messages(ITEM, [PASSAGE.text]))
    assert "hallucinated_spans" in system
    assert PASSAGE.text in user
    assert user.endswith(ITEM.answer)
    assert "{" not in user.replace(ITEM.answer, "")  # every place is filled
    schema = json.dumps(contract.reply_schema)
    for name in ("text", "category", "subcategory", "explanation", "contradiction"):
        assert f'"{name}"' in schema


def test_other_languages_and_answers_without_a_question_have_their_prompts() -> None:
    german = read_contract("lettucedetect", ITEM.model_copy(update={"lang": "de"}))
    summary = read_contract("lettucedetect", ITEM.model_copy(update={"question": ""}))
    english = read_contract("lettucedetect", ITEM)
    assert len({german.user, summary.user, english.user}) == 3
