"""An LLM output is hostile input: it shows as text and runs nothing."""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from driving import Desk
from serving import PATIENCE

from spanlab.schema import Annotation, AnnotatorKind, Evidence, Item, Passage, Record, Span

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

EVIL = (
    "<script>window.owned = 1</script><img src=x onerror='window.owned = 2'>"
    '"><svg onload=window.owned=3> **bold** [link](javascript:window.owned=4) `code` $x^2$ '
    "</textarea></div><style>body{display:none}</style> &lt;b&gt; &amp; ${1+1} {{7*7}}"
)
# An image that is none: true once the browser has found that out.
FAILED = """() => new Promise((done) => {
    const image = new Image();
    image.onerror = () => done(true);
    image.src = "x";
})"""


def test_an_answer_full_of_markup_shows_as_text_and_runs_nothing(desk: Sit) -> None:
    quote = EVIL[:40]
    evidence = Evidence(start=0, end=40, text=quote, passage=0, stance="supports", note=EVIL)
    span = Span.of(EVIL, 0, 70, prob=0.9, label=EVIL[:60], evidence=(evidence,))
    span = span.model_copy(update={"note": EVIL})
    annotation = Annotation(
        annotator=EVIL[:100],
        kind=AnnotatorKind.DETECTOR,
        spans=(span, Span.of(EVIL, 50, 120)),
        note=EVIL,
    )
    item = Item(
        id=EVIL[:50],
        lang="en",
        question=EVIL,
        answer=EVIL,
        passages=(Passage(text=EVIL, title=EVIL, url="javascript:window.owned=5", date=EVIL),),
    )
    here = desk([Record(item=item, annotations=(annotation,))])
    here.press("j", "k", "a", "1", "c")
    here.page.keyboard.type(EVIL[:80])
    here.press("Enter", "C")
    here.page.keyboard.type(EVIL[:80])
    here.press("Enter", "?", "Escape")
    here.settle()
    here.until(FAILED)  # as those in the texts would have done by now
    assert here.page.evaluate("window.owned") is None
    for place in (".sl-text", ".sl-question", ".sl-passage-text"):
        shown = here.page.evaluate(f"document.querySelector({place!r}).textContent")
        assert EVIL[70:] in shown if place == ".sl-passage-text" else shown == EVIL
    assert here.page.locator(".sl script, .sl img, .sl svg, .sl style, .sl b b").count() == 0
    assert here.page.locator(".sl-passage a").count() == 0
    assert here.state(item.id).note == EVIL[:80]


def test_the_csv_that_a_grid_downloads_runs_nothing_in_a_spreadsheet(desk: Sit) -> None:
    item = Item(id="@item", answer='=HYPERLINK("http://a.example","1 error")')
    guess = Annotation(annotator="guess", kind=AnnotatorKind.DETECTOR)
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD)
    here = desk([Record(item=item, annotations=(guess, gold))])
    page = here.page.context.new_page()
    # Without this Chromium would ask where to save, in a window that nobody can answer.
    page.add_init_script("delete window.showSaveFilePicker")
    page.goto(here.page.url.replace("/?", "/compare?"))
    grids = page.locator("[data-testid='stDataFrame']")
    grids.first.wait_for(timeout=PATIENCE)
    written = ""
    for grid in grids.all():
        grid.hover()
        with page.expect_download(timeout=PATIENCE) as downloaded:
            grid.locator("xpath=..").get_by_role("button", name="Download as CSV").click()
        written += Path(downloaded.value.path()).read_text(encoding="utf-8-sig") + "\n"
    for cell in ("=HYPERLINK", "@item"):
        assert "'" + cell in written
    cells = [cell for row in csv.reader(written.splitlines()) for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "-", "@"))]
    page.close()
