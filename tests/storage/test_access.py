"""Every method of the store by role: who is let through, and who is told what."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import text

from spanlab.base.errors import AccessError, NotFoundError, StoreError, UsageError
from spanlab.base.settings import Settings
from spanlab.data.backup import back_up, restore
from spanlab.oplog.operations import SentOperation, SetStatus
from spanlab.schema import (
    NOBODY,
    Actor,
    AnnotatorKind,
    CheckRules,
    Item,
    Permission,
    QueueQuery,
    Record,
    Role,
    Status,
)
from spanlab.storage import Store, api_jobs
from spanlab.storage.access import _LOG_OPENED, rewrite_log
from spanlab.worklists import check_items, drawing, entrances, looks, names, paging, plans, sight
from spanlab.worklists.entrances import Entrance
from spanlab.worklists.names import handle_of, item_of

MakeRecord = Callable[..., Record]
Call = Callable[[Store, str], object]

_DONE = SetStatus(status=Status.DONE)
_REVISED = Item(id="a", answer="Another answer.")
_LET_IN = Entrance("Ben", 0, None, True, datetime.now(UTC))
_ANNA = QueueQuery(reviewer="Anna")

_SEE, _REVIEW, _READ = Permission.SEE, Permission.REVIEW, Permission.READ
_MANAGE, _ALL = Permission.MANAGE, Permission.ADMINISTER


def _unless_unlisted(
    ask: Callable[[Store, str, str, str], str], store: Store, dataset: str, item: str
) -> None:
    """Ask for an item of Anna's own list, which may have none: only she may ask."""
    with suppress(NotFoundError):
        ask(store, dataset, "Anna", item)


def _enter(manager: AbstractContextManager[object]) -> None:
    with manager:
        pass


def _forget_guest(store: Store) -> None:
    store.access.sign_in("oidc:guest", "Zoe")
    store.forget_person("Zoe", keep=True)


