"""Figures where answers are not independent: of one question, or of what a detector learnt from."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest
from commands import run_here
from measured_data import ANSWER, filled, items, said, two_models

from spanlab.base.settings import Settings
from spanlab.data.export_choice import ExportChoice
from spanlab.data.exporting import overview_dataset
from spanlab.detection.fits import keep_fit
from spanlab.detection.request import RunRequest
from spanlab.detection.setup import note_setups
from spanlab.detection.spec import DetectorSpec
from spanlab.measure.certificates import certify
from spanlab.measure.gating import MeasuredSide, compare_rates
from spanlab.measure.measurement import measure
from spanlab.measure.powered import PeopleSpread, Population, ReviewedSample, estimate_rate
from spanlab.measure.rate_tally import rates
from spanlab.measure.sample import MeasuredItems, measurement_queue
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    DetectorFit,
    DetectorSetup,
    Item,
    MeasurementPlan,
    Record,
    Span,
    TunedPredictor,
    TunedProgram,
    answer_hash,
    relations_of,
)
from spanlab.schema.fits import FitReport
from spanlab.scoring.agreement import ItemMarks, alpha_interval
from spanlab.scoring.comparison import paired
from spanlab.scoring.intervals import count_rate, t_quantile
from spanlab.scoring.report import mean_of
from spanlab.storage import Store
from spanlab.text.extents import Extent

# What a detector learnt from -----------------------------------------------------------------


_FIGURES = ("iou", "precision", "auroc", "right_marked", "calibration_error")
_COUNTS = ("answers", "groups", "folds")


def truth(at: int) -> bool:
    return at % 4 == 0


def learnt_by_heart(store: Store, reviews: int, seen: int) -> list[str]:
    """A judge that errs in a tenth, but not where it learnt: the first of what is reviewed."""
    filled(store, "d", truth, 240, reviews)
    queue = measurement_queue(store, "d")
    records = {record.item.id: record for record in store.records("d")}
    store.save_annotations(
        "d", [(name, said("judge", truth(int(name[1:])))) for name in queue[:seen]]
    )
    setup = DetectorSetup(
        annotator="judge",
        version="1",
        settings={},
        prompts="",
        learnt_from=tuple(answer_hash(records[name].item) for name in queue[:seen]),
    )
    store.change_settings("d", lambda old: old.model_copy(update={"setups": (setup,)}))
    return list(queue[:seen])


def test_a_detector_is_not_measured_by_what_it_learnt_from(store: Store, tmp_path: Path) -> None:
    learnt_by_heart(store, 60, 60)
    found = measure(store, "d")
    # All that was reviewed it had learnt by heart: only reviews alone say anything.
    assert found.rate.finite == found.rate.alone
    assert any("judge learnt from 60 of these answers" in remark for remark in found.remarks)
    content = certify(store, "d").content
    assert content["learnt_from"] == 60
    assert content["answers"] == dict.fromkeys(("sensitivity", "specificity", "iou"))
    assert content["calibration"] is None
    home = {"SPANLAB_HOME": str(tmp_path / "home")}
    shown = run_here(["measure", "d"], tmp_path, home)
    assert "judge learnt from 60 of these answers" in " ".join(shown.stdout.split())


def test_others_reviews_say_how_a_detector_does_that_learnt_from_some(store: Store) -> None:
    learnt_by_heart(store, 120, 60)
    found = measure(store, "d")
    assert found.rate.finite
    assert found.rate.alone
    width = found.rate.finite.high - found.rate.finite.low
    assert width < 0.97 * (found.rate.alone.high - found.rate.alone.low)
    quality = certify(store, "d").content["answers"]
    assert quality["specificity"]["mean"] < 1  # which it is on the 60
    assert quality["specificity"]["low"] < quality["specificity"]["high"]


def sampled(n: int, taught: int, *, flipped: bool = False, **plan: object) -> MeasuredItems:
    """The first n of 240 reviewed; the judge learnt from the first of them, and may err there."""
    chosen = MeasurementPlan.model_validate({"annotator": "judge", **plan})
    records = items(240, truth)
    order = [item.item_id for item in MeasuredItems(records, chosen).items]
    learnt, done = set(order[:taught]), set(order[:n])

    def as_planned(record: Record) -> Record:
        judged, name = record.annotations[0], record.item.id
        if name in learnt:
            right = truth(int(name[1:]))
            judged = said("judge", right != flipped, 0.9)
        people = (said("anna", truth(int(name[1:]))),) if name in done else ()
        return record.model_copy(update={"annotations": (judged, *people)})

    known = {answer_hash(record.item) for record in records if record.item.id in learnt}
    return MeasuredItems(map(as_planned, records), chosen, known)


def test_ten_reviews_of_other_answers_are_needed_before_marks_count() -> None:
    few, enough = sampled(60, 51), sampled(60, 50)
    assert few.estimate() == few.estimate(alone=True)
    assert enough.estimate() != enough.estimate(alone=True)


def test_with_uneven_odds_marks_do_not_count_where_answers_taught_a_detector() -> None:
    found = sampled(120, 30, design="uncertainty")
    assert found.estimate() == found.estimate(alone=True)
    untaught = sampled(120, 0, design="uncertainty")
    assert untaught.estimate() != untaught.estimate(alone=True)


def test_what_a_detector_says_of_answers_that_taught_it_changes_no_rate() -> None:
    for by in (None, "meta.model"):
        right, wrong = sampled(120, 60, by=by), sampled(120, 60, flipped=True, by=by)
        assert right.estimate() == wrong.estimate()
        for group in right.groups:
            assert right.estimate(group) == wrong.estimate(group)


def test_scores_and_agreement_set_aside_what_a_detector_learnt_from(
    store: Store, tmp_path: Path
) -> None:
    learnt_by_heart(store, 120, 60)
    home = {"SPANLAB_HOME": str(tmp_path / "home")}
    shown = run_here(
        ["score", "d", "--annotator", "judge", "--gold", "anna", "--json"], tmp_path, home
    )
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["answers"]["all"]["n"] == 60
    assert "judge learnt from 60 of these answers" in " ".join(shown.stderr.split())
    taught = store.settings("d").learnt_by(["judge"])
    rest = {answer_hash(record.item) for record in store.records("d")} - taught
    setup = store.settings("d").setups[0].model_copy(update={"learnt_from": tuple(taught | rest)})
    store.import_records("all", store.records("d"))
    store.change_settings("all", lambda old: old.model_copy(update={"setups": (setup,)}))
    nobody = run_here(["score", "d", "--annotator", "judge"], tmp_path, home)
    assert nobody.stderr.splitlines()[-1].startswith("spanlab: d: there is no finished annotation")
    whole = run_here(["score", "all", "--annotator", "judge", "--gold", "anna"], tmp_path, home)
    assert whole.returncode == 0
    assert "WARNING: judge learnt from all 240 of these answers" in " ".join(whole.stderr.split())
    both = json.loads(run_here(["agreement", "d", "--json"], tmp_path, home).stdout)
    assert both["pairs"][0]["n"] == 60
    told = run_here(["agreement", "d"], tmp_path, home).stdout
    assert "judge learnt from 60 of these answers" in " ".join(told.split())


@pytest.mark.system("offline")
@pytest.mark.system("ucsc")
def test_a_run_notes_which_answers_its_fit_and_its_prompt_were_made_by(
    store: Store, tmp_path: Path
) -> None:
    items = [Item(id=f"i{n}", question=f"q{n}", answer=f"answer {n}") for n in range(4)]
    store.import_records("mine", [Record(item=item) for item in items])
    hashes = [answer_hash(item) for item in items]
    fit = DetectorFit(
        detector="offline",
        name="mine",
        base="ab" * 32,
        numbers="one",
        learnt_from=(hashes[0], "0" * 16),
        annotators=("anna",),
        reviews=30,
        made=datetime(2026, 11, 1, tzinfo=UTC),
        report=FitReport.model_validate({key: {} for key in _FIGURES} | dict.fromkeys(_COUNTS, 30)),
        in_use=True,
    )
    keep_fit(store, "mine", fit)
    settings = Settings(home=tmp_path)
    for name, parent, learnt in (("first", None, hashes[1]), ("second", "first", hashes[2])):
        ProgramRegistry(settings.programs).save(
            TunedProgram(
                name=name,
                detector="ucsc-extract",
                strategy="mipro",
                metric="iou",
                task_model="m",
                prompt_model="m",
                dataset="mine",
                labels="gold",
                languages=("en",),
                items=1,
                fingerprint="f",
                learnt_from=(learnt,),
                created="2026-11-01",
                parent=parent,
                predictors={"mark": TunedPredictor(instruction="Mark.")},
            )
        )
    specs = (
        DetectorSpec(detector="offline", options={"fitted": fit.id}),
        DetectorSpec(detector="ucsc-extract", model={"model": "m"}, program="second"),
    )
    note_setups(store, RunRequest(dataset="mine", detectors=specs), settings)
    noted = store.settings("mine")
    assert noted.learnt_by(["offline"]) == {hashes[0]}
    assert noted.learnt_by(["ucsc-extract"]) == {hashes[1], hashes[2]}  # its parent's, too


# One quantity, one figure -------------------------------------------------------------------


def test_rates_measurement_and_report_count_the_same_labels(store: Store, tmp_path: Path) -> None:
    filled(store, "d", truth, 40, 40, by="meta.model")
    gold = said("anna", marked=True).model_copy(
        update={"annotator": "key", "kind": AnnotatorKind.GOLD}
    )
    store.save_annotations("d", [(f"i{at}", gold) for at in (0, 1, 2, 3, 5)])
    home = {"SPANLAB_HOME": str(tmp_path / "home")}

    def means() -> dict[str, list[float]]:
        measured = json.loads(run_here(["measure", "d", "--json"], tmp_path, home).stdout)
        counted = json.loads(
            run_here(["rates", "d", "--by", "meta.model", "--json"], tmp_path, home).stdout
        )
        overview = overview_dataset(store, "d", ExportChoice())
        assert overview.rates
        return {
            "measure": [group["finite"]["mean"] for group in measured["groups"][1:]],
            "rates": [group["answers"]["mean"] for group in counted["groups"]],
            "report": [group.rates.answers.mean for group in overview.rates.groups],
        }

    # Anna's own words count, also where the file has others: she is the one who is measured by.
    found = means()
    assert found["measure"] == pytest.approx([0.5, 0.0]) or found["measure"] == [0.0, 0.5]
    assert found["rates"] == pytest.approx(found["measure"])
    assert found["report"] == pytest.approx(found["measure"])
    plan = MeasurementPlan(annotator="judge", by="meta.model", reviewers=("bert",))
    store.save_annotations("d", [(f"i{at}", said("bert", truth(at) or at < 4)) for at in range(40)])
    store.change_settings("d", lambda old: old.model_copy(update={"measurement": plan}))
    found = means()
    assert sum(found["measure"]) == pytest.approx(0.65)
    assert found["rates"] == pytest.approx(found["measure"])
    assert found["report"] == pytest.approx(found["measure"])


# What answers have in common -----------------------------------------------------------------


def repeated(questions: int, answers: int, wrong: int) -> list[Record]:
    """Answers that are all wrong or all right, by question; two models in turn."""
    records = []
    for at in range(questions * answers):
        question, number = divmod(at, answers)
        text = f"{ANSWER} {at}"
        spans = (Span.of(text, 2, 5),) if question < wrong else ()
        gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=spans)
        model = {"model": f"m{number % 2}"}
        item = Item(id=f"i{at}", question=f"q{question}", answer=text, meta=model)
        records.append(Record(item=item, annotations=(gold,)))
    return records


def test_six_answers_to_each_of_forty_questions_are_forty(store: Store, tmp_path: Path) -> None:
    store.import_records("d", repeated(40, 6, 26))
    every = rates(store, "d", "lang")
    (group,) = every.groups
    assert (group.n, group.clusters) == (240, 40)
    assert (group.rates.answers.low, group.rates.answers.high) == pytest.approx(
        (0.486, 0.785), abs=0.01
    )
    assert any("240 answers to 40 questions" in remark for remark in every.remarks)
    (alone,) = rates(store, "d", "lang", cluster="none").groups
    assert alone.rates.answers.high - alone.rates.answers.low < 0.13  # as if all were new
    home = {"SPANLAB_HOME": str(tmp_path / "home")}
    words = ["rates", "d", "--by", "lang", "--cluster", "meta.model", "--json"]
    shown = json.loads(run_here(words, tmp_path, home).stdout)
    assert shown["groups"][0]["clusters"] == 2


def test_the_variance_of_clusters_by_hand() -> None:
    # Two questions of two answers, one wrong in both: parts ±1/8, sums ±1/4, G/(G-1) = 2:
    # V = 2 · 2/16 = 1/4; half a cluster that was not drawn adds ((1/2)² - (1/4)²)/4 = 3/64.
    y, codes = np.array([1.0, 1, 0, 0]), np.array([0, 0, 1, 1])
    sample = ReviewedSample(y, np.zeros(4), np.ones(4), clusters=codes)
    found = estimate_rate(sample, None, items=4, superpopulation=True)
    assert float(found.variance) == pytest.approx(1 / 4 + 3 / 64)
    # The detector's part on all items counts by cluster, too: λ (F - 1/2)/8 for eight items.
    f, every = np.array([1.0, 1, 0, 0] * 10), np.repeat(np.arange(20), 2)
    ones = ReviewedSample(f, f, np.full(40, 0.5), clusters=every)
    marks = Population(np.tile(f, 2), np.ones(80), np.repeat(np.arange(40), 2))
    exact = estimate_rate(ones, 0.5, items=80, superpopulation=True, population=marks)
    single = ReviewedSample(f, f, np.full(40, 0.5))
    apart = estimate_rate(single, 0.5, items=80, superpopulation=True)
    assert exact.high - exact.low > 1.2 * (apart.high - apart.low)


def test_future_answers_of_few_questions_are_less_certain_than_these(store: Store) -> None:
    filled(store, "apart", truth, 200, 200)
    filled(store, "d", truth, 200, 200, cluster="meta.model")
    apart, two = measure(store, "apart").rate, measure(store, "d").rate
    assert apart.finite == two.finite  # these answers are drawn one by one
    figures = measure(store, "d").figures()
    assert (figures["clusters"], figures["set_aside"]) == (2, 0)
    assert measure(store, "d").sentence == (
        "Too few reviews to say how many answers like these are hallucinated (200 reviewed, of 2 "
        "questions or documents)."
    )
    assert apart.superpopulation
    assert two.superpopulation
    assert two.superpopulation.high > 2 * apart.superpopulation.high


@pytest.mark.parametrize(("questions", "answers"), [(40, 2), (20, 5), (10, 10)])
def test_intervals_hold_and_equal_systems_seldom_differ_whatever_is_alike(
    questions: int, answers: int
) -> None:
    """Answers to a question are all wrong or all right; half of them are reviewed."""
    rng, held, differ = np.random.default_rng(7), np.zeros(2), 0
    codes, n = np.repeat(np.arange(questions), answers), questions * answers
    for _ in range(200):
        y, other = (
            np.repeat(rng.random(questions) < 0.3, answers).astype(np.float64) for _ in range(2)
        )
        counted = mean_of(y.tolist(), codes.tolist())
        order = rng.permutation(n)
        f = np.where(rng.random(n) < 0.95, y[order], 1 - y[order])
        half = ReviewedSample(
            y[order][: n // 2], f[: n // 2], np.full(n // 2, 0.5), clusters=codes[order][: n // 2]
        )
        marks = Population(f, np.ones(n), codes[order])
        found = estimate_rate(half, f.mean(), items=n, superpopulation=True, population=marks)
        ends = ((counted.low, counted.high), (float(found.low), float(found.high)))
        held += [low <= 0.3 <= high for low, high in ends]
        differ += paired(y.tolist(), other.tolist(), codes.tolist()).p < 0.05
    assert held.min() >= 184  # .95 less two standard errors
    assert differ <= 16


def test_answers_to_one_question_flip_together() -> None:
    """Twenty equal differences are one question's luck if they are of one question."""
    a, b = [1.0] * 20 + [0.0] * 20, [0.0] * 20 + [0.0] * 20
    assert paired(a, b).p < 0.001
    assert paired(a, b, [0] * 20 + list(range(1, 21))).p > 0.9
    assert mean_of(a, [0] * 20 + list(range(1, 21))).high > mean_of(a).high + 0.1


