"""The pictures of a campaign in the guide: progress, invitations, a blind queue, import, report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from driving import idle
from pictures import take_picture
from playwright.sync_api import Browser, Page, expect
from serving import PATIENCE, Server, patient

from spanlab.data.importing import import_files
from spanlab.data.joining import join_annotations
from spanlab.storage import Store

pytestmark = pytest.mark.browser

DATA = Path(__file__).parents[3] / "data"
NAME = "support"


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("home"), variables={"SPANLAB_INVITE": "yes"})
    with Store.open(server.settings) as store:
        import_files(store, [DATA / "support.jsonl"], NAME)
        store.change_settings(NAME, lambda now: now.model_copy(update={"overlap": 2}))
        join_annotations(store, [DATA / "support_reviews.jsonl"], NAME)
    server.start()
    try:
        yield server
    finally:
        server.kill()


def test_a_campaign_that_is_led_by_invitations(
    server: Server, browser: Browser, tmp_path: Path
) -> None:
    with browser.new_context(viewport={"width": 1280, "height": 800}) as context:
        lead = patient(context.new_page())
        (link,) = re.findall(r"open this link once: (\S+)", server.log.read_text())
        lead.goto(str(link))
        lead.get_by_role("button", name="Start").click()
        lead.get_by_text("Help").first.wait_for()
        lead.goto(server.url(dataset=NAME).replace("/?", "/campaign?"))
        expect(lead.get_by_text("Progress", exact=True)).to_be_visible(timeout=PATIENCE)
        take_picture(lead, "campaign", tmp_path)
        _invite(lead)
        take_picture(lead, "invitation", tmp_path)
        lead.goto(server.url(dataset=NAME, reviewer="Dora"))
        lead.get_by_role("button", name="Queue").click()
        blind = lead.get_by_text("Locked: this dataset is reviewed blind.")
        blind.scroll_into_view_if_needed(timeout=PATIENCE)
        expect(lead.get_by_text("All saved")).to_be_visible(timeout=PATIENCE)  # behind the queue
        take_picture(lead, "queue", tmp_path)
        lead.goto(server.url(dataset=NAME).replace("/?", "/export?"))
        lead.locator(".st-key-export-kind").get_by_text("HTML report", exact=True).click()
        report = lead.frame_locator(f"iframe[title='The report on {NAME}']").locator(".headline")
        expect(report).to_be_visible(timeout=PATIENCE)
        lead.locator("iframe").evaluate("frame => frame.scrollIntoView({block: 'end'})")
        take_picture(lead, "report", tmp_path)
        lead.goto(server.url().replace("/?", "/datasets?"))
        lead.get_by_text("Import files").click()
        lead.locator("input[type=file]").first.set_input_files(DATA / "support_traces.json")
        judged = lead.get_by_text("judges whole answers").first
        expect(judged).to_be_visible(timeout=PATIENCE)
        judged.scroll_into_view_if_needed()
        take_picture(lead, "import", tmp_path)


def _invite(lead: Page) -> None:
    """Make links for two people, and show them below the form."""
    lead.get_by_text("Invite people").click()
    lead.get_by_role("textbox", name="Names, one a line").fill("Anna\nEmil")
    lead.get_by_role("button", name="Create links").click()
    made = lead.locator("[data-testid='stCode']").first
    expect(made).to_contain_text("/invitation?to=", timeout=PATIENCE)
    idle(lead)
    links = lead.locator("[data-testid='stCode']").last
    links.evaluate("link => link.scrollIntoView({block: 'end'})")
