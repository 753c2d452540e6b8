"""Opening a database: new, up to date, older, newer, foreign, or none at all."""

from __future__ import annotations

import gzip
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random

import psycopg
import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from random_queues import PlainQueue, compare
from rebuilt import rebuilt
from sqlalchemy import Connection, make_url, text

import spanlab.storage.migrations
from spanlab.base.errors import StoreError
from spanlab.base.settings import Settings
from spanlab.oplog.operations import SentOperation, SetStatus
from spanlab.schema import Annotation, AnnotatorKind, CheckRules, QueueQuery, Record, Status
from spanlab.storage import Store, api_jobs
from spanlab.storage.api_jobs import StoredJob
from spanlab.storage.engine import Database
from spanlab.storage.tables import metadata
from spanlab.storage.upgrade import REVISIONS, VERSION_TABLE
from spanlab.worklists import check_items, drawing, paging, plans

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]

_STORED = Path(__file__).parent / "stored"
_OPEN = """
import sys
from spanlab.base.settings import Settings
from spanlab.storage import Store
Store.open(Settings.model_validate_json(sys.argv[1])).close()
print("alembic" in sys.modules)
"""


@pytest.fixture
def older(empty: Settings) -> Settings:
    """A database that the commit 75cc3f0 wrote: samples under review, and a random dataset "d"."""
    return _restored(empty, "0016")


def _restored(empty: Settings, revision: str) -> Settings:
    if "sqlite" in empty.database_url:
        path = make_url(empty.database_url).database or ""
        Path(path).write_bytes(
            gzip.decompress((_STORED / f"spanlab-{revision}.db.gz").read_bytes())
        )
    else:
        dump = gzip.decompress((_STORED / f"spanlab-{revision}.sql.gz").read_bytes())
        with psycopg.connect(empty.database_url) as connection:
            connection.execute(dump)
    return empty


def test_a_new_database_has_exactly_the_tables_of_the_code(empty: Settings) -> None:
    Store.open(empty).close()
    _has_exactly_the_tables_of_the_code(empty)
    assert not (empty.home / "backups").exists()


def _has_exactly_the_tables_of_the_code(settings: Settings) -> None:
    database = Database(settings.database_url)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        ours = [each for each in compare_metadata(context, metadata) if not _of_search(each)]
        assert ours == []
    database.close()


def _of_search(difference: object) -> bool:
    """Say whether it is about the tables of the search, which SQLAlchemy does not describe."""
    return "'item_search" in repr(difference)


def test_the_known_revisions_are_those_of_the_migrations() -> None:
    config = Config()
    (folder,) = spanlab.storage.migrations.__path__
    config.set_main_option("script_location", folder)
    scripts = ScriptDirectory.from_config(config)
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS


@pytest.mark.parametrize("revision", REVISIONS)
def test_a_stored_database_opens_with_its_data(empty: Settings, revision: str) -> None:
    """All of a database that an earlier commit wrote; its queues are as if made anew.

    75cc3f0 wrote 0016, 71fc086 made 0021 of it and gave somebody a role; later ones made
    0022 and all others of that.
    """
    stored = _restored(empty, revision)
    with Store.open(stored) as store:
        assert len(store.access.granted()) == (revision != "0016")
        assert store.access.verify_log() == (int(revision != "0016"), 0)
        assert [(dataset.name, dataset.n_items) for dataset in store.datasets()] == [
            ("samples", 8),
            ("d", 25),
        ]
        plain, chance = PlainQueue(tuple(store.records("d")), {}), Random(1)
        for _ in range(8):
            for question, expected, given in compare(store, plain, chance):
                assert given == expected, question
        assert store.settings("samples").assigned_to == ("Ann", "Ben", "Cem")
        for item in (record.item.id for record in list(store.records("samples"))[:4]):
            review = store.review("samples", item, "Ann")
            assert (review.version, review.state.status) == (3, Status.DONE)
            assert rebuilt(store, "samples", item, "Ann") == review.state
        plan = plans.plan(store, "samples")
        assert plan is not None
        assert (plan.done, plan.people[0].done + plan.people[0].beyond) == (5, 4)
        found = paging.page(
            store, "samples", QueueQuery(reviewer="Ann", text="looked", label="name")
        )
        assert len(found.rows) == 4
    _has_exactly_the_tables_of_the_code(stored)


