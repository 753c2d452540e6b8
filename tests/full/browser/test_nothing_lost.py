"""What was typed arrives, once: fast keys, reloads, second tabs, servers that die."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from driving import REVIEWER, Desk, becomes, suggested, words_item
from playwright.sync_api import Browser, expect
from serving import patient, serving

from spanlab.detection import DetectorSpec
from spanlab.detection.request import RunRequest
from spanlab.jobs import Jobs, JobState
from spanlab.schema import Item, Record
from spanlab.storage import Store

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]


def _expect_every_second_accepted(here: Desk, item: str, count: int) -> None:
    state = here.state(item)
    assert here.texts(item) == [f"word{index}" for index in range(0, count, 2)]
    assert [span.text for span in state.rejected] == [f"word{i}" for i in range(1, count, 2)]


def test_a_burst_of_50_fast_keys_loses_none(desk: Sit) -> None:
    here = desk([words_item("burst", 50)])
    here.press(*["a", "x"] * 25)
    here.settle()
    assert here.store.review(here.dataset, "burst", REVIEWER).version == 50
    _expect_every_second_accepted(here, "burst", 50)


def test_a_reload_in_the_middle_of_a_burst_loses_none(desk: Sit) -> None:
    """Edits to pre-annotated items are never lost."""
    here = desk([words_item("burst", 30)])
    here.press(*["a", "x"] * 10)
    here.page.reload()
    here.wait_for("burst")
    here.settle()
    here.press(*["a", "x"] * 5)
    here.settle()
    _expect_every_second_accepted(here, "burst", 30)


def test_leaving_the_item_at_once_saves_what_was_typed(desk: Sit) -> None:
    first, second = words_item("first", 4), words_item("second", 4)
    here = desk([first, second])
    here.press("a", "x", "A", "Enter")
    here.wait_for("second")
    here.press("a", "PageUp")
    here.settle()
    assert here.texts("first") == ["word0", "word2", "word3"]
    assert here.texts("second") == ["word0"]


def test_two_servers_on_one_home_share_reviews_and_jobs(desk: Sit, browser: Browser) -> None:
    """Two servers on one home, a browser at each, one name and one item.

    What should happen: both serve all there is. As between two tabs, who writes first is stored,
    and the other is told and chooses, whichever server it asked. A job is done once, by either;
    its workers have names of their own, so that each sees when the other is gone.
    """
    here = desk([_three_words()])
    with serving(here.server.settings.home) as second, browser.new_context() as context:
        there = Desk(second, here.store, patient(context.new_page()), here.dataset)
        there.visit("item")
        _is_refused_and_takes_theirs(here, there)
        home = here.server.settings
        request = RunRequest(dataset=here.dataset, detectors=(DetectorSpec(detector="offline"),))
        done = Jobs(home).store.wait(Jobs(home).submit(request), timeout=120)
        assert (done.state, done.progress.done) == (JobState.DONE, 1)
        workers = home.home / "workers"
        becomes(lambda: {"app", "app-2"} <= {path.name for path in workers.iterdir()}, True)


def _is_refused_and_takes_theirs(here: Desk, there: Desk) -> None:
    there.press("x")
    there.settle()
    here.press("j", "a", "u", "U")
    _banner(here, "changed in another tab")
    assert here.state("item").spans == {}
    here.page.click("text=Use the other version")
    here.wait_for("item")
    here.press("j")
    here.press("a")
    here.settle()
    assert [span.text for span in here.state("item").rejected] == ["one"]
    assert here.texts("item") == ["three"]


def test_a_second_tab_is_refused_and_may_put_its_own_on_top(desk: Sit) -> None:
    here, there = _two_tabs(desk)
    there.press("x")
    there.settle()
    here.press("j", "a", "j", "a", "u")
    _banner(here, "changed in another tab")
    here.page.reload()  # a decision that waits survives a reload
    here.wait_for("item")
    _banner(here, "changed in another tab")
    here.page.click("text=Reapply my changes")
    here.wait_for("item")
    here.settle()
    expect(here.page.locator(".sl-banner[role=alert]")).to_be_hidden()
    assert [span.text for span in here.state("item").rejected] == ["one"]
    assert here.texts("item") == ["two"]


def _three_words() -> Record:
    item = Item(id="item", lang="en", answer="one, two, three")
    said = suggested(item, [("one", 0.55), ("two", 0.6), ("three", 0.7)])
    return Record(item=item, annotations=(said,))


def _two_tabs(desk: Sit) -> tuple[Desk, Desk]:
    here = desk([_three_words()])
    there = Desk(here.server, here.store, patient(here.page.context.new_page()), here.dataset)
    there.visit("item")
    return here, there


def _banner(here: Desk, words: str) -> None:
    here.page.wait_for_selector(f".sl-banner:has-text({words!r})")


@contextmanager
def _at_a_server_of_its_own(browser: Browser, home: Path, record: Record) -> Iterator[Desk]:
    """Sit at a server that may be killed, with one item open."""
    with (
        serving(home) as server,
        browser.new_context() as context,
        Store.open(server.settings) as store,
    ):
        store.import_records("words", [record])
        here = Desk(server, store, patient(context.new_page()), "words")
        here.visit(record.item.id)
        yield here


def test_a_server_that_comes_back_stores_what_is_typed_on_a_page_drawn_before(
    browser: Browser, tmp_path: Path
) -> None:
    """After a filter nothing else was asked: Streamlit connects again, but draws nothing."""
    with _at_a_server_of_its_own(browser, tmp_path, words_item("last", 3)) as here:
        here.knows_what_is_next()
        here.open_queue()
        here.page.get_by_role("textbox", name="Search").fill("word1")
        here.page.keyboard.press("Enter")
        here.wait_for_queue(text="word1")
        here.close_queue()
        here.knows_what_is_next()
        here.server.kill()
        here.server.start()
        here.focus_rests()
        here.press("x")
        here.settle()
        assert [span.text for span in here.state("last").rejected] == ["word0"]


def test_a_server_killed_in_the_middle_of_a_burst_loses_nothing(
    browser: Browser, tmp_path: Path
) -> None:
    with _at_a_server_of_its_own(browser, tmp_path, words_item("burst", 80)) as here:
        here.press(*["a", "x"] * 10)
        here.server.kill()
        # Given to the answer itself: Streamlit's word on the lost connection takes typed keys.
        for key in ["a", "x"] * 10:
            here.page.dispatch_event(".sl-answer", "keydown", {"key": key})
        here.page.wait_for_selector('.sl-saved[data-state="offline"]')
        down = here.page.locator(".spanlab-down")
        expect(down).to_contain_text("spanlab is not responding. Start it with “spanlab serve”")
        expect(here.page.get_by_test_id("stDialog")).to_have_count(0)
        assert "Streamlit" not in here.page.inner_text("body")
        here.server.start()
        here.settle()
        expect(down).to_be_hidden()
        here.focus_rests()
        assert here.store.review("words", "burst", REVIEWER).version == 40
        here.press(*["a", "x"] * 10)
        here.settle()
        _expect_every_second_accepted(here, "burst", 60)
        assert here.store.review("words", "burst", REVIEWER).version == 60
