"""What the editor looks like in small windows and dark, and what it is called without eyes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import pytest
from driving import Desk, suggested, tells
from playwright.sync_api import Page, expect
from serving import PATIENCE, Server

from spanlab.schema import Item, Passage, Record
from spanlab.storage import Store

pytestmark = pytest.mark.browser

WORD = "Donaudampfschifffahrtsgesellschaftskapitänsmütze" * 4
ANSWER = f"One two three four five six. {WORD} ends here.\n\nhttps://example.org/{'a' * 200}"
ITEM = Item(
    id="long-" + "x" * 100,
    lang="de",
    question=f"What is a {WORD}?",
    answer=ANSWER,
    passages=(Passage(text=f"It is {WORD}.", title=WORD, url="https://example.org/" + "b" * 99),),
)
# Pairs of boxes that must not lie on one another, and boxes that must not be wider than their room.
OVERLAPS = """() => {
    const box = (query) => document.querySelector(query).getBoundingClientRect();
    const apart = (one, two) => one.bottom <= two.top + 1 || two.bottom <= one.top + 1
        || one.right <= two.left + 1 || two.right <= one.left + 1;
    const names = ["head", "question", "answer", "card", "pages"].map((name) => `.sl-${name}`);
    const wrong = [];
    names.forEach((one, index) => names.slice(index + 1).forEach((two) => {
        if (!apart(box(one), box(two))) wrong.push(`${one} on ${two}`);
    }));
    const buttons = [...document.querySelectorAll(".sl-actions button")];
    buttons.forEach((one, index) => buttons.slice(index + 1).forEach((two) => {
        if (!apart(one.getBoundingClientRect(), two.getBoundingClientRect())) {
            wrong.push(`${one.innerText} on ${two.innerText}`);
        }
    }));
    if (!apart(box(".sl-main"), box(".sl-actions"))) wrong.push("buttons on the text");
    const wide = document.documentElement;
    if (wide.scrollWidth > wide.clientWidth) wrong.push("the page scrolls sideways");
    for (const name of ["head", "answer", "question", "card", "passages", "panel-head", "main"]) {
        const node = document.querySelector(`.sl-${name}`);
        if (node.scrollWidth > node.clientWidth + 1) wrong.push(`${name} scrolls sideways`);
    }
    for (const node of document.querySelectorAll(".sl-actions button")) {
        const { left, right, bottom } = node.getBoundingClientRect();
        const whole = left >= 0 && right <= innerWidth && bottom <= innerHeight;
        if (!whole) wrong.push(`${node.innerText} is cut off`);
    }
    return wrong;
}"""
# Contrast of the text colour of each kind of text with the darkest or lightest it can stand on.
CONTRASTS = """() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const paint = (...colours) => {
        canvas.clearRect(0, 0, 1, 1);
        for (const colour of colours) {
            canvas.fillStyle = colour;
            canvas.fillRect(0, 0, 1, 1);
        }
        return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
    };
    const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    const light = (rgb) => [0.2126, 0.7152, 0.0722]
        .reduce((sum, share, index) => sum + share * linear(rgb[index] / 255), 0);
    const paper = getComputedStyle(document.querySelector(".sl-answer")).backgroundColor;
    const contrasts = {};
    const note = (name, node, pseudo) => {
        const image = getComputedStyle(node).backgroundImage;
        const tint = [...image.matchAll(/(?:color|rgba?)\\([^)]*\\)/g)].at(-1)?.[0];
        const under = tint ? paint(paper, tint) : paint(paper);
        const over = paint(getComputedStyle(node, pseudo).color);
        const [one, two] = [light(over), light(under)].sort((a, b) => b - a);
        contrasts[name] = Math.min(contrasts[name] ?? 21, (one + 0.05) / (two + 0.05));
        if (tint) contrasts.tints = 21;
    };
    document.querySelectorAll(".sl-seg").forEach((node) => note("marked text", node));
    const numbered = document.querySelectorAll(".sl-seg[data-n]");
    numbered.forEach((node) => note("numeral", node, "::before"));
    for (const name of ["question", "item", "tab", "title", "chip", "row-text", "saved", "sign"]) {
        note(name, document.querySelector(`.sl-${name}`));
    }
    return contrasts;
}"""


def test_nothing_overlaps_or_overflows_and_all_text_can_be_read(
    server: Server, store: Store, page: Page
) -> None:
    many = suggested(ITEM, [("One", 0.2), (WORD, 0.9), ("two three four", 0.5), ("three", 0.7)])
    others = suggested(ITEM, [("three four five", 0.8)], name="a-detector-with-a-long-name-" * 3)
    store.import_records("looks", [Record(item=ITEM, annotations=(many, others))])
    here = Desk(server, store, page, "looks")
    here.visit()
    contrasts = f"({CONTRASTS})()"
    schemes: tuple[Literal["dark", "light"], ...] = ("dark", "light")  # as the next test has it
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        expect(page.locator(".sl.sl-dark")).to_have_count(1 if scheme == "dark" else 0)
        for width, height in ((1280, 800), (900, 700), (420, 800)):
            page.set_viewport_size({"width": width, "height": height})
            _becomes(page, f"({OVERLAPS})()", (scheme, width, height))
        _becomes(page, f"'tints' in {contrasts} ? [] : ['no tints']", "tints")
        # WCAG AA
        _becomes(page, f"Object.entries({contrasts}).filter(([, value]) => value < 4.5)", scheme)


def _becomes(window: Page, complaints: str, what: object) -> None:
    """Wait until nothing is left to complain of, twice in a row: a layout takes its time."""
    until = time.monotonic() + PATIENCE / 1000
    before: object = None
    while True:
        found = window.evaluate(complaints)
        if found == before == []:
            return
        assert time.monotonic() < until, (what, found)
        before = found
        window.wait_for_timeout(100)


def test_everything_has_a_name_for_those_who_listen(desk: Callable[..., Desk]) -> None:
    item = Item(
        id="one",
        lang="en",
        question="Who?",
        answer="Ann and Bob.",
        passages=(Passage(text="Ann."),),
    )
    here = desk([Record(item=item, annotations=(suggested(item, [("Bob", 0.75)]),))])
    here.press("c")
    here.page.keyboard.type("no Bob")
    here.press("Enter")
    here.settle()
    here.hears("Comment saved.")
    tells(
        here.page,
        'application "Answer under review. Press question mark for the keys.": Ann and Bob.',
        'region "Evidence"',
        'tab "Evidence 1" [selected]',
        'group "Label"',
        'button "wrong name"',
        'button "Done"',
        "status: Comment saved.",
    )
    here.press("v")
    tells(
        here.page,
        'tab "Spans 1" [selected]',
        'listbox "Spans"',
        'option "“Bob”, suggestion, probability 75 %, by detector-a" [selected]',
        'group "Suggestions shown"',
        'button "detector-a detector · 1 span" [pressed]',
    )
    unnamed = here.page.evaluate(
        """() => ["button", "input", "select", "[tabindex='0']"]
            .flatMap((kind) => [...document.querySelectorAll(`.sl ${kind}`)])
            .filter((node) => node.checkVisibility())
            .filter((node) => !(node.getAttribute("aria-label") || node.textContent.trim()))
            .map((node) => node.outerHTML)"""
    )
    assert unnamed == []


def test_escape_then_tab_leaves_the_text_however_many_spans_it_has(
    desk: Callable[..., Desk],
) -> None:
    item = Item(id="one", answer="one, two, three")
    here = desk([Record(item=item, annotations=(suggested(item, [("one", 0.6), ("two", 0.6)]),))])
    here.press("Escape", "Tab")
    here.has_focus(inside=False)
    here.page.focus(".sl-answer")
    here.press("Tab")
    here.hears("one")
    here.has_focus(inside=True)
