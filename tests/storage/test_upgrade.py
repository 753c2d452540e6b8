"""Opening a database: new, up to date, older, newer, foreign, or none at all."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text

import spanlab.storage.migrations
from spanlab.errors import StoreError
from spanlab.oplog import Add, Note, SetStatus
from spanlab.schema import (
    Annotation,
    Claim,
    DatasetSettings,
    Kind,
    QueueQuery,
    Record,
    Status,
    Undecided,
)
from spanlab.settings import Settings
from spanlab.storage import Store, StoredJob, Write
from spanlab.storage.engine import Database
from spanlab.storage.tables import metadata
from spanlab.storage.upgrade import REVISIONS, VERSION_TABLE, migrate

MakeRecord = Callable[..., Record]
Say = Callable[..., Annotation]

_OPEN = """
import sys
from spanlab.settings import Settings
from spanlab.storage import Store
Store.open(Settings.model_validate_json(sys.argv[1])).close()
print("alembic" in sys.modules)
"""


def test_a_new_database_has_exactly_the_tables_of_the_code(empty: Settings) -> None:
    Store.open(empty).close()
    database = Database(empty.database_url)
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": VERSION_TABLE})
        ours = [each for each in compare_metadata(context, metadata) if not _of_search(each)]
        assert ours == []
    database.close()
    assert not (empty.home / "backups").exists()


def _of_search(difference: object) -> bool:
    """Say whether it is about the tables of the search, which SQLAlchemy does not describe."""
    return "'item_search" in repr(difference)


def test_the_known_revisions_are_those_of_the_migrations() -> None:
    config = Config()
    (folder,) = spanlab.storage.migrations.__path__
    config.set_main_option("script_location", folder)
    scripts = ScriptDirectory.from_config(config)
    assert tuple(script.revision for script in scripts.walk_revisions())[::-1] == REVISIONS


def test_an_older_database_is_migrated_with_its_data(empty: Settings, record: MakeRecord) -> None:
    _make_first_revision(empty, record)
    database = Database(empty.database_url)
    with Store.open(empty) as store:
        review = store.review("d", "a", "me")
        assert (review.version, review.state.status) == (1, Status.DONE)
        # What the third and the sixth revision bring: settings of the dataset.
        assert [each.settings for each in store.datasets()] == [DatasetSettings()]
        # What the eleventh revision brings: gold labels have a log, too, of several people.
        drawn = Add(span="x", start=0, end=3)
        assert not store.apply("d", "a", "gold", [Write("s", 2, 0, drawn, "Ada")]).refused
        # What the second revision brings: the log can no longer be changed.
        with (
            pytest.raises(StoreError, match="append-only"),
            database.writing() as connection,
        ):
            connection.execute(text("DELETE FROM operations"))
        store.delete_dataset("d")
    database.close()


def test_an_sqlite_file_is_backed_up_before_it_is_migrated(
    tmp_path: Path, record: MakeRecord
) -> None:
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'work.db'}")
    _make_first_revision(settings, record)
    with closing(sqlite3.connect(tmp_path / "work.db")) as still_open:
        # Not in the file itself yet but in its write-ahead log, which a plain copy would miss.
        still_open.execute("UPDATE datasets SET name = 'renamed'")
        still_open.commit()
        Store.open(settings).close()
    Store.open(settings).close()
    (backup,) = (tmp_path / "backups").iterdir()
    assert backup.name.startswith("work-0001-")
    with closing(sqlite3.connect(backup)) as copy:
        assert copy.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        assert copy.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchone() == ("0001",)
        assert copy.execute("SELECT name FROM datasets").fetchone() == ("renamed",)
        assert copy.execute("SELECT count(*) FROM operations").fetchone() == (1,)
    # The backup is a database like any other.
    restored = settings.model_copy(update={"database_url": f"sqlite:///{backup}"})
    with Store.open(restored) as store:
        assert store.record("renamed", "a").item == record("a").item


def test_processes_that_open_at_once_do_not_collide(empty: Settings, record: MakeRecord) -> None:
    _make_first_revision(empty, record)
    processes = [_open(empty) for _ in range(2)]
    outputs = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    backups = list((empty.home / "backups").glob("*"))
    assert len(backups) == (1 if "sqlite" in empty.database_url else 0)
    with Store.open(empty) as store:
        assert store.review("d", "a", "me").version == 1


def test_opening_what_is_up_to_date_does_not_import_alembic(settings: Settings) -> None:
    output, _ = _open(settings).communicate()
    assert output == b"False\n"


def test_a_newer_database_is_refused(settings: Settings) -> None:
    database = Database(settings.database_url)
    with database.writing() as connection:
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '9999'"))
    database.close()
    with pytest.raises(StoreError, match=r"revision 9999, this spanlab knows .* a newer spanlab"):
        Store.open(settings)


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


def test_an_upgrade_finds_the_datasets_of_the_json_api_by_their_whole_names(
    empty: Settings, record: MakeRecord
) -> None:
    job = "0123456789abcdef"
    names = [
        f"api-{job}",
        f"api-{job}0",
        f"api-{job[1:]}",
        f"xapi-{job}",
        "api-9",
        f"api-{job}\u0661",
    ]
    with Store.open(empty) as store:
        for name in names:
            store.import_records(name, [record("a"), record("b")])
    _take_back(empty, "0016")
    with Store.open(empty) as store:
        assert [each.name for each in store.datasets()] == names
        assert store.api_jobs(limit=9) == [StoredJob(job, f"api-{job}", 2)]


def _make_first_revision(settings: Settings, record: MakeRecord) -> None:
    """Make a database as the first version left it, with a dataset and a review in it."""
    with Store.open(settings) as store:
        store.import_records("d", [record("a")])
        store.apply("d", "a", "me", [Write("s", 1, 0, SetStatus(status=Status.DONE))])
    _take_back(settings, REVISIONS[0])


_BROUGHT = {  # what takes a revision's tables and columns back, newest first
    "0017": ("DROP TABLE api_jobs",),
    "0016": ("DROP TABLE reservations",),
    "0015": tuple(
        f"DROP TABLE {table}"
        for table in ("memory_keys", "memories", "memory_grams", "memory_aliases", "tool_calls")
    ),
    "0014": ("ALTER TABLE operations DROP COLUMN seconds",),
    "0013": ("ALTER TABLE operations DROP COLUMN guidelines",),
    "0011": ("ALTER TABLE operations DROP COLUMN author",),
    "0010": (
        "DELETE FROM facets WHERE name = 'passages'",
        "DELETE FROM facets WHERE name LIKE 'labels/%' OR name LIKE 'claims/%'",
    ),
    "0009": ("DROP TABLE item_search",),
    "0008": ("DROP TABLE process_nodes", "DROP TABLE processes"),
    "0006": (
        "ALTER TABLE datasets DROP COLUMN settings",
        "ALTER TABLE datasets ADD COLUMN undecided TEXT NOT NULL DEFAULT 'rejected'",
    ),
    "0005": ("DELETE FROM facets WHERE name = 'disagreement/detectors'",),
    "0004": ("DROP TABLE answers",),
    "0003": ("ALTER TABLE datasets DROP COLUMN undecided",),
}
_TRIGGERS = {  # of the second revision
    "sqlite": ("DROP TRIGGER operations_no_update", "DROP TRIGGER operations_no_delete"),
    "postgresql": ("DROP FUNCTION operations_append_only CASCADE",),
}


def _take_back(settings: Settings, revision: str) -> None:
    """Leave a database as an earlier revision would have left it."""
    database = Database(settings.database_url)
    with database.writing() as connection:
        brought = _BROUGHT | {"0002": _TRIGGERS[connection.dialect.name]}
        for later, statements in brought.items():
            for statement in statements if later > revision else ():
                connection.execute(text(statement))
        connection.execute(text(f"UPDATE {VERSION_TABLE} SET version_num = '{revision}'"))
    database.close()


def _open(settings: Settings) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-c", _OPEN, settings.model_dump_json()]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_an_upgrade_tells_the_disagreement_of_detectors_from_that_of_people(
    empty: Settings, record: MakeRecord, said: Say
) -> None:
    both = [said("d1", (0, 3)), said("d2", (4, 7))]
    person = said("Ben", (4, 7), kind=Kind.PERSON)
    with Store.open(empty) as store:
        store.import_records("d", [record("a", *both), record("b", *both, person)])
        store.import_records("d", [record("c", said("d1", (0, 3)), person)])
        query = QueueQuery(reviewer="me", blind=True)
        expected = [row.disagreement for row in store.page("d", query).rows]
    _take_back(empty, "0004")
    with Store.open(empty) as store:
        assert [row.disagreement for row in store.page("d", query).rows] == expected
        assert expected == [1.0, 1.0, None]


def test_an_upgrade_keeps_what_done_makes_of_undecided_suggestions(empty: Settings) -> None:
    database = Database(empty.database_url)
    with database.writing() as connection:
        migrate(connection, "0005")
        row = "('d', '2026-01-01T00:00:00+00:00', 'ready', 0, 'ask')"
        columns = "name, created, state, n_items, undecided"
        connection.execute(text(f"INSERT INTO datasets ({columns}) VALUES {row}"))
    database.close()
    with Store.open(empty) as store:
        assert [each.settings for each in store.datasets()] == [
            DatasetSettings(undecided=Undecided.ASK)
        ]


def test_an_upgrade_makes_what_is_stored_searchable(empty: Settings, record: MakeRecord) -> None:
    with Store.open(empty) as store:
        store.import_records("d", [record("a"), record("b", answer="Nobody knows.")])
        store.apply("d", "b", "me", [Write("s", 1, 0, Note(text="odd"))])
    _take_back(empty, "0008")
    with Store.open(empty) as store:
        for searched, found in (("tower", "a"), ("know", "b"), ("odd", "b")):
            page = store.page("d", QueueQuery(reviewer="me", text=searched))
            assert [row.item_id for row in page.rows] == [found]


def test_an_upgrade_counts_what_the_table_of_items_shows(
    empty: Settings, record: MakeRecord, said: Say
) -> None:
    claimed = said("d1", (0, 3)).model_copy(update={"claims": (Claim(text="There is one."),)})
    with Store.open(empty) as store:
        store.import_records("d", [record("a"), record("b", claimed)])
    query = QueueQuery(reviewer="me", order="claims")
    _take_back(empty, "0009")
    with Store.open(empty) as store:
        assert [(row.item_id, row.n_claims) for row in store.page("d", query).rows] == [
            ("b", 1),
            ("a", 0),
        ]


def test_an_upgrade_gives_reviews_the_claims_that_they_began_with(
    empty: Settings, record: MakeRecord, said: Say
) -> None:
    claim = Claim(text="There is one.", verdict="supported")
    mine = said("me", kind=Kind.PERSON).model_copy(update={"claims": (claim,)})
    with Store.open(empty) as store:
        store.import_records("d", [record("a", mine)])
        store.apply("d", "a", "me", [Write("s", 1, 0, Note(text="sure"))])
    database = Database(empty.database_url)
    with database.writing() as connection:  # as that revision left it
        state = """{"status": "done", "note": "sure"}"""
        connection.execute(text("UPDATE reviews SET state = :state"), {"state": state})
    database.close()
    _take_back(empty, "0006")
    with Store.open(empty) as store:
        assert store.review("d", "a", "me").state == store.rebuild("d", "a", "me")
        store.apply("d", "a", "me", [Write("s", 2, 1, Note(text="quite sure"))])
        reviewed = store.record("d", "a").by("me")
        assert reviewed == mine.model_copy(update={"note": "quite sure"})
