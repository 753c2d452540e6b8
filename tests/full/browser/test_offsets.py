"""Offsets drawn on the screen are the code points that Python slices by."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from driving import Desk, suggested

from spanlab.schema import Item, Record

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

# what is special → language, answer, text to draw
CASES = {
    "emoji": ("en", "🎉🎉 The party was on 🎈Friday🎈 night.", "Friday"),
    "zwj": ("en", "A family 👨‍👩‍👧‍👦 and 👩🏽‍🚀 flew to Mars.", "👩🏽‍🚀 flew"),
    "combining": ("fr", "Le cafe\u0301 re\u0301el coûte deux euros.", "re\u0301el"),
    "crlf": ("en", "One 🎉\r\nTwo lines\r\n\r\nand three 🎈 more", "three"),
    "arabic": ("ar", "وُلد العالم في مدينة القاهرة عام 1950.", "القاهرة"),
    "persian": ("fa", "او در سال ۱۳۵۰ در شهر تهران می‌رود.", "تهران"),
    "hindi": ("hi", "ताजमहल का निर्माण दिल्ली में हुआ था।", "दिल्ली"),
    "chinese": ("zh", "这座塔建于1889年,位于法国巴黎市中心𠮷。", "巴黎"),
    "mixed direction": ("ar", "قال Einstein هذا في Berlin 🎈 أمس.", "Berlin"),
    "leading space": ("en", "  leading space 🎈 here", "leading"),
}


def test_what_is_drawn_in_any_script_is_what_python_slices(desk: Sit) -> None:
    """Emoji and ZWJ, CRLF, right to left and mixed direction; by keys and by mouse in turn."""
    records, drawn = [], dict(zip(CASES, itertools.cycle(("keys", "mouse")), strict=False))
    for name, (lang, answer, text) in CASES.items():
        for way in (drawn[name], "suggestion"):
            item = Item(id=f"{name} by {way}", lang=lang, answer=answer)
            said = (suggested(item, [(text, 0.8)]),) if way == "suggestion" else ()
            records.append(Record(item=item, annotations=said))
    here = desk(records)
    for name, (_, _, text) in CASES.items():
        here.wait_for(f"{name} by {drawn[name]}")
        if drawn[name] == "keys":
            _draw_by_keys(here, text)
        else:
            here.drag_over(text, exactly=True)
        here.press("Enter")
        here.wait_for(f"{name} by suggestion")
        here.until("text => document.querySelector('.sl-seg')?.textContent === text", text)
        here.press("a", "Enter")
    here.settle()
    for record in records:
        name, _, _ = record.item.id.partition(" by ")
        _, answer, text = CASES[name]
        (span,) = here.state(record.item.id).spans.values()
        start = answer.index(text)
        assert (span.start, span.end, span.text) == (start, start + len(text), text)


def _draw_by_keys(here: Desk, text: str) -> None:
    unit = here.unit(text)
    forward = here.page.evaluate(
        "at => spanlab.editor.view.geometry.isRightToLeft(at) ? 'ArrowLeft' : 'ArrowRight'", unit
    )
    _walk_to(here, unit, str(forward))
    _walk_to(here, unit + len(text.encode("utf-16-le")) // 2, f"Shift+{forward}")
    here.press("d")


def _walk_to(here: Desk, unit: int, forward: str) -> None:
    """Walk the caret there key by key; it must stop exactly there."""
    for _ in range(200):
        if here.page.evaluate("spanlab.editor.selection.caret") >= unit:
            break
        here.press(forward)
    assert here.page.evaluate("spanlab.editor.selection.caret") == unit


def test_the_caret_steps_over_whole_graphemes_and_words_of_the_language(desk: Sit) -> None:
    item = Item(id="zh", lang="zh", answer="这座塔位于巴黎。👨‍👩‍👧‍👦好")
    here = desk([Record(item=item)])
    _walk_to(here, here.unit("巴黎"), "ArrowRight")
    here.press("w", "d")
    here.settle()
    assert here.texts("zh") == ["巴黎"]
    here.press("End", "ArrowLeft", "ArrowLeft")
    assert here.page.evaluate("spanlab.editor.selection.caret") == here.unit("👨")


def test_a_mouse_selection_snaps_to_words_and_never_halves_a_character(desk: Sit) -> None:
    item = Item(id="snap", lang="en", answer="The 👩🏽‍🚀 astronaut landed safely.")
    here = desk([Record(item=item)])
    here.drag_over("stronaut land")
    here.page.evaluate(
        """() => { const e = spanlab.editor; const at = e.item.text.whole.indexOf("👩");
                   e.view.pointer.drag(at + 1, at + 3, true); }"""
    )
    here.settle()
    assert here.texts("snap") == ["👩🏽‍🚀", "astronaut landed"]
