"""Operations on claims, and on responses to the questions of a dataset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from spanlab.base.errors import OperationError
from spanlab.base.fields import FrozenModel
from spanlab.oplog.state import (
    BaseEdit,
    CitedQuote,
    Comment,
    ReviewState,
    change_span,
    cite,
    named,
    own_span,
    quote,
)
from spanlab.schema import (
    Claim,
    DatasetSettings,
    Interval,
    Item,
    Name,
    Probability,
    Response,
    Verdict,
)

_ClaimText = Annotated[str, Field(min_length=1, max_length=10_000)]

# What makes two claims the same: whether it is a suggestion, whoever makes it, its text and place.
_Key: TypeAlias = tuple[bool, str, int | None, int | None]


class ClaimMark(FrozenModel):
    """A claim that an annotator suggests, with its verdict and what speaks for that.

    ``suggested_by`` may be "union" or "majority": how it was made from the claims of ``voters``.
    """

    suggested_by: Name
    voters: tuple[Name, ...] = ()
    text: _ClaimText
    source: Interval | None = None
    verdict: Verdict | None = None
    prob: Probability | None = None
    evidence: tuple[CitedQuote, ...] = ()
    error_stages: tuple[str, ...] = ()


class AcceptClaim(BaseEdit):
    """Take over a claim as the reviewer's own, with its verdict or a corrected one."""

    kind: Literal["accept-claim"] = "accept-claim"
    claim: Name
    mark: ClaimMark
    verdict: Verdict | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        suggested = _suggested(item, self.mark)
        return _with(
            _without(state, suggested),
            self.claim,
            _set_verdict(_take_over(suggested), self.verdict),
        )


class ReplaceClaims(BaseEdit):
    """Put suggestions in place of all claims there are; ``claims[i]`` is the id for ``marks[i]``.

    An adjudicator takes one annotator's claims, the union or the majority in this way.
    """

    kind: Literal["replace-claims"] = "replace-claims"
    claims: tuple[Name, ...] = ()
    marks: tuple[ClaimMark, ...] = ()

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        state = _put(state, {})
        for name, mark in named(self.kind, self.claims, self.marks):
            suggested = _suggested(item, mark)
            state = _with(_without(state, suggested), name, _take_over(suggested))
        return state


class RejectClaim(BaseEdit):
    """Refuse a claim's verdict; if the claim had been taken over, it goes."""

    kind: Literal["reject-claim"] = "reject-claim"
    mark: ClaimMark

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        refused = _suggested(item, self.mark)
        left = _without(state, refused)
        return left.model_copy(update={"rejected_claims": (*left.rejected_claims, refused)})


class AddClaim(BaseEdit):
    """Write a claim of one's own; ``source`` are the characters of the answer that state it."""

    kind: Literal["add-claim"] = "add-claim"
    claim: Name
    text: _ClaimText
    source: Interval | None = None
    verdict: Verdict | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        source = self.source and quote(item, self.source.start, self.source.end)
        return _with(state, self.claim, Claim(text=self.text, source=source, verdict=self.verdict))


class EditClaim(BaseEdit):
    """Say what one of the reviewer's own claims states, its verdict, and why."""

    kind: Literal["edit-claim"] = "edit-claim"
    claim: Name
    text: _ClaimText
    verdict: Verdict | None = None
    note: Comment = ""

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        own = _own(state, self.claim)
        rewritten = own.model_copy(update={"text": self.text, "note": self.note or None})
        return _put(state, {**state.claims, self.claim: _set_verdict(rewritten, self.verdict)})


class RemoveClaim(BaseEdit):
    """Delete one of the reviewer's own claims."""

    kind: Literal["remove-claim"] = "remove-claim"
    claim: Name

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        _own(state, self.claim)
        return _put(state, {k: claim for k, claim in state.claims.items() if k != self.claim})


def _set_verdict(claim: Claim, verdict: Verdict | None) -> Claim:
    """Return the claim with a verdict; what spoke for another one goes."""
    if verdict is None or verdict == claim.verdict:
        return claim
    changed = {"verdict": verdict, "evidence": (), "error_stages": (), "voters": ()}
    return claim.model_copy(update=changed)


def _take_over(suggested: Claim) -> Claim:
    """Return the claim as it is once a person has decided: how sure a detector was goes."""
    return suggested.model_copy(update={"prob": None})


def _suggested(item: Item, mark: ClaimMark) -> Claim:
    return Claim(
        text=mark.text,
        source=mark.source and quote(item, mark.source.start, mark.source.end),
        verdict=mark.verdict,
        prob=mark.prob,
        evidence=tuple(cite(item, cited) for cited in mark.evidence),
        error_stages=mark.error_stages,
        suggested_by=mark.suggested_by,
        voters=mark.voters,
    )


def _without(state: ReviewState, claim: Claim) -> ReviewState:
    """Return the state without what was decided on this claim."""
    key = _key(claim)
    left = _put(state, {name: own for name, own in state.claims.items() if _key(own) != key})
    refused = tuple(
        rejected_claim for rejected_claim in state.rejected_claims if _key(rejected_claim) != key
    )
    return left.model_copy(update={"rejected_claims": refused})


def _with(state: ReviewState, name: str, claim: Claim) -> ReviewState:
    if name in state.claims:
        raise OperationError(f"claim id {name!r} is already in use")
    return _put(state, {**state.claims, name: claim})


def _put(state: ReviewState, claims: Mapping[str, Claim]) -> ReviewState:
    return state.model_copy(update={"claims": claims})


def _own(state: ReviewState, name: str) -> Claim:
    try:
        return state.claims[name]
    except KeyError:
        raise OperationError(f"there is no claim with the id {name!r}") from None


def _key(claim: Claim) -> _Key:
    place = (claim.source.start, claim.source.end) if claim.source else (None, None)
    return (claim.suggested_by is not None, claim.text, *place)


class Respond(BaseEdit):
    """Answer a question on one of the reviewer's own spans, or with ``span`` None on the item.

    Without a ``response`` the one there is goes.
    """

    kind: Literal["respond"] = "respond"
    span: Name | None = None
    question: Name
    response: Response | None = None

    def apply(self, item: Item, state: ReviewState) -> ReviewState:
        before = state.responses if self.span is None else own_span(state, self.span).attributes
        left = {name: given for name, given in before.items() if name != self.question}
        given = left if self.response is None else {**left, self.question: self.response}
        if self.span is None:
            return state.model_copy(update={"responses": given})
        return change_span(state, self.span, {"attributes": given})

    def problem(self, settings: DatasetSettings) -> str | None:
        """Say why the settings of the dataset do not allow this, if they do not."""
        questions = settings.questions if self.span is None else settings.attributes
        for question in questions:
            if question.name == self.question:
                return None if self.response is None else question.problem(self.response)
        return f"this dataset does not ask {self.question!r} (any more)"
