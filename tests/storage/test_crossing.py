"""Attempts to do what one's role does not allow, by every door that a browser or a program has.

Anna annotates one dataset, blind. Whatever she sends, she gets nothing of what is marked as secret:
what others said there, and all that is in the other dataset, in versions and in the bin. Nor does
the database change. The same for who adjudicates, views, or leads that dataset alone.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from pkgutil import resolve_name
from types import SimpleNamespace
from typing import Any
from unittest.mock import AsyncMock

import pytest
from sqlalchemy import update

from optimizers.programs import registry, take, unuse, use
from spanlab.app.login import _complete
from spanlab.base.errors import AccessError, NotFoundError, UsageError
from spanlab.base.settings import Settings
from spanlab.data.export_choice import REPORT, ExportChoice
from spanlab.data.exporting import (
    export_dataset,
    overview_dataset,
    preview_dataset,
    preview_report,
)
from spanlab.data.importing import import_files
from spanlab.data.predictions import import_predictions
from spanlab.data.versions import diff_datasets, snapshot
from spanlab.detection import DetectorSpec
from spanlab.detection.request import RunRequest
from spanlab.jobs import Jobs
from spanlab.measure.certificates import certify
from spanlab.measure.measurement import measure
from spanlab.measure.rate_tally import rates
from spanlab.measure.sample import plan_measurement, read_measured
from spanlab.memory.workflow import open_memory
from spanlab.oplog.operations import SetStatus
from spanlab.people import logins as access
from spanlab.people.progress import campaign
from spanlab.review import adjudication, traces
from spanlab.review import queue as review
from spanlab.review.adjudication import agreed_items, take_agreed
from spanlab.review.span_editor import EditorMessage, ReviewQueue, exchange
from spanlab.review.writes import AddedEvidence, WriteOutcome, add_evidence, apply_writes
from spanlab.schema import (
    NOBODY,
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    Item,
    MeasurementPlan,
    Permission,
    QueueQuery,
    Record,
    RemarkStep,
    Role,
    Span,
    Status,
)
from spanlab.scoring.annotators import compare_dataset, list_items, open_record
from spanlab.scoring.votes import vote_dataset
from spanlab.storage import Store, api_jobs
from spanlab.storage.datasets import copy_as_gold, rename_annotator
from spanlab.storage.tables import access_tokens
from spanlab.worklists import plans, sight

SECRET = "SECRET"  # what others said of the dataset that Anna is in
ELSEWHERE = "ELSEWHERE"  # what is in no place of hers
ANSWER = "one two three"
DONE = SetStatus(status=Status.DONE)
PLAN = MeasurementPlan(annotator="detector", half_width=0.1)
FILE = Path(__file__).parents[2] / "data" / "samples.jsonl"

Attempt = Callable[[Store], object]


def _says(
    name: str, kind: AnnotatorKind, note: str | None, voters: tuple[str, ...] = ()
) -> Annotation:
    marked = Span.of(ANSWER, 0, 3, label=note).model_copy(update={"note": note})
    trace = (RemarkStep(text=note),) if note else ()
    return Annotation(
        annotator=name, kind=kind, spans=(marked,), note=note, voters=voters, trace=trace
    )


def _record(item: str, answer: str = ANSWER) -> Record:
    ben = f"Ben {SECRET}"
    said = (
        _says("detector", AnnotatorKind.DETECTOR, None),
        _says(ben, AnnotatorKind.PERSON, SECRET),
        _says("gold", AnnotatorKind.GOLD, SECRET),
        _says("vote", AnnotatorKind.VOTE, SECRET, (ben, "detector")),
    )
    return Record(item=Item(id=item, answer=answer), annotations=said)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of a database with what the attempts are after."""
    home = tmp_path_factory.mktemp("filled")
    with Store.open(Settings(home=home)) as opened:
        opened.import_records("ours", [_record("a"), _record("b")])
        blind = DatasetSettings(always_blind=True, measurement=PLAN)
        opened.change_settings("ours", lambda _: blind)
        opened.freeze_dataset("ours", "ours@v1")
        elsewhere = _says("detector", AnnotatorKind.DETECTOR, ELSEWHERE)
        theirs = Record(item=Item(id="t", answer=f"one {ELSEWHERE}"), annotations=(elsewhere,))
        opened.import_records("theirs", [theirs])
        opened.import_records("gone", [theirs])
        opened.bin_dataset("gone")
        opened.access.sign_in("oidc:1", "Anna")
        opened.access.sign_in("oidc:2", "Eve")
        opened.access.grant("Eve", Role.LEAD)
    return home


