"""Whole-answer labels (hallucinated: yes or no): read, counted, scored and exported as such."""

from __future__ import annotations

import csv
import json
import os
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from spanlab.oplog.operations import AddSpan, SentOperation, SetStatus
from spanlab.schema import QueueQuery, Status
from spanlab.storage import Store
from spanlab.worklists import paging

Run = Callable[..., subprocess.CompletedProcess[str]]
_STORED = Path(__file__).parent / "stored" / "labelled-71537ae.tar.gz"
WRONG = (1, 4, 7)  # the items of ten whose answers are hallucinated


def answers(path: Path, column: str, wrong: object, right: object, **more: Any) -> Path:
    """Ten answers, three of them called hallucinated in a column."""
    with path.open("w", encoding="utf-8") as stream:
        for n in range(10):
            row = {
                "id": f"a{n}",
                "lang": "en",
                "question": f"Who paid, and when, in case {n}?",
                "answer": f"Ada paid {n} pounds in 190{n}.",
                "context": f"Ada paid {'many' if n in WRONG else n} pounds in 190{n}.",
                column: wrong if n in WRONG else right,
                **more,
            }
            stream.write(json.dumps(row) + "\n")
    return path


def imported(spanlab: Run, path: Path, *options: str, dataset: str = "ten") -> str:
    done = spanlab("import", path, "--dataset", dataset, *options)
    assert done.returncode == 0, done.stderr
    return done.stderr


def exported(spanlab: Run, dataset: str = "ten") -> list[dict[str, Any]]:
    done = spanlab("export", dataset, "--format", "spanlab")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def said(record: dict[str, Any], annotator: str = "gold") -> bool | None:
    """What an annotator of a record says of the whole answer."""
    (one,) = (a for a in record["annotations"] if a["annotator"] == annotator)
    assert not one["spans"] and "claims" not in one
    verdict: bool | None = one.get("answer_hallucinated")
    return verdict


def test_ten_answers_three_hallucinated_are_thirty_percent(tmp_path: Path, spanlab: Run) -> None:
    told = imported(spanlab, answers(tmp_path / "ten.jsonl", "hallucinated", True, False))
    assert "'hallucinated' judges whole answers: 3 hallucinated, 7 not" in told
    rates = spanlab("rates", "ten", "--by", "lang").stdout
    assert "30.0 % [10.8, 60.3]" in rates and "Claims" not in rates and "Share" not in rates
    assert "Nobody marked places" in rates
    spanlab("annotate", "ten", "--detector", "offline")
    scored = spanlab("score", "ten", "--annotator", "offline").stdout
    for name in ("Precision", "Recall", "F1", "Balanced accuracy", "AUROC", "Average precision"):
        assert name in scored
    for name in ("all hallucinated", "none hallucinated", "the majority"):
        assert name in scored
    assert "IoU of 10" not in scored and "macro" not in scored
    figures = json.loads(spanlab("score", "ten", "--annotator", "offline", "--json").stdout)
    assert (figures["answers"]["all"]["n"], figures["answers"]["all"]["hallucinated"]) == (10, 3)
    assert "macro" not in figures
    assert [said(record) for record in exported(spanlab)] == [n in WRONG for n in range(10)]


COLUMNS = [
    ("hallucinated", True, False),
    ("hallucination", "yes", "no"),
    ("label", "FAIL", "PASS"),
    ("label", "unfaithful", "faithful"),
    ("label", "hallucinated", "correct"),
    ("label", "fail", "ok"),
    ("is_correct", False, True),
    ("verdict", "not supported", "supported"),
    ("faithful", "no", "yes"),
    ("factuality", "non-factual", "factual"),
    ("grounded", "no", "yes"),
    ("human_label", "bad", "good"),
    ("accuracy", 0, 1),
    ("label", "contradiction", "entailment"),
    ("isHallucination", 1, 0),
    ("not_hallucinated", "no", "yes"),
    ("Is faithful?", "FALSE", "TRUE"),
    ("supported", "n", "y"),
    ("thumbs", "down", "up"),
    ("user_feedback", "👎", "👍"),
    ("feedback", -1, 1),
    ("hallucination", '["True"]', '["False"]'),  # scores of Langfuse's table
    ("correct", [0], [1]),
]


@pytest.mark.parametrize(
    ("column", "wrong", "right"),
    [pytest.param(*case, id=f"{case[0]}-{case[1]}") for case in COLUMNS],
)
def test_a_column_of_verdicts_is_read_in_its_polarity(
    tmp_path: Path, spanlab: Run, column: str, wrong: object, right: object
) -> None:
    told = imported(spanlab, answers(tmp_path / "ten.jsonl", column, wrong, right))
    assert f"{column!r} judges whole answers: 3 hallucinated, 7 not" in told
    assert f"{column} → labels" in told
    judges = {"human_label": "human", "thumbs": "thumbs", "feedback": "feedback"}
    judge = judges.get(column, "user" if column == "user_feedback" else "gold")
    assert [said(r, judge) for r in exported(spanlab)] == [n in WRONG for n in range(10)]
    assert "30.0 %" in spanlab("rates", "ten", "--by", "lang").stdout


