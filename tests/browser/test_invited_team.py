"""A team without a provider of logins: invited, reviewing, adjudicating, exporting, in browsers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from driving import words_item
from playwright.sync_api import Browser, BrowserContext, Page, ViewportSize, WebSocket, expect
from serving import PATIENCE, Server, patient

from spanlab.people.entrance import change_known
from spanlab.schema import Annotation, AnnotatorKind, Record, Span
from spanlab.storage import Store

pytestmark = pytest.mark.browser

ITEMS, KNOWN = 3, 3
WIDE: ViewportSize = {"width": 1440, "height": 900}


def _plain(name: str) -> Record:
    record = words_item(name, 3)
    item = record.item.model_copy(update={"meta": {"model": "small-model"}})
    return record.model_copy(update={"item": item})


def _known(name: str) -> Record:
    record = _plain(name)
    right = Span.of(record.item.answer, 0, len("word0"))
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=(right,))
    return record.model_copy(update={"annotations": (*record.annotations, gold)})


@pytest.fixture
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(tmp_path_factory.mktemp("home"), variables={"SPANLAB_INVITE": "yes"})
    with Store.open(server.settings) as store:
        store.import_records("ours", [_plain(f"plain-{n}") for n in range(ITEMS)])
        store.import_records("ours", [_known(f"known-{n}") for n in range(KNOWN)])
        change_known(store, "ours", {"share": 0.3})
        store.change_settings("ours", lambda now: now.model_copy(update={"overlap": 2}))
    server.start()
    try:
        yield server
    finally:
        server.kill()


def _seat(context: BrowserContext) -> Page:
    return patient(context.new_page())


def _owners_link(server: Server) -> str:
    (link,) = re.findall(r"open this link once: (\S+)", server.log.read_text())
    return str(link)


def _accept(page: Page, link: str, *, clicks: int = 1) -> None:
    page.goto(link)
    page.get_by_role("button", name="Start").click(click_count=clicks)
    page.get_by_text("Help").first.wait_for()


def _page(server: Server, name: str) -> str:
    return server.url(dataset="ours").replace("/?", f"/{name}?")


def _invite(lead: Page, server: Server) -> dict[str, str]:
    """Make a link for each of two people on the page Campaign, and return them by name."""
    lead.goto(_page(server, "campaign"))
    lead.get_by_text("Invite people").click()
    lead.get_by_role("textbox", name="Names, one a line").fill("Nora\nBen")
    lead.get_by_role("textbox", name="Completion code").fill("DONE-42")
    lead.get_by_role("button", name="Create links").click()
    made = lead.locator("[data-testid='stCode']").first
    expect(made).to_contain_text("/invitation?to=", timeout=PATIENCE)
    found = re.findall(r"(\w+): you are invited[^/]*(http://\S+)", made.inner_text())
    assert [name for name, _ in found] == ["Nora", "Ben"]
    return dict(found)


def _review_all(page: Page, server: Server, key: str = "a") -> _Watch:
    watch = _Watch(page)
    page.goto(server.url(dataset="ours"))
    end = "All of your items are decided"
    while True:
        page.wait_for_selector('.sl[data-item]:not([data-item=""]) .sl-p', state="attached")
        watch.look()
        if page.locator(".sl-finished").get_by_text(end).is_visible():
            return watch
        page.focus(".sl-answer")
        before = page.evaluate("spanlab.editor.navigation.at")
        page.keyboard.press(key)
        page.keyboard.press("Enter")
        page.wait_for_function("() => spanlab.outbox.writes.length === 0")
        page.wait_for_function(
            """([before, end]) => spanlab.editor.navigation.at !== before
                || document.querySelector(".sl-finished").innerText.includes(end)""",
            arg=[before, end],
        )


class _Watch:
    """All that reaches or leaves the browser of an annotator, looked through for items' ids."""

    def __init__(self, page: Page) -> None:
        self._page, self.walked, self.frames = page, list[str](), list[bytes]()
        page.on("websocket", self._listen)

    def _listen(self, socket: WebSocket) -> None:
        for event in ("framereceived", "framesent"):
            socket.on(event, lambda frame: self.frames.append(_bytes(frame)))

    def look(self) -> None:
        """Take in the item that is open, and see what stands in the page and the address."""
        at = str(self._page.evaluate("spanlab.editor.navigation.at"))
        if at not in self.walked:
            self.walked.append(at)
        for text in (self._page.content(), self._page.url):
            assert not _NAMED.search(text.encode()), text

    def check(self) -> None:
        """See that nothing tells a known item: neither frames, nor totals, nor the table."""
        page = self._page
        done = page.locator(".sl-progress-text").inner_text()
        assert done == f"{len(self.walked)} of {len(self.walked)} done"
        page.get_by_role("button", name="Queue").click()
        needed = page.locator("[data-testid='stCheckbox'] label", has_text="that still need you")
        needed.click()  # what is finished, too
        page.keyboard.press("Escape")
        page.wait_for_function("!spanlab.editor.navigation.place.id.includes('unfinished')")
        page.wait_for_function("!spanlab.outbox.waiting")
        page.focus(".sl-answer")
        page.keyboard.press("/")
        cells = page.locator(".sl-items tbody td:first-child")
        expect(cells).to_have_text(self.walked, timeout=PATIENCE)
        for searched in ("known", "plain", "nothing like this"):
            page.get_by_role("searchbox", name="Search items").fill(searched)
            page.get_by_text("No item fits").wait_for()
        assert self.frames
        for frame in self.frames:  # but for what was searched for, and the query's own fields
            assert not _NAMED.search(frame), frame


