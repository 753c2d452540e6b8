"""Under which name a review is stored, in a real browser."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from driving import REVIEWER, Desk, suggested
from playwright.sync_api import expect
from serving import arrive

from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status

pytestmark = pytest.mark.browser

Sit = Callable[..., Desk]


def _records(*more: Annotation) -> list[Record]:
    items = [Item(id=name, lang="en", answer="one two three") for name in ("a", "b", "c")]
    return [
        Record(item=item, annotations=(suggested(item, [("two", 0.8)]), *more)) for item in items
    ]


def _type_name(here: Desk, name: str) -> None:
    here.open_queue()
    here.page.fill("input[aria-label^='Reviewer']", name)
    here.page.keyboard.press("Enter")


def _refuses(here: Desk, name: str) -> None:
    message = here.page.get_by_text(f"The name “{name}” belongs to a detector")
    expect(message.first).to_be_visible()
    expect(here.page.locator(".sl")).to_have_count(0)
    assert here.page.locator(".stException").count() == 0


def test_a_detectors_name_is_refused_and_nothing_lands_under_the_previous_reviewer(
    desk: Sit,
) -> None:
    here = desk(_records())
    _type_name(here, "offline")
    _refuses(here, "offline")
    here.close_queue()
    here.press("a", "a", "Enter")  # nothing is there to take them
    _type_name(here, "Grace")
    here.close_queue()
    here.wait_for("a")
    here.until("() => spanlab.editor?.navigation.place?.reviewer === 'Grace'")
    here.press("a")
    here.settle()
    assert here.state("a").spans == {}  # Ada's
    assert len(here.store.review(here.dataset, "a", "Grace").state.spans) == 1
    here.page.goto(here.server.url(dataset=here.dataset, reviewer="detector-a"))
    _refuses(here, "detector-a")


def test_writes_that_were_under_way_wait_in_the_browser_for_their_own_name(desk: Sit) -> None:
    here = desk(_records())
    here.until("() => !spanlab.editor.conversation.wants()")
    here.page.evaluate("spanlab.component = { ...spanlab.component, setStateValue() {} }")
    here.press("a")
    _type_name(here, "Grace")
    here.close_queue()
    here.page.get_by_text("1 by Ada not saved (kept in this browser)").wait_for()
    here.wait_for("a")
    here.press("Enter")
    here.until("() => spanlab.outbox.writes.length === 1")
    for name in (REVIEWER, "Grace"):
        assert here.store.review(here.dataset, "a", name).state.spans == {}
    _type_name(here, REVIEWER)
    here.close_queue()
    here.settle()
    assert here.texts("a") == ["two"]


def test_an_existing_person_continues_after_a_question_and_is_not_asked_again(desk: Sit) -> None:
    ben = Annotation(annotator="Ben", kind=AnnotatorKind.PERSON, status=Status.DONE)
    here = desk(_records(ben), opened=False)
    arrive(here.page, here.server.url(dataset=here.dataset, reviewer="Ben"))
    question = here.page.get_by_role("button", name="Continue as Ben")
    question.press("Enter")
    here.wait_for("a")
    here.press("a")
    here.settle()
    assert len(here.store.review(here.dataset, "a", "Ben").state.spans) == 1
    here.page.reload()
    here.wait_for("a")
    expect(question).to_have_count(0)
    here.page.goto(here.server.url(dataset=here.dataset, reviewer=REVIEWER))
    here.wait_for("a")
    here.page.goto(here.server.url(dataset=here.dataset, reviewer="Ben"))
    here.wait_for("a")


def test_people_and_votes_with_people_come_only_when_asked_for_or_once_an_item_is_done(
    desk: Sit,
) -> None:
    answer = "one two three"
    ben = Annotation(annotator="Ben", kind=AnnotatorKind.PERSON, spans=(Span.of(answer, 0, 3),))
    vote = Annotation(
        annotator="majority", kind=AnnotatorKind.VOTE, spans=ben.spans, voters=("Ben",)
    )
    here = desk(_records(ben, vote))
    here.press("PageDown")
    here.wait_for("b")
    chips = here.page.locator(".sl-chip b")
    segments = here.page.locator(".sl-seg")
    expect(chips).to_have_text(["detector-a"])
    expect(segments).to_have_text(["two"])
    for blind in (False, True):
        here.open_queue()
        here.page.get_by_text("Show other people's marks").click()
        here.wait_for_queue(blind=blind)
        here.close_queue()
        here.wait_for("b")
        expect(chips).to_have_text(["detector-a"] if blind else ["detector-a", "majority", "Ben"])
        expect(segments).to_have_text(["two"] if blind else ["one", "two"])
    here.store.change_settings(
        here.dataset,
        lambda now: now.model_copy(update={"always_blind": True, "shown_when_done": True}),
    )
    here.visit("c")
    here.wait_for_queue(shown_when_done=True)
    expect(chips).to_have_text(["detector-a"])
    here.focus_rests()
    here.press("Enter")  # the last item: it stays open
    expect(chips).to_have_text(["detector-a", "majority", "Ben"])
    here.press("u")
    expect(chips).to_have_text(["detector-a"])