def test_an_earlier_method_is_told_by_the_check(store: Store, tmp_path: Path) -> None:
    filled(store, "d", truth, 60, 40)
    content = certify(store, "d").content
    content["measurement"]["method"] = "prediction-powered"
    del content["sha256"], content["measurement"]["clusters"], content["measurement"]["set_aside"]
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    content["sha256"] = sha256(text.encode()).hexdigest()
    (tmp_path / "before.json").write_text(json.dumps(content), "utf-8")
    home = {"SPANLAB_HOME": str(tmp_path / "home")}
    shown = run_here(["measure", "d", "--check", "before.json"], tmp_path, home)
    assert shown.returncode == 0, shown.stderr
    told = "still valid; its figures were estimated otherwise (prediction-powered); now:"
    assert told in " ".join(shown.stdout.split())


def test_alpha_of_one_document_s_answers_is_less_certain() -> None:
    rng = np.random.default_rng(4)

    def items(documents: int) -> list[ItemMarks]:
        found = []
        for at in range(40):
            alike = at % documents % 2 == 0  # of some documents people agree, of others not
            end = 10 if alike else int(rng.integers(11, 20))
            marks = {"a": [Extent(0, 10)], "b": [Extent(0 if alike else 10, end)]}
            related = relations_of(f"q{at % documents}", f"a{at}")
            found.append(ItemMarks(str(at), "en", 40, marks, related))
        return found

    many, few = alpha_interval(items(40)), alpha_interval(items(8))
    assert many is not None
    assert few is not None
    assert few.high - few.low > 1.5 * (many.high - many.low)


