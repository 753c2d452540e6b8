"""Web pages over real HTTP: polite, bounded, and from public addresses alone."""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path

import pytest
from wire import MIB, endless, head, wire

from spanlab.base.errors import PageError
from spanlab.models.cache import answer_file
from spanlab.search.addresses import check_url, is_public, public_address
from spanlab.search.pages import PageReader
from spanlab.testing import ModelServer, ScriptedReply, fail

PAGE = "<title>Towers</title><p>The tower is tall.</p><script>bad()</script>"
HTML = {"Content-Type": "text/html; charset=utf-8"}


def serve(server: ModelServer, **pages: ScriptedReply) -> PageReader:
    """Let a server have these pages, and nothing else; returns what may read them."""
    server.script(lambda ask: pages.get(ask.path.strip("/").replace(".", "_"), fail(404, "none")))
    return PageReader(allowed=frozenset([f"127.0.0.1:{server.port}"]), pause=0.0)


def html(text: str = PAGE, **headers: str) -> ScriptedReply:
    return ScriptedReply(body=text.encode(), headers=HTML | headers)


def moved(place: str) -> ScriptedReply:
    return ScriptedReply(status=302, body=b"", headers={"Location": place})


def at(server: ModelServer, path: str = "page") -> str:
    return f"http://127.0.0.1:{server.port}/{path}"


def test_a_page_is_read_as_text_with_its_title(model_server: ModelServer) -> None:
    pages = serve(model_server, page=html())
    found = asyncio.run(pages.read(at(model_server)))
    assert (found.text, found.title, found.url) == (
        "The tower is tall.",
        "Towers",
        at(model_server),
    )


def test_between_two_pages_of_a_host_is_a_pause(model_server: ModelServer) -> None:
    serve(model_server, page=html(), other=html())
    pages = PageReader(allowed=frozenset([f"127.0.0.1:{model_server.port}"]), pause=0.2)

    async def both() -> None:
        await asyncio.gather(*(pages.read(at(model_server, name)) for name in ("page", "other")))

    asyncio.run(both())
    first, second = (ask.at for ask in model_server.requests if ask.path != "/robots.txt")
    assert second - first >= 0.2


def test_a_page_is_fetched_once_whoever_asks_and_after_a_restart(
    model_server: ModelServer, tmp_path: Path
) -> None:
    serve(model_server, page=html())
    allowed = frozenset([f"127.0.0.1:{model_server.port}"])

    async def both(pages: PageReader) -> list[str]:
        found = await asyncio.gather(*(pages.read(at(model_server)) for _ in range(2)))
        return [each.text for each in found]

    for _ in range(2):
        pages = PageReader(answer_file(tmp_path), allowed=allowed, pause=0.0)
        assert asyncio.run(both(pages)) == ["The tower is tall."] * 2
    assert [ask.path for ask in model_server.requests] == ["/robots.txt", "/page"]


def test_a_site_that_fails_is_not_asked_again_at_once(
    model_server: ModelServer, tmp_path: Path
) -> None:
    serve(model_server, page=fail(503, "down"))
    allowed = frozenset([f"127.0.0.1:{model_server.port}"])
    for _ in range(2):
        pages = PageReader(answer_file(tmp_path), allowed=allowed, pause=0.0)
        with pytest.raises(PageError, match="answered with status 503"):
            asyncio.run(pages.read(at(model_server)))
    assert [ask.path for ask in model_server.requests] == ["/robots.txt", "/page"]


def test_a_redirect_is_followed_and_five_at_most(model_server: ModelServer) -> None:
    pages = serve(model_server, page=moved("/other"), other=html(), loop=moved("/loop"))
    assert asyncio.run(pages.read(at(model_server))).url == at(model_server, "other")
    with pytest.raises(PageError, match="redirects more than 5 times"):
        asyncio.run(pages.read(at(model_server, "loop")))