# Each method, as Anna calls it of a dataset, and what she needs for that.
METHODS: dict[str, tuple[Permission, Call]] = {
    "settings": (_SEE, lambda store, name: store.settings(name)),
    "records": (_SEE, lambda store, name: list(store.records(name))),
    "record": (_SEE, lambda store, name: store.record(name, "a")),
    "records_at": (_SEE, lambda store, name: store.records_at(name, [0])),
    "suggestions_seen": (_READ, lambda store, name: store.suggestions_seen(name)),
    "looks.looked_at": (_READ, looks.looked_at),
    "looks.note_look": (_REVIEW, lambda store, name: looks.note_look(store, name, "a", "Anna")),
    "paging.page": (_SEE, lambda store, name: paging.page(store, name, _ANNA)),
    "paging.neighbour": (_SEE, lambda store, name: paging.neighbour(store, name, _ANNA, "a")),
    "paging.standing": (_SEE, lambda store, name: paging.standing(store, name, _ANNA, "a")),
    "paging.n_unanimous": (_SEE, lambda store, name: paging.n_unanimous(store, name, _ANNA)),
    "paging.positions": (_SEE, lambda store, name: paging.positions(store, name, _ANNA)),
    "positions_of": (_SEE, lambda store, name: store.positions_of(name, ["a"])),
    "counts": (_SEE, lambda store, name: store.counts(name, "Anna")),
    "plans.plan": (_READ, plans.plan),
    "n_operations": (_SEE, lambda store, name: store.n_operations(name)),
    "plans.finished": (_SEE, plans.finished),
    "labels": (_SEE, lambda store, name: store.labels(name)),
    "review": (_SEE, lambda store, name: store.review(name, "a", "Anna")),
    "sight": (_READ, lambda store, name: store.sight(name)),
    "names.item_names": (_SEE, lambda store, name: names.item_names(store, name, "Anna")),
    "sight.sight_of": (_READ, lambda store, name: sight.sight_of(store, name, "Anna")),
    "sight.seen_by": (_READ, lambda store, name: sight.seen_by(store, name, "Anna")),
    "sight.n_undecided": (_SEE, lambda store, name: sight.n_undecided(store, name, "Anna")),
    "own_name": (_SEE, lambda store, name: store.own_name(name)),
    "plans.n_held": (_SEE, lambda store, name: plans.n_held(store, name, "Anna")),
    "check_items.given_to": (_READ, lambda store, name: check_items.given_to(store, name, "Anna")),
    "check_items.check_ids": (_READ, check_items.check_ids),
    "entrances.entered": (_SEE, entrances.entered),
    "entrances.readings": (_SEE, entrances.readings),
    "entrances.last_active": (_SEE, entrances.last_active),
    "drawing.draw": (_REVIEW, lambda store, name: drawing.draw(store, name, "Anna")),
    "drawing.draw_next": (_REVIEW, lambda store, name: drawing.draw_next(store, name, _ANNA)),
    "drawing.progress": (_SEE, lambda store, name: drawing.progress(store, name, "Anna")),
    "drawing.n_to_come": (_SEE, lambda store, name: drawing.n_to_come(store, name, _ANNA)),
    "names.item_of": (
        _SEE,
        lambda store, name: _unless_unlisted(item_of, store, name, "x"),
    ),
    "names.handle_of": (
        _SEE,
        lambda store, name: _unless_unlisted(handle_of, store, name, "a"),
    ),
    "drawing.give_test": (
        _REVIEW,
        lambda store, name: drawing.give_test(store, name, "Anna", 1, 0),
    ),
    "entrances.enter": (_MANAGE, lambda store, name: entrances.enter(store, name, _LET_IN)),
    "entrances.confirm_read": (
        _REVIEW,
        lambda store, name: entrances.confirm_read(store, name, "Anna", 1),
    ),
    "plans.take_back": (_MANAGE, lambda store, name: plans.take_back(store, name, "Ben")),
    "plans.give_back": (_MANAGE, lambda store, name: plans.give_back(store, name, "Ben")),
    "plans.reserve": (_REVIEW, lambda store, name: plans.reserve(store, name, "a", "Anna")),
    "reading": (_SEE, lambda store, name: _enter(store.reading(name))),
    "reviewing": (_REVIEW, lambda store, name: _enter(store.reviewing(name, "Anna"))),
    "writing": (_MANAGE, lambda store, name: _enter(store.writing(_MANAGE, name))),
    "apply": (_REVIEW, lambda store, name: store.apply(name, "a", "Anna", [])),
    "require": (_READ, lambda store, name: store.require(_READ, name)),
    "set_person": (_MANAGE, lambda store, name: store.set_person(name, "Ben")),
    "change_settings": (_MANAGE, lambda store, name: store.change_settings(name, lambda old: old)),
    "rename_annotator": (_MANAGE, lambda store, name: store.rename_annotator(name, "Ben", "Bob")),
    "merge_annotators": (_MANAGE, lambda store, name: store.merge_annotators(name, "Bob", "Cem")),
    "remove_annotator": (_MANAGE, lambda store, name: store.remove_annotator(name, "Cem")),
    "save_annotations": (_MANAGE, lambda store, name: store.save_annotations(name, [])),
    "save_findings": (_REVIEW, lambda store, name: store.save_findings(name, [])),
    "freeze_dataset": (_MANAGE, lambda store, name: store.freeze_dataset(name, f"{name}@one")),
    "seal_version": (_MANAGE, lambda store, name: store.seal_version(f"{name}@one", "ab")),
    "kept_items": (_MANAGE, lambda store, name: store.kept_items(name, ["a"])),
    "revise_item": (_MANAGE, lambda store, name: store.revise_item(name, "a", _REVISED)),
    "import_records": (_MANAGE, lambda store, name: store.import_records(name, [])),
    "api_jobs.enter": (_MANAGE, lambda store, name: api_jobs.enter(store, "0" * 32, name)),
    "rename_dataset": (_MANAGE, lambda store, name: store.rename_dataset(name, name)),
    "bin_dataset": (_MANAGE, lambda store, name: store.bin_dataset(name)),
    "binned": (_ALL, lambda store, name: store.binned()),
    "restore_dataset": (_ALL, lambda store, name: store.restore_dataset(name)),
    "api_jobs.forget": (_ALL, lambda store, name: api_jobs.forget(store, "0" * 32)),
    "duplicate_dataset": (_ALL, lambda store, name: store.duplicate_dataset(name, "copy")),
    "delete_dataset": (_MANAGE, lambda store, name: store.delete_dataset(name)),
    "empty_bin": (_ALL, lambda store, name: store.empty_bin(name)),
    "forget_person": (_ALL, lambda store, name: _forget_guest(store)),
}
# Which show nothing, or nothing of what somebody may not see, to whom it may be.
ANYBODYS = {"open", "close", "ping", "acting_as", "seen_with", "datasets", "api_jobs.find", "may"}
ANYBODYS |= {"note", "plans.plan_of", "looks.looks_in_words"}  # after a check by another one


