"""What is typed after a key that opens a field goes into that field, however late it comes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest
from driving import DETECTOR, REVIEWER, Desk
from modules import open_modules
from playwright.sync_api import Page, expect
from serving import arrive

from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    Passage,
    Question,
    Record,
    Span,
)

pytestmark = pytest.mark.browser

Sit = Callable[..., Desk]

TYPED = "Which axD1?"  # each letter of the end is a command, D of the worst kind
# What a busy page does "at once" comes after the keys that wait: here when a test says so.
LATE = """() => {
    const { setTimeout } = globalThis;
    globalThis.late = [];
    globalThis.setTimeout = (act, wait, ...given) => (
        wait ? setTimeout(act, wait, ...given) : late.push(() => act(...given)));
    globalThis.catchUp = () => {
        Object.assign(globalThis, { setTimeout });
        late.forEach((act) => act());
    };
}"""
VERSION = "() => spanlab.editor.item.history.version"


@dataclass(frozen=True)
class Opener:
    """A key that opens a field, what leads to where it does, and the field."""

    key: str
    field: str
    before: tuple[str, ...] = ()
    page: str = ""

    @property
    def is_of_a_part(self) -> bool:
        """It means something to a claim or a question, which another item has others of."""
        return bool(self.before) and self.key != "w"


PROMPT, CHOOSER = ".sl-ask input", ".sl-chooser input"
OPENERS = {
    "comment": Opener("c", PROMPT),
    "commentItem": Opener("C", PROMPT),
    "findEvidence": Opener("f", ".sl-find input"),
    "items": Opener("/", ".sl-items input"),
    "findLabel": Opener("L", CHOOSER),
    "findLane": Opener("F", CHOOSER, page="adjudicate"),
    "commentClaim": Opener("c", PROMPT, ("l", "a")),
    "writeClaim": Opener("w", PROMPT, ("l",)),
    "rewordClaim": Opener("r", PROMPT, ("l", "w", "M", "Enter")),
    "findResponse": Opener("Enter", PROMPT, ("Q",)),
}


def _records() -> list[Record]:
    people, detector = AnnotatorKind.PERSON, AnnotatorKind.DETECTOR
    claims = (Claim(text="It is tall.", verdict="refuted"),)
    passages = (Passage(text="A tower."),)
    items = [Item(id=f"i{n}", answer="A tall tower.", passages=passages) for n in range(8)]

    def by(name: str, kind: AnnotatorKind, item: Item, text: str) -> Annotation:
        start = item.answer.index(text)
        spans = (Span.of(item.answer, start, start + len(text)),)
        return Annotation(annotator=name, kind=kind, spans=spans, claims=claims)

    marks = (("Ann", people, "tall"), ("Ben", people, "tower"), (DETECTOR, detector, "tall"))
    return [
        Record(
            item=item, annotations=tuple(by(name, kind, item, text) for name, kind, text in marks)
        )
        for item in items
    ]


def test_every_command_that_opens_a_field_is_tried(page: Page) -> None:
    open_modules(page)
    assert set(page.evaluate("async () => [...(await import('/keys.js')).FIELDS]")) == set(OPENERS)


@pytest.mark.parametrize("opener", OPENERS.values(), ids=OPENERS)
def test_what_is_typed_after_a_key_is_in_its_field_and_does_nothing_else(
    desk: Sit, opener: Opener
) -> None:
    here = desk(_records(), opened=False, questions=(Question(name="why", kind="text"),))
    query = here.server.url(dataset=here.dataset, reviewer=REVIEWER).partition("/?")[2]
    arrive(here.page, here.server.url().replace("/?", f"/{opener.page}?{query}"))
    here.wait_for("i0")
    here.knows_what_is_next()
    here.press(*opener.before)
    here.settle()
    _with_focus_taken_away(here, opener)
    _while_an_item_opens(here, opener)


def _with_focus_taken_away(here: Desk, opener: Opener) -> None:
    """A click gives the focus back to the answer, on a busy page after the next keys."""
    version = here.page.evaluate(VERSION)
    field = here.page.locator(opener.field)
    here.page.evaluate(LATE)
    here.page.locator(".sl-threshold").dispatch_event("pointerup")
    here.page.locator(".sl-answer").dispatch_event("pointerdown", {"button": 0})
    here.page.locator(".sl-answer").dispatch_event("pointerup")
    here.press(opener.key)
    here.page.evaluate("catchUp()")
    expect(field).to_be_focused()
    here.page.keyboard.type(TYPED[:4])
    here.page.evaluate("document.querySelector('.sl-answer').focus()")  # whatever else does so
    here.page.keyboard.type(TYPED[4:7])
    here.page.evaluate("document.activeElement.blur()")
    here.page.keyboard.type(TYPED[7:])
    expect(field).to_have_value(TYPED)
    expect(field).to_be_focused()
    here.page.focus(".sl-answer")
    here.press("Escape")
    expect(field).to_be_hidden()
    assert here.page.evaluate(VERSION) == version


def _while_an_item_opens(here: Desk, opener: Opener) -> None:
    """Python hears of the item that is wanted only after all was typed."""
    here.press(*opener.before[:1])
    here.page.evaluate("globalThis.python = spanlab.component.setStateValue")
    here.page.evaluate("spanlab.component = { ...spanlab.component, setStateValue() {} }")
    here.page.evaluate("spanlab.editor.navigation.jump('i7')")
    here.press(opener.key)
    here.page.keyboard.type(TYPED + "!")
    here.press("Backspace")
    here.page.evaluate("spanlab.component.setStateValue = python")
    here.wait_for("i7")
    if opener.is_of_a_part:  # of the item before
        here.hears(f"Not entered, as no field has opened: “{TYPED}!”")
    else:
        expect(here.page.locator(f"{opener.field}:visible")).to_have_value(TYPED)
    here.settle()
    assert here.page.evaluate(VERSION) == 0