def test_robots_are_obeyed(model_server: ModelServer) -> None:
    rules = ScriptedReply(
        body=b"User-agent: *\nDisallow: /page", headers={"Content-Type": "text/plain"}
    )
    pages = serve(model_server, robots_txt=rules, page=html(), other=html())
    with pytest.raises(PageError, match="does not want"):
        asyncio.run(pages.read(at(model_server)))
    assert asyncio.run(pages.read(at(model_server, "other"))).text


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param(fail(500, "down"), "status 500", id="failing"),
        pytest.param(html("<p> </p>"), "without text", id="empty"),
        pytest.param(
            ScriptedReply(body=b"\x89PNG", headers={"Content-Type": "image/png"}),
            "image/png",
            id="picture",
        ),
        pytest.param(html("x" * (5 * 2**20 + 1)), "more than 5 MiB", id="large"),
        pytest.param(
            ScriptedReply(
                body=gzip.compress(bytes(6 * 2**20)),
                headers=HTML | {"Content-Encoding": "gzip"},
            ),
            "more than 5 MiB",
            id="bomb",
        ),
        pytest.param(
            html("no gzip", **{"Content-Encoding": "gzip"}),
            "cannot be unpacked",
            id="wrong-packing",
        ),
        pytest.param(html("?", **{"Content-Encoding": "br"}), "packed as", id="other-packing"),
        pytest.param(moved("http://user@127.0.0.1/"), "names a user", id="to-a-user"),
        pytest.param(moved("file:///etc/passwd"), "not an http", id="to-a-file"),
        pytest.param(moved("http://169.254.169.254/"), "not public", id="to-metadata"),
        pytest.param(moved("http://127.0.0.1:1/"), "not public", id="to-another-port"),
        pytest.param(moved("//[::1]/"), "not public", id="to-ipv6"),
        pytest.param(moved("http://2130706433/"), "not public", id="to-a-number"),
        pytest.param(moved("http://[::ffff:169.254.169.254]/"), "not public", id="to-mapped"),
        pytest.param(moved("http://["), "not a web address", id="to-half-an-address"),
        pytest.param(moved("//[::1"), "not a web address", id="to-half-an-ipv6"),
        pytest.param(moved("http://[x]/"), "not a web address", id="to-no-ipv6"),
        pytest.param(moved("http://a%5B/"), "127.0.0.1|no host", id="to-a-packed-bracket"),
        pytest.param(moved("http://x:99999999999/"), "not a web address", id="to-no-port"),
        pytest.param(moved("http://x:0x50/"), "not a web address", id="to-no-number"),
        pytest.param(moved("http:///x"), "status 404", id="to-nobody"),
        pytest.param(moved("http://\xe9\u2100/"), "could not be read|no ", id="to-odd-letters"),
        pytest.param(moved("/" + "x" * 60_000), "could not be read|status 404", id="to-afar"),
        pytest.param(ScriptedReply(drop=True), "could not be read", id="dropped"),
    ],
)
def test_what_is_no_page_is_refused_with_the_reason(
    reply: ScriptedReply, message: str, model_server: ModelServer
) -> None:
    pages = serve(model_server, page=reply)
    with pytest.raises(PageError, match=message):
        asyncio.run(pages.read(at(model_server)))


def test_a_packed_page_is_unpacked(model_server: ModelServer) -> None:
    body = gzip.compress(PAGE.encode())
    packed = ScriptedReply(body=body, headers=HTML | {"Content-Encoding": "gzip"})
    pages = serve(model_server, page=packed)
    assert asyncio.run(pages.read(at(model_server))).text == "The tower is tall."


def test_nothing_about_the_reader_is_sent(model_server: ModelServer) -> None:
    cookie = html(PAGE, **{"Set-Cookie": "id=1"})
    pages = serve(model_server, page=cookie, other=cookie)
    asyncio.run(pages.read(at(model_server)))
    asyncio.run(pages.read(at(model_server, "other")))
    sent = {name.lower() for ask in model_server.requests for name in ask.headers}
    assert sent == {"host", "user-agent", "accept", "accept-encoding"}


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com/",
        "file:///etc/passwd",
        "gopher://example.com/",
        "javascript:alert(1)",
        "data:text/html,x",
        "//example.com/",
        "example.com",
        "http://",
        "http:///path",
        "http://user@example.com/",
        "http://user:word@example.com/",
        "http://example.com@127.0.0.1/",
        "http://example.com\\@127.0.0.1/",
        "http://[::1/",
        "http://example.com:99999/",
        "http://example.com:0/",
        "http://example.com:80:80/",
        "http://[fe80::1%25eth0/",
        "http://127.0.0.1:80\\@example.com/",
        "",
    ],
)
def test_addresses_that_are_no_pages_are_refused_unasked(url: str) -> None:
    with pytest.raises(PageError):
        check_url(url)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "0",
        "0.0.0.0",
        "10.0.0.1",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "198.18.0.1",
        "192.0.2.1",
        "224.0.0.1",
        "255.255.255.255",
        "0x7f.1",
        "0177.1",
        "LOCALHOST",
        "localhost.",
        "①②⑦.0.0.1",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "192.88.99.1",
        "fec0::1",
        "::ffff:0:127.0.0.1",
        "::ffff:0:93.184.216.34",
        "3fff::1",
        "5f00::1",
        "4000::1",
        "2d00::1",
        "2001:db8::1",
        "2001:2::1",
        "64:ff9b:1::7f00:1",
        "2002:5db8:d822::",
        "fe80::5efe:7f00:1",
        "0:0:0:0:0:ffff:7f00:1",
        "fd00:ec2::254",
        "localhost%00.example.com",
        "::1",
        "::",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:7f00:1::",
        "fe80::1",
        "fc00::1",
        "ff02::1",
        "no-such-host.invalid",
    ],
)
def test_hosts_that_are_not_public_are_refused(host: str) -> None:
    with pytest.raises(PageError):
        asyncio.run(public_address(host, 80))


