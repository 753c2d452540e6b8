"""A person who leaves is nowhere in the database any more, on SQLite and on PostgreSQL."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import select, text

from spanlab.base.errors import AccessError, NotFoundError, StoreError
from spanlab.base.settings import Settings
from spanlab.data.versions import snapshot
from spanlab.oplog.operations import AddSpan, CommentSpan, SentOperation, SetStatus
from spanlab.people.forgetting import forget_person
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Role, Status
from spanlab.storage import Store
from spanlab.storage.datasets import copy_as_gold, digest_of
from spanlab.storage.tables import metadata
from spanlab.worklists import entrances
from spanlab.worklists.entrances import Entrance

MakeRecord = Callable[..., Record]
NAME, SUBJECT, EMAIL = "Quillfeather", "oidc:quill-7", "quill@example.org"


@pytest.fixture
def campaign(store: Store, record: MakeRecord, said: Callable[..., Annotation]) -> Store:
    """A campaign in which somebody did all that one can do, with a version, and one in the bin."""
    vote = said("vote", (4, 9), kind=AnnotatorKind.VOTE).model_copy(
        update={"voters": (NAME, "Ben")}
    )
    for dataset in ("ours", "gone"):
        store.import_records(dataset, [record("a", vote), record("b")])
    store.access.sign_in(SUBJECT, NAME, EMAIL)
    store.access.sign_in("oidc:2", "Lea")
    store.access.grant(NAME, Role.ANNOTATOR, "ours")
    store.access.grant(EMAIL, Role.LEAD)
    values = {"overlap": 2, "assigned_to": (NAME, "Ben")}
    store.change_settings("ours", lambda settings: settings.model_copy(update=values))
    entrances.confirm_read(store, "ours", NAME, 1)
    entrances.enter(store, "ours", Entrance(NAME, 1, 0.7, passed=True, at=datetime.now(UTC)))
    for number, (dataset, item) in enumerate((("ours", "a"), ("ours", "b"), ("gone", "a"))):
        writes = [
            SentOperation(f"s{number}", 1, 0, AddSpan(span="x", start=0, end=3)),
            SentOperation(f"s{number}", 2, 1, CommentSpan(text="odd")),
            SentOperation(f"s{number}", 3, 2, SetStatus(status=Status.DONE)),
        ]
        mine = store.acting_as(store.access.actor(SUBJECT, EMAIL))
        mine.apply(dataset, item, NAME, writes)
    copy_as_gold(store, "ours", NAME)
    end = datetime.now(UTC) + timedelta(days=1)
    lead = store.acting_as(store.access.actor(SUBJECT, EMAIL))
    lead.access.make_token("invitation", Role.ANNOTATOR, "ours", label="Ben", expires=end)
    snapshot(store, "ours", "v1")
    store.bin_dataset("gone")
    return store


def _words(store: Store) -> str:
    with store.database.reading() as connection:
        rows = [
            row for table in metadata.sorted_tables for row in connection.execute(select(table))
        ]
    return "\n".join(map(str, rows))


def test_nothing_in_the_whole_database_has_the_name(campaign: Store, settings: Settings) -> None:
    assert all(word in _words(campaign) for word in (NAME, SUBJECT, EMAIL))
    n_done = {each.name: each.counts for each in campaign.datasets()[0].annotators}
    said = forget_person(campaign, NAME)
    everything = _words(campaign)
    assert not [word for word in (NAME, SUBJECT, EMAIL) if word in everything]
    if "sqlite" in settings.database_url:
        files = [file for file in settings.home.iterdir() if file.name.startswith("spanlab.db")]
        contents = b"".join(file.read_bytes() for file in files)
        assert not [word for word in (NAME, SUBJECT, EMAIL) if word.encode() in contents]
    new = said[0].split()[2]
    counts = {each.name: each.counts for each in campaign.datasets()[0].annotators}
    assert counts == {name.replace(NAME, new): count for name, count in n_done.items()}
    assert campaign.settings("ours").assigned_to == (new, "Ben")
    assert campaign.settings("ours").away == (new,)  # others get what they have not finished
    vote = campaign.record("ours", "a").by("vote")
    assert vote is not None
    assert vote.voters == (new, "Ben")
    assert campaign.review("ours", "a", new).version == 3
    assert campaign.access.verify_log()[1] == 0
    assert campaign.access.log()[0].about == new
    version = next(each for each in campaign.datasets(versions=True) if each.name == "ours@v1")
    assert version.digest == digest_of(campaign, "ours@v1")
    assert f"the SHA-256 of ours@v1 is {version.digest} now" in said
    assert "not reached: files that were exported" in said[-1]
    assert campaign.access.actor(SUBJECT, EMAIL).roles == {}


def test_marks_go_where_the_lead_says_so_and_the_logs_refuse_changes_as_before(
    campaign: Store,
) -> None:
    forget_person(campaign, NAME, keep=False)
    for dataset in campaign.datasets(versions=True):
        assert not dataset.names_of(AnnotatorKind.PERSON)
    assert campaign.access.verify_log()[1] == 0
    add = AddSpan(span="y", start=0, end=3)
    campaign.apply("ours", "a", "Ben", [SentOperation("t", 1, 0, add)])
    for change in ("UPDATE access_log SET about = 'x'", "UPDATE operations SET session = 'x'"):
        refused = pytest.raises(StoreError, match="append-only")
        with refused, campaign.database.writing() as changing:
            changing.execute(text(change))


def test_only_who_leads_all_datasets_forgets_others_who_are_there(campaign: Store) -> None:
    with pytest.raises(NotFoundError, match="nobody called 'Zoe'"):
        forget_person(campaign, "Zoe")
    with pytest.raises(AccessError):
        forget_person(campaign.acting_as(campaign.access.actor("oidc:2")), NAME)
    with pytest.raises(AccessError, match="somebody else"):
        forget_person(campaign.acting_as(campaign.access.actor(SUBJECT, EMAIL)), NAME)


def test_a_dataset_that_nobody_has_annotated_is_no_obstacle(campaign: Store) -> None:
    campaign.import_records("new", [Record(item=Item(id="a", answer="In 1889."))])
    assert forget_person(campaign, NAME)
    assert NAME not in _words(campaign)


def test_a_name_that_somebody_typed_into_a_note_is_counted(campaign: Store) -> None:
    add, comment = AddSpan(span="y", start=0, end=3), CommentSpan(text=f"as {NAME} says")
    writes = [SentOperation("t", 1, 0, add), SentOperation("t", 2, 1, comment)]
    campaign.apply("ours", "a", "Ben", writes)
    said = forget_person(campaign, NAME)
    assert "the name is still in texts: 1 row of annotations" in said
