"""A team without a provider of logins, from its invitations to the export, in browsers."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from driving import focus_rests, go, idle, words_item
from playwright.sync_api import (
    Browser,
    BrowserContext,
    Locator,
    Page,
    ViewportSize,
    WebSocket,
    expect,
)
from playwright.sync_api import (
    TimeoutError as NotShown,
)
from serving import PATIENCE, Server, patient

from spanlab.people.entrance import change_checks
from spanlab.schema import Annotation, AnnotatorKind, Record, Span
from spanlab.storage import Store
from spanlab.worklists import check_items
from spanlab.worklists.names import item_of

pytestmark = pytest.mark.browser

ITEMS, KNOWN, TEST = 3, 3, 2  # so few that Nora gets all of them
TEAM = ("Nora", "Ben", "Cem")
PART = 2  # items of each: two people finish each item
Look = Callable[[], None]
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
        change_checks(store, "ours", {"share": 0.3, "test_items": TEST})
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
    """Make a link for each on the page Campaign, and return them by name."""
    go(lead, _page(server, "campaign"))
    lead.get_by_text("Invite people").click()
    lead.get_by_role("textbox", name="Names, one a line").fill("\n".join(TEAM))
    lead.get_by_role("textbox", name="Completion code").fill("DONE-42")
    lead.get_by_role("button", name="Create links").click()
    made = lead.get_by_test_id("stCode").filter(has_text="/invitation?to=")
    expect(made).to_have_count(len(TEAM), timeout=PATIENCE)
    text = "\n".join(made.all_inner_texts())
    found = re.findall(r"(\w+): you are invited[^/]*(http://\S+)", text)
    assert [name for name, _ in found] == list(TEAM)
    return dict(found)


def _assign(lead: Page) -> None:
    """Share the items among those who were invited; a name that nobody has is not offered."""
    lead.locator("summary", has_text="Review plan").click()
    idle(lead)
    assigned = lead.get_by_role("combobox", name="Assigned to")
    _look_for(assigned, "Zoe", lead.get_by_text("No results"))
    for name in TEAM:
        _choose(lead, assigned, name)
    assigned.press("Escape")
    lead.locator(".st-key-save-plan").get_by_role("button").click()
    expect(lead.get_by_text("Review plan of ours: saved.")).to_be_visible()


def _choose(lead: Page, choice: Locator, name: str) -> None:
    """Choose a person, again where the page is drawn anew meanwhile and forgets the click."""
    chosen = lead.get_by_test_id("stMultiSelect").filter(has=choice).get_by_text(name, exact=True)
    for _ in range(10):
        option = lead.get_by_role("option", name=name, exact=True)
        _look_for(choice, name, option)
        with suppress(NotShown):
            option.click(timeout=3000)
            chosen.wait_for(timeout=3000)
            idle(lead)
            if chosen.is_visible():
                return
    raise AssertionError(f"{name!r} was not chosen")


def _look_for(choice: Locator, name: str, shown: Locator) -> None:
    """Type a name into a choice, again where the page is drawn anew meanwhile and closes it."""
    for _ in range(10):
        choice.fill(name)
        with suppress(NotShown):
            shown.wait_for(timeout=3000)
            return
    raise AssertionError(f"nothing was shown for {name!r}")


def _pass_the_test(page: Page, look: Look = lambda: None) -> None:
    """Mark the items of the test as their known answers are."""
    page.get_by_role("button", name="Begin").click()
    page.get_by_text(f"0 of {TEST} items decided").wait_for()
    for _ in range(TEST):
        _wait_for_item(page)
        # Others would tell check items by it.
        expect(page.locator("button[title='Add evidence']")).to_have_attribute("hidden", "")
        look()
        _decide(page, "a", "You can start")
    page.get_by_text("You can start").wait_for()


def _wait_for_item(page: Page) -> None:
    page.wait_for_selector('.sl[data-item]:not([data-item=""]) .sl-p', state="attached")
    page.wait_for_function("spanlab.editor.navigation.opening === null")
    focus_rests(page)


def _decide(page: Page, key: str, end: str) -> None:
    """Press a key on the open item, finish it, and wait for the next one or for the end."""
    _wait_for_item(page)
    before = page.evaluate("spanlab.editor.navigation.at")
    page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.wait_for_function("() => spanlab.outbox.writes.length === 0")
    page.wait_for_function(
        """([before, end]) => ![before, null, ""].includes(spanlab.editor.navigation.at)
            || document.body.innerText.includes(end)""",
        arg=[before, end],
    )


def _review_all(page: Page, server: Server, key: str = "a", look: Look = lambda: None) -> None:
    page.goto(server.url(dataset="ours"))
    while True:
        _wait_for_item(page)
        expect(page.get_by_role("link", name="Take a tour")).to_have_count(0)  # they have none
        look()
        if page.locator(".sl-finished").get_by_text(_END).is_visible():
            return
        _decide(page, key, _END)


_END = "All of your items are decided"


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
        needed = page.locator("[data-testid='stCheckbox'] label", has_text="Assigned to you")
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
    go(lead, _page(server, "measure"))
    lead.get_by_role("button", name="Plan this measurement").click()
    lead.get_by_role("heading", name=re.compile("^Too few reviews to say how many")).wait_for()
    lead.get_by_text(re.compile(rf"\d of {ITEMS} items reviewed")).wait_for()
    lead.get_by_role("link", name="Review the sample").wait_for()
    nora.goto(server.url(dataset="ours"))
    nora.locator(".sl-finished").get_by_text(_END).wait_for()
    assert "Too few reviews" not in nora.content()
    assert "Rate of these items" not in nora.content()


def _read_report(lead: Page) -> None:
    """See the report in its frame on the page Export: how often, which model, who reviewed."""
    lead.locator(".st-key-export-kind").get_by_text("HTML report", exact=True).click()
    report = lead.frame_locator("iframe[title='The report on ours']")
    expect(report.locator(".headline")).to_contain_text("Too few reviews", timeout=PATIENCE)
    for fact in ("small-model", "3 people (", "adjudicated by owner", "Krippendorff's alpha"):
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
    """See that known items were among the others; where they stood is drawn by a secret."""
    with Store.open(server.settings) as store:
        items = [item_of(store, "ours", "Nora", name) for name in watch.walked]
        given = {item.item_id for item in check_items.given_to(store, "ours", "Nora").given}
    assert given == {item for item in items if item.startswith("known-")}
    assert len(given) > TEST
    assert len(items) == len(set(items)) == PART + len(given)


def _check_what_is_for_others(server: Server, watch: _Watch, nora: Page) -> None:
    for item in ("known-0", "plain-0", "nothing"):  # like one that does not exist
        nora.goto(server.url(dataset="ours", item=item))
        nora.get_by_text(f"There is no item “{item}” in the dataset").wait_for()
    _check_known(server, watch)
    for name in ("Compare", "Measure", "Export", "Campaign"):  # no way leads past her role
        assert nora.get_by_role("link", name=name, exact=True).count() == 0


def _log_out(page: Page, server: Server) -> None:
    page.goto(server.url().replace("/?", "/log-out"))
    with page.expect_popup() as leaving:
        page.get_by_role("link", name="Log out").click()
    leaving.value.get_by_role("button", name="Log out").click()
    page.goto(server.url())
    page.get_by_text("People come here by invitation").wait_for()


def _another_link(server: Server, name: str) -> str:
    with Store.open(server.settings) as store:
        (token,) = (each for each in store.access.tokens("invitation") if each.label == name)
        link = store.access.invite_again(token.id)
    return f"http://127.0.0.1:{server.port}/invitation?to={link}"


def _adjudicate(lead: Page, server: Server) -> None:
    """Adopt what all agree on, and decide the others by the marks of the first annotator."""
    lead.goto(_page(server, "adjudicate"))
    adopt = lead.get_by_role("dialog").get_by_role("button", name=re.compile(r"Adopt \d+ items?$"))
    for _ in range(10):  # where the page is drawn anew meanwhile, its dialog closes
        idle(lead)
        with suppress(NotShown):
            if not adopt.is_visible():
                lead.get_by_role("button", name="Adopt unanimous items").click(timeout=9000)
            adopt.click(timeout=9000)
            lead.get_by_text(re.compile(r"^\d items? adopted$")).wait_for(timeout=9000)
            idle(lead)  # until then the editor stands at an item that it will read again
            break
    else:
        raise AssertionError("no item was adopted")
    while not _adjudicated(server):
        _decide(lead, "1", "are decided")


def _adjudicated(server: Server) -> bool:
    """Whether all items of the plan have gold labels."""
    with Store.open(server.settings) as store:
        done = {
            record.item.id
            for record in store.records("ours", annotators=["adjudicated"])
            if record.finished
        }
    return {f"plain-{n}" for n in range(ITEMS)} <= done


def _export(server: Server, lead: Page, nora: Page) -> None:
    """See that the file has what each person and the lead said of each item."""
    go(lead, _page(server, "export"))
    lead.get_by_role("button", name="Create file").click()
    with lead.expect_download(timeout=PATIENCE) as downloaded:
        lead.get_by_role("button", name=re.compile("Download")).first.click()
    _check_files(server, downloaded.value.url, lead, nora)
    records = map(json.loads, downloaded.value.path().read_text("utf-8").splitlines())
    said = Counter(
        annotation["annotator"]
        for record in records
        for annotation in record["annotations"]
        if record["id"].startswith("plain-")
    )
    assert said == {"detector-a": ITEMS, "adjudicated": ITEMS} | dict.fromkeys(TEAM, PART)


def test_a_team_is_invited_reviews_adjudicates_measures_and_exports(
    server: Server, browser: Browser
) -> None:
    with ExitStack() as stack:
        lead, nora, ben, cem, phone = (
            _seat(stack.enter_context(browser.new_context(viewport=WIDE))) for _ in range(5)
        )
        phone.goto(server.url())
        phone.get_by_text("People come here by invitation").wait_for()
        _accept(lead, _owners_link(server))
        links = _invite(lead, server)
        _assign(lead)

        _accept(nora, links["Nora"], clicks=2)  # a double click locks nobody out
        nora.goto(links["Nora"])  # and the link leads on in the browser that has opened it
        nora.get_by_text("Help").first.wait_for()
        phone.goto(links["Nora"])
        phone.get_by_text("This link is no longer valid").wait_for()
        watch = _Watch(nora)
        _pass_the_test(nora, watch.look)
        _review_all(nora, server, look=watch.look)
        nora.get_by_text("Your code: DONE-42").wait_for()
        watch.check()
        _check_what_is_for_others(server, watch, nora)

        _accept(ben, links["Ben"])
        _pass_the_test(ben)
        _lose_the_server(ben, server)
        _review_all(ben, server, key="x")
        _log_out(ben, server)

        _accept(cem, links["Cem"])
        _pass_the_test(cem)
        _accept(phone, _another_link(server, "Cem"))
        phone.get_by_text("Cem", exact=True).first.wait_for()  # the same person, on another device
        _review_all(phone, server)

        _adjudicate(lead, server)
        _measure(server, lead, nora)
        _export(server, lead, nora)
        _read_report(lead)
