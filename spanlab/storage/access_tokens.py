"""The rows of keys and invitations, found by what opens the door.

Of a key, of an invitation's link and of the cookie that it becomes the database has a hash alone:
they are random, so that nobody can make one up, and a row that is revoked or too old opens nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Connection, or_, select

from spanlab.schema import AccessToken
from spanlab.storage.tables import READY, access_tokens, datasets


def open_token(connection: Connection, token: str) -> Any:
    """Return the row of a token that is neither revoked nor too old."""
    now = datetime.now(UTC).timestamp()
    return connection.execute(
        select(access_tokens).where(
            access_tokens.c.hash == digest(token),
            access_tokens.c.revoked.is_(None),
            or_(access_tokens.c.expires.is_(None), access_tokens.c.expires > now),
        )
    ).one_or_none()


def unused_invitation(connection: Connection, link: str) -> Any:
    """Return the row of an invitation that can still be accepted; None for any other link."""
    row = open_token(connection, link)
    return None if row is None or row.kind != "invitation" or row.used is not None else row


def described(connection: Connection, rows: Iterable[Any]) -> Iterator[AccessToken]:
    """Yield what rows say, but for those of datasets that are in the bin."""
    names = names_of(connection)
    for row in filter(None, rows):
        if row.dataset_id in names:
            yield AccessToken.model_validate({**row._mapping, "dataset": names[row.dataset_id]})


def names_of(connection: Connection) -> dict[int | None, str | None]:
    """Return what datasets are called that are not in the bin; None, for all, is called None."""
    query = select(datasets.c.id, datasets.c.name).where(datasets.c.state == READY)
    return {None: None} | {row.id: row.name for row in connection.execute(query)}


def digest(token: str) -> str:
    """Return what is stored of a token."""
    # Random and long: there is nothing to guess that a slow hash would protect.
    return sha256(token.encode()).hexdigest()
