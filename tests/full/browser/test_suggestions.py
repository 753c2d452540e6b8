"""Fewer and better suggestions: joined, filtered by probability, accepted by likelihood."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from driving import DETECTOR, Desk, becomes, suggested
from playwright.sync_api import expect

from spanlab.schema import Annotation, AnnotatorKind, Interval, Item, Record, Status

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWER = "The tower stands in Paris, and it is 300 metres high. It opened in 1887."
TOWER = Item(id="tower", lang="en", question="Where is it?", answer=ANSWER)
NEXT = Item(id="next", lang="en", answer="Nothing was wrong here.")
# "in Paris" and "300 metres high" are in parts that touch; a comma and a full stop are no space.
PARTS = [("in", 0.3), ("Paris", 0.8), ("300", 0.2), ("metres high", 0.6), ("1887", 0.4)]


def _records(*said: Annotation) -> list[Record]:
    return [
        Record(item=TOWER, annotations=said or (suggested(TOWER, PARTS),)),
        Record(item=NEXT, annotations=(suggested(NEXT, [("wrong", 0.4)]),)),
    ]


def _are_open(here: Desk, *wanted: tuple[str, int]) -> None:
    """Wait until these suggestions are open on the screen: their texts and percentages."""
    marks = """() => [...spanlab.editor.marks.values()].filter((mark) => mark.kind === "open")
        .map((mark) => [mark.text, Math.round(mark.prob * 100)])"""
    becomes(lambda: here.page.evaluate(marks), [list(mark) for mark in wanted])


def test_touching_fragments_are_one_suggestion_decided_by_one_key_and_undone_by_one(
    desk: Sit,
) -> None:
    here = desk(_records())
    here.show_weaker()
    _are_open(here, ("in Paris", 80), ("300 metres high", 60), ("1887", 40))
    expect(here.page.locator(".sl-votes")).to_contain_text(
        f"{DETECTOR} 80 % on “Paris”, 30 % on “in”"
    )
    here.press("a", "x")
    here.settle()
    state = here.state("tower")
    assert [(span.text, span.source) for span in state.spans.values()] == [("in Paris", DETECTOR)]
    assert [(span.text, span.prob) for span in state.rejected] == [("300 metres high", 0.6)]
    _are_open(here, ("1887", 40))
    here.page.reload()
    here.wait_for("tower")
    _are_open(here, ("1887", 40))
    here.press("u", "u")
    here.settle()
    assert here.state("tower").rejected == ()
    assert here.texts("tower") == []
    _are_open(here, ("in Paris", 80), ("300 metres high", 60), ("1887", 40))


def test_a_joined_suggestion_opens_into_its_parts_and_joins_again(desk: Sit) -> None:
    here = desk(_records())
    here.show_weaker()
    here.press("o")
    here.hears("Opened into 2 parts")
    rest = ("300 metres high", 60), ("1887", 40)
    _are_open(here, ("in", 30), ("Paris", 80), *rest)
    here.press("o")
    _are_open(here, ("in Paris", 80), *rest)
    here.page.click('.sl-card [data-command="parts"]')
    here.press("x", "a")
    here.settle()
    assert here.texts("tower") == ["Paris"]
    assert [span.text for span in here.state("tower").rejected] == ["in"]
    here.press("Escape", "Tab", "Tab", "Tab", "Tab", "o")
    here.hears("This suggestion has only one part")


def test_what_an_annotator_decided_is_not_joined_with_what_it_did_not(desk: Sit) -> None:
    start = ANSWER.index("Paris")
    decided = (Interval(start=start, end=start + 5),)
    said = suggested(TOWER, PARTS).model_copy(update={"hard": decided})
    here = desk(_records(said))
    here.show_weaker()
    _are_open(here, ("in", 30), ("Paris", 80), ("300 metres high", 60), ("1887", 40))


def test_a_vote_on_a_part_of_a_suggestion_says_which(desk: Sit) -> None:
    start = ANSWER.index("in Paris")
    vote = suggested(TOWER, [("in ", 0.3), ("Paris", 1.0)], name="vote").model_copy(
        update={"hard": (Interval(start=start, end=start + 8),)}
    )
    spans = [
        span.model_copy(update={"note": "Lyon"})
        for span in suggested(TOWER, [("in Paris", 0.6)]).spans
    ]
    exact = Annotation(annotator="exact", kind=AnnotatorKind.DETECTOR, spans=tuple(spans))
    longer = suggested(TOWER, [("stands in Paris", 0.45)], name="longer")
    here = desk(_records(vote, exact, longer))
    _are_open(here, ("in Paris", 100))
    expect(here.page.locator(".sl-votes li")).to_have_text(
        [
            "vote 100 % on “Paris”, 30 % on “in ”",
            "exact 60 %, same span — Lyon",
            "longer 45 %, inside “stands in Paris”",
        ]
    )
    expect(here.page.locator(".sl-card .sl-note")).to_have_count(0)  # said once


def test_a_dataset_starts_at_hard_labels_and_shows_weaker_suggestions_on_request(
    desk: Sit,
) -> None:
    """A detector's own threshold, where it has one, tells what is shown; a choice stays."""
    start = ANSWER.index("1887")
    decided = suggested(TOWER, [("Paris", 0.45), ("1887", 0.36), ("high", 0.55)]).model_copy(
        update={"hard": (Interval(start=start, end=start + 4),)}
    )
    graded = suggested(TOWER, [("300", 0.5), ("opened", 0.51)], name="detector-b")
    here = desk(_records(decided, graded))
    bar = here.page.locator(".sl-threshold")
    _are_open(here, ("opened", 51), ("1887", 36))
    expect(bar).to_contain_text("likely only")
    expect(bar).to_contain_text("2 shown, 3 weaker hidden")
    here.press("<")
    _are_open(here, ("Paris", 45), ("300", 50), ("high", 55), ("opened", 51), ("1887", 36))
    here.hears("Suggestions: 45 % and above: 5 shown")
    here.press(">", ">")
    _are_open(here, ("high", 55))
    here.hears("Suggestions: 55 % and above: 1 shown, 4 weaker hidden")
    here.show_weaker()
    expect(bar).to_contain_text("0 % and above")
    here.page.reload()
    here.wait_for("tower")
    expect(bar).to_contain_text("5 shown")
    here.page.get_by_role("slider", name="Suggestions from").fill("50")
    expect(bar).to_contain_text("likely only")
    _are_open(here, ("opened", 51), ("1887", 36))
    here.page.click('.sl-actions [data-command="acceptAll"]')  # what "likely only" shows
    here.settle()
    assert here.texts("tower") == ["opened", "1887"]


