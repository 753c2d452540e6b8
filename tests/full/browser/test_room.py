"""How the editor shares the window between the answer and what is read beside it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import Desk, becomes, box_of, suggested
from playwright.sync_api import Page, ViewportSize, expect

from spanlab.schema import Annotation, AnnotatorKind, Evidence, Item, Passage, Record, Span

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

TWO_LINES = (
    "Marie Curie was born in Paris in 1859 and won three Nobel Prizes, which nobody has ever done "
    "before or after her in the whole history of science and the arts."
)
NARROW: ViewportSize = {"width": 1270, "height": 800}  # from 1,280 on, they stand side by side
PAGE = " ".join(f"Sentence {number} of a page about physicists." for number in range(120))
# Whole lines of the passages that can be seen.
LINES = """() => {
    const pane = document.querySelector(".sl-passages").getBoundingClientRect();
    const range = document.createRange();
    const lines = new Set();
    for (const body of document.querySelectorAll(".sl-passage-text")) {
        range.selectNodeContents(body);
        for (const { top, bottom } of range.getClientRects()) {
            if (top >= pane.top - 1 && bottom <= pane.bottom + 1) lines.add(Math.round(top));
        }
    }
    return lines.size;
}"""


def read(name: str = "two-lines", answer: str = TWO_LINES) -> Record:
    passages = (Passage(text=PAGE, title="Physicists"),)
    item = Item(id=name, lang="en", question="Who was she?", answer=answer, passages=passages)
    return Record(item=item, annotations=(suggested(item, [(answer.split(maxsplit=1)[0], 0.9)]),))


def height(page: Page, name: str) -> float:
    return box_of(page.locator(name))["height"]


def test_the_answer_is_as_high_as_its_text_up_to_a_share_that_the_splitter_changes(
    desk: Sit,
) -> None:
    here = desk([read(answer="word " * 2000)])
    here.page.set_viewport_size(NARROW)
    splitter = here.page.get_by_role("separator", name="Answer height")
    expect(splitter).to_have_attribute("aria-valuenow", "60")
    here.until(  # the room is narrow only after a while
        """() => {
            const of = name => document.querySelector(name).getBoundingClientRect().height;
            const share = of(".sl-answer") / of(".sl-main");
            return 0.5 < share && share <= 0.6;
        }"""
    )
    main = height(here.page, ".sl-main")
    splitter.focus()
    here.press(*["ArrowUp"] * 6)
    assert height(here.page, ".sl-answer") / main <= 0.3
    x, y = _middle(here.page, ".sl-splitter")
    here.page.mouse.move(x, y)
    here.page.mouse.down()
    here.page.mouse.move(x, y + main * 0.2, steps=3)
    here.page.mouse.up()
    expect(splitter).to_have_attribute("aria-valuenow", "50")
    here.visit()
    expect(splitter).to_have_attribute("aria-valuenow", "50")
    splitter.dblclick()
    expect(splitter).to_have_attribute("aria-valuenow", "60")


def test_evidence_stands_beside_the_answer_and_text_grows_as_this_browser_remembers(
    desk: Sit,
) -> None:
    here = desk([read()])
    size = "node => parseFloat(getComputedStyle(node).fontSize)"
    before = here.page.locator(".sl-text").evaluate(size)
    here.page.get_by_role("button", name="Larger text").click()
    here.page.set_viewport_size(NARROW)
    expect(here.page.locator(".sl-beside")).to_have_count(0)
    here.page.get_by_role("button", name="Evidence beside the answer").click()
    here.has_focus(inside=True)
    for _ in range(2):
        splitter = here.page.get_by_role("separator", name="Width of the answer")
        expect(splitter).to_have_attribute("aria-valuenow", "57")
        answer = box_of(here.page.locator(".sl-left"))
        panel = box_of(here.page.locator(".sl-right"))
        assert panel["x"] > answer["x"] + answer["width"]
        assert here.page.locator(".sl-text").evaluate(size) == pytest.approx(before * 1.1, rel=0.01)
        here.visit()
    here.page.get_by_role("button", name="Evidence below the answer").click()
    here.page.set_viewport_size({"width": 1440, "height": 800})
    here.visit()
    expect(here.page.locator(".sl-beside")).to_have_count(0)


ARABIC = (
    "أُطلق القمر الصناعي في 4 أكتوبر وكانت كتلته نحو 83 طنًا وقد أطلقته وكالة من قاعدة بعيدة. " * 12
)


def test_wide_windows_have_evidence_beside_lines_that_can_be_read_on_their_own_side(
    desk: Sit,
) -> None:
    arabic = Record(
        item=Item(
            id="arabic",
            lang="ar",
            question="متى؟",
            answer=f"NASA {ARABIC}\n{ARABIC}",
            passages=(Passage(text=f"NASA {ARABIC}"),),
        )
    )
    here = desk([read(answer=TWO_LINES * 9), arabic])
    for width in (1280, 1440, 1920):
        here.page.set_viewport_size({"width": width, "height": 800})
        expect(here.page.locator(".sl-beside")).to_have_count(1)
        answer, panel = (box_of(here.page.locator(name)) for name in (".sl-answer", ".sl-right"))
        assert panel["x"] > answer["x"] + answer["width"]
        text = box_of(here.page.locator(".sl-text"))
        assert answer["width"] - text["width"] < 60  # no half of it is empty …
        assert text["width"] < 780  # … and no line is overlong
    here.press("PageDown")
    here.wait_for("arabic")
    answer = box_of(here.page.locator(".sl-answer"))
    for paragraph in (0, 1):  # whatever word it begins with
        line = here.page.locator(".sl-p").nth(paragraph)
        right = line.evaluate(
            """node => {
                const range = document.createRange();
                range.selectNodeContents(node);
                return Math.max(...[...range.getClientRects()].map((rect) => rect.right));
            }"""
        )
        assert answer["x"] + answer["width"] - right < 30
    passage = here.page.locator(".sl-passage-text")
    assert passage.evaluate("node => getComputedStyle(node).direction") == "rtl"


def test_a_short_answer_leaves_the_window_to_its_evidence_and_tabs_stay_from_item_to_item(
    desk: Sit,
) -> None:
    here = desk([read("one"), read("two"), Record(item=Item(id="bare", answer="Ann."))])
    becomes(lambda: here.page.evaluate(LINES) >= 11, True)  # beside the answer, below the card
    card = here.page.locator(".sl-card")
    here.press("Escape")
    expect(card).to_be_hidden()  # nothing is chosen: it gives its room away
    here.press("j")
    expect(card).to_be_visible()
    tabs = here.page.get_by_role("tablist")
    expect(tabs.get_by_role("tab", name="Evidence 1")).to_have_attribute("aria-selected", "true")
    here.press("v")
    spans = tabs.get_by_role("tab", name="Spans")
    expect(spans).to_have_attribute("aria-selected", "true")
    here.press("PageDown")
    here.wait_for("two")
    expect(spans).to_have_attribute("aria-selected", "true")
    spans.focus()
    here.press("ArrowLeft")
    expect(tabs.get_by_role("tab", name="Evidence 1")).to_be_focused()
    here.press("Enter")
    here.page.set_viewport_size(NARROW)
    becomes(lambda: here.page.evaluate(LINES) >= 18, True)  # below it, with a tip under them


def test_an_item_without_passages_begins_with_its_spans(desk: Sit) -> None:
    here = desk([Record(item=Item(id="bare", answer="Ann."))])
    spans = here.page.get_by_role("tab", name="Spans")
    expect(spans).to_have_attribute("aria-selected", "true")
    expect(here.page.get_by_role("listbox", name="Spans")).to_contain_text("No spans.")


def test_tabs_and_controls_without_content_are_left_out_until_they_have_some(desk: Sit) -> None:
    passages = (Passage(text="Ann was born."),)
    here = desk([Record(item=Item(id="plain", answer="Ann.", passages=passages))])
    tabs = here.page.get_by_role("tab")
    expect(tabs).to_have_text(["Evidence 1"])
    expect(here.page.get_by_role("slider", name="Suggestions from")).to_be_hidden()
    here.press("Shift+ArrowRight", "d")
    expect(tabs).to_have_text(["Evidence 1", "Spans 1"])
    here.press("l")
    expect(tabs).to_have_text(["Evidence 1", "Spans 1", "Claims"])
    here.press("Escape", "v")
    expect(tabs).to_have_text(["Evidence 1", "Spans 1"])


def _middle(page: Page, name: str) -> tuple[float, float]:
    box = box_of(page.locator(name))
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


LONG_PASSAGE = " ".join(f"Sentence {number} of a book about physicists." for number in range(900))
QUOTE = "Sentence 500 of a book"


def far(name: str, *, quoted: bool = True) -> Record:
    """An item whose second passage is a book, and whose suggestion quotes its middle."""
    start = LONG_PASSAGE.index(QUOTE)
    quotes = [
        Evidence(passage=1, start=at, end=at + len(QUOTE), text=QUOTE, stance="refutes")
        for at in (start,)
    ]
    also = Evidence(passage=0, start=0, end=5, text="Paris", stance="supports")
    passages = (
        Passage(text="Paris is a city.\nIt's on the Seine.", title="Paris"),
        Passage(
            text=LONG_PASSAGE,
            title="Physicists",
            url="https://books.example.org/physicists",
            date="2024-05-01",
        ),
    )
    answer = "Marie Curie was born in Paris."
    item = Item(id=name, lang="en", question="Where?", answer=answer, passages=passages)
    place = answer.index("Paris")
    span = Span.of(answer, place, place + 5, prob=0.9, evidence=(*quotes, also) if quoted else ())
    found = Annotation(annotator="detector-a", kind=AnnotatorKind.DETECTOR, spans=(span,))
    return Record(item=item, annotations=(found,))


def test_pieces_of_evidence_are_gone_through_and_stand_in_what_surrounds_them(desk: Sit) -> None:
    here = desk([far("one")])
    chosen = here.page.locator(".sl-passages mark.sl-chosen")
    pieces = here.page.get_by_role("group", name="Pieces of evidence")
    expect(chosen).to_have_text("Paris")
    here.press("e")
    here.hears(f"Evidence 2 of 2: {QUOTE}")
    expect(chosen).to_be_in_viewport()
    here.press("E")
    here.hears("Evidence 1 of 2: Paris")
    pieces.get_by_role("button", name="Next piece of evidence").click()
    expect(pieces).to_contain_text("2 of 2")
    here.has_focus(inside=True)
    book = here.page.locator(".sl-passage", has_text="Physicists")
    expect(book.get_by_role("link", name="Physicists")).to_have_attribute(
        "href", "https://books.example.org/physicists"
    )
    expect(book.locator("h2")).to_contain_text("books.example.org · 2024-05-01")
    text = book.locator(".sl-passage-text")
    for part in ("Sentence 480 ", "Sentence 520 "):
        expect(text).to_contain_text(part)
    for part in ("Sentence 1 ", "Sentence 899 "):
        expect(text).not_to_contain_text(part)
    folds = book.get_by_role("button", name="more characters")
    expect(folds).to_have_count(2)
    folds.first.click()
    expect(text).to_have_text(LONG_PASSAGE.replace(QUOTE, f"{QUOTE} refutes it "))


def test_words_are_found_in_the_evidence_also_where_it_is_folded(desk: Sit) -> None:
    here = desk([far("one"), far("two", quoted=False)])
    highlighted = "() => [...(CSS.highlights.get('sl-chosen-in-evidence') ?? [])].map(String)"
    here.press("Control+f")
    box = here.page.get_by_role("searchbox", name="Find in the evidence")
    expect(box).to_be_focused()
    here.page.keyboard.type("it's ON")
    find = here.page.locator(".sl-find")
    expect(find).to_contain_text("1 of 1")
    becomes(lambda: here.page.evaluate(highlighted), ["It's on"])
    box.fill("sentence 7")
    expect(find).to_contain_text("1 of 111")
    here.press("Enter", "Enter")
    expect(find).to_contain_text("3 of 111")
    here.press("Shift+Enter", "Shift+Enter", "Shift+Enter")
    expect(find).to_contain_text("111 of 111")
    expect(here.page.locator(".sl-passage-text").last).to_contain_text("Sentence 799 ")
    becomes(lambda: here.page.evaluate(highlighted), ["Sentence 7"])
    box.fill("(nothing")
    expect(find).to_contain_text("not found")
    box.fill("seine")
    here.press("Escape")
    expect(find).to_be_hidden()
    here.has_focus(inside=True)
    here.press("PageDown")
    here.wait_for("two")
    here.press("f")
    expect(find).to_contain_text("1 of 1")
    becomes(lambda: here.page.evaluate(highlighted), ["Seine"])
    here.settle()
    assert here.state("one").rejected == ()