_NAMED = re.compile(rb"(known|plain)-\d")


def _bytes(frame: str | bytes) -> bytes:
    return frame.encode() if isinstance(frame, str) else frame


def _check_files(server: Server, url: str, lead: Page, nora: Page) -> None:
    """See that made files and uploads are for who may export or import, whoever has a URL."""
    mine = lead.request.get(url)
    assert (mine.status, mine.headers["cache-control"]) == (200, "no-store")
    assert nora.request.get(url).status == 403
    asked = "(url) => fetch(url).then(async (said) => [said.status, (await said.text()).length])"
    assert lead.evaluate(asked, url) == [200, 0]  # as a page asks whether a file is there
    assert nora.evaluate(asked, url)[0] == 403
    disguised = f"{url}.png"  # Streamlit goes by what stands before the ending
    assert (nora.request.get(disguised).status, lead.request.get(disguised).status) == (403, 200)
    upload = f"http://127.0.0.1:{server.port}/_stcore/upload_file/x/y"
    for address, method in ((url, "GET"), (upload, "PUT")):
        with pytest.raises(HTTPError, match="403"):
            urlopen(Request(address, method=method), timeout=30)
    assert "this needs somebody who may" in nora.request.put(upload).text()
    assert "XSRF" in lead.request.put(upload).text()  # past the guard: Streamlit's own check


def _measure(server: Server, lead: Page, nora: Page) -> None:
    """Plan a measurement and read what it has come to, which an annotator is not told."""
    lead.goto(_page(server, "measure"))
    lead.get_by_role("button", name="Plan this measurement").click()
    rate = re.compile(r"Between \d+ and \d+ of 100 answers like these contain a hallucination")
    lead.get_by_role("heading", name=rate).wait_for()
    lead.get_by_text(re.compile(r"\d reviews of 6 items")).wait_for()
    lead.get_by_role("link", name="Review the sample").wait_for()
    nora.goto(server.url(dataset="ours"))
    nora.locator(".sl-finished").get_by_text("All of your items are decided").wait_for()
    assert "of 100 answers" not in nora.content()
    assert "Rate so far" not in nora.content()


def _read_report(server: Server, lead: Page) -> None:
    """See the report in its frame: how often, which model, who reviewed."""
    lead.goto(_page(server, "export"))
    lead.locator(".st-key-export-format").get_by_text("HTML report", exact=True).click()
    report = lead.frame_locator("iframe[title='The report on ours']")
    expect(report.locator(".headline")).to_contain_text("of 100 answers", timeout=PATIENCE)
    for fact in ("small-model", "2 people (Ben", "Krippendorff's alpha"):
        expect(report.locator("dl").first).to_contain_text(fact)


