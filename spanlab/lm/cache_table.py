"""The cache of answers as a table in PostgreSQL, shared by all workers."""

from __future__ import annotations

import asyncio
import time

from spanlab.errors import StoreError
from spanlab.lm.cache import AnswerCache
from spanlab.settings import Settings

_KEPT_SECONDS = 30 * 86_400.0
_PATIENCE = 60.0  # seconds for which a database that does not answer is tried again
_PAUSE = 0.25
_SELECT = "SELECT answer FROM answers WHERE cache = :cache AND key = :key"
_DELETE = "DELETE FROM answers WHERE cache = :cache AND key = :key"
_EXPIRE = "DELETE FROM answers WHERE at < :at"
_INSERT = (
    "INSERT INTO answers (cache, key, answer, at) VALUES (:cache, :key, :answer, :at) "
    "ON CONFLICT (cache, key) DO UPDATE SET answer = excluded.answer, at = excluded.at"
)


class AnswerTable(AnswerCache):
    """The cache of one name in a PostgreSQL database.

    Args:
        settings: the database, which is brought up to date.
        name: which answers, such as "models".

    Raises:
        StoreError: the database cannot be reached.
    """

    def __init__(self, settings: Settings, name: str) -> None:
        from sqlalchemy import create_engine, text

        from spanlab.storage.engine import Database, watchful
        from spanlab.storage.upgrade import upgrade

        super().__init__()
        self._name = name
        database = Database(settings.database_url)
        upgrade(database, settings.home / "backups")
        with database.writing() as connection:
            connection.execute(text(_EXPIRE), {"at": time.time() - _KEPT_SECONDS})
        database.close()
        # One statement at a time, tried again if it fails: neither a transaction nor a look
        # whether the connection is still there is of use, and they take half of the time.
        self._engine = create_engine(
            watchful(database.url), isolation_level="AUTOCOMMIT", pool_reset_on_return=None
        )

    async def forget(self, key: str) -> None:
        """Drop an answer, if there is one."""
        await self._run(_DELETE, key=key)

    async def _get(self, key: str) -> str | None:
        found = await self._run(_SELECT, key=key)
        return None if found is None else str(found)

    async def _put(self, key: str, text: str) -> None:
        await asyncio.shield(self._run(_INSERT, key=key, answer=text, at=time.time()))

    async def _run(self, statement: str, **values: object) -> object:
        """Run a statement in a thread, again and again while the database is away.

        Returns:
            What a SELECT finds; None if that is nothing, or for any other statement.
        """
        from sqlalchemy import text
        from sqlalchemy.exc import SQLAlchemyError

        from spanlab.storage.engine import in_words

        def attempt() -> object:
            with self._engine.connect() as connection:
                done = connection.execute(text(statement), {"cache": self._name, **values})
                return done.scalar() if done.returns_rows else None

        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return await asyncio.to_thread(attempt)
            except SQLAlchemyError as error:
                if time.monotonic() > deadline:
                    raise StoreError(f"the cache of answers: {in_words(error)}") from error
            await asyncio.sleep(_PAUSE)