def test_the_threshold_filters_by_key_says_how_many_and_is_remembered(desk: Sit) -> None:
    here = desk(_records())
    bar = here.page.locator(".sl-threshold")
    expect(bar).to_contain_text("2 shown")
    here.press(*["<"] * 4)
    here.hears("Suggestions: 30 % and above: 3 shown, 1 weaker hidden")
    here.press(*[">"] * 4)
    here.hears("Suggestions: likely only: 2 shown, 3 weaker hidden")
    _are_open(here, ("Paris", 80), ("metres high", 60))
    here.press("Enter")  # what was not shown is not counted as rejected
    here.wait_for("next")
    here.settle()
    assert [span.text for span in here.state("tower").rejected] == ["Paris", "metres high"]
    here.page.reload()
    here.wait_for("next")
    expect(bar).to_contain_text("0 shown, 1 weaker hidden")
    here.press(*["<"] * 2)
    _are_open(here, ("wrong", 40))
    slider = here.page.get_by_role("slider", name="Suggestions from")
    slider.fill("95")
    expect(bar).to_contain_text("95 % and above")
    expect(bar).to_contain_text("0 shown, 1 weaker hidden")


def test_percentages_are_seen_at_the_chosen_span_unless_asked_for_everywhere(desk: Sit) -> None:
    here = desk(_records())
    here.show_weaker()
    shown = """() => [...document.querySelectorAll(".sl-seg")]
        .map((node) => getComputedStyle(node, "::before").content).filter((one) => one !== "none")
        .map((content) => /\\d+/.exec(content)[0])"""
    becomes(lambda: here.page.evaluate(shown), ["80"])
    here.page.hover(".sl-seg >> text=1887")
    becomes(lambda: here.page.evaluate(shown), ["80", "40"])
    here.page.get_by_label("% in the text").check()
    becomes(lambda: here.page.evaluate(shown), ["80", "60", "40"])
    here.page.reload()
    here.wait_for("tower")
    becomes(lambda: here.page.evaluate(shown), ["80", "60", "40"])


