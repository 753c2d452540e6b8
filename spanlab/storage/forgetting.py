"""A person who leaves: a pseudonym in place of the name, wherever the database has it.

That is in all datasets, their versions and what is in the bin, in logs of reviews, plans and lists,
in roles and invitations, and in the log of access, whose hashes are made anew. Texts that people
typed (notes, guidelines, answers) are left as they are, and counted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, NamedTuple

from sqlalchemy import Connection, Text, delete, func, or_, select, text, update

from spanlab.base.errors import NotFoundError, StoreError
from spanlab.schema import AnnotatorKind, DatasetSettings
from spanlab.storage import annotators as edits
from spanlab.storage.access import rewrite_log
from spanlab.storage.catalog import DatasetRow, annotators_of
from spanlab.storage.tables import (
    STATEMENTS,
    access_tokens,
    annotators,
    datasets,
    loads,
    metadata,
    operations,
    people,
    reviewer_names,
    roles,
)

_EMAIL = "email:"  # begins the subject of a role for an address


class Forgotten(NamedTuple):
    """What became of a person.

    ``pseudonym`` is what they are called now, ``versions`` are those whose SHA-256 is another one
    now, and ``texts`` says in how many rows of which table somebody has typed the name.
    ``is_erased`` says that the database's file has no old rows any more, see ``Database.compact``.
    """

    pseudonym: str
    versions: tuple[str, ...]
    texts: Mapping[str, int]
    is_erased: bool = False


class _Known(NamedTuple):
    """Under which subjects and addresses somebody is known, and what they are called where."""

    subjects: frozenset[str]
    names: Mapping[int, str]  # by dataset, where it is not their name elsewhere
    words: re.Pattern[str]

    def names_in(self, dataset: int, version_of: int | None, name: str) -> frozenset[str]:
        """Return what somebody called ``name`` elsewhere may be called in a dataset."""
        if version_of is not None:  # which may be from before they were renamed
            return frozenset({name, self.names.get(version_of, name)})
        return frozenset({self.names.get(dataset, name)})


def forget(connection: Connection, name: str, *, keep: bool) -> Forgotten:
    """Put a pseudonym in place of a person everywhere.

    Args:
        connection: in a transaction that may write.
        name: of somebody who has logged in, was invited, or has annotated.
        keep: whether what they marked stays, under the pseudonym; otherwise it is deleted.

    Raises:
        NotFoundError: nobody is called so.
        StoreError: an import is under way into a dataset that they annotated.
    """
    loading = select(datasets.c.name).join(loads, loads.c.dataset_id == datasets.c.id).limit(1)
    if under_way := connection.scalar(loading):
        raise StoreError(f"an import into {under_way!r} is under way: wait for its end")
    known, new = _look_up(connection, name), f"person-{token_hex(4)}"
    versions = []
    reports = []  # pages of datasets that named them go
    for row in connection.execute(select(datasets).order_by(datasets.c.id)).all():
        called = known.names_in(row.id, row.version_of, name)
        if _forget_in(connection, row, called, new, keep=keep):
            reports.append(row.version_of or row.id)
            if row.digest:
                versions.append(row.name)
                is_version = datasets.c.id == row.id
                connection.execute(update(datasets).where(is_version).values(digest=""))
    is_page = (access_tokens.c.kind == "report", access_tokens.c.dataset_id.in_(reports))
    ended = {"code": None, "revoked": datetime.now(UTC).isoformat()}
    connection.execute(update(access_tokens).where(*is_page).values(ended))
    _forget_subjects(connection, known, name, new)

    def scrubbed(entry: dict[str, Any]) -> dict[str, Any]:
        parts = ("subject", "name", "about")
        return entry | {part: known.words.sub(new, entry[part]) for part in parts}

    rewrite_log(connection, scrubbed)
    return Forgotten(new, tuple(versions), _mentions(connection, {name, *known.names.values()}))


def _look_up(connection: Connection, name: str) -> _Known:
    invited = select(access_tokens).where(
        access_tokens.c.kind == "invitation", access_tokens.c.label == name
    )
    tokens = connection.execute(invited).all()
    person = connection.execute(select(people).where(people.c.name == name)).first()
    subjects = {f"invitation:{token.person or token.id}" for token in tokens}
    addresses = set()
    if person is not None:
        subjects.add(person.subject)
        addresses = {person.email, person.email and _EMAIL + person.email} - {None}
    annotates = select(annotators.c.id).where(
        annotators.c.name == name, annotators.c.kind == AnnotatorKind.PERSON.value
    )
    quoted = json.dumps(name, ensure_ascii=False)
    assigned = select(datasets.c.id).where(datasets.c.settings.contains(quoted, autoescape=True))
    if not subjects and not any(connection.execute(q).first() for q in (annotates, assigned)):
        raise NotFoundError(f"nobody called {name!r} has logged in, was invited or has annotated")
    mine = select(reviewer_names).where(reviewer_names.c.subject.in_(subjects))
    names = {row.dataset_id: row.name for row in connection.execute(mine)}
    known = sorted({name, *names.values(), *subjects, *addresses}, key=len, reverse=True)
    words = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, known))})(?!\w)")
    return _Known(frozenset(subjects | addresses), names, words)


def _forget_in(
    connection: Connection, row: Any, names: frozenset[str], new: str, *, keep: bool
) -> bool:
    """Forget a person in a dataset; return whether that changes what is exported."""
    place, by_name = DatasetRow(row.id, row.name, row.n_items), annotators_of(connection, row.id)
    settings = DatasetSettings.model_validate_json(row.settings)
    is_changed = False
    for name in names:
        if name in by_name and not keep:
            edits.remove(connection, place, name)
        for old, pseudonym in ((name, new), (edits.gold_name(name), edits.gold_name(new))):
            is_named = (annotators.c.dataset_id == row.id, annotators.c.name == old)
            connection.execute(update(annotators).where(*is_named).values(name=pseudonym))
            is_changed |= edits.rename_texts(connection, place, old, pseudonym) or old in by_name
            settings = edits.renamed_settings(settings, old, pseudonym)
    if new in settings.assigned_to:  # nobody is to wait for what they have not finished
        away = dict.fromkeys((*settings.away, new))
        settings = settings.model_copy(update={"away": tuple(away)})
    values = {"settings": settings.model_dump_json(exclude_defaults=True)}
    connection.execute(update(datasets).where(datasets.c.id == row.id).values(values))
    return is_changed


def _forget_subjects(connection: Connection, known: _Known, name: str, new: str) -> None:
    """Delete the person with all roles, end their invitations, and rename them in what they did."""
    mine = known.subjects
    numbers = [each.removeprefix("invitation:") for each in mine]
    is_token = or_(access_tokens.c.id.in_(numbers), access_tokens.c.person.in_(numbers))
    now = datetime.now(UTC).isoformat()
    ended = {"label": new, "worker": None, "revoked": func.coalesce(access_tokens.c.revoked, now)}
    connection.execute(update(access_tokens).where(is_token).values(ended))
    for column in (access_tokens.c.made_by, roles.c.granted_by):
        connection.execute(update(column.table).where(column.in_(mine)).values({column: new}))
    for column in (people.c.subject, roles.c.subject, reviewer_names.c.subject):
        connection.execute(delete(column.table).where(column.in_(mine)))
    off, on = _LOGS_OPENED[connection.dialect.name]
    connection.execute(text(off))
    theirs = update(operations).where(operations.c.subject.in_(mine))
    connection.execute(theirs.values(subject=new))
    connection.execute(text(on))


def _mentions(connection: Connection, names: set[str]) -> dict[str, int]:
    """Count the rows of each table in whose texts a name stands."""
    counts = {}
    for table in metadata.sorted_tables:
        texts = [column for column in table.c if isinstance(column.type, Text)]
        has_name = [c.contains(name, autoescape=True) for c in texts for name in names]
        query = select(func.count()).select_from(table).where(or_(*has_name))
        if has_name and (count := connection.execute(query).scalar_one()):
            counts[table.name] = count
    return counts


_LOGS_OPENED = {  # what lets operations be changed for the rest of a transaction, and what ends it
    "sqlite": (
        "DROP TRIGGER operations_no_update",
        next(each for each in STATEMENTS["sqlite"] if "operations_no_update" in each),
    ),
    "postgresql": (
        "ALTER TABLE operations DISABLE TRIGGER operations_append_only",
        "ALTER TABLE operations ENABLE TRIGGER operations_append_only",
    ),
}