@pytest.fixture
def store(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    shutil.copytree(filled, tmp_path / "home")
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path / "home"))
    with Store.open() as opened:
        yield opened


def _acting(store: Store, role: Role) -> Store:
    store.access.grant("Anna", role, "ours")
    return store.acting_as(store.access.actor("oidc:1"))


def _write(dataset: str, reviewer: str, item: str = "a", **more: object) -> dict[str, Any]:
    op = {"kind": "status", "status": "done"}
    sent = {"session": "s", "seq": 1, "base": 0, "dataset": dataset, "item": item, "op": op}
    return {**sent, "reviewer": reviewer, **more}


def _writes(*sent: dict[str, Any], reviewer: str = "Anna", adjudicating: bool = False) -> Attempt:
    return lambda mine: apply_writes(mine, sent, reviewer, adjudicating=adjudicating)


def _hiding(mine: Store) -> Store:
    """The store that pages have."""
    return mine.acting_as(mine.actor, hides=True)


def _asks(
    dataset: str = "ours", reviewer: str = "Anna", author: str | None = None, **message: object
) -> Attempt:
    """A message of the editor, answered as the page does."""
    query: dict[str, Any] = message.pop("query", {})  # type: ignore[assignment]
    place = ReviewQueue(dataset, QueueQuery(reviewer=reviewer, **query), None, author)

    def attempt(mine: Store) -> object:
        read = mine if author else _hiding(mine)
        return exchange(read, place, EditorMessage.read({"place": place.id, **message})).json

    return attempt


def _trace(annotator: str, **query: object) -> Attempt:
    return _asks(open="a", trace={"item": "a", "annotator": annotator}, query=query)


def _table(**wanted: object) -> Attempt:
    return _asks(open="a", items={"number": 1, **wanted})


def _exports(dataset: str, **choice: Any) -> Attempt:
    def attempt(mine: Store) -> object:
        written = BytesIO()
        export_dataset(mine, dataset, written, ExportChoice(**choice))
        return written.getvalue().decode(errors="replace")

    return attempt