@pytest.mark.parametrize(
    ("column", "values", "says"),
    [
        pytest.param("label", (0, 1), "0 and 1 may mean either", id="numbers without polarity"),
        pytest.param("label", ("fail", "so-so"), "so-so", id="some are not known"),
        pytest.param("hallucinated", ("yes", "maybe"), "maybe", id="some of a named one"),
    ],
)
def test_a_column_that_is_not_understood_is_refused_with_the_option_that_says_it(
    tmp_path: Path, spanlab: Run, column: str, values: tuple[object, object], says: str
) -> None:
    path = answers(tmp_path / "ten.jsonl", column, *values)
    refused = spanlab("import", path, "--dataset", "ten")
    assert refused.returncode and says in refused.stderr
    assert f"--hallucinated-if {column}=" in refused.stderr
    told = imported(spanlab, path, "--hallucinated-if", f"{column}={values[0]}")
    assert "3 hallucinated, 7 not" in told
    assert [said(record) for record in exported(spanlab)] == [n in WRONG for n in range(10)]
    assert "30.0 %" in spanlab("rates", "ten", "--by", "lang").stdout


def test_a_value_that_comes_late_refuses_its_line(tmp_path: Path, spanlab: Run) -> None:
    path = tmp_path / "many.jsonl"
    rows = [{"answer": f"It is {n}.", "label": "pass"} for n in range(80)]
    rows[70]["label"] = "perhaps"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    refused = spanlab("import", path, "--dataset", "ten")
    assert refused.returncode
    assert "line 71" in refused.stderr and "perhaps" in refused.stderr


def test_numbers_need_a_threshold_and_are_kept(tmp_path: Path, spanlab: Run) -> None:
    path = answers(tmp_path / "ten.jsonl", "faithfulness", 0.25, 0.75)
    told = imported(spanlab, path)
    assert "--hallucinated-if 'faithfulness<NUMBER'" in told
    assert not any(record.get("annotations") for record in exported(spanlab))
    imported(spanlab, path, "--hallucinated-if", "faithfulness<0.5", dataset="judged")
    records = exported(spanlab, "judged")
    found = [said(record, "faithfulness") for record in records]
    assert found == [n in WRONG for n in range(10)]
    assert records[1]["meta"]["faithfulness"] == 0.25


def test_columns_of_several_judges_are_several_annotators(tmp_path: Path, spanlab: Run) -> None:
    path = answers(
        tmp_path / "ten.jsonl", "hallucinated_anna", "yes", "no", gpt4_hallucinated=1, ben=3
    )
    imported(spanlab, path)
    first = exported(spanlab)[0]
    assert {(a["annotator"], a["kind"]) for a in first["annotations"]} == {
        ("anna", "person"),
        ("gpt4", "detector"),
    }
    assert (said(first, "anna"), said(first, "gpt4")) == (False, True)


