"""Where spanlab keeps its work and how it is configured: variables and files."""

from __future__ import annotations

import getpass
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, ClassVar, Final, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    HttpUrl,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from spanlab.base.errors import InputError, UsageError, unreadable
from spanlab.base.fields import message_of


def _names(value: object) -> object:
    if not isinstance(value, str):
        return value
    return frozenset(filter(None, map(str.strip, value.lower().split(","))))


def _hosts(value: object) -> object:
    names = _names(value)
    if isinstance(names, frozenset) and any("/" in name for name in names):
        raise ValueError("an address, and no name")
    return names


def _root_address(value: str | None) -> str | None:
    if value and not re.fullmatch(r"https?://[^/\s?#]+/?", value):
        raise ValueError("not the address of a server")
    return value


def _listed(value: object) -> object:
    return [part.strip() for part in value.split(",")] if isinstance(value, str) else value


_SECRET: Final = 16  # characters
_SHOWN: Final = 40  # characters of a wrong value
_NEAR: Final = 0.78  # DATABASE and DATABASE_URL are .80, SEARXNG_URL and SEARCH_URL .76


@dataclass(frozen=True)
class PerRole:
    """Marks a field that also has a variable for each role and detector, before the general one.

    ``description`` says what that is for.
    """

    description: str


class EnvironmentVariables(BaseModel):
    """What the environment says: each field by the variable of ``prefix`` and its name.

    A field's title says what its variable holds, in errors; its description what that is for.
    One marked by ``PerRole`` has further variables, such as ``SPANLAB_MODEL_JUDGE`` for the role
    "judge".
    """

    model_config = ConfigDict(frozen=True)
    prefix: ClassVar[str] = "SPANLAB_"

    @classmethod
    def variable(cls, field: str, role: str = "", *, prefix: str = "") -> str:
        """Return the environment variable of a field.

        Args:
            field: its name.
            role: a role or a detector, such as "ucsc-kg", for its own variable; "" for the general.
            prefix: how the variable begins, in place of the class's ``prefix``.
        """
        special = f"{field}_{role}" if role else field
        return f"{prefix or cls.prefix}{special.upper().replace('-', '_')}"

    @classmethod
    def set_by(
        cls, field: str, environ: Mapping[str, str], roles: Sequence[str] = (), *, prefix: str = ""
    ) -> str:
        """Return the variable that counts for a field: the first that is set; see ``read``."""
        special = roles if cls.per_role(field) else ()
        names = [cls.variable(field, role, prefix=prefix) for role in (*special, "")]
        return next((name for name in names if environ.get(name, "").strip()), names[-1])

    @classmethod
    def per_role(cls, field: str) -> PerRole | None:
        """Return the mark of a field that has a variable for each role, None for others."""
        marks = cls.model_fields[field].metadata
        return next((mark for mark in marks if isinstance(mark, PerRole)), None)

    @classmethod
    def read(
        cls, environ: Mapping[str, str] = os.environ, roles: Sequence[str] = (), *, prefix: str = ""
    ) -> Self:
        """Read the variables; an empty one counts as not set.

        Args:
            environ: the environment variables.
            roles: roles and detectors whose variables go before the general ones, the first first.
            prefix: how the variables begin, in place of the class's ``prefix``.

        Raises:
            UsageError: one holds what it cannot; says what would be right.
        """
        given = {
            field: (variable, text)
            for field in cls.model_fields
            for variable in [cls.set_by(field, environ, roles, prefix=prefix)]
            if (text := environ.get(variable, "").strip())
        }
        try:
            return cls.model_validate({field: text for field, (_, text) in given.items()})
        except ValidationError as error:
            field = str(error.errors()[0]["loc"][0])
            right = cls.model_fields[field].title
            variable, text = given.get(field, (cls.variable(field, prefix=prefix), ""))
            shown = text[:_SHOWN] if cls.model_fields[field].repr else "…"
            raise UsageError(f"{variable}={shown}: it is {right}") from None