BEN = f"Ben {SECRET}"
EVERYBODYS: dict[str, Attempt] = {
    # Messages to the editor
    "writes as Ben": _writes(_write("ours", BEN), reviewer=BEN),
    "writes as Ben from an editor that is hers": _writes(_write("ours", BEN)),
    "writes as Ben over his name in small letters": _writes(
        _write("ours", "ben secret"), reviewer="ben secret"
    ),
    "writes into a dataset that is not hers": _writes(_write("theirs", "Anna", "t")),
    "writes into a version": _writes(_write("ours@v1", "Anna")),
    "writes into the bin": _writes(_write("gone", "Anna", "t")),
    "decides in Ben's name": _writes(
        _write("ours", "gold", author=BEN), reviewer="gold", adjudicating=True
    ),
    "opens a dataset that is not hers": _asks("theirs", open="t"),
    "opens another dataset's item in hers": _asks("ours", open="t"),
    "asks for the trace in a dataset that is not hers": _asks(
        "theirs", open="t", trace={"item": "t", "annotator": "detector"}
    ),
    "adds evidence to a dataset that is not hers": _asks(
        "theirs", open="t", evidence={"number": 1, "item": "t", "text": "x"}
    ),
    # Addresses and pages: another dataset's ids, versions and the bin
    "reads a record elsewhere": lambda mine: mine.record("theirs", "t"),
    "exports elsewhere": _exports("theirs"),
    "previews elsewhere": lambda mine: preview_dataset(mine, "theirs", 3),
    "compares elsewhere": lambda mine: compare_dataset(mine, "theirs"),
    "lists items elsewhere": lambda mine: list_items(mine, "theirs"),
    "diffs with elsewhere": lambda mine: diff_datasets(mine, "ours", "theirs"),
    "asks for settings elsewhere": lambda mine: mine.settings("theirs"),
    "takes settings from elsewhere": lambda mine: mine.change_settings("theirs", lambda old: old),
    "deletes elsewhere": lambda mine: mine.bin_dataset("theirs"),
    "renames elsewhere": lambda mine: mine.rename_dataset("theirs", "mine"),
    "lists the bin": lambda mine: mine.binned(),
    "restores from the bin": lambda mine: mine.restore_dataset("gone"),
    "empties the bin": lambda mine: mine.empty_bin("gone"),
    "makes a dataset": lambda mine: import_files(mine, [FILE], "new"),
    "imports elsewhere": lambda mine: import_files(mine, [FILE], "theirs"),
    "copies a dataset": lambda mine: mine.duplicate_dataset("ours", "copy"),
    # Jobs, memory, programs
    "starts a detection": lambda mine: Jobs(actor=mine.actor).submit(
        RunRequest(dataset="ours", detectors=(DetectorSpec(detector="offline"),))
    ),
    "lists jobs": lambda mine: Jobs(actor=mine.actor).list(),
    "looks at a job": lambda mine: Jobs(actor=mine.actor).find("a"),
    "stops a job": lambda mine: Jobs(actor=mine.actor).cancel("a"),
    "pauses a job": lambda mine: Jobs(actor=mine.actor).pause("a"),
    "goes on with a job": lambda mine: Jobs(actor=mine.actor).resume("a"),
    "repeats a job": lambda mine: Jobs(actor=mine.actor).retry("a"),
    "opens the memory": lambda mine: open_memory(mine.actor),
    "lists programs": lambda mine: list(registry(actor=mine.actor)),
    "uses a program": lambda mine: use("x", actor=mine.actor),
    "drops a program": lambda mine: unuse("ucsc", actor=mine.actor),
    "imports a program": lambda mine: take(FILE, actor=mine.actor),
    "sees the API's jobs": lambda mine: api_jobs.find(mine, limit=9),
    "forgets a job of the API": lambda mine: api_jobs.forget(mine, "0" * 32),
    # Roles, keys, invitations, the log
    "leads all": lambda mine: mine.access.grant("Anna", Role.LEAD),
    "leads elsewhere": lambda mine: mine.access.grant("Anna", Role.LEAD, "theirs"),
    "takes Eve's role": lambda mine: mine.access.revoke("Eve", Role.LEAD),
    "makes a key for all": lambda mine: mine.access.make_token("key", Role.VIEWER, None),
    "makes a key elsewhere": lambda mine: mine.access.make_token("key", Role.VIEWER, "theirs"),
    "invites elsewhere": lambda mine: access.invite(
        mine, "theirs", Role.VIEWER, datetime.now(UTC) + timedelta(days=1)
    ),
    "lists roles of others": lambda mine: [
        ELSEWHERE for each in mine.access.granted() if each.dataset != "ours"
    ],
    "reads the log": lambda mine: mine.access.log(),
}
BLIND: dict[str, Attempt] = {  # beside these, an annotator who reviews blind
    "decides": _writes(_write("ours", "gold", author="Anna"), reviewer="gold", adjudicating=True),
    "opens her item": _asks(open="a"),
    "opens it not blind": _asks(open="a", query={"blind": False}),
    "opens it as if shown once done": _asks(open="a", query={"shown_when_done": True}),
    "opens it as Ben": _asks(reviewer=BEN, open="a"),
    "opens Adjudicate": _asks(reviewer="gold", author="Anna", open="a"),
    "asks for Ben's trace": _trace(BEN),
    "asks for the vote's trace": _trace("vote"),
    "asks for the gold labels' trace": _trace("gold", blind=False),
    "searches what Ben wrote": _table(text=SECRET),
    "filters by Ben's label": _table(label=SECRET),
    "orders by what others said": _table(order="disagreement"),
    "reads traces past the editor": lambda mine: traces.traced_annotation(mine, "ours", "a", BEN),
    "reads the record": lambda mine: open_record(mine, "ours", "a"),
    "reads as Ben in a store for Ben": lambda mine: sight.seen_by(mine, "ours", BEN).record(
        "ours", "a"
    ),
    "reads labels": lambda mine: review.labels(mine, "ours", QueueQuery(reviewer="Anna")),
    "reads who has finished what": lambda mine: plans.finished(mine, "ours"),
    "reads how far others are with the plan": lambda mine: plans.plan(mine, "ours"),
    "reads the list of datasets": lambda mine: mine.datasets(versions=True),
    "reads a measurement": lambda mine: read_measured(mine, "ours"),
    "measures": lambda mine: measure(mine, "ours"),
    "certifies": lambda mine: certify(mine, "ours"),
    "plans a measurement": lambda mine: plan_measurement(mine, "ours", PLAN),
    "compares": lambda mine: compare_dataset(mine, "ours"),
    "counts rates": lambda mine: rates(mine, "ours", "lang"),
    "counts progress": lambda mine: campaign(mine, "ours"),
    "takes what all agree on": lambda mine: take_agreed(
        mine,
        "ours",
        "gold",
        "Anna",
        agreed_items(mine, "ours", adjudication.AdjudicationQueue()).items,
    ),
    "exports": _exports("ours"),
    "exports a table": _exports("ours", format="csv"),
    "exports a report": _exports("ours", format=REPORT),
    "exports a version": _exports("ours@v1"),
    "previews": lambda mine: preview_dataset(mine, "ours", 3),
    "previews a report": lambda mine: preview_report(mine, "ours", None, ExportChoice()),
    "counts for a report": lambda mine: overview_dataset(mine, "ours", ExportChoice()),
    "opens a version": _asks("ours@v1", open="a"),
}
for system, place, more in (
    ("veritrail", "stages:error_stages", {"annotators": ["vote"]}),
    ("safe", "results:reasoning_results", {}),
):
    if find_spec(f"spanlab.systems.{system}"):
        count = resolve_name(f"spanlab.systems.{system}.{place}")
        BLIND[f"counts by {system}"] = partial(count, dataset="ours", **more)
