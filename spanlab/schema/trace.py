"""What a detector did on the way to its spans: what it asked, read and decided.

A trace is for people: Review shows it beside the answer. Its steps stand in the order in which
they happened. Offsets are code points of the answer, start inclusive, end exclusive.

Any step may say which ``claim`` of the answer it is about (a 0-based index of the annotation's
claims), in which ``round`` of a loop it was done (from 1), and with which ``tool``.
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from functools import cache, reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self, cast
from warnings import warn

from pydantic import (
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    JsonValue,
    RootModel,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    model_serializer,
)
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from spanlab import doors
from spanlab.base.fields import Count, FrozenModel, Name, Offset, Probability

if TYPE_CHECKING:
    from spanlab.schema.item import Item
    from spanlab.schema.record import Annotation

# AVeriTeC's four (Schlichtkrull et al. 2023), and VeriTrail's two: "not-supported" is refuted or
# not enough evidence, "inconclusive" is evidence that favours neither.
Verdict = Literal[
    "supported", "refuted", "not-enough-evidence", "conflicting", "not-supported", "inconclusive"
]

HALLUCINATED: Final[frozenset[Verdict]] = frozenset(("refuted", "not-supported"))


class TraceStep(FrozenModel):
    """A step of some kind; systems bring kinds of their own at their doors (``steps``).

    A kind may have ``passages``, 0-based indices of what the step read, ``places`` of the answer,
    and quotes of passages (``PassageQuote``) under any name: these are checked against the item.
    """

    kind: str
    claim: Offset | None = None
    round: Annotated[int, Field(ge=1)] | None = None
    tool: Name | None = None

    @model_serializer(mode="wrap")
    def _kind_is_always_written(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {"kind": self.kind, **write(self)}

    def quoted(self) -> dict[str, PassageQuote]:
        """Return what it quotes of passages, by the names of its fields."""
        return {name: value for name, value in self if isinstance(value, PassageQuote)}

    def passages_read(self) -> set[int]:
        """Return the indices of all passages that it names."""
        return {*getattr(self, "passages", ()), *(q.passage for q in self.quoted().values())}

    def renumbered(self, moved: Mapping[int, int]) -> Self:
        """Return it as it follows passages that moved; ``moved`` has their new indices."""
        now: dict[str, object] = {
            name: quote.model_copy(update={"passage": moved[quote.passage]})
            for name, quote in self.quoted().items()
        }
        if read := getattr(self, "passages", ()):
            now["passages"] = tuple(moved[index] for index in read)
        return self.model_copy(update=now)

    def has_searched(self, recalled: Set[int]) -> bool:
        """Say whether it is a search, when these passages came from memory."""
        return False

    def shown(self, item: Item) -> dict[str, JsonValue]:
        """Return what the editor draws of it."""
        return self.model_dump(mode="json")

    @classmethod
    def shown_beside(cls, item: Item, annotation: Annotation) -> dict[str, JsonValue]:
        """Return what the editor gets, by name, of all steps of this kind together."""
        return {}


class AnswerPlace(FrozenModel):
    """Characters ``[start, end)`` of the answer."""

    start: Offset
    end: Offset


class QueryStep(TraceStep):
    """It asked a retriever; ``passages`` are the 0-based indices of what it got or had already."""

    kind: Literal["query"] = "query"
    text: str
    retriever: str
    passages: tuple[Offset, ...] = ()


class QuoteStep(TraceStep):
    """A model quoted the answer; without ``places`` the quote was not found there."""

    kind: Literal["quote"] = "quote"
    text: str
    prob: Probability | None = None
    reason: str | None = None
    places: tuple[AnswerPlace, ...] = ()


class RelationStep(TraceStep):
    """A relation of the knowledge graph that the passages became."""

    kind: Literal["relation"] = "relation"
    subject: str
    relation: str
    object: str


class FactStep(TraceStep):
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


class PassageQuote(FrozenModel):
    """Characters ``[start, end)`` of one of the item's passages, by its 0-based index."""

    passage: Offset
    start: Offset
    end: Offset


class PairStep(TraceStep):
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

    def has_searched(self, recalled: Set[int]) -> bool:
        """One that rests on the memory alone was not searched for."""
        return not self.passages or not recalled >= {*self.passages}


class RecallStep(TraceStep):
    """What the memory held about the entities of a claim.

    ``passages`` are the 0-based indices of what was recalled, best first, and ``notes`` say of
    each how old it is and what found it.
    """

    kind: Literal["recall"] = "recall"
    entities: tuple[str, ...]
    passages: tuple[Offset, ...] = ()
    notes: tuple[str, ...] = ()


class RemarkStep(TraceStep):
    """Something worth knowing in a sentence, such as an answer of a model that was repaired."""

    kind: Literal["remark"] = "remark"
    text: str


class CallsStep(TraceStep):
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


class OtherStep(RootModel[dict[str, JsonValue]]):
    """A step of a kind that no package here knows; it is kept as it came."""

    model_config = ConfigDict(frozen=True, str_min_length=0)  # no half an emoji

    @property
    def kind(self) -> str:
        """What kind it is of, as it says."""
        return str(self.root["kind"])

    @property
    def claim(self) -> None:
        """It is not known to be about a claim."""

    def shown(self, item: Item) -> dict[str, JsonValue]:
        """Return what the editor draws of it."""
        return self.root


_OURS: Final[Mapping[str, type[TraceStep]]] = {
    step.model_fields["kind"].default: step
    for step in (
        *(QueryStep, QuoteStep, RelationStep, FactStep),
        *(PairStep, RecallStep, RemarkStep, CallsStep),
    )
}


@cache
def _model(kind: str) -> type[TraceStep] | type[OtherStep]:
    """Return the model of a kind of step; a package that is broken is said, and not needed."""
    if (ours := _OURS.get(kind)) is not None:
        return ours
    offered = doors.offer("steps", kind)
    if offered is None:
        return OtherStep
    try:
        model = offered.load()
        if issubclass(model, TraceStep):
            return cast(type[TraceStep], model)
        problem = "does not extend TraceStep"
    except Exception as error:  # noqa: BLE001 - whatever breaks there, the trace can be read
        problem = f"is broken: {type(error).__name__}: {error}"
    warn(f"the step {kind!r} of {offered.package} {problem}", stacklevel=2)
    return OtherStep


def _read(value: object) -> TraceStep | OtherStep:
    if isinstance(value, TraceStep | OtherStep):
        return value
    kind = value.get("kind") if isinstance(value, dict) else None
    if not isinstance(kind, str):
        raise PydanticCustomError("step", "a step of a trace is an object with its kind")
    return _model(kind).model_validate(value)


class _ByKind:
    """Reads a step by its kind; the schema for other programs has all that are known."""

    def __get_pydantic_core_schema__(self, _: object, _of: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(_read)

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, schema_of: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        known = {*_OURS, *doors.names("steps")}
        models = tuple(m for m in map(_model, sorted(known)) if issubclass(m, TraceStep))
        union: Any = Annotated[reduce(or_, models), Field(discriminator="kind")]
        return schema_of(TypeAdapter(union).core_schema)


Step = Annotated[TraceStep | OtherStep, _ByKind()]
