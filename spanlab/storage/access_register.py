"""The people, roles, keys and invitations of a database, and the log of who did what."""

from __future__ import annotations

import hmac
import re
import secrets
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from itertools import chain, count
from typing import Any, Final, Literal, NamedTuple
from unicodedata import category, normalize

from sqlalchemy import ColumnElement, Connection, delete, insert, literal, or_, select, update

from spanlab.base.errors import NotFoundError, UsageError
from spanlab.base.fields import storable
from spanlab.base.names import alike, drawn, looks
from spanlab.schema import (
    AccessToken,
    Actor,
    AnnotatorKind,
    GrantedRole,
    LogEntry,
    Permission,
    Role,
)
from spanlab.storage import catalog
from spanlab.storage.access import (
    broken_entry,
    digest,
    find_open_token,
    find_unused_invitation,
    names_of,
    note,
    read_tokens,
    require,
)
from spanlab.storage.annotators import reserved_names
from spanlab.storage.engine import Database, insert_new
from spanlab.storage.tables import (
    access_log,
    access_tokens,
    annotators,
    datasets,
    people,
    reviewer_names,
    roles,
)

UNSAFE: Final = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")  # controls, halves of an emoji
EMAIL: Final = "email:"  # before an address: a role for whoever proves to have it
SOMEBODY: Final = "somebody"  # the name of who has none
TokenKind = Literal["key", "invitation", "report"]
_SHOWN: Final = 12  # characters of a token that are its id
_ENDED: Final = "ended login"  # the kind of a row that says so
_LONGEST: Final = 400  # characters of a subject: providers have 255, and addresses 320
_SIGNING: Final = "signing key"  # the row whose hash signs, of no token
_OWNER: Final = "owner"  # the person of the links that `spanlab serve --invite` says


class OwnersLink(NamedTuple):
    """The token of a link for the owner, and whether it ends one that was not opened."""

    token: str
    ends_others: bool


