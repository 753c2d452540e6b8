"""A whole review without a keyboard."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import pytest
from driving import Desk, box_of, suggested
from playwright.sync_api import expect

from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWER = (
    "Frankenstein was written by Percy Shelley in Geneva and first published, in Paris in 1821."
)
ITEM = Item(id="frankenstein", lang="en", question="Who wrote Frankenstein?", answer=ANSWER)
NEXT = Item(id="next", lang="en", question="And then?", answer="Nothing was wrong here.")


def _records() -> list[Record]:
    parts = [("Percy Shelley", 0.9), ("in Paris in 1821", 0.6), ("first published", 0.55)]
    return [Record(item=ITEM, annotations=(suggested(ITEM, parts),)), Record(item=NEXT)]


def _tool(here: Desk, command: str) -> None:
    here.page.click(f'.sl-tools [data-command="{command}"]')


def _action(here: Desk, command: str) -> None:
    here.page.click(f'.sl-actions [data-command="{command}"]')


def test_a_span_is_resized_by_dragging_its_ends(desk: Sit) -> None:
    cases: dict[tuple[Literal["start", "end"], str], str] = {
        ("end", "Geneva"): "Percy Shelley in Geneva",
        ("end", "Percy"): "Percy",
        ("start", "written"): "written by Percy Shelley",
        ("start", "Shelley"): "Shelley",
    }
    records = []
    for side, to in cases:
        item = ITEM.model_copy(update={"id": f"{side} to {to}"})
        records.append(Record(item=item, annotations=(suggested(item, [("Percy Shelley", 0.9)]),)))
    here = desk(records)
    for side, to in cases:
        here.wait_for(f"{side} to {to}")
        here.click_on("Percy")
        here.drag_end(side, to)
        here.press("PageDown")
    here.settle()
    assert [here.texts(record.item.id) for record in records] == [[text] for text in cases.values()]


def test_adjacent_and_overlapping_selections_leave_the_text_alone(desk: Sit) -> None:
    """Adjacent and overlapping selections do not corrupt the text."""
    here = desk([Record(item=ITEM)])
    here.drag_over("Frankenstein")
    here.drag_over(" was ", exactly=True)
    here.drag_over("written by Percy")
    here.drag_over("Percy Shelley in")
    here.drag_over("by Percy Shelley")
    here.settle()
    assert here.texts("frankenstein") == [
        "Frankenstein",
        " was ",
        "written by Percy",
        "by Percy Shelley",
        "Percy Shelley in",
    ]
    here.until("text => document.querySelector('.sl-text').textContent === text", ANSWER)
    here.until(
        """() => [...document.querySelectorAll(".sl-seg")]
            .find((node) => node.textContent === "Percy")?.slMarks.length === 3"""
    )
    quote = here.page.locator(".sl-card blockquote")
    for text in ("Percy Shelley in", "written by Percy", "by Percy Shelley"):
        # Clicking on goes through the spans that lie over each other.
        here.click_on("Percy")
        expect(quote).to_have_text(text)


def test_gold_labels_are_hidden_until_they_are_asked_for(desk: Sit) -> None:
    gold = Annotation(annotator="gold", kind=AnnotatorKind.GOLD, spans=(Span.of(ANSWER, 0, 12),))
    broken = Annotation(
        annotator="detector-b",
        kind=AnnotatorKind.DETECTOR,
        status=Status.FAILED,
        note="credits exhausted",
    )
    here = desk([Record(item=ITEM, annotations=(gold, broken))])
    segments = here.page.locator(".sl-seg")
    chips = here.page.locator(".sl-annotators")
    expect(chips).not_to_contain_text("gold")
    here.open_queue()
    here.page.get_by_text("Show other people's marks").click()
    here.wait_for_queue(blind=False)
    here.close_queue()
    expect(chips).to_contain_text("hidden")
    expect(chips).to_contain_text("Failed credits exhausted")
    expect(segments).to_have_count(0)
    here.page.click(".sl-chip >> text=gold")
    expect(segments).to_have_text(["Frankenstein"])
    here.page.click(".sl-chip >> text=gold")
    expect(segments).to_have_count(0)


_LETTERS = {"ar": "ابتثجحخدذرزسشصضطظعغفقكلمنهوي", "en": "abcdefghijklmnopqrstuvwxyz"}
# The UTF-16 unit at which the second line begins, of the first paragraph on the screen.
_WRAPS = """() => {
    const { view: { geometry }, item } = spanlab.editor;
    const top = (at) => {
        const [from, to] = [geometry.position(at), geometry.position(at + 1)];
        const range = document.createRange();
        range.setStart(to.node, to.offset - 1);
        range.setEnd(to.node, to.offset);
        return range.getBoundingClientRect().top;
    };
    const first = top(0);
    for (let at = 1; ; at += 1) if (top(at) > first + 8 && item.text.whole[at] !== " ") return at;
}"""


def _wrapping(lang: str) -> str:
    """An answer of words that each come once, long enough for several lines."""
    if lang == "zh":
        return "".join(chr(0x4E00 + number) for number in range(160))
    letters = _LETTERS[lang]
    words = (one + two + one + two for one in letters for two in letters[:4])
    return " ".join(words)


def test_a_span_that_begins_a_wrapped_line_has_handles_and_toolbar_there(desk: Sit) -> None:
    langs = ("en", "ar", "zh")
    here = desk([Record(item=Item(id=lang, lang=lang, answer=_wrapping(lang))) for lang in langs])
    for lang in langs:
        here.wait_for(lang)
        begin = int(here.page.evaluate(_WRAPS))
        answer = _wrapping(lang)
        before, first = answer[:begin].split(" ")[-2:][0], answer[begin:].split(" ")[0]
        if lang == "zh":
            before, first = answer[begin - 3 : begin], answer[begin : begin + 3]
        answer_box = box_of(here.page.locator(".sl-answer"))
        here.drag_over(first)
        expect(here.page.locator(".sl-tools")).to_be_visible()
        _stands_at(here, "start", *here.point(begin))
        toolbar = box_of(here.page.locator(".sl-tools"))
        _, line = here.point(begin)
        assert line < toolbar["y"] < line + 40
        assert answer_box["x"] <= toolbar["x"] <= answer_box["x"] + answer_box["width"]
        # What ends a line has its other handle there, not at the start of the next one.
        here.drag_over(before)
        end = answer.index(before) + len(before)
        _stands_at(here, "end", *here.point(end, after=True))
        here.press("PageDown")


def _stands_at(here: Desk, side: str, x: float, y: float) -> None:
    """Hold a handle's knob against the place on the screen that it is for."""
    box = box_of(here.page.locator(f".sl-handle-{side}"))
    assert abs(box["x"] + box["width"] / 2 - x) <= 2
    assert y < box["y"] < y + 30


