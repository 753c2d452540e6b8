"""The Review page around the editor: queues, names, progress, and what it says when empty."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress

import pytest
from driving import DETECTOR, REVIEWER, Desk, HeldLine, idle, suggested
from playwright.sync_api import TimeoutError as TooLate
from playwright.sync_api import expect
from serving import arrive, patient

from spanlab.measure.sample import measurement_queue, plan_measurement
from spanlab.schema import Item, MeasurementPlan, Record, Status
from spanlab.worklists import plans

pytestmark = pytest.mark.browser

Sit = Callable[..., Desk]

# Collects every item that is shown together with the one that the address names.
_WATCH = """() => {
    window.places = new Set();
    const look = () => places.add(`${spanlab.editor.navigation.at} `
        + new URL(location.href).searchParams.get("item"));
    for (const name of ["pushState", "replaceState"]) {
        const write = history[name];
        history[name] = (...given) => { write.apply(history, given); look(); };
    }
    new MutationObserver(look).observe(document.querySelector(".sl"), { attributes: true });
    look();
}"""

# Lets a test set the page's clock forward; the page is gone with the test, a fake of the whole
# browser's clock is not.
_SET_CLOCK = """() => {
    const now = performance.now.bind(performance);
    window.later = 0; // milliseconds
    window.isChanged = true;
    performance.now = () => now() + later;
}"""


def _records() -> list[Record]:
    items = [
        Item(id=f"{lang}-{n}", lang=lang, answer="one two three")
        for n in (1, 2)
        for lang in ("en", "de")
    ]
    return [
        Record(item=item, annotations=(suggested(item, [("two", 0.55 + 0.1 * index)]),))
        for index, item in enumerate(items)
    ]


def _choose(here: Desk, label: str, option: str) -> None:
    here.open_queue()
    here.page.click(f"[aria-label*='{label}']")
    here.page.get_by_role("option", name=option, exact=True).click()
    here.close_queue()


def test_the_time_of_an_item_is_measured_until_done_with_pauses_cut(desk: Sit) -> None:
    here = desk(_records())
    here.page.evaluate(_SET_CLOCK)
    here.press("PageDown")
    here.wait_for("de-1")
    here.page.evaluate("later += 20_000")  # another item's time
    here.press("PageUp")
    here.wait_for("en-1")
    here.page.evaluate("later += 20_000")
    here.press("ArrowRight")
    here.page.evaluate("later += 1_000_000")
    here.press("Enter")
    here.settle()
    (done,) = plans.finished(here.store, here.dataset)
    assert done.item_id == "en-1"
    assert done.seconds is not None
    assert 20 + 60 <= done.seconds < 1_000


@pytest.mark.parametrize("queue", ["&queue=measurement", ""], ids=["by the link", "by itself"])
def test_the_measurement_s_sample_hides_suggestions_and_tells_the_rate_after_each_done(
    desk: Sit, queue: str
) -> None:
    here = desk(_records(), opened=False)
    plan_measurement(here.store, here.dataset, MeasurementPlan(annotator=DETECTOR))
    first, second, *_ = measurement_queue(here.store, here.dataset)
    arrive(here.page, here.server.url(dataset=here.dataset, reviewer=REVIEWER) + queue)
    here.wait_for(first)
    line = here.page.get_by_test_id("stCaptionContainer").first
    expect(line).to_contain_text("suggestions hidden · No reviews yet")
    expect(here.page.locator(".sl mark")).to_have_count(0)
    here.focus_rests()
    here.press("Enter")
    here.wait_for(second)
    expect(line).to_contain_text("so far: 0.0 %")
    expect(here.page.locator(".sl mark")).to_have_count(0)
    here.settle()
    assert here.store.suggestions_seen(here.dataset) == {(first, REVIEWER): False}


def test_a_language_filter_narrows_the_queue_and_the_url_keeps_the_item(desk: Sit) -> None:
    here = desk(_records(), opened=False)
    here.visit("en-2")
    _choose(here, "Language", "de")
    here.wait_for_queue(lang="de")
    here.wait_for("de-1")
    here.focus_rests()
    here.press("Enter")
    here.wait_for("de-2")
    here.page.wait_for_url("**item=de-2*")
    here.press("Enter")
    here.settle()
    here.hears("last item")
    here.page.reload()
    here.wait_for("de-2")
    here.page.wait_for_selector("text=2 of 4 done")


def test_an_empty_queue_says_what_to_do_and_without_a_name_nothing_can_be_marked(
    desk: Sit,
) -> None:
    here = desk(_records())
    _choose(here, "Your status", "Skipped")
    here.page.wait_for_selector("text=choose another state")
    _choose(here, "Your status", "Not annotated")
    here.wait_for("en-1")
    here.open_queue()
    told = here.page.locator("text=Enter your name under Queue")
    for _ in range(4):  # a page that is being redrawn forgets what is typed
        idle(here.page)
        here.page.fill("input[aria-label^='Reviewer']", "   ")
        here.page.keyboard.press("Tab")
        with suppress(TooLate):
            told.wait_for(timeout=30_000)
            break
    expect(told).to_be_visible()
    expect(here.page.locator(".sl")).to_have_count(0)


def test_a_link_to_an_item_opens_it_and_an_unknown_one_is_named_with_a_way_on(desk: Sit) -> None:
    here = desk(_records(), opened=False)
    here.visit("en-2")
    here.press("PageUp")
    here.wait_for("de-1")
    here.page.goto(here.server.url(dataset=here.dataset, reviewer=REVIEWER, item="gone"))
    expect(here.page.get_by_text("There is no item “gone”")).to_be_visible()
    expect(here.page.locator(".sl")).to_have_count(0)
    here.page.get_by_role("link", name="Continue with the queue").press("Enter")
    here.wait_for("en-1")


def test_back_and_forward_show_the_item_that_the_address_names(desk: Sit) -> None:
    here = desk(_records())
    for following in ("de-1", "en-2", "de-2"):
        here.press("PageDown")
        here.wait_for(following)
        here.until("() => !spanlab.editor.conversation.wants()")
    moves = [here.page.go_back, here.page.go_back, here.page.go_back]
    moves += [here.page.go_forward, here.page.go_forward, here.page.go_back]
    for move, item in zip(moves, ("en-2", "de-1", "en-1", "de-1", "en-2", "de-1"), strict=True):
        move()
        here.wait_for(item)
        here.page.wait_for_url(f"**item={item}*")
    idle(here.page)
    here.wait_for("de-1")
    here.press("a")
    here.settle()
    assert here.texts("de-1") == ["two"]
    here.page.wait_for_url("**item=de-1*")


def test_a_late_answer_of_python_moves_neither_the_item_nor_the_address(desk: Sit) -> None:
    here = desk(_records())
    here.page = patient(here.page.context.new_page())  # which nobody uses after the line was held
    line = HeldLine(here.page)
    here.visit()
    for following in ("de-1", "en-2", "de-2"):
        here.press("PageDown")
        here.wait_for(following)
        here.until("() => !spanlab.editor.conversation.wants()")
    idle(here.page)
    line.hold()
    here.page.go_back()
    here.wait_for("en-2")
    line.wait_for(b'"open": "en-2"')
    here.page.go_back()
    here.wait_for("de-1")
    here.page.evaluate(_WATCH)
    line.release()
    here.until("() => spanlab.editor.conversation.known === 'de-1' && !spanlab.outbox.waiting")
    idle(here.page)
    assert here.page.evaluate("[...places]") == ["de-1 de-1"]
    here.page.go_forward()
    here.wait_for("en-2")
    here.page.go_forward()
    here.wait_for("de-2")


def test_who_has_gone_on_before_a_page_drawn_anew_arrives_is_not_thrown_back(desk: Sit) -> None:
    here = desk(_records())
    here.page = patient(here.page.context.new_page())  # which nobody uses after the line was held
    line = HeldLine(here.page)
    here.visit()
    here.knows_what_is_next()
    here.open_queue()
    line.hold()
    here.page.get_by_text("Show other people's marks").click()
    line.wait_for(b'"blind": false')  # the server has drawn it at the first item
    here.close_queue()
    here.focus_rests()
    here.press("a", "Enter")
    here.wait_for("de-1")
    line.release()
    here.wait_for_queue(blind=False)
    here.settle()
    here.wait_for("de-1")
    assert here.texts("en-1") == ["two"]
    assert here.state("en-1").status is Status.DONE


def test_a_filter_that_is_clicked_while_the_editor_sends_is_not_lost(desk: Sit) -> None:
    here = desk(_records())
    here.knows_what_is_next()
    here.open_queue()
    box = here.page.get_by_role("checkbox", name="Show other people's marks")
    box.evaluate("box => { spanlab.editor.conversation.exchange(); box.click(); }")
    here.wait_for_queue(blind=False)
    assert box.is_checked()


def test_an_item_that_is_gone_is_left_for_the_first_one_that_there_is(desk: Sit) -> None:
    here = desk(_records())
    here.knows_what_is_next()
    here.store.delete_dataset(here.dataset)
    here.store.import_records(here.dataset, _records()[1:])
    here.page.evaluate("spanlab.outbox.send()")
    here.wait_for("de-1")


def test_an_excursion_before_python_heard_of_the_item_leads_back_to_it(desk: Sit) -> None:
    """An edit is there after going away and coming back, not only after a reload."""
    here = desk(_records())
    here.until("() => !spanlab.editor.conversation.wants()")
    here.page.evaluate("spanlab.component = { ...spanlab.component, setStateValue() {} }")
    here.press("Enter")
    here.wait_for("de-1")
    here.press("a")
    here.page.click("a:has-text('Datasets')")
    here.page.wait_for_selector(".sl", state="detached")
    here.page.click("a:has-text('Review')")
    here.wait_for("de-1")
    here.settle()
    assert here.texts("de-1") == ["two"]
    assert here.state("en-1").status is Status.DONE
    here.page.wait_for_url("**item=de-1*")
    here.until("name => spanlab.editor.navigation.place.reviewer === name", REVIEWER)


def test_a_dataset_deleted_meanwhile_is_a_full_stop_that_keeps_what_was_typed(desk: Sit) -> None:
    here = desk(_records())
    here.store.import_records("left-over", _records())
    here.until("() => !spanlab.editor.conversation.wants()")  # nothing more is asked for
    here.store.delete_dataset(here.dataset)
    here.press("a")
    kept = here.page.get_by_role("region", name="Changes not saved")
    expect(kept).to_contain_text("1 change to 1 item (en-1) could not be saved")
    expect(here.page.locator(".sl")).to_have_count(0)
    here.press("Enter", "a")  # no key reaches anything
    here.page.reload()
    expect(kept).to_contain_text("1 change to 1 item")
    with here.page.expect_download() as download:
        kept.get_by_role("button", name="Download").click()
    (write,) = json.loads(download.value.path().read_text())
    assert (write["item"], write["op"]["kind"]) == ("en-1", "accept")
    here.page.get_by_role("combobox", name="Continue with").fill("left-over")  # one of many, maybe
    here.page.get_by_role("option", name="left-over", exact=True).click()
    here.wait_for("en-1")
    here.page.wait_for_selector("text=1 change not saved (kept in this browser)")
    way = here.page.locator(".sl-saved").get_by_role("link", name="Open the item")
    expect(way).to_have_attribute("href", f"?dataset={here.dataset}&item=en-1")
    assert here.store.n_operations("left-over") == 0
    here.page.goto(here.server.url(dataset=here.dataset))
    here.page.once("dialog", lambda dialog: dialog.accept())
    kept.get_by_role("button", name="Discard").click()
    expect(kept).to_be_hidden()


def test_a_dataset_renamed_meanwhile_goes_on_under_its_new_name_with_what_was_typed(
    desk: Sit,
) -> None:
    here = desk(_records())
    here.until("() => !spanlab.editor.conversation.wants()")
    before, here.dataset = here.dataset, f"{here.dataset} anew"
    here.store.rename_dataset(before, here.dataset)
    here.press("a")
    kept = here.page.get_by_role("region", name="Changes not saved")
    expect(kept).to_contain_text("this browser keeps what you typed")
    here.page.get_by_role("button", name=f"Continue with {here.dataset}").click()
    here.wait_for("en-1")
    here.settle()
    assert len(here.texts("en-1")) == 1
