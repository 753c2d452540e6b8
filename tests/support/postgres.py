"""A private PostgreSQL server for tests and benches: started once, with a database for each."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import psycopg
import pytest

_SECONDS = 30  # until the server must answer
_ABSENT = (
    "the tests need PostgreSQL's programs (initdb and postgres); "
    "on Debian: apt-get install postgresql"
)
_NUMBERS = count()
# Without triggers, which refuse that. Large tables are cut, small ones cheaper looked through.
_EMPTY = """DO $$
DECLARE name text;
BEGIN
    PERFORM pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid();
    SET LOCAL session_replication_role = replica;
    FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
        AND relkind = 'r' AND relname <> 'spanlab_revision' AND pg_relation_size(oid) > 0
    LOOP
        IF pg_relation_size(name::regclass) > 100000 THEN
            EXECUTE format('TRUNCATE %I CASCADE', name);
        ELSE
            EXECUTE format('DELETE FROM %I', name);
        END IF;
    END LOOP;
    PERFORM setval(format('%I', sequencename)::regclass, 1, false)
        FROM pg_sequences WHERE schemaname = 'public' AND last_value IS NOT NULL;
END $$"""


@dataclass(frozen=True)
class Cluster:
    """A running server: the directory of its socket, and its address if other hosts reach it."""

    folder: Path
    address: str = ""
    port: int = 5432

    def new_database(self, template: str = "template1") -> str:
        """Make a database like another one; return its name."""
        name = f"test{next(_NUMBERS)}"
        with self.connected() as admin:
            admin.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
        return name

    def emptied(self, name: str) -> str:
        """Delete all that a database holds, and who is connected to it; return its URL.

        It costs a tenth of a database of its own, and is as good unless tables are changed.
        """
        with self.connected(name) as admin:
            admin.execute(_EMPTY)
        return self.url(name)

    def url(self, name: str) -> str:
        """Return the URL of a database."""
        if self.address:
            return f"postgresql://spanlab@{self.address}:{self.port}/{name}"
        return f"postgresql://spanlab@/{name}?host={self.folder}"

    def connected(self, name: str = "postgres") -> psycopg.Connection[tuple[object, ...]]:
        """Connect to a database as the administrator."""
        return psycopg.connect(
            host=str(self.folder),
            port=self.port,
            user="spanlab",
            dbname=name,
            autocommit=True,
        )


@pytest.fixture(scope="session")
def server() -> Iterator[Cluster]:
    """A private PostgreSQL server, stopped whatever happens."""
    with _cluster() as cluster:
        yield cluster


@contextmanager
def postgres(address: str = "", port: int = 5432) -> Iterator[Callable[[], str]]:
    """Give a function that makes an empty database and returns its URL.

    Args:
        address: one of this host, under which others reach the server; by default none does.
        port: where it listens there.
    """
    with _cluster(address, port) as cluster:
        yield lambda: cluster.url(cluster.new_database())


@contextmanager
def _cluster(address: str = "", port: int = 5432) -> Iterator[Cluster]:
    programs = _programs()
    folder = Path(tempfile.mkdtemp(prefix="spanlab-pg-"))
    cluster = Cluster(folder, address, port)
    try:
        if os.getuid() == 0:
            shutil.chown(folder, "nobody", "nogroup")
        data = folder / "data"
        initdb = [str(programs / "initdb"), "-D", str(data), "-U", "spanlab", "-A", "trust"]
        initdb += ["-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run([*_unprivileged(), *initdb], check=True, capture_output=True)
        if address:
            with (data / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {address}/24 trust\n")
        command = [str(programs / "postgres"), "-D", str(data), "-c", "fsync=off"]
        command += ["-c", f"listen_addresses={address}", "-p", str(port)]
        command += ["-c", f"unix_socket_directories={folder}", "-c", "max_connections=200"]
        # Each of many databases would be looked through, again and again.
        command += ["-c", "autovacuum=off", "-c", "full_page_writes=off"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*_unprivileged(), *command], stderr=log)
        try:
            _wait(cluster, process)
            yield cluster
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: nothing in it is wanted any more
            process.wait(timeout=_SECONDS)
    finally:
        shutil.rmtree(folder)


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


def _wait(cluster: Cluster, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + _SECONDS
    while True:
        try:
            cluster.connected().close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                pytest.fail(f"PostgreSQL does not start: {(cluster.folder / 'log').read_text()}")
            time.sleep(0.05)
        else:
            return
