"""Who only annotates gets from the store what stands in their own list, whatever they ask for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from spanlab.base.errors import NotFoundError
from spanlab.base.settings import Settings
from spanlab.measure.sample import read_measured
from spanlab.oplog.operations import FinishItem, SentOperation
from spanlab.people.entrance import prepare_queue
from spanlab.review import queue as review
from spanlab.review.writes import AddedEvidence, add_evidence
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    AssignedShare,
    CheckRules,
    Item,
    MeasurementPlan,
    QueueQuery,
    Record,
    Role,
)
from spanlab.storage import Store
from spanlab.worklists import drawing, looks, paging, plans

NAMES = tuple(f"{n:02}" for n in range(40))
CHECKS: dict[str, object] = {"known": CheckRules(labels=("gold",), share=0.2)}
PLANS: dict[str, dict[str, object]] = {
    "check items": CHECKS,
    "assigned": {"overlap": 1, "assigned_to": ("Ada", "Ben")},
    "assigned, with check items": {"overlap": 1, "assigned_to": ("Ada", "Ben"), **CHECKS},
    "what others leave, with check items": {"overlap": 1, **CHECKS},
}


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")
    said = Annotation(annotator="detector", kind=AnnotatorKind.DETECTOR)
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD)
    with Store.open(settings) as store:
        records = (
            Record(
                item=Item(id=name, answer="said"),
                annotations=(said, gold) if int(name) % 3 == 0 else (said,),
            )
            for name in NAMES
        )
        store.import_records("d", records)
        yield store


def _adas(store: Store, rules: dict[str, object]) -> tuple[Store, set[str]]:
    """Let Ada begin, and return the database as her pages have it, with what is in her list."""
    plan = MeasurementPlan(annotator="detector", half_width=0.1)
    rules = {**rules, "measurement": plan}
    store.change_settings("d", lambda old: old.model_copy(update=rules))
    store.access.sign_in("oidc:ada", "Ada")
    store.access.grant("oidc:ada", Role.ANNOTATOR, "d")
    mine = store.acting_as(store.access.actor("oidc:ada"), hides=True)
    prepare_queue(mine, "d", "Ada")
    query = QueueQuery(reviewer="Ada", listed=True, reserve=True, blind=True, limit=500)
    for _ in range(8):
        drawing.draw_next(mine, "d", query)
    own = {row.item_id for row in paging.page(store, "d", query).rows}
    assert 8 <= len(own) < len(NAMES)
    return mine, own


@pytest.mark.parametrize("rules", PLANS.values(), ids=PLANS)
def test_no_query_of_an_annotator_leads_out_of_her_list(
    store: Store, rules: dict[str, object]
) -> None:
    mine, own = _adas(store, rules)
    bens = AssignedShare(1, 2, 1)
    for query in (
        QueueQuery(reviewer="Ada", limit=500),
        QueueQuery(reviewer="Ada", share=bens, limit=500),
        QueueQuery(reviewer="Ada", listed=True, share=bens, limit=500),
        QueueQuery(reviewer="Ada", sample=NAMES, limit=500),
        QueueQuery(reviewer="Ada", order="passages", limit=500),
        QueueQuery(reviewer="Ada", text="said", limit=500),
    ):
        assert {row.item_id for row in paging.page(mine, "d", query).rows} == own
        assert len(paging.positions(mine, "d", query)) == len(own)
        assert paging.standing(mine, "d", query, min(own)).total == len(own)
    query = QueueQuery(reviewer="Ada", text=min({*NAMES} - own))
    assert review.items(mine, "d", query).rows == ()
    assert {record.item.id for record in mine.records("d")} == own
    assert {record.item.id for record in mine.records_at("d", range(40))} == own


@pytest.mark.parametrize("rules", PLANS.values(), ids=PLANS)
def test_an_item_outside_of_her_list_is_not_there_for_an_annotator(
    store: Store, rules: dict[str, object]
) -> None:
    mine, own = _adas(store, rules)
    outside, query = min({*NAMES} - own), QueueQuery(reviewer="Ada")
    done = [SentOperation("s", 1, 0, FinishItem())]
    attempts: dict[str, Callable[[Store, str], object]] = {
        "reads it": lambda mine, name: mine.record("d", name),
        "opens it": lambda mine, name: mine.review("d", name, "Ada"),
        "asks for its place": lambda mine, name: mine.positions_of("d", [name]),
        "asks what stands behind it": lambda mine, name: paging.neighbour(mine, "d", query, name),
        "asks which one it is": lambda mine, name: paging.standing(mine, "d", query, name),
        "looks at others' marks": lambda mine, name: looks.note_look(mine, "d", name, "Ada"),
        "takes it": lambda mine, name: plans.reserve(mine, "d", name, "Ada"),
        "adds evidence": lambda mine, name: add_evidence(
            mine, "d", name, AddedEvidence(text="found")
        ),
        "stores evidence": lambda mine, name: mine.save_findings(
            "d", [store.record("d", name).model_copy(update={"annotations": ()})]
        ),
        "writes to it": lambda mine, name: mine.apply("d", name, "Ada", done),
    }
    for what, attempt in attempts.items():
        with pytest.raises(NotFoundError, match="has no item"):
            attempt(mine, outside)
        attempt(mine, min(own))
        if what != "writes to it":  # that a lead reads and takes what is in no list of theirs
            attempt(store, outside)


@pytest.mark.parametrize("rules", PLANS.values(), ids=PLANS)
def test_a_sample_is_drawn_from_all_items_whoever_asks(
    store: Store, rules: dict[str, object]
) -> None:
    mine, _ = _adas(store, rules)
    assert read_measured(mine, "d").queue == read_measured(store, "d").queue
