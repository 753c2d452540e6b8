"""Access to datasets by the rules of roles: checking them, finding keys, logging actions.

Of a key, of an invitation's link and of the cookie that it becomes the database has a hash alone:
they are random, so that nobody can make one up, and a row that is revoked or too old opens nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, or_, select, text, update

from spanlab.base.errors import AccessError
from spanlab.schema import (
    AccessToken,
    Actor,
    DatasetSettings,
    DatasetSummary,
    Permission,
)
from spanlab.storage import catalog
from spanlab.storage.engine import look_up_once
from spanlab.storage.sight import EVERYTHING, Sight
from spanlab.storage.tables import (
    LOG_STATEMENTS,
    READY,
    access_log,
    access_tokens,
    datasets,
    people,
    reviewer_names,
)

_GONE: Final = "there is no dataset {!r} that you may work with"


@dataclass(frozen=True)
class CheckedDataset:
    """The facts about a dataset that decide who may see it; a version has its dataset's number."""

    number: int
    name: str
    always_blind: bool
    shown_when_done: bool
    is_version: bool
    has_lists: bool

    def is_seen_by(self, actor: Actor) -> bool:
        """Return whether ``actor`` may see the dataset; a version shows everybody's annotations."""
        return actor.may(Permission.READ if self.is_version else Permission.SEE, self.number)

    def sight(self, actor: Actor, *, many: bool) -> Sight:
        """Return what ``actor`` sees of one of its records, or of ``many``, by their role."""
        if actor.may(Permission.READ, self.number):
            return EVERYTHING
        name, blind = actor.name_in(self.number), self.always_blind or many
        done = self.shown_when_done
        return Sight(name, blind=blind, shown_when_done=done, listed=self.has_lists)


def require(
    connection: Connection, actor: Actor, permission: Permission, dataset: str | None
) -> CheckedDataset | None:
    """Check that ``actor`` may do something with a dataset, or with the database.

    Returns:
        The dataset; None for none, and for who may do everything anyway.

    Raises:
        AccessError: they may not. A dataset that they may not see is said not to be there.
    """
    if actor.may(Permission.ADMINISTER):
        return None
    if dataset is None:
        actor.require(permission)
        return None
    checked = _read_checked(connection, dataset)
    if checked is None or not checked.is_seen_by(actor):
        raise AccessError(_GONE.format(dataset))
    if not actor.may(permission, checked.number):
        raise AccessError(
            f"{actor.name} has no permission to {permission.value} {dataset!r}. Ask its lead."
        )
    return checked


def filter_visible(
    connection: Connection, actor: Actor, summaries: Sequence[DatasetSummary]
) -> list[DatasetSummary]:
    """Return the datasets that ``actor`` may see, without the people hidden from the actor."""
    if actor.may(Permission.ADMINISTER):
        return list(summaries)
    rows = connection.execute(select(datasets).where(datasets.c.state == READY))
    checked = {row.name: row for row in map(_from_row, rows) if row.is_seen_by(actor)}
    seen = (each for each in summaries if each.name in checked)
    return [checked[each.name].sight(actor, many=False).summary(each) for each in seen]


def owns_job(connection: Connection, actor: Actor, dataset: str | None) -> bool:
    """Return whether ``actor`` may see a job of the API by the dataset that it owns."""
    if actor.may(Permission.ADMINISTER):
        return True
    checked = None if dataset is None else _read_checked(connection, dataset)
    return checked is not None and actor.may(Permission.READ, checked.number)


def _read_checked(connection: Connection, name: str) -> CheckedDataset | None:
    row = catalog.find_row(connection, name)
    return (
        None if row is None else look_up_once(connection, ("checked", name), lambda: _from_row(row))
    )


def _from_row(row: Any) -> CheckedDataset:
    """Return what decides of the row of a dataset."""
    settings = DatasetSettings.model_validate_json(row.settings)
    is_version = row.version_of is not None
    number = row.version_of if is_version else row.id
    return CheckedDataset(
        number=number,
        name=row.name,
        always_blind=settings.is_blind,
        shown_when_done=settings.shown_when_done,
        is_version=is_version,
        has_lists=settings.has_lists,
    )


def note(
    connection: Connection, actor: Actor, action: str, dataset: str | None = None, about: str = ""
) -> None:
    """Append to the log what ``actor`` does."""
    now = datetime.now(UTC).isoformat()
    row: dict[str, Any] = {"at": now, "subject": actor.subject, "name": actor.name}
    row |= {"action": action, "about": about, "dataset": dataset}
    if connection.dialect.name == "postgresql":  # SQLite has one writer at a time anyway
        connection.execute(text("LOCK TABLE access_log IN EXCLUSIVE MODE"))
    newest = select(access_log.c.hash).order_by(access_log.c.id.desc()).limit(1)
    chained = chained_hash(connection.execute(newest).scalar(), row)
    connection.execute(insert(access_log).values(row | {"hash": chained}))