@pytest.fixture
def filled(store: Store, record: MakeRecord, said: Callable[..., object]) -> Store:
    """Two datasets: Ben and Cem have reviewed one, in which others see nothing of it."""
    people = [
        said(name, (4, 9), kind=AnnotatorKind.PERSON, status=Status.DONE) for name in ("Ben", "Cem")
    ]
    store.import_records("ours", [record("a", *people), record("b")])
    store.import_records("theirs", [record("a", *people)])
    return store


def _anna(store: Store, role: Role | None = None, dataset: str | None = "ours") -> Store:
    store.access.sign_in("oidc:1", "Anna")
    if role is not None:
        store.access.grant("Anna", role, dataset)
    return store.acting_as(store.access.actor("oidc:1"))


def test_every_method_of_the_store_and_function_on_lists_says_who_may_call_it() -> None:
    methods = {name for name, _ in inspect.getmembers(Store, inspect.isfunction)}
    public = {name for name in methods if not name.startswith("_")} | {"open"}
    public |= {
        f"{module.__name__.rpartition('.')[2]}.{name}"
        for module in (
            *(api_jobs, check_items, drawing, entrances, looks, names, paging, plans, sight),
        )
        for name, function in inspect.getmembers(module, inspect.isfunction)
        if function.__module__ == module.__name__
        and not name.startswith("_")
        and "store" in inspect.signature(function).parameters
    }
    assert public == METHODS.keys() | ANYBODYS


@pytest.mark.parametrize("role", [None, *Role])
def test_a_role_lets_through_what_the_table_says_and_in_its_dataset_alone(
    filled: Store, role: Role | None
) -> None:
    anna = _anna(filled, role)
    own = filled.access.actor("oidc:1")
    number = next((number for number in own.roles if number is not None), None)
    for method, (permission, call) in METHODS.items():
        for dataset in ("theirs", "ours"):
            needed = _READ if method in {"records", "records_at"} else permission
            is_let = dataset == "ours" and own.may(needed, number)
            if is_let and permission is not _ALL:
                if method == "delete_dataset":  # it lies in the bin by now
                    filled.restore_dataset("ours")
                call(anna, dataset)
            else:
                with pytest.raises(AccessError):
                    call(anna, dataset)
                with pytest.raises(AccessError):
                    call(filled.acting_as(NOBODY), dataset)


def test_a_lead_of_all_may_do_everything(filled: Store) -> None:
    lead = _anna(filled, Role.LEAD, None)
    for method, (_, call) in METHODS.items():
        if method == "empty_bin":
            lead.bin_dataset("theirs")
            call(lead, "theirs")
        elif method == "restore_dataset":
            call(lead, "ours")
        else:
            call(lead, "ours")
    assert [each.name for each in lead.datasets()] == ["ours@one", "copy"]