def test_a_log_cannot_be_changed_but_goes_with_its_annotator_and_its_dataset(
    settings: Settings, record: MakeRecord
) -> None:
    _check_logs(settings, record)


def test_a_log_of_an_older_database_cannot_be_changed_either(
    older: Settings, record: MakeRecord
) -> None:
    _check_logs(older, record)


def _check_logs(settings: Settings, record: MakeRecord) -> None:
    database = Database(settings.database_url)
    with Store.open(settings) as store:
        store.import_records("logs", [record("a")])
        for name in ("me", "you"):
            write = SentOperation(name, 1, 0, SetStatus(status=Status.DONE))
            assert not store.apply("logs", "a", name, [write]).refused
        for change in ("DELETE FROM operations", "UPDATE operations SET seq = 7"):
            refused = pytest.raises(StoreError, match="append-only")
            with refused, database.writing() as connection:
                connection.execute(text(change))
        store.remove_annotator("logs", "you")
        store.delete_dataset("logs")
    database.close()


def test_an_sqlite_file_is_backed_up_before_it_is_migrated(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'work.db'}")
    (tmp_path / "work.db").write_bytes(
        gzip.decompress((_STORED / "spanlab-0016.db.gz").read_bytes())
    )
    with closing(sqlite3.connect(tmp_path / "work.db")) as still_open:
        # Not in the file itself yet but in its write-ahead log, which a plain copy would miss.
        still_open.execute("PRAGMA journal_mode = WAL")
        still_open.execute("UPDATE datasets SET name = 'renamed' WHERE name = 'd'")
        still_open.commit()
        Store.open(settings).close()
    Store.open(settings).close()
    (backup,) = (tmp_path / "backups").iterdir()
    assert backup.name.startswith("work-0016-")
    with closing(sqlite3.connect(backup)) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert copy.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() == ("0016",)
        assert ("renamed",) in copy.execute("SELECT name FROM datasets").fetchall()
    # The backup is a database like any other.
    restored = settings.model_copy(update={"database_url": f"sqlite:///{backup}"})
    with Store.open(restored) as store:
        assert len(paging.positions(store, "renamed", QueueQuery(reviewer="me"))) == 25


