"""The log as JavaScript replays it against the log as Python replays it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from modules import open_modules
from playwright.sync_api import Page

from spanlab.base.errors import OperationError
from spanlab.oplog.operations import OPERATION, Operation, Redo, Undo, replay
from spanlab.oplog.state import ReviewState
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Passage, Span

pytestmark = pytest.mark.browser

ITEM = Item(
    id="item",
    lang="en",
    answer="The 🎉 party 👩🏽‍🚀 of café was e\u0301tonnant." * 3,
    passages=(Passage(text="The 🎉 party was dull."),),
)
LOGS = 40
CLAIM_KINDS = [
    "accept-claim",
    "reject-claim",
    "add-claim",
    "edit-claim",
    "remove-claim",
    "replace-claims",
]
KINDS = (
    *("accept", "accept-all", "replace", "reject", "reject", "add", "remove", "resize", "relabel"),
    *("note", "note", "note-suggestion", "note-suggestion", "note-suggestion", "status", "finish"),
    *("respond", "respond"),
    *CLAIM_KINDS,
    *("undo", "undo", "undo", "redo", "redo"),
)
LENGTH = 90  # operations of a log, beyond one checkpoint of the JavaScript

REPLAY = """
async ([logs, snapshot, length]) => {
    const { History } = await import("/history.js");
    return logs.map((log) => {
        const history = new History(snapshot, [], length);
        const refused = [];
        log.forEach((operation, index) => {
            try { history.push(operation); } catch { refused.push(index); }
        });
        const { spans, rejected, noted, claims, rejectedClaims, status, note,
                responses } = history.state;
        const cited = (one) => [one.passage, one.start, one.end];
        const plain = (span) => [span.start, span.end, span.prob ?? 1, span.label ?? null,
                                 span.note ?? null, span.source ?? null, span.voters ?? [],
                                 (span.evidence ?? []).map(cited), span.attributes ?? {}];
        const said = (claim) => [claim.text, claim.source?.start ?? null, claim.source?.end ?? null,
                                 claim.verdict ?? null, claim.prob ?? null, claim.note ?? null,
                                 claim.suggested_by ?? null, claim.voters ?? [], claim.error_stages,
                                 claim.evidence.map(cited)];
        return { refused, spans: [...spans].map(([id, span]) => [id, ...plain(span)]),
                 rejected: rejected.map(plain), noted: noted.map(plain),
                 claims: [...claims].map(([id, claim]) => [id, ...said(claim)]),
                 rejectedClaims: rejectedClaims.map(said),
                 status, note, responses, version: history.version };
    });
}
"""


def test_random_logs_lead_to_the_same_state_in_javascript_and_python(page: Page) -> None:
    logs = [list(_random_log(random.Random(seed))) for seed in range(LOGS)]
    start = ReviewState.of(
        Annotation(
            annotator="Ada",
            kind=AnnotatorKind.PERSON,
            spans=(Span.of(ITEM.answer, 0, 5), Span.of(ITEM.answer, 3, 9, label="one")),
            rejected=(Span.of(ITEM.answer, 1, 2, prob=0.5).model_copy(update={"source": "a"}),),
            claims=(Claim(text="s", source=Span.of(ITEM.answer, 3, 5), verdict="refuted"),),
            rejected_claims=(Claim(text="t", prob=0.5, suggested_by="a"),),
        )
    )
    snapshot = json.loads(start.model_dump_json())
    open_modules(page)
    found = page.evaluate(REPLAY, [logs, snapshot, len(ITEM.answer)])
    refusals = 0
    for log, result in zip(logs, found, strict=True):
        assert result == _in_python(start, log)
        refusals += len(result["refused"])
    assert refusals > LOGS  # the logs do hold operations that fit nowhere


def _in_python(start: ReviewState, log: list[dict[str, Any]]) -> dict[str, Any]:
    accepted: list[Operation] = []
    refused: list[int] = []
    state = start
    for index, raw in enumerate(log):
        operation = OPERATION.validate_python(raw)
        try:
            if isinstance(operation, Undo | Redo):  # they need the log from its beginning
                state = replay(ITEM, start, [*accepted, operation])
            else:
                state = replay(ITEM, state, [operation])
        except OperationError:
            refused.append(index)
        else:
            accepted.append(operation)
    return {
        "refused": refused,
        "spans": [[name, *_plain(span)] for name, span in state.spans.items()],
        "rejected": [_plain(span) for span in state.rejected],
        "noted": [_plain(span) for span in state.noted],
        "claims": [[name, *_said(claim)] for name, claim in state.claims.items()],
        "rejectedClaims": [_said(claim) for claim in state.rejected_claims],
        "status": state.status.value,
        "note": state.note,
        "responses": state.responses,
        "version": len(accepted),
    }


def _plain(span: Span) -> list[object]:
    evidence = [[one.passage, one.start, one.end] for one in span.evidence]
    return [
        span.start,
        span.end,
        span.prob,
        span.label,
        span.note,
        span.source,
        [*span.voters],
        evidence,
        span.attributes,
    ]


def _said(claim: Claim) -> list[object]:
    place = [claim.source.start, claim.source.end] if claim.source else [None, None]
    evidence = [[one.passage, one.start, one.end] for one in claim.evidence]
    rest = [claim.verdict, claim.prob, claim.note, claim.suggested_by, [*claim.voters]]
    return [claim.text, *place, *rest, [*claim.error_stages], evidence]


def _random_log(dice: random.Random) -> Iterator[dict[str, Any]]:
    """Operations as people and attackers might send them, most of them sensible."""
    ids = [f"s{number}" for number in range(8)] + ["i0", "i1"]
    for _ in range(LENGTH):
        kind = dice.choice(KINDS)
        operation: dict[str, Any] = {"kind": kind}
        if kind in {"add", "resize"}:
            operation |= _extent(dice)
        if kind in {"accept-all", "replace"}:
            names = dice.sample(ids, dice.randint(1, 3))
            operation |= {"spans": names, "marks": [_mark(dice) for _ in names]}
        if kind == "finish":
            names = dice.sample(ids, dice.randint(0, 2))
            operation |= {"spans": names, "accepted": [_mark(dice) for _ in names]}
            operation["rejected"] = [_mark(dice) for _ in range(dice.randint(0, 3))]
        if kind in {"accept", "add", "remove", "resize", "relabel"}:
            operation["span"] = dice.choice(ids)
        if kind in {"accept", "reject", "note-suggestion"}:
            operation["mark"] = _mark(dice)
        if kind in {"add", "relabel"}:
            operation["label"] = dice.choice([None, "one", "two"])
        if kind == "note":
            operation["span"] = dice.choice([None, *ids])
        if kind in {"note", "note-suggestion"}:
            operation["text"] = dice.choice(["", "why", "🎉"])
        if kind == "respond":
            operation["span"] = dice.choice([None, *ids])
            operation["question"] = dice.choice(["severity", "constructor"])
            operation["response"] = dice.choice([None, 1, 0, "minor", "🎉"])
        if kind == "status":
            operation["status"] = dice.choice(["done", "skipped", "not-annotated"])
        if kind in CLAIM_KINDS:
            operation |= _about_claim(dice, kind)
        yield operation


def _about_claim(dice: random.Random, kind: str) -> dict[str, Any]:
    ids = ["c0", "c1", "c2", "c3", "i0"]
    verdict, named = dice.choice([None, "supported", "refuted"]), {"claim": dice.choice(ids)}
    if kind == "replace-claims":
        names = dice.choices(ids, k=dice.randint(0, 3))
        return {"claims": names, "marks": [_claim_mark(dice) for _ in names]}
    mark = _claim_mark(dice)
    text, source = mark["text"], mark["source"]
    more: dict[str, dict[str, Any]] = {
        "accept-claim": {**named, "mark": mark, "verdict": verdict},
        "reject-claim": {"mark": mark},
        "add-claim": {**named, "text": text, "source": source, "verdict": verdict},
        "edit-claim": {**named, "text": text, "verdict": verdict, "note": dice.choice(["", "n"])},
        "remove-claim": named,
    }
    return more[kind]


def _claim_mark(dice: random.Random) -> dict[str, Any]:
    place = dice.choice([None, {"start": 3, "end": 5}, _extent(dice)])
    return {
        "suggested_by": dice.choice("ab"),
        "voters": dice.choice([[], ["a", "b"]]),
        "text": dice.choice("st"),
        "source": place if place is None or place["end"] > place["start"] else None,
        "verdict": dice.choice([None, "supported"]),
        "prob": dice.choice([None, 0.5]),
        "error_stages": dice.choice([[], ["summary"]]),
        "evidence": dice.choice([[], [{"passage": 0, "start": 4, "end": 11}]]),
    }


def _mark(dice: random.Random) -> dict[str, Any]:
    start = dice.choice([0, 3, 5])
    prob, label = dice.choice([(0.5, None), (1.0, "one")])
    return {
        "source": dice.choice("ab"),
        "start": start,
        "end": start + dice.choice([1, 4]),
        "prob": prob,
        "label": label,
        "voters": dice.choice([[], ["a", "b"]]),
        "evidence": dice.choice([[], [{"passage": 0, "start": 4, "end": 11}]]),
        "attributes": dice.choice([{}, {"severity": "major"}]),
    }


def _extent(dice: random.Random) -> dict[str, int]:
    start = dice.randrange(0, len(ITEM.answer))
    return {"start": start, "end": start + dice.choice([0, 1, 3, 12])}