@pytest.mark.parametrize(
    "address",
    [
        "93.184.216.34",
        "2606:2800:220:1:248:1893:25c8:1946",
        "2001:4860:4860::8888",
        "2a00:1450::1",
        "2c0f:fb50::1",
        "::ffff:93.184.216.34",
    ],
)
def test_addresses_of_the_public_internet_are_not(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


def test_rules_that_lie_elsewhere_are_followed_there(model_server: ModelServer) -> None:
    rules = ScriptedReply(body=b"User-agent: spanlab\nDisallow: /page")
    pages = serve(model_server, robots_txt=moved("/rules"), rules=rules, page=html(), other=html())
    with pytest.raises(PageError, match="does not want"):
        asyncio.run(pages.read(at(model_server)))
    assert asyncio.run(pages.read(at(model_server, "other"))).text


@pytest.mark.parametrize(
    "first", ["93.184.216.34", "169.254.169.254"], ids=["public-at-first", "private-at-first"]
)
def test_a_name_that_means_another_address_the_second_time_is_looked_up_once(
    model_server: ModelServer, monkeypatch: pytest.MonkeyPatch, first: str
) -> None:
    asked: list[str] = []

    def look_up(host: str, port: int, *_: object, **__: object) -> list[tuple[object, ...]]:
        asked.append(host)
        address = first if len(asked) == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    server = f"http://metadata.google.internal:{model_server.port}/page"
    # Tests' own guard ends a connection to an address that is not this machine's.
    with pytest.raises(PageError, match=r"could not be read|not public"):
        asyncio.run(PageReader(pause=0.0).read(server))
    assert set(asked) <= {"metadata.google.internal", "93.184.216.34"}
    assert asked.count("metadata.google.internal") == 1
    assert model_server.count == 0


def endless_rules(line: str) -> Iterable[bytes]:
    if "robots" in line:
        return chain([head(kind="text/plain")], endless(b"Disallow: /x\n" * 5000))
    return [head(kind="text/html"), b"<p>The tower is tall.</p>"]


def moving_rules(line: str) -> Iterable[bytes]:
    return [head(302, "Location: /robots.txt")] if "robots" in line else endless_rules(line)


def slow_rules(line: str) -> Iterable[bytes]:
    if "robots" in line:
        yield head(kind="text/plain")
        while True:
            threading.Event().wait(0.05)
            yield b"#"
    yield from endless_rules(line)


@pytest.mark.parametrize(
    ("rules", "asked"),
    [(endless_rules, 1), (moving_rules, 6), (slow_rules, 1)],
    ids=["endless", "moving", "slow"],
)
def test_rules_without_end_cost_their_limit_once(
    rules: Callable[[str], Iterable[bytes]], asked: int
) -> None:
    async def read(pages: PageReader, url: str) -> str:
        try:
            return (await pages.read(url)).text
        except PageError as error:
            return str(error)

    async def both(url: str) -> list[str]:
        allowed = frozenset([url.removeprefix("http://")])
        pages = PageReader(allowed=allowed, pause=0.0, seconds=1.0 if rules is slow_rules else 60.0)
        return [await read(pages, f"{url}/{page}") for page in "ab"]

    with wire(lambda line, _body: rules(line)) as server:
        first, second = asyncio.run(both(server.url))
        assert first == second
        assert re.search("more than 5 MiB|did not send|The tower is tall", first)
        assert sum("robots" in line for line in server.asked) == asked
        assert server.sent < 64 * MIB