# Small numbers -------------------------------------------------------------------------------


def test_no_span_is_no_proof_that_there_is_none() -> None:
    sizes, codes = np.full(3, 37.0), np.arange(3)
    rate, low, high = count_rate(np.zeros(3), sizes, codes)
    assert (rate, low) == (0, 0)
    assert 1000 * high == pytest.approx(33, abs=0.5)
    rate, low, high = count_rate(np.ones(3), np.full(3, 22.0), codes)
    assert (1000 * rate, 1000 * low, 1000 * high) == pytest.approx((45.5, 9.2, 133), abs=0.5)
    together = count_rate(np.array([9.0, 0, 0]), sizes, codes)
    assert together[2] > 2 * count_rate(np.full(3, 3.0), sizes, codes)[2]


def test_spans_per_thousand_characters_are_those_of_all_answers(store: Store) -> None:
    records = repeated(3, 1, 3)
    store.import_records("d", records)
    (group,) = rates(store, "d", "lang").groups
    characters = sum(len(record.item.answer) for record in records)
    assert group.rates.spans
    assert group.rates.spans.mean == pytest.approx(3000 / characters)
    assert group.rates.spans.low < group.rates.spans.mean < group.rates.spans.high


def test_equal_systems_on_few_items_may_differ() -> None:
    same = paired([1.0] * 40, [1.0] * 40)
    assert (same.difference, same.p) == (0, 1)
    half = t_quantile(41) * np.sqrt(2 / 41 / 42)
    assert (same.low, same.high) == pytest.approx((-half, half))
    close = paired([0.5] * 40, [0.5] * 40)  # scores, of which none can differ by more than 1
    assert (close.low, close.high) == pytest.approx((-half, half))


