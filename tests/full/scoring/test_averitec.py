"""AVeriTeC's own scores: by hand, and equal to the shared task's evaluator."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import run_here
from forks import run_forked
from small_nltk import write_nltk


def scored(tmp_path: Path, *arguments: str) -> str:
    """What `spanlab score` prints where a tower is a spire; NLTK reads one WordNet a process."""
    data = tmp_path / "nltk_data"
    words = os.environ | {"NLTK_DATA": str(data if data.exists() else write_nltk(data))}
    found = run_forked(["spanlab", "score", *arguments], words, tmp_path)
    assert found.returncode == 0, found.stderr
    return found.stdout


def test_words_and_their_synonyms_are_compared_by_meteor(tmp_path: Path) -> None:
    """All 7 tokens in one piece: 1 - .5 (1/7)³. 6 of 7 in two pieces: 6/7 (1 - .5 (2/6)³).

    The second prediction has one of two gold questions, so half of that.
    """
    questions = [
        {"question": question, "answers": [{"answer": "The tower."}]}
        for question in ("Which is old?", "Who paid?")
    ]
    gold = [
        {"claim_id": 1, "label": "Refuted", "questions": questions[:1]},
        {"claim_id": 2, "label": "Refuted", "questions": questions},
    ]
    said = [
        {"claim_id": number, "pred_label": "Refuted", "evidence": [pair]}
        for number, pair in (
            (1, {"question": "Which is old?", "answer": "The spire."}),
            (2, {"question": "Which is old?", "answer": "The bell."}),
        )
    ]
    for name, lines in (("gold.jsonl", gold), ("pred.jsonl", said)):
        (tmp_path / name).write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    said_of = scored(tmp_path, "pred.jsonl", "gold.jsonl", "--averitec", "--json")
    first, second = json.loads(said_of)["items"]
    assert first["evidence"] == pytest.approx(1 - 0.5 * (1 / 7) ** 3)
    assert second["evidence"] == pytest.approx(6 / 7 * (1 - 0.5 * (2 / 6) ** 3) / 2)


KIND = "gold_questions_other_answers"


def official(shared: Path, tmp_path: Path) -> Path:
    """The first claims of dev.json as it was published: one array, without numbers."""
    lines = (shared / "claims" / "averitec_dev60.jsonl").read_text(encoding="utf-8").splitlines()
    claims = [json.loads(line) for line in lines]
    for position, claim in enumerate(claims):
        assert claim.pop("claim_id") == position
    (tmp_path / "dev.json").write_text(json.dumps(claims, indent=4), encoding="utf-8")
    return tmp_path / "dev.json"


def predicted(shared: Path) -> list[dict[str, Any]]:
    """Recorded predictions of those claims."""
    path = shared / "claims" / "averitec_predictions.jsonl"
    lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line["kind"] == KIND]


def test_scores_equal_those_of_the_shared_tasks_evaluator(shared: Path, tmp_path: Path) -> None:
    """Also after a way through a dataset: numbers, labels and pairs come back as they were."""
    official(shared, tmp_path)
    (tmp_path / "pred.json").write_text(json.dumps(predicted(shared)), encoding="utf-8")
    words = {"NLTK_DATA": str(shared / "nltk_data"), "SPANLAB_HOME": str(tmp_path / "home")}

    def run(*arguments: str) -> str:
        found = run_here(list(arguments), tmp_path, os.environ | words)
        assert found.returncode == 0, found.stderr
        return str(found.stdout)

    run("import", "dev.json", "--dataset", "dev")
    run("import", "pred.json", "--dataset", "dev", "--as", "theirs")
    ours = ("export", "dev", "--annotator", "theirs", "--format", "averitec")
    run(*ours, "-o", "out.json")
    assert told(tmp_path / "out.json") == told(tmp_path / "pred.json")
    run(*ours, "--repeat-pairs", "-o", "ten.json")
    assert told(tmp_path / "ten.json") == [
        (*rest, (pairs * 10)[:10]) for *rest, pairs in told(tmp_path / "pred.json")
    ]
    report = json.loads(run("score", "out.json", "dev.json", "--averitec", "--json"))
    golden = json.loads((shared / "claims" / "averitec_golden.json").read_text(encoding="utf-8"))
    expected = golden["kinds"][KIND]
    assert (report["missing"], report["others"]) == ([], [])
    assert len(report["items"]) == len(expected["items"]) == 60
    for item, theirs in zip(report["items"], expected["items"], strict=True):
        assert item["id"] == str(theirs["id"])
        assert item["questions"] == pytest.approx(theirs["q_score"], abs=1e-9)
        assert item["evidence"] == pytest.approx(theirs["qa_score"], abs=1e-9)
        assert item["correct"] == theirs["correct"]
    summary = expected["summary"]
    assert report["macro_f1"] == pytest.approx(summary["veracity"]["macro"], abs=1e-9)
    for level, value in report["score"].items():
        assert value == pytest.approx(summary["averitec_score"][level], abs=1e-9)


def told(path: Path) -> list[tuple[Any, ...]]:
    """What the evaluator reads of predictions."""
    return [
        (
            line["claim_id"],
            line["claim"],
            line["pred_label"],
            [(pair["question"], pair["answer"]) for pair in line["evidence"]],
        )
        for line in json.loads(path.read_bytes())
    ]


def test_predictions_with_other_numbers_are_told(tmp_path: Path) -> None:
    """Claims counted from 1 would else be scored by their neighbours' labels."""
    claims = ("Oslo is in Sweden.", "Bern is a town.", "Rome is old.", "Pisa is flat.")
    gold = [{"claim": claim, "label": "Refuted"} for claim in claims]
    said = [
        {"claim_id": number, "claim": claim, "evidence": [], "pred_label": "Refuted"}
        for number, claim in enumerate(claims[:3], 1)
    ]
    (tmp_path / "dev.json").write_text(json.dumps(gold), encoding="utf-8")
    (tmp_path / "pred.json").write_text(json.dumps(said), encoding="utf-8")
    text = scored(tmp_path, "pred.json", "dev.json", "--averitec")
    assert "3 claims whose prediction quotes another claim than the gold file has" in text
    assert "under its claim_id: 1, 2, 3" in text


def test_pairs_are_repeated_in_turn_up_to_ten_on_request(tmp_path: Path) -> None:
    """Two gold questions are alike: a repeated pair answers both."""
    asked = {
        "question": "When was the tower of Aldmere built?",
        "answers": [{"answer": "In 1889."}],
    }
    gold = {"claim_id": 1, "label": "Refuted", "questions": [asked, asked]}
    pair = {"question": asked["question"], "answer": "In 1889."}
    said = {"claim_id": 1, "pred_label": "Refuted", "evidence": [pair]}
    for name, line in (("gold.jsonl", gold), ("pred.jsonl", said)):
        (tmp_path / name).write_text(json.dumps(line), encoding="utf-8")

    def evidence(*more: str) -> float:
        text = scored(tmp_path, "pred.jsonl", "gold.jsonl", "--averitec", "--json", *more)
        return float(json.loads(text)["items"][0]["evidence"])

    once = evidence()
    assert evidence("--repeat-pairs") == pytest.approx(2 * once)
    refused = run_here(
        ["score", "pred.jsonl", "gold.jsonl", "--repeat-pairs"], tmp_path, os.environ
    )
    assert refused.returncode == 2