def test_a_verdict_that_contradicts_marks_is_told_and_both_are_kept(
    tmp_path: Path, spanlab: Run
) -> None:
    path = tmp_path / "both.jsonl"
    rows = [
        {"id": "a", "answer": "It is 1904.", "labels": [[6, 10]], "hallucinated": False},
        {"id": "b", "answer": "It is 1904.", "labels": [[6, 10]], "hallucinated": True},
        {"id": "c", "answer": "It is 1904.", "labels": [], "hallucinated": True},
        {"id": "d", "answer": "It is 1904.", "labels": [], "hallucinated": False},
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    told = imported(spanlab, path)
    assert "line 1" in told and "calls the answer right and marks a part" in told
    kept = [a for record in exported(spanlab) for a in record["annotations"]]
    assert [(bool(a["spans"]), a.get("answer_hallucinated")) for a in kept] == [
        (True, False),
        (True, True),
        (False, True),
        (False, None),  # places were looked for, and there are none
    ]
    assert "75.0 %" in spanlab("rates", "ten", "--by", "lang").stdout


def test_verdicts_alone_are_measured_and_agreed_on(tmp_path: Path, spanlab: Run) -> None:
    """Thumbs are a person's reviews; a judge's column is a detector's verdict on each answer."""
    path = answers(tmp_path / "ten.jsonl", "hallucinated_anna", "yes", "no", gpt4_hallucinated="no")
    imported(spanlab, path)
    done = spanlab("measure", "ten", "--annotator", "gpt4", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["groups"][0]["finite"]["mean"] == pytest.approx(0.3)
    agreed = spanlab("agreement", "ten", "--json")
    groups = json.loads(agreed.stdout)["alpha"]["people and detectors"]
    assert groups["answers"]["n"] == 10 and groups["characters"]["n"] == 0


def test_a_vote_on_verdicts_is_the_share_that_calls_the_answer_hallucinated(
    tmp_path: Path, spanlab: Run
) -> None:
    path = answers(
        *(tmp_path / "ten.jsonl", "hallucinated_anna", "yes", "no"),
        hallucinated_ben="yes",
        hallucinated_cem="no",
    )
    imported(spanlab, path)
    spanlab("vote", "ten", "--annotators", "anna,ben,cem")
    votes = [a for r in exported(spanlab) for a in r["annotations"] if a["kind"] == "vote"]
    assert [vote["answer_hallucinated"] for vote in votes] == [n in WRONG for n in range(10)]
    assert [round(vote["answer_prob"], 3) for vote in votes] == [
        0.667 if n in WRONG else 0.333 for n in range(10)
    ]


@pytest.mark.parametrize("ending", ["csv", "parquet", "json"])
def test_verdicts_come_back_from_other_formats(tmp_path: Path, spanlab: Run, ending: str) -> None:
    imported(spanlab, answers(tmp_path / "ten.jsonl", "hallucinated", True, False))
    format = "labelstudio" if ending == "json" else ending
    done = spanlab("export", "ten", "--format", format, "-o", f"out.{ending}")
    assert done.returncode == 0, done.stderr
    imported(spanlab, tmp_path / f"out.{ending}", dataset="back")
    assert [said(record) for record in exported(spanlab, "back")] == [n in WRONG for n in range(10)]


def test_mushroom_leaves_out_what_it_cannot_carry(tmp_path: Path, spanlab: Run) -> None:
    imported(spanlab, answers(tmp_path / "ten.jsonl", "hallucinated", True, False))
    done = spanlab("export", "ten", "--format", "mushroom", "--annotator", "gold", "-o", "m.jsonl")
    assert "left out 3 items" in done.stderr and "without a marked place" in done.stderr
    assert len((tmp_path / "m.jsonl").read_text().splitlines()) == 7


def test_claims_of_a_file_that_were_made_of_labels_are_told_and_converted(
    tmp_path: Path, spanlab: Run
) -> None:
    path = tmp_path / "of_1_0.jsonl"
    with path.open("w") as stream:
        for n in range(4):
            answer = f"It is {n}."
            claim = {"text": answer, "verdict": "not-supported"}
            gold: dict[str, Any] = {"annotator": "gold", "kind": "gold", "spans": []}
            gold |= {"claims": [claim]} if n == 1 else {}
            row = {"id": f"a{n}", "lang": "en", "question": "", "answer": answer}
            stream.write(json.dumps(row | {"annotations": [gold]}) + "\n")
    assert "spanlab annotators verdicts DATASET" in imported(spanlab, path)
    assert "spanlab annotators verdicts ten gold" in spanlab("datasets", "ten").stderr
    done = spanlab("annotators", "verdicts", "ten", "gold")
    assert "gold calls 1 answer of ten hallucinated, 3 not" in done.stderr
    assert [said(record) for record in exported(spanlab)] == [False, True, False, False]
    assert "verdicts" not in spanlab("datasets", "ten").stderr
    assert "25.0 %" in spanlab("rates", "ten", "--by", "lang").stdout


def test_a_database_with_such_claims_says_so_and_becomes_one_of_verdicts(
    tmp_path: Path, spanlab: Run
) -> None:
    """The commit before 71537ae, which calls itself 1.0.0, imported ten answers, three of them
    ``"hallucinated": true``: it counted three claims, and no hallucinated answer.
    """
    subprocess.run(["tar", "xf", _STORED, "-C", tmp_path], check=True)
    for listed in (spanlab("datasets"), spanlab("datasets", "labelled")):
        assert "`spanlab annotators verdicts labelled gold`" in listed.stderr
    assert "0.0 %" in spanlab("rates", "labelled", "--by", "lang").stdout
    done = spanlab("annotators", "verdicts", "labelled", "gold")
    assert (done.returncode, "3 answers of labelled hallucinated, 7 not" in done.stderr) == (
        0,
        True,
    )
    assert [said(r) for r in exported(spanlab, "labelled")] == [n in WRONG for n in range(10)]
    assert "30.0 % [10.8, 60.3]" in spanlab("rates", "labelled", "--by", "lang").stdout
    assert "verdicts" not in spanlab("datasets").stderr


def test_a_gate_holds_verdicts_alone_to_a_rate(tmp_path: Path, spanlab: Run) -> None:
    """No answer of 200 has a marked place; 60 are hallucinated by the thumbs of a person."""
    imported(
        spanlab,
        many(tmp_path / "many.csv", "hallucinated_anna", gpt4_hallucinated="no"),
        dataset="many",
    )
    planned = spanlab("measure", "many", "--annotator", "gpt4")
    assert planned.returncode == 0, planned.stderr
    high = spanlab("gate", "many", "--max-rate", ".2")
    assert high.returncode == 1 and "Future answers: 30.0 %" in high.stdout, high.stdout
    assert spanlab("gate", "many", "--max-rate", ".4", "--require-proof").returncode == 0


def test_a_certificate_of_verdicts_alone_has_no_figures_of_places(
    tmp_path: Path, spanlab: Run
) -> None:
    path = answers(
        *(tmp_path / "ten.jsonl", "hallucinated_anna", "yes", "no"),
        hallucinated_ben="no",
        gpt4_hallucinated="no",
    )
    imported(spanlab, path)
    spanlab("measure", "ten", "--annotator", "gpt4")
    for ending in ("html", "json"):
        done = spanlab("measure", "ten", "--certificate", f"certificate.{ending}")
        assert done.returncode == 0, done.stderr
    page = (tmp_path / "certificate.html").read_text()
    assert "70.0 % of answers alike<" in page
    content = json.loads((tmp_path / "certificate.json").read_text())
    assert "agreement" in json.dumps(content)
    assert spanlab("measure", "ten", "--check", "certificate.json").returncode == 0


def many(path: Path, column: str = "thumbs", **more: Any) -> Path:
    """200 answers with thumbs, or yes and no: 60 of them, with four-digit sums, are wrong."""
    with path.open("w", encoding="utf-8", newline="") as stream:
        table = csv.writer(stream)
        table.writerow(("id", "lang", "question", "answer", "context", column, *more))
        for n in range(200):
            is_wrong = n % 10 in {1, 4, 7}
            answer = f"Ada paid {9000 + n if is_wrong else n} pounds in London."
            context = f"In London, Ada paid {n} pounds."
            words = ("down", "up") if column == "thumbs" else ("yes", "no")
            verdict = words[0 if is_wrong else 1]
            row = (f"a{n:03}", "en", f"What of case {n}?", answer, context, verdict)
            table.writerow((*row, *more.values()))
    return path


def test_a_walk_from_thumbs_to_places(tmp_path: Path, spanlab: Run) -> None:
    """Import, detect, score, measure, mark where 30 of the answers are wrong, export."""
    told = imported(spanlab, many(tmp_path / "many.csv"), dataset="many")
    assert "'thumbs' judges whole answers: 60 hallucinated, 140 not" in told
    assert spanlab("annotate", "many", "--detector", "offline").returncode == 0
    by_thumbs = ("score", "many", "--annotator", "offline", "--gold", "thumbs")
    scored = spanlab(*by_thumbs, "--json")
    figures = json.loads(scored.stdout)
    assert (figures["answers"]["all"]["n"], figures["answers"]["all"]["hallucinated"]) == (200, 60)
    assert figures["answers"]["all"]["auroc"]["mean"] > 0.9
    assert "macro" not in figures
    measured = spanlab("measure", "many", "--annotator", "offline", "--json")
    assert json.loads(measured.stdout)["groups"][0]["finite"]["mean"] == pytest.approx(0.3)

    unplaced = QueueQuery(reviewer="anna", unplaced=True, limit=100)
    with mock.patch.dict(os.environ, SPANLAB_HOME=str(tmp_path / "home")), Store.open() as store:
        rows = paging.page(store, "many", unplaced).rows
        assert [row.item_id for row in rows] == [f"a{n:03}" for n in range(200) if n % 10 in WRONG]
        for row in rows[:30]:
            answer = store.record("many", row.item_id).item.answer
            start = answer.index("9")
            marked = AddSpan(span="s", start=start, end=start + 4)
            sent = [
                SentOperation(row.item_id, 1, 0, marked),
                SentOperation(row.item_id, 2, 1, SetStatus(status=Status.DONE)),
            ]
            assert not store.apply("many", row.item_id, "anna", sent).refused
        assert len(paging.page(store, "many", unplaced).rows) == 30
    by_anna = spanlab(*by_thumbs[:-1], "anna", "--json")
    assert json.loads(by_anna.stdout)["macro"]["n"] == 30
    done = spanlab("export", "many", "--format", "csv", "-o", "many.out.csv")
    assert done.returncode == 0, done.stderr
    with (tmp_path / "many.out.csv").open(encoding="utf-8", newline="") as stream:
        lines = list(csv.DictReader(stream))
    counts = Counter((line["annotator"], line["hallucinated"]) for line in lines)
    assert counts["anna", "true"] == 30
    assert (counts["thumbs", "true"], counts["thumbs", "false"]) == (60, 140)
