"""Adjudication in a real browser: lanes, what keys take from them, and what is stored."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from driving import REVIEWER, Desk, HeldLine, idle, suggested
from playwright.sync_api import expect
from rebuilt import rebuilt
from serving import PATIENCE, arrive, patient

from spanlab.oplog.state import ReviewState
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Item,
    Record,
    Span,
    Status,
    Verdict,
)

pytestmark = pytest.mark.browser

Sit = Callable[..., Desk]
CURIE = "She was born in Paris. 🎉She won two Nobel Prizes."
ANSWER = "🎉 The tower in Paris has 330 floors and 5 lifts."
TARGET = "adjudicated"


def _by(name: str, *texts: str, note: str | None = None) -> Annotation:
    starts = [(ANSWER.index(text), text) for text in texts]
    spans = tuple(
        Span.of(ANSWER, start, start + len(text), label="wrong number") for start, text in starts
    )
    return Annotation(annotator=name, kind=AnnotatorKind.PERSON, spans=spans, note=note)


def _split(name: str) -> Record:
    """An item that two people disagree on."""
    item = Item(id=name, lang="en", answer=ANSWER)
    return Record(item=item, annotations=(_by("Ann", "330"), _by("Ben", "tower")))


def _records() -> list[Record]:
    """An item that three people disagree on, and one on which they agree."""
    split, agreed = (Item(id=name, lang="en", answer=ANSWER) for name in ("split", "agreed"))
    skipped = Annotation(annotator="Eve", kind=AnnotatorKind.PERSON, status=Status.SKIPPED)
    return [
        Record(item=agreed, annotations=tuple(_by(name, "5") for name in ("Ann", "Ben", "Cleo"))),
        Record(
            item=split,
            annotations=(
                suggested(split, [("lifts", 0.9), ("Paris", 0.2)]),
                _by("Ann", "330", note="I looked it up"),
                _by("Ben", "330 floors"),
                _by("Cleo", "tower", "has 330"),
                skipped,
            ),
        ),
        Record(item=Item(id="unfinished", answer=ANSWER), annotations=(_by("Ann"),)),
    ]


@pytest.fixture
def bench(desk: Sit) -> Desk:
    """Ada at the Adjudicate page, the most disagreed item open."""
    here = desk(_records(), opened=False)
    arrive(here.page, _address(here))
    here.wait_for("split")
    return here


def _address(here: Desk, reviewer: str = REVIEWER) -> str:
    query = here.server.url(dataset=here.dataset, reviewer=reviewer).partition("/?")[2]
    return here.server.url().replace("/?", f"/adjudicate?{query}")


def _state(here: Desk, item: str = "split") -> ReviewState:
    state = here.store.review(here.dataset, item, TARGET, AnnotatorKind.GOLD).state
    assert state == rebuilt(here.store, here.dataset, item, TARGET, AnnotatorKind.GOLD)
    return state


def _decided(here: Desk) -> list[tuple[str, str | None, tuple[str, ...]]]:
    here.settle()
    spans = sorted(_state(here).spans.values(), key=lambda span: span.start)
    return [(span.text, span.source, span.voters) for span in spans]


def test_items_come_by_disagreement_with_a_lane_for_everybody_who_has_finished(
    bench: Desk,
) -> None:
    lanes = bench.page.locator(".sl-lane")
    expect(lanes.locator("b")).to_have_text(["Ann", "Ben", "Cleo", "detector-a"])
    expect(lanes.first).to_contain_text("I looked it up")
    # The numbers of the lanes stand where their spans begin, and each has its own line.
    numbers = bench.page.eval_on_selector_all(
        ".sl-seg[data-lanes]",
        "nodes => nodes.map((node) => [node.textContent, node.dataset.lanes])",
    )
    assert [number for _, number in numbers] == ["3", "3", "1·2", "4"]
    inner = bench.page.locator(".sl-seg", has_text="330").first
    for lane in (1, 2, 3):
        expect(inner).to_have_attribute("style", re.compile(f"--sl-lane-{lane}"))
    bench.press("PageDown")
    bench.wait_for("agreed")
    bench.press("PageDown")  # "unfinished" has only one person's annotation
    bench.hears("That was the last item here.")


def test_what_review_has_to_say_on_the_way_to_another_page_does_not_empty_it(desk: Sit) -> None:
    here = desk(_records())
    here.page = patient(here.page.context.new_page())  # which nobody uses after the line was held
    line = HeldLine(here.page)
    here.visit()
    here.wait_for("agreed")
    here.settle()
    idle(here.page)
    here.page.get_by_test_id("stTopNav").get_by_text("Team", exact=True).click()
    link = here.page.get_by_role("menuitem", name="Adjudicate").first
    link.wait_for()
    line.hold()
    link.click()
    here.page.evaluate("() => spanlab.outbox.send()")  # of Review's editor, which is still there
    here.page.wait_for_timeout(1000)  # for Python to answer that, if it has been sent
    line.release()
    lanes = here.page.locator(".sl-lane")
    expect(lanes.first).to_be_visible()
    here.page.wait_for_timeout(500)
    expect(lanes).to_have_count(4)


def test_keys_take_one_lane_the_majority_the_union_or_nothing_and_undo_leads_back(
    bench: Desk,
) -> None:
    three = ("Ann", "Ben", "Cleo")
    bench.press("3")
    assert _decided(bench) == [("tower", "Cleo", ()), ("has 330", "Cleo", ())]
    bench.press("m")
    majority = [("330", "majority", three)]
    assert _decided(bench) == majority
    bench.press("+")
    union = [("tower", "union", ("Cleo",)), ("has 330 floors", "union", three)]
    assert _decided(bench) == union
    bench.press("-")
    assert _decided(bench) == []
    bench.press("u", "u")
    assert _decided(bench) == majority
    bench.page.reload()
    bench.wait_for("split")
    bench.press("u", "4")
    assert _decided(bench) == [("lifts", "detector-a", ())]
    bench.press("5")
    bench.hears("There is no lane 5.")


def test_names_are_hidden_on_request_in_an_order_that_tells_nothing(desk: Sit) -> None:
    people = [f"Person {n}" for n in range(1, 6)]
    items = [Item(id=f"item-{n}", answer=ANSWER) for n in range(4)]
    here = desk(
        [
            Record(item=item, annotations=tuple(_by(name, "330") for name in people))
            for item in items
        ],
        opened=False,
    )
    arrive(here.page, _address(here))
    here.wait_for("item-0")
    lanes = here.page.locator(".sl-left .sl-lane b")
    expect(lanes).to_have_text(people)
    toggle = here.page.get_by_role("button", name="Hide names")
    toggle.click()
    expect(toggle).to_have_attribute("aria-pressed", "true")
    expect(lanes).to_have_text(["A", "B", "C", "D", "E"])
    expect(here.page.locator(".sl")).not_to_contain_text("Person")
    here.press("j")
    here.hears("by A, B, C, D, E")
    takers = []
    for item in items:
        here.wait_for(item.id)
        here.press("1")
        here.hears("Taken from A")
        here.settle()
        (span,) = _state(here, item.id).spans.values()
        takers.append(span.source)  # what is stored has the name
        here.press("PageDown")
    assert set(takers) <= set(people)
    assert len(set(takers)) > 1  # another order on another item …
    here.page.reload()
    here.wait_for(items[-1].id)
    here.press("1")
    here.settle()
    (span,) = _state(here, items[-1].id).spans.values()
    assert span.source == takers[-1]  # … and the same on the same one
    toggle.click()
    expect(lanes).to_have_text(people)


def test_what_all_agree_on_is_taken_at_once_and_taken_back_as_one(desk: Sit) -> None:
    here = desk(_records(), opened=False)
    arrive(here.page, _address(here))
    here.wait_for("split")
    here.page.get_by_role("button", name="Adopt unanimous items").click()
    dialog = here.page.get_by_role("dialog")
    expect(dialog).to_contain_text("labels: 1 item, 0 of them without any span")
    dialog.get_by_role("button", name="Adopt 1 item").click()
    expect(here.page.get_by_text("1 item adopted")).to_be_visible()
    here.wait_for("split")
    here.press("1")  # the editor goes on where it was
    assert _decided(here) == [("330", "Ann", ())]
    here.press("PageDown")
    here.wait_for("agreed")
    here.shows_status("done")
    expect(here.page.locator(".sl-own")).to_have_text(["5"])
    here.page.reload()
    here.wait_for("agreed")
    here.page.get_by_role("button", name="Undo all").click()
    here.shows_status("not-annotated")
    expect(here.page.locator(".sl-own")).to_have_count(0)
    here.focus_rests()  # the page is drawn anew meanwhile
    here.press("2")
    here.settle()
    assert [span.source for span in _state(here, "agreed").spans.values()] == ["Ben"]
    expect(here.page.locator(".sl-banner")).to_be_hidden()
    assert _decided(here) == [("330", "Ann", ())]


def test_what_is_decided_while_adopted_items_are_undone_leads_on(desk: Sit) -> None:
    here = desk([*_records(), _split("split-2")], opened=False)
    here.page = patient(here.page.context.new_page())  # which nobody uses after the line was held
    line = HeldLine(here.page)
    arrive(here.page, _address(here))
    here.wait_for("split-2")
    here.page.get_by_role("button", name="Adopt unanimous items").click()
    here.page.get_by_role("dialog").get_by_role("button", name="Adopt 1 item").click()
    undo = here.page.get_by_role("button", name="Undo all")
    undo.wait_for()
    here.knows_what_is_next()
    line.hold()
    undo.click()
    line.wait_for(b'"decided_at_once": 2')
    here.focus_rests()
    here.press("1", "Enter")
    here.wait_for("split")
    line.release()
    here.until("() => spanlab.editor.navigation.place.decided_at_once === 2")
    here.settle()
    here.wait_for("split")
    assert _state(here, "split-2").status is Status.DONE


def test_a_decision_is_kept_with_who_decided_and_leaves_everybodys_annotation_alone(
    bench: Desk,
) -> None:
    before = bench.store.record(bench.dataset, "split").annotations
    bench.page.locator(".sl-lane", has_text="Ben").click()
    bench.drag_over("and")
    bench.press("Alt+2")
    bench.press("Enter")
    bench.wait_for("agreed")
    bench.settle()
    expect(bench.page.locator(".sl-progress-text")).to_contain_text("1 of")
    after = bench.store.record(bench.dataset, "split")
    assert after.annotations[: len(before)] == before
    decided = after.by(TARGET)
    assert decided is not None
    assert (decided.kind, decided.status, decided.decided_by) == (
        AnnotatorKind.GOLD,
        Status.DONE,
        REVIEWER,
    )
    assert [(span.text, span.source) for span in decided.spans] == [
        ("330 floors", "Ben"),
        ("and", None),
    ]
    assert decided.rejected == ()  # what was not taken is not refused one by one
    assert decided.spans[1].label is not None


PEOPLE = [f"Person {n:02}" for n in range(1, 12)]
BORN = Claim(text="She was born in Paris.", source=Span.of(CURIE, 0, 23))
WON = Claim(text="She won two Nobel Prizes.", source=Span.of(CURIE, 24, 49))


def _judged(name: str, born: Verdict, won: Verdict | None) -> Annotation:
    claims = [BORN.model_copy(update={"verdict": born})]
    claims += [] if won is None else [WON.model_copy(update={"verdict": won})]
    return Annotation(annotator=name, kind=AnnotatorKind.PERSON, claims=tuple(claims))


def test_verdicts_on_claims_are_taken_from_one_the_majority_or_all_of_more_than_nine(
    desk: Sit,
) -> None:
    annotations = (
        *(_judged(name, "refuted", "supported") for name in PEOPLE[:6]),
        *(_judged(name, "supported", "refuted") for name in PEOPLE[6:9]),
        *(_judged(name, "conflicting", None) for name in PEOPLE[9:]),
    )
    here = desk(
        [Record(item=Item(id="curie", answer=CURIE), annotations=annotations)], opened=False
    )
    arrive(here.page, _address(here))
    here.wait_for("curie")

    def decided() -> list[tuple[str, str | None, str | None, int]]:
        here.settle()
        claims = _state(here, "curie").claims.values()
        return [(c.text, c.verdict, c.suggested_by, len(c.voters)) for c in claims]

    here.press("l")
    chips = here.page.locator(".sl-claim-side .sl-lane b")
    said_of = here.page.locator(".sl-claim").first.locator(".sl-claim-said")
    expect(said_of).to_have_text(["1·2·3·4·5·6✕ refuted", "7·8·9✓ supported", "+2≠ conflicting"])
    here.press("m")
    born, won = (BORN.text, "refuted", "majority", 6), (WON.text, "supported", "majority", 6)
    assert decided() == [born, won]
    here.press("7")
    seventh = [(BORN.text, "supported", PEOPLE[6], 0), (WON.text, "refuted", PEOPLE[6], 0)]
    assert decided() == seventh
    here.press(")", "2")
    assert decided() == [(BORN.text, "conflicting", PEOPLE[10], 0)]
    expect(chips).to_have_text(PEOPLE[9:])
    here.press("+", "k", "Alt+4", "Alt+3")  # a verdict on one claim: others give it, or nobody
    assert decided() == [
        (*won[:2], "union", 6),
        (BORN.text, "not-enough-evidence", PEOPLE[9], 0),
    ]
    here.press("-")
    assert decided() == []
    here.press("u", "u", "u", "u", "u")
    assert decided() == seventh
    here.press("(")
    expect(chips).to_have_text(PEOPLE[:9])
    here.press("F", *"son 11")  # the lane of somebody is found by the name, and the keys go on
    expect(here.page.get_by_role("listbox", name="Annotators")).to_have_text(
        "Person 110 spans, 1 claim"
    )
    here.press("Enter")
    expect(chips).to_have_text(PEOPLE[9:])
    here.press("2")
    assert decided() == [(BORN.text, "conflicting", PEOPLE[10], 0)]
    here.page.get_by_role("button", name="Majority of 11 people").last.click()
    here.press("Escape", "Enter")
    here.settle()
    gold = here.store.record(here.dataset, "curie").by(TARGET)
    assert gold is not None
    assert (gold.decided_by, [claim.voters for claim in gold.claims]) == (
        REVIEWER,
        [tuple(PEOPLE[:6])] * 2,
    )
    # What was decided leaves by the link beside the queue.
    exported = here.page.get_by_role("link", name="Export").last
    expect(exported).to_have_attribute("href", re.compile(f"dataset={here.dataset}"))


def test_review_under_the_same_name_goes_on_in_a_log_of_its_own(bench: Desk) -> None:
    bench.press("1")
    assert _decided(bench) == [("330", "Ann", ())]
    bench.page.get_by_role("link", name="Review").first.click()
    bench.page.wait_for_selector(".sl .sl-p", state="attached", timeout=PATIENCE)
    expect(bench.page.locator(".sl-left .sl-lanes")).to_be_hidden()
    bench.visit("split")
    bench.press("A")
    bench.settle()
    assert bench.texts("split") == ["lifts"]
    assert _decided(bench) == [("330", "Ann", ())]
    assert TARGET not in bench.page.locator(".sl").inner_text()  # Ada reviews blind


def test_two_who_decide_the_same_item_are_told_and_nothing_is_overwritten(bench: Desk) -> None:
    bench.press("1")
    assert _decided(bench) == [("330", "Ann", ())]
    other = bench.page.context.new_page()
    other.goto(_address(bench, "Grace"))
    other.wait_for_selector('.sl[data-item="split"] .sl-p', state="attached", timeout=PATIENCE)
    other.focus(".sl-answer")
    other.keyboard.press("2")
    other.wait_for_function("() => spanlab.outbox.writes.length === 0")
    bench.press("3")
    banner = bench.page.locator(".sl-banner")
    expect(banner).to_be_visible()
    assert [text for text, _, _ in _state_texts(bench)] == ["330 floors"]
    banner.get_by_role("button", name="Reapply my changes").click()
    expect(banner).to_be_hidden()
    assert [text for text, _, _ in _decided(bench)] == ["tower", "has 330"]
    decided = bench.store.record(bench.dataset, "split").by(TARGET)
    assert decided is not None
    assert decided.decided_by == REVIEWER


def _state_texts(here: Desk) -> list[tuple[str, str | None, tuple[str, ...]]]:
    return [(span.text, span.source, span.voters) for span in _state(here).spans.values()]
