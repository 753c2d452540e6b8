"""The key table, and an item as long as they come."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from driving import Desk, box_of, long_record
from modules import open_modules
from playwright.sync_api import Page, expect

from spanlab.schema import Item, Record
from spanlab.ui.editor_keys import ADJUDICATION_KEYS, KEYS

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]


FIRST = [
    "nextSpan",
    "accept",
    "reject",
    "label",
    "comment",
    "selectThisWord",
    "draw",
    "done",
    "skip",
    "undo",
]


def test_the_sheet_lists_every_key_and_what_it_does_and_fits_a_laptop(desk: Sit) -> None:
    """Ten that everybody needs come first."""
    here = desk([Record(item=Item(id="item", answer="text"))])
    here.press("?")
    shown = here.page.evaluate(
        """() => [...document.querySelectorAll(".sl-sheet dt")].map((node) =>
            [node.children.length, node.nextSibling.textContent])"""
    )
    first = [key for one in FIRST for key in KEYS if key.command == one]
    assert shown[:10] == [[len(key.keys), key.does] for key in first]
    assert sorted(shown) == sorted([len(key.keys), key.does] for key in KEYS)
    sheet = here.page.get_by_role("dialog", name="Keyboard shortcuts")
    last = box_of(sheet.get_by_text("Close, cancel, clear the selection"))
    assert last["y"] + last["height"] <= 800
    here.press("?")
    expect(sheet).to_be_hidden()
    here.press("?", "Tab", "Shift+Tab", "Escape")  # the focus does not go behind it
    expect(sheet).to_be_hidden()
    here.has_focus(inside=True)


def test_every_key_of_the_table_is_what_the_editor_reads_from_the_keyboard(page: Page) -> None:
    open_modules(page)
    commands, specs = page.evaluate(
        """async (keys) => {
            const { COMMANDS } = await import("/commands.js");
            const { specOf } = await import("/keys.js");
            const read = keys.map((spec) => {
                const parts = spec.split("+");
                const name = parts.pop();
                const shiftKey = parts.includes("Shift") || /^[A-Z?{}]$/.test(name);
                const letter = shiftKey && /^[a-z]$/.test(name) ? name.toUpperCase() : name;
                return specOf({ key: name === "Space" ? " " : letter, shiftKey,
                                ctrlKey: parts.includes("Ctrl"), altKey: parts.includes("Alt") });
            });
            return [Object.keys(COMMANDS), read];
        }""",
        [spec for key in KEYS for spec in key.keys],
    )
    assert set(commands) == {key.command for key in ADJUDICATION_KEYS}
    assert {key.command for key in KEYS} < set(commands)
    assert specs == [spec for key in KEYS for spec in key.keys]


def test_100_000_characters_with_2_000_spans_open_and_take_keys(desk: Sit) -> None:
    """Long texts with many predictions open and select."""
    record = long_record("long", 100_000, 2_000)
    here = desk([record])
    whole = here.page.evaluate(
        """() => [...document.querySelectorAll(".sl-p")].map((p) => p.textContent).join("\\n")"""
    )
    assert whole == record.item.answer
    here.press("a", "x", "Tab", "End", "Shift+Home", "d")
    here.settle()
    state = here.state("long")
    assert len(state.spans) == 2
    assert len(state.rejected) == 1
    here.press("A", "a")  # so many at once are asked about
    here.settle()
    likely = sum(span.prob > 0.5 for one in record.annotations for span in one.spans)
    assert 500 < len(here.state("long").spans) <= likely + 2
    # The list draws what can be seen, not two thousand rows.
    here.until(
        """() => {
            const rows = document.querySelectorAll(".sl-row").length;
            return 0 < rows && rows < 60;
        }"""
    )
    # In a narrow window, too, also one that is magnified by a half, eight lines of it are in sight,
    # of larger letters as well.
    for width, height, larger in ((900, 800, 0), (600, 534, 0), (600, 534, 2)):
        for _ in range(larger):
            here.page.get_by_role("button", name="A+").click()
        here.page.set_viewport_size({"width": width, "height": height})
        here.until(
            """() => {
                const box = (name) => document.querySelector(name).getBoundingClientRect();
                document.querySelector(".sl-answer").scrollIntoView({ block: "nearest" });
                const [answer, main] = [box(".sl-answer"), box(".sl-main")];
                const bottom = Math.min(answer.bottom, main.bottom, innerHeight);
                const style = getComputedStyle(document.querySelector(".sl-p"));
                const height = bottom - Math.max(answer.top, main.top);
                return height / parseFloat(style.lineHeight) >= 8;
            }"""
        )
