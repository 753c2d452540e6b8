"""The gate: rates, groups, datasets compared, and what a proposed number of reviews finds."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from commands import run_here
from measured_data import filled, passes, reviewed, said, two_models

from spanlab.base.errors import UsageError
from spanlab.measure.gating import GateSubject, check_gate
from spanlab.measure.measurement import measure
from spanlab.measure.sample import (
    measurement_queue,
    plan_measurement,
)
from spanlab.measure.sampling import reviews_for_difference
from spanlab.schema import MeasurementPlan
from spanlab.storage import Store


def test_a_gate_compares_two_datasets_on_common_questions(store: Store) -> None:
    filled(store, "old", lambda at: at % 10 == 0, 400, 150)
    filled(store, "new", lambda at: at % 10 in {0, 1, 2}, 400, 150)
    filled(store, "same", lambda at: at % 10 == 5, 400, 150)
    worse = check_gate(store, GateSubject("new"), against="old")
    assert not worse.passed
    assert "paired on 150 common questions" in worse.checks[0].why
    assert check_gate(store, GateSubject("same"), against="old").passed
    assert check_gate(store, GateSubject("old"), against="new").passed


def test_two_models_of_a_dataset_are_compared_on_the_same_questions(
    store: Store, tmp_path: Path
) -> None:
    records = two_models(300, (0.1, 0.25))
    store.import_records("d", records)
    plan_measurement(store, "d", MeasurementPlan(annotator="judge", by="meta.model"))
    queue = measurement_queue(store, "d")
    # Answers to one question come together.
    assert [name.split("-")[1] for name in queue[:100:2]] == [
        name.split("-")[1] for name in queue[1:100:2]
    ]
    truth = {record.item.id: bool(record.item.meta["wrong"]) for record in records}
    store.save_annotations("d", [(name, said("anna", truth[name])) for name in queue[:240]])
    found = measure(store, "d")
    ((a, b, change),) = found.pairs
    assert (a, b, change.questions) == ("new", "old", 120)
    assert change.difference.low <= 0.15 <= change.difference.high
    apart = found.groups[1].superpopulation, found.groups[2].superpopulation
    assert apart[0]
    assert apart[1]
    wide = np.hypot(apart[0].high - apart[0].low, apart[1].high - apart[1].low)
    assert change.difference.high - change.difference.low < 0.9 * wide

    def gate(*words: str) -> tuple[int, str]:
        shown = run_here(["gate", "d", *words], tmp_path, {"SPANLAB_HOME": str(tmp_path / "home")})
        return shown.returncode, shown.stdout + shown.stderr

    code, shown = gate("--against", "old")
    assert (code, "paired on 120 common questions" in shown) == (1, True), shown
    assert gate("--group", "old", "--against", "new")[0] == 0
    assert gate("--group", "old", "--max-rate", ".15")[0] == 0
    assert gate("--group", "new", "--max-rate", ".15")[0] == 1
    code, shown = gate("--group", "gpt", "--max-rate", ".15")
    assert (code, "available: new, old" in shown) == (2, True)
    for itself in (("--group", "old", "--against", "old"), ("--against", "d")):
        code, shown = gate(*itself)
        assert (code, f"'{itself[-1]}' cannot be compared with itself" in shown) == (2, True), shown
    with pytest.raises(UsageError, match=r"a share from 0 to 1, not 15: 0\.15 for 15 %"):
        check_gate(store, GateSubject("d"), max_rate=15)
    figures = json.loads(gate("--against", "old", "--json")[1])
    assert figures["passed"] is False


def test_two_samples_of_equal_models_differ_by_chance_alone(store: Store) -> None:
    """12 of 50 wrong are not shown to be more than 11 of 50, also once all is reviewed."""
    for name, wrong in (("old", 11), ("new", 12), ("worse", 30)):
        filled(store, name, wrong.__gt__, 50, 50)
        records = [
            r.model_copy(
                update={"item": r.item.model_copy(update={"question": f"{name} {r.item.id}"})}
            )
            for r in store.records(name)
        ]
        store.import_records(f"{name}-own", records)
        plan_measurement(store, f"{name}-own", MeasurementPlan(annotator="judge"))
    same = check_gate(store, GateSubject("new-own"), against="old-own").checks[0]
    assert same.passed
    assert same.found.low < 0 < same.found.high
    assert not check_gate(store, GateSubject("worse-own"), against="old-own").passed


def test_of_a_fully_reviewed_dataset_there_is_no_interval_but_words(
    store: Store, tmp_path: Path
) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 40, 40)
    odd = 'old "<\ufffe'  # the last is no XML, escaped or not
    filled(store, odd, lambda at: at % 4 == 0, 40, 40)
    home = {"SPANLAB_HOME": str(tmp_path / "home"), "GITHUB_STEP_SUMMARY": "summary.md"}
    words = ["gate", "d", "--max-rate", ".2", "--against", odd, "--junit", "gate.xml"]
    shown = run_here(words, tmp_path, home)
    assert shown.returncode == 1, shown.stderr
    reports = shown.stdout, *((tmp_path / name).read_text() for name in ("gate.xml", "summary.md"))
    for report in reports[::2]:
        text = " ".join(report.split())
        assert "all answers were reviewed: no uncertainty from sampling" in text
        assert "for future answers" in text
    assert "Future answers: 25.0 % (95 % CI" in shown.stdout
    names = {case.get("name") for case in ElementTree.parse(tmp_path / "gate.xml").iter("testcase")}
    assert 'no higher than old "<·' in names


@pytest.mark.parametrize("words", [["nix"], ["d", "--against", "nix"], ["d", "--annotator", "nix"]])
def test_what_cannot_be_checked_is_no_rate_that_is_too_high(
    store: Store, tmp_path: Path, words: list[str]
) -> None:
    filled(store, "d", lambda at: at % 4 == 0, 40, 40)
    home = {"SPANLAB_HOME": str(tmp_path / "home")}
    asked = ["gate", *words, "--max-rate", ".9", "--junit", "gate.xml"]
    shown = run_here(asked, tmp_path, home)
    assert shown.returncode == 2
    assert "nix" in shown.stderr
    assert 'errors="1"' in (tmp_path / "gate.xml").read_text()


def test_the_rate_of_both_models_counts_questions_and_not_answers_twice() -> None:
    """Hard questions are hard for both: 240 answers say as much as 120 questions."""
    records = two_models(300, (0.15, 0.2))
    truth = np.mean([bool(record.item.meta["wrong"]) for record in records])
    held = 0
    for seed in range(60):
        plan = MeasurementPlan(annotator="judge", by="meta.model", seed=seed)
        found = reviewed(records, plan, 240).estimate(alone=True)
        assert found
        held += bool(found.low <= truth <= found.high)
    assert held >= 55


def test_the_same_reviews_correct_another_detector(store: Store) -> None:
    filled(store, "d", lambda at: at % 5 == 0, 300, 150)
    marks = said("judge", marked=True).model_copy(update={"annotator": "judge-2"})
    other = [(f"i{at}", marks) for at in range(300)]
    store.save_annotations("d", other)
    found = check_gate(store, GateSubject("d", "judge-2"), max_rate=0.05)
    assert found.checks[0].found.low <= 0.2 <= found.checks[0].found.high
    assert not found.passed
    with pytest.raises(Exception, match="no annotator 'nobody'"):
        check_gate(store, GateSubject("d", "nobody"), max_rate=0.05)
    filled(store, "u", lambda at: at % 5 == 0, 60, 50, design="uncertainty")
    store.save_annotations("u", other[:60])
    with pytest.raises(UsageError, match="measure 'judge-2' with another design"):
        check_gate(store, GateSubject("u", "judge-2"), max_rate=0.05)


@pytest.mark.parametrize("paired", [False, True], ids=["two-datasets", "two-models"])
def test_as_many_reviews_as_proposed_find_five_points(paired: bool) -> None:
    """20 samples of one population; bench_rates has 200 populations of each kind."""
    n = reviews_for_difference(0.05, 0.1, 0.61, items=2000)  # the judge's correlation
    assert 700 < n < 900
    assert reviews_for_difference(0.05, 0.1, 0.61, items=600) > 600  # which cannot show it
    failed = {}
    for name, rate in (("worse", 0.15), ("same", 0.1)):
        records = two_models(2000, (0.1, rate))
        failed[name] = sum(not passes(records, n, run, paired=paired) for run in range(20)) / 20
    assert failed["worse"] >= 0.9
    assert failed["same"] <= 0.05