class AccessRegister:
    """The people, roles, keys and invitations of a database, changed by one actor.

    Args:
        database: the database.
        actor: who asks; each method that others may not call checks that they may.
    """

    def __init__(self, database: Database, actor: Actor) -> None:
        self._database, self._actor = database, actor

    def sign_in(
        self, subject: str, name: str, email: str | None = None, since: datetime | None = None
    ) -> Actor:
        """Return who has just proved to be ``subject``, entered with a name that is theirs alone.

        Nobody takes over the name of another person, nor one under which a dataset was annotated
        before they came: a lead merges these.

        Args:
            subject: see ``Actor``.
            name: what they are called; another one is made of it where it is taken.
            email: an address that the provider has verified.
            since: when the provider said so: later sessions with the same word of it are no
                login of their own in the log. None for now.
        """
        check_subject(subject)
        with self._database.writing() as connection:
            is_person = people.c.subject == subject
            last_login = connection.scalar(select(people.c.seen).where(is_person))
            row: dict[str, Any] = {"email": email, "seen": _now()}
            changed = connection.execute(update(people).where(is_person).values(row))
            if not changed.rowcount:
                free = _free_name(connection, name)
                connection.execute(insert(people).values({"subject": subject, "name": free} | row))
            actor = _actor(connection, subject, email)
            if since is None or last_login is None or datetime.fromisoformat(last_login) < since:
                note(connection, actor, "login")
        return actor

    def actor(self, subject: str, email: str | None = None) -> Actor:
        """Return who a subject is now, with the roles that they have at this moment."""
        with self._database.reading() as connection:
            return _actor(connection, subject, email)

    def bearer(self, token: str, kind: TokenKind = "key") -> Actor | None:
        """Return the actor of a token: a program by its key, a person by an invitation's cookie.

        Args:
            token: what they bring.
            kind: what it has to be: neither opens the other's door.

        Returns:
            The actor with the token's role; None if it is unknown, revoked or too old, or a link
            that nobody has accepted yet.
        """
        with self._database.reading() as connection:
            row = find_open_token(connection, token)
            if row is None or row.kind != kind or (kind == "invitation" and row.used is None):
                return None
            subject = f"{row.kind}:{row.person or row.id}"
            guest = _actor(connection, subject) if row.kind == "invitation" else None
        name = row.label if guest is None else guest.name
        granted = {row.dataset_id: frozenset({Role(row.role)})}
        return Actor(subject, name, granted, {} if guest is None else guest.names)

    def accept(
        self, link: str, worker: str | None = None, browser: str | None = None
    ) -> str | None:
        """Accept an invitation for one person: its link opens nothing elsewhere from now on.

        Args:
            link: the token of the link.
            worker: what a crowd platform calls that person.
            browser: a secret that this browser alone has; its token is made of that and the link,
                so that accepting the same link again, as by a double click, gives the same token,
                and another link another one. None for a token that is made up here.

        Returns:
            The token of their browser; None if the link is unknown, revoked, too old or used.
        """
        worker = worker and storable(worker[:_LONGEST], UNSAFE)
        token = digest(f"{browser} {link}") if browser else secrets.token_urlsafe(32)
        with self._database.writing() as connection:
            if find_open_token(connection, token) is not None:
                return token
            row = find_unused_invitation(connection, link)
            if row is None:
                return None
            values = {"hash": digest(token), "used": _now(), "worker": worker}
            still = (access_tokens.c.id == row.id, access_tokens.c.used.is_(None))
            if not connection.execute(update(access_tokens).where(*still).values(values)).rowcount:
                return None  # somebody else was quicker
            subject = f"invitation:{row.person or row.id}"
            if row.person is None or _person_of(connection, subject) is None:
                wanted = row.label or worker or f"guest {row.id[:4]}"
                # The name on the link was free when it was made, and has been kept for its person.
                name = _free_name(connection, wanted, keeps=not row.label)
                entered = {"subject": subject, "name": name}
                connection.execute(insert(people).values(entered | {"seen": _now()}))
            name = _person_of(connection, subject) or ""
            note(connection, Actor(subject, name), "invitation accepted", about=worker or "")
        return token

    def leave(self, token: str) -> None:
        """End what the token of somebody's browser opens; another link lets them in again."""
        guest = self.bearer(token, "invitation")
        if guest is None:
            return
        with self._database.writing() as connection:
            mine = access_tokens.c.hash == digest(token)
            nothing = digest(secrets.token_urlsafe(32))
            connection.execute(update(access_tokens).where(mine).values(hash=nothing))
            note(connection, guest, "logout")

    def end_login(self, login: str, actor: Actor, expires: float) -> None:
        """Store that a login has ended, in all tabs that it opened.

        Args:
            login: what tells it from all others.
            actor: whose it is.
            expires: when it would have ended by itself, in seconds since 1970 (UTC).
        """
        with self._database.writing() as connection:
            ended = access_tokens.c.kind == _ENDED
            past = access_tokens.c.expires < _timestamp()
            known = or_(past, access_tokens.c.hash == digest(login))
            connection.execute(delete(access_tokens).where(ended, known))
            values = {"id": secrets.token_hex(_SHOWN), "hash": digest(login), "kind": _ENDED}
            values |= {"label": "", "role": "", "made_by": actor.subject, "at": _now()}
            connection.execute(insert(access_tokens).values(values | {"expires": expires}))
            note(connection, actor, "logout")

    def has_ended(self, login: str) -> bool:
        """Return whether somebody has logged out of a login."""
        with self._database.reading() as connection:
            row = find_open_token(connection, login)
        return row is not None and row.kind == _ENDED

    def invite_again(self, token_id: str) -> str:
        """Make another link for the person of an invitation: another device, or after its end.

        It is valid as long as the invitation, or for as many days if that has ended or was revoked.

        Raises:
            NotFoundError: there is no invitation of this id that the actor may revoke.
        """
        with self._database.reading() as connection:
            query = select(access_tokens).where(access_tokens.c.id == token_id)
            row = connection.execute(query.where(access_tokens.c.kind == "invitation")).first()
            if row is None or not self._leads(row.dataset_id):
                raise NotFoundError(f"there is no invitation {token_id!r}")
            dataset = names_of(connection).get(row.dataset_id)
        expires, now = datetime.fromtimestamp(row.expires, UTC), datetime.now(UTC)
        if row.revoked is not None or expires <= now:
            expires += now - datetime.fromisoformat(row.at)
        return self.make_token(
            "invitation",
            Role(row.role),
            dataset,
            label=row.label,
            expires=expires,
            code=row.code,
            person=row.person or row.id,
        )

    def owners_link(self, expires: datetime) -> OwnersLink:
        """Make a link for the owner of a database where people come by invitations alone.

        Whoever opens it leads all datasets. Every such link is for the same person.

        Earlier ones that nobody opened are no longer valid.
        """
        with self._database.writing() as connection:
            require(connection, self._actor, Permission.ADMINISTER, None)
            is_owners = (access_tokens.c.person == _OWNER, access_tokens.c.used.is_(None))
            is_open = (access_tokens.c.revoked.is_(None), access_tokens.c.expires > _timestamp())
            ending = update(access_tokens).where(*is_owners, *is_open).values(revoked=_now())
            ends_others = connection.execute(ending).rowcount > 0
            link = {"label": _OWNER, "person": _OWNER, "expires": expires.timestamp()}
            token = self._enter_token(connection, "invitation", Role.LEAD, None, link)
            return OwnersLink(token, ends_others)

    def signature(self, text: str) -> str:
        """Return what only a server of this database can write under a text."""
        is_key = access_tokens.c.id == _SIGNING
        with self._database.reading() as connection:
            key = connection.scalar(select(access_tokens.c.hash).where(is_key))
        if key is None:
            row = {"id": _SIGNING, "hash": secrets.token_hex(32), "kind": _SIGNING, "label": ""}
            row |= {"role": "", "made_by": _OWNER, "at": _now()}
            with self._database.writing() as connection:
                connection.execute(insert_new(connection, access_tokens), row)
                key = connection.scalar(select(access_tokens.c.hash).where(is_key))
        return hmac.digest(str(key).encode(), text.encode(), "sha256").hex()

    def _enter_token(
        self,
        connection: Connection,
        kind: TokenKind,
        role: Role,
        dataset: str | None,
        more: Mapping[str, object],
    ) -> str:
        """Store a new token with ``more`` columns, and return its secret."""
        token = f"sl-{secrets.token_urlsafe(32)}"
        number = str(more.get("id") or _new_id())
        values = {"id": number, "hash": digest(token), "kind": kind, "role": role.value}
        values |= {"made_by": self._actor.subject, "at": _now()}
        connection.execute(insert(access_tokens).values({**values, **more}))
        self._note(connection, f"{kind} made", dataset, f"{number} {role.value}")
        return token

    def invitation(self, link: str) -> AccessToken | None:
        """Return the invitation of a link that can still be accepted."""
        with self._database.reading() as connection:
            return next(read_tokens(connection, [find_unused_invitation(connection, link)]), None)

    def own_invitation(self) -> AccessToken | None:
        """Return the invitation that the actor came by; None for others."""
        kind, _, number = self._actor.subject.partition(":")
        if kind != "invitation":
            return None
        with self._database.reading() as connection:
            query = select(access_tokens).where(access_tokens.c.id == number)
            return next(read_tokens(connection, connection.execute(query)), None)

    def grant(self, subject: str, role: Role, dataset: str | None = None) -> None:
        """Give somebody a role, for a dataset or for all.

        Args:
            subject: a subject, a name of somebody who has logged in, or an e-mail address, which
                counts once the provider has verified it.
            role: the role.
            dataset: None for all.

        Raises:
            AccessError: the actor does not lead there.
            NotFoundError: there is no such dataset, or nobody of this name.
        """
        with self._database.writing() as connection:
            grantee, number = self._resolve(connection, subject, dataset)
            connection.execute(delete(roles).where(*_granted(grantee, role, number)))
            row = {"subject": grantee, "dataset_id": number, "role": role.value}
            row |= {"granted_by": self._actor.subject, "at": _now()}
            connection.execute(insert(roles).values(row))
            self._note(connection, "role granted", dataset, f"{role.value} to {grantee}")

    def revoke(self, subject: str, role: Role, dataset: str | None = None) -> None:
        """Take a role back; raises as ``grant`` does, and NotFoundError if they do not have it."""
        with self._database.writing() as connection:
            grantee, number = self._resolve(connection, subject, dataset)
            deleted = connection.execute(delete(roles).where(*_granted(grantee, role, number)))
            if not deleted.rowcount:
                where = "for all datasets" if dataset is None else f"in {dataset!r}"
                raise NotFoundError(f"{subject!r} does not have the role {role.value} {where}")
            self._note(connection, "role revoked", dataset, f"{role.value} of {grantee}")

    def granted(self) -> list[GrantedRole]:
        """Return the roles that the actor may give or take, those for all datasets first."""
        query = select(roles, people.c.name).outerjoin(people, people.c.subject == roles.c.subject)
        with self._database.reading() as connection:
            names = names_of(connection)
            rows = connection.execute(query.order_by(roles.c.dataset_id, roles.c.subject)).all()
        return [
            GrantedRole.model_validate({**row._mapping, "dataset": names[row.dataset_id]})
            for row in rows
            if self._leads(row.dataset_id) and row.dataset_id in names
        ]

    def make_token(  # noqa: PLR0913 - what it opens, for whom, until when
        self,
        kind: TokenKind,
        role: Role,
        dataset: str | None,
        *,
        label: str = "",
        expires: datetime | None = None,
        code: str | None = None,
        person: str | None = None,
        same: bool = False,
    ) -> str:
        """Make a key or an invitation, and return its secret, which is shown this once.

        The label of an invitation is what its person will be called, so that a plan may name them
        before they come: another one is made of it where somebody has that name, unless they are
        the ``same`` person, whose name and reviews are theirs then. See ``name_on``, ``called``.

        Raises:
            AccessError: the actor does not lead there; keys for all are made by leads of all.
            UsageError: an invitation is for all datasets or for a lead, its end has passed, its
                label or code cannot be stored, or the ``same`` person logs in, or is nobody.
        """
        if expires is not None and expires <= datetime.now(UTC):
            raise UsageError(f"the end {expires:%Y-%m-%d %H:%M} has passed")
        if kind == "invitation" and (dataset is None or expires is None or role is Role.LEAD):
            raise UsageError("an invitation is for one dataset, with an end, and for no lead")
        for what, text in (("label", label), ("completion code", code)):
            if text:
                check_subject(text, what)
        with self._database.writing() as connection:
            number, token_id = self._number(connection, dataset), _new_id()
            if same:
                label, person = _same_person(connection, label, token_id)
            elif kind == "invitation" and label and person is None:
                label = _free_name(connection, label)
            columns = {
                "id": token_id,
                "label": label or ("" if kind == "invitation" else role.value),
                "dataset_id": number,
                "expires": None if expires is None else expires.timestamp(),
                "code": code,
                "person": person,
            }
            return self._enter_token(connection, kind, role, dataset, columns)

    def called(self, name: str) -> str | None:
        """Return the name of a person that is, or looks like, this one; None if nobody has it."""
        with self._database.reading() as connection:
            return alike(name, (held for held, _ in _held_names(connection)))

    def name_on(self, link: str) -> str:
        """Return what the person of an invitation is or will be called; empty if nobody has said.

        Raises:
            NotFoundError: the link opens nothing.
        """
        with self._database.reading() as connection:
            row = find_open_token(connection, link)
        if row is None:
            raise NotFoundError("this link is no longer valid")
        return str(row.label)

    def share_page(self, dataset: str, page: str, expires: datetime, label: str = "") -> str:
        """Keep a page, and return the secret with which anybody reads it.

        Raises:
            AccessError: the actor does not lead the dataset.
            UsageError: the end has passed.
        """
        if expires <= datetime.now(UTC):
            raise UsageError(f"the end {expires:%Y-%m-%d %H:%M} has passed")
        with self._database.writing() as connection:
            number = self._number(connection, dataset)
            columns = {"label": label, "dataset_id": number, "expires": expires.timestamp()}
            more = columns | {"code": page}
            return self._enter_token(connection, "report", Role.VIEWER, dataset, more)

    def shared_page(self, link: str) -> str | None:
        """Return the page of a link; None if it is unknown, revoked, too old, or in the bin."""
        with self._database.reading() as connection:
            row = find_open_token(connection, link)
            is_shown = row is not None and row.kind == "report"
            return row.code if is_shown and row.dataset_id in names_of(connection) else None

    def tokens(self, kind: TokenKind) -> list[AccessToken]:
        """Return the keys, invitations or reports that the actor may revoke, the newest first."""
        pages = [literal(None).label("code") if kind == "report" else access_tokens.c.code]
        columns = [column for column in access_tokens.c if column.name != "code"] + pages
        query = select(*columns).where(access_tokens.c.kind == kind)
        with self._database.reading() as connection:
            rows = connection.execute(query.order_by(access_tokens.c.at.desc())).all()
            own = [row for row in rows if self._leads(row.dataset_id)]
            return list(read_tokens(connection, own))

    def revoke_token(self, kind: TokenKind, token_id: str) -> None:
        """Revoke a key, an invitation, with what it became in all browsers, or a report's link.

        Raises:
            NotFoundError: there is none of this id that the actor may revoke.
        """
        is_token = (access_tokens.c.id == token_id, access_tokens.c.kind == kind)
        with self._database.writing() as connection:
            row = connection.execute(select(access_tokens).where(*is_token)).one_or_none()
            if row is None or not self._leads(row.dataset_id):
                raise NotFoundError(f"there is no {kind} {token_id!r}")
            # Links for other devices of the same person open nothing here any more, either.
            person = row.person or row.id
            same = or_(access_tokens.c.id == person, access_tokens.c.person == person)
            same &= access_tokens.c.dataset_id.is_not_distinct_from(row.dataset_id)
            values = {"revoked": _now()} | ({"code": None} if kind == "report" else {})
            connection.execute(update(access_tokens).where(same).values(values))
            dataset = names_of(connection).get(row.dataset_id)
            self._note(connection, f"{kind} revoked", dataset, token_id)

    def note(self, action: str, dataset: str | None = None, about: str = "") -> None:
        """Append to the log what the actor does."""
        with self._database.writing() as connection:
            self._note(connection, action, dataset, about)

    def log(self, limit: int = 1000) -> list[LogEntry]:
        """Return who did what, the newest first.

        Raises:
            AccessError: the actor is no lead of all datasets.
        """
        columns = (access_log.c[field.name] for field in fields(LogEntry))
        query = select(*columns).order_by(access_log.c.id.desc()).limit(limit)
        with self._database.reading() as connection:
            require(connection, self._actor, Permission.ADMINISTER, None)
            rows = connection.execute(query).all()
        return [LogEntry(datetime.fromisoformat(at), *details) for at, *details in rows]

    def verify_log(self) -> tuple[int, int]:
        """Check that nobody has changed the log; see ``broken_entry``.

        Raises:
            AccessError: the actor is no lead of all datasets.
        """
        with self._database.reading() as connection:
            require(connection, self._actor, Permission.ADMINISTER, None)
            return broken_entry(connection)

    def _note(self, connection: Connection, action: str, dataset: str | None, about: str) -> None:
        note(connection, self._actor, action, dataset=dataset, about=about)

    def _leads(self, dataset: int | None) -> bool:
        if dataset is None:
            return self._actor.may(Permission.ADMINISTER)
        return self._actor.may(Permission.MANAGE, dataset)

    def _number(self, connection: Connection, dataset: str | None) -> int | None:
        needed = Permission.ADMINISTER if dataset is None else Permission.MANAGE
        require(connection, self._actor, needed, dataset)
        if dataset is None:
            return None
        query = select(datasets.c.version_of).where(datasets.c.name == dataset)
        if connection.execute(query).scalar() is not None:
            raise UsageError(f"{dataset!r} is a version: roles are for its dataset")
        # Not `find`, which gives a version away by its error, and takes a connection that writes.
        return catalog.find(connection, dataset).id

    def _resolve(
        self, connection: Connection, subject: str, dataset: str | None
    ) -> tuple[str, int | None]:
        number = self._number(connection, dataset)
        check_subject(subject)
        if ":" in subject:
            return subject, number
        if "@" in subject:
            return EMAIL + subject.casefold(), number
        rows = connection.execute(select(people.c.subject).where(people.c.name == subject))
        person = rows.scalar_one_or_none()
        if person is None:
            raise NotFoundError(
                f"nobody called {subject!r} has logged in yet: enter their e-mail address, or "
                "oidc: and their ID at the login provider"
            )
        return person, number


