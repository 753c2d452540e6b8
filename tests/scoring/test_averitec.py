"""AVeriTeC's own scores: by hand, and equal to the shared task's evaluator."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from commands import run_here

from spanlab.formats import read, write
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    PairStep,
    Passage,
    Record,
    Verdict,
)
from spanlab.scoring.answers import GoldClaim, PredictedClaim, averitec

GOLD = GoldClaim(label="Refuted", questions=("a", "b"), answered=("a 1", "b 2", "b 3"))


def same(said: str, gold: str) -> float:
    """1 for the same text, a half for the same beginning."""
    return 1.0 if said == gold else 0.5 if said[0] == gold[0] else 0.0


@pytest.mark.parametrize(
    ("pairs", "questions", "evidence"),
    [
        pytest.param((), 0.0, 0.0, id="nothing"),
        pytest.param((("a", "1"),), 1 / 2, 1 / 3, id="one-of-three"),
        pytest.param((("b", "x"), ("a", "x")), 1.0, (0.5 + 0.5) / 3, id="in-any-order"),
        pytest.param((("b", "2"), ("b", "2")), 1 / 2, 1.5 / 3, id="each-gold-text-once"),
        pytest.param((("x", "1"),) * 10 + (("a", "1"),), 0.0, 0.0, id="the-eleventh-is-not-read"),
    ],
)
def test_pairs_are_assigned_to_gold_ones(
    pairs: tuple[tuple[str, str], ...], questions: float, evidence: float
) -> None:
    (item,) = averitec([(PredictedClaim(id="1", label="Refuted", pairs=pairs), GOLD)], same).items
    assert item.questions == pytest.approx(questions)
    assert item.evidence == pytest.approx(evidence)


def test_a_claim_scores_where_label_and_evidence_are_right_and_above_the_level() -> None:
    quarter = GOLD.model_copy(update={"answered": ("a 1", "x", "y", "z")})  # matches by exactly .25
    said = PredictedClaim(id="1", label="Refuted", pairs=(("a", "1"),))
    wrong = said.model_copy(update={"label": "Supported"})
    report = averitec([(said, quarter), (wrong, quarter)], same)
    assert report.score == {0.2: 0.5, 0.25: 0.0, 0.3: 0.0}
    assert report.accuracy == 0.5
    assert report.f1["Refuted"] == pytest.approx(2 / 3)
    assert report.macro_f1 == pytest.approx(2 / 3 / 4)


def test_pages_of_predictions_become_passages_and_come_back(tmp_path: Path) -> None:
    pairs = [
        {"question": "Q?", "answer": "A.", "url": "https://a.example", "scraped_text": "A page."},
        {"question": "R?", "answer": "B.", "url": "https://b.example", "scraped_text": ""},
    ]
    claim, label = "Oslo is in Sweden.", "Conflicting Evidence/Cherrypicking"
    line = {"claim_id": "0", "claim": claim, "evidence": pairs, "pred_label": label}
    (tmp_path / "gold.json").write_text(json.dumps([{"claim": claim, "label": "Refuted"}]))
    (tmp_path / "pred.json").write_text(json.dumps([line]))
    home = os.environ | {"SPANLAB_HOME": str(tmp_path / "home")}
    for arguments in (
        "import gold.json --dataset d",
        "import pred.json --dataset d --as theirs",
        "export d -o d.jsonl",
        "export d --annotator theirs --format averitec -o out.json",
    ):
        done = run_here(arguments.split(), tmp_path, home)
        assert done.returncode == 0, done.stderr
    (record,) = read(tmp_path / "d.jsonl")
    assert record.item.passages == (Passage(text="A page.", url="https://a.example"),)
    assert [each.retriever for each in record.item.retrievals] == ["theirs"]
    theirs = record.by("theirs")
    assert theirs is not None
    assert [each.verdict for each in theirs.claims] == ["conflicting"]
    assert [step.remark for step in theirs.trace if isinstance(step, PairStep)] == [
        None,
        "source: https://b.example",
    ]
    (again,) = json.loads((tmp_path / "out.json").read_bytes())
    assert again["evidence"][0] == pairs[0]
    refused = run_here(["export", "d", "--repeat-pairs"], tmp_path, home)
    assert refused.returncode == 2
    assert "--repeat-pairs needs --format averitec" in refused.stderr


WRONG: dict[str, tuple[Any, str]] = {
    "a label": ({"claim_id": 1, "pred_label": "True", "evidence": []}, "found 'True'"),
    "an id twice": (
        {"claim_id": 0, "pred_label": "Refuted"},
        "2, claim_id: a claim with this id already",
    ),
    "no label": ({"claim_id": 1}, "pred_label: "),
}


@pytest.mark.parametrize(("line", "words"), WRONG.values(), ids=WRONG)
def test_a_wrong_line_is_named(line: Any, words: str, tmp_path: Path) -> None:
    first = {"claim_id": 0, "pred_label": "Refuted"}
    path = tmp_path / "pred.jsonl"
    path.write_text(f"{json.dumps(first)}\n{json.dumps(line)}\n", encoding="utf-8")
    gold = [
        {"claim_id": number, "claim": "Oslo is large.", "label": "Refuted"} for number in (0, 1)
    ]
    (tmp_path / "gold.jsonl").write_text("\n".join(map(json.dumps, gold)), encoding="utf-8")
    found = run_here(["score", path.name, "gold.jsonl", "--averitec"], tmp_path, os.environ)
    assert found.returncode == 1
    assert "pred.jsonl, line 2" in found.stderr
    assert words in found.stderr


def judged(*verdicts: Verdict | None) -> Record:
    steps = (
        PairStep(question="Q?", answer="A.", searched="c", passages=(1,), claim=0, round=1),
        PairStep(question="R?", answer="Nothing was found.", searched="c", claim=0, round=2),
    )
    passages = (Passage(text="x"), Passage(text="The page.", url="https://a.example"))
    item = Item(id="claim-7", answer="The claim.", passages=passages)
    claims = tuple(Claim(text="The claim.", verdict=verdict) for verdict in verdicts)
    annotation = Annotation(
        annotator="papelo", kind=AnnotatorKind.DETECTOR, claims=claims, trace=steps
    )
    return Record(item=item, annotations=(annotation,))


@pytest.mark.parametrize(
    ("verdicts", "label"),
    [
        pytest.param(("supported",), "Supported", id="supported"),
        pytest.param(("supported", "refuted"), "Refuted", id="the-worst-counts"),
        pytest.param(("not-supported",), "Refuted", id="two-classes"),
        pytest.param(("supported", None), "Not Enough Evidence", id="not-judged"),
        pytest.param((), "Not Enough Evidence", id="no-claims"),
    ],
)
def test_a_pursuit_goes_out_as_the_shared_task_wants_it(
    verdicts: tuple[Verdict | None, ...], label: str
) -> None:
    stream = io.BytesIO()
    write([judged(*verdicts)], stream, format="averitec")
    assert json.loads(stream.getvalue()) == [
        {
            "claim_id": 6,  # the seventh line of a file without numbers
            "claim": "The claim.",
            "evidence": [
                {
                    "question": "Q?",
                    "answer": "A.",
                    "url": "https://a.example",
                    "scraped_text": "The page.",
                },
                {"question": "R?", "answer": "Nothing was found.", "url": "", "scraped_text": ""},
            ],
            "pred_label": label,
        }
    ]


def test_the_ids_of_the_shared_task_come_back(tmp_path: Path) -> None:
    given: list[dict[str, object]] = [
        {"claim_id": 0},
        {"claim_id": "x-1"},
        {"claim_id": 3, "id": "a"},
        {"id": "007"},
    ]
    lines = (json.dumps({"claim": "Oslo is large.", "label": True} | each) for each in given)
    (tmp_path / "claims.jsonl").write_text("\n".join(lines))
    write(read(tmp_path / "claims.jsonl"), tmp_path / "p.json", format="averitec")
    written = json.loads((tmp_path / "p.json").read_bytes())
    assert [line["claim_id"] for line in written] == [0, "x-1", 3, "007"]
