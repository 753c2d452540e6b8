"""Detectors that ask one model, and mark what it says.

Each is a ``dspy.Module``, from an item to its annotation:

    detector = build(DetectorSpec(detector="ucsc-extract"))
    detector(item=item).annotation                # or: (await detector.acall(item=item))
    detector(answer="…", question="…", passages=["…"]).spans
    detector.save("prompts.json")                 # of detector.named_predictors()

A system's own steps stand in its ``steps``; here is what surrounds them. Retries, caching and
counting are the language model's (``spanlab.models``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import chain
from typing import Self

import dspy
from pydantic import ValidationError

from spanlab.base.errors import (
    BudgetError,
    ConfigurationError,
    InputError,
    SpanlabError,
    UnparsableAnswerError,
)
from spanlab.base.runtime import wait
from spanlab.detection.base import Detector, DetectorKit, DetectorResult, failed
from spanlab.detection.ensemble import Ensemble, EnsembleVote
from spanlab.models import CallTotals, predict
from spanlab.models.failures import quoted
from spanlab.models.meter import keeping
from spanlab.models.programs import add_guidance, apply_program
from spanlab.output.figures import counted
from spanlab.schema import (
    BY_HAND,
    Annotation,
    AnnotatorKind,
    AnswerPlace,
    CallsStep,
    Item,
    QuoteStep,
    RemarkStep,
    Span,
    Step,
    merged,
)
from spanlab.schema.usage import Usage
from spanlab.search.base import Retriever, SearchQuery, ensure, retrieval_of
from spanlab.text.extents import Extent
from spanlab.text.quotes import MappedSpan, ModelQuote, QuoteMapping

_THOUGHTS = 2_000  # characters of what a model thought aloud that are kept of a call
_MOST_THOUGHTS = 10  # calls of which they are kept


@dataclass
class DetectionCase:
    """One item on its way through a detector, with what has been done so far."""

    item: Item
    trace: list[Step] = field(default_factory=list)
    partial: list[object] = field(default_factory=list)  # what ``gathering.keep`` was given

    async def retrieve(
        self, retriever: Retriever, query: SearchQuery | None = None
    ) -> tuple[int, ...]:
        """Let the item have what the retriever finds for a query, or for itself.

        Any number of searches may be under way at once.

        Returns:
            The indices of the passages found, best first, whether now or before, after those that
            people have added; all that the item has for the retriever of given passages.
        """
        enriched = await ensure(self.item, retriever, query)
        self.item = merged(
            self.item, enriched
        ).item  # another search may have added to it meanwhile
        noted = retrieval_of(self.item, retriever, query)
        if noted is None:
            return tuple(range(len(self.item.passages)))
        added = (
            retrieval.passages
            for retrieval in self.item.retrievals
            if retrieval.retriever == BY_HAND
        )
        return tuple(dict.fromkeys((*chain.from_iterable(added), *noted.passages)))


class ModelDetector(dspy.Module):
    """A detector that asks a model; many items may be under way at once.

    As a module of dspy's it takes an ``item``, or its fields ``answer``, ``question``,
    ``passages`` and ``lang``, and returns ``annotation``, failed with a reason where a step failed,
    its ``spans``, and ``item`` with the passages that were retrieved. Its predictors are
    those of ``program``, and their names begin so. It asks the model that its specification or the
    environment names, else the one that dspy is configured with; ``set_lm`` gives its predictors
    another.

    Args:
        kit: what it works with.
        program: the model's steps, with the prompts that an optimiser can tune.
        guided: the predictor whose instruction the specification's guidance is added to.
    """

    def __init__(self, kit: DetectorKit, program: dspy.Module, *, guided: str) -> None:
        super().__init__()
        self.kit = kit
        if kit.prompts is not None:
            apply_program(program, kit.prompts)
        elif kit.spec.guidance:
            add_guidance(program, guided, kit.spec.guidance)
        self.program = program
        self.name = kit.spec.signs

    @abstractmethod  # for mypy: dspy's metaclass leaves no room for ABC's
    async def steps(self, case: DetectionCase) -> Annotation:
        """Take an item through the system's steps; the trace in ``case`` grows meanwhile."""

    async def detect(self, item: Item) -> DetectorResult:
        """Annotate an item; see ``Detector``."""
        # dspy would otherwise keep every prompt of a run, for optimisers.
        with dspy.context(trace=None):
            return await CalledModule(self).detect(item)

    def forward(self, item: Item | None = None, **fields: object) -> dspy.Prediction:
        """Annotate an item; blocks until models have answered."""
        return wait(self.aforward(item, **fields))

    async def aforward(self, item: Item | None = None, **fields: object) -> dspy.Prediction:
        """Annotate an item.

        Args:
            item: question, answer, passages and what was retrieved before.
            **fields: instead of an item its ``answer``, ``question``, ``passages`` (texts, or
                dicts as in ``Passage``) and ``lang``.

        Returns:
            ``annotation``, whose trace tells what was asked, read and decided, its ``spans``
            (offsets in characters of the answer), and ``item`` with what was retrieved meanwhile.

        Raises:
            InputError: there is neither an item nor an answer, or a field is not what it should be.
            BudgetError: the run's budget is used up; nothing is wrong with the item.
            ConfigurationError: key, address or name of the model is wrong; see there.
        """
        case = DetectionCase(item or _item_of(fields))
        with self.kit.meter.calls() as used, keeping(case.partial):
            try:
                annotation = await self.steps(case)
            except (BudgetError, ConfigurationError):
                raise
            except SpanlabError as error:
                case.trace.extend(self.partial_steps(case))
                annotation = failed(self.name, error)
        remarks = (RemarkStep(text=text) for text in sorted(used.remarks))
        trace = (*case.trace, *annotation.trace, *remarks, *_thoughts(used), *self._calls(used))
        annotation = annotation.model_copy(update={"trace": trace})
        return dspy.Prediction(annotation=annotation, spans=annotation.spans, item=case.item)

    async def ask(
        self, module: dspy.Module | None = None, /, role: str | None = None, **inputs: object
    ) -> dspy.Prediction:
        """Run the program, or a part of it, on the detector's own model of a role.

        Args:
            module: what to run; None for the whole program.
            role: of the entry's roles; None for the main one.
            inputs: the input fields.

        Raises:
            SpanlabError: the model gave no answer that can be used.
        """
        return await predict(module or self.program, self.kit.lm(role), **inputs)

    def with_predictors(self, predictors: Mapping[str, dspy.Module]) -> Self:
        """Return this detector with other predictors in the place of its program's, by name."""
        other = copy(self)
        other.program = copy(self.program)
        for name, predictor in predictors.items():
            setattr(other.program, name, predictor)
        return other

    def partial_steps(self, case: DetectionCase) -> Iterable[Step]:
        """Return what was found before a step failed, for the trace of the failed item."""
        return ()

    def annotation(self, **fields: object) -> Annotation:
        """Return an annotation of this detector; done, unless ``fields`` say otherwise."""
        return Annotation.model_validate(
            {"annotator": self.name, "kind": AnnotatorKind.DETECTOR, **fields}
        )

    def note_quotes(self, quotes: Sequence[ModelQuote], mapping: QuoteMapping) -> None:
        """Count what was quoted, and what of that does not stand in the answer.

        Raises:
            UnparsableAnswerError: nothing of it does, so that the reply says nothing of the answer.
        """
        lost = len(quotes) - len(mapping.mapped)
        self.kit.meter.note("", Usage(quotes=len(quotes), quotes_lost=lost))
        if quotes and not mapping.mapped:
            raise UnparsableAnswerError(
                f"the model quoted {counted(len(quotes), 'text')} of which none is in the "
                f"answer{quoted(quotes[0].text)}; use another model"
            )

    def _calls(self, used: CallTotals) -> list[Step]:
        return [
            CallsStep(
                model=model,
                calls=usage.calls,
                from_cache=usage.from_cache,
                input_tokens=usage.input_tokens,
                cached_tokens=usage.cached_tokens,
                output_tokens=usage.output_tokens,
                cost=usage.cost,
                options=self.kit.asked(model),
            )
            for model, usage in used.by_model.items()
            if usage.calls or usage.from_cache
        ]