def check_subject(subject: str, what: str = "subject") -> None:
    """Check that a subject can be stored, and is no text of any size.

    Args:
        subject: the subject, or another text from outside.
        what: what it is.

    Raises:
        UsageError: it has too many characters, or one that no database takes.
    """
    if not subject.strip() or len(subject) > _LONGEST or UNSAFE.search(subject):
        raise UsageError(
            f"{subject[:40]!r} is not a valid {what}: 1 to {_LONGEST} characters, without controls"
        )


def _actor(connection: Connection, subject: str, email: str | None = None) -> Actor:
    rows = connection.execute(select(people.c.name).where(people.c.subject == subject))
    name = rows.scalar_one_or_none() or SOMEBODY
    mine = [subject] if email is None else [subject, EMAIL + email.casefold()]
    granted: dict[int | None, set[Role]] = defaultdict(set)
    columns = (roles.c.dataset_id, roles.c.role)
    for row in connection.execute(select(*columns).where(roles.c.subject.in_(mine))):
        granted[row.dataset_id].add(Role(row.role))
    names = connection.execute(select(reviewer_names).where(reviewer_names.c.subject == subject))
    return Actor(
        subject,
        name,
        {number: frozenset(held_roles) for number, held_roles in granted.items()},
        {row.dataset_id: row.name for row in names},
    )


