"""Which model hallucinates more: rates by a field of the items, and paired on common questions."""

from __future__ import annotations

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from commands import run_here

from spanlab.base.errors import UsageError
from spanlab.measure.rate_tally import rates
from spanlab.measure.rates import fields_of, model_field
from spanlab.output.tables import MeanInterval
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Record, Span, Status, Verdict
from spanlab.scoring.comparison import MeanDifference, holm, paired
from spanlab.scoring.files import unlike_p
from spanlab.storage import Store

ANSWER = "0123456789"


def record(
    name: str,
    model: str | None,
    *marks: tuple[int, int],
    who: str = "gold",
    kind: AnnotatorKind = AnnotatorKind.GOLD,
    **more: object,
) -> Record:
    """An answer of ten characters to the question that the first part of its name says."""
    meta = {} if model is None else {"run": {"model": model}}
    item = Item(
        id=name, lang="en", question=name.split("-", maxsplit=1)[0], answer=ANSWER, meta=meta
    )
    spans = tuple(Span.of(ANSWER, start, end, label="number") for start, end in marks)
    fields = {"annotator": who, "kind": kind, "spans": spans, **more}
    return Record(item=item, annotations=(Annotation.model_validate(fields),))


def of(rate: MeanInterval | None) -> float:
    """The mean of a rate that must be there."""
    assert rate is not None
    return rate.mean


def claims(*verdicts: Verdict) -> tuple[Claim, ...]:
    return tuple(Claim(text=f"{n}", verdict=verdict) for n, verdict in enumerate(verdicts))


def test_a_label_counts_as_much_as_the_answer_does_of_which_one_of_two_says_it(
    store: Store,
) -> None:
    said = [
        record("q", "a", *marks, who=who, kind=AnnotatorKind.PERSON).annotations[0]
        for who, marks in (("Ada", [(0, 2), (4, 7)]), ("Ben", []))
    ]
    store.import_records("d", [Record(item=record("q", "a").item, annotations=tuple(said))])
    (group,) = rates(store, "d", "meta.run.model").groups
    assert (of(group.rates.answers), group.labels) == (0.5, {"number": 0.5})


def test_what_is_less_than_likely_is_no_mark_and_has_no_label(store: Store) -> None:
    said = record("q", "a", (0, 2)).annotations[0]
    spans = [
        Span.of(ANSWER, start, end, label=label, prob=prob)
        for start, end, label, prob in ((0, 2, "number", 0.9), (2, 4, "other", 0.4))
    ]
    said = said.model_copy(update={"spans": tuple(spans)})
    store.import_records("d", [Record(item=record("q", "a").item, annotations=(said,))])
    (group,) = rates(store, "d", "meta.run.model").groups
    assert group.labels == {"number": 1.0}
    assert max(rate.high or 0 for rate in [group.rates.spans] if rate) <= 1_000


def test_rates_by_hand(store: Store) -> None:
    """Model a: one of two answers, 5 of 20 characters, 2 spans on 20. Model b: nothing."""
    store.import_records(
        "d",
        [
            record("q1-a", "a", (0, 2), (4, 7)),
            record("q2-a", "a", claims=claims("supported", "refuted", "not-supported")),
            record("q1-b", "b"),
            record("q2-b", "b"),
            record("q3-b", "b", status=Status.SKIPPED),
        ],
    )
    found = rates(store, "d", "meta.run.model")
    assert (found.annotators, found.unlabelled) == (("gold",), 1)
    b, a = found.groups
    assert (b.value, b.n, of(b.rates.characters), b.rates.claims) == ("b", 2, 0.0, None)
    assert (a.value, a.n, a.labels) == ("a", 2, {"number": 0.5})
    assert a.rates.answers.mean == pytest.approx(1 / 2)
    assert of(a.rates.characters) == pytest.approx((5 / 10 + 0) / 2)
    assert of(a.rates.spans) == pytest.approx((2 / 10 * 1000 + 0) / 2)
    assert a.rates.claims is not None
    assert a.rates.claims.mean == pytest.approx(2 / 3)
    (pair,) = found.pairs
    assert (pair.a, pair.b, pair.n) == ("a", "b", 2)
    assert pair.characters is not None and pair.characters.difference == pytest.approx(0.25)