@dataclass(frozen=True)
class CalledModule:
    """A detector that is called as a module: dspy's optimisers hear what it asks."""

    module: dspy.Module

    @property
    def name(self) -> str:
        """The name that it signs its annotations with."""
        return str(self.module.name)

    async def detect(self, item: Item) -> DetectorResult:
        """Annotate an item; see ``Detector``."""
        prediction = await self.module.acall(item=item)
        return DetectorResult(prediction.annotation, prediction.item, prediction.get("members", ()))


class EnsembleModule(dspy.Module):
    """Detectors and their vote as a module of dspy's, whose predictors are its members'.

    It is called as a ``ModelDetector`` is; its prediction also has ``members``, their annotations.

    Args:
        name: signs the vote.
        members: the detectors.
    """

    def __init__(self, name: str, members: Sequence[Detector]) -> None:
        super().__init__()
        self.name, self.members = name, list(members)

    async def detect(self, item: Item) -> DetectorResult:
        """Annotate an item; see ``Detector``."""
        with dspy.context(trace=None):  # as above
            return await CalledModule(self).detect(item)

    def forward(self, item: Item | None = None, **fields: object) -> dspy.Prediction:
        """Annotate an item; blocks until models have answered."""
        return wait(self.aforward(item, **fields))

    async def aforward(self, item: Item | None = None, **fields: object) -> dspy.Prediction:
        """Annotate an item; see ``ModelDetector.aforward``."""
        # Again for every item: an optimiser's copy has other members.
        votes = [EnsembleVote(self.name, tuple(member.name for member in self.members))]
        called = [CalledModule(m) if isinstance(m, dspy.Module) else m for m in self.members]
        result = await Ensemble(called, votes).detect(item or _item_of(fields))
        return dspy.Prediction(
            annotation=result.annotation,
            spans=result.annotation.spans,
            item=result.item,
            members=result.members,
        )


