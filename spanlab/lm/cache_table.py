"""The cache of answers as a table in PostgreSQL, shared by all workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any, TypeVar

from sqlalchemy import delete, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import SQLAlchemyError

from spanlab.errors import StoreError
from spanlab.lm.cache import AnswerCache
from spanlab.settings import Settings
from spanlab.storage.engine import Database
from spanlab.storage.tables import answers
from spanlab.storage.upgrade import upgrade

T = TypeVar("T")

_KEPT_SECONDS = 30 * 86_400.0
_PATIENCE = 60.0  # seconds for which a database that does not answer is tried again
_PAUSE = 0.25


class AnswerTable(AnswerCache):
    """The cache of one name in a PostgreSQL database.

    Args:
        settings: the database, which is brought up to date.
        name: which answers, such as "models".

    Raises:
        StoreError: the database cannot be reached.
    """

    def __init__(self, settings: Settings, name: str) -> None:
        super().__init__()
        self._database = Database(settings.database_url)
        self._engine = self._database.engine.execution_options(isolation_level="AUTOCOMMIT")
        self._name = name
        upgrade(self._database, settings.home / "backups")
        with self._database.writing() as connection:
            connection.execute(delete(answers).where(answers.c.at < time.time() - _KEPT_SECONDS))

    async def forget(self, key: str) -> None:
        """Drop an answer, if there is one."""
        await self._patiently(
            lambda connection: connection.execute(delete(answers).where(*self._is(key)))
        )

    async def _get(self, key: str) -> str | None:
        return await self._patiently(
            lambda connection: connection.execute(
                select(answers.c.answer).where(*self._is(key))
            ).scalar()
        )

    async def _put(self, key: str, text: str) -> None:
        new = {"answer": text, "at": time.time()}
        statement = insert(answers).values(cache=self._name, key=key, **new)
        statement = statement.on_conflict_do_update(index_elements=["cache", "key"], set_=new)
        await self._patiently(lambda connection: connection.execute(statement))

    def _is(self, key: str) -> tuple[Any, ...]:
        return answers.c.cache == self._name, answers.c.key == key

    async def _patiently(self, work: Callable[[Any], T]) -> T:
        """Do something in a thread, again and again while the database is away."""

        def attempt() -> T:
            with self._engine.connect() as connection:
                return work(connection)

        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return await asyncio.to_thread(attempt)
            except SQLAlchemyError as error:
                if time.monotonic() > deadline:
                    raise StoreError(f"the cache of answers: {str(error).strip()}") from error
            await asyncio.sleep(_PAUSE)
