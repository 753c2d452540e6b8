"""An answer that is called right as a whole has no mark, beside answers whose marks have places."""

from __future__ import annotations

import pytest

import spanlab
from spanlab import Annotation, Item, Record, Span
from spanlab.measure.measurement import measure
from spanlab.measure.rate_tally import rates
from spanlab.measure.sample import plan_measurement, read_measured
from spanlab.schema import Claim, MeasurementPlan
from spanlab.storage import Store
from spanlab.text.labels import vote

ANSWER = "Tower built in 1925 there."  # 26 characters, of which 4 are wrong in every second one
YEAR = Span.of(ANSWER, 15, 19)
TRUE = 2 / 26


def said(name: str, wrong: bool, placed: bool = True) -> Annotation:
    spans = (YEAR,) if wrong and placed else ()
    kind = "gold" if name == "gold" else "person"
    return Annotation(annotator=name, kind=kind, spans=spans, answer_hallucinated=wrong)  # type: ignore[arg-type]


def records(*names: str, unplaced: int = 0) -> list[Record]:
    judge = Annotation(annotator="judge", kind="detector", spans=(Span.of(ANSWER, 0, 5),))
    return [
        Record(
            item=Item(id=f"i{at}", question=f"q{at}", answer=ANSWER),
            annotations=(judge, *(said(name, at % 2 == 0, at >= unplaced) for name in names)),
        )
        for at in range(20)
    ]


@pytest.mark.parametrize("names", [("gold",), ("Ada", "Ben")])
def test_rates_count_what_is_called_right(store: Store, names: tuple[str, ...]) -> None:
    store.import_records("d", records(*names))
    report = rates(store, "d", "lang")
    assert report.unplaced == 0
    found = report.groups[0].rates
    assert found.characters is not None
    assert found.characters.mean == pytest.approx(TRUE)
    assert found.answers.mean == 0.5


def test_where_answers_are_called_wrong_without_a_place_neither_has_places(store: Store) -> None:
    store.import_records("d", records("gold", unplaced=1))
    report = rates(store, "d", "lang")
    found = report.groups[0].rates
    assert (report.unplaced, found.answers.mean) == (11, 0.5)
    assert found.characters is not None
    assert found.characters.mean == pytest.approx(2 * TRUE)


@pytest.mark.parametrize(("unplaced", "reviews", "rate"), [(0, 20, TRUE), (1, 9, 2 * TRUE)])
def test_a_measurement_of_characters_counts_the_same(
    store: Store, unplaced: int, reviews: int, rate: float
) -> None:
    store.import_records("d", records("Ada", unplaced=unplaced))
    plan_measurement(store, "d", MeasurementPlan(annotator="judge", unit="characters"))
    found = measure(store, "d")
    assert found.rate.reviews == reviews
    assert found.rate.finite is not None
    assert found.rate.finite.mean == pytest.approx(rate, abs=0.03)
    items = read_measured(store, "d")
    before = items.line
    items.refresh(store.record("d", "i1"))
    assert items.line == before


def test_claims_that_are_refuted_without_a_mark_are_told(store: Store) -> None:
    claims = [Claim(text="It is new.", verdict="refuted"), Claim(text="It is a tower.")]
    gold = Annotation(annotator="gold", kind="gold", claims=claims)
    item = Item(id="a", answer=ANSWER)
    store.import_records("d", [Record(item=item, annotations=(gold,))])
    (told,) = (one for one in rates(store, "d", "lang").remarks if "claims" in one)
    assert told.startswith("1 answer with claims that are called wrong")


def test_scores_votes_and_agreement_count_it_too() -> None:
    score = spanlab.score(records("gold"), "judge")
    assert score.report is not None
    assert len(score.report.items) == 20
    assert score.unplaced == 0
    both = [said("Ada", True), said("Ben", False)]
    shares = vote(records()[0].item, both).spans
    assert [(span.start, span.end, span.prob) for span in shares] == [(15, 19, 0.5)]
    mixed = [
        one.model_copy(update={"annotations": (said("Ada", True), said("Ben", at > 9))})
        for at, one in enumerate(records())
    ]
    assert spanlab.agreement(mixed).everybody.n == 20
    # Beside a detector's marks gold may be of whole answers.
    assert spanlab.agreement(records("gold")).everybody.n == 10
    verdicts = [said("Ada", False), said("Ben", False)]
    assert vote(records()[0].item, verdicts).is_verdict_only