def _item_of(fields: Mapping[str, object]) -> Item:
    """Return the item that a caller of dspy describes by its fields."""
    expected = "item, or answer with question, passages and lang"
    if "answer" not in fields:
        raise InputError("nothing to check", field="answer", expected=expected)
    given = fields.get("passages") or ()
    several = [given] if isinstance(given, str) or not isinstance(given, Sequence) else given
    passages = [{"text": passage} if isinstance(passage, str) else passage for passage in several]
    try:
        return Item.model_validate({"id": "answer", **fields, "passages": passages})
    except ValidationError as error:
        field = str(error.errors(include_url=False)[0]["loc"][0])
        raise InputError("no item can be made", field=field, expected=expected) from None


def _thoughts(used: CallTotals) -> list[Step]:
    kept = [text.strip() for text in used.thoughts[:_MOST_THOUGHTS]]
    cut = [text if len(text) <= _THOUGHTS else text[: _THOUGHTS - 1] + "…" for text in kept]
    return [RemarkStep(text=f"the model's reasoning: {text}") for text in cut]


def span_of(answer: str, mapped: MappedSpan, note: str | None = None) -> Span:
    """Return a mapped place of the answer as a span, with a note on why it is marked."""
    start, end = mapped.start, mapped.end
    text = answer[start:end]
    return Span(start=start, end=end, text=text, prob=mapped.prob, note=note or None)


def strongest(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, one for each place: that with the highest probability."""
    best: dict[tuple[int, int], Span] = {}
    for span in spans:
        likeliest = best.get((span.start, span.end))
        if likeliest is None or likeliest.prob < span.prob:
            best[span.start, span.end] = span
    return [best[place] for place in sorted(best)]


def places_of(extents: Iterable[Extent | MappedSpan]) -> tuple[AnswerPlace, ...]:
    """Return places of the answer as a step of a trace holds them."""
    return tuple(AnswerPlace(start=place.start, end=place.end) for place in extents)


def quote_steps(quotes: Sequence[ModelQuote], mapping: QuoteMapping) -> list[QuoteStep]:
    """Return what was quoted and its places; quotes that were not found have no places."""
    places = {mapped.quote: mapped.places for mapped in mapping.mapped}
    return [
        QuoteStep(
            text=quote.text,
            prob=quote.prob,
            reason=quote.reason,
            places=places_of(places.get(index, ())),
        )
        for index, quote in enumerate(quotes)
    ]