CHANGES: dict[str, Attempt] = {  # what is for leads of the dataset
    "changes settings": lambda mine: mine.change_settings("ours", lambda _: DatasetSettings()),
    "keeps a version": lambda mine: snapshot(mine, "ours", "v2"),
    "votes": lambda mine: vote_dataset(mine, "ours", ["detector"]),
    "renames Ben": lambda mine: rename_annotator(mine, "ours", BEN, "Anna"),
    "merges Ben": lambda mine: mine.merge_annotators("ours", BEN, "Anna"),
    "deletes what Ben said": lambda mine: mine.remove_annotator("ours", BEN),
    "copies herself as gold": lambda mine: copy_as_gold(mine, "ours", BEN),
    "makes gold a person": lambda mine: mine.set_person("ours", "gold"),
    "imports predictions": lambda mine: import_predictions(mine, [FILE], "ours", "mine"),
    "deletes the dataset": lambda mine: mine.bin_dataset("ours"),
    "deletes a version": lambda mine: mine.delete_dataset("ours@v1"),
    "leads": lambda mine: mine.access.grant("Anna", Role.LEAD, "ours"),
    "invites": lambda mine: access.invite(
        mine, "ours", Role.VIEWER, datetime.now(UTC) + timedelta(days=1)
    ),
    "makes a key": lambda mine: mine.access.make_token("key", Role.LEAD, "ours"),
}
REVIEWS: dict[str, Attempt] = {  # what is for who reviews
    "reviews": _writes(_write("ours", "Anna")),
    "adds evidence": lambda mine: add_evidence(mine, "ours", "a", AddedEvidence(text="x")),
    "reserves": lambda mine: plans.reserve(mine, "ours", "a", "Anna"),
}
BY_ROLE: dict[Role, dict[str, Attempt]] = {
    Role.ANNOTATOR: {**EVERYBODYS, **BLIND, **CHANGES},
    Role.ADJUDICATOR: {**EVERYBODYS, **CHANGES, "exports": BLIND["exports"]},
    Role.VIEWER: {**EVERYBODYS, **CHANGES, **REVIEWS, "decides": BLIND["decides"]},
    Role.LEAD: EVERYBODYS,
}
ANSWERED = {  # with what is theirs to see, and nothing else
    "opens another dataset's item in hers",  # the first of her own is opened
    "sees the API's jobs",
    "lists roles of others",
    "opens her item",
    "opens it not blind",
    "opens it as if shown once done",
    "asks for Ben's trace",
    "asks for the vote's trace",
    "asks for the gold labels' trace",
    "searches what Ben wrote",
    "filters by Ben's label",
    "orders by what others said",
    "reads the list of datasets",
}