def test_one_degree_of_freedom_is_one() -> None:
    assert t_quantile(1) == pytest.approx(12.706, abs=1e-3)
    assert t_quantile(2) == pytest.approx(4.3027, abs=1e-3)
    assert t_quantile(2, 1 - 0.025 / 30) == pytest.approx(24.46, abs=0.1)
    assert t_quantile(5) == pytest.approx(2.5706, abs=2e-2)


# What single lines hold -----------------------------------------------------------------------


def test_the_spread_of_people_by_hand() -> None:
    """All review all: its variance is added; shares of each: the larger one is taken."""
    sample = ReviewedSample(np.array([1.0, 0] * 20), np.zeros(40), np.ones(40))
    alone = estimate_rate(sample, None, items=40, superpopulation=True)
    for common, variance in ((True, float(alone.variance) + 0.01), (False, 0.01)):
        people = PeopleSpread(0.01, 2, common)
        found = estimate_rate(sample, None, items=40, superpopulation=True, people=people)
        assert float(found.variance) == pytest.approx(variance)
        # Two people have one degree of freedom: it is far wider than by the variance alone.
        assert found.high - found.low > 1.5 * (alone.high - alone.low)


def test_quality_is_for_other_answers_also_once_all_are_reviewed(store: Store) -> None:
    filled(store, "d", truth, 60, 60)
    found = certify(store, "d").content["answers"]["specificity"]
    assert found["low"] < found["mean"] < found["high"]


