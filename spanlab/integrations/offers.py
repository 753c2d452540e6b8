"""Detections, verdicts, passages and scores for one answer at a time, by detectors set at start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Final, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from spanlab.base.errors import InputError, ModelError, NotOfferedError
from spanlab.base.fields import FrozenModel, Name
from spanlab.detection import Detector, DetectorSpec, build
from spanlab.detection.entry import entry_of
from spanlab.detection.selection import DetectorSelection
from spanlab.detection.spec import Spec
from spanlab.detection.specifications import specifications
from spanlab.formats.reader import as_passage, out_of_list, says_nothing
from spanlab.models import Meter
from spanlab.schema import (
    UNDETERMINED,
    Annotation,
    AnnotatorKind,
    Claim,
    Interval,
    Item,
    Language,
    Passage,
    Span,
    Status,
)
from spanlab.scoring.spans import ItemScore, score_item
from spanlab.search.base import PER_SEARCH, SearchQuery
from spanlab.text.labels import ItemLabels, flatten, hard_of
from spanlab.text.languages import language_of
from spanlab.text.thoughts import REASONING, UNJUDGED, without_thoughts

LONGEST: Final = 200_000  # characters of an answer or a passage
_WHOLE: Final = "claims"  # the option that lets an answer be one claim

Text = Annotated[str, Field(max_length=LONGEST)]
DetectorName = Annotated[str, Field(max_length=100)]


def _listed(value: Any) -> Any:
    packed = out_of_list(value)
    return packed if isinstance(packed, list | tuple) else [packed]


def _own_fields(value: Any) -> Any:
    if says_nothing(value):
        return {"text": ""}  # stays, as evidence names passages by their places
    told = as_passage(value)
    fields = Passage.model_fields
    return {name: told[name] for name in fields if name in told} if isinstance(told, dict) else told


SentPassages = Annotated[
    tuple[
        Annotated[Passage, BeforeValidator(_own_fields, json_schema_input_type=str | Passage)], ...
    ],
    BeforeValidator(_listed),
    Field(max_length=1_000, description="Texts or objects with a text; also as `contexts`."),
]
_PASSAGES: Final = frozenset(("passages", "contexts", "context"))


def by_our_names(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a request as they are called here: null is as if it were not sent."""
    fields = {name: value for name, value in sent.items() if value is not None}
    if len(named := _PASSAGES & set(fields)) == 1:  # of two, one is refused as unknown
        fields["passages"] = fields.pop(*named)
    return fields


class SentFields(FrozenModel):
    """What a request holds, read as files are: ``by_our_names``."""

    @model_validator(mode="before")
    @classmethod
    def _as_it_is_called_here(cls, sent: Any) -> Any:
        return by_our_names(sent) if isinstance(sent, dict) else sent


class SubmittedAnswer(SentFields):
    """An answer, and what it can be judged by; a reply has its ``id``, if one is given."""

    id: Annotated[Name | None, Field(coerce_numbers_to_str=True)] = None
    answer: Text
    question: Text = ""
    passages: SentPassages = ()
    lang: Language = UNDETERMINED

    @field_validator("answer")
    @classmethod
    def _is_there(cls, answer: str) -> str:
        try:
            without_thoughts(answer)
        except InputError as error:
            raise ValueError(error.what) from None
        if not answer.strip():
            raise ValueError("there is no answer to check")
        return answer

    def item(self, item_id: str = "asked") -> Item:
        """Return the answer as an item, with that id if it has none; ``meta`` has its reasoning."""
        answer, thoughts = without_thoughts(self.answer)
        return Item(
            id=self.id or item_id,
            lang=_language(self.lang, f"{self.question} {answer}", self.passages),
            question=self.question,
            answer=answer,
            passages=self.passages,
            meta=dict(thoughts),
        )


def _language(stated: str, text: str, passages: Sequence[Passage]) -> str:
    """Return the language that is stated, else that of the text, or of the first clear passage."""
    if stated != UNDETERMINED:
        return stated
    return language_of(text, *(passage.text for passage in passages))


class DetectionRequest(SubmittedAnswer):
    """An answer to look for hallucinated spans in; without ``detector`` the first one offered."""

    detector: DetectorName | None = None


class ClaimRequest(SentFields):
    """A claim to be verified; without ``detector`` the first one offered that judges claims."""

    claim: Text
    passages: SentPassages = ()
    lang: Language = UNDETERMINED
    detector: DetectorName | None = None


class SearchRequest(SentFields):
    """A query, and how many passages are wanted."""

    query: Text
    k: Annotated[int, Field(ge=1, le=50)] = 5


class ScoreRequest(SentFields):
    """Predicted and gold spans of an answer; ``hard``, if given, is what is predicted as marked."""

    answer: Text
    spans: tuple[Span, ...] = ()
    hard: tuple[Interval, ...] | None = None
    gold: tuple[Span, ...] = ()

    @model_validator(mode="after")
    def _spans_lie_in_the_answer(self) -> Self:
        for span in (*self.spans, *self.gold):
            if not span.fits(self.answer):
                raise ValueError(f"the answer has no {span.text[:40]!r} at {span.start}")
        for part in self.hard or ():
            if part.end > len(self.answer):
                raise ValueError(f"the answer ends at {len(self.answer)}, before {part.end}")
        return self


class DetectionReply(FrozenModel):
    """What a detector found; evidence names ``passages`` by index (from 0).

    ``id`` is the answer's; in a job one without an id is called by its place, from 0. ``hard`` is
    what is marked as hallucinated; ``spans`` say how likely each part is.
    """

    id: str | None = None
    detector: str
    status: Status
    spans: tuple[Span, ...] = ()
    hard: tuple[Interval, ...] = ()
    claims: tuple[Claim, ...] = ()
    passages: tuple[Passage, ...] = ()
    note: str | None = None


