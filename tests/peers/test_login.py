"""A login at a real provider, from npm: it needs node, and keeps closely to the standard."""

from __future__ import annotations

import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from http.cookiejar import CookieJar
from pathlib import Path
from shutil import which

import pytest

VERSION = "9"
SCRIPT = Path(__file__).with_name("provider.mjs")


class Browser:
    """What a browser does with forms, redirects and cookies."""

    def __init__(self) -> None:
        jar = urllib.request.HTTPCookieProcessor(CookieJar())
        self._opener = urllib.request.build_opener(jar)

    def open(self, url: str, **form: str) -> tuple[int, str, str]:
        """Return the status, the address and the text of the page that an address leads to."""
        body = urllib.parse.urlencode(form).encode() if form else None
        try:
            with self._opener.open(url, body, timeout=60) as reply:
                return reply.status, reply.url, reply.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.url, error.read().decode()

    def log_in(self, app: str, name: str) -> tuple[int, str, str]:
        """Go through the provider's pages, and return where they lead to."""
        _, address, page = self.open(f"{app}/auth/login")
        _, address, page = self.open(
            _action(address, page), prompt="login", login=name, password="x"
        )
        return self.open(_action(address, page), prompt="consent")


def _action(address: str, page: str) -> str:
    (found,) = re.findall(r'<form[^>]* action="([^"]+)"', page)
    return urllib.parse.urljoin(address, str(found))


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the provider's package."""
    if which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("provider")
    command = ["npm", "install", "--no-audit", "--no-fund", f"oidc-provider@{VERSION}"]
    subprocess.run(command, cwd=folder, check=True, timeout=300)
    (folder / SCRIPT.name).write_text(SCRIPT.read_text())
    return folder


@pytest.fixture
def app(
    served: Callable[..., AbstractContextManager[str]], package: Path, port: int
) -> Iterator[str]:
    """The address of an app with this provider, where lea@example.org leads."""
    url = f"http://127.0.0.1:{port}"
    variables = {
        "SPANLAB_OIDC_CLIENT_ID": "spanlab",
        "SPANLAB_OIDC_CLIENT_SECRET": "secret",
        "SPANLAB_LEADS": "lea@example.org",
        "SPANLAB_URL": url,
    }
    node = [which("node") or "node", str(package / SCRIPT.name), "{port}", f"{url}/oauth2callback"]
    with served(node, "/.well-known/openid-configuration") as issuer:
        variables["SPANLAB_OIDC_ISSUER"] = issuer.replace("127.0.0.1", "localhost")
        with served(["spanlab", "serve", "--port", "{port}"], "/healthz", port, **variables):
            yield url


def test_a_lead_is_known_by_an_address_that_only_userinfo_says(app: str) -> None:
    lea, ben = Browser(), Browser()
    for browser, name in ((lea, "lea"), (ben, "ben")):
        status, address, _ = browser.log_in(app, name)
        assert (status, address) == (200, f"{app}/")
    assert lea.open(f"{app}/media/none.bin")[0] == 404  # there is none
    assert ben.open(f"{app}/media/none.bin")[0] == 403  # this is not his business


def test_what_the_provider_refuses_is_said(app: str) -> None:
    browser = Browser()
    _, address, page = browser.open(f"{app}/auth/login")
    (cancel,) = re.findall(r'href="([^"]+/abort)"', page)
    status, address, page = browser.open(urllib.parse.urljoin(address, cancel))
    assert status == 400
    assert address.startswith(f"{app}/oauth2callback")
    assert "access_denied" in page
    assert "End-User aborted interaction" in page