def test_the_next_click_meets_the_same_button_and_no_label_moves_the_text(desk: Sit) -> None:
    answer = (
        "Short. A suggestion of many words that takes more than one line on the card "
        "beside the answer, and then there is 1821 and Geneva and Paris at the end of it."
    )
    item = Item(id="one", lang="en", answer=answer)
    parts = [("Short", 0.9), (answer[7:100], 0.8), ("1821", 0.7), ("Geneva", 0.9), ("Paris", 0.6)]
    noted = suggested(item, [("1821", 0.8)], name="detector-b", note="Long " * 60)
    here = desk([Record(item=item, annotations=(suggested(item, parts), noted))])
    card = here.page.locator(".sl-card")
    accept = card.locator('[data-command="accept"]')
    label = card.locator('.sl-labels [data-command="label"]').first
    places = [box_of(accept), box_of(label), box_of(here.page.locator(".sl-pages"))]
    lines = box_of(here.page.locator(".sl-p"))
    for _ in parts:
        label.hover()
        colour = "node => getComputedStyle(node).borderInlineStartColor"
        tag = label.evaluate("node => getComputedStyle(node).getPropertyValue('--sl-tag')")
        painted = here.page.evaluate(
            """colour => {
                document.body.style.outlineColor = colour;
                return getComputedStyle(document.body).outlineColor;
            }""",
            tag,
        )
        assert label.evaluate(colour) == painted
        label.click()
        assert [box_of(accept), box_of(label), box_of(here.page.locator(".sl-pages"))] == places
        here.press("Tab")
    assert box_of(here.page.locator(".sl-p")) == lines
    here.settle()
    assert len(here.texts("one")) == len(parts)
    here.press(*["u"] * 10)
    for _ in parts:
        accept.click()
        assert [box_of(accept), box_of(label), box_of(here.page.locator(".sl-pages"))] == places
    here.settle()
    assert len(here.texts("one")) == len(parts)
    # Accept stands in one place at a time: on the card, or at the span that was clicked.
    here.press("u")
    visible = here.page.get_by_role("button", name="Accept", exact=True)
    expect(visible).to_have_count(1)
    here.click_on("Paris")
    expect(here.page.locator(".sl-tools")).to_be_visible()
    expect(visible).to_have_count(1)


def test_a_tip_covers_no_button_and_goes_once_its_keys_are_in_use(desk: Sit) -> None:
    here = desk(_records())
    hint = here.page.get_by_role("note", name="Hint")
    hint.get_by_role("button", name="Got it").click()  # what is seen
    expect(hint).to_contain_text("Tab goes from one suggestion to the next")
    tip = box_of(hint)
    for part in (".sl-main", ".sl-actions"):
        box = box_of(here.page.locator(part))
        assert box["y"] + box["height"] <= tip["y"] or tip["y"] + tip["height"] <= box["y"]
    here.press("a")
    expect(hint).to_contain_text("To mark text yourself")
    here.drag_over("Geneva")
    expect(hint).to_contain_text("Enter says that the item is done")
    here.press("Enter")
    here.wait_for("next")
    expect(hint).to_be_hidden()
    here.page.reload()
    here.wait_for("next")
    expect(hint).to_be_hidden()
