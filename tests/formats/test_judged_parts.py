"""Parts of answers that are judged, verdicts by annotators' names, and reasoning before answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from spanlab.formats import ReadOptions, dumps, read
from spanlab.schema import Annotation, AnnotatorKind, Citation, Item, Record, Span

ANSWER = "It was finished in 1901. It stands in Paris."
ONE, TWO = ANSWER[:24], ANSWER[25:]


def _read(folder: Path, *rows: dict[str, Any], **options: Any) -> tuple[list[Record], str]:
    """Return the records of rows, and what was remarked."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    remarks: list[str] = []
    return list(read(path, ReadOptions(on_warning=remarks.append, **options))), "\n".join(remarks)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"labels": {"faithfulness": "unfaithful", "fluency": "ok"}}, id="qualities"),
        pytest.param({"correct": {"A": True, "B": False}}, id="options"),
        pytest.param({"labels": {"ann": "good", "bob": "bad"}}, id="words that say nothing"),
        pytest.param({"votes": {"ann": 3, "bob": 1}}, id="numbers"),
        pytest.param({"metadata": {"ann": "hallucinated"}}, id="another name"),
        pytest.param({"sentences": [ONE, TWO]}, id="sentences that nobody judges"),
        pytest.param({"sentences": [{"text": ONE, "label": "claim"}]}, id="other classes"),
        pytest.param({"source_sentences": [{"text": "x", "label": "refuted"}]}, id="of a source"),
        pytest.param({"tokens": ["It", "was"], "ner_tags": ["O", "B-PER"]}, id="entities"),
        pytest.param({"tokens": ["It", "was"], "tags": ["O", "B-PER"]}, id="perhaps of entities"),
    ],
)
def test_what_judges_no_answer_makes_no_annotation(tmp_path: Path, said: dict[str, Any]) -> None:
    (record,), _ = _read(tmp_path, {"question": "When?", "answer": ANSWER, **said})
    assert record.annotations == ()
    assert record.item.meta == said


def test_people_may_say_that_no_part_is_judged(tmp_path: Path) -> None:
    row = {"answer": ANSWER, "sentences": [{"text": ONE, "label": "hallucinated"}]}
    (record,), _ = _read(tmp_path, row, hallucinated_if=("none",))
    assert record.annotations == ()


def test_a_part_that_is_not_in_the_answer_is_a_claim_without_a_place(tmp_path: Path) -> None:
    parts = [{"text": "It was finished late.", "label": "hallucinated"}]
    (record,), _ = _read(tmp_path, {"answer": ANSWER, "sentences": parts})
    (gold,) = record.annotations
    assert gold.spans == () and gold.hallucinated
    assert [(c.text, c.verdict) for c in gold.claims] == [(parts[0]["text"], "not-supported")]


def test_claims_of_which_one_annotator_said_less(tmp_path: Path) -> None:
    """Each has their own, and what differs between the rows is kept."""
    rows = [
        {"answer": ANSWER, "claim": ONE, "annotator": "ann", "verdict": "refuted", "at": 1},
        {"answer": ANSWER, "claim": TWO, "annotator": "ann", "verdict": "supported", "at": 2},
        {"answer": ANSWER, "claim": ONE, "annotator": "gpt-4o", "verdict": "nei", "at": 3},
    ]
    (record,), _ = _read(tmp_path, *rows)
    said = {a.annotator: [(c.text, c.verdict) for c in a.claims] for a in record.annotations}
    assert said == {
        "ann": [(ONE, "refuted"), (TWO, "supported")],
        "gpt-4o": [(ONE, "not-enough-evidence")],
    }
    assert [a.kind for a in record.annotations] == [AnnotatorKind.PERSON, AnnotatorKind.DETECTOR]
    assert record.item.meta == {"at": ["1", "2", "3"]}


THOUGHT = "<think>Was it 1889? 🙂</think>\n"


def test_what_was_worked_on_here_comes_back_as_it_was(tmp_path: Path) -> None:
    answer = THOUGHT + ONE
    item = Item(id="a", answer=answer)
    mark = Span.of(answer, len(answer) - 5, len(answer) - 1)
    record = Record(
        item=item, annotations=[Annotation(annotator="ann", kind="person", spans=[mark])]
    )
    (tmp_path / "ours.jsonl").write_bytes(dumps(record))
    assert list(read(tmp_path / "ours.jsonl")) == [record]


def test_all_places_of_an_answer_move_with_it(tmp_path: Path) -> None:
    whole = THOUGHT + ONE
    at = whole.index("1901")
    row = {
        "answer": whole,
        "question": "When?",
        "passages": ["It was 1889."],
        "spans": [{"start": at, "end": at + 4, "text": "1901", "label": "year"}],
        "citations": [{"start": at, "end": at + 4, "passages": [0]}],
    }
    (record,), remarks = _read(tmp_path, row)
    assert record.item.answer == ONE and record.item.meta["reasoning"] == THOUGHT
    (span,) = record.annotations[0].spans
    assert (span.start, span.end, span.text, span.label) == (19, 23, "1901", "year")
    if record.item.citations:
        assert record.item.citations == (Citation(start=19, end=23, passages=(0,)),)
    assert "is not judged, and kept in meta as 'reasoning'" in remarks


def test_reasoning_that_is_there_already_is_not_replaced(tmp_path: Path) -> None:
    (record,), _ = _read(tmp_path, {"answer": THOUGHT + ONE, "reasoning": "mine"})
    assert record.item.answer == ONE
    assert record.item.meta["reasoning"] == "mine"