def test_there_are_sixty_attempts_and_more() -> None:
    assert len({name for attempts in BY_ROLE.values() for name in attempts}) >= 60


@pytest.mark.system("ucsc")
@pytest.mark.parametrize("role", BY_ROLE)
def test_nobody_gets_past_their_role(
    store: Store, role: Role, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One after the other on one database, which none of them changes."""
    for variable, value in _LOGIN.items():
        monkeypatch.setenv(variable, value)
    mine = _acting(store, role)
    before = _everything(store)
    for name, attempt in BY_ROLE[role].items():
        got, is_refused = _tried(attempt, mine)
        assert is_refused or name in ANSWERED, name
        assert ELSEWHERE not in got, name
        assert role is not Role.ANNOTATOR or SECRET not in got.replace(BEN, ""), name
        assert _everything(store) == before, name


def test_what_pages_read_holds_nothing_that_is_hidden_from_a_reviewer(store: Store) -> None:
    mine = _hiding(_acting(store, Role.ANNOTATOR))
    before = _everything(store)
    for name, attempt in BLIND.items():
        got, _ = _tried(attempt, mine)
        assert SECRET not in got.replace(BEN, ""), name
        assert _everything(store) == before, name


def _tried(attempt: Attempt, mine: Store) -> tuple[str, bool]:
    """Return what somebody got by an attempt, and whether it was refused."""
    try:
        got = attempt(mine)
    except (AccessError, NotFoundError, UsageError) as error:  # the last: a version never changes
        refused = isinstance(error, AccessError) or any(word in str(error) for word in _REFUSALS)
        return str(error), refused
    return repr(got), isinstance(got, list) and any(isinstance(each, WriteOutcome) for each in got)


_REFUSALS = ("no dataset named", "is a version, which never changes")
_LOGIN = {
    "SPANLAB_OIDC_ISSUER": "http://localhost:1",
    "SPANLAB_OIDC_CLIENT_ID": "spanlab",
    "SPANLAB_OIDC_CLIENT_SECRET": "secret",
    "SPANLAB_URL": "http://localhost:2",
}


def _everything(store: Store) -> object:
    """All that an attempt could have changed."""
    summaries = store.datasets(versions=True)
    return (
        summaries,
        [list(store.records(each.name)) for each in summaries],
        [each.name for each in store.binned()],
        [store.n_operations(each.name) for each in summaries],
        store.access.granted(),
        store.access.tokens("key"),
        store.access.tokens("invitation"),
    )


def _claims(**more: object) -> dict[str, object]:
    soon = datetime.now(UTC).timestamp() + 60
    return {"sub": "1", "name": "Anna", "exp": soon, **more}


@pytest.mark.parametrize(
    "claims",
    [
        {},
        _claims(exp=datetime.now(UTC).timestamp() - 1),
        _claims(exp=None),
        _claims(exp="2999"),
        {"sub": "1"},
    ],
    ids=["none", "expired", "without an end", "an end in words", "no end at all"],
)
def test_a_token_that_is_too_old_or_has_no_end_is_nobodys(
    store: Store, claims: dict[str, object]
) -> None:
    _acting(store, Role.LEAD)
    assert access.visitor(store, claims, None) is NOBODY


def test_who_is_who_follows_from_the_provider_alone(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a name nor an address that is not verified makes a lead."""
    monkeypatch.setenv("SPANLAB_LEADS", "lead@example.org,oidc:7")
    for claims in (
        _claims(sub="3", name="Eve"),
        _claims(sub="4", email="lead@example.org"),
        _claims(sub="5", email="lead@example.org", email_verified="true"),
        _claims(sub="6", preferred_username="lead@example.org"),
        _claims(sub="oidc:2"),
        _claims(sub="lead@example.org"),  # a subject that looks like the lead's address
    ):
        who = access.visitor(store, claims, None, arrives=True)
        assert who.roles == {}, claims
        assert who.name != "Eve"
    verified = _claims(sub="8", email="Lead@example.org", email_verified=True)
    for claims in (verified, _claims(sub="7")):
        assert Role.LEAD in access.visitor(store, claims, None).roles[None]


def test_a_role_that_was_taken_back_is_gone_at_the_next_click(store: Store) -> None:
    _acting(store, Role.ANNOTATOR)
    session = _claims()
    assert access.visitor(store, session, None).roles
    store.access.revoke("Anna", Role.ANNOTATOR, "ours")
    stale = store.acting_as(access.visitor(store, session, None))
    assert stale.datasets() == []
    with pytest.raises(AccessError):
        stale.record("ours", "a")


def test_cookies_of_invitations_cannot_be_made_up_and_end(store: Store) -> None:
    end = datetime.now(UTC) + timedelta(hours=1)
    link = store.access.make_token("invitation", Role.ANNOTATOR, "ours", expires=end)
    key = store.access.make_token("key", Role.LEAD, None)
    cookie = store.access.accept(link)
    assert cookie is not None
    for wrong in (link, key, "", cookie[:-1], f"{cookie}x", cookie.swapcase(), "invitation:1"):
        assert access.visitor(store, {}, wrong) is NOBODY, wrong
    assert access.visitor(store, {}, cookie).may_somewhere(Permission.REVIEW)
    assert store.access.bearer(cookie) is None  # nor is it a key
    with store.writing(Permission.ADMINISTER) as connection:
        ended = update(access_tokens).values(expires=datetime.now(UTC).timestamp())
        connection.execute(ended.where(access_tokens.c.expires == end.timestamp()))
    assert access.visitor(store, {}, cookie) is NOBODY


def test_an_invitation_is_a_link_for_a_person_and_never_for_a_lead(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = datetime.now(UTC) + timedelta(days=7)
    with pytest.raises(UsageError, match="spanlab serve --invite"):
        access.invite(store, "ours", Role.ANNOTATOR, end)
    for variable, value in (_LOGIN | {"SPANLAB_URL": ""}).items():
        monkeypatch.setenv(variable, value)
    with pytest.raises(UsageError, match="a login needs SPANLAB_URL, too"):
        access.invite(store, "ours", Role.ANNOTATOR, end)
    monkeypatch.setenv("SPANLAB_URL", "https://lab.example.org/")
    links = {access.invite(store, "ours", Role.ANNOTATOR, end) for _ in range(2)}
    assert len(links) == 2
    assert all(link.startswith("https://lab.example.org/invitation?to=sl-") for link in links)
    with pytest.raises(UsageError, match="for no lead"):
        access.invite(store, "ours", Role.LEAD, end)
    assert [access.state_of(token) for token in store.access.tokens("invitation")] == ["open"] * 2


@pytest.mark.parametrize(
    ("subject", "email"), [("1", "lea@example.org"), ("2", None)], ids=["of them", "of another"]
)
def test_what_userinfo_says_counts_for_the_subject_of_the_token_alone(
    subject: str, email: str | None
) -> None:
    said = {"sub": subject, "email": "lea@example.org", "email_verified": True}
    client = SimpleNamespace(
        load_server_metadata=AsyncMock(return_value={"userinfo_endpoint": "/userinfo"}),
        userinfo=AsyncMock(return_value=said),
    )
    claims = asyncio.run(_complete(client, {"userinfo": {"sub": "1"}}))
    assert (claims["sub"], claims.get("email")) == ("1", email)
