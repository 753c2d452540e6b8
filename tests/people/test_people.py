"""People in a campaign: what they have left, the forecast, known answers, tests, who left."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, timedelta
from io import BytesIO

import pytest
from random_queues import is_of_share

from spanlab.base.errors import AccessError, NotFoundError, UsageError
from spanlab.data.export_choice import ExportChoice
from spanlab.data.exporting import export_dataset
from spanlab.oplog.operations import AddSpan, FinishItem, SentOperation
from spanlab.people.entrance import (
    begin_test,
    change_checks,
    check_items_of,
    check_may_write,
    describe_leaving,
    entrance_of,
    let_in,
)
from spanlab.people.overview import done_by, oversee, remind_table
from spanlab.review.adjudication import check_adjudicator
from spanlab.review.writes import AddedEvidence, add_evidence
from spanlab.schema import ADJUDICATED, Annotation, AnnotatorKind, Item, Record, Role, Span
from spanlab.storage import Store
from spanlab.storage.datasets import copy_as_gold, summary_of
from spanlab.worklists import check_items, entrances, plans, sight

ANSWER = "0123456789"
TODAY = date(2026, 3, 20)


@pytest.fixture
def store(store: Store) -> Store:
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=(Span.of(ANSWER, 2, 6),))
    store.import_records(
        "d",
        [
            *(
                Record(item=Item(id=f"known {n}", answer=ANSWER), annotations=(gold,))
                for n in range(8)
            ),
            *(Record(item=Item(id=f"item {n}", answer=ANSWER)) for n in range(6)),
        ],
    )
    return store


def _mark(store: Store, item: str, person: str, start: int, end: int) -> None:
    base = store.review("d", item, person).version
    add = AddSpan(span=f"s{item}{person}".replace(" ", ""), start=start, end=end)
    writes = [
        SentOperation(f"{item} {person}", base + n, base + n - 1, operation, seconds=seconds)
        for n, operation, seconds in ((1, add, None), (2, FinishItem(), 30.0))
    ]
    assert not store.apply("d", item, person, writes).refused


def test_the_end_is_foreseen_from_the_last_days() -> None:
    steady = {TODAY - timedelta(days=n): 10 for n in range(1, 8)}
    assert done_by(steady, 55, TODAY) == date(2026, 3, 26)
    uneven = {TODAY - timedelta(days=n): 20 * (n % 2) for n in range(1, 15)}
    assert done_by(uneven, 200, TODAY) == TODAY + timedelta(days=20)
    assert done_by({TODAY - timedelta(days=30): 5}, 5, TODAY) is None
    assert done_by({}, 5, TODAY) is None
    assert done_by(steady, 0, TODAY) is None
    assert done_by({TODAY: 5}, 10, TODAY) == TODAY + timedelta(days=2)


def test_the_lead_sees_what_each_has_left_how_well_they_mark_and_whom_to_remind(
    store: Store,
) -> None:
    people = ("Ada", "Ben", "Cleo")
    store.change_settings(
        "d",
        lambda now: now.model_copy(update={"overlap": 2, "assigned_to": people}).with_guidelines(
            "# Read me"
        ),
    )
    change_checks(store, "d", {"share": 0.25, "warn_below": 0.6})
    for number in range(3):
        _mark(store, f"known {number}", "Ada", 2, 6)
        _mark(store, f"known {number}", "Ben", 0, 4)
    share = store.settings("d").share_of("Ada")
    assert share is not None
    mine = [n for n in range(6) if is_of_share(share, n)]
    _mark(store, f"item {mine[0]}", "Ada", 0, 5)
    entrances.confirm_read(store, "d", "Ada", 1)
    found = oversee(store, "d")
    ada, ben, cleo = found.people
    assert found.plan is not None
    assert (found.plan.needed, found.plan.done) == (12, 1)
    assert (ada.assigned, ada.done, ada.left, ada.per_hour) == (4, 1, 3, 120.0)
    assert [ada.known, ben.known] == pytest.approx([1, 1 / 3])
    assert ada.agreement == pytest.approx(1 / 3)
    assert cleo.agreement is None
    assert ada.warning == ""
    assert ben.warning == "check items below .60; guidelines not read"
    (table,) = found.tables()
    read = [column.title for column in table.columns].index("Guidelines read (now 1)")
    assert [row[read] for row in table.rows] == ["version 1", None, None]
    later = datetime.now(UTC) + timedelta(days=3)
    assert [row[0] for row in remind_table(found, later).rows] == ["Cleo", "Ben", "Ada"]
    assert remind_table(found, later).rows[1][3] == 3
    before = describe_leaving(store, "d", "Ben")
    assert "4 items of Ben, assigned and not finished" in before
    assert "finished counts (0 items)" in before
    plans.take_back(store, "d", "Ben")
    after = oversee(store, "d")
    assert sum(who.left or 0 for who in after.people) == 11
    assert after.people[1].warning.startswith("left")
    with pytest.raises(NotFoundError, match="Dan"):
        describe_leaving(store, "d", "Dan")


def test_a_test_on_known_items_comes_before_anything_else(store: Store) -> None:
    change_checks(store, "d", {"test_items": 3, "pass_at": 0.6})
    with pytest.raises(UsageError, match="test before anybody begins"):
        check_may_write(store, "d", "Ada", "item 1")
    assert entrance_of(store, "d", "Ada").stage == "begin"
    begin_test(store, "d", "Ada")
    state = entrance_of(store, "d", "Ada")
    assert (state.stage, state.done, len(state.items)) == ("test", 0, 3)
    for item in state.items:
        check_may_write(store, "d", "Ada", item)
        _mark(store, item, "Ada", 0, 4)
    state = entrance_of(store, "d", "Ada")
    assert (state.stage, state.again) == ("failed", True)
    assert state.score == pytest.approx(1 / 3)
    begin_test(store, "d", "Ada")
    for item in entrance_of(store, "d", "Ada").items:
        _mark(store, item, "Ada", 2, 6)
    state = entrance_of(store, "d", "Ada")
    assert (state.stage, state.score) == ("open", 1.0)
    check_may_write(store, "d", "Ada", "item 1")
    change_checks(store, "d", {"retry": False})
    begin_test(store, "d", "Ben")
    for item in entrance_of(store, "d", "Ben").items:
        _mark(store, item, "Ben", 0, 1)
    assert not entrance_of(store, "d", "Ben").again
    with pytest.raises(UsageError, match="at no test"):
        begin_test(store, "d", "Ben")
    let_in(store, "d", "Ben")
    check_may_write(store, "d", "Ben", "item 1")
    begin_test(store, "d", "Cleo")
    for item in entrance_of(store, "d", "Cleo").items:
        _mark(store, item, "Cleo", 0, 1)
    assert entrance_of(store, "d", "Cleo").stage == "failed"
    assert [(who.name, who.test, who.has_begun) for who in oversee(store, "d").people] == [
        ("Ada", "not passed: IoU .33, then passed: IoU 1.00", True),
        ("Ben", "not passed: IoU .00, then waived", True),
        ("Cleo", "not passed: IoU .00", False),
    ]


def test_known_answers_need_reviewers_who_never_see_what_others_marked(store: Store) -> None:
    change_checks(store, "d", {"share": 0.1})
    with pytest.raises(UsageError, match="Always hidden"):
        store.change_settings("d", lambda now: now.model_copy(update={"always_blind": False}))
    with pytest.raises(UsageError, match=r"0\.5"):
        change_checks(store, "d", {"share": 0.9})
    change_checks(store, "d", None)
    assert store.settings("d").known is None


def test_an_annotator_is_scored_by_what_they_may_not_see_and_leads_nothing(store: Store) -> None:
    store.change_settings("d", lambda now: now.model_copy(update={"overlap": 1}))
    change_checks(store, "d", {"test_items": 2})
    store.access.sign_in("oidc:ada", "Ada")
    store.access.grant("oidc:ada", Role.ANNOTATOR, "d")
    mine = store.acting_as(store.access.actor("oidc:ada"), hides=True)
    begin_test(mine, "d", "Ada")
    for item in entrance_of(mine, "d", "Ada").items:
        assert mine.record("d", item).annotations == ()
        _mark(mine, item, "Ada", 2, 6)
    assert entrance_of(mine, "d", "Ada").score == 1.0
    entrances.confirm_read(mine, "d", "Ada", 1)
    for refused in (
        lambda: oversee(mine, "d"),
        lambda: let_in(mine, "d", "Ada"),
        lambda: plans.take_back(mine, "d", "Ben"),
        lambda: check_items.given_to(mine, "d", "Ada"),
        lambda: check_items_of(mine, "d", "Ben"),
        lambda: plans.plan(mine, "d"),
        lambda: entrances.confirm_read(mine, "d", "Ben", 1),
        lambda: change_checks(mine, "d", None),
    ):
        with pytest.raises(AccessError):
            refused()
    expires = datetime.now(UTC) + timedelta(days=1)
    store.access.make_token("invitation", Role.ANNOTATOR, "d", label="Cleo", expires=expires)
    (table,) = [each for each in oversee(store, "d").tables() if each.key == "tokens"]
    assert table.rows[0][1:3] == ("Cleo", "annotator")


def _export(store: Store, choice: ExportChoice | None = None) -> dict[str, set[str]]:
    target = BytesIO()
    export_dataset(store, "d", target, choice or ExportChoice())
    lines = map(json.loads, target.getvalue().splitlines())
    return {line["id"]: {a["annotator"] for a in line.get("annotations", ())} for line in lines}


def test_known_answers_adjudication_and_export_go_together(store: Store) -> None:
    change_checks(store, "d", {"share": 0.25})
    settings = store.settings("d")
    assert settings.known is not None
    assert settings.known.labels == ("gold",)
    store.change_settings(
        "d", lambda now: now.model_copy(update={"overlap": 2, "assigned_to": ("Ada", "Ben")})
    )
    before = plans.plan(store, "d")
    for person in ("Ada", "Ben"):
        _mark(store, "item 0", person, 0, 4)
        _mark(store, "known 0", person, 2, 6)
    decided = SentOperation("lead", 1, 0, AddSpan(span="s", start=0, end=4), author="Lena")
    done = SentOperation("lead", 2, 1, FinishItem(), author="Lena")
    assert not store.apply("d", "item 0", ADJUDICATED, [decided, done]).refused
    # A decision is no known answer: the item stays in the plan, and others still review it.
    assert check_items.check_ids(store, "d") == {f"known {n}" for n in range(8)}
    after = plans.plan(store, "d")
    assert before is not None
    assert after is not None
    assert after.needed == before.needed == 12
    exported = _export(store)
    assert len(exported) == 14
    assert exported["item 0"] == {"Ada", "Ben", ADJUDICATED}
    assert exported["known 0"] == {"gold", "Ada", "Ben"}
    without = _export(store, ExportChoice(known_items=False))
    assert set(without) == {f"item {n}" for n in range(6)}
    assert oversee(store, "d").people[0].known == 1.0


def test_whose_labels_the_known_answers_are_is_for_the_lead_to_say(store: Store) -> None:
    _mark(store, "item 0", "Lena", 0, 4)
    assert copy_as_gold(store, "d", "Lena", "known") == 1
    change_checks(store, "d", {"labels": "known"})
    assert check_items.check_ids(store, "d") == {"item 0"}
    store.rename_annotator("d", "known", "by Lena")
    assert check_items.check_ids(store, "d") == {"item 0"}
    change_checks(store, "d", {"labels": "gold,by Lena"})
    assert len(check_items.check_ids(store, "d")) == 9
    old = store.settings("d").known
    assert old is not None
    store.change_settings(  # as 1.0 stored it
        "d", lambda now: now.model_copy(update={"known": old.model_copy(update={"labels": ()})})
    )
    assert len(check_items.check_ids(store, "d")) == 9


def test_who_does_not_review_sees_all_and_who_does_when_all_is_decided(store: Store) -> None:
    store.change_settings("d", lambda now: now.model_copy(update={"always_blind": True}))
    _mark(store, "item 0", "Ada", 0, 4)

    def shown(name: str) -> set[str]:
        record = sight.seen_by(store, "d", name).record("d", "item 0")
        return {annotation.annotator for annotation in record.annotations}

    _mark(store, "item 1", "Ben", 0, 4)
    assert shown("Lena") == {"Ada"}
    assert shown("") == shown("Ben") == set()
    with pytest.raises(UsageError, match="reviews this dataset blind and has 13 items left"):
        check_adjudicator(store, summary_of(store, "d"), "Ben")
    check_adjudicator(store, summary_of(store, "d"), "Lena")
    for item in ("item 0", *(f"item {n}" for n in range(2, 6)), *(f"known {n}" for n in range(8))):
        _mark(store, item, "Ben", 0, 4)
    assert shown("Ben") == {"Ada", "Ben"}
    check_adjudicator(store, summary_of(store, "d"), "Ben")


def test_before_a_test_nobody_adds_evidence(store: Store) -> None:
    change_checks(store, "d", {"test_items": 3})
    pasted = AddedEvidence(text="Detectors would read this.")
    with pytest.raises(UsageError, match="test before anybody begins"):
        add_evidence(store, "d", "item 1", pasted, reviewer="Ada")
    assert not store.record("d", "item 1").item.passages
    assert add_evidence(store, "d", "item 1", pasted)  # who adjudicates has no test
