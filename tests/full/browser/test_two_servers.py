"""Two servers of one PostgreSQL database behind a proxy that keeps each browser at its server."""

from __future__ import annotations

from pathlib import Path

import pytest
from campaigning import campaign
from playwright.sync_api import Browser
from postgres import postgres

pytestmark = pytest.mark.browser


def test_people_at_two_servers_share_a_queue_and_nothing_is_lost(
    browser: Browser, tmp_path: Path
) -> None:
    with (
        postgres() as new_url,
        campaign(browser, tmp_path, new_url(), people=2, items=3, servers=2) as people,
    ):
        people.work(rounds=1)
        people.check(rounds=1)
        assert len(people.proxy.served) == 2
