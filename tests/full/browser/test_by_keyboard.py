"""A whole review without a mouse."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import DETECTOR, Desk, suggested
from playwright.sync_api import expect

from spanlab.schema import Annotation, AnnotatorKind, Evidence, Item, Passage, Record, Span, Status

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

PASSAGE = "Mary Shelley published Frankenstein anonymously in London in 1818. She was 20."
ANSWER = (
    "Frankenstein was written by Percy Shelley in Geneva. "
    "It was first published in Paris in 1821, when the author was 20 years old."
)
ITEM = Item(
    id="frankenstein",
    lang="en",
    question="Who wrote Frankenstein?",
    answer=ANSWER,
    passages=(Passage(text="Nothing to see here. " * 60), Passage(text=PASSAGE, title="Books")),
)
NEXT = Item(id="next", lang="en", question="And then?", answer="Nothing was wrong here.")


def _records() -> list[Record]:
    quote = "Mary Shelley published Frankenstein"
    evidence = Evidence(start=0, end=len(quote), text=quote, passage=1, stance="refutes")
    start = ANSWER.index("Percy Shelley")
    person = Span.of(ANSWER, start, start + 13, prob=0.95, evidence=(evidence,))
    others = suggested(ITEM, [("in Paris in 1821", 0.6), ("20 years old", 0.1)])
    first = Annotation(
        annotator=DETECTOR, kind=AnnotatorKind.DETECTOR, spans=(person, *others.spans)
    )
    second = suggested(ITEM, [("Percy Shelley", 0.7)], name="detector-b")
    return [Record(item=ITEM, annotations=(first, second)), Record(item=NEXT)]


def test_everything_of_a_review_works_by_keyboard_alone(desk: Sit) -> None:
    """Caret and spans by key, suggestions on the page and editable."""
    here = desk(_records())
    here.press(*["<"] * 8)  # from hard labels down to 10 %
    here.press("a")  # Percy Shelley is focused first; on to Paris
    here.press("2", "}")  # label takes it over, its end moves back by a word: "in Paris in"
    here.press("Alt+}", "Alt+}", "Alt+}")  # and by three characters: "in Paris"
    here.press("c")
    here.page.keyboard.type("it was London <b>")
    here.press("Enter")
    here.press("j", "x")  # 20 years old is right
    here.press("Home", "Control+ArrowRight", "Control+ArrowRight")
    here.press("Control+Shift+ArrowRight", "d")  # draws "written"
    here.press("Enter")
    here.wait_for("next")
    here.press("Enter")
    here.settle()

    state = here.state("frankenstein")
    assert here.texts("frankenstein") == ["written", "Percy Shelley", "in Paris"]
    paris = next(span for span in state.spans.values() if span.text == "in Paris")
    percy = next(span for span in state.spans.values() if span.text == "Percy Shelley")
    assert [quote.text for quote in percy.evidence] == ["Mary Shelley published Frankenstein"]
    assert (paris.label, paris.note, paris.source) == (
        "unsupported",
        "it was London <b>",
        DETECTOR,
    )
    assert [span.text for span in state.rejected] == ["20 years old"]
    assert state.status is Status.DONE
    assert here.state("next").status is Status.DONE
    assert here.texts("next") == []


def test_a_comment_on_a_suggestion_leaves_it_undecided(desk: Sit) -> None:
    here = desk(_records())
    here.show_weaker()
    note = here.page.locator(".sl-card .sl-note")
    kind = here.page.locator(".sl-card .sl-kind")
    here.press("c")
    here.page.keyboard.type("Which Shelley?")
    here.press("Enter")
    here.settle()
    state = here.state("frankenstein")
    assert (state.spans, state.rejected) == ({}, ())
    assert [(span.text, span.note) for span in state.noted] == [("Percy Shelley", "Which Shelley?")]
    expect(kind).to_have_text("Suggestion")
    expect(note).to_have_text("Which Shelley?")

    here.page.reload()
    here.wait_for("frankenstein")
    expect(kind).to_have_text("Suggestion")
    expect(note).to_have_text("Which Shelley?")
    here.press("u")
    expect(note).to_have_count(0)
    here.press("U", "c")
    expect(here.page.locator(".sl-ask input")).to_have_value("Which Shelley?")
    here.page.keyboard.type("Mary?")
    here.press("Enter")
    here.settle()
    assert here.state("frankenstein").rejected == ()
    here.press("Enter")  # done, which counts what is undecided as rejected; the comment stays on it
    here.settle()
    notes = {span.text: span.note for span in here.state("frankenstein").rejected}
    assert notes == {"Percy Shelley": "Mary?", "in Paris in 1821": None, "20 years old": None}


def test_rejecting_a_span_that_was_given_another_label_keeps_its_comment(desk: Sit) -> None:
    here = desk(_records())
    here.press("a", "k")  # back to it from the next suggestion
    here.press("c")
    here.page.keyboard.type("Not Percy.")
    here.press("Enter", "1", "x")
    here.settle()
    state = here.state("frankenstein")
    assert state.spans == {}
    assert [(span.text, span.note) for span in state.rejected] == [("Percy Shelley", "Not Percy.")]


def test_undo_and_redo_survive_going_away_and_coming_back(desk: Sit) -> None:
    """Edits to pre-annotated items are never lost."""
    here = desk(_records())
    here.press("A", "u", "Control+z", "x", "u", "Control+Shift+Z")
    here.settle()
    assert [span.text for span in here.state("frankenstein").rejected] == ["Percy Shelley"]
    here.press("PageDown")
    here.wait_for("next")
    here.press("PageUp")
    here.wait_for("frankenstein")
    here.page.reload()
    here.wait_for("frankenstein")
    here.shows_status("draft")
    here.press("u")
    here.settle()
    assert here.state("frankenstein").rejected == ()
    here.press("U", "a")
    here.settle()
    assert here.texts("frankenstein") == ["in Paris in 1821"]


def test_letters_act_only_inside_the_editor_and_what_is_likely_differs_in_looks(desk: Sit) -> None:
    here = desk(_records())
    here.page.evaluate("document.activeElement.blur()")
    here.press("a", "x", "Enter")
    here.page.focus(".sl-answer")
    here.press("c")
    here.page.keyboard.type("axu1")
    here.press("Escape")
    here.settle()
    assert here.store.review(here.dataset, "frankenstein", "Ada").version == 0

    here.show_weaker()
    expect(here.page.locator(".sl-seg[data-n]")).to_have_count(3)
    looks = here.page.evaluate(
        """() => [...document.querySelectorAll(".sl-seg[data-n]")].map((node) => {
            const style = node.style.cssText;
            return [node.dataset.n, Number(/(\\d+)%, transparent\\)/.exec(style)[1]),
                    / (\\d)px/.exec(style.replace(/.*100% /, " "))[1]];
        })"""
    )
    numbers = [number for number, _, _ in looks]
    tints = [tint for _, tint, _ in looks]
    lines = [line for _, _, line in looks]
    assert numbers == ["95", "60", "10"]
    assert tints == sorted(tints, reverse=True)
    assert len(set(tints)) == 3
    assert lines == ["3", "2", "1"]


def test_evidence_of_the_chosen_span_is_marked_and_scrolled_to(desk: Sit) -> None:
    here = desk(_records())
    mark = here.page.locator(".sl-passages mark")
    expect(mark).to_have_text("Mary Shelley published Frankenstein")
    here.until(
        """() => {
            const mark = document.querySelector(".sl-passages mark")?.getBoundingClientRect();
            const pane = document.querySelector(".sl-passages").getBoundingClientRect();
            return mark && pane.top <= mark.top && mark.top <= pane.bottom;
        }"""
    )
    expect(here.page.locator(".sl-passages")).to_contain_text("refutes")
    votes = here.page.locator(".sl-votes")
    expect(votes).to_contain_text("detector-a 95 %")
    expect(votes).to_contain_text("detector-b 70 %")
    here.press("j")
    expect(mark).to_have_count(0)


def test_tab_goes_through_the_spans_scrolls_to_them_and_leaves_behind_the_last(desk: Sit) -> None:
    """Cycle spans by keyboard, scrolling to them."""
    answer = "\n".join(f"Line {index} says something." for index in range(200))
    item = Item(id="long", lang="en", answer=answer)
    far = suggested(item, [("Line 5 says", 0.6), ("Line 190 says", 0.9)])
    here = desk([Record(item=item, annotations=(far,))])
    here.press("Tab")
    here.hears("Line 190 says")
    here.until(
        """() => {
            const mark = document.querySelector(".sl-focus").getBoundingClientRect();
            const pane = document.querySelector(".sl-answer").getBoundingClientRect();
            return mark.top >= pane.top && mark.bottom <= pane.bottom;
        }"""
    )
    here.has_focus(inside=True)
    here.press("Tab")
    here.has_focus(inside=False)


def test_sentences_are_marked_by_two_keys_in_any_language(desk: Sit) -> None:
    """There was a key for the word at the caret alone."""
    answer = "It is 3.5 m high. It is old.\n高さは三メートルです。古いです。"
    here = desk([Record(item=Item(id="item", answer=answer))])
    here.press("W", "d", "End", "ArrowRight", "W", "W", "d")
    here.settle()
    assert here.texts("item") == ["It is 3.5 m high.", "高さは三メートルです。古いです。"]
