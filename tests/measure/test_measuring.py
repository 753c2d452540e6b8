"""A rate that reviews correct, the gate on it, and the certificate of what was measured."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from commands import run_here
from measured_data import ANSWER, filled, items, said

from spanlab.base.errors import UsageError
from spanlab.measure.certificate_html import certificate_html
from spanlab.measure.certificates import certify, read_certificate, stale_because
from spanlab.measure.certificates import write_certificate as write
from spanlab.measure.measurement import Measurement, measure, without_method
from spanlab.measure.rate_tally import rates
from spanlab.measure.sample import (
    measurable,
    measurement_queue,
    plan_measurement,
    read_measured,
    state_line,
)
from spanlab.oplog.operations import (
    AcceptSpan,
    FinishItem,
    Operation,
    SentOperation,
    SetStatus,
    Undo,
)
from spanlab.oplog.state import SuggestionMark
from spanlab.output.tables import MeanInterval, as_html
from spanlab.schema import (
    ADJUDICATED,
    Actor,
    Annotation,
    AnnotatorKind,
    CheckRules,
    Claim,
    Item,
    MeasurementPlan,
    QueueQuery,
    Record,
    Role,
    Status,
)
from spanlab.storage import Store
from spanlab.worklists import paging


@pytest.mark.parametrize("design", ["uniform", "stratified", "uncertainty", "length"])
def test_a_rate_is_corrected_by_the_reviews_of_its_queue(store: Store, design: str) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 400, 80, by="meta.model", design=design)
    found = measure(store, "d")
    assert Measurement.read(json.loads(json.dumps(found.figures()))) == found
    everybody, a, b = found.groups
    assert (everybody.items, everybody.reviews, a.value, b.value) == (400, 80, "a", "b")
    assert a.reviews + b.reviews == 80
    assert everybody.finite
    assert everybody.alone
    assert everybody.finite.low <= 0.25 <= everybody.finite.high
    narrower = everybody.finite.high - everybody.finite.low
    assert narrower < 0.8 * (everybody.alone.high - everybody.alone.low)
    assert a.finite
    assert a.finite.mean < 0.1
    assert a.finite.high > 0
    assert everybody.marked == pytest.approx(0.3, abs=0.05)
    assert everybody.superpopulation
    assert everybody.superpopulation.high > everybody.finite.high
    (pair,) = found.pairs
    assert pair[2].difference.high < 0
    assert len(found.history) > 10
    assert found.line.startswith(f"Rate of these items so far: {100 * everybody.finite.mean:.1f} %")
    assert "more reviews for ± 3 points" in found.line


@pytest.mark.parametrize("by", [None, "meta.model"])
def test_no_two_columns_of_a_rate_have_one_title(store: Store, by: str | None) -> None:
    """A grid shows one of two columns that are called the same."""
    filled(store, "d", lambda at: at % 4 == 0, 60, 20, by=by)
    titles = [column.title for column in measure(store, "d").tables()[0].columns]
    assert len(titles) == len({*titles})


def test_a_gap_in_the_queue_ends_the_sample_and_a_skipped_item_does_not(store: Store) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 60, 0)
    queue = measurement_queue(store, "d")
    assert measure(store, "d").line.startswith("No reviews yet; about ")
    skipped = Annotation(annotator="anna", kind=AnnotatorKind.PERSON, status=Status.SKIPPED)
    done = [(queue[at], said("anna", marked=False)) for at in (0, 1, 3, 5)]
    store.save_annotations("d", [*done, (queue[2], skipped)])
    found = measure(store, "d")
    assert found.rate.reviews == 3
    assert (
        f"1 review not counted yet: {queue[4]!r}, an earlier item of the sample, is not reviewed. "
        "In Review, under “Measurement sample”, anybody can do it."
    ) in found.remarks
    assert any(remark.startswith("1 skipped item") for remark in found.remarks)
    assert found.rate.finite
    assert found.rate.finite.high > 0.3


def test_check_items_are_no_part_of_what_is_measured_and_keep_nothing_waiting(store: Store) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 60, 8)
    assert not any("check items" in remark for remark in measure(store, "d").remarks)
    known = CheckRules(labels=("gold",), share=0.1)
    store.change_settings("d", lambda now: now.model_copy(update={"known": known}))
    queue = measurement_queue(store, "d")
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD)
    store.save_annotations("d", [(queue[at], gold) for at in (0, 8, 20)])  # 8, 20: not reviewed
    store.save_annotations("d", [(queue[9], said("anna", marked=False))])
    found = measure(store, "d")
    assert (found.rate.items, found.rate.reviews) == (57, 8)
    told = (
        "3 check items left out, as the answers are known: the rates are those of the other items. "
        "1 review of check items is not counted."
    )
    assert told in found.remarks
    assert not any("not counted yet" in remark for remark in found.remarks)
    assert told in certificate_html(certify(store, "d"))
    # Who may not know which these are gets them among the others.
    items = read_measured(store, "d")
    assert items.queue == queue
    assert {item.item_id for item in items.items} == {*queue} - {queue[at] for at in (0, 8, 20)}


@pytest.mark.parametrize(
    ("unit", "low", "high", "says"),
    [
        ("answers", 0.4012, 0.598, "Between 40 and 60 of 100 answers like these contain"),
        ("answers", 0.0, 0.0081, "Between 0 and 9 of 1,000 answers like these contain"),
        ("characters", 0.29, 0.29001, "Of 100 characters of answers like these, between 29 and 30"),
        ("claims", 0.0, 1.0, "Too few reviews to say how many claims of answers like these"),
    ],
)
def test_a_measurement_is_one_sentence(
    store: Store, unit: str, low: float, high: float, says: str
) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 60, 30)
    found = measure(store, "d")
    plan = found.plan.model_copy(update={"unit": unit})
    like = MeanInterval(mean=(low + high) / 2, low=low, high=high)
    groups = (replace(found.rate, superpopulation=like),)
    assert str(replace(found, plan=plan, groups=groups).sentence).startswith(says)
    unreviewed = replace(found, groups=(replace(found.rate, superpopulation=None),))
    assert unreviewed.sentence is None


@pytest.mark.parametrize("n_checks", [0, 1], ids=["", "a check item before all others"])
def test_who_is_slower_ends_no_sample_where_items_are_assigned(store: Store, n_checks: int) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 60, 0)
    first = store.records_at("d", range(n_checks))
    gold = Annotation(annotator="known", kind=AnnotatorKind.GOLD)
    store.save_annotations("d", [(record.item.id, gold) for record in first])
    known = CheckRules(labels=("known",)) if n_checks else None
    plan = {"overlap": 1, "assigned_to": ("anna", "ben"), "known": known}
    store.change_settings("d", lambda old: old.model_copy(update=plan))
    queue = measurement_queue(store, "d")
    of_anna = QueueQuery(reviewer="anna", share=store.settings("d").share_of("anna"))
    assigned = set(paging.positions(store, "d", of_anna))
    mine = [at in assigned for at in store.positions_of("d", list(queue))]
    annas = [name for name, is_mine in zip(queue, mine, strict=True) if is_mine]
    bens = [name for name in queue if name not in annas]
    store.save_annotations("d", [(name, said("anna", marked=False)) for name in annas[:12]])
    store.save_annotations("d", [(name, said("ben", marked=False)) for name in bens[:4]])
    found = measure(store, "d")
    assert found.rate.reviews == 16
    assert any("their reviewers have not reached them" in remark for remark in found.remarks)
    assert read_measured(store, "d").line == found.line
    # Whoever came by an invitation reads the same order, though they may not ask in others' names.
    anna = Actor("oidc:1", "anna", {1: frozenset({Role.ANNOTATOR})})
    guest = store.acting_as(anna, hides=True)
    assert read_measured(guest, "d").queue == read_measured(store, "d").queue
    # Ben goes past one: that may be for what it says, and ends the sample.
    store.save_annotations("d", [(bens[5], said("ben", marked=False))])
    before_gap = queue.index(bens[4])
    assert measure(store, "d").rate.reviews == sum(
        name in {*annas[:12], *bens[:4]} for name in queue[:before_gap]
    )


def test_what_was_adjudicated_counts_before_what_people_said(store: Store) -> None:
    filled(store, "d", lambda _: True, 60, 30)
    queue = measurement_queue(store, "d")
    decision = Annotation(annotator=ADJUDICATED, kind=AnnotatorKind.GOLD, decided_by="eve")
    store.save_annotations("d", [(name, decision) for name in queue[:15]])
    rate = measure(store, "d").rate.alone
    assert rate is not None
    assert rate.mean == pytest.approx(0.5)
    known = Annotation(annotator="known", kind=AnnotatorKind.GOLD)  # imported: no decision
    store.save_annotations("d", [(name, known) for name in queue[15:30]])
    assert measure(store, "d").rate.alone == rate
    quality = certify(store, "d").figures()
    assert quality["reviewers"] == {"anna": 30}
    named = MeasurementPlan(annotator="judge", reviewers=("anna",))
    alone = measure(store, "d", named).rate.alone
    assert alone is not None
    assert alone.mean == 1


def test_a_vote_is_not_measured_by_its_own_voters(store: Store) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 20, 5)
    voted = {name: ("judge", name) for name in ("anna", "judge")}
    for name, voters in voted.items():
        vote = Annotation(annotator=f"vote of {name}", kind=AnnotatorKind.VOTE, voters=voters)
        store.save_annotations("d", [(f"i{at}", vote) for at in range(20)])
    assert measurable(store, "d") == ("judge", "vote of judge")
    plan = MeasurementPlan(annotator="vote of anna")
    with pytest.raises(UsageError, match="'vote of anna' was voted from what anna marked"):
        plan_measurement(store, "d", plan)
    store.save_annotations("d", [("i0", said("ben", marked=True))])
    plan_measurement(store, "d", plan.model_copy(update={"reviewers": ("ben",)}))


def test_whether_suggestions_were_shown_is_what_the_logs_say(store: Store) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 60, 0)
    queue = measurement_queue(store, "d")
    mark = SuggestionMark(source="judge", start=2, end=5, prob=0.9)
    ends: list[list[Operation]] = [
        [SetStatus(status=Status.DONE, suggested=False)],
        [SetStatus(status=Status.DONE, suggested=True)],
        [SetStatus(status=Status.DONE)],
        [FinishItem(rejected=(mark,))],  # of 1.0: what it decided was shown
        [AcceptSpan(span="s1", mark=mark), Undo(), SetStatus(status=Status.DONE, suggested=False)],
    ]
    for at, operations in enumerate(ends):
        writes = [
            SentOperation(session=f"s{at}", seq=n + 1, base=n, operation=operation)
            for n, operation in enumerate(operations)
        ]
        assert not store.apply("d", queue[at], "anna", writes).refused
    assert measure(store, "d").suggestions == {"hidden": 1, "shown": 3, "unknown": 1}
    facts = " ".join(re.sub("<[^>]*>", " ", certificate_html(certify(store, "d"))).split())
    assert "saw the detector&#x27;s suggestions in 3 of 5 reviews (unknown for 1)." in facts


def test_the_line_in_review_follows_each_item_without_reading_all(store: Store) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 200, 40)
    live = read_measured(store, "d")
    assert live.line == measure(store, "d").line
    for name in measurement_queue(store, "d")[40:50]:
        store.save_annotations("d", [(name, said("anna", marked=True))])
        live.refresh(store.record("d", name))
    assert live.line == measure(store, "d").line
    assert live.reviewed == 50


def test_characters_and_claims_are_ratios(store: Store) -> None:
    filled(store, "d", lambda at: at % 2 == 0, 100, 100, unit="characters")
    rate = measure(store, "d").rate.finite
    assert rate
    assert (rate.mean, rate.low, rate.high) == pytest.approx((0.15, 0.15, 0.15))


def test_claims_are_counted_claim_by_claim(store: Store) -> None:
    """Answers have one to three claims, the first is wrong in every fourth; the judge errs once."""

    def judged(who: str, at: int, wrong: bool) -> Annotation:
        verdicts = ["refuted" if wrong else "supported", *["supported"] * (at % 3)]
        claims = tuple(Claim(text=f"c{n}", verdict=v) for n, v in enumerate(verdicts))
        return said(who, marked=False).model_copy(update={"claims": claims})

    records = [
        Record(
            item=Item(id=f"i{at}", question=f"q{at}", answer=ANSWER),
            annotations=(judged("judge", at, at % 4 == 0 or at == 1),),
        )
        for at in range(240)
    ]
    store.import_records("d", records)
    plan_measurement(store, "d", MeasurementPlan(annotator="judge", unit="claims"))
    queue = measurement_queue(store, "d")
    for name in queue[:120]:
        at = int(name[1:])
        store.save_annotations("d", [(name, judged("anna", at, at % 4 == 0))])
    rate = measure(store, "d").rate
    assert rate.marked == pytest.approx(61 / 480)
    assert rate.finite
    assert rate.finite.low <= 60 / 480 <= rate.finite.high
    assert rate.finite.high - rate.finite.low < 0.05


def test_the_commands_plan_measure_and_gate(store: Store, tmp_path: Path) -> None:
    store.import_records("d", items(300, lambda at: at % 5 == 0))
    environment = {
        "SPANLAB_HOME": str(tmp_path / "home"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
    }

    def run(*arguments: str) -> tuple[int, str]:
        shown = run_here(list(arguments), tmp_path, environment)
        return shown.returncode, shown.stdout + shown.stderr

    code, shown = run("measure", "d", "--annotator", "judge", "--by", "meta.model")
    assert code == 0, shown
    assert "Marked by judge" in shown
    assert "is raw detector output" in shown
    queue = run("measure", "d", "--queue")[1].split()
    assert len(queue) == 300
    junit = ("--junit", "out.xml")
    assert run("gate", "d", "--max-rate", ".05", *junit)[0] == 2
    suite = ET.parse(tmp_path / "out.xml").getroot()
    assert (suite.get("errors"), suite.get("failures")) == ("1", "0")
    (wrong,) = suite.iter("error")
    assert wrong.attrib["message"].startswith("the gate needs reviews of 'd'")
    summary = (tmp_path / "summary.md").read_text()
    assert summary.startswith("### Gate of d: not checked\n\nthe gate needs reviews of 'd'")
    store.save_annotations(
        "d", [(name, said("anna", int(name[1:]) % 5 == 0)) for name in queue[:150]]
    )
    state = json.loads(run("measure", "d", "--json", "--certificate", "c.json")[1])
    assert state["groups"][0]["reviews"] == 150
    assert run("gate", "d", "--max-rate", ".05", *junit)[0] == 1
    assert ET.parse(tmp_path / "out.xml").getroot().get("failures") == "1"
    assert "**failed**" in (tmp_path / "summary.md").read_text()
    code, shown = run("gate", "d", "--max-rate", ".2")
    assert (code, "rate of these answers at most 20.0 %  20.6 % [17.6, 23.9]" in shown) == (
        0,
        True,
    ), shown
    assert run("gate", "d", "--max-rate", ".2", "--require-proof")[0] == 1
    assert run("gate", "d", "--max-rate", ".4", "--require-proof")[0] == 0
    certificate = read_certificate(tmp_path / "c.json")
    assert stale_because(store, "d", certificate) == ()
    assert run("measure", "d", "--certificate", "c.html")[0] == 0
    page = (tmp_path / "c.html").read_text()
    assert "<h1 dir='auto'>Certificate of judge on d</h1>" in page
    assert page.count("<svg") == 3
    rates, *tables = (without_method(table)[0] for table in measure(store, "d").tables())
    tables.append(rates.model_copy(update={"title": "Rates"}))  # its headline says the title's
    assert all(as_html(table) in page for table in tables)
    assert "default-src 'none'" in page
    assert "anna (150)" in page
    assert not re.search("(src|href)=|<script", page)


def test_what_a_detector_marks_is_no_rate_until_it_is_measured(
    store: Store, tmp_path: Path
) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 100, 0, by="meta.model")
    asked = ["rates", "d", "--by", "meta.model", "--annotators", "judge"]
    environment = {"SPANLAB_HOME": str(tmp_path / "home")}
    shown = run_here(asked, tmp_path, environment).stdout
    assert "Marked by judge by model, with 95 % intervals" in shown
    assert "A detector's marks are not a hallucination rate" in shown
    assert "so far" not in shown
    queue = measurement_queue(store, "d")[:50]
    store.save_annotations("d", [(name, said("anna", int(name[1:]) % 4 == 0)) for name in queue])
    assert "so far: " in run_here(asked, tmp_path, environment).stdout
    figures = json.loads(run_here([*asked, "--json"], tmp_path, environment).stdout)
    (table,) = [t for t in figures["corrected"] if t["key"] == "measurement"]
    assert table["rows"][0][0] == "all"
    assert figures["corrected"][0]["rows"][1:]
    # By another field, and of what people marked, the rate of all items is still the measured one.
    by_lang = json.loads(
        run_here(["rates", "d", "--by", "lang", "--json"], tmp_path, environment).stdout
    )
    (table,) = by_lang["corrected"]
    assert [row[0] for row in table["rows"]] == ["all"]
    exported = run_here(["export", "d", "-o", "d.html"], tmp_path, environment)
    assert exported.returncode == 0, exported.stderr
    page = (tmp_path / "d.html").read_text()
    assert "Hallucinated answers of d. Rate of these items so far: " in page
    assert "is raw detector output" in page


def test_a_certificate_says_what_it_is_bound_to_and_when_it_is_stale(
    store: Store, tmp_path: Path
) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 100, 60)
    certificate = certify(store, "d")
    content = certificate.figures()
    assert content["reviewers"] == {"anna": 60}
    assert content["answers"]["sensitivity"]["mean"] > 0.7
    assert content["answers"]["sensitivity"]["low"] < 0.9
    assert 0 < content["characters"]["iou"]["mean"] < 1
    assert content["calibration"]["error"] < 0.2
    assert content["agreement"] is None
    write(certificate, tmp_path / "c.json")
    first, *_, later = measurement_queue(store, "d")
    store.save_annotations("d", [(later, said("anna", marked=True))])
    assert stale_because(store, "d", certificate) == ()  # a review more changes nothing
    wrong = int(first[1:]) % 4 == 0
    store.save_annotations("d", [(first, said("anna", not wrong))])
    assert stale_because(store, "d", certificate) == ("reviews that it counts changed",)
    store.save_annotations("d", [(first, said("anna", wrong))])
    assert stale_because(store, "d", certificate) == ()
    changed = MeasurementPlan(annotator="judge", definition="contradicts a passage", model="new")
    plan_measurement(store, "d", changed)
    assert stale_because(store, "d", certificate) == (
        "the model changed",
        "the definition of hallucinated changed",
    )
    store.save_annotations("d", [("i1", said("judge", marked=True, prob=0.4))])
    assert any("marks" in reason for reason in stale_because(store, "d", certificate))
    text = (tmp_path / "c.json").read_text()
    (tmp_path / "c.json").write_text(text.replace('"anna": 60', '"anna": 600'))
    with pytest.raises(UsageError, match="its hash differs"):
        read_certificate(tmp_path / "c.json")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"annotator": "judge", "by": "label"}, "not by label"),
        ({"annotator": "judge", "design": "stratified"}, "--by lang"),
        ({"annotator": "judge", "reviewers": ["judge"]}, "cannot review itself"),
        ({"annotator": "nobody"}, "no annotator 'nobody'"),
        ({"annotator": "judge", "by": "meta.zz"}, "no item of 'd' has meta.zz; available: lang"),
    ],
)
def test_a_plan_that_cannot_be_is_refused(
    store: Store, asked: Mapping[str, object], message: str
) -> None:
    store.import_records("d", items(3, lambda _: True))
    with pytest.raises(Exception, match=message):
        plan_measurement(store, "d", MeasurementPlan.model_validate(asked))


@pytest.mark.parametrize(
    ("design", "where"),
    [
        ("length", "Reviews went to long answers more often than to short ones"),
        ("uncertainty", "Reviews went to where the detector is unsure"),
    ],
)
def test_a_mean_of_a_part_that_was_not_drawn_evenly_is_no_rate(
    store: Store, design: str, where: str
) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 100, 50, by="meta.model", design=design)
    assert rates(store, "d", "lang").remarks[0].startswith(where)
    queue = measurement_queue(store, "d")
    store.save_annotations("d", [(name, said("anna", int(name[1:]) % 4 == 0)) for name in queue])
    assert not any("mean" in remark for remark in rates(store, "d", "lang").remarks)


def test_a_margin_is_not_reached_where_nothing_is_left_to_review() -> None:
    plan = MeasurementPlan(annotator="judge", half_width=0.03)
    wide = MeanInterval(mean=0.16, low=0.024, high=0.591)
    assert state_line(plan, wide, wide, 0) == (
        "Rate of these items: 16.0 % (95 % CI 2.4 to 59.1); all are reviewed, and ± 3 points is "
        "not reached."
    )


def test_everything_reviewed_is_no_point_for_answers_like_these(
    store: Store, tmp_path: Path
) -> None:
    """Anna marks a half of the answers, Ben a fifth: who reviewed is part of what is not known."""
    filled(store, "one", lambda at: at % 2 == 0, 200, 200, by="meta.model")
    filled(store, "two", lambda at: at % 2 == 0, 200, 200, by="meta.model")
    store.save_annotations("two", [(f"i{at}", said("ben", at % 5 == 0)) for at in range(200)])
    one, two = measure(store, "one"), measure(store, "two")
    for found in (one, two):
        rate, like = found.rate.finite, found.rate.superpopulation
        assert rate
        assert like
        assert rate.low == rate.mean == rate.high
        assert like.low < rate.mean < like.high
        # Their rates are .5 and .2: with a mean of .35, another two people may say either.
        if found is two:
            assert like.low < 0.2
            assert like.high > 0.5
        for _, _, change in found.pairs:
            assert change.difference.low < change.difference.high
    assert one.rate.superpopulation
    assert one.rate.superpopulation.low > 0.4
    assert any(remark.startswith("Only anna reviewed") for remark in one.remarks)
    assert not any(remark.startswith("Only anna reviewed") for remark in two.remarks)
    shown = run_here(["measure", "two"], tmp_path, {"SPANLAB_HOME": str(tmp_path / "home")})
    assert shown.returncode == 0, shown.stderr
    assert "All reviewed. Future answers: 35.0 % (95 % CI " in shown.stdout
    assert "These answers, as these people marked them: 35.0 %." in shown.stdout
