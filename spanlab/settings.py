"""Where spanlab keeps its work and how it is configured: variables and files."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Final, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from spanlab.errors import InputError, UsageError


def _names(value: object) -> object:
    if not isinstance(value, str):
        return value
    return frozenset(filter(None, map(str.strip, value.lower().split(","))))


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


_SECRET: Final = 16  # characters


class Settings(BaseModel):
    """What the environment says: each field by the variable ``SPANLAB_`` and its name.

    A field's title says what its variable holds.
    """

    model_config = ConfigDict(frozen=True)

    home: Path = Field(
        Path(".spanlab"),
        title="a directory",
        description="Holds the database and its backups, settings, prompts and caches.",
    )
    database_url: str = Field(
        default_factory=lambda data: f"sqlite:///{data['home'] / 'spanlab.db'}",
        title="a URL as SQLAlchemy has them",
        description="The database.",
        repr=False,  # it may hold a password
    )
    programs: Path = Field(
        default_factory=lambda data: data["home"] / "programs",
        title="a directory",
        description="The registry of tuned prompts.",
    )
    allowed_hosts: Annotated[frozenset[str], BeforeValidator(_names)] = Field(
        frozenset(),
        title="names with commas between",
        description="Under which other machines reach the app, beside this machine's own.",
    )
    files_root: Path | None = Field(
        None,
        title="a directory",
        description="Whose files people may name in the app.",
    )
    url: str | None = Field(
        None,
        title="an address such as https://spanlab.example.org",
        description="Where people reach the app, if they log in.",
    )
    oidc_issuer: str | None = Field(
        None,
        title="the address of an OpenID Connect provider",
        description="Who says who people are; it has everybody log in.",
    )
    oidc_client_id: str | None = Field(
        None, title="a name", description="What the provider calls the app."
    )
    oidc_client_secret: str | None = Field(
        None,
        title="a secret",
        description="How the provider knows the app.",
        repr=False,
    )
    leads: Annotated[frozenset[str], BeforeValidator(_names)] = Field(
        frozenset(),
        title="e-mail addresses or subjects with commas between",
        description="Of people who lead all datasets from the start.",
    )
    record_limit: int = Field(
        128,
        ge=1,
        title="a number of MiB, 1 or more",
        description="How much memory a record of a file may take once it is read.",
    )
    webhooks: Annotated[tuple[HttpUrl, ...], BeforeValidator(_listed)] = Field(
        (),
        title="addresses (http or https) with commas between",
        description="Are told when a review or a job is done.",
        repr=False,  # they may hold a token
    )
    webhook_secret: str = Field(
        "",
        title="a text of 16 characters or more, which SPANLAB_WEBHOOKS needs",
        description="Signs what they are told.",
        repr=False,
        validate_default=True,
    )

    @field_validator("webhook_secret")
    @classmethod
    def _signs_what_is_told(cls, secret: str, info: ValidationInfo) -> str:
        if info.data.get("webhooks") and len(secret) < _SECRET:
            raise ValueError("too short")
        return secret

    reply_limit: float = Field(
        16.0,
        gt=0,
        allow_inf_nan=False,
        title="a number of MiB above 0",
        description="How large a reply of a model, a search service or a tool server may be.",
    )
    pages_allowed_hosts: Annotated[frozenset[str], BeforeValidator(_names)] = Field(
        frozenset(),
        title="hosts with ports and commas between, such as wiki.intern:443,127.0.0.1:8080",
        description="Whose pages may be read though they are not public.",
    )
    tools: Path | None = Field(
        None, title="a file", description="The tool servers, in place of tools.json."
    )
    memory_days: str = Field(
        "",
        title="days by kind, such as search=7,papers=100",
        description="For how long evidence that is kept counts.",
    )
    offline_model: Path | None = Field(
        None,
        title="a file of spanlab train-offline",
        description="The model of the offline detector, in place of the shipped one.",
    )

    @property
    def has_login(self) -> bool:
        """Whether people log in.

        Raises:
            UsageError: some of what that needs is set, and some is not.
        """
        needed = ("oidc_issuer", "oidc_client_id", "oidc_client_secret", "url")
        missing = [self.variable(name) for name in needed if not getattr(self, name)]
        if missing and any(getattr(self, name) for name in needed[:3]):
            raise UsageError(f"a login needs {' and '.join(missing)}, too")
        return not missing

    @classmethod
    def variable(cls, field: str) -> str:
        """Return the environment variable of a field."""
        return f"SPANLAB_{field.upper()}"

    @classmethod
    def read(cls) -> Settings:
        """Read the variables; an empty one counts as not set.

        Raises:
            UsageError: one holds what it cannot; says what would be right.
        """
        given = {name: os.environ.get(cls.variable(name)) for name in cls.model_fields}
        try:
            return cls.model_validate({name: text for name, text in given.items() if text})
        except ValidationError as error:
            name = str(error.errors()[0]["loc"][0])
            right = cls.model_fields[name].title
            shown = given[name] if cls.model_fields[name].repr else "…"
            raise UsageError(f"{cls.variable(name)}={shown}: it is {right}") from None


LARGEST: Final = 4_000_000  # bytes; a program of sixteen demonstrations with long passages: a tenth
_M = TypeVar("_M", bound=BaseModel)


def read_json(kind: type[_M], path: Path, what: str, *, most: int = LARGEST) -> _M:
    """Return what a file holds.

    Args:
        kind: its type.
        path: the file.
        what: what it should be, such as "a calibration", for messages.
        most: bytes that it may have.

    Raises:
        InputError: it cannot be read, is larger, or is something else; names the field.
    """
    try:
        if path.stat().st_size > most:
            raise InputError(f"too large for {what}", file=path, expected=f"at most {most:,} bytes")
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", file=path) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or None
        raise InputError(f"not {what}", file=path, field=field, expected=first["msg"]) from None
