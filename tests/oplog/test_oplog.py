"""The review log: what each operation does, and that undo takes back exactly one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from spanlab.base.errors import OperationError
from spanlab.oplog.answer_operations import (
    AcceptClaim,
    AddClaim,
    ClaimMark,
    EditClaim,
    RejectClaim,
    RemoveClaim,
    ReplaceClaims,
)
from spanlab.oplog.operations import (
    OPERATION,
    AcceptSpan,
    AcceptSpans,
    AddSpan,
    CommentSpan,
    FinishItem,
    NoteSuggestion,
    Operation,
    Redo,
    RejectSpan,
    RelabelSpan,
    RemoveSpan,
    ResizeSpan,
    SetStatus,
    Undo,
    in_force,
    replay,
)
from spanlab.oplog.state import CitedQuote, ReviewState, SuggestionMark
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Claim,
    Evidence,
    Interval,
    Item,
    Passage,
    Span,
    Status,
)

ITEM = Item(id="a", answer="The tower has 330 m, \U0001f469\u200d\U0001f680 and 3 floors.")
NOTHING = ReviewState()

TOWER = SuggestionMark(source="det", start=4, end=9, prob=0.8, label="object")
NUMBER = SuggestionMark(source="det", start=14, end=17, prob=0.3)
HEIGHT = ClaimMark(
    suggested_by="det",
    text="The tower is 330 m high.",
    source=Interval(start=14, end=17),
    verdict="refuted",
    prob=0.8,
    evidence=(CitedQuote(passage=0, start=0, end=5),),
    error_stages=("summary",),
)
FIRST = AddSpan(span="x", start=4, end=9)
SECOND = AddSpan(span="y", start=14, end=17, label="number")
DONE = SetStatus(status=Status.DONE)


def _replay(*operations: Operation, start: ReviewState = NOTHING) -> ReviewState:
    return replay(ITEM, start, operations)


def test_an_empty_log_is_the_snapshot() -> None:
    assert _replay() == NOTHING
    assert NOTHING.annotation("me") == Annotation(
        annotator="me", kind=AnnotatorKind.PERSON, status=Status.NOT_ANNOTATED
    )


def test_drawing_quotes_the_answer_in_code_points() -> None:
    state = _replay(AddSpan(span="x", start=21, end=24, label="emoji"))
    assert state.spans == {
        "x": Span(start=21, end=24, text="\U0001f469\u200d\U0001f680", label="emoji")
    }


def test_an_accepted_suggestion_is_the_reviewers_own_mark() -> None:
    state = _replay(AcceptSpan(span="x", mark=TOWER))
    # A person's mark is certain, whatever the detector's probability was.
    assert state.spans == {
        "x": Span(start=4, end=9, text="tower", prob=1.0, label="object", source="det")
    }


def test_accepting_all_takes_each_under_its_id() -> None:
    state = _replay(AcceptSpans(spans=("x", "y"), marks=(TOWER, NUMBER)))
    assert {name: span.text for name, span in state.spans.items()} == {"x": "tower", "y": "330"}


def test_done_counts_what_is_undecided_and_one_undo_returns_to_before_it() -> None:
    done = FinishItem(spans=("x",), accepted=(TOWER,), rejected=(NUMBER,))
    state = _replay(done)
    assert state.status is Status.DONE
    assert [span.start for span in state.spans.values()] == [TOWER.start]
    assert [(span.start, span.prob) for span in state.rejected] == [(NUMBER.start, NUMBER.prob)]
    assert _replay(done, Undo()) == _replay()
    with pytest.raises(OperationError, match="finish has 0 ids for 1 suggestions"):
        _replay(FinishItem(accepted=(TOWER,)))


def test_a_rejected_suggestion_is_kept_as_rejected() -> None:
    state = _replay(RejectSpan(mark=TOWER))
    assert state.spans == {}
    assert state.rejected == (
        Span(start=4, end=9, text="tower", prob=0.8, label="object", source="det"),
    )


def test_accepting_and_rejecting_take_each_other_back() -> None:
    rejected = _replay(AcceptSpan(span="x", mark=TOWER), RejectSpan(mark=TOWER))
    assert (rejected.spans, len(rejected.rejected)) == ({}, 1)
    accepted = _replay(RejectSpan(mark=TOWER), AcceptSpan(span="x", mark=TOWER))
    assert (list(accepted.spans), accepted.rejected) == (["x"], ())
    twice = _replay(RejectSpan(mark=TOWER), RejectSpan(mark=TOWER), RejectSpan(mark=NUMBER))
    assert [span.text for span in twice.rejected] == ["tower", "330"]


def test_rejecting_a_suggestion_leaves_an_equal_own_span() -> None:
    state = _replay(FIRST, RejectSpan(mark=TOWER.model_copy(update={"label": None})))
    assert list(state.spans) == ["x"]


def test_a_resized_span_quotes_anew_and_keeps_the_rest() -> None:
    state = _replay(
        AcceptSpan(span="x", mark=TOWER),
        CommentSpan(span="x", text="sure"),
        ResizeSpan(span="x", start=0, end=9),
    )
    assert state.spans["x"] == Span(
        start=0, end=9, text="The tower", label="object", source="det", note="sure"
    )


def test_labels_and_notes_come_and_go() -> None:
    state = _replay(
        FIRST,
        RelabelSpan(span="x", label="object"),
        CommentSpan(text="hard"),
        CommentSpan(text="easy"),
    )
    assert (state.spans["x"].label, state.note) == ("object", "easy")
    cleared = _replay(RelabelSpan(span="x"), CommentSpan(text=""), start=state)
    assert (cleared.spans["x"].label, cleared.note) == (None, None)


def test_a_comment_on_a_suggestion_decides_nothing() -> None:
    state = _replay(NoteSuggestion(mark=TOWER, text="Which?"))
    assert (state.spans, state.rejected) == ({}, ())
    assert [(span.text, span.note, span.prob) for span in state.noted] == [("tower", "Which?", 0.8)]
    assert state.annotation("me") == NOTHING.annotation("me")
    assert _replay(NoteSuggestion(mark=TOWER, text="Which?"), Undo()) == NOTHING
    again = _replay(NoteSuggestion(mark=TOWER, text="That"), start=state)
    assert [span.note for span in again.noted] == ["That"]
    assert _replay(NoteSuggestion(mark=TOWER, text=""), start=state) == NOTHING


def test_a_comment_follows_its_suggestion_through_every_decision() -> None:
    noted = NoteSuggestion(mark=TOWER, text="Which?")
    other = TOWER.model_copy(
        update={"source": "another"}
    )  # the same characters, one mark on screen
    for accept in (AcceptSpan(span="x", mark=other), AcceptSpans(spans=("x",), marks=(other,))):
        accepted = _replay(noted, accept)
        assert (accepted.spans["x"].note, accepted.noted) == ("Which?", ())
    rejected = _replay(noted, RejectSpan(mark=TOWER))
    assert ([span.note for span in rejected.rejected], rejected.noted) == (["Which?"], ())
    assert _replay(AcceptSpan(span="x", mark=TOWER), start=rejected).spans["x"].note == "Which?"
    after = _replay(
        AcceptSpan(span="x", mark=TOWER), CommentSpan(span="x", text="No."), RejectSpan(mark=TOWER)
    )
    assert [span.note for span in after.rejected] == ["No."]


def test_a_comment_on_a_rejected_suggestion_leaves_it_rejected() -> None:
    state = _replay(
        RejectSpan(mark=NUMBER), RejectSpan(mark=TOWER), NoteSuggestion(mark=TOWER, text="Why")
    )
    assert [(span.text, span.note) for span in state.rejected] == [("330", None), ("tower", "Why")]
    assert (state.spans, state.noted) == ({}, ())


def test_done_without_spans_says_nothing_is_wrong() -> None:
    """Checked without spans is not the same as not annotated."""
    assert _replay(DONE).annotation("me") == Annotation(annotator="me", kind=AnnotatorKind.PERSON)
    assert _replay(DONE) != _replay()


def test_spans_may_touch_and_overlap() -> None:
    """Adjacent and overlapping selections stay what they are."""
    touching = AddSpan(span="y", start=9, end=13)
    overlapping = AddSpan(span="z", start=6, end=11)
    state = _replay(FIRST, touching, overlapping)
    assert [span.text for span in state.annotation("me").spans] == ["tower", "wer h", " has"]
    assert list(_replay(RemoveSpan(span="y"), start=state).spans) == ["x", "z"]


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        pytest.param([FIRST, FIRST], "span id 'x' is already in use", id="id drawn twice"),
        pytest.param(
            [FIRST, AcceptSpan(span="x", mark=NUMBER)], "already in use", id="id drawn and accepted"
        ),
        pytest.param(
            [AcceptSpans(spans=("x", "x"), marks=(TOWER, NUMBER))], "an id twice", id="id in one"
        ),
        pytest.param(
            [AcceptSpans(spans=("x",), marks=(TOWER, NUMBER))],
            "1 ids for 2 suggestions",
            id="ids missing",
        ),
        pytest.param([RemoveSpan(span="x")], "no span with the id 'x'", id="nothing to remove"),
        pytest.param([RelabelSpan(span="x")], "no span with the id 'x'", id="nothing to label"),
        pytest.param(
            [CommentSpan(span="x", text="")], "no span with the id 'x'", id="nothing to note"
        ),
        pytest.param(
            [FIRST, Undo(), ResizeSpan(span="x", start=0, end=1)], "no span", id="undone meanwhile"
        ),
        pytest.param([AddSpan(span="x", start=4, end=4)], r"\[4, 4\) is not a part", id="empty"),
        pytest.param([AddSpan(span="x", start=4, end=99)], "answer's 38 characters", id="outside"),
    ],
)
def test_what_does_not_fit_is_refused(operations: list[Operation], message: str) -> None:
    with pytest.raises(OperationError, match=message):
        _replay(*operations)


def test_undo_and_redo_walk_along_the_log() -> None:
    assert in_force([FIRST, SECOND, DONE, Undo(), Undo()]) == [FIRST]
    assert in_force([FIRST, SECOND, DONE, Undo(), Undo(), Redo()]) == [FIRST, SECOND]
    assert in_force([FIRST, SECOND, Undo(), Redo(), Redo()]) == [FIRST, SECOND]
    assert in_force([Undo(), FIRST, Undo(), Undo(), Redo()]) == [FIRST]


def test_a_new_edit_empties_the_redo() -> None:
    assert in_force([FIRST, Undo(), SECOND, Redo()]) == [SECOND]


def test_a_decision_keeps_the_evidence_of_the_suggestion() -> None:
    """A suggestion taken over loses nothing that spoke for it."""
    item = ITEM.model_copy(update={"passages": (Passage(text="It has two floors."),)})
    cited = CitedQuote(passage=0, start=7, end=17, stance="refutes", note="two, not 3")
    mark = SuggestionMark(source="det", start=23, end=31, evidence=(cited,))
    quoted = Evidence(
        passage=0, start=7, end=17, text="two floors", stance="refutes", note="two, not 3"
    )
    assert replay(item, NOTHING, [AcceptSpan(span="x", mark=mark)]).spans["x"].evidence == (quoted,)
    assert replay(item, NOTHING, [RejectSpan(mark=mark)]).rejected[0].evidence == (quoted,)


@pytest.mark.parametrize(
    "cited",
    [
        pytest.param(CitedQuote(passage=1, start=0, end=2), id="no-such-passage"),
        pytest.param(CitedQuote(passage=0, start=3, end=3), id="empty"),
        pytest.param(CitedQuote(passage=0, start=0, end=99), id="past-the-passage"),
    ],
)
def test_evidence_that_is_nowhere_is_refused(cited: CitedQuote) -> None:
    item = ITEM.model_copy(update={"passages": (Passage(text="It has two floors."),)})
    mark = SuggestionMark(source="det", start=4, end=9, evidence=(cited,))
    with pytest.raises(OperationError, match="is not a part of passage"):
        replay(item, NOTHING, [AcceptSpan(span="x", mark=mark)])


ELSEWHERE = HEIGHT.model_copy(update={"evidence": (CitedQuote(passage=1, start=0, end=1),)})
MEASURED = ITEM.model_copy(update={"passages": (Passage(text="300 m, says the plan."),)})


def _claims(*operations: Operation) -> ReviewState:
    return replay(MEASURED, NOTHING, operations)


def test_a_claim_is_taken_over_with_what_speaks_for_its_verdict() -> None:
    (taken,) = _claims(AcceptClaim(claim="c", mark=HEIGHT)).claims.values()
    assert taken == Claim(
        text="The tower is 330 m high.",
        source=Span.of(ITEM.answer, 14, 17),
        verdict="refuted",
        evidence=(Evidence(passage=0, start=0, end=5, text="300 m"),),
        error_stages=("summary",),
        suggested_by="det",
    )


def test_a_corrected_verdict_loses_what_spoke_for_the_other() -> None:
    correct = AcceptClaim(claim="c", mark=HEIGHT, verdict="supported")
    (corrected,) = _claims(correct).claims.values()
    assert (corrected.verdict, corrected.evidence, corrected.error_stages) == ("supported", (), ())
    # Corrected later, it is the same, and there is one such claim.
    assert _claims(AcceptClaim(claim="c", mark=HEIGHT), correct) == _claims(correct)
    edit = EditClaim(claim="c", text=HEIGHT.text, verdict="supported")
    assert _claims(AcceptClaim(claim="c", mark=HEIGHT), edit) == _claims(correct)


def test_claims_of_several_annotators_replace_what_there_is() -> None:
    voted = HEIGHT.model_copy(update={"suggested_by": "majority", "voters": ("A", "B")})
    other = ClaimMark(suggested_by="majority", text="It has floors.", verdict="supported")
    before = (AddClaim(claim="c", text="mine"), RejectClaim(mark=HEIGHT))
    replaced = _claims(*before, ReplaceClaims(claims=("x", "y"), marks=(voted, other)))
    height, floors = replaced.claims.values()
    assert (height.suggested_by, height.voters, height.prob) == ("majority", ("A", "B"), None)
    assert (floors.verdict, replaced.rejected_claims) == ("supported", ())
    assert _claims(*before, ReplaceClaims(), Undo()) == _claims(*before)
    corrected = _claims(
        ReplaceClaims(claims=("x",), marks=(voted,)),
        AcceptClaim(claim="x", mark=HEIGHT, verdict="conflicting"),
    )
    # One decision on a claim, whoever suggests it: the other one goes.
    assert [(c.suggested_by, c.voters) for c in corrected.claims.values()] == [("det", ())]
    with pytest.raises(OperationError, match="replace-claims has 0 ids for 1 suggestion"):
        _claims(ReplaceClaims(marks=(voted,)))


def test_a_refused_verdict_is_kept_and_its_claim_no_longer_the_reviewers() -> None:
    state = _claims(AcceptClaim(claim="c", mark=HEIGHT), RejectClaim(mark=HEIGHT))
    assert state.claims == {}
    (refused,) = state.rejected_claims
    assert (refused.verdict, refused.prob, refused.suggested_by) == ("refuted", 0.8, "det")
    assert _claims(RejectClaim(mark=HEIGHT), RejectClaim(mark=HEIGHT)) == state
    assert _claims(RejectClaim(mark=HEIGHT), Undo()) == NOTHING
    taken = _claims(RejectClaim(mark=HEIGHT), AcceptClaim(claim="c", mark=HEIGHT))
    assert (len(taken.claims), taken.rejected_claims) == (1, ())


def test_a_claim_of_ones_own_is_written_judged_explained_and_removed() -> None:
    written = AddClaim(claim="c", text="It has 3 floors.", source=Interval(start=29, end=30))
    explained = EditClaim(claim="c", text="It has three floors.", verdict="supported", note="seen")
    (claim,) = _claims(written, explained).claims.values()
    assert claim == Claim(
        text="It has three floors.",
        source=Span.of(ITEM.answer, 29, 30),
        verdict="supported",
        note="seen",
    )
    assert _claims(written, explained, RemoveClaim(claim="c")) == NOTHING


@pytest.mark.parametrize(
    ("operation", "message"),
    [
        (EditClaim(claim="z", text="t"), "no claim with the id 'z'"),
        (RemoveClaim(claim="z"), "no claim with the id 'z'"),
        (AddClaim(claim="c", text="t"), "claim id 'c' is already in use"),
        (AddClaim(claim="z", text="t", source=Interval(start=0, end=99)), "not a part"),
        (RejectClaim(mark=ELSEWHERE), "not a part of passage 1"),
    ],
    ids=lambda value: value.kind if not isinstance(value, str) else "",
)
def test_claims_that_do_not_fit_are_refused(operation: Operation, message: str) -> None:
    with pytest.raises(OperationError, match=message):
        _claims(AddClaim(claim="c", text="It has floors."), operation)


def test_undo_stops_at_the_snapshot() -> None:
    imported = Annotation(
        annotator="me", kind=AnnotatorKind.PERSON, spans=(Span.of(ITEM.answer, 4, 9),)
    )
    start = ReviewState.of(imported)
    assert list(start.spans) == ["i0"]
    assert _replay(RemoveSpan(span="i0"), Undo(), Undo(), start=start) == start


def test_an_imported_annotation_comes_back_as_it_was() -> None:
    quote = Evidence(passage=0, start=0, end=2, text="ok")
    imported = Annotation(
        annotator="me",
        kind=AnnotatorKind.PERSON,
        spans=(
            Span.of(ITEM.answer, 0, 3, prob=0.4, evidence=(quote,)),
            Span.of(ITEM.answer, 4, 9, label="object"),
        ),
        rejected=(Span.of(ITEM.answer, 14, 17),),
        claims=(Claim(text="t", prob=0.5), Claim(text="s", suggested_by="det")),
        rejected_claims=(Claim(text="u", suggested_by="det"),),
        note="hm",
    )
    assert ReviewState.of(imported).annotation("me") == imported


def test_a_failure_without_its_note_says_so() -> None:
    """A failure is a state with a reason."""
    failed = ReviewState(status=Status.FAILED, note="out of memory")
    assert failed.annotation("me").note == "out of memory"
    assert (
        _replay(CommentSpan(text=""), start=failed).annotation("me").note == "no reason was given"
    )


def test_operations_travel_as_json_that_names_their_kind() -> None:
    every: list[Operation] = [
        AcceptSpan(span="x", mark=TOWER),
        AcceptSpans(spans=("x",), marks=(TOWER,)),
        RejectSpan(mark=TOWER),
        FIRST,
        RemoveSpan(span="x"),
        ResizeSpan(span="x", start=0, end=1),
        RelabelSpan(span="x", label="l"),
        CommentSpan(text="t"),
        DONE,
        AcceptClaim(claim="c", mark=HEIGHT, verdict="refuted"),
        RejectClaim(mark=HEIGHT),
        AddClaim(claim="c", text="t"),
        EditClaim(claim="c", text="t", verdict="conflicting", note="n"),
        RemoveClaim(claim="c"),
        ReplaceClaims(claims=("c",), marks=(HEIGHT,)),
        Undo(),
        Redo(),
    ]
    for operation in every:
        assert OPERATION.validate_json(operation.model_dump_json()) == operation
    with pytest.raises(ValidationError, match=r"union_tag_invalid|does not match"):
        OPERATION.validate_python({"kind": "explode"})
    with pytest.raises(ValidationError, match="status"):
        OPERATION.validate_python({"kind": "status", "status": "failed"})


_EDITS = st.integers(0, 5).flatmap(
    lambda n: st.sampled_from(
        [
            AddSpan(span=f"s{n}", start=n, end=n + 3),
            AcceptSpan(span=f"s{n}", mark=TOWER),
            RejectSpan(mark=TOWER if n % 2 else NUMBER),
            RemoveSpan(span=f"s{n}"),
            ResizeSpan(span=f"s{n}", start=2 * n, end=2 * n + 1),
            RelabelSpan(span=f"s{n}", label=f"l{n}"),
            CommentSpan(span=f"s{n}", text=f"t{n}"),
            SetStatus(status=Status.DONE if n % 2 else Status.SKIPPED),
            AddClaim(claim=f"c{n}", text="t"),
            EditClaim(claim=f"c{n}", text=f"t{n}", verdict="refuted"),
            RemoveClaim(claim=f"c{n}"),
        ]
    )
)


@given(st.lists(_EDITS | st.just(Undo()) | st.just(Redo()), max_size=40))
def test_a_log_is_worth_what_a_stack_of_states_is(wanted: list[Operation]) -> None:
    states, undone, log = [NOTHING], list[ReviewState](), list[Operation]()
    for operation in wanted:
        if isinstance(operation, Undo):
            if len(states) > 1:
                undone.append(states.pop())
        elif isinstance(operation, Redo):
            if undone:
                states.append(undone.pop())
        else:
            try:
                states.append(operation.apply(ITEM, states[-1]))
            except OperationError:
                continue
            undone.clear()
        log.append(operation)
        assert _replay(*log) == states[-1]


def test_an_answer_is_called_hallucinated_without_a_place_until_spans_or_done_say_more() -> None:
    called = SetStatus(status=Status.DONE, hallucinated=True)
    state = replay(ITEM, NOTHING, [called])
    said = state.annotation("ann")
    assert (said.status, said.hallucinated, said.is_verdict_only) == (Status.DONE, True, True)
    assert replay(ITEM, NOTHING, [called, Undo()]) == NOTHING
    done = replay(ITEM, NOTHING, [called, SetStatus(status=Status.DONE)]).annotation("ann")
    assert (done.hallucinated, done.is_verdict_only) == (False, False)
    add = AddSpan(span="n1", start=4, end=9)
    found = replay(ITEM, state, [add, SetStatus(status=Status.DONE)]).annotation("ann")
    assert (found.hallucinated, found.is_verdict_only) == (True, False)
    finished = replay(ITEM, NOTHING, [called, FinishItem(rejected=(TOWER,))]).annotation("ann")
    assert (finished.hallucinated, finished.is_verdict_only) == (False, False)
    assert ReviewState.of(said).answer_hallucinated is True
