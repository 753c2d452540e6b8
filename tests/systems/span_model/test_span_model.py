"""``span-model``: what a trained model names becomes typed spans, by its contract."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from detector_cases import ANSWER, TOWER, Make, detect

from spanlab.schema import QuoteStep, Status
from spanlab.testing import ModelServer, in_turn, say

# In the form of LettuceDetect 0.2.3's file, with words of our own: `make test-peers` reads the
# real one.
_PROMPTS = """
CATEGORY_DESCRIPTIONS = {"contradiction": "against the context", "unsupported_addition": "new"}
SUBCATEGORY_DESCRIPTIONS = {"temporal": "a time", "claim": "a statement"}


def build_system_prompt(explain=False, categories=None, subcategories=None):
    return "Name the wrong spans." + (" Say why." if explain else "")


def build_user_message(context, answer):
    return f"{context}\\n\\nAnswer: {answer}"
"""
_QUESTION = "Asked: ${question}\n${num_passages} texts:\n${context}\n"
YEAR = {"text": "1989", "category": "contradiction", "subcategory": "temporal"}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / "site" / "lettucedetect" / "prompts"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("raise RuntimeError('it would load PyTorch')")
    (folder / "generative.py").write_text(_PROMPTS)
    (folder / "qa_prompt_en.txt").write_text(_QUESTION)
    (folder / "summary_prompt_en.txt").write_text("Of:\n${text}")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    yield folder


def _says(*spans: object, name: str = "hallucinated_spans") -> str:
    return json.dumps({name: spans})


@pytest.mark.usefixtures("package")
def test_the_packages_prompt_is_sent_and_its_typed_spans_are_marked(
    model_server: ModelServer, make: Make
) -> None:
    explained = {**YEAR, "explanation": "it was 1889"}
    model_server.script(lambda ask: say(f"```json\n{_says(explained)}\n```"))
    said = detect(make("span-model", options={"explain": True})).annotation
    (span,) = said.spans or pytest.fail(str(said.note))
    assert (span.text, span.label, span.note, span.prob) == (
        "1989",
        "contradiction",
        "it was 1889",
        1.0,
    )
    assert ANSWER[span.start : span.end] == "1989"
    assert span.evidence
    (request,) = model_server.requests
    system, user = (message["content"] for message in request.body["messages"])
    assert system == "Name the wrong spans. Say why."
    passages = "\n".join(f"passage {n}: {p.text}" for n, p in enumerate(TOWER.passages, 1))
    assert user == (
        f"Asked: {TOWER.question}\n{len(TOWER.passages)} texts:\n{passages}\n\n\nAnswer: {ANSWER}"
    )
    schema = request.body["response_format"]["json_schema"]
    item: Any = schema["schema"]["properties"]["hallucinated_spans"]["items"]
    assert item["properties"]["category"]["enum"] == ["contradiction", "unsupported_addition"]
    assert "explanation" in item["required"]
    assert request.body["temperature"] == 0.0


@pytest.mark.usefixtures("package")
def test_an_empty_list_is_clean_and_anything_else_without_quotes_has_failed(
    model_server: ModelServer, make: Make
) -> None:
    elsewhere = _says({**YEAR, "text": "on the Moon"})
    model_server.script(
        in_turn(
            *map(
                say, (_says(), "Nothing is wrong.", elsewhere, _says({"category": "x"}), "See [].")
            ),
        )
    )
    detector = make("span-model")
    items = (TOWER.model_copy(update={"question": f"{n}?"}) for n in range(5))  # none is cached
    clean, *failed = (detect(detector, item).annotation for item in items)
    assert (clean.status, clean.spans) == (Status.DONE, ())
    assert [said.status for said in failed] == [Status.FAILED] * 4
    assert "not in the form asked for" in str(failed[0].note)
    assert "none is in the answer" in str(failed[1].note)


def test_a_contract_from_a_file_has_names_and_labels_of_its_own(
    model_server: ModelServer, make: Make, tmp_path: Path
) -> None:
    contract = tmp_path / "contract.toml"
    contract.write_text(
        'user = "{question}|{passages}|{answer}"\nspans = "errors"\ntext = "quote"\n'
        'label = "kind"\npassage = "[{number}] "\n[labels]\nyear = "wrong number"\n'
    )
    model_server.script(
        in_turn(
            say(_says({"quote": "1989", "kind": "year"}, name="errors")),
            say(_says("1989", name="errors")),
        )
    )
    detector = make("span-model", options={"contract": str(contract), "prob": 0.8})
    typed = detect(detector).annotation
    assert [(span.text, span.label, span.prob) for span in typed.spans] == [
        ("1989", "wrong number", 0.8)
    ]
    assert isinstance(typed.trace[0], QuoteStep)
    plain = detect(detector, TOWER.model_copy(update={"question": "Another?"})).annotation
    assert [(span.text, span.label) for span in plain.spans] == [("1989", None)]
    request = model_server.requests[0].body
    assert [message["role"] for message in request["messages"]] == ["user"]
    assert f"[1] {TOWER.passages[0].text}" in request["messages"][0]["content"]
    assert "response_format" not in request


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "is not valid json"),
        ('{"system": "x"}', "user: it is missing"),
        ('{"user": "x", "span": "y"}', "span: there is no such field"),
    ],
    ids=["no JSON", "no user", "unknown field"],
)
def test_a_wrong_contract_is_told_by_file_and_field(
    make: Make, tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "contract.json"
    path.write_text(text)
    note = detect(make("span-model", options={"contract": str(path)})).annotation.note
    assert str(path) in str(note)
    assert told.split(":", maxsplit=1)[0] in str(note)


def test_without_the_package_the_way_to_a_contract_is_told(make: Make) -> None:
    note = detect(make("span-model")).annotation.note
    assert "pip install lettucedetect, or name a file" in str(note)