def test_people_write_under_their_own_name_alone_and_operations_say_who(filled: Store) -> None:
    """Also a lead: what others said is merged or renamed, never written."""
    for role in (Role.ANNOTATOR, Role.LEAD):
        anna = _anna(filled, role)
        for name in ("Ben", "nobody"):
            with pytest.raises(AccessError, match="may not do this as"):
                anna.apply("ours", "a", name, [SentOperation("s", 1, 0, _DONE)])
        with pytest.raises(AccessError):
            anna.apply("ours", "a", "gold", [SentOperation("s", 1, 0, _DONE, author="Ben")])
    assert not anna.apply("ours", "a", "Anna", [SentOperation("s", 1, 0, _DONE)]).refused
    assert not filled.apply("ours", "b", "Ben", [SentOperation("t", 1, 0, _DONE)]).refused
    with filled.database.reading() as connection:
        rows = connection.execute(text("SELECT session, subject FROM operations")).all()
    assert sorted(tuple(row) for row in rows) == [("s", "oidc:1"), ("t", None)]


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param({"always_blind": True}, id="always hidden"),
        pytest.param({"overlap": 3}, id="three people an item"),
        pytest.param({"known": CheckRules(labels=("gold",))}, id="check items"),
    ],
)
def test_who_reviews_blind_sees_nothing_of_others_however_they_ask(
    filled: Store, rules: dict[str, object]
) -> None:
    filled.change_settings("ours", lambda old: old.model_copy(update=rules))
    anna = _anna(filled, Role.ANNOTATOR)
    for method in (
        "records",
        "record",
        "records_at",
        "paging.page",
        "paging.positions",
        "labels",
        "review",
    ):
        with pytest.raises(AccessError, match="blind here"):
            METHODS[method][1](anna, "ours")
    (summary,) = anna.datasets()
    assert summary.annotators == ()
    with pytest.raises(AccessError, match="blind here"):
        sight.seen_by(anna, "ours", "Ben")
    blind = anna.acting_as(anna.actor, hides=True)
    if "always_blind" not in rules:
        drawing.draw(blind, "ours", "Anna")
        drawing.draw_next(blind, "ours", replace(_ANNA, listed=True, reserve=True))
    assert sight.seen_by(blind, "ours", "Ben").record("ours", "a").annotations == ()
    assert blind.record("ours", "a").annotations == ()
    assert blind.review("ours", "a", "Anna").record.annotations == ()
    assert next(iter(blind.records("ours"))).annotations == ()
    with pytest.raises(AccessError):
        blind.review("ours", "a", "Ben")
    with pytest.raises(AccessError):
        blind.review("ours", "a", "adjudicated", AnnotatorKind.GOLD)


def test_what_is_hidden_from_a_reviewer_is_in_no_methods_answer(filled: Store) -> None:
    filled.apply("ours", "b", "Ben", [SentOperation("s", 1, 0, _DONE)])
    entrances.enter(filled, "ours", _LET_IN)
    entrances.confirm_read(filled, "ours", "Ben", 1)
    filled.change_settings("ours", lambda old: old.model_copy(update={"always_blind": True}))
    anna = _anna(filled, Role.ANNOTATOR)
    hiding = anna.acting_as(anna.actor, hides=True)
    for method, (permission, call) in METHODS.items():
        if permission is _SEE or method == "sight":
            told = repr(call(hiding, "ours"))
            assert "Ben" not in told and "Cem" not in told, method


def test_versions_and_what_is_elsewhere_are_not_there_for_annotators(filled: Store) -> None:
    filled.freeze_dataset("ours", "ours@one")
    anna = _anna(filled, Role.ANNOTATOR)
    assert [each.name for each in anna.datasets(versions=True)] == ["ours"]
    for name in ("ours@one", "theirs", "none"):
        with pytest.raises(AccessError, match=f"there is no dataset '{name}'"):
            anna.record(name, "a")
    reader = _anna(filled, Role.VIEWER)
    assert [each.name for each in reader.datasets(versions=True)] == ["ours", "ours@one"]


def test_a_name_is_one_persons_and_follows_what_a_lead_makes_of_it(filled: Store) -> None:
    """Nobody becomes Ben by calling themselves so at the provider."""
    register = filled.access
    assert register.sign_in("oidc:2", "Ben").name == "Ben (2)"
    assert register.sign_in("oidc:2", "Cem").name == "Ben (2)"
    register.grant("Ben (2)", Role.ANNOTATOR, "ours")
    ben = filled.acting_as(register.actor("oidc:2"))
    ben.apply("ours", "b", "Ben (2)", [SentOperation("s", 1, 0, _DONE)])
    filled.merge_annotators("ours", "Ben (2)", "Ben")
    again = filled.acting_as(register.actor("oidc:2"))
    assert (again.own_name("ours"), ben.own_name("ours")) == ("Ben", "Ben (2)")
    filled.rename_annotator("ours", "Ben", "B. B.")
    assert filled.acting_as(register.actor("oidc:2")).own_name("ours") == "B. B."