def test_scores_of_few_questions_have_wider_intervals() -> None:
    values = [0.2 + 0.1 * (at // 10) for at in range(40)]
    codes = [at // 10 for at in range(40)]
    apart, few = mean_of(values), mean_of(values, codes)
    assert few.high - few.low > 3 * (apart.high - apart.low)


def asked_twice(names: tuple[str, str] = ("anna", "anna")) -> list[Record]:
    """Forty questions to two models, two answers each, reviewed; odd questions by the second."""
    records = []
    for turn in range(2):
        for record in two_models(40, (0.2, 0.5), seed=turn + 1):
            item = record.item.model_copy(update={"id": f"{record.item.id}-{turn}"})
            at = int(item.question[1:])
            review = said("anna", bool(item.meta["wrong"]) or names[at % 2] == "ben")
            review = review.model_copy(update={"annotator": names[at % 2]})
            records.append(
                Record(item=item, annotations=(*record.annotations, review)),
            )
    return records


def test_questions_with_several_answers_are_paired_by_the_means_of_their_answers() -> None:
    """By hand: t of 40 differences of two means, each with its own variance."""
    records = asked_twice()
    plan = MeasurementPlan(annotator="judge", by="meta.model")
    sample = MeasuredItems(records, plan)
    sides = MeasuredSide(sample, "new"), MeasuredSide(sample, "old")
    change = compare_rates(*sides, like=True)
    assert change is not None and change.questions == 40
    wrong = np.zeros((2, 40))
    for record in records:
        model = ("old", "new").index(str(record.item.meta["model"]))
        wrong[model, int(record.item.question[1:])] += bool(record.item.meta["wrong"]) / 2
    differences = wrong[1] - wrong[0]
    assert change.difference.mean == pytest.approx(differences.mean())
    half = t_quantile(38) * differences.std(ddof=1) / np.sqrt(40)
    assert change.difference.high == pytest.approx(differences.mean() + half, abs=0.02)

    half_done = [
        r.model_copy(update={"annotations": r.annotations[:1]})
        if at in {item.item_id for item in sample.items[-30:]}
        else r
        for r in records
        for at in [r.item.id]
    ]
    part = MeasuredItems(half_done, plan)
    change = compare_rates(MeasuredSide(part, "new"), MeasuredSide(part, "old"), like=True)
    assert change is not None and change.questions == 0
    assert change.how == (
        "of all items; paired once all answers to their common questions are reviewed"
    )


def test_a_few_people_widen_the_interval_and_the_measurement_says_so(store: Store) -> None:
    plan = MeasurementPlan(annotator="judge", half_width=0.1)
    for name, people in (("one", ("anna", "anna")), ("two", ("anna", "ben"))):
        store.import_records(name, asked_twice(people))
        store.change_settings(name, lambda old: old.model_copy(update={"measurement": plan}))
    one, two = measure(store, "one"), measure(store, "two")
    assert not [remark for remark in one.remarks if "people reviewed" in remark]
    same = MeasuredItems(asked_twice(("anna", "ben")), plan)
    like = same.estimate(like=True, by_others=False)
    assert like is not None
    assert (
        "2 people reviewed, and others may differ as these do. Marked by these alone, future "
        f"answers have {100 * float(like.low):.1f} to {100 * float(like.high):.1f} %. "
        "More reviewers, or items that all of them review, narrow the interval."
    ) in two.remarks


def test_an_interval_that_is_reached_for_these_answers_says_what_future_ones_have(
    store: Store,
) -> None:
    plan = MeasurementPlan(annotator="judge", half_width=0.1)
    store.import_records("d", asked_twice(("anna", "ben")))
    store.change_settings("d", lambda old: old.model_copy(update={"measurement": plan}))
    last = measurement_queue(store, "d")[-1]
    kept = [
        r.model_copy(update={"annotations": r.annotations[: 1 if r.item.id == last else None]})
        for r in store.records("d")
    ]
    store.import_records("last-open", kept)
    store.change_settings("last-open", lambda old: old.model_copy(update={"measurement": plan}))
    line = measure(store, "last-open").line
    assert "; ± 10 points is reached for these answers. Future answers: " in line


def test_no_difference_is_above_one_and_of_a_lone_cluster_all_is_possible() -> None:
    sure = paired([1.0] * 30, [0.25] * 30)
    assert sure.high <= 1
    lone = paired([1.0] * 30, [0.0] * 30, [0] * 30)
    assert (lone.low, lone.high, lone.p) == (-1, 1, 1)


def test_where_p_is_small_and_the_interval_has_0_the_table_says_which_counts(
    store: Store,
) -> None:
    """Few characters differ on many questions: the answers differ, their characters may not."""
    records = []
    for record in two_models(40, (0.0, 0.5)):
        gold = Annotation(
            annotator="gold",
            kind=AnnotatorKind.GOLD,
            spans=(Span.of(ANSWER * 30, 0, 2),) if record.item.meta["wrong"] else (),
        )
        item = record.item.model_copy(update={"answer": ANSWER * 30})
        records.append(Record(item=item, annotations=(gold,)))
    store.import_records("d", records)
    found = rates(store, "d", "model")
    (pair,) = found.pairs
    assert pair.characters is not None
    assert pair.characters.p < 0.05 and pair.characters.low < 0 < pair.characters.high
    assert pair.answers.difference == pytest.approx(0.5 if pair.a == "new" else -0.5)
    assert pair.answers.low * pair.answers.high > 0
    remark = found.tables()[-1].remarks[-1]
    assert remark.startswith("Where an interval contains 0, no difference is shown")
