"""The same tests on both databases: an SQLite file, and a real PostgreSQL server."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import count
from pathlib import Path

import psycopg
import pytest

from spanlab.schema import Annotation, Item, Kind, Record, Span, Status
from spanlab.settings import Settings
from spanlab.storage import Store

_SECONDS = 30  # until the server must answer
_ABSENT = (
    "the storage tests need PostgreSQL's programs (initdb and postgres); "
    "on Debian: apt-get install postgresql"
)
_NUMBERS = count()
_BACKENDS = ("sqlite", "postgresql")


@pytest.fixture(params=_BACKENDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings of a database that has nothing in it yet."""
    if request.param == "sqlite":
        return _sqlite(tmp_path)
    server: str = request.getfixturevalue("server")
    return Settings(home=tmp_path, database_url=_url(server, _new_database(server, "template1")))


@pytest.fixture(scope="session", params=_BACKENDS)
def new_database(request: pytest.FixtureRequest) -> Callable[[Path], Settings]:
    """Make a database that has all tables, and nothing in them."""
    if request.param == "sqlite":
        migrated: Path = request.getfixturevalue("migrated_file")

        def make(home: Path) -> Settings:
            shutil.copy(migrated, home / migrated.name)
            return _sqlite(home)

        return make
    server: str = request.getfixturevalue("server")
    template: str = request.getfixturevalue("migrated_template")
    return lambda home: Settings(
        home=home, database_url=_url(server, _new_database(server, template))
    )


@pytest.fixture
def settings(new_database: Callable[[Path], Settings], tmp_path: Path) -> Settings:
    """Settings of a database that has all tables, and nothing in them."""
    return new_database(tmp_path)


@pytest.fixture
def store(settings: Settings) -> Iterator[Store]:
    """An open store without datasets."""
    with Store.open(settings) as opened:
        yield opened


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An SQLite file that has all tables; closed, so that copying it is safe."""
    path = tmp_path_factory.mktemp("migrated") / "spanlab.db"
    Store.open(_sqlite(path.parent)).close()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path


@pytest.fixture(scope="session")
def migrated_template(server: str, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a PostgreSQL database that has all tables."""
    name = _new_database(server, "template1")
    home = tmp_path_factory.mktemp("home")
    Store.open(Settings(home=home, database_url=_url(server, name))).close()
    return name


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The socket directory of a private PostgreSQL server, stopped whatever happens."""
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="spanlab-pg-"))
    try:
        _give_away(folder)
        data = folder / "data"
        initdb = [str(programs / "initdb"), "-D", str(data), "-U", "spanlab", "-A", "trust"]
        initdb += ["-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run([*_unprivileged(), *initdb], check=True, capture_output=True)
        postgres = [str(programs / "postgres"), "-D", str(data), "-c", "fsync=off"]
        postgres += ["-c", "listen_addresses=", "-c", f"unix_socket_directories={folder}"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*_unprivileged(), *postgres], stderr=log)
        try:
            _wait(folder, process)
            yield str(folder)
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: nothing in it is wanted any more
            process.wait(timeout=_SECONDS)
    finally:
        shutil.rmtree(folder)


def _sqlite(home: Path) -> Settings:
    return Settings(home=home, database_url=f"sqlite:///{home / 'spanlab.db'}")


def _programs() -> Path:
    candidates = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    on_path = shutil.which("initdb")
    if on_path is not None:
        candidates.append(Path(on_path).parent)
    for candidate in candidates:
        if (candidate / "initdb").exists() and (candidate / "postgres").exists():
            return candidate
    pytest.fail(_ABSENT, pytrace=False)


def _unprivileged() -> list[str]:
    # PostgreSQL refuses to run as root, and it should not outlive a test run that is killed.
    command = ["setpriv", "--pdeathsig", "QUIT"]
    if os.getuid() == 0:
        command += ["--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    return command


def _give_away(folder: Path) -> None:
    if os.getuid() == 0:
        shutil.chown(folder, "nobody", "nogroup")


def _wait(folder: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            psycopg.connect(host=str(folder), user="spanlab", dbname="postgres").close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"PostgreSQL does not start: {(folder / 'log').read_text()}")
            time.sleep(0.05)
        else:
            return


def _new_database(server: str, template: str) -> str:
    name = f"test{next(_NUMBERS)}"
    with psycopg.connect(host=server, user="spanlab", dbname="postgres", autocommit=True) as admin:
        admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    return name


def _url(server: str, name: str) -> str:
    return f"postgresql://spanlab@/{name}?host={server}"


ANSWER = "The tower was built in 1887 and is 330 metres tall."


@pytest.fixture(scope="session")
def record() -> Callable[..., Record]:
    """Make a record: ``record("a", gold(…), detector(…))``."""

    def make(
        item_id: str, *annotations: Annotation, lang: str = "en", answer: str = ANSWER
    ) -> Record:
        item = Item(id=item_id, lang=lang, question="How tall?", answer=answer)
        return Record(item=item, annotations=annotations)

    return make


@pytest.fixture(scope="session")
def said() -> Callable[..., Annotation]:
    """Make an annotation of the usual answer: ``said("det", (4, 9, 0.7))``."""

    def make(
        name: str,
        *spans: tuple[int, int] | tuple[int, int, float],
        kind: Kind = Kind.DETECTOR,
        status: Status = Status.DONE,
    ) -> Annotation:
        return Annotation(
            annotator=name,
            kind=kind,
            status=status,
            spans=tuple(
                Span.of(ANSWER, span[0], span[1], prob=span[2] if len(span) == 3 else 1.0)
                for span in spans
            ),
            note="it broke" if status is Status.FAILED else None,
        )

    return make
