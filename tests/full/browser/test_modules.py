"""The editor's modules by themselves, as a browser loads the files that are shipped."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import pytest
from driving import Desk
from modules import FOLDER, open_modules
from playwright.sync_api import Page

from spanlab.review.span_editor import script
from spanlab.schema import Item, Record

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]
NAMES = sorted(file.name for file in FOLDER.iterdir())


def test_every_module_loads_with_what_it_imports(page: Page) -> None:
    open_modules(page)
    exports = page.evaluate(
        """async (names) => Promise.all(names.map(async (name) =>
            Object.keys(await import(`/${name}`)).length))""",
        NAMES,
    )
    assert all(exports), dict(zip(NAMES, exports, strict=True))


def test_the_script_that_streamlit_mounts_holds_every_module_and_exports_mount(page: Page) -> None:
    open_modules(page)
    mount = page.evaluate(
        """async (script) => {
            const url = URL.createObjectURL(new Blob([script], { type: "text/javascript" }));
            return (await import(url)).default.toString();
        }""",
        script(),
    )
    assert "new Editor(parentElement, data, wire)" in mount
    both = script() + script("unsaved.js")
    assert all(f'"{name}"' in both for name in NAMES)


def test_a_page_of_the_app_asks_for_no_module_by_address(desk: Sit) -> None:
    """All come in one message, so that an upgrade never leaves a page with some of each release."""
    here = desk([Record(item=Item(id="item", answer="text"))])
    asked = here.page.evaluate(
        """() => performance.getEntriesByType("resource")
            .map((entry) => new URL(entry.name).pathname)"""
    )
    assert asked
    assert not {path.rsplit("/")[-1] for path in asked} & set(NAMES)


def test_offsets_agree_with_python_in_a_long_text_of_all_planes(page: Page) -> None:
    dice = random.Random(7)
    text = "".join(dice.choice("aé漢🎉👩🏽‍🚀\u0301\r\n ") for _ in range(3_000))
    points = [*sorted(dice.sample(range(len(text)), 400)), len(text)]
    units = [len(text[:point].encode("utf-16-le")) // 2 for point in points]
    open_modules(page)
    found = page.evaluate(
        """async ([text, points, units]) => {
            const { Offsets } = await import("/offsets.js");
            const whole = new Offsets(text);
            return [points.map((point) => whole.unit(point)),
                    units.map((unit) => whole.point(unit)), whole.points];
        }""",
        [text, points, units],
    )
    assert found == [units, points, len(text)]


def test_lines_are_cut_without_losing_a_character(page: Page) -> None:
    text = "One.\r\n\r\n" + "A sentence of some length. " * 400 + "\n" + "漢" * 9_000 + "\rend"
    open_modules(page)
    lines = page.evaluate(
        """async (text) => {
            const { paragraphsOf } = await import("/paragraphs.js");
            return paragraphsOf(text).map(({ start, end, next }) =>
                [text.slice(start, end), text.slice(end, next)]);
        }""",
        text,
    )
    assert "".join(line + end for line, end in lines) == text
    assert max(len(line) for line, _ in lines) <= 4_000
    assert {end for _, end in lines} == {"\r\n", "\n", "\r", ""}


OUTBOX = """
async () => {
    const { Outbox } = await import("/outbox.js");
    const outbox = new Outbox();
    const sent = [];
    outbox.place = { dataset: "d", reviewer: "Ada" };
    outbox.exchange = () => sent.push(outbox.toSend().map((write) => write.seq));
    const add = (item) => outbox.add({ dataset: "d", reviewer: "Ada", item, op: {} });
    const soon = () => new Promise((done) => setTimeout(done));
    const { session } = outbox;
    %s
}
"""


def test_the_outbox_sends_in_order_and_once_at_a_time(page: Page) -> None:
    open_modules(page)
    sent, left = page.evaluate(
        OUTBOX
        % """
        add("a"); add("b"); add("a");
        await soon();
        add("a");
        await soon();
        outbox.settle({ session, seq: 1, stored: true });
        outbox.settle({ session, seq: 2, stored: true });
        outbox.settle({ session, seq: 9, stored: true });
        outbox.answered(outbox.attempt - 1);
        outbox.send();
        await soon();
        outbox.answered(outbox.attempt);
        outbox.send();
        await soon();
        return [sent, outbox.writes.map((write) => write.seq)];
        """
    )
    assert sent == [[1, 2, 3], [3, 4]]
    assert left == [3, 4]


def test_a_refused_write_holds_back_those_of_its_item_and_no_others(page: Page) -> None:
    open_modules(page)
    to_send, kept, dropped = page.evaluate(
        OUTBOX
        % """
        add("a"); add("b"); add("a");
        outbox.settle({ session, seq: 1, stored: false, stale: true, reason: "changed" });
        add("a");
        const ready = outbox.toSend().map((write) => write.seq);
        const kept = JSON.parse(localStorage.getItem(`spanlab.outbox.${session}`));
        return [ready, kept.map((write) => write.seq), outbox.drop("a").length];
        """
    )
    assert (to_send, kept, dropped) == ([2], [1, 2, 3, 4], 3)


def test_a_new_outbox_adopts_what_a_page_that_is_gone_left_behind(page: Page) -> None:
    open_modules(page)
    page.evaluate(OUTBOX % """add("a"); add("b");""")
    page.reload()
    items, sessions, left = page.evaluate(
        OUTBOX
        % """
        add("c");
        const { items } = await outbox.adopt();
        const mine = outbox.writes.map((write) => write.session === session);
        const keys = Object.keys(localStorage).filter((key) => key.startsWith("spanlab.outbox."));
        return [items, mine, keys.length];
        """
    )
    assert (items, sessions, left) == (["a", "b"], [True, False, False], 1)
