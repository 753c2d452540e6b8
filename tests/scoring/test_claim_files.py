"""Claims with labels: one a line, or AVeriTeC's file."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from full_record import full_record

from spanlab.base.errors import InputError
from spanlab.formats import ReadOptions, detect, read, write
from spanlab.formats.verdict_words import verdict_of
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Record, Verdict


def test_a_claim_becomes_an_answer_with_its_gold_verdict(tmp_path: Path) -> None:
    path = tmp_path / "claims.jsonl"
    lines = [
        {"claim": "Oslo is in Norway.", "label": True, "id": 7, "context": "Where is Oslo?"},
        {"claim": "Oslo is in Sweden.", "label": "REFUTES", "speaker": "somebody"},
        {"claim": "Oslo is nice.", "label": None},
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert detect(path) == "claims"
    true, false, open_ = read(path)
    assert (true.item.id, true.item.question, true.item.answer) == (
        "7",
        "Where is Oslo?",
        "Oslo is in Norway.",
    )
    (gold,) = true.annotations
    assert (gold.kind, gold.claims[0].verdict, gold.spans) == (AnnotatorKind.GOLD, "supported", ())
    (gold,) = false.annotations
    assert (gold.claims[0].verdict, [span.text for span in gold.spans]) == (
        "refuted",
        ["Oslo is in Sweden."],
    )
    assert (false.item.id, false.item.meta) == ("claim-2", {"speaker": "somebody"})
    assert (open_.item.id, open_.annotations) == ("claim-3", ())


def test_a_table_of_claims_is_read_as_its_lines_are(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    path.write_text('id,claim,label,speaker\n7,"Oslo is in\nNorway.",true,x\n,Oslo is.,,\n')
    assert detect(path) == "claims"
    judged, open_ = read(path)
    assert (judged.item.id, judged.item.answer, judged.item.meta) == (
        "7",
        "Oslo is in\nNorway.",
        {"speaker": "x"},
    )
    assert judged.annotations[0].claims[0].verdict == "supported"
    assert (open_.item.id, open_.annotations) == ("claim-4", ())
    options = ReadOptions(columns={"answer": "claim"}, own={"hallucinated_if": ("none",)})
    (mapped, _) = read(path, options)
    assert (mapped.item.meta["label"], mapped.annotations) == ("true", ())


def test_claims_are_written_as_a_table_that_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "claims.csv"
    assert write([full_record()], path, format="claims") == 1
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["annotator"], row["claim"], row["label"], row["rejected"]) for row in rows] == [
        ("ada", "Oslo is large.", "refuted", ""),
        ("ada", "Oslo is.", "", ""),
        ("offline", "Oslo is large.", "", ""),
        ("offline", "Oslo has 3 million people.", "refuted", ""),
    ]
    last = rows[-1]
    assert full_record().item.answer[int(last["start"]) : int(last["end"])] == last["words"]
    assert (last["item"], last["prob"], last["note"], last["error_stages"], last["evidence"]) == (
        "a-1",
        "0.9",
        "it has 700,000",
        "summary | answer",
        "700,000",
    )
    again = list(read(path))
    judged = [annotation for record in again for annotation in record.annotations]
    assert [(one.annotator, one.kind, one.claims[0].verdict) for one in judged] == [
        ("ada", "person", "refuted"),
        ("offline", "detector", "refuted"),
    ]


def test_a_refused_verdict_is_no_label(tmp_path: Path) -> None:
    refused = Claim(text="It rained.", verdict="refuted", suggested_by="veritrail")
    mine = Annotation(annotator="me", kind=AnnotatorKind.PERSON, rejected_claims=(refused,))
    path = tmp_path / "claims.csv"
    write([Record(item=Item(id="a", answer="x"), annotations=(mine,))], path, format="claims")
    (row,) = csv.DictReader(path.read_text().splitlines())
    assert (row["label"], row["rejected"], row["suggested_by"]) == ("", "refuted", "veritrail")


def test_averitec_keeps_what_is_known_of_a_claim_away_from_its_passages(tmp_path: Path) -> None:
    path = tmp_path / "dev.json"
    path.write_text(
        json.dumps(
            [
                {
                    "claim": "It rained.",
                    "label": "Conflicting Evidence/Cherrypicking",
                    "speaker": "A. Person",
                    "claim_date": "1-2-2020",
                    "questions": [{"question": "Did it rain?", "answers": [{"answer": "Yes"}]}],
                }
            ]
        )
    )
    (record,) = read(path)
    assert record.annotations[0].claims[0].verdict == "conflicting"
    assert record.annotations[0].spans == ()
    assert record.item.passages == ()
    assert record.item.meta["claim_date"] == "1-2-2020"


@pytest.mark.parametrize(
    ("written", "verdict"),
    [
        ("Supported", "supported"),
        ("NOT_SUPPORTED", "not-supported"),
        ("Not Enough Evidence", "not-enough-evidence"),
        (False, "refuted"),
        ("partially supported", "not-supported"),
    ],
)
def test_labels_of_other_datasets_are_read(written: str | bool, verdict: Verdict) -> None:
    assert verdict_of(written) == verdict


ANSWERED = {"prompt": "Where is Oslo?", "response": "Oslo is in Norway. It is a port.", "label": 0}
CLAIMS = ["Oslo is in Norway.", "Oslo is in Sweden.", "Oslo is a port."]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        pytest.param(
            ANSWERED
            | {
                "claims": [
                    {"claim": CLAIMS[0], "label": True},
                    {"claim": CLAIMS[1], "label": False},
                ]
            },
            [("claim-1-1", "supported"), ("claim-1-2", "refuted")],
            id="FacTool",
        ),
        pytest.param(
            ANSWERED | {"claims": CLAIMS, "claim_labels": [True, False, None]},
            [("claim-1-1", "supported"), ("claim-1-2", "refuted"), ("claim-1-3", None)],
            id="FactCheck-Bench",
        ),
        pytest.param(
            [{"uid": "ab-c", "claim": CLAIMS[0], "label": "NOT_SUPPORTED", "num_hops": 2}],
            [("ab-c", "not-supported")],
            id="HoVer",
        ),
        pytest.param(
            {"id": 7, "claim": CLAIMS[1], "cited_doc_ids": [4]}
            | {"evidence": {"4": [{"sentences": [1], "label": "CONTRADICT"}]}},
            [("7", "refuted")],
            id="SciFact",
        ),
        pytest.param(
            {"id": 8, "claim": CLAIMS[2], "evidence": {}, "cited_doc_ids": [4]},
            [("8", "not-enough-evidence")],
            id="SciFact-without-evidence",
        ),
        pytest.param(
            {
                "id": 9,
                "claim": CLAIMS[2],
                "label": "NOT ENOUGH INFO",
                "evidence": [{"content": []}],
            },
            [("9", "not-enough-evidence")],
            id="FEVEROUS",
        ),
    ],
)
def test_the_sets_own_files_are_read(
    lines: object, expected: list[tuple[str, Verdict | None]], tmp_path: Path
) -> None:
    path = tmp_path / "set.jsonl"
    path.write_text(json.dumps(lines))
    assert detect(path) == "claims"
    found = list(read(path))
    gold = [
        record.annotations[0].claims[0].verdict if record.annotations else None for record in found
    ]
    assert [(record.item.id, said) for record, said in zip(found, gold, strict=True)] == expected
    if "response" in str(lines):
        assert {record.item.question for record in found} == {"Where is Oslo?"}
        assert found[0].item.meta["response"] == ANSWERED["response"]


def test_an_unknown_label_is_refused_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "claims.jsonl"
    path.write_text('{"claim": "a", "label": true}\n{"claim": "b", "label": "maybe"}\n')
    with pytest.raises(InputError, match=r"claims\.jsonl, line 2, label: .*maybe"):
        list(read(path))


def test_the_public_sets_are_read_whole(shared: Path) -> None:
    found: Counter[str | None] = Counter()
    for name in ("claims_dev", "bingcheck_full_dev", "averitec_dev60"):
        for record in read(shared / "claims" / f"{name}.jsonl"):
            found[record.annotations[0].claims[0].verdict if record.annotations else None] += 1
    assert found == {
        "supported": 376 + 988 + 11,
        "refuted": 211 + 15 + 37,
        "conflicting": 8,
        "not-enough-evidence": 4 + 9,
        "not-supported": 350 + 71,  # not and partially supported: neither true nor false
    }


@pytest.mark.parametrize("column", ["label", "Label", "verdict", "attribution_label"])
def test_the_column_of_verdicts_is_told_to_be_labels(tmp_path: Path, column: str) -> None:
    """Also where the number of the verdict stands in another field."""
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps({"claim": "Oslo is in Sweden.", column: "0", "fold": "0"}))
    told: dict[str, str] = {}
    assert len(list(read(path, ReadOptions(on_fields=lambda _, fields: told.update(fields))))) == 1
    assert told == {"claim": "answer", column: "labels", "fold": "meta"}