def _person_of(connection: Connection, subject: str) -> str | None:
    return connection.execute(select(people.c.name).where(people.c.subject == subject)).scalar()


def _free_name(connection: Connection, name: str, *, keeps: bool = True) -> str:
    """Return a name that no person has, nor anybody who annotated before they came, nor a detector.

    Where it ``keeps`` names, nor anybody who is invited and has not come yet. Names that look alike
    count as the same: a stranger called “Αnna” with a Greek letter would be taken for Anna.
    """
    shown = "".join(c for c in normalize("NFKC", name) if category(c)[0] != "C" or c.isspace())
    base_name = drawn(shown)[:100] or SOMEBODY
    invited = select(access_tokens.c.label).where(*_is_waiting())
    queries = [select(table.c.name).distinct() for table in (people, annotators)]
    queries += [invited] * keeps
    held = chain.from_iterable(connection.execute(query).scalars() for query in queries)
    taken = frozenset[str]().union(*map(looks, chain(held, reserved_names())))
    candidates = chain((base_name,), (f"{base_name} ({number})" for number in count(2)))
    return next(candidate for candidate in candidates if not looks(candidate) & taken)


def _is_waiting() -> tuple[ColumnElement[bool], ...]:
    """Return the conditions for invitations that nobody has accepted yet."""
    return (
        access_tokens.c.kind == "invitation",
        access_tokens.c.used.is_(None),
        access_tokens.c.revoked.is_(None),
        access_tokens.c.expires > _timestamp(),
    )


