"""How well answers cite: ALCE's recall and precision by hand, in rates, report and gate."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run_here

from spanlab.base.errors import UsageError
from spanlab.measure.citation_gate import check_citations
from spanlab.measure.citation_rates import CitationShares, citation_shares
from spanlab.measure.gating import GateSubject
from spanlab.measure.rate_tally import rates
from spanlab.schema import Annotation, AnnotatorKind, Claim, Evidence, Item, Passage, Record, Span
from spanlab.storage import Store

PASSAGES = tuple(Passage(text=text) for text in ("One thing.", "Two things.", "Three things."))


def item_of(answer: str, name: str = "a") -> Item:
    return Item(id=name, lang="en", answer=answer, passages=PASSAGES)


def marked(answer: str, *texts: tuple[str, str]) -> Annotation:
    spans = [
        Span.of(answer, (at := answer.index(text)), at + len(text), label=label)
        for text, label in texts
    ]
    return Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=spans)


FOUR = "It was built in 1889 [1]. It is tall [2][3]. It is red [7]. Nobody knows any more."
HAND = {
    # Three of four sentences cite; the third cites nothing that is there.
    "unmarked": (FOUR, (), (2 / 4, 3 / 4, 3 / 4)),
    "one wrong": (FOUR, (("1889", "not in the cited source"),), (1 / 4, 2 / 4, 3 / 4)),
    "an uncited sentence": (FOUR, (("Nobody", "other"),), (2 / 4, 3 / 4, 3 / 4)),
    "no citation": ("It was built then.", (), (0, 0, 0)),
}


@pytest.mark.parametrize(("answer", "marks", "expected"), HAND.values(), ids=HAND)
def test_recall_precision_and_share_cited_by_hand(
    answer: str, marks: tuple[tuple[str, str], ...], expected: tuple[float, float, float]
) -> None:
    shares = citation_shares(item_of(answer), [marked(answer, *marks)])

    assert shares is not None
    assert shares[:3] == pytest.approx(expected)
    assert shares[3:] == (None,) * 4


def test_a_claim_says_which_of_its_passages_support_it() -> None:
    answer = "It is tall [2][3]."
    quote = Evidence(passage=1, start=0, end=3, text="Two", stance="supports")
    claim = Claim(
        text="It is tall", source=Span.of(answer, 0, 10), verdict="supported", evidence=(quote,)
    )
    said = marked(answer).model_copy(update={"claims": (claim,)})
    shares = citation_shares(item_of(answer), [said])

    assert shares == CitationShares(1.0, 0.5, 1.0)


def test_quotations_by_what_is_wrong_with_them() -> None:
    answer = "“One of the quotations”, “two of the quotations” and “three of the quotations” [1]."
    said = marked(
        answer,
        ("One of the quotations", "fabricated quotation"),
        ("two", "changed quotation"),
    )
    shares = citation_shares(item_of(answer), [said])

    assert shares is not None
    assert shares[3:] == pytest.approx((1 / 3, 0, 1 / 3, 1 / 3))


@pytest.mark.parametrize(
    ("label", "expected"),
    [("number", [0, None, None, None]), ("changed quotation", [0, 0, 1, 0])],
)
def test_marks_without_a_kind_of_quotation_are_no_quotations_without_faults(
    store: Store, label: str, expected: list[float | None]
) -> None:
    answer = "“Two of the quotations” [1]."
    said = Record(item=item_of(answer), annotations=(marked(answer, ("Two", label)),))
    store.import_records("d", [said])
    figures = rates(store, "d", "lang").figures()["groups"][0]["citations"]
    of = [figures[name] for name in ("valid", "misattributed", "changed", "fabricated")]

    assert [each and each["mean"] for each in of] == expected


def test_what_nobody_judged_is_no_support(tmp_path: Path) -> None:
    """English answers that cite Japanese passages: the detector ``citations`` judges nothing."""
    answer = "The tower was built in 1889 and it is the highest one of all in the city [1]."
    passage = "この橋は一九三二年に開通しました。建設には八年かかったと市長は言いました。"
    item = {"answer": answer, "passages": [passage], "lang": "en"}
    home = {"SPANLAB_HOME": str(tmp_path / "home")}
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps({**item, "id": f"{n}"}) + "\n" for n in range(20)))
    run_here(["import", str(file), "--dataset", "d"], tmp_path, home)
    run_here(["annotate", "d", "--detector", "citations"], tmp_path, home)
    floor = ["--min-citation-recall", ".8"]
    gate = run_here(["gate", "d", "--annotator", "citations", *floor], tmp_path, home)

    assert gate.returncode == 2, gate.stdout
    assert "citations" in gate.stderr


def test_without_passages_or_places_there_is_nothing_to_say() -> None:
    bare = Item(id="a", answer=FOUR)
    verdict = Annotation(annotator="g", kind=AnnotatorKind.GOLD, answer_hallucinated=True)

    assert citation_shares(bare, [marked(FOUR)]) is None
    assert citation_shares(item_of(FOUR), [verdict]) is None


def filled(store: Store, wrong: int, answer: str = "It was built in 1889 [1].") -> None:
    records = []
    for at in range(40):  # each with documents of its own
        said = f"{at} {answer}"
        item = item_of(said, f"a{at}")
        passages = [Passage(text=f"{passage.text} {at}") for passage in PASSAGES]
        marks = [("1889", "not in the cited source")] * (at < wrong)
        records.append(
            Record(
                item=item.model_copy(update={"passages": tuple(passages)}),
                annotations=[marked(said, *marks)],
            )
        )
    store.import_records("d", records)


def test_rates_have_a_table_of_citations_where_something_is_cited(store: Store) -> None:
    filled(store, 10)
    report = rates(store, "d", "lang")

    (_, table) = report.tables()
    assert [column.key for column in table.columns] == [
        *("value", "items", "recall", "precision", "cited")
    ]
    (group,) = report.groups
    assert group.citations is not None
    assert group.citations.recall is not None
    assert group.citations.recall.mean == 0.75
    assert report.figures()["groups"][0]["citations"]["recall"]["mean"] == 0.75


def test_rates_say_nothing_of_citations_where_nothing_is_cited(store: Store) -> None:
    filled(store, 0, "It was built in 1889.")

    assert len(rates(store, "d", "lang").tables()) == 1


def test_the_gate_fails_if_citations_are_shown_to_be_too_bad(store: Store) -> None:
    filled(store, 20)

    passed = check_citations(store, GateSubject("d"), {"recall": 0.5, "precision": 0.4})
    failed = check_citations(store, GateSubject("d"), {"recall": 0.9})
    assert (passed.passed, failed.passed) == (True, False)
    assert failed.checks[0].why == "significantly below"
    assert passed.checks[0].why == "neither significantly above nor below"
    with pytest.raises(UsageError, match="for the whole dataset"):
        check_citations(store, GateSubject("d", group="en"), {"recall": 0.9})


def test_the_gate_refuses_a_dataset_that_cites_nothing(store: Store) -> None:
    filled(store, 0, "It was built in 1889.")

    with pytest.raises(UsageError, match="no answer of 'd' that counts here cites anything"):
        check_citations(store, GateSubject("d"), {"recall": 0.9})


def test_the_command_gate_takes_limits_of_citations(store: Store, tmp_path: Path) -> None:
    filled(store, 20)
    environ = {"SPANLAB_HOME": str(tmp_path / "home")}

    done = run_here(["gate", "d", "--min-citation-precision", "0.9", "--json"], tmp_path, environ)
    assert done.returncode == 1, done.stderr
    (check,) = json.loads(done.stdout)["checks"]
    assert (check["name"], check["passed"]) == ("citation precision at least 90.0 %", False)
    asked = ["gate", "d", "--min-citation-precision", ".4", "--max-rate", ".5"]
    both = run_here(asked, tmp_path, environ)
    assert both.returncode != 0
    assert "measure" in both.stderr