class ScoreReply(FrozenModel):
    """IoU and Corr of SemEval-2025 Task 3, and the F1 of characters."""

    iou: float
    corr: float
    f1: float


class ServiceOffers:
    """What is offered: some detectors, which keep their options and models, and maybe an index.

    Args:
        choice: which detectors, at least one, with their options, models and passages.
        corpus: an index that `spanlab index` has written; None offers no passages.

    Raises:
        UsageError: a detector is unknown, or something it needs is missing.
        InputError: the index cannot be used.
    """

    def __init__(self, choice: DetectorSelection, corpus: Path | None = None) -> None:
        self.detectors = tuple(dict.fromkeys(choice.detectors))
        specs = specifications(choice.model_copy(update={"detectors": self.detectors}))
        self._specs = dict(zip(self.detectors, specs, strict=True))
        self.searches = choice.passages.kind != "given"  # for what an answer is judged by
        self._corpus = corpus
        self._build: Callable[[str, bool], Detector] = cache(partial(_build, self._specs))

    @property
    def judges(self) -> list[str]:
        """The detectors that judge claims."""
        return [n for n in self.detectors if _WHOLE in entry_of(n).options.model_fields]

    async def find(self, request: DetectionRequest) -> DetectionReply:
        """Return what a detector marks in an answer.

        Raises:
            NotOfferedError: the detector is not offered.
            SpanlabError: the run cannot go on, as with a wrong key; an item that failed is a
                reply whose ``status`` and ``note`` say so.
        """
        name = self._check_offered(request.detector, self.detectors)
        reply = await self._detect(name, request.item(), as_one_claim=False)
        return reply.model_copy(update={"id": request.id})

    async def verify(self, request: ClaimRequest) -> DetectionReply:
        """Return a verdict on a claim, as the reply's only claim; raises as ``find`` does."""
        lang = _language(request.lang, request.claim, request.passages)
        item = Item(id="asked", lang=lang, answer=request.claim, passages=request.passages)
        return await self._detect(
            self._check_offered(request.detector, self.judges), item, as_one_claim=True
        )

    async def search(self, query: str, k: int = PER_SEARCH) -> tuple[Passage, ...]:
        """Return the passages of the index that come closest to a query.

        Raises:
            NotOfferedError: no index is.
        """
        if self._corpus is None:
            raise NotOfferedError("no index is offered: start it with --corpus")
        from spanlab.search.local_search import bm25

        retrieved = await bm25(self._corpus).search(SearchQuery(query, k=k))
        return retrieved.passages

    def score(self, request: ScoreRequest) -> ScoreReply:
        """Score predicted spans against gold ones."""
        scored: ItemScore = score_item(
            _labels(request.answer, request.gold),
            _labels(request.answer, request.spans, request.hard),
        )
        return ScoreReply(iou=scored.iou, corr=scored.corr, f1=scored.f1)

    def spec(self, detector: str | None) -> Spec:
        """Return the specification of a detector; None for the first one.

        Raises:
            NotOfferedError: it is not offered.
        """
        return self._specs[self._check_offered(detector, self.detectors)]

    def _check_offered(self, name: str | None, offered: Sequence[str]) -> str:
        if not offered:
            raise NotOfferedError("no detector that judges claims is offered")
        if name is not None and name not in offered:
            raise NotOfferedError(f"{name!r} is not offered; available: {', '.join(offered)}")
        return name or offered[0]

    async def _detect(self, name: str, item: Item, *, as_one_claim: bool) -> DetectionReply:
        finding = await self._build(name, as_one_claim).detect(item)
        annotation = next(iter(finding.annotations), None)
        if annotation is None:
            raise ModelError(f"{name} said nothing")
        return reply_of(annotation, finding.item)


def reply_of(annotation: Annotation, item: Item) -> DetectionReply:
    """Return a detector's annotation of an item as a reply, with places in what was sent."""
    begin = len(str(item.meta.get(REASONING, "")))

    def sent(span: Span) -> Span:
        return span.model_copy(update={"start": span.start + begin, "end": span.end + begin})

    return DetectionReply(
        detector=annotation.annotator,
        status=annotation.status,
        spans=tuple(map(sent, annotation.spans)),
        hard=tuple(
            Interval(start=part.start + begin, end=part.end + begin) for part in hard_of(annotation)
        ),
        claims=tuple(
            claim.model_copy(update={"source": claim.source and sent(claim.source)})
            for claim in annotation.claims
        ),
        passages=item.passages,
        note="; ".join(filter(None, (UNJUDGED if begin else None, annotation.note))) or None,
    )


def _build(specs: Mapping[str, Spec], name: str, as_one_claim: bool) -> Detector:
    spec = specs[name]
    if as_one_claim and isinstance(spec, DetectorSpec):
        spec = spec.model_copy(update={"options": {**spec.options, _WHOLE: "answer"}})
    return build(spec, Meter())


def _labels(
    answer: str, spans: Sequence[Span], hard: Sequence[Interval] | None = None
) -> ItemLabels:
    annotation = Annotation(
        annotator="asked",
        kind=AnnotatorKind.DETECTOR,
        spans=tuple(spans),
        hard=None if hard is None else tuple(hard),
    )
    return ItemLabels(
        id="asked",
        lang=UNDETERMINED,
        soft=tuple(flatten(annotation.spans)),
        hard=tuple(hard_of(annotation)),
        length=len(answer),
    )
