"""Each person's list under every combination of what sends items there, walked to its end."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from sqlalchemy import update

from spanlab.base.errors import NotFoundError
from spanlab.base.settings import Settings
from spanlab.oplog.operations import FinishItem, SentOperation, SetStatus
from spanlab.people.entrance import begin_test, check_may_write, entrance_of, prepare_queue
from spanlab.review import queue as review
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    CheckRules,
    Item,
    QueueQuery,
    Record,
    Span,
    Status,
)
from spanlab.storage import Store
from spanlab.storage.tables import reservations
from spanlab.worklists import check_items, paging, plans
from spanlab.worklists.names import handle_of, item_of
from spanlab.worklists.sight import seen_by

PEOPLE = ("Ada", "Ben", "Cleo")
ANSWER = "The tower was built in 1887."
PLANS: dict[str, dict[str, object]] = {
    "no plan": {},
    "first come": {"overlap": 1},
    "two, first come": {"overlap": 2},
    "assigned": {"overlap": 1, "assigned_to": PEOPLE},
    "two assigned": {"overlap": 2, "assigned_to": PEOPLE},
}
CHECKS = {
    "none": None,
    "check items": CheckRules(labels=("gold",), share=0.25),
    "a test": CheckRules(labels=("gold",), share=0, test_items=2, pass_at=0),
    "a test and check items": CheckRules(labels=("gold",), share=0.25, test_items=1, pass_at=0),
}
NAMES = tuple(f"{'known' if n % 3 == 0 else 'item'} {n}" for n in range(8))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    home = tmp_path_factory.mktemp("lists")
    settings = Settings(home=home, database_url=f"sqlite:///{home / 'spanlab.db'}")
    with Store.open(settings) as store:
        yield store


class _Campaign:
    """A dataset of eight items, three of them with gold labels, and three people who review it."""

    def __init__(self, store: Store, rules: dict[str, object], chance: Random) -> None:
        self.store, self.chance, self.name = store, chance, f"{chance.random()}"
        gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=(Span.of(ANSWER, 4, 9),))
        store.import_records(
            self.name,
            [
                Record(item=Item(id=name, answer=ANSWER), annotations=(gold,) * (name[0] == "k"))
                for name in NAMES
            ],
        )
        rules = {**rules, "always_blind": rules["known"] is not None}
        store.change_settings(self.name, lambda now: now.model_copy(update=rules))
        self.settings = store.settings(self.name)

    def pass_test(self, person: str) -> None:
        begin_test(self.store, self.name, person)
        for item in entrance_of(self.store, self.name, person).items:
            self.decide(item, person)
        assert entrance_of(self.store, self.name, person).stage == "open"

    def decide(self, item: str, person: str, *, skip: bool = False) -> None:
        base = self.store.review(self.name, item, person).version
        done = SetStatus(status=Status.SKIPPED) if skip else FinishItem()
        write = SentOperation(f"{self.name} {item} {person}", base + 1, base, done)
        check_may_write(self.store, self.name, person, item)
        assert not self.store.apply(self.name, item, person, [write]).refused

    def walk(self, person: str, sample: tuple[str, ...] = ()) -> Iterator[str]:
        """Yield what a person gets as the page Review asks for it; decide it before the next."""
        settings = self.store.settings(self.name)
        share, plan = settings.share_of(person), dict[str, Any]()
        if settings.overlap and (share is not None or not settings.assigned_to):
            plan = {"unfinished": True, "reserve": True}
        plan |= {"share": share, "listed": settings.has_lists, "sample": sample}
        query = QueueQuery(**plan, reviewer=person, blind=True)
        prepare_queue(self.store, self.name, person, sample)
        item, had = review.first_item(self.store, self.name, query), set[str]()
        while item is not None and item not in had:
            had.add(item)
            yield item
            item = review.neighbours(self.store, self.name, query, item).next

    def listed(self, person: str) -> list[str]:
        query = QueueQuery(reviewer=person, listed=True, limit=1000)
        return [row.item_id for row in paging.page(self.store, self.name, query).rows]

    def work(self, n_steps: int, *, released: bool = False) -> None:
        """Let all work at once, each at most so many items; a few are skipped.

        With ``released`` all let what they hold go before anybody takes the next one.
        """
        walking, totals = {person: self.walk(person) for person in PEOPLE}, dict[str, int]()
        for _ in range(n_steps):
            for person in self.chance.sample(PEOPLE, 3):
                if released:
                    with self.store.database.writing() as connection:
                        connection.execute(update(reservations).values(until=0))
                for item in (each for each in [next(walking[person], None)] if each):
                    self.decide(item, person, skip=self.chance.random() < 0.1)
                    how_far = review.progress(self.store, self.name, person)
                    assert totals.setdefault(person, how_far.total) == how_far.total
                    if self.settings.is_blind and how_far.left:
                        seen = seen_by(self.store, self.name, person).record(self.name, item)
                        assert {each.annotator for each in seen.annotations} == {person}

    def send_away(self, person: str) -> None:
        """Let others go on with a person's items, and have the person back then."""
        plans.take_back(self.store, self.name, person)
        self.work(2)
        plans.give_back(self.store, self.name, person)

    def measure(self) -> None:
        """Let each review their part of a sample, and see all of it but others' check items."""
        sample = tuple(self.chance.sample(NAMES, 5))
        for person in PEOPLE:
            for item in self.walk(person, sample):
                self.decide(item, person)
            share = self.settings.share_of(person)
            query = QueueQuery(reviewer=person, share=share, sample=sample)
            own = {row.item_id for row in paging.page(self.store, self.name, query).rows}
            own -= check_items.check_ids(self.store, self.name) if self.settings.known else set()
            assert not self.settings.has_lists or own <= set(self.listed(person))

    def check(self) -> None:
        """Check that every list has an item once, is always the same, and nothing in it is left."""
        plan, counts = (
            plans.plan(self.store, self.name),
            [self.store.counts(self.name, p) for p in PEOPLE],
        )
        skipped = sum(count[Status.SKIPPED] for count in counts)
        assert plan is None or plan.needed - skipped <= plan.done <= plan.needed
        for person in PEOPLE:
            prepare_queue(self.store, self.name, person)
            order = self.listed(person)
            assert len(order) == len(set(order))
            prepare_queue(self.store, self.name, person)
            assert self.listed(person) == order
            handles = [handle_of(self.store, self.name, person, item) for item in order]
            found = [item_of(self.store, self.name, person, handle) for handle in handles]
            assert found == order
            for outside in set(NAMES) - set(order):
                with pytest.raises(NotFoundError, match="has no item"):
                    handle_of(self.store, self.name, person, outside)
            part = None if plan is None else plan.of(person)
            assert part is None or not part.left
            if self.settings.known:  # what others have now is in the list, and not left to do
                how_far = review.progress(self.store, self.name, person)
                assert not how_far.left
                assert how_far.done + how_far.skipped <= len(order)


@pytest.mark.parametrize(("plan", "checks"), list(product(PLANS, CHECKS)))
def test_an_item_is_once_in_a_list_and_all_that_is_assigned_is_reached(
    store: Store, plan: str, checks: str
) -> None:
    # Half of the combinations, in which each two meet; with the next plan or checks the others.
    half = ([*PLANS].index(plan) + [*CHECKS].index(checks)) % 2
    for measured, leaves in product([False, True], repeat=2):
        released = (measured + leaves + half) % 2 == 1
        chance = Random(f"{plan} {checks} {measured} {leaves} {released}")
        campaign = _Campaign(store, {**PLANS[plan], "known": CHECKS[checks]}, chance)
        if "test" in checks:
            for person in PEOPLE:
                campaign.pass_test(person)
        campaign.work(2, released=released)
        if leaves and campaign.settings.overlap:
            campaign.send_away("Ben")
        if measured:
            campaign.measure()
        campaign.work(len(NAMES), released=released)
        if campaign.settings.has_lists:
            campaign.check()
