"""From an opened item to the exported file with nothing but keys."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from driving import DETECTOR, REVIEWER, Desk, suggested

from spanlab import datasets
from spanlab.schema import Annotation, Item, Record, Status

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWER = "Curie was born in Paris 👩‍🔬 in 1867.\nShe won one prize."
ITEM = Item(id="curie", lang="en", question="Who was Curie?", answer=ANSWER)
NEXT = Item(id="next", lang="en", question="And?", answer="All is well.")


def test_review_and_export_need_no_mouse(desk: Sit) -> None:
    """ANCHORS 7, 9: reviewed by key, and what comes out of the Export page is what was reviewed."""
    found = suggested(ITEM, [("in Paris", 0.8), ("1867", 0.3)])
    here = desk([Record(item=ITEM, annotations=(found,)), Record(item=NEXT)])
    here.press("{", "3", "c")  # "Paris", with a label and a comment
    here.page.keyboard.type("Warsaw")
    here.press("Enter", "j", "x")  # 1867 is right
    here.press("ArrowDown", "Home")
    here.press(*["Control+ArrowRight"] * 2, "Control+Shift+ArrowRight", "d")  # "one"
    here.press("Enter")
    here.wait_for("next")
    here.press("Enter")
    here.settle()
    assert here.texts("curie") == ["Paris", "one"]

    _tab_to(here, "link", "Export", backwards=True)
    here.press("Enter")
    here.page.wait_for_selector("h1:has-text('Export')")
    _tab_to(here, "button", "Make the file")
    here.press("Enter")
    here.page.get_by_role("button", name="Download").wait_for()
    _tab_to(here, "button", "Download")
    with here.page.expect_download() as caught:
        here.press("Enter")
    assert caught.value.suggested_filename == f"{here.dataset}.jsonl"
    first, after = datasets.read(caught.value.path())
    mine = _of(first, REVIEWER)
    assert mine.status is Status.DONE
    spans = [(span.text, span.label, span.note, span.source) for span in mine.spans]
    assert spans == [("Paris", "wrong name", "Warsaw", DETECTOR), ("one", None, None, None)]
    assert [span.text for span in mine.rejected] == ["1867"]
    assert _of(after, REVIEWER).status is Status.DONE
    assert _of(after, REVIEWER).spans == ()


def _tab_to(
    here: Desk, role: Literal["link", "button"], name: str, *, backwards: bool = False
) -> None:
    """Press Tab until what has this name has the focus; it must not take for ever."""
    wanted = here.page.get_by_role(role, name=name).first
    for _ in range(60):
        if wanted.evaluate("node => node === document.activeElement"):
            return
        here.press("Shift+Tab" if backwards else "Tab")
    raise AssertionError(f"{name} cannot be reached by Tab")


def _of(record: Record, annotator: str) -> Annotation:
    annotation = record.by(annotator)
    assert annotation is not None
    return annotation