def _lose_the_server(page: Page, server: Server) -> None:
    """Press a key while no server is there: it is stored once there is one again."""
    page.goto(server.url(dataset="ours"))
    page.wait_for_selector('.sl[data-item]:not([data-item=""]) .sl-p', state="attached")
    page.focus(".sl-answer")
    server.kill()
    page.keyboard.press("x")
    assert page.evaluate("spanlab.outbox.writes.length") == 1
    server.start()
    page.wait_for_function("() => spanlab.outbox.writes.length === 0")


def _check_known(server: Server, watch: _Watch) -> None:
    """See that known items were among the others, and not at the beginning."""
    with Store.open(server.settings) as store:
        items = [store.item_of("ours", "Nora", name) for name in watch.walked]
        given = {item.item_id for item in store.known_items("ours", "Nora").given}
    assert given
    assert given == {item for item in items if item.startswith("known-")}
    assert items[0] == "plain-0"
    assert len(items) == len(set(items)) == ITEMS + len(given)


def test_a_team_is_invited_reviews_adjudicates_and_exports(
    server: Server, browser: Browser
) -> None:
    with (
        browser.new_context(viewport=WIDE) as first,
        browser.new_context(viewport=WIDE) as second,
        browser.new_context(viewport=WIDE) as third,
        browser.new_context(viewport=WIDE) as fourth,
    ):
        lead, nora, ben, phone = map(_seat, (first, second, third, fourth))
        phone.goto(server.url())
        phone.get_by_text("People come here by invitation").wait_for()
        _accept(lead, _owners_link(server))
        links = _invite(lead, server)

        _accept(nora, links["Nora"], clicks=2)  # a double click locks nobody out
        nora.goto(links["Nora"])  # and the link leads on in the browser that has opened it
        nora.get_by_text("Help").first.wait_for()
        phone.goto(links["Nora"])
        phone.get_by_text("This link is no longer valid").wait_for()
        watch = _review_all(nora, server)
        nora.get_by_text("Your code: DONE-42").wait_for()
        watch.check()
        for item in ("known-0", "plain-0", "nothing"):  # like one that does not exist
            nora.goto(server.url(dataset="ours", item=item))
            nora.get_by_text(f"There is no item “{item}” in the dataset").wait_for()
        _check_known(server, watch)
        for name in ("Compare", "Measure", "Export", "Campaign"):  # no way leads past her role
            assert nora.get_by_role("link", name=name, exact=True).count() == 0

        _accept(ben, links["Ben"])
        _lose_the_server(ben, server)
        _review_all(ben, server, key="x")
        ben.goto(server.url().replace("/?", "/log-out"))
        with ben.expect_popup() as leaving:
            ben.get_by_role("link", name="Log out").click()
        leaving.value.get_by_role("button", name="Log out").click()
        ben.goto(server.url())
        ben.get_by_text("People come here by invitation").wait_for()

        with Store.open(server.settings) as store:
            (of_nora,) = (t for t in store.access.tokens("invitation") if t.label == "Nora")
            again = store.access.invite_again(of_nora.id)
        _accept(phone, f"http://127.0.0.1:{server.port}/invitation?to={again}")
        phone.get_by_text("Nora", exact=True).first.wait_for()  # the same person

        lead.goto(_page(server, "adjudicate"))
        lead.get_by_role("button", name=re.compile("Adopt unanimous items")).wait_for()
        lead.goto(_page(server, "compare"))
        lead.get_by_text("You see what everybody marked").wait_for()
        _measure(server, lead, nora)
        _read_report(server, lead)
        lead.goto(_page(server, "export"))
        lead.get_by_role("button", name="Create file").click()
        with lead.expect_download(timeout=PATIENCE) as downloaded:
            lead.get_by_role("button", name=re.compile("Download")).first.click()
        _check_files(server, downloaded.value.url, lead, nora)
        lines = downloaded.value.path().read_text("utf-8").splitlines()
        assert len(lines) == ITEMS + KNOWN
        assert sum('"Nora"' in line for line in lines) >= ITEMS
        assert sum('"Ben"' in line for line in lines) >= ITEMS
