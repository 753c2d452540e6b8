"""Offsets drawn on the screen are the code points that Python slices by."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import Desk, suggested

from spanlab.schema import Item, Record

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

# language, answer, text to draw
CASES = [
    pytest.param("en", "🎉🎉 The party was on 🎈Friday🎈 night.", "Friday", id="emoji"),
    pytest.param("en", "A family 👨‍👩‍👧‍👦 and 👩🏽‍🚀 flew to Mars.", "👩🏽‍🚀 flew", id="zwj"),
    pytest.param("fr", "Le cafe\u0301 re\u0301el coûte deux euros.", "re\u0301el", id="combining"),
    pytest.param("en", "One 🎉\r\nTwo lines\r\n\r\nand three 🎈 more", "three", id="crlf"),
    pytest.param("ar", "وُلد العالم في مدينة القاهرة عام 1950.", "القاهرة", id="arabic"),
    pytest.param("fa", "او در سال ۱۳۵۰ در شهر تهران می‌رود.", "تهران", id="persian"),
    pytest.param("hi", "ताजमहल का निर्माण दिल्ली में हुआ था।", "दिल्ली", id="hindi"),
    pytest.param("zh", "这座塔建于1889年,位于法国巴黎市中心𠮷。", "巴黎", id="chinese"),
    pytest.param("ar", "قال Einstein هذا في Berlin 🎈 أمس.", "Berlin", id="mixed direction"),
    pytest.param("en", "  leading space 🎈 here", "leading", id="leading space"),
]


@pytest.mark.parametrize(("lang", "answer", "text"), CASES)
def test_what_is_drawn_in_any_script_is_what_python_slices(
    desk: Sit, lang: str, answer: str, text: str
) -> None:
    """Emoji and ZWJ, CRLF, right to left and mixed direction."""
    item = Item(id="keys", lang=lang, answer=answer)
    mouse = Item(id="mouse", lang=lang, answer=answer)
    shown = Item(id="shown", lang=lang, answer=answer)
    here = desk(
        [
            Record(item=item),
            Record(item=mouse),
            Record(item=shown, annotations=(suggested(shown, [(text, 0.8)]),)),
        ]
    )
    start = answer.index(text)

    forward = here.page.evaluate(
        "(unit) => spanlab.editor.view.geometry.isRightToLeft(unit) ? 'ArrowLeft' : 'ArrowRight'",
        here.unit(text),
    )
    unit = here.unit(text)
    _walk_to(here, unit, str(forward))
    _walk_to(here, unit + len(text.encode("utf-16-le")) // 2, f"Shift+{forward}")
    here.press("d")
    here.settle()
    (span,) = here.state("keys").spans.values()
    assert (span.start, span.end, span.text) == (start, start + len(text), text)

    here.press("Enter")
    here.wait_for("mouse")
    here.drag_over(text, exactly=True)
    here.settle()
    (span,) = here.state("mouse").spans.values()
    assert (span.start, span.end, span.text) == (start, start + len(text), text)

    here.press("Enter")
    here.wait_for("shown")
    here.until("text => document.querySelector('.sl-seg')?.textContent === text", text)
    here.press("a")
    here.settle()
    (span,) = here.state("shown").spans.values()
    assert (span.start, span.end, span.text) == (start, start + len(text), text)


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
