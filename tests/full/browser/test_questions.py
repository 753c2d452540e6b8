"""What a dataset asks of spans and answers, answered by keyboard alone."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from driving import Desk, go, idle, suggested
from playwright.sync_api import expect
from serving import arrive
from test_accessibility import complaints

from spanlab.schema import Annotation, Item, Passage, Question, Record, Span, Status

pytestmark = pytest.mark.browser

Sit = Callable[..., Desk]

ITEMS = [Item(id=name, lang="en", answer="one, 🎉 two, three") for name in ("a", "b")]
SEVERITY = Question(name="severity", options=("minor", "major"), required=True)
WHY = Question(name="why", title="Why is it wrong?", kind="text", labels=("unsupported",))
FLUENCY = Question(
    name="fluency", kind="scale", low=0, high=4, low_title="<b>unreadable", required=True
)
TOPIC = Question(name="topic", options=tuple(f"topic {n}" for n in range(20)))


def _sit(desk: Sit, **settings: object) -> Desk:
    records = [Record(item=item, annotations=(suggested(item, [("two", 0.9)]),)) for item in ITEMS]
    return desk(records, attributes=(SEVERITY, WHY), questions=(FLUENCY, TOPIC), **settings)


def test_attributes_and_questions_are_answered_undone_and_kept_over_a_reload(desk: Sit) -> None:
    here = _sit(desk)
    form = here.page.get_by_role("group", name="Attributes of the span")
    expect(form.locator(".sl-question-row")).to_have_count(1)
    here.press("2")  # another label, which is asked why
    expect(form.locator(".sl-question-row")).to_have_count(2)
    here.press("q", "2")
    here.hears("severity: major")
    here.press("Enter")
    here.page.keyboard.type("No <i>passage</i> says so")
    here.press("Enter")
    here.has_focus(inside=True)
    expect(form).to_contain_text("No <i>passage</i> says so")
    here.press("Q", "3", "Enter")
    here.page.keyboard.type("17")
    here.press("Enter")
    here.has_focus(inside=True)
    here.settle()
    state = here.state("a")
    assert state.responses == {"fluency": 3, "topic": "topic 17"}
    (span,) = state.spans.values()
    assert (span.text, span.label) == ("two", "unsupported")
    assert span.attributes == {"severity": "major", "why": "No <i>passage</i> says so"}
    here.page.reload()
    here.wait_for("a")
    here.press("u", "u", "U")
    here.press("Q", "k", "Backspace", "Escape")
    here.settle()
    assert here.state("a").responses == {}
    here.press("u")
    here.settle()
    assert here.state("a").responses == {"fluency": 3}


def test_done_says_what_is_missing_and_leads_there(desk: Sit) -> None:
    here = _sit(desk)
    here.press("a", "Enter")
    here.hears("Cannot finish: severity of “two”, fluency needs a response")
    here.press("1")
    here.has_focus(inside=True)
    here.press("Enter")
    here.hears("Cannot finish: fluency needs a response")
    here.press("0", "Escape", "Enter")
    here.wait_for("b")
    here.settle()
    assert here.state("a").status is Status.DONE
    assert here.state("a").responses == {"fluency": 0}


def test_where_the_lead_only_wants_it_told_done_may_go_on(desk: Sit) -> None:
    here = _sit(desk, unanswered="told")
    here.press("Enter")
    notice = here.page.locator(".sl-notice")
    expect(notice).to_contain_text("No response to fluency.")
    here.press("Escape", "4", "Escape", "Enter")
    here.wait_for("b")
    here.press("Enter", "d")
    here.settle()
    assert here.state("a").responses == {"fluency": 4}
    assert (here.state("b").status, here.state("b").responses) == (Status.DONE, {})


def test_questions_have_no_serious_fault_in_review_and_in_the_settings(desk: Sit) -> None:
    here = _sit(desk)
    here.page.set_viewport_size({"width": 1280, "height": 800})
    here.press("a", "q", "1", "Q", "3")
    here.settle()
    found = {"review": complaints(here.page, ".sl")}
    go(here.page, here.server.url(dataset=here.dataset).replace("/?", "/campaign?"))
    here.page.locator("summary", has_text="Questions").click()
    expect(here.page.get_by_role("textbox", name="4. Name")).to_have_value("topic")
    idle(here.page)
    found["settings"] = complaints(here.page, "details:has(input[aria-label='4. Name'])")
    assert not (wrong := {page: faults for page, faults in found.items() if faults}), wrong


def test_who_adjudicates_sees_responses_and_takes_attributes_with_the_spans(desk: Sit) -> None:
    span = Span.of("one, 🎉 two, three", 7, 10).model_copy(
        update={"attributes": {"severity": "major"}}
    )
    said = tuple(
        Annotation(annotator=name, kind="person", spans=(span,), responses={"fluency": at})
        for at, name in enumerate(("Ann", "Ben"))
    )
    here = desk(
        [Record(item=ITEMS[0], annotations=said)],
        opened=False,
        attributes=(SEVERITY,),
        questions=(FLUENCY,),
    )
    query = here.server.url(dataset=here.dataset, reviewer="Ada").partition("/?")[2]
    arrive(here.page, here.server.url().replace("/?", f"/adjudicate?{query}"))
    here.wait_for("a")
    here.press("1", "Q")
    form = here.page.get_by_role("group", name="Questions on the answer")
    expect(form).to_contain_text("Ann: 0 · Ben: 1")
    here.press("1", "Enter")
    here.settle()
    gold = here.store.record(here.dataset, "a").by("adjudicated")
    assert gold is not None
    assert (gold.status, gold.responses) == (Status.DONE, {"fluency": 1})
    assert [one.attributes for one in gold.spans] == [{"severity": "major"}]


def test_a_click_responds_and_another_one_takes_it_back(desk: Sit) -> None:
    here = _sit(desk)
    here.page.get_by_role("group", name="Attributes of the span").get_by_role(
        "button", name="minor"
    ).click()
    here.page.get_by_role("tab", name="Questions").click()
    two = here.page.get_by_role("group", name="fluency").get_by_role("button", name="2")
    two.click()
    expect(two).to_have_attribute("aria-pressed", "true")
    here.has_focus(inside=True)
    here.settle()
    assert here.state("a").responses == {"fluency": 2}
    (span,) = here.state("a").spans.values()  # what was suggested is the reviewer's own by that
    assert span.attributes == {"severity": "minor"}
    two.click()
    expect(two).to_have_attribute("aria-pressed", "false")
    here.settle()
    assert here.state("a").responses == {}


def test_the_next_item_begins_with_its_evidence_after_a_question(desk: Sit) -> None:
    passage = (Passage(text="One and two."),)
    items = [Item(id=name, answer="one two", passages=passage) for name in ("x", "y")]
    here = desk([Record(item=item) for item in items], questions=(FLUENCY,))
    here.press("Q", "1")
    expect(here.page.get_by_role("tab", name="Questions")).to_have_attribute(
        "aria-selected", "true"
    )
    expect(here.page.get_by_role("tab", name="Trace")).to_be_hidden()  # nothing has any
    here.press("Escape", "Enter")
    here.wait_for("y")
    expect(here.page.locator(".sl-passages")).to_be_visible()
    expect(here.page.get_by_role("tab", name="Evidence")).to_have_attribute("aria-selected", "true")


def test_attributes_that_the_dataset_does_not_ask_are_shown_and_not_offered(desk: Sit) -> None:
    """A detector's own words stand beside its span; a required one of them counts as none."""
    (span,) = suggested(ITEMS[0], [("two", 0.9)]).spans
    given = {"severity": "catastrophic", "mood": "<b>grim"}
    said = suggested(ITEMS[0], [("two", 0.9)]).model_copy(
        update={"spans": (span.model_copy(update={"attributes": given}),)}
    )
    here = desk([Record(item=ITEMS[0], annotations=(said,))], attributes=(SEVERITY,))
    card = here.page.locator(".sl-card")
    expect(card).to_contain_text("severity: catastrophic, mood: <b>grim")
    form = here.page.get_by_role("group", name="Attributes of the span")
    expect(form.get_by_role("button")).to_have_text([re.compile("minor"), re.compile("major")])
    expect(form.locator("[aria-pressed=true]")).to_have_count(0)
    here.press("a", "Enter")
    here.hears("Cannot finish: severity of “two” needs a response")
    here.press("2", "Escape", "Enter")
    here.settle()
    state = here.state("a")
    assert state.status is Status.DONE
    assert [own.attributes for own in state.spans.values()] == [
        {"severity": "major", "mood": "<b>grim"}
    ]
