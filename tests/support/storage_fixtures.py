"""The same tests on both databases: an SQLite file, and a real PostgreSQL server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from postgres import Cluster

from spanlab.base.settings import Settings
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status
from spanlab.storage import Store

__all__ = [
    "empty",
    "migrated_database",
    "new_database",
    "record",
    "said",
    "settings",
    "store",
]

_BACKENDS = ("sqlite", "postgresql")


@pytest.fixture(params=_BACKENDS)
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    """Settings of a database that has nothing in it yet."""
    if request.param == "sqlite":
        return _sqlite(tmp_path)
    server: Cluster = request.getfixturevalue("server")
    return Settings(home=tmp_path, database_url=server.url(server.new_database()))


@pytest.fixture(scope="session", params=_BACKENDS)
def new_database(request: pytest.FixtureRequest) -> Callable[[Path], Settings]:
    """Give a database that has all tables, and nothing in them; one at a time."""
    if request.param == "sqlite":
        migrated: Path = request.getfixturevalue("migrated_file")

        def make(home: Path) -> Settings:
            shutil.copy(migrated, home / migrated.name)
            return _sqlite(home)

        return make
    server: Cluster = request.getfixturevalue("server")
    name: str = request.getfixturevalue("migrated_database")
    return lambda home: Settings(home=home, database_url=server.emptied(name))


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
def migrated_database(server: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The name of a PostgreSQL database that has all tables."""
    name = server.new_database()
    home = tmp_path_factory.mktemp("home")
    Store.open(Settings(home=home, database_url=server.url(name))).close()
    return name


def _sqlite(home: Path) -> Settings:
    return Settings(home=home, database_url=f"sqlite:///{home / 'spanlab.db'}")


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
        kind: AnnotatorKind = AnnotatorKind.DETECTOR,
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