class Settings(EnvironmentVariables):
    """Where this process keeps its work, who may reach it, and what it takes."""

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
    allowed_hosts: Annotated[frozenset[str], BeforeValidator(_hosts)] = Field(
        frozenset(),
        title="names with commas between",
        description="Under which other machines reach the app, beside this machine's own.",
    )
    files_root: Path | None = Field(
        None,
        title="a directory",
        description="Folder whose files may be imported.",
    )
    url: Annotated[str | None, AfterValidator(_root_address)] = Field(
        None,
        title="an address such as https://spanlab.example.org",
        description="Where people reach the app, if they log in.",
    )
    invite: bool = Field(
        False,
        title="yes or no",
        description="Whether people come by invitations, with or without a provider of logins.",
    )
    oidc_issuer: str | None = Field(
        None,
        title="the address of an OpenID Connect provider",
        description="OpenID Connect provider; makes login mandatory.",
    )
    oidc_client_id: str | None = Field(None, title="a name", description="Client ID.")
    oidc_client_secret: str | None = Field(
        None,
        title="a secret",
        description="Client secret.",
        repr=False,
    )
    oidc_scope: str = Field(
        "openid email profile",
        pattern=r"(^|\s)openid(\s|$)",
        title="names with spaces between, openid among them",
        description="What the provider is asked to say of people.",
    )
    oidc_prompt: str = Field(
        "",
        title="a word that the provider knows, such as login or select_account",
        description="What the provider asks of people who are logged in there already.",
    )
    leads: Annotated[frozenset[str], BeforeValidator(_names)] = Field(
        frozenset(),
        title="verified e-mail addresses, or oidc:SUBJECT, with commas between",
        description="Of people who lead all datasets from the start.",
    )
    api_key: str = Field(
        "",
        title="a key of 16 characters or more",
        description="The key of the HTTP API and the MCP server.",
        repr=False,
    )
    shared: Path | None = Field(
        None, title="a directory", description="Holds the data that spanlab bench measures on."
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
        """Whether the app asks who people are: at a provider of logins, or by invitations alone."""
        return self.invite or self.has_provider

    @property
    def has_provider(self) -> bool:
        """Whether people log in at a provider.

        Raises:
            UsageError: some of what that needs is set, and some is not.
        """
        needed = ("oidc_issuer", "oidc_client_id", "oidc_client_secret", "url")
        missing = [self.variable(name) for name in needed if not getattr(self, name)]
        if missing and any(getattr(self, name) for name in needed[:3]):
            raise UsageError(f"a login needs {' and '.join(missing)}, too")
        return not missing


class EndpointSettings(EnvironmentVariables):
    """The endpoint of language models.

    Those of another endpoint begin with the ``prefix_of`` the variable that holds its key.
    """

    prefix: ClassVar[str] = "OPENAI_"

    api_key: str = Field("", title="a key", description="The endpoint's key.", repr=False)
    base_url: str = Field(
        "",
        title="an address that begins with http:// or https://",
        description="The endpoint's address, unless it is OpenAI's own.",
        repr=False,
    )
    headers: str = Field(
        "",
        title="name=value,name=value",
        description="Further headers that the endpoint is sent.",
        repr=False,
    )

    @staticmethod
    def prefix_of(key: str) -> str:
        """Return how an endpoint's variables begin: ``OPENAI_`` for ``OPENAI_API_KEY``."""
        return key.removesuffix("_KEY").removesuffix("_API") + "_"


class ModelSettings(EnvironmentVariables):
    """Which language model is asked, how and at what price."""

    model: Annotated[
        str, PerRole("Another model for a role or a detector: SPANLAB_MODEL_JUDGE, and so on.")
    ] = Field("", title="a name that the endpoint knows", description="The model.")
    price: Annotated[
        str, PerRole("The price of the model of a role or a detector: SPANLAB_PRICE_JUDGE.")
    ] = Field(
        "",
        title="US dollars per million tokens: input, cached input, output",
        description="The model's price.",
    )
    model_options: str = Field(
        "",
        title="options with commas between, such as temperature=0,seed=1",
        description="How models are asked.",
    )


class WebSearchSettings(EnvironmentVariables):
    """Search services: one of your own, what searches cost, and the model that searches."""

    search_url: str = Field(
        "",
        title="an address such as https://api.example.com/search?q={query}",
        description="A search API of your own.",
        repr=False,  # some services want the key in it
    )
    search_api_key: str = Field(
        "",
        title="a key",
        description="The key of that API, and of the model that searches.",
        repr=False,
    )
    search_key_header: str = Field(
        "Authorization",
        title="the name of a header",
        description="How the search API wants its key.",
    )
    search_fields: str = Field(
        "",
        title="names with paths, such as results=data.items,text=body",
        description="Where things stand in what the search API sends.",
    )
    price_per_search: float | None = Field(
        None,
        ge=0,
        lt=1_000,
        title="a price in US dollars, such as 0.005",
        description="What a search costs, in place of the service's list price.",
    )
    searches_per_minute: float | None = Field(
        None,
        ge=0,
        lt=1_000_000,
        title="a number of searches, such as 60",
        description="How many searches may begin in a minute; 0 for any number.",
    )
    search_model: str = Field(
        "sonar-pro",
        title="a name that the endpoint of SPANLAB_SEARCH_BASE_URL knows",
        description="The model that searches and cites.",
    )
    search_base_url: str = Field(
        "https://api.perplexity.ai",
        title="an address that begins with http:// or https://",
        description="Where the model that searches is.",
        repr=False,
    )
    price_search: str = Field(
        "",
        title="US dollars per million tokens: input, cached input, output",
        description="The price of the model that searches.",
    )


def misspelt(environ: Mapping[str, str] = os.environ) -> Iterator[str]:
    """Yield what to say of variables that are nearly, but not quite, named as one of ours."""
    kinds: tuple[type[EnvironmentVariables], ...] = (Settings, ModelSettings, WebSearchSettings)
    known = [
        (kind.variable(name), kind.per_role(name)) for kind in kinds for name in kind.model_fields
    ]
    prefix, ending = EnvironmentVariables.prefix, "_FILE"  # of what the container reads from files
    rests = [name.removeprefix(prefix) for name, _ in known]
    for given in sorted(name for name in environ if name.startswith(prefix)):
        meant = given.removesuffix(ending)
        if any(
            meant == name or (of_role and meant.startswith(f"{name}_")) for name, of_role in known
        ):
            continue
        for near in get_close_matches(meant.removeprefix(prefix), rests, 1, _NEAR):
            yield f"{given} is not read; {prefix}{near}{given.removeprefix(meant)} is"


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
        raise unreadable(path, error) from error
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or None
        raise InputError(
            f"not {what}", file=path, field=field, expected=message_of(first)
        ) from None


def account_name() -> str:
    """Return the name of the account that runs spanlab; empty for root, who may be anybody."""
    try:
        name = getpass.getuser()
    except (KeyError, OSError):
        return ""
    return "" if name == "root" else name