def test_what_is_likely_is_what_its_annotator_decided_whichever_its_probability(desk: Sit) -> None:
    """Else "likely only" would show what "Accept likely" leaves to be rejected by Done."""
    start = NEXT.answer.index("wrong")
    own = suggested(NEXT, [("wrong", 0.4), ("here", 0.52)]).model_copy(
        update={"hard": (Interval(start=start, end=start + 5),)}
    )
    here = desk(
        [
            Record(item=TOWER, annotations=(suggested(TOWER, PARTS),)),
            Record(item=NEXT, annotations=(own,)),
        ]
    )
    here.show_weaker()
    button = here.page.locator('.sl-actions [data-command="acceptAll"]')
    expect(button).to_contain_text("Accept 2 likely")
    words = "2 likely suggestions: “Paris”, “metres high”"
    expect(button).to_have_attribute("title", re.compile(re.escape(words)))
    button.hover()
    marked = "[...CSS.highlights.get('sl-which') ?? []].map((range) => range.toString())"
    becomes(lambda: here.page.evaluate(marked), ["Paris", "metres high"])
    here.press("A")
    expect(here.page.locator(".sl-toast")).to_have_text(f"Accepted {words}.")
    here.settle()
    assert here.texts("tower") == ["Paris", "metres high"]
    _are_open(here, ("in", 30), ("300", 20), ("1887", 40))
    expect(button).to_be_hidden()
    here.press("u")
    here.settle()
    assert here.texts("tower") == []
    here.press("PageDown")
    here.wait_for("next")
    expect(button).to_contain_text("Accept 1 likely")
    here.press("A")
    here.settle()
    assert here.texts("next") == ["wrong"]


def test_more_suggestions_than_anybody_has_read_are_asked_about(desk: Sit) -> None:
    item = Item(id="long", lang="en", answer=" ".join(f"word{n} is as it was." for n in range(21)))
    parts = [(f"word{n}", 0.9) for n in range(21)]
    here = desk([Record(item=item, annotations=(suggested(item, parts),))])
    here.press("A")
    notice = here.page.locator(".sl-notice")
    expect(notice).to_contain_text("Accept 21 likely suggestions")
    here.press("Escape")
    expect(notice).to_be_hidden()
    here.settle()
    assert here.texts("long") == []
    here.press("A", "a")
    here.settle()
    assert len(here.texts("long")) == 21


def test_done_with_all_that_is_shown_is_one_key_and_one_undo(desk: Sit) -> None:
    here = desk(_records())
    here.press(*["<"] * 5, "D")
    here.wait_for("next")
    expect(here.page.locator(".sl-notice")).to_contain_text(
        "Item tower: 3 undecided suggestions counted as accepted"
    )
    here.settle()
    assert here.texts("tower") == ["in Paris", "metres high", "1887"]
    assert here.state("tower").status is Status.DONE
    here.press("z")
    here.wait_for("tower")
    here.settle()
    assert here.texts("tower") == []