def _held_names(connection: Connection) -> Iterator[tuple[str, str | None]]:
    """Yield the names of people, each with its subject; None for who has only annotated so far."""
    for row in connection.execute(select(people.c.name, people.c.subject)):
        yield row.name, row.subject
    for row in connection.execute(select(access_tokens).where(*_is_waiting())):
        if row.label:
            yield row.label, f"invitation:{row.person or row.id}"
    is_person = annotators.c.kind == AnnotatorKind.PERSON.value
    for name in connection.execute(select(annotators.c.name).distinct().where(is_person)).scalars():
        yield name, None


def _same_person(connection: Connection, wanted: str, token_id: str) -> tuple[str, str]:
    """Return the name of the person who is called so, and the invitation that stands for them.

    Who has annotated and never come is entered, with the new invitation ``token_id``.
    """
    held = dict(reversed([*_held_names(connection)]))
    name = alike(wanted, held)
    if name is None:
        raise UsageError(f"nobody is called “{wanted}” yet: make the link without “same person”")
    if (subject := held[name]) is None:
        row = {"subject": f"invitation:{token_id}", "name": name, "seen": _now()}
        connection.execute(insert(people).values(row))
        return name, token_id
    kind, _, person = subject.partition(":")
    if kind != "invitation":
        raise UsageError(f"“{name}” logs in and needs no link: grant them a role on Access")
    return name, person


def _new_id() -> str:
    return secrets.token_hex(_SHOWN // 2)


def _granted(subject: str, role: Role, dataset: int | None) -> Collection[ColumnElement[bool]]:
    return (
        roles.c.subject == subject,
        roles.c.role == role.value,
        roles.c.dataset_id.is_(None) if dataset is None else roles.c.dataset_id == dataset,
    )


def _timestamp() -> float:
    return datetime.now(UTC).timestamp()


def _now() -> str:
    return datetime.now(UTC).isoformat()
