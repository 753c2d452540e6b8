"""Connections over a network that may fall silent: both ends notice that within seconds.

The server has to, because the transaction of a host that is gone would hold its locks for two
hours otherwise, and everybody who writes the same rows would wait. The host has to, because its
calls would hang until TCP gives up, after a quarter of an hour.
"""

from __future__ import annotations

from sqlalchemy import URL

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


def watchful(url: URL) -> URL:
    """Return a PostgreSQL URL whose connections are watched from both ends.

    Time limits and options that the URL has itself stay.
    """
    own = dict(url.query)
    options = own.pop("options", "")
    said = options if isinstance(options, str) else " ".join(options)
    return url.update_query_dict({**_CLIENT, **own, "options": f"{_SERVER} {said}".strip()})