def test_people_count_on_average_where_there_is_no_gold(store: Store) -> None:
    ann = record("q-a", "a", (0, 10), who="ann", kind=AnnotatorKind.PERSON)
    ben = record("q-a", "a", who="ben", kind=AnnotatorKind.PERSON)
    both = ann.model_copy(update={"annotations": ann.annotations + ben.annotations})
    store.import_records("d", [both])
    assert rates(store, "d", "meta.run.model").groups[0].rates.answers.mean == 0.5
    assert rates(store, "d", "lang", ["ann"]).groups[0].rates.answers.mean == 1.0


def test_items_without_the_field_are_a_group_of_their_own(store: Store) -> None:
    store.import_records("d", [record("q-a", "a", (0, 5)), record("q-n", None)])
    assert [group.value for group in rates(store, "d", "meta.run.model").groups] == ["(none)", "a"]
    assert fields_of(store, "d") == ("lang", "meta.run.model", "label")


def test_by_label_each_has_all_items_and_its_own_spans(store: Store) -> None:
    """Of 20 characters "number" has 4, "name" 2; what is not above .5 is only suggested."""
    first, second = record("q1-a", "a", (0, 4)), record("q2-a", "a")
    spans = (
        *first.annotations[0].spans,
        Span.of(ANSWER, 3, 5, label="name"),
        Span.of(ANSWER, 8, 9, prob=0.5, label="name"),
    )
    both = first.annotations[0].model_copy(update={"spans": spans})
    store.import_records("d", [first.model_copy(update={"annotations": (both,)}), second])
    found = {group.value: group for group in rates(store, "d", "label").groups}
    assert {value: group.n for value, group in found.items()} == {"number": 2, "name": 2}
    assert of(found["number"].rates.characters) == pytest.approx(4 / 20)
    assert of(found["name"].rates.characters) == pytest.approx(2 / 20)
    assert found["name"].rates.answers.mean == 0.5


@pytest.mark.parametrize(
    ("field", "said"),
    [
        (
            "meta.run.nothing",
            "no item of 'd' has meta.run.nothing; available: lang, meta.run.model",
        ),
        ("topic", "it is lang, label, model or a path such as meta.topic"),
    ],
)
def test_a_field_that_is_not_there_is_refused(store: Store, field: str, said: str) -> None:
    store.import_records("d", [record("q-a", "a")])
    with pytest.raises(UsageError, match=said):
        rates(store, "d", field)


def test_whose_labels_count_must_be_clear(store: Store) -> None:
    two = [record(f"q-{who}", "a", who=who, kind=AnnotatorKind.DETECTOR) for who in ("one", "two")]
    store.import_records("d", two)
    with pytest.raises(UsageError, match="say whose labels count; 'd' has the annotators: one, tw"):
        rates(store, "d", "lang")


@pytest.mark.parametrize(
    ("fields", "likely"),
    [
        pytest.param(("lang", "meta.run", "meta.model_id"), "meta.model_id", id="in-small-letters"),
        pytest.param(("lang", "meta.Temperature", "meta.Model"), "meta.Model", id="capital"),
        pytest.param(("lang", "meta.MODEL-NAME"), "meta.MODEL-NAME", id="shouted"),
        pytest.param(("lang", "meta.model_size", "meta.modelId"), "meta.modelId", id="its-name"),
        pytest.param(("lang", "meta.model.size", "meta.model.name"), "meta.model.name", id="below"),
        pytest.param(("lang", "meta.seed", "meta.Generator"), "meta.Generator", id="generator"),
        pytest.param(("lang", "meta.seed", "label"), None, id="none"),
    ],
)
def test_the_field_that_looks_like_a_model(fields: tuple[str, ...], likely: str | None) -> None:
    assert model_field(fields) == likely


