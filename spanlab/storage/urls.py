"""URLs of databases: what they may be, how they are shown, connections watched from both ends.

A network may fall silent: both ends notice that within seconds. The server has to, because the
transaction of a host that is gone would hold its locks for two hours otherwise, and everybody who
writes the same rows would wait. The host has to, because its calls would hang until TCP gives up,
after a quarter of an hour.
"""

from __future__ import annotations

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from spanlab.base.errors import UsageError

_POSTGRESQL = {"postgres", "postgresql", "postgresql+psycopg"}
_SQLITE = {"sqlite", "sqlite+pysqlite"}
_KINDS = "sqlite:///file.db or postgresql://user:password@host:5432/name"
_HOSTS = "several hosts are given as postgresql://user:password@/name?host=one:5432&host=two:5432"
_MARKS = frozenset(":@=?")  # what may stand before or after a password
_CLIENT = {
    "keepalives_idle": "5",
    "keepalives_interval": "2",
    "keepalives_count": "3",
    "tcp_user_timeout": "10000",
    "connect_timeout": "10",
}
_SERVER = (
    "-c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 "
    "-c tcp_user_timeout=10000"
)


def database_url(text: str) -> URL:
    """Return the URL of an SQLite or PostgreSQL database, with its password where it is hidden.

    SQLAlchemy hides the password before the host, and not one among the options after it.

    Raises:
        UsageError: it is no such URL. The message repeats nothing that may be a password: in a
            text that cannot be read, that may be any part.
    """
    try:
        url = make_url(text)
    except ArgumentError:
        shown_text = "a text that may hold a password" if set(text) & _MARKS else repr(text)
        raise UsageError(f"{shown_text} is not a database URL: {_KINDS}") from None
    except ValueError:  # repeats what stands where the port would be
        raise UsageError(f"the port in the database URL is not a number; {_HOSTS}") from None
    if (passwords := url.query.get("password")) is not None:
        password = passwords if isinstance(passwords, str) else passwords[-1]
        url = url.difference_update_query(["password"]).set(password=password)
    _check(url)
    return url if url.drivername in _SQLITE else url.set(drivername="postgresql+psycopg")


def shown(url: URL) -> str:
    """Return a URL for messages: without its password and its options."""
    return url.set(query={}).render_as_string(hide_password=True)


def _check(url: URL) -> None:
    if url.drivername not in _SQLITE | _POSTGRESQL:
        raise UsageError(f"no database of the kind {url.drivername!r}: {_KINDS}")
    if url.drivername in _SQLITE and (url.host or url.username or url.password):
        raise UsageError(
            "an SQLite database is a file, without host, user and password: "
            "sqlite:///file.db below the current directory, or sqlite:////path/file.db"
        )
    if "@" in (url.host or ""):
        raise UsageError("the database URL has a second @: in a password it is written as %40")
    if "," in (url.host or ""):
        raise UsageError(f"the database URL names several hosts; {_HOSTS}")


def watchful(url: URL) -> URL:
    """Return a PostgreSQL URL whose connections are watched from both ends.

    Time limits and options that the URL has itself stay.
    """
    own = dict(url.query)
    options = own.pop("options", "")
    own_options = options if isinstance(options, str) else " ".join(options)
    return url.update_query_dict({**_CLIENT, **own, "options": f"{_SERVER} {own_options}".strip()})
