"""What a detector did on the way to its spans: what it asked, read and decided.

A trace is for people: Review shows it beside the answer. Its steps stand in the order in which
they happened. Offsets are code points of the answer, start inclusive, end exclusive.

Any step may say which ``claim`` of the answer it is about (a 0-based index of the annotation's
claims), in which ``round`` of a loop it was done (from 1), and with which ``tool``.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue, SerializerFunctionWrapHandler, model_serializer

from spanlab.base.fields import Count, FrozenModel, Name, Offset, Probability

# AVeriTeC's four (Schlichtkrull et al. 2023), and VeriTrail's two: "not-supported" is refuted or
# not enough evidence, "inconclusive" is evidence that favours neither.
Verdict = Literal[
    "supported", "refuted", "not-enough-evidence", "conflicting", "not-supported", "inconclusive"
]

HALLUCINATED: Final[frozenset[Verdict]] = frozenset(("refuted", "not-supported"))


class _TraceStep(FrozenModel):
    kind: str
    claim: Offset | None = None
    round: Annotated[int, Field(ge=1)] | None = None
    tool: Name | None = None

    @model_serializer(mode="wrap")
    def _kind_is_always_written(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {"kind": self.kind, **write(self)}


class AnswerPlace(FrozenModel):
    """Characters ``[start, end)`` of the answer."""

    start: Offset
    end: Offset


class QueryStep(_TraceStep):
    """It asked a retriever; ``passages`` are the 0-based indices of what it got or had already."""

    kind: Literal["query"] = "query"
    text: str
    retriever: str
    passages: tuple[Offset, ...] = ()


class QuoteStep(_TraceStep):
    """A model quoted the answer; without ``places`` the quote was not found there."""

    kind: Literal["quote"] = "quote"
    text: str
    prob: Probability | None = None
    reason: str | None = None
    places: tuple[AnswerPlace, ...] = ()


class RelationStep(_TraceStep):
    """A relation of the knowledge graph that the passages became."""

    kind: Literal["relation"] = "relation"
    subject: str
    relation: str
    object: str


class FactStep(_TraceStep):
    """An atomic fact of the answer, what was looked up for it, and the verdict."""

    kind: Literal["fact"] = "fact"
    text: str
    verdict: Verdict
    prob: Probability | None = None
    reason: str | None = None
    looked_up: tuple[str, ...] = ()
    places: tuple[AnswerPlace, ...] = ()


class NodeQuote(FrozenModel):
    """Characters ``[start, end)`` of the text of a node of the item's process."""

    node: Name
    start: Offset
    end: Offset
    text: str


class TrailStep(_TraceStep):
    """One round on the way from a claim to its sources: what was read, chosen and decided.

    ``checked`` are the ids of the nodes that were read, ``summaries`` say what the chosen
    sentences of nodes other than roots amount to. ``judged`` are the ids of nodes whose texts a
    verdict was given on as they stand, without sentences being chosen. ``dropped`` counts ids of
    sentences that the model returned without having been given them; ``remark`` says what did not
    fit the model.
    """

    kind: Literal["trail"] = "trail"
    checked: tuple[Name, ...]
    quotes: tuple[NodeQuote, ...] = ()
    summaries: tuple[str, ...] = ()
    verdict: Verdict
    reason: str | None = None
    judged: tuple[Name, ...] = ()
    dropped: Count = 0
    remark: str | None = None


class PassageQuote(FrozenModel):
    """Characters ``[start, end)`` of one of the item's passages, by its 0-based index."""

    passage: Offset
    start: Offset
    end: Offset


class PairStep(_TraceStep):
    """A question about a claim and its answer.

    ``searched`` is what was searched for; ``passages`` are the 0-based indices of what the answer
    rests on. Where it was given from one document, ``window`` is the part of it that was read, and
    ``sentence`` the sentence of that part that comes closest to the answer. ``settled`` is the
    verdict that this answer led to, if it ended the questions.
    """

    kind: Literal["pair"] = "pair"
    question: str
    answer: str
    searched: str
    passages: tuple[Offset, ...] = ()
    window: PassageQuote | None = None
    sentence: PassageQuote | None = None
    settled: Verdict | None = None
    remark: str | None = None


class RecallStep(_TraceStep):
    """What the memory held about the entities of a claim.

    ``passages`` are the 0-based indices of what was recalled, best first, and ``notes`` say of
    each how old it is and what found it.
    """

    kind: Literal["recall"] = "recall"
    entities: tuple[str, ...]
    passages: tuple[Offset, ...] = ()
    notes: tuple[str, ...] = ()


class ThoughtStep(_TraceStep):
    """What an agent thought, the tool it called, and what it observed.

    Without a ``tool`` it called none; the last thought comes with the verdict. ``passages`` are
    the 0-based indices of what the call brought, ``failure`` is why it brought nothing.
    ``repeats`` is the round whose call it made again; it was given the observation of that one.
    """

    kind: Literal["thought"] = "thought"
    text: str
    arguments: dict[str, JsonValue] = Field(default_factory=dict)
    passages: tuple[Offset, ...] = ()
    failure: str | None = None
    repeats: Annotated[int, Field(ge=1)] | None = None


class ReasoningTraceStep(_TraceStep):
    """A step of a reasoning and what a verifier said of it.

    ``number`` is the step's, from 1; ``round`` counts its attempts, of which ``stands`` says which
    one was kept. ``does`` is what the step does: Attribution, Logical, Final Answer. ``error`` is
    the type of its error, None for a right step, and ``family`` the group that it belongs to.
    ``places`` are its characters in the answer; a refused attempt has none.
    """

    kind: Literal["reasoning"] = "reasoning"
    number: Annotated[int, Field(ge=1)]
    text: str
    does: str
    error: str | None = None
    family: str | None = None
    diagnosis: str = ""
    guidance: str = ""
    stands: bool = True
    passages: tuple[Offset, ...] = ()
    places: tuple[AnswerPlace, ...] = ()


class RevisionStep(_TraceStep):
    """The whole answer as a model corrected it."""

    kind: Literal["revision"] = "revision"
    text: str


class RemarkStep(_TraceStep):
    """Something worth knowing in a sentence, such as an answer of a model that was repaired."""

    kind: Literal["remark"] = "remark"
    text: str


class CallsStep(_TraceStep):
    """What the model calls came to; ``cost`` is in US dollars, None where no price is known.

    ``options`` say how the model was asked: temperature and the like; one that is not alike in all
    roles is named "role.option". What is not there was left to the endpoint.
    """

    kind: Literal["calls"] = "calls"
    model: str
    calls: Count
    from_cache: Count = 0
    input_tokens: Count = 0
    cached_tokens: Count = 0  # of the input tokens, those the provider had cached
    output_tokens: Count = 0
    cost: float | None = None
    options: dict[str, JsonValue] = Field(default_factory=dict)


Step = Annotated[
    QueryStep
    | QuoteStep
    | RelationStep
    | FactStep
    | TrailStep
    | PairStep
    | RecallStep
    | ThoughtStep
    | ReasoningTraceStep
    | RevisionStep
    | RemarkStep
    | CallsStep,
    Field(discriminator="kind"),
]
