"""People as instruments: who errs, and what votes gain from knowing it."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
from commands import run_here

from spanlab.base.errors import UsageError
from spanlab.schema import Annotation, AnnotatorKind, Interval, Item, Record, Span
from spanlab.scoring.raters import dawid_skene
from spanlab.scoring.reliability import rate_raters
from spanlab.scoring.votes import vote_dataset
from spanlab.storage import Store
from spanlab.text.labels import hard_of

LENGTH = 60
PEOPLE = {"anna": (0.95, 0.97), "ben": (0.8, 0.95), "cora": (0.7, 0.9), "spam": (0.3, 0.7)}


def marked(who: str, words: np.ndarray, kind: AnnotatorKind = AnnotatorKind.PERSON) -> Annotation:
    """Every mark is a word of six characters."""
    hard = [Interval(start=6 * at, end=6 * at + 6) for at in np.flatnonzero(words).tolist()]
    return Annotation(annotator=who, kind=kind, hard=tuple(hard))


def planted(n: int = 200) -> tuple[list[Record], list[np.ndarray]]:
    """People that err at planted rates, on answers of ten words; ten items have gold labels."""
    rng = np.random.default_rng(2)
    truths = [rng.random(10) < 0.3 for _ in range(n)]
    records = []
    for at, truth in enumerate(truths):
        said = [
            marked(who, np.where(truth, rng.random(10) < sens, rng.random(10) > spec))
            for who, (sens, spec) in PEOPLE.items()
        ]
        gold = [marked("gold", truth, AnnotatorKind.GOLD)] if at < 10 else []
        item = Item(id=f"i{at}", lang="en", question="", answer="abcde " * 10)
        records.append(Record(item=item, annotations=(*said, *gold)))
    return records, truths


def test_planted_error_rates_and_a_spammer_are_found() -> None:
    report = rate_raters(planted()[0])
    quality = {rater.name: rater for rater in report.raters}
    assert [rater.name for rater in report.raters] == list(PEOPLE)
    for name, (sensitivity, specificity) in PEOPLE.items():
        assert quality[name].sensitivity == pytest.approx(sensitivity, abs=0.05)
        assert quality[name].specificity == pytest.approx(specificity, abs=0.05)
        assert quality[name].known == 10
        assert quality[name].known_sensitivity == pytest.approx(sensitivity, abs=0.2)
    assert "Little better than chance: spam." in report.tables()[0].remarks


def test_weighted_soft_labels_are_nearer_to_the_truth(store: Store, tmp_path: Path) -> None:
    records, truths = planted()
    store.import_records("d", records)
    vote_dataset(store, "d", list(PEOPLE), name="plain")
    shown = run_here(
        ["vote", "d", "--annotators", ",".join(PEOPLE), "--weighted", "--name", "weighted"],
        tmp_path,
        {"SPANLAB_HOME": str(tmp_path / "home")},
    )
    assert shown.returncode == 0, shown.stderr
    errors = {"plain": 0.0, "weighted": 0.0}
    for record, truth in zip(store.records("d"), truths, strict=True):
        for name in errors:
            vote = record.by(name)
            assert vote
            soft = np.zeros(LENGTH)
            for span in vote.spans:
                soft[span.start : span.end] = span.prob
            errors[name] += float(np.square(soft[::6] - truth).mean()) / len(truths)
    assert errors["weighted"] < 0.8 * errors["plain"]


HONEST = dict.fromkeys(("anna", "ben", "cora", "dan", "eve"), (0.75, 0.95))


def with_copies(
    n: int = 200, *, known: int, changed: float = 0.0
) -> tuple[list[Record], list[np.ndarray]]:
    """Five honest people, and three who say what one spammer says, but for a share of words."""
    rng = np.random.default_rng(3)
    records, truths = [], []
    for at in range(n):
        truth = rng.random(10) < 0.3
        spam = rng.random(10) < 0.3
        said = [
            marked(who, np.where(truth, rng.random(10) < sens, rng.random(10) > spec))
            for who, (sens, spec) in HONEST.items()
        ]
        said += [marked(f"spam{i}", spam ^ (rng.random(10) < changed)) for i in range(3)]
        gold = [marked("gold", truth, AnnotatorKind.GOLD)] if at < known else []
        item = Item(id=f"i{at}", lang="en", question="", answer="abcde " * 10)
        records.append(Record(item=item, annotations=(*said, *gold)))
        truths.append(truth)
    return records, truths


def test_three_copies_of_a_spammer_do_not_outvote_five_people(store: Store, tmp_path: Path) -> None:
    records, truths = with_copies(known=0)
    store.import_records("d", records)
    voters = [*HONEST, "spam0", "spam1", "spam2"]
    shown = run_here(
        ["vote", "d", "--annotators", ",".join(voters), "--weighted", "--name", "weighted"],
        tmp_path,
        {"SPANLAB_HOME": str(tmp_path / "home")},
    )
    assert shown.returncode == 0, shown.stderr
    assert "These say the same and count as one: spam0, spam1, spam2." in shown.stderr
    right = wrong = 0
    for record, truth in zip(store.records("d"), truths, strict=True):
        vote = record.by("weighted")
        assert vote
        hard = np.zeros(LENGTH, dtype=bool)
        for start, end in hard_of(vote):
            hard[start:end] = True
        right += int((hard[::6] & truth).sum())
        wrong += int((hard[::6] ^ truth).sum())
    assert right / (right + wrong) > 0.8
    weights = rate_raters(store.records("d")).weights
    assert max(weights[f"spam{i}"] for i in range(3)) < 0.05
    assert weights["anna"] > 0.5


@pytest.mark.parametrize("changed", [0.03, 0.1])
def test_known_answers_tell_people_from_a_majority_of_near_copies(changed: float) -> None:
    report = rate_raters(with_copies(known=30, changed=changed)[0])
    weights = report.weights
    assert max(weights[f"spam{i}"] for i in range(3)) < 0.2
    assert min(weights[name] for name in HONEST) > 0.5


def test_intervals_hold_the_planted_rates_and_are_no_points() -> None:
    held = total = 0
    for rater in rate_raters(planted()[0]).raters:
        intervals = rater.sensitivity_interval, rater.specificity_interval
        for planted_rate, ends in zip(PEOPLE[rater.name], intervals, strict=True):
            assert ends is not None
            low, high = ends
            assert low < high
            held += low <= planted_rate <= high
            total += 1
    assert held >= total - 1


def test_few_items_are_no_ground_for_weights(store: Store) -> None:
    records, _ = planted(9)
    store.import_records("few", records)
    with pytest.raises(UsageError, match="vote without --weighted"):
        vote_dataset(store, "few", list(PEOPLE), weighted=True)
    records, _ = planted(40)
    late = [
        Record(
            item=record.item,
            annotations=tuple(a for a in record.annotations if at < 5 or a.annotator != "anna"),
        )
        for at, record in enumerate(records)
    ]
    report = rate_raters(late)
    others = [rater.weight for rater in report.raters if rater.name != "anna"]
    assert report.weights["anna"] == pytest.approx(sum(others) / 3)
    assert any(remark.endswith("average: anna.") for remark in report.remarks)


def test_the_model_is_that_of_dawid_and_skene() -> None:
    """One step from the majority by hand: two raters who agree, and one who marks everything."""
    marks = np.array([[1, 1, 1], [0, 0, 1.0]])
    model = dawid_skene(marks, np.array([30.0, 70.0]), prior=0)
    assert model.sensitivity == pytest.approx([1, 1, 1])
    assert model.specificity == pytest.approx([1, 1, 0])
    assert model.prevalence == pytest.approx(0.3)
    unseen = np.array([[1, 1, np.nan], [0, np.nan, 0], [0, 0, 0]])
    model = dawid_skene(unseen, np.array([30.0, 20, 50]))
    assert model.posterior == pytest.approx([1, 0, 0], abs=1e-2)


def moved(words: np.ndarray, rng: np.random.Generator) -> list[Interval]:
    """A copy of marks of which a third of the edges are one to three characters elsewhere."""
    spans = []
    for at in np.flatnonzero(words).tolist():
        ends = [6 * at, 6 * at + 6]
        for side in (0, 1):
            if rng.random() < 1 / 3:
                ends[side] += int(rng.integers(1, 4)) * (1 if side == 0 else -1)
        if ends[0] < ends[1]:
            spans.append(Interval(start=ends[0], end=ends[1]))
    return spans


def two_sides(n: int, honest: int, copies: int, gold: int = 0) -> list[Record]:
    """Honest people beside copies of one who marks at random, whose edges were moved."""
    rng = np.random.default_rng(5)
    records = []
    for at in range(n):
        truth, noise = rng.random(10) < 0.3, rng.random(10) < 0.3
        said = [
            marked(f"p{one}", np.where(truth, rng.random(10) < 0.8, rng.random(10) > 0.96))
            for one in range(honest)
        ]
        said += [
            Annotation(
                annotator=f"copy{one}", kind=AnnotatorKind.PERSON, hard=tuple(moved(noise, rng))
            )
            for one in range(copies)
        ]
        if at < gold:
            said.append(marked("gold", truth, AnnotatorKind.GOLD))
        item = Item(id=f"i{at}", lang="en", question="", answer="abcde " * 10)
        records.append(Record(item=item, annotations=tuple(said)))
    return records


def test_two_camps_have_no_weights_before_gold_labels_tell_which_is_right(
    store: Store, tmp_path: Path
) -> None:
    store.import_records("d", two_sides(40, 5, 3))
    home = {"SPANLAB_HOME": str(tmp_path / "home")}
    everybody = ",".join([*(f"p{n}" for n in range(5)), *(f"copy{n}" for n in range(3))])
    words = ["vote", "d", "--annotators", everybody, "--weighted", "--name", "w"]
    refused = run_here(words, tmp_path, home)
    assert refused.returncode == 2, refused.stderr
    told = " ".join(refused.stderr.split())
    assert "agree among themselves and not across: give gold labels for 10 items" in told
    assert "copy0, copy1, copy2 and p0" in told or "p3, p4 and copy0" in told
    assert "they differ in what counts" in run_here(["raters", "d"], tmp_path, home).stdout
    with_gold = rate_raters(two_sides(40, 5, 3, gold=10))
    assert min(with_gold.weights[f"p{n}"] for n in range(5)) > with_gold.weights["copy0"]


def test_people_of_unlike_quality_are_no_camps() -> None:
    report = rate_raters(planted(40)[0])
    assert report.apart < 0.1
    assert not any("differ in what counts" in remark for remark in report.remarks)


def test_of_two_people_nobody_is_the_more_reliable_one(store: Store, tmp_path: Path) -> None:
    store.import_records("d", two_sides(40, 2, 0))
    home = {"SPANLAB_HOME": str(tmp_path / "home")}
    shown = " ".join(run_here(["raters", "d"], tmp_path, home).stdout.split())
    assert "Of two people agreement does not tell who is right: kappa" in shown
    report = rate_raters(store.records("d"))
    assert {rater.sensitivity for rater in report.raters} == {None}
    assert report.weights == {"p0": 1.0, "p1": 1.0}


@pytest.mark.parametrize("together", [1, 2])
def test_people_who_share_few_items_or_none_are_rated_without_a_warning(together: int) -> None:
    answer = "Oslo is big and cold."
    records = [
        Record(
            item=Item(id=str(n), answer=answer),
            annotations=tuple(
                Annotation(
                    annotator="abcd"[(n * together + k) % 4],
                    kind=AnnotatorKind.PERSON,
                    spans=(Span.of(answer, 0, 4),) if n % 3 else (),
                )
                for k in range(together)
            ),
        )
        for n in range(24)
    ]
    with warnings.catch_warnings(action="error"):
        assert rate_raters(records).camps == ()