def test_a_role_for_an_address_counts_once_it_is_verified(filled: Store) -> None:
    filled.access.grant("Anna@Example.org", Role.VIEWER)
    assert filled.access.sign_in("oidc:1", "Anna", "anna@example.org").may(_READ, 1)
    assert not filled.access.sign_in("oidc:2", "Anna").may(_READ, 1)
    filled.access.revoke("anna@example.org", Role.VIEWER)
    assert not filled.access.actor("oidc:1", "anna@example.org").may(_READ, 1)
    with pytest.raises(NotFoundError, match="does not have the role viewer for all datasets"):
        filled.access.revoke("anna@example.org", Role.VIEWER)


def test_a_lead_gives_roles_in_their_dataset_alone(filled: Store) -> None:
    anna = _anna(filled, Role.LEAD)
    anna.access.grant("ben@example.org", Role.ANNOTATOR, "ours")
    for dataset in (None, "theirs"):
        with pytest.raises(AccessError):
            anna.access.grant("ben@example.org", Role.ANNOTATOR, dataset)
        with pytest.raises(AccessError):
            anna.access.make_token("key", Role.VIEWER, dataset)
    assert {each.dataset for each in anna.access.granted()} == {"ours"}
    for role in (Role.ANNOTATOR, Role.VIEWER, Role.ADJUDICATOR):
        other = filled.acting_as(Actor("oidc:9", "Eve", {1: frozenset({role})}))
        with pytest.raises(AccessError):
            other.access.grant("oidc:9", Role.LEAD, "ours")
        assert other.access.granted() == []


def test_a_key_opens_what_it_says_until_it_ends_or_is_revoked(filled: Store) -> None:
    register = filled.access
    key = register.make_token("key", Role.VIEWER, "ours", label="dashboard")
    actor = register.bearer(key)
    assert actor is not None
    assert (actor.name, actor.may(_READ, 1), actor.may(_READ, 2)) == ("dashboard", True, False)
    with filled.database.reading() as connection:  # as a hash alone
        rows = connection.execute(text("SELECT * FROM access_tokens")).all()
        logged = connection.execute(text("SELECT * FROM access_log")).all()
    assert key not in str(rows) and key.removeprefix("sl-") not in str([*rows, *logged])
    assert register.bearer(key[:-1] + "x") is None
    (listed,) = register.tokens("key")
    register.revoke_token("key", listed.id)
    assert register.bearer(key) is None
    with pytest.raises(UsageError, match="has passed"):
        register.make_token("key", Role.VIEWER, None, expires=datetime.now(UTC))


def test_an_invitation_is_for_one_person_one_dataset_and_one_role(filled: Store) -> None:
    register, soon = filled.access, datetime.now(UTC) + timedelta(hours=1)
    link = register.make_token("invitation", Role.ANNOTATOR, "ours", expires=soon, code="C0DE")
    assert register.bearer(link, "invitation") is None  # a link is no cookie
    assert register.accept("sl-" + "x" * 43) is None
    assert register.invitation(link) is not None
    token = register.accept(link, worker="w17")
    assert token is not None
    assert register.bearer(link, "invitation") is None
    assert (register.accept(link), register.accept(token)) == (None, None)
    assert register.invitation(link) is None  # as the page says that opens it
    guest = register.bearer(token, "invitation")
    assert guest is not None and guest.name == "w17"
    assert [each.name for each in filled.acting_as(guest).datasets()] == ["ours"]
    own = filled.acting_as(guest).access.own_invitation()
    assert own is not None and (own.code, own.worker, own.role) == ("C0DE", "w17", Role.ANNOTATOR)
    register.revoke_token("invitation", own.id)
    assert register.bearer(token, "invitation") is None
    for role, dataset, end in (
        (Role.LEAD, "ours", soon),
        (Role.ANNOTATOR, None, soon),
        (Role.ANNOTATOR, "ours", None),
    ):
        with pytest.raises(UsageError, match="an invitation is for one dataset"):
            register.make_token("invitation", role, dataset, expires=end)