def test_processes_that_open_at_once_do_not_collide(older: Settings) -> None:
    processes = [_open(older) for _ in range(2)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    backups = list((older.home / "backups").glob("*"))
    assert len(backups) == (1 if "sqlite" in older.database_url else 0)
    with Store.open(older) as store:
        assert len(paging.positions(store, "d", QueueQuery(reviewer="me"))) == 25


def test_processes_that_make_a_database_at_once_do_not_collide_and_import_no_alembic(
    empty: Settings,
) -> None:
    """Nor does one that finds it up to date."""
    processes = [_open(empty) for _ in range(2)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert [said for said, _ in (*outputs, _open(empty).communicate())] == [b"False\n"] * 3


@pytest.mark.parametrize(("revision", "commit"), [("0009", "75cc3f0"), ("0018", "71fc086")])
def test_a_database_that_is_too_old_is_refused_with_what_to_do(
    older: Settings, revision: str, commit: str
) -> None:
    database = Database(older.database_url)
    with database.writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'"))
    database.close()
    refusal = f"revision {revision}.*open it once with the commit {commit}"
    with pytest.raises(StoreError, match=refusal):
        Store.open(older)
    assert not (older.home / "backups").exists()


def test_a_newer_database_is_refused(empty: Settings) -> None:
    Store.open(empty).close()
    database = Database(empty.database_url)
    with database.writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    database.close()
    with pytest.raises(StoreError, match=r"revision 9999, this spanlab knows .* a newer spanlab"):
        Store.open(empty)


def test_a_database_of_something_else_is_refused(empty: Settings) -> None:
    database = Database(empty.database_url)
    with database.writing() as connection:
        connection.execute(text("CREATE TABLE items (price INTEGER)"))
    database.close()
    with pytest.raises(StoreError, match="a table 'items' that is not spanlab's"):
        Store.open(empty)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("These are my notes, and they are longer than a header. " * 20)
    before = path.read_bytes()
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{path}")
    with pytest.raises(StoreError, match=r"notes.txt: file is not a database"):
        Store.open(settings)
    assert path.read_bytes() == before


def test_a_place_that_cannot_be_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path}/file/spanlab.db")
    with pytest.raises(StoreError, match="cannot make the directory"):
        Store.open(settings)
    with pytest.raises(StoreError, match="unable to open database file"):
        Store.open(settings.model_copy(update={"database_url": f"sqlite:///{tmp_path}"}))


def _open(settings: Settings) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _OPEN, settings.model_dump_json()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_an_upgrade_finds_the_datasets_of_the_json_api_by_their_whole_names(
    older: Settings,
) -> None:
    job = "0123456789abcdef"
    names = {"samples": f"api-{job}", "d": f"api-{job}0"}
    database = Database(older.database_url)
    with database.writing() as connection:
        for was, now in names.items():
            connection.execute(text(f"UPDATE datasets SET name = '{now}' WHERE name = '{was}'"))
    database.close()
    with Store.open(older) as store:
        assert [each.name for each in store.datasets()] == list(names.values())
        assert api_jobs.find(store, limit=9) == [StoredJob(job, f"api-{job}", 8)]


def test_lists_of_before_keep_their_order_and_get_secrets(
    empty: Settings, record: MakeRecord, said: Say
) -> None:
    """A database of revision 0024 is one of today without a table and some columns."""
    gold = said("gold", (4, 9), kind=AnnotatorKind.GOLD)
    names = [f"{'known' if n % 4 == 0 else 'item'} {n}" for n in range(40)]
    query = QueueQuery(reviewer="Ada", listed=True, limit=1000)
    columns = [("queues", "secret"), ("queue_items", "twin"), ("queue_values", "turn")]
    columns.append(("queue_values", "unanimous"))

    with Store.open(empty) as store:
        store.import_records("d", [record(n, *([gold] if n[0] == "k" else [])) for n in names])
        rules = {
            "known": CheckRules(labels=("gold",), share=0.25),
            "always_blind": True,
            "overlap": 1,
            "assigned_to": ("Ada", "Ben"),
        }
        store.change_settings("d", lambda now: now.model_copy(update=rules))
        with store.database.writing() as connection:  # as it was dealt before
            connection.execute(text("UPDATE queue_values SET turn = position"))
        drawing.draw(store, "d", "Ada")
        before, part = paging.page(store, "d", query).rows, plans.plan(store, "d")
        with store.database.writing() as connection:
            _tell_given_apart(connection)
            for table, column in columns:
                connection.execute(text(f"ALTER TABLE {table} DROP COLUMN {column}"))
            connection.execute(text("DROP TABLE looks"))
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0024'"))
    with Store.open(empty) as store:
        drawing.draw(store, "d", "Ada")
        assert paging.page(store, "d", query).rows == before
        assert plans.plan(store, "d") == part
        with store.database.reading() as connection:
            (secret,) = connection.execute(text("SELECT secret FROM queues")).scalars()
            assert len(secret) == 32


def test_what_people_agree_on_is_found_in_a_database_of_before(
    empty: Settings, record: MakeRecord, said: Say
) -> None:
    """A detector differs in all; Ann and Ben in the place, in the label, in nothing."""
    detector, person = said("d", (0, 2)), AnnotatorKind.PERSON
    ann, ben = (said(name, (4, 9), kind=person) for name in ("Ann", "Ben"))
    labelled = ben.spans[0].model_copy(update={"label": "name"})
    others = {
        "agreed": ben,
        "place": said("Ben", (4, 7), kind=person),
        "label": ben.model_copy(update={"spans": (labelled,)}),
        "detector": said("d2", (4, 9)),
    }
    query = QueueQuery(reviewer="gold", order="disputed")
    with Store.open(empty) as store:
        store.import_records("d", [record(n, detector, ann, by) for n, by in others.items()])
        rows = paging.page(store, "d", query).rows
        assert rows[-1].item_id == "agreed"
        assert paging.n_unanimous(store, "d", query) == 1
        with store.database.writing() as connection:
            connection.execute(text("ALTER TABLE queue_values DROP COLUMN unanimous"))
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0027'"))
    with Store.open(empty) as store:
        assert paging.page(store, "d", query).rows == rows


def _tell_given_apart(connection: Connection) -> None:
    """Keep what people got of check items in a table of its own, as until revision 0026."""
    columns = "dataset_id, position, reviewer, attempt"
    connection.execute(
        text(
            f"CREATE TABLE known_given AS SELECT {columns}, twin AS after FROM queue_items "
            "WHERE attempt IS NOT NULL"
        )
    )
    connection.execute(text("UPDATE known_given SET after = NULL"))
    connection.execute(text("ALTER TABLE queue_items DROP COLUMN attempt"))


def test_check_items_that_people_got_stand_in_their_lists_in_the_same_order(
    empty: Settings, record: MakeRecord, said: Say
) -> None:
    """Ada has a list with a test and check items; Ben had both before there were lists."""
    gold = said("gold", (4, 9), kind=AnnotatorKind.GOLD)
    names = [f"{'known' if n % 4 == 0 else 'item'} {n}" for n in range(24)]
    query = QueueQuery(reviewer="Ada", listed=True, limit=100)
    with Store.open(empty) as store:
        store.import_records("d", [record(n, *([gold] if n[0] == "k" else [])) for n in names])
        rules = {"known": CheckRules(labels=("gold",), share=0.25), "always_blind": True}
        store.change_settings("d", lambda now: now.model_copy(update=rules))
        drawing.give_test(store, "d", "Ada", 1, 2)
        drawing.draw(store, "d", "Ada")
        for number, name in enumerate(("item 9", "item 3", "known 4", "known 20", "known 0"), 1):
            write = SentOperation("Ben", number, 0, SetStatus(status=Status.DONE))
            assert not store.apply("d", name, "Ben", [write]).refused
        rows, given = paging.page(store, "d", query).rows, check_items.given_to(store, "d", "Ada")
        assert given.hidden and given.tests
        with store.database.writing() as connection:
            _tell_given_apart(connection)
            connection.execute(text("ALTER TABLE queue_values DROP COLUMN unanimous"))
            for position, attempt, after in ((4, 0, 9), (20, 1, "NULL"), (0, 1, "NULL")):
                values = f"1, {position}, 'Ben', {attempt}, {after}"
                connection.execute(text(f"INSERT INTO known_given VALUES ({values})"))
            connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '0026'"))
    with Store.open(empty) as store:
        for person in ("Ada", "Ben"):
            drawing.draw(store, "d", person)
        assert paging.page(store, "d", query).rows == rows
        assert check_items.given_to(store, "d", "Ada") == given
        of_ben = QueueQuery(reviewer="Ben", listed=True, limit=5)
        seen = [row.item_id for row in paging.page(store, "d", of_ben).rows]
        assert seen == ["known 0", "known 20", "item 3", "item 9", "known 4"]
        ben = check_items.given_to(store, "d", "Ben")
        assert {each.item_id for each in ben.tests} == {"known 0", "known 20"}
        assert "known 4" in {each.item_id for each in ben.hidden}
