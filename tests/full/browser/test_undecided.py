"""Done over suggestions that nobody decided: counted as the dataset's setting says, and undone."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from driving import REVIEWER, Desk, suggested
from playwright.sync_api import expect

from spanlab.oplog.operations import SetStatus
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Status, UndecidedRule

pytestmark = pytest.mark.browser

Sit = Callable[..., Desk]
PARTS = [("one", 0.9), ("two", 0.5), ("three", 0.2)]


def _sit(desk: Sit, undecided: UndecidedRule) -> Desk:
    items = [Item(id=name, lang="en", answer="one, two, three, four") for name in ("a", "b")]
    records = [Record(item=item, annotations=(suggested(item, PARTS),)) for item in items]
    here = desk(records, undecided=undecided)
    here.show_weaker()
    return here


def _says(here: Desk, text: str) -> None:
    expect(here.page.locator(".sl-notice")).to_contain_text(text)


def _refused(here: Desk) -> list[str]:
    return [span.text for span in here.state("a").rejected]


def test_undecided_suggestions_are_rejected_aloud_and_undo_returns_to_before_done(
    desk: Sit,
) -> None:
    here = _sit(desk, UndecidedRule.REJECTED)
    here.press("Enter")
    here.wait_for("b")
    _says(here, "Item a: 3 undecided suggestions counted as rejected")
    here.settle()
    assert here.state("a").status is Status.DONE
    assert _refused(here) == ["one", "two", "three"]
    here.press("z")
    here.wait_for("a")
    here.shows_status("not-annotated")
    expect(here.page.locator(".sl-notice")).to_be_hidden()
    here.settle()
    assert (here.state("a").status, _refused(here)) == (Status.NOT_ANNOTATED, [])


def test_what_done_counted_survives_a_reload_and_so_does_its_undo(desk: Sit) -> None:
    here = _sit(desk, UndecidedRule.LIKELY)
    here.press("j", "x", "Enter")  # "two" is decided by hand
    here.wait_for("b")
    _says(here, "Item a: 2 undecided suggestions: 1 counted as accepted, 1 as rejected")
    here.settle()
    here.visit("a")
    status = here.page.locator(".sl-status")
    expect(status).to_have_text(
        "Done: 2 undecided suggestions: 1 counted as accepted, 1 as rejected"
    )
    assert here.texts("a") == ["one"]
    assert sorted(_refused(here)) == ["three", "two"]
    here.press("u")
    here.settle()
    assert (here.texts("a"), _refused(here)) == ([], ["two"])
    assert here.state("a").status is Status.NOT_ANNOTATED


def test_the_question_is_answered_by_key_and_leaves_the_item_if_it_is_put_off(desk: Sit) -> None:
    here = _sit(desk, UndecidedRule.ASK)
    here.press("Enter")
    _says(here, "What should happen to 3 undecided suggestions?")
    here.press("a")  # no key but the answer's does anything now
    here.press("Escape")
    expect(here.page.locator(".sl-notice")).to_be_hidden()
    here.settle()
    assert here.state("a").status is Status.NOT_ANNOTATED
    assert here.texts("a") == []
    here.has_focus(inside=True)
    here.press("Enter", "l")
    here.wait_for("b")
    here.settle()
    assert here.texts("a") == ["one"]
    here.press("Enter", "r")
    _says(here, "Item b: 3 undecided suggestions counted as rejected")
    here.press("z")
    here.shows_status("not-annotated")
    here.press("x", "x", "x", "Enter")  # nothing is left undecided: nobody is asked
    here.shows_status("done")
    here.settle()
    done = here.store.review(here.dataset, "b", REVIEWER).operations[-1]
    assert done == SetStatus(status=Status.DONE, suggested=True)


def test_the_end_of_the_queue_says_whether_everything_is_decided(desk: Sit) -> None:
    here = _sit(desk, UndecidedRule.REJECTED)
    here.press("PageDown")
    here.wait_for("b")
    here.press("Enter")
    here.hears("That was the last item here, but 1 is still undecided.")
    here.press("PageUp")
    here.wait_for("a")
    here.press("Enter")
    here.hears("All 2 items decided. Thank you.")


def test_one_item_is_told_of_in_the_singular(desk: Sit) -> None:
    here = desk([Record(item=Item(id="a", lang="en", answer="one"))])
    here.press("Enter")
    here.hears("The item is decided. Thank you.")


def test_own_marks_settle_the_suggestions_that_they_cover(desk: Sit) -> None:
    """Whoever marked the words did not judge that nothing is wrong with them."""
    here = _sit(desk, UndecidedRule.REJECTED)
    here.drag_over("two, three", exactly=True)
    here.settle()
    assert here.texts("a") == ["two, three"]
    here.press("Enter")
    here.wait_for("b")
    _says(here, "Item a: 1 undecided suggestion counted as rejected")
    here.settle()
    assert (here.texts("a"), _refused(here)) == (["two, three"], ["one"])


def test_a_detector_that_found_nothing_or_failed_is_named(desk: Sit) -> None:
    item = Item(id="a", lang="en", answer="one, two")
    quiet = Annotation(annotator="det", kind=AnnotatorKind.DETECTOR)
    broken = Annotation(
        annotator="other", kind=AnnotatorKind.DETECTOR, status=Status.FAILED, note="away"
    )
    here = desk([Record(item=item, annotations=(quiet, broken))])
    expect(here.page.locator(".sl-remark")).to_have_text("det: nothing found · other: failed")