def test_the_log_cannot_be_changed_and_is_for_leads_of_all(filled: Store) -> None:
    anna = _anna(filled, Role.LEAD)
    anna.bin_dataset("ours")
    actions = [(each.action, each.name, each.dataset) for each in filled.access.log()]
    assert actions == [
        ("dataset deleted", "Anna", "ours"),
        ("role granted", "owner", "ours"),
        ("login", "Anna", None),
    ]
    with pytest.raises(AccessError):
        anna.access.log()
    changes = ["DELETE FROM access_log", "UPDATE access_log SET name = 'Ben'"]
    if "sqlite" in str(filled.database.engine.url):
        row = "(id, at, subject, name, action, about) VALUES (1, '', '', '', '', '')"
        changes.append(f"INSERT OR REPLACE INTO access_log {row}")
    else:
        changes += ["TRUNCATE access_log", "TRUNCATE operations"]
    for change in changes:
        with pytest.raises(StoreError, match="append-only"), filled.database.writing() as changing:
            changing.execute(text(change))
    assert filled.access.verify_log() == (3, 0)
    with pytest.raises(AccessError):
        anna.access.verify_log()


def test_a_log_that_somebody_changed_past_the_triggers_is_found_out(empty: Settings) -> None:
    with Store.open(empty) as store:
        for role in (Role.VIEWER, Role.ANNOTATOR, Role.LEAD):
            store.access.make_token("key", role, None)
        assert store.access.verify_log() == (3, 0)
        is_sqlite = "sqlite" in empty.database_url
        trigger = "access_log_no_update" if is_sqlite else "access_log_append_only ON access_log"
        with store.database.writing() as changing:
            second = "SELECT id FROM access_log ORDER BY id LIMIT 1 OFFSET 1"
            changed = changing.execute(text(second)).scalar_one()
            changing.execute(text(f"DROP TRIGGER {trigger}"))
            changing.execute(
                text("UPDATE access_log SET about = 'x' WHERE id = :id"), {"id": changed}
            )
        assert store.access.verify_log() == (1, changed)


def test_a_log_without_hashes_does_not_hold(empty: Settings) -> None:
    with Store.open(empty) as store:
        for role in (Role.VIEWER, Role.LEAD):
            store.access.make_token("key", role, None)
        with store.database.writing() as changing:
            off, on = _LOG_OPENED[changing.dialect.name]
            for statement in (off, "UPDATE access_log SET hash = NULL", on):
                changing.execute(text(statement))
        first = store.access.verify_log()
        assert first[0] == 0
        assert first[1]
        with store.database.writing() as changing:  # as an upgrade does
            rewrite_log(changing)
        assert store.access.verify_log() == (2, 0)
        with pytest.raises(StoreError, match="append-only"), store.database.writing() as changing:
            changing.execute(text("UPDATE access_log SET about = 'x'"))


def test_an_invited_name_waits_for_its_person(filled: Store) -> None:
    """So that a plan may name people before they come; strangers do not take their place."""
    soon = datetime.now(UTC) + timedelta(days=1)
    register = filled.access

    def invite(name: str) -> str:
        return register.make_token("invitation", Role.ANNOTATOR, "ours", label=name, expires=soon)

    nora, other, ben = invite("Nora"), invite("nora"), invite("Ben")
    names = [register.name_on(link) for link in (nora, other, ben)]
    assert names == ["Nora", "nora (2)", "Ben (2)"]  # a Ben has reviewed before
    assert register.sign_in("oidc:9", "Nora").name == "Nora (3)"
    guests = [register.bearer(str(register.accept(link)), "invitation") for link in (other, nora)]
    assert [guest and guest.name for guest in guests] == ["nora (2)", "Nora"]


