"""Which addresses a web page may be fetched from: public ones.

Pages are named by search engines and by other pages, so their addresses are hostile input: one may
lead to a router, a cloud's metadata service or a database in the same network, by its name, by a
redirect, or by a name that means another address the second time it is asked for. A host is
therefore looked up once, every address it has must be public, and that address is connected to.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Iterable
from functools import cache
from typing import Final
from urllib.parse import SplitResult, urlsplit

from spanlab.base.errors import PageError
from spanlab.base.settings import Settings

AGENT: Final = "spanlab"  # how we name ourselves to servers
ALLOWED = Settings.variable("pages_allowed_hosts")
_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
# Of IPv6 what the registries have given out, without what is for protocols, examples or tunnels,
# which lead a gateway to an IPv4 address that is written in them.
_GIVEN_OUT: Final = ipaddress.IPv6Network("2000::/3")
_SPECIAL: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            *("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48"),
            *("2d00::/8", "2e00::/7", "3000::/4"),  # not given out, 3fff::/20 for examples
            # Addresses of protocols, which Python counts among the public ones in part; some
            # clouds have their metadata service there. The last one is another cloud's.
            *("192.0.0.0/24", "192.88.99.0/24", "168.63.129.16/32"),
        ),
    )
)


def check_url(url: str) -> SplitResult:
    """Return the parts of a page's address.

    Raises:
        PageError: it is not http or https, has no host, or names a user.
    """
    try:
        parts = urlsplit(url.strip())
        named = parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError:
        raise PageError(f"{url[:200]!r} is not a web address") from None
    if parts.scheme not in {"http", "https"} or not named:
        raise PageError(f"{url[:200]!r} is not an http or https address")
    if "@" in parts.netloc or "\\" in url:
        raise PageError(f"{url[:200]!r} names a user: such addresses are not read")
    return parts


@cache
def certificates() -> ssl.SSLContext:
    """Return the certificates that servers are checked with, read once: that takes long."""
    import httpx

    return httpx.create_ssl_context()


async def public_address(host: str, port: int, allowed: Iterable[str] = ()) -> str:
    """Look a host up, and return the address to connect to.

    Args:
        host: a name, or an address in any notation that the system reads.
        port: the port.
        allowed: hosts with ports for which any address will do.

    Raises:
        PageError: it has no address, or one that is not public.
    """
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        raise PageError(f"no host is called {host[:200]!r}") from None
    addresses = [str(info[4][0]).partition("%")[0] for info in infos]
    if f"{host}:{port}".lower() not in allowed:
        for address in addresses:
            if not is_public(ipaddress.ip_address(address)):
                raise PageError(
                    f"{host[:200]!r} is {address}, which is not public; {ALLOWED} names hosts "
                    "whose pages may be read all the same"
                )
    return addresses[0]


def is_public(address: _Address) -> bool:
    """Say whether an address belongs to the public internet."""
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return is_public(address.ipv4_mapped)
        if address not in _GIVEN_OUT:
            return False
    if any(address in network for network in _SPECIAL):
        return False
    return address.is_global and not address.is_multicast
