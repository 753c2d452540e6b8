"""Claims in Review: their verdicts, their words, their evidence, and the way to the sources."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pytest
from driving import REVIEWER, Desk, becomes, nodes_of
from playwright.sync_api import expect
from steps import step

from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Evidence,
    Item,
    NodeQuote,
    Passage,
    Process,
    ProcessNode,
    Record,
    Span,
)

pytestmark = pytest.mark.browser

Sit = Callable[[Sequence[Record]], Desk]

ANSWER = "🎉 Marie Curie was born in Paris. She won two Nobel Prizes."
BORN, WON = "🎉 Marie Curie was born in Paris.", "She won two Nobel Prizes."
PASSAGE = "She was born in Warsaw. She won two Nobel Prizes."
EVIL = "<img src=x onerror='window.owned=1'>"


def part(text: str) -> Span:
    start = ANSWER.index(text)
    return Span.of(ANSWER, start, start + len(text))


def said(text: str, stance: str) -> Evidence:
    start = PASSAGE.index(text)
    return Evidence.model_validate(
        {
            "passage": 0,
            "start": start,
            "end": start + len(text),
            "text": text,
            "stance": stance,
        }
    )


WARSAW = said("She was born in Warsaw.", "refutes")
FIRST = Claim(
    text="Marie Curie was born in Paris.",
    source=part(BORN),
    verdict="refuted",
    prob=0.9,
    evidence=(WARSAW,),
    note="It was Warsaw.",
)
SECOND = Claim(text="Marie Curie won two Nobel Prizes.", source=part(WON), verdict="supported")
CURIE = Item(
    id="curie", lang="en", question="Who?", answer=ANSWER, passages=(Passage(text=PASSAGE),)
)
CHECKED = Annotation(annotator="checker", kind=AnnotatorKind.DETECTOR, claims=(FIRST, SECOND))


def mine(here: Desk, item: str = "curie") -> Annotation:
    here.settle()
    annotation = here.store.record(here.dataset, item).by(REVIEWER)
    assert annotation is not None
    return annotation


def has_chips(here: Desk, *verdicts: str) -> None:
    expect(here.page.locator(".sl-claim .sl-verdict")).to_have_text(verdicts)


def chosen(here: Desk, text: str) -> None:
    expect(here.page.locator('.sl-claim[aria-selected="true"]')).to_contain_text(text)


def lights(here: Desk, text: str) -> None:
    """Wait until these words of the answer belong to the chosen claim."""
    lit = """() => [...(CSS.highlights.get("sl-claim") ?? [])].map(String).join()"""
    becomes(lambda: here.page.evaluate(lit), text)


def test_verdicts_are_accepted_corrected_rejected_and_undone_by_key(desk: Sit) -> None:
    here = desk([Record(item=CURIE, annotations=(CHECKED,))])
    here.press("l")
    chosen(here, FIRST.text)
    has_chips(here, "✕ refuted", "✓ supported")
    lights(here, BORN)
    expect(here.page.locator(".sl-passages mark")).to_have_text(WARSAW.text)
    here.press("a")
    chosen(here, SECOND.text)
    lights(here, WON)
    here.press("6")
    taken, corrected = mine(here).claims
    assert (taken.verdict, taken.evidence, taken.suggested_by) == ("refuted", (WARSAW,), "checker")
    assert (corrected.text, corrected.verdict) == (SECOND.text, "inconclusive")
    here.press("ArrowUp", "x")
    assert [claim.text for claim in mine(here).claims] == [SECOND.text]
    (refused,) = mine(here).rejected_claims
    assert (refused.text, refused.verdict, refused.prob) == (FIRST.text, "refuted", 0.9)
    here.press("u")
    assert [claim.text for claim in mine(here).claims] == [FIRST.text, SECOND.text]
    assert mine(here).rejected_claims == ()
    here.press("Escape")
    here.has_focus(inside=True)
    here.page.reload()
    here.wait_for("curie")
    here.press("l")
    expect(here.page.locator(".sl-claim.sl-row-own")).to_have_count(2)
    has_chips(here, "✕ refuted", "~ inconclusive")


def test_a_claim_is_written_by_mouse_where_there_is_none_yet(desk: Sit) -> None:
    silent = Annotation(annotator="checker", kind=AnnotatorKind.DETECTOR)
    here = desk([Record(item=CURIE, annotations=(silent,))])
    expect(here.page.get_by_role("tab", name="Claims")).to_be_hidden()
    here.page.get_by_role("button", name="Claims").click()
    expect(here.page.get_by_role("tab", name="Claims")).to_be_visible()
    here.page.get_by_role("button", name="Write a claim").click()
    here.page.keyboard.type("She won two.")
    here.press("Enter")
    chosen(here, "She won two.")


def test_a_claim_of_ones_own_is_written_about_what_is_selected(desk: Sit) -> None:
    here = desk([Record(item=CURIE)])
    here.press("Home", "Control+ArrowRight", "w", "w", "l", "w")
    here.page.keyboard.type(" is somebody")
    here.press("Home")
    here.page.keyboard.type("x")
    here.press("Backspace", "End", "Enter")
    chosen(here, "is somebody")
    here.press("1")
    here.press("c")
    here.page.keyboard.type("well known")
    here.press("Enter")
    (claim,) = mine(here).claims
    assert claim.text.endswith("is somebody")
    assert (claim.verdict, claim.note, claim.suggested_by) == ("supported", "well known", None)
    assert claim.source is not None
    lights(here, claim.source.text)
    here.press("r")
    here.page.keyboard.type("She is known.")
    here.press("Enter")
    chosen(here, "She is known.")
    assert [claim.text for claim in mine(here).claims] == ["She is known."]
    here.press("Delete")
    expect(here.page.locator(".sl-claim")).to_have_count(0)
    assert mine(here).claims == ()


def test_a_mouse_can_do_it_too(desk: Sit) -> None:
    here = desk([Record(item=CURIE, annotations=(CHECKED,))])
    here.page.get_by_role("tab", name="Claims").click()
    here.page.click(f".sl-claim:has-text('{SECOND.text}')")
    lights(here, WON)
    here.page.get_by_role("button", name=re.compile("conflicting")).click()
    here.page.click(f".sl-claim:has-text('{FIRST.text}')")
    here.page.click(".sl-claim-tools [data-command=acceptClaim]")
    assert [claim.verdict for claim in mine(here).claims] == ["conflicting", "refuted"]


def test_claims_of_several_annotators_are_one_row_and_hostile_text_stays_text(desk: Sit) -> None:
    other = Annotation(
        annotator="other",
        kind=AnnotatorKind.DETECTOR,
        claims=(
            FIRST.model_copy(update={"verdict": "conflicting", "evidence": ()}),
            Claim(text=EVIL, note=EVIL, error_stages=(EVIL,)),
        ),
    )
    here = desk([Record(item=CURIE, annotations=(CHECKED, other))])
    here.press("l")
    has_chips(here, "✕ refuted", "≠ conflicting", "✓ supported", "– no verdict")
    here.press("4")  # the other's verdict
    (claim,) = mine(here).claims
    assert (claim.verdict, claim.suggested_by) == ("conflicting", "other")
    here.press("ArrowUp", "ArrowUp")
    chosen(here, EVIL)
    assert here.page.evaluate("window.owned") is None


NODES = (
    ProcessNode(id="chapter 1", text="Mary met Peter. They went home.", stage="chapter"),
    ProcessNode(id="chapter 2", text="It rained. Nobody came.", stage="chapter"),
    *(ProcessNode(id=f"chapter {n}", text="Nothing.", stage="chapter") for n in range(3, 13)),
    ProcessNode(
        id="summary",
        text="Mary met Paul. It rained.",
        stage="summary",
        sources=tuple(f"chapter {n}" for n in range(1, 13)),
    ),
    ProcessNode(id="book", text="Mary met Paul.", stage="book", sources=("summary",)),
)
TOLD = Item(
    id="told", lang="en", question="What?", answer="Mary met Paul.", process=Process(nodes=NODES)
)
WRONG = Annotation(
    annotator="veritrail",
    kind=AnnotatorKind.DETECTOR,
    claims=(
        Claim(
            text="Mary met Paul.",
            source=Span.of("Mary met Paul.", 0, 14),
            verdict="not-supported",
            prob=0.8,
            note="She met Peter.",
            error_stages=("summary",),
        ),
    ),
    trace=(
        step(
            "trail",
            claim=0,
            round=1,
            checked=("summary",),
            quotes=(NodeQuote(node="summary", start=0, end=14, text="Mary met Paul."),),
            summaries=("They met.",),
            verdict="supported",
            reason="The summary says so.",
        ),
        step(
            "trail",
            claim=0,
            round=2,
            checked=tuple(f"chapter {n}" for n in range(1, 13)),
            quotes=(NodeQuote(node="chapter 1", start=0, end=15, text="Mary met Peter."),),
            verdict="not-supported",
            reason="She met Peter.",
        ),
    ),
)


@pytest.mark.system("veritrail")
def test_the_trail_shows_stages_quotes_verdicts_and_where_the_error_came_in(desk: Sit) -> None:
    here = desk([Record(item=TOLD, annotations=(WRONG,))])
    here.press("l")
    picture = here.page.locator(".sl-picture")
    for text in (
        "chapter",
        "12 of 12 read",
        "11 not on the path",
        "“Mary met Peter.”",
        "the claim: ✕ not supported",
        "Round 2: 12 texts read, ✕ not supported",
    ):
        expect(picture.locator("text", has_text=text).first).to_be_visible()
    becomes(lambda: nodes_of(here.page), ["chapter 1", "summary", "book"])
    expect(picture.locator("[data-node]").nth(1)).to_have_class(re.compile("error"))
    expect(picture.locator(".error-word")).to_have_count(1)
    here.press("Enter")
    read = here.page.locator(".sl-trail-read")
    expect(read).to_contain_text("book (stage book)")
    here.press("ArrowLeft")
    expect(read).to_contain_text("summary (stage summary) Mary met Paul.")
    here.press("ArrowLeft")
    expect(read).to_contain_text("chapter 1 (stage chapter) Mary met Peter.")
    here.press("ArrowRight", "ArrowRight")
    expect(read).to_contain_text("book")
    here.press("Escape")
    chosen(here, "Mary met Paul.")
    for ending, begins in (("SVG", b"<svg"), ("PNG", b"\x89PNG")):
        with here.page.expect_download() as caught:
            here.page.get_by_role("button", name=f"Save the picture as {ending}").click()
        assert caught.value.suggested_filename == f"told claim 1.{ending.lower()}"
        assert caught.value.path().read_bytes().startswith(begins)


@pytest.mark.system("veritrail")
def test_passages_without_a_process_are_a_trail_of_one_step(desk: Sit) -> None:
    trail = step(
        "trail",
        claim=0,
        round=1,
        checked=("passage 1",),
        quotes=(NodeQuote(node="passage 1", start=0, end=23, text=WARSAW.text),),
        verdict="not-supported",
    )
    here = desk([Record(item=CURIE, annotations=(CHECKED.model_copy(update={"trace": (trail,)}),))])
    here.press("l")
    becomes(lambda: nodes_of(here.page), ["passage 1", "answer"])