def test_a_browser_opens_its_invitation_again_and_another_device_by_another_link(
    filled: Store,
) -> None:
    register, soon = filled.access, datetime.now(UTC) + timedelta(hours=1)
    link = register.make_token("invitation", Role.ANNOTATOR, "ours", label="Nora", expires=soon)
    browser = "b" * 43
    nora = register.accept(link, browser=browser)
    assert nora is not None
    assert register.accept(link, browser=browser) == nora  # a double click
    assert register.accept(link, browser="c" * 43) is None
    (first,) = register.tokens("invitation")
    other = register.make_token("invitation", Role.ANNOTATOR, "ours", label="Olga", expires=soon)
    olga = register.bearer(str(register.accept(other, browser=browser)), "invitation")
    assert olga is not None
    assert olga.name == "Olga"  # two links in two tabs of one browser are two people's
    again = register.invite_again(first.id)
    phone = register.accept(again)
    assert phone is not None
    people = [register.bearer(token, "invitation") for token in (nora, phone)]
    assert [(who.name, who.subject) for who in people if who] == [
        ("Nora", f"invitation:{first.id}")
    ] * 2
    register.revoke_token("invitation", first.id)  # everywhere
    assert [register.bearer(token, "invitation") for token in (nora, phone)] == [None, None]
    back = register.bearer(str(register.accept(register.invite_again(first.id))), "invitation")
    assert back is not None
    assert (back.name, back.subject) == ("Nora", f"invitation:{first.id}")


def test_the_same_person_gets_the_name_and_nobody_else(filled: Store) -> None:
    register, soon = filled.access, datetime.now(UTC) + timedelta(hours=1)

    def invite(name: str, dataset: str = "ours") -> Actor:
        link = register.make_token(
            "invitation", Role.ANNOTATOR, dataset, label=name, expires=soon, same=True
        )
        guest = register.bearer(str(register.accept(link)), "invitation")
        assert guest is not None
        return guest

    assert register.called("Ben") == "Ben"  # has reviewed before
    assert register.called("Nobody") is None
    ben = invite("Ben")
    assert ben.name == "Ben"
    assert invite("Ben", "theirs").subject == ben.subject  # elsewhere he is the same
    first = next(token for token in register.tokens("invitation") if token.dataset == "theirs")
    register.revoke_token("invitation", first.id)
    states = {token.dataset: bool(token.revoked) for token in register.tokens("invitation")}
    assert states == {"ours": False, "theirs": True}
    with pytest.raises(UsageError, match="nobody is called “Benn”"):
        invite("Benn")
    register.sign_in("oidc:7", "Olga")
    with pytest.raises(UsageError, match="“Olga” logs in"):
        invite("Olga")


def test_the_owners_link_leads_all_and_an_older_one_opens_nothing(filled: Store) -> None:
    end = datetime.now(UTC) + timedelta(days=1)
    (old, ends_none), (new, ends_old) = (filled.access.owners_link(end) for _ in range(2))
    assert (ends_none, ends_old) == (False, True)
    assert filled.access.accept(old) is None
    cookie = filled.access.accept(new)
    assert cookie is not None
    owner = filled.access.bearer(cookie, "invitation")
    assert owner is not None
    assert owner.may(Permission.ADMINISTER)
    link, ends_others = filled.access.owners_link(end)  # the next start of the server
    assert not ends_others
    later = filled.access.accept(link)
    same = filled.access.bearer(str(later), "invitation")
    assert same is not None
    assert same.subject == owner.subject
    assert filled.access.bearer(cookie, "invitation") == owner


def test_nobody_gets_a_name_that_looks_like_another_persons(filled: Store) -> None:
    assert filled.access.sign_in("oidc:1", "Anna").name == "Anna"
    alike = ("\u0391nna", "ANNA", "Ａｎｎａ", "\u0430nna", "An\u200bna", "Anna\u3164", "Anna\u2800")
    for number, name in enumerate(alike, start=2):
        assert filled.access.sign_in(f"oidc:{number}", name).name.endswith(f" ({number})"), name


