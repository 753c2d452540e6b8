"""A campaign from its plan to its end, where people log in: a lead, and two who review for them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from driving import idle, words_item
from playwright.sync_api import Browser, BrowserContext, Locator, Page, ViewportSize, expect
from serving import Server, patient
from signing_in import serving_with_login, sign_in

from spanlab.people.overview import oversee
from spanlab.schema import Annotation, AnnotatorKind, Record, Span
from spanlab.storage import Store

pytestmark = [pytest.mark.browser, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

N_ITEMS, N_KNOWN, N_TEST = 4, 6, 2


def _known(name: str) -> Record:
    """An item whose first suggestion is right, and no other one."""
    record = words_item(name, 3)
    right = Span.of(record.item.answer, 0, len("word0"))
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=(right,))
    return record.model_copy(update={"annotations": (*record.annotations, gold)})


def _fill(server: Server) -> None:
    with Store.open(server.settings) as store:
        store.import_records("ours", [words_item(f"i{number}", 3) for number in range(N_ITEMS)])
        store.import_records("ours", [_known(f"k{number}") for number in range(N_KNOWN)])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving_with_login(tmp_path_factory.mktemp("home"), _fill) as server:
        yield server


def _seat(context: BrowserContext) -> Page:
    return patient(context.new_page())


def _plan(lead: Page, server: Server) -> None:
    """Two people for each item, blind, with guidelines, known answers and a test on them."""
    lead.goto(server.url(dataset="ours").replace("/?", "/campaign?"))
    lead.get_by_role("textbox", name="Guidelines, in Markdown").fill("Mark **numbers**.")
    _save(lead, "guidelines", "Guidelines")
    _number(lead.get_by_role("spinbutton", name="People to finish each item"), 2)
    _save(lead, "plan", "Review plan")
    lead.locator("summary", has_text="Check items").click()
    lead.get_by_text("Use check items").click()
    _number(lead.get_by_role("spinbutton", name="Items in the qualification test"), N_TEST)
    _save(lead, "known", "Check items")


def _save(lead: Page, part: str, title: str) -> None:
    lead.locator(f".st-key-save-{part}").get_by_role("button").click()
    expect(lead.get_by_text(f"{title} of ours: saved.")).to_be_visible()
    idle(lead)


def _number(field: Locator, value: int) -> None:
    field.fill(str(value))
    field.press("Tab")


def _invite(lead: Page, server: Server) -> str:
    """Make a link for somebody without an account, and return it."""
    lead.goto(server.url().replace("/?", "/access"))
    lead.get_by_role("tab", name="Invitations").click()
    lead.get_by_role("textbox", name="Name").fill("Nora")
    lead.get_by_role("textbox", name="Completion code").fill("DONE-42")
    lead.get_by_role("button", name="Create links").click()
    made = lead.locator("[data-testid='stCode']").first
    expect(made).to_contain_text("/invitation?to=")
    return made.inner_text().strip()


def _open(page: Page) -> str:
    """Wait until an item is open and takes keys; return its id."""
    page.wait_for_selector('.sl[data-item]:not([data-item=""]) .sl-p', state="attached")
    page.focus(".sl-answer")
    return str(page.evaluate("spanlab.editor.navigation.at"))


def _finish(page: Page, end: str) -> str:
    """Accept the first suggestion, which is right where the answer is known, and no other one.

    It waits for the next item, or for what is said at the end, and returns the item finished.
    """
    before = _open(page)
    page.keyboard.press("a")
    page.keyboard.press("Enter")
    page.wait_for_function("() => spanlab.outbox.writes.length === 0")
    page.wait_for_function(
        """([before, end]) => spanlab.editor.navigation.at !== before
            || document.body.innerText.includes(end)""",
        arg=[before, end],
    )
    return before


def test_a_campaign_from_its_plan_to_its_end(server: Server, browser: Browser) -> None:
    wide: ViewportSize = {"width": 1440, "height": 900}
    with (
        browser.new_context(viewport=wide) as first,
        browser.new_context(viewport=wide) as second,
        browser.new_context(viewport=wide) as third,
    ):
        lead, nora, anna = _seat(first), _seat(second), _seat(third)
        lead.goto(server.url())
        sign_in(lead, server, "1")
        lead.get_by_text("Help").first.wait_for()
        _plan(lead, server)
        link = _invite(lead, server)

        _give_role(lead, "anna@example.org")

        nora.goto(link)
        nora.get_by_role("button", name="Start").click()
        _pass_the_test(nora)
        while not nora.get_by_text("Your code: DONE-42").is_visible():
            _finish(nora, "Your code: DONE-42")

        anna.goto(server.url(dataset="ours"))
        sign_in(anna, server, "2")
        anna.wait_for_url("**/?dataset=ours*")  # back where she was led
        _pass_the_test(anna)
        _finish(anna, "nothing")
        _check_the_lead_sees(lead, server)

        with Store.open(server.settings) as store:
            actions = [entry.action for entry in store.access.log()]
        assert actions.count("login") == 2  # each once, however often their pages were opened
        assert {"invitation made", "invitation accepted", "items reassigned"} < set(actions)


def _check_the_lead_sees(lead: Page, server: Server) -> None:
    """See how far people are and how well they mark, and take items back from one who leaves."""
    lead.goto(server.url(dataset="ours").replace("/?", "/campaign?"))
    lead.get_by_text(f"5 of {2 * N_ITEMS}", exact=True).wait_for()
    with Store.open(server.settings) as store:
        found = {person.name: person for person in oversee(store, "ours").people}
    assert (found["Nora"].done, found["Nora"].left) == (N_ITEMS, 0)
    assert (found["Anna"].done, found["Anna"].left) == (1, N_ITEMS - 1)
    for person in found.values():
        assert person.agreement == 1
        assert person.known == 1
        assert person.test == "passed: IoU 1.00"
        assert person.read == 1
        assert person.per_hour
    lead.get_by_role("button", name="Reassign items…").click()
    lead.get_by_role("combobox", name="Person").click()
    lead.get_by_role("option", name="Anna").click()
    lead.get_by_text("of Anna, reserved and not finished").wait_for()
    lead.get_by_role("button", name="Reassign items", exact=True).click()
    lead.get_by_text("“Undo reassignment” takes it back").wait_for()
    with Store.open(server.settings) as store:
        assert store.settings("ours").away == ("Anna",)


def _give_role(lead: Page, address: str) -> None:
    lead.get_by_role("tab", name="Roles").click()
    lead.get_by_role("textbox", name="Person").fill(address)
    _choose(lead, "Dataset", "ours")
    lead.get_by_role("button", name="Grant role").click()
    lead.get_by_text(f"{address} is annotator now").wait_for()


def _choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).click()
    page.get_by_role("option", name=option).click()


def _pass_the_test(page: Page) -> None:
    """Begin the test, confirm the guidelines, and mark its items as their gold labels are."""
    page.get_by_text("Qualification test:").wait_for()
    page.get_by_role("button", name="Begin").click()
    page.get_by_text(f"0 of {N_TEST} items decided").wait_for()
    page.get_by_role("button", name="I have read them").click()
    for _ in range(N_TEST):
        last = _finish(page, "You can start")
    page.get_by_text("You can start").wait_for()
    # What is said may come before the first item does.
    page.wait_for_function(
        "last => ![last, null, ''].includes(spanlab.editor.navigation.at)", arg=last
    )
