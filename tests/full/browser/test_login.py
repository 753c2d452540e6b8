"""People who log in at a real provider, or come by an invitation, in browsers of their own."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

import pytest
from driving import choose, go, idle
from playwright.sync_api import Browser, Page, expect
from serving import PATIENCE, Server, patient
from signing_in import serving_with_login, sign_in

from spanlab import doors
from spanlab.app import login
from spanlab.oplog.state import ReviewState
from spanlab.schema import Annotation, AnnotatorKind, DatasetSettings, Item, Record, Role, Span
from spanlab.storage import Store

# The provider answers in a thread of this process, and warns of what it is made of.
pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SECRET = "SECRET"
PAGES = ("export", "compare", "access")  # of those that an annotator may not open

Enter = Callable[[str], Page]


def _fill(server: Server) -> None:
    answer = "one two three"
    marked = Span.of(answer, 0, 3, label=SECRET)
    ben = Annotation(annotator="Ben", kind=AnnotatorKind.PERSON, spans=(marked,), note=SECRET)
    with Store.open(server.settings) as store:
        for dataset in ("ours", "theirs"):
            items = [Item(id=f"{dataset}-{number}", answer=answer) for number in (1, 2)]
            store.import_records(dataset, [Record(item=item, annotations=(ben,)) for item in items])
            store.change_settings(dataset, _blind)
        store.access.grant("anna@example.org", Role.ANNOTATOR, "ours")
        store.access.grant("cem@example.org", Role.VIEWER, "ours")


def _blind(_: DatasetSettings) -> DatasetSettings:
    return DatasetSettings(always_blind=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving_with_login(tmp_path_factory.mktemp("home"), _fill) as server:
        yield server


@pytest.fixture(scope="module")
def enter(server: Server, browser: Browser) -> Iterator[Enter]:
    """Log somebody in, in a browser of their own: at the first page, or where they were before."""
    pages: dict[str, Page] = {}

    def log_in(sub: str) -> Page:
        page = pages.get(sub)
        if page is None:
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            page = pages[sub] = patient(context.new_page())
            page.goto(server.url())
            sign_in(page, server, sub)
        return page

    yield log_in
    for page in pages.values():
        page.context.close()


def _editor(page: Page) -> None:
    page.wait_for_selector(".sl[data-item] .sl-p", state="attached")
    page.focus(".sl-answer")


def _write_in_vain(page: Page) -> None:
    """Comment the answer, which is a write whatever state it is in, and wait for the refusal."""
    page.keyboard.press("C")
    page.keyboard.type("too late")
    page.keyboard.press("Enter")
    page.get_by_text("Nothing typed is lost").or_(page.get_by_role("button", name="Log in")).or_(
        page.get_by_text("that you may work with")
    ).first.wait_for()


def _pages(page: Page) -> list[str]:
    page.get_by_text("Help").first.wait_for()
    links = page.locator("[data-testid='stTopNavLink']").all_inner_texts()
    return [text.split("\n")[-1] for text in links]


def _review(server: Server, item: str, name: str) -> ReviewState:
    with Store.open(server.settings) as store:
        return store.review("ours", item, name).state


def test_two_people_log_in_and_each_writes_under_their_own_name(
    server: Server, enter: Enter
) -> None:
    anna, lea = enter("2"), enter("1")
    assert _pages(anna) == ["Review"]
    assert _pages(lea)[:4] == ["Check", "Review", "Datasets", "Detect"]
    anna.goto(server.url(dataset="ours", reviewer="Ben", item="ours-1"))
    _editor(anna)
    assert SECRET not in anna.content()
    anna.keyboard.press("Enter")
    anna.wait_for_function("() => spanlab.outbox.writes.length === 0")
    expect(anna.locator(".sl[data-item='ours-2']")).to_be_attached()
    assert _review(server, "ours-1", "Anna").status == "done"
    with Store.open(server.settings) as store:
        logins = [entry.name for entry in store.access.log() if entry.action == "login"]
    assert logins.count("Lea") == 1  # however many pages were opened since


def test_an_annotator_gets_no_other_page_or_dataset_by_its_address(
    server: Server, enter: Enter
) -> None:
    anna = enter("2")
    anna.goto(server.url(dataset="theirs", item="theirs-1"))
    anna.get_by_text("There is no dataset").first.wait_for()
    assert SECRET not in anna.content()
    for place in PAGES:
        anna.goto(server.url(dataset="ours").replace("/?", f"/{place}?"))
        anna.get_by_text("Help").first.wait_for()
        idle(anna)
        anna.get_by_text("This page is for").wait_for()
        shown = anna.content()
        assert SECRET not in shown, place
        assert "stDownloadButton" not in shown, place


def test_a_lead_gives_roles_and_makes_links_on_a_page_that_says_what_it_is_for(
    server: Server, enter: Enter
) -> None:
    lea = enter("1")
    go(lea, server.url().replace("/?", "/access?"))
    about = next(page for page in doors.pages() if page.title == "Access")
    expect(lea.get_by_text(about.about)).to_be_visible()
    link = lea.get_by_role("link", name="Guide", exact=True).last
    expect(link).to_have_attribute("href", re.compile(f"guide\\?topic={about.topic}$"))
    lea.get_by_role("tab", name="Roles").click()
    lea.get_by_role("textbox", name="Person").fill("dan@example.org")
    choose(lea, "Dataset", "theirs")
    lea.get_by_test_id("stDataFrame").filter(visible=True).hover()
    toolbar = lea.get_by_test_id("stElementToolbar").filter(visible=True)
    top = toolbar.evaluate(
        """async bar => {
            await Promise.all(bar.getAnimations({subtree: true}).map(each => each.finished));
            return Math.min(...[bar, ...bar.children].map(e => e.getBoundingClientRect().top));
        }"""
    )
    grant = lea.get_by_role("button", name="Grant role")
    button = grant.bounding_box()
    assert button and button["y"] + button["height"] <= top, "the table's toolbar would cover it"
    grant.click()
    lea.get_by_text("dan@example.org is annotator now").wait_for()
    lea.get_by_role("tab", name="Keys").click()
    lea.get_by_role("button", name="Create key").click()
    expect(lea.get_by_text("Copy it now")).to_be_visible()  # on the tab that was chosen
    lea.get_by_role("tab", name="Roles").click()
    lea.get_by_role("link", name="Invite people without an account").click()
    lea.get_by_text("Invite people", exact=True).click()
    lea.get_by_role("textbox", name="Names, one a line").fill("Nora")
    lea.get_by_role("button", name="Create links").click()
    made = lea.locator("[data-testid='stCode']").first
    expect(made).to_contain_text("/invitation?to=")


def test_a_role_that_is_taken_back_counts_at_the_next_key_in_all_tabs(
    server: Server, enter: Enter
) -> None:
    anna = enter("2")
    tabs = (anna, patient(anna.context.new_page()))
    for tab in tabs:
        tab.goto(server.url(dataset="ours", item="ours-2"))
        _editor(tab)
    with Store.open(server.settings) as store:
        before = store.n_operations("ours")
        store.access.revoke("anna@example.org", Role.ANNOTATOR, "ours")
        try:
            for tab in tabs:
                tab.keyboard.press("Enter")
                tab.get_by_text("Your access has ended").wait_for()
                expect(tab.get_by_text("Offline")).to_have_count(0)
            assert store.n_operations("ours") == before
        finally:
            store.access.grant("anna@example.org", Role.ANNOTATOR, "ours")
            tabs[1].close()


def test_somebody_without_a_role_is_told_whom_to_ask(enter: Enter) -> None:
    ben = enter("3")
    ben.get_by_text("have no role yet").wait_for()
    expect(ben.get_by_text("Ben (2)")).to_be_visible()  # Ben annotated here before he came
    ben.get_by_role("button", name="Log out").click()
    ben.get_by_role("button", name="End session").click()  # the provider's own question
    ben.get_by_role("button", name="Log in").wait_for()


def test_whoever_logs_in_comes_to_the_page_that_they_asked_for(
    server: Server, browser: Browser
) -> None:
    with browser.new_context() as context:
        page = patient(context.new_page())
        page.goto(server.url(dataset="ours", item="ours-2"))
        sign_in(page, server, "2")
        _editor(page)
        assert page.evaluate("spanlab.editor.navigation.at") == "ours-2"
        # As a sibling of this host may set it: nobody has signed that.
        context.clear_cookies()
        page.goto(server.url())
        value, url = quote("/jobs", safe=""), server.url()
        context.add_cookies([{"name": "spanlab_asked", "value": value, "url": url}])
        sign_in(page, server, "2")
        page.get_by_text("Help").first.wait_for()
        assert urlsplit(page.url).path == "/"


@pytest.mark.parametrize(
    "address",
    ["//evil.example", "/\\evil.example", "/\t/evil.example", "https://evil.example", "evil", ""],
)
def test_no_address_of_another_host_is_a_page_here(address: str) -> None:
    assert login.OWN_PATH.fullmatch("/jobs?dataset=d")
    assert not login.OWN_PATH.fullmatch(address)


def test_a_logout_ends_the_other_tabs_and_copies_of_the_cookies(
    server: Server, browser: Browser
) -> None:
    with browser.new_context() as context, browser.new_context() as copied:
        page, other = patient(context.new_page()), patient(context.new_page())
        page.goto(server.url(dataset="ours", item="ours-2"))
        sign_in(page, server, "2")
        _editor(page)
        other.goto(server.url(dataset="ours", item="ours-2"))
        _editor(other)
        copied.add_cookies(context.cookies(server.url()))  # type: ignore[arg-type]
        page.goto(server.url().replace("/?", "/log-out?"))
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("button", name="End session").click()
        page.get_by_role("button", name="Log in").wait_for()
        with Store.open(server.settings) as store:
            before = store.n_operations("ours")
            _write_in_vain(other)
            assert store.n_operations("ours") == before
            assert "logout" in [entry.action for entry in store.access.log()]
        page = patient(copied.new_page())
        page.goto(server.url(dataset="ours"))
        page.get_by_role("button", name="Log in").wait_for()


def test_leaving_ends_the_other_tabs_of_an_invitation(server: Server, browser: Browser) -> None:
    with Store.open(server.settings) as store:
        ends = datetime.now(UTC) + timedelta(hours=1)
        token = store.access.make_token("invitation", Role.ANNOTATOR, "ours", expires=ends)
    with browser.new_context() as context, Store.open(server.settings) as store:
        page, other = patient(context.new_page()), patient(context.new_page())
        page.goto(f"http://127.0.0.1:{server.port}/invitation?to={token}&worker=w17")
        page.get_by_role("button", name="Start").click()
        _editor(page)
        other.goto(server.url(dataset="ours", item="ours-1"))
        _editor(other)
        page.goto(f"http://127.0.0.1:{server.port}/invitation?leave=1")
        page.get_by_role("button", name="Log out").click()
        page.get_by_role("button", name="Log in").wait_for()
        before = store.n_operations("ours")
        _write_in_vain(other)
        assert store.n_operations("ours") == before
        (own,) = (one for one in store.access.tokens("invitation") if one.worker == "w17")
        again = store.access.invite_again(own.id)  # who has left may come back by another link
        page.goto(f"http://127.0.0.1:{server.port}/invitation?to={again}")
        page.get_by_role("button", name="Start").click()
        _editor(page)


def test_a_link_is_accepted_from_the_apps_own_page_alone(server: Server) -> None:
    address = f"http://127.0.0.1:{server.port}/invitation"
    asked = Request(address, b"to=x", {"Origin": "http://evil.example"}, method="POST")
    with pytest.raises(OSError, match="403"):
        urlopen(asked, timeout=30)


def test_a_made_file_is_for_who_may_export_alone(server: Server, enter: Enter) -> None:
    anna, lea = enter("2"), enter("1")
    go(lea, server.url(dataset="ours").replace("/?", "/export?"))
    lea.get_by_role("button", name="Create file").click()
    with lea.expect_download(timeout=PATIENCE) as downloaded:
        lea.get_by_role("button", name=re.compile("Download")).first.click()
    url = downloaded.value.url
    assert lea.request.get(url).status == 200
    with Store.open(server.settings) as store:
        statuses = [anna.request.get(url).status]
        for change in (store.access.grant, store.access.revoke):
            change("anna@example.org", Role.VIEWER, "ours")
            statuses.append(anna.request.get(url).status)
    assert statuses == [403, 200, 403]
