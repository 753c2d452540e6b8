"""Who acts, and what they may do: roles, permissions, and one table between the two.

A role is given for one dataset or for all. The owner of the database (the command line, Python, a
worker) may do everything; a server with a login binds its stores to somebody else, and whoever it
does not know may do nothing at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final

from pydantic import BaseModel, ConfigDict

from spanlab.base.errors import AccessError


class Permission(StrEnum):
    """What somebody may do with a dataset, and last with the whole database."""

    SEE = "see"  # items, what detectors said, and what they said themselves
    REVIEW = "review"
    READ = "see others' annotations in"
    ADJUDICATE = "adjudicate"
    EXPORT = "export"
    MANAGE = "manage"  # its settings, annotators, versions, jobs and end; who works on it
    ADMINISTER = "administer the server"  # new datasets, memory, programs, models, keys, the log


class Role(StrEnum):
    """What somebody is, for one dataset or for all."""

    ANNOTATOR = "annotator"
    ADJUDICATOR = "adjudicator"
    VIEWER = "viewer"
    LEAD = "lead"


_SEES: Final = frozenset({Permission.SEE, Permission.READ})
MAY: Final[Mapping[Role, frozenset[Permission]]] = {
    Role.ANNOTATOR: frozenset({Permission.SEE, Permission.REVIEW}),
    Role.ADJUDICATOR: _SEES | {Permission.REVIEW, Permission.ADJUDICATE},
    Role.VIEWER: _SEES | {Permission.EXPORT},
    Role.LEAD: frozenset(Permission) - {Permission.ADMINISTER},
}


@dataclass(frozen=True)
class Actor:
    """Who acts.

    ``subject`` is who that is for certain, whatever they are called: ``oidc:`` and the provider's
    name for them, ``invitation:`` or ``key:`` and a number. ``roles`` are by the number of a
    dataset, None for all; so are ``names``, where somebody goes by another name in a dataset.
    """

    subject: str
    name: str
    roles: Mapping[int | None, frozenset[Role]] = field(default_factory=dict)
    names: Mapping[int, str] = field(default_factory=dict)

    @property
    def is_owner(self) -> bool:
        """Whether this is the owner of the database, who may write under any name."""
        return self == OWNER

    def may(self, permission: Permission, dataset: int | None = None) -> bool:
        """Return whether they may do something with a dataset; None for the whole database."""
        everywhere = self.roles.get(None, frozenset())
        if Role.LEAD in everywhere:
            return True
        here = everywhere if dataset is None else everywhere | self.roles.get(dataset, frozenset())
        return any(permission in MAY[role] for role in here)

    def require(self, permission: Permission) -> None:
        """Check that they may do something that concerns no dataset in particular.

        Raises:
            AccessError: they may not.
        """
        if not self.may(permission):
            raise AccessError(f"{self.name} has no permission to {permission.value}. Ask the lead.")

    def may_somewhere(self, permission: Permission) -> bool:
        """Return whether there is any dataset with which they may do something."""
        return any(self.may(permission, dataset) for dataset in (None, *self.roles))

    def name_in(self, dataset: int) -> str:
        """Return the name under which they annotate a dataset."""
        return self.names.get(dataset, self.name)


OWNER: Final = Actor("owner", "owner", {None: frozenset({Role.LEAD})})
NOBODY: Final = Actor("", "nobody")


class _StoredRow(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class GrantedRole(_StoredRow):
    """A role that somebody has; ``dataset`` is None for all."""

    subject: str
    name: str | None
    role: Role
    dataset: str | None
    granted_by: str
    at: datetime


class AccessToken(_StoredRow):
    """A key of a program, the invitation of a person, or a report's link, without its secret.

    ``used`` is when an invitation was accepted, ``code`` what its person gets at the end and
    ``worker`` what a crowd platform calls that person.
    """

    id: str
    kind: str  # "key", "invitation" or "report"
    label: str
    role: Role
    dataset: str | None
    made_by: str
    at: datetime
    expires: datetime | None
    revoked: datetime | None
    used: datetime | None
    worker: str | None
    code: str | None


@dataclass(frozen=True)
class LogEntry:
    """What somebody did, and when."""

    at: datetime
    subject: str
    name: str
    action: str
    dataset: str | None
    about: str