@pytest.mark.parametrize(
    ("kinds", "whose", "is_said"),
    [
        pytest.param({"one": AnnotatorKind.DETECTOR}, "one", True, id="detector"),
        pytest.param(
            {"one": AnnotatorKind.DETECTOR, "v": AnnotatorKind.VOTE},
            "v",
            True,
            id="vote-of-detectors",
        ),
        pytest.param(
            {"ann": AnnotatorKind.PERSON, "v": AnnotatorKind.VOTE}, "v", False, id="vote-of-people"
        ),
        pytest.param(
            {"one": AnnotatorKind.DETECTOR, "ann": AnnotatorKind.PERSON}, "ann", False, id="person"
        ),
        pytest.param(
            {"one": AnnotatorKind.DETECTOR, "gold": AnnotatorKind.GOLD}, "gold", False, id="gold"
        ),
    ],
)
def test_an_interval_of_a_detectors_share_lacks_the_detectors_own_error(
    store: Store, tmp_path: Path, kinds: dict[str, AnnotatorKind], whose: str, is_said: bool
) -> None:
    said = tuple(
        record("q", "a", (0, 2), who=who, kind=kind).annotations[0] for who, kind in kinds.items()
    )
    items = [record(f"q{n}", "a").model_copy(update={"annotations": said}) for n in (1, 2)]
    store.import_records("d", items)
    environment = {"SPANLAB_HOME": str(tmp_path / "home")}
    asked = ["rates", "d", "--by", "lang", "--annotators", whose]
    remark = f"sampling error only, not the errors that “{whose}” makes"
    assert (remark in run_here(asked, tmp_path, environment).stdout) == is_said
    remarks = json.loads(run_here([*asked, "--json"], tmp_path, environment).stdout)["remarks"]
    assert (remark in "".join(remarks)) == is_said


def test_a_group_of_one_item_has_no_interval(store: Store, tmp_path: Path) -> None:
    store.import_records("d", [record("q", "a", (0, 2))])
    shown = run_here(["rates", "d", "--by", "lang"], tmp_path, {"SPANLAB_HOME": f"{tmp_path}/home"})
    (row,) = (line.split() for line in shown.stdout.splitlines() if line.startswith("en"))
    assert row[:7] == ["en", "1", "20.0", "%", "100.0", "%", "100.0"]
    assert "No interval: only one item" in shown.stdout


def test_the_command_prints_a_table_and_json(store: Store, tmp_path: Path) -> None:
    store.import_records("d", [record("q1-a", "a", (0, 2)), record("q1-b", "b")])
    environment = {"SPANLAB_HOME": str(tmp_path / "home")}
    shown = run_here(["rates", "d", "--by", "meta.run.model"], tmp_path, environment)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout.splitlines()[3].split()[:4] == ["a", "1", "20.0", "%"]
    printed = run_here(["rates", "d", "--by", "lang", "--json"], tmp_path, environment)
    assert json.loads(printed.stdout)["groups"][0]["characters"]["mean"] == pytest.approx(0.1)


def test_many_equal_models_seldom_seem_to_differ() -> None:
    """Of 66 tests of twelve models without a difference one is below .05 nearly always."""
    generator = np.random.default_rng(3)
    below = [0, 0]
    for _ in range(20):
        shares = generator.random((12, 40))
        tested = [paired(list(a), list(b)).p for a, b in combinations(shares, 2)]
        below[0] += min(tested) < 0.05
        below[1] += min(holm(tested)) < 0.05
    assert below[0] >= 15 and below[1] <= 3


def test_holms_correction_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([]) == []


def test_why_an_interval_and_p_say_different_things_is_told() -> None:
    def difference(low: float, high: float, p: float) -> MeanDifference:
        return MeanDifference(difference=(low + high) / 2, low=low, high=high, p=p)

    assert unlike_p([difference(-0.25, -0.005, 0.02), difference(-0.1, 0.2, 0.5), None]) == ()
    (alone,) = unlike_p([difference(-0.25, -0.005, 0.057)])
    assert "p allows for all of them" in alone
    (careful,) = unlike_p([difference(-0.25, 0.01, 0.03)])
    assert "Where an interval contains 0" in careful
