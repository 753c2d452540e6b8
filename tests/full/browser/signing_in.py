"""A server where people log in at a real provider, which runs in a thread of the tests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

from playwright.sync_api import Page
from serving import Server

with warnings.catch_warnings():  # it says so of itself
    warnings.simplefilter("ignore")
    import oidc_provider_mock as provider

PEOPLE = {"1": "Lea", "2": "Anna", "3": "Ben", "4": "Cem"}  # by what the provider calls them
LEAD = "lea@example.org"
LONG = timedelta(hours=1)  # that a token opens anything


@contextmanager
def serving_with_login(home: Path, fill: Callable[[Server], None]) -> Iterator[Server]:
    """Serve the app with a provider at which four people are known.

    Args:
        home: an empty folder.
        fill: puts data into the database before the server starts.
    """
    people = [
        provider.User(
            sub=sub,
            claims={"name": name, "email": f"{name.lower()}@example.org", "email_verified": True},
        )
        for sub, name in PEOPLE.items()
    ]
    with provider.run_server_in_thread(user_claims=people, access_token_max_age=LONG) as there:
        server = Server(
            home,
            variables={
                "SPANLAB_OIDC_ISSUER": f"http://localhost:{there.server_port}",
                "SPANLAB_OIDC_CLIENT_ID": "spanlab",
                "SPANLAB_OIDC_CLIENT_SECRET": "secret",
                "SPANLAB_LEADS": LEAD,
            },
        )
        fill(server)
        server.start()
        try:
            yield server
        finally:
            server.kill()


def sign_in(page: Page, server: Server, sub: str) -> None:
    """Log somebody in, by what the provider calls them, from the page that is open."""
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name=sub, exact=True).click()
    page.wait_for_url(f"http://127.0.0.1:{server.port}/**")
