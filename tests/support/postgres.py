"""A private PostgreSQL server for benches; tests have it as the fixture ``server``."""

from __future__ import annotations

import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import psycopg


def fixtures() -> ModuleType:
    """Return the storage tests' fixtures, which start the server."""
    path = Path(__file__).parent.parent / "storage" / "conftest.py"
    found = spec_from_file_location("storage_fixtures", path)
    assert found is not None
    assert found.loader is not None
    module = module_from_spec(found)
    found.loader.exec_module(module)
    return module


@contextmanager
def postgres() -> Iterator[Callable[[], str]]:
    """Give a function that makes an empty database and returns its URL."""
    storage = fixtures()
    running = contextmanager(storage.server.__wrapped__)
    with running() as server:
        yield lambda: storage._url(server, storage._new_database(server, "template1"))


@contextmanager
def postgres_at(address: str, port: int = 5432) -> Iterator[Callable[[], str]]:
    """Do the same with a server that other hosts reach under an address of this one."""
    storage = fixtures()
    programs, user = storage._programs(), storage._unprivileged()
    with tempfile.TemporaryDirectory(prefix="spanlab-pg-") as name:
        folder = Path(name)
        storage._give_away(folder)
        initdb = [str(programs / "initdb"), "-D", name + "/data", "-U", "spanlab", "-A", "trust"]
        initdb += ["-E", "UTF8", "--locale=C", "--no-sync"]
        subprocess.run([*user, *initdb], check=True, capture_output=True)
        with (folder / "data" / "pg_hba.conf").open("a") as rules:
            rules.write(f"host all all {address}/24 trust\n")
        server = [str(programs / "postgres"), "-D", name + "/data", "-c", "fsync=off"]
        server += ["-c", f"listen_addresses={address}", "-p", str(port)]
        server += ["-c", f"unix_socket_directories={name}", "-c", "max_connections=200"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen([*user, *server], stderr=log)
        try:
            _wait(storage, folder, process, port)
            yield lambda: _new_database(storage, name, address, port)
        finally:
            process.send_signal(signal.SIGQUIT)  # at once: nothing in it is wanted any more
            process.wait()
            shutil.rmtree(folder / "data", ignore_errors=True)


def _wait(storage: ModuleType, folder: Path, process: subprocess.Popen[bytes], port: int) -> None:
    deadline = time.monotonic() + storage._SECONDS
    while True:
        try:
            psycopg.connect(host=str(folder), port=port, user="spanlab", dbname="postgres").close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise TimeoutError((folder / "log").read_text()) from None
            time.sleep(0.05)
        else:
            return


def _new_database(storage: ModuleType, folder: str, address: str, port: int) -> str:
    name = f"test{next(storage._NUMBERS)}"
    with psycopg.connect(
        host=folder, port=port, user="spanlab", dbname="postgres", autocommit=True
    ) as admin:
        admin.execute(f"CREATE DATABASE {name}".encode())
    return f"postgresql://spanlab@{address}:{port}/{name}"