_CHAINED: Final = ("at", "subject", "name", "action", "about", "dataset")


def chained_hash(before: str | None, row: Mapping[str, Any]) -> str:
    """Return the SHA-256 of an entry of the log behind the hash of the one before it."""
    entry = json.dumps([before or "", *(row[name] for name in _CHAINED)])
    return sha256(entry.encode()).hexdigest()


def broken_entry(connection: Connection) -> tuple[int, int]:
    """Check the log's hashes.

    Returns:
        How many entries hold, and the number of the first that does not fit the one before it, or
        has no hash; 0 if all do. Entries at the end that are gone leave no trace in it.
    """
    checked, before = 0, None
    for row in connection.execute(select(access_log).order_by(access_log.c.id)):
        if row.hash != chained_hash(before, dict(row._mapping)):
            return checked, row.id
        checked, before = checked + 1, row.hash
    return checked, 0


def rewrite_log(
    connection: Connection, change: Callable[[dict[str, Any]], dict[str, Any]] = dict
) -> None:
    """Write the log anew, with other words or with hashes that it did not have.

    Args:
        connection: in a transaction that may write.
        change: returns an entry with what is to stand in it, as it is by default.
    """
    off, on = _LOG_OPENED[connection.dialect.name]
    connection.execute(text(off))
    entries = connection.execute(select(access_log).order_by(access_log.c.id)).mappings().all()
    before, rows = None, []
    for entry in entries:
        row = change(dict(entry))
        before = row["hash"] = chained_hash(before, row)
        rows.append({f"new_{name}": value for name, value in row.items()})
    if rows:
        values: dict[str, Any] = {name: bindparam(f"new_{name}") for name in (*_CHAINED, "hash")}
        is_entry = access_log.c.id == bindparam("new_id")
        connection.execute(update(access_log).where(is_entry).values(values), rows)
    connection.execute(text(on))


_LOG_OPENED: Final = {  # what lets it be changed for the rest of a transaction, and what ends that
    "sqlite": ("DROP TRIGGER access_log_no_update", LOG_STATEMENTS["sqlite"][0]),
    "postgresql": (
        "ALTER TABLE access_log DISABLE TRIGGER access_log_append_only",
        "ALTER TABLE access_log ENABLE TRIGGER access_log_append_only",
    ),
}


def follow_name(connection: Connection, dataset: int, name: str, new: str) -> None:
    """Store that people who annotate a dataset as ``name`` are called ``new`` there now."""
    in_dataset = reviewer_names.c.dataset_id == dataset
    named = select(reviewer_names.c.subject).where(in_dataset)
    same = update(reviewer_names).where(in_dataset, reviewer_names.c.name == name)
    connection.execute(same.values(name=new))
    theirs = select(people.c.subject).where(people.c.name == name, people.c.subject.not_in(named))
    for subject in connection.execute(theirs).scalars().all():
        row = {"dataset_id": dataset, "subject": subject, "name": new}
        connection.execute(insert(reviewer_names).values(row))


def find_open_token(connection: Connection, token: str) -> Any:
    """Return the row of a token that is neither revoked nor too old."""
    now = datetime.now(UTC).timestamp()
    return connection.execute(
        select(access_tokens).where(
            access_tokens.c.hash == digest(token),
            access_tokens.c.revoked.is_(None),
            or_(access_tokens.c.expires.is_(None), access_tokens.c.expires > now),
        )
    ).one_or_none()


def find_unused_invitation(connection: Connection, link: str) -> Any:
    """Return the row of an invitation that can still be accepted; None for any other link."""
    row = find_open_token(connection, link)
    return None if row is None or row.kind != "invitation" or row.used is not None else row


def read_tokens(connection: Connection, rows: Iterable[Any]) -> Iterator[AccessToken]:
    """Yield the tokens of rows, without those of datasets that are in the bin."""
    names = names_of(connection)
    for row in filter(None, rows):
        if row.dataset_id in names:
            yield AccessToken.model_validate({**row._mapping, "dataset": names[row.dataset_id]})


def names_of(connection: Connection) -> dict[int | None, str | None]:
    """Return the datasets' names by number, without those in the bin; None stands for all."""
    query = select(datasets.c.id, datasets.c.name).where(datasets.c.state == READY)
    return {None: None} | {row.id: row.name for row in connection.execute(query)}


def digest(token: str) -> str:
    """Return the hash of a token; the token itself is not stored."""
    # Random and long: there is nothing to guess that a slow hash would protect.
    return sha256(token.encode()).hexdigest()