@pytest.mark.system("offline")
def test_nobody_gets_a_name_under_which_they_could_not_review(filled: Store) -> None:
    for name in ("gold", "Vote", "adjudicated", "OFFLINE"):
        assert filled.access.sign_in(f"oidc:{name}", name).name == f"{name} (2)"


def test_a_role_goes_with_its_dataset_for_good_and_no_other_one_inherits_it(
    filled: Store, record: MakeRecord
) -> None:
    key = filled.access.make_token("key", Role.LEAD, "theirs")
    _anna(filled, Role.LEAD, "theirs")
    filled.bin_dataset("theirs")
    assert not filled.access.granted()
    assert not filled.access.tokens("key")
    filled.empty_bin("theirs")
    filled.import_records("theirs", [record("z")])
    assert filled.access.bearer(key) is None
    assert filled.acting_as(filled.access.actor("oidc:1")).datasets() == []


def test_a_backup_has_roles_invitations_and_the_log_and_no_keys(
    settings: Settings, filled: Store, empty: Settings
) -> None:
    _anna(filled, Role.VIEWER, None)
    end = datetime.now(UTC) + timedelta(days=1)
    used, unused = (
        filled.access.make_token("invitation", Role.ANNOTATOR, "ours", expires=end)
        for _ in range(2)
    )
    cookie = str(filled.access.accept(used))
    key = filled.access.make_token("key", Role.LEAD, None)
    back_up(settings.home / "all.zip", settings)
    restore(settings.home / "all.zip", empty, replace=True)
    with Store.open(empty) as again:
        assert again.access.verify_log() == filled.access.verify_log()
        assert again.access.bearer(cookie, "invitation")
        assert again.access.accept(unused)
        assert again.access.verify_log()[1] == 0
        assert [each.role for each in again.access.granted()] == [Role.VIEWER]
        assert again.access.actor("oidc:1").name == "Anna"
        if empty.database_url != settings.database_url:
            assert again.access.bearer(key) is None


def test_what_cannot_be_stored_or_has_no_bound_is_refused_before(filled: Store) -> None:
    """Of a subject, an address, and a label alike; a worker's name is cut and cleaned."""
    for wrong in ("a\x00b", "a\nb", "half \ud83d", " ", "x" * 401):
        _is_refused_before(filled, wrong)


def _is_refused_before(filled: Store, wrong: str) -> None:
    access = filled.access
    with pytest.raises(UsageError, match="is not a valid subject"):
        access.sign_in(wrong, "Anna")
    for subject in (f"oidc:{wrong}", f"{wrong}@example.org"):
        if wrong != " ":
            with pytest.raises(UsageError, match="is not a valid subject"):
                access.grant(subject, Role.VIEWER)
    with pytest.raises(UsageError, match="is not a valid label"):
        access.make_token("key", Role.VIEWER, None, label=wrong)
    ends = datetime.now(UTC) + timedelta(hours=1)
    link = access.make_token("invitation", Role.VIEWER, "ours", expires=ends)
    assert access.accept(link, wrong)


def test_a_login_that_has_ended_is_known_until_it_would_have_ended(filled: Store) -> None:
    access, now = filled.access, datetime.now(UTC).timestamp()
    anna = access.sign_in("oidc:2", "Anna")
    for login, ends in (("one", now + 60), ("one", now + 60), ("old", now - 60)):
        access.end_login(login, anna, ends)
    assert [access.has_ended(login) for login in ("one", "other", "old")] == [True, False, False]
    assert access.bearer("one") is None


def test_nobody_is_assigned_items_under_what_looks_like_anothers_name(filled: Store) -> None:
    def assigned(*names: str) -> None:
        values = {"overlap": 1, "assigned_to": names}
        filled.change_settings("ours", lambda settings: settings.model_copy(update=values))

    assigned("Ben", "Anna")
    for wrong in ("\u0412en", "Ben\ufe0f", "8en\u200b"):
        with pytest.raises(UsageError, match=r"looks like|not drawn"):
            assigned("Ben", wrong)
    assigned("Anna", "Carl")
