"""Prepares an optimisation: its models, its detector, and its labelled items with passages."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from optimizers.examples import (
    LabelledItem,
)
from optimizers.metrics import ANSWER_TARGETS
from optimizers.request import PROMPT_TEMPERATURE, TASK_TEMPERATURE, Optimisation, PromptSearch
from optimizers.subjects import PartDetector, PartSubject, SpanSubject, TuningSubject
from optimizers.tuning import PromptTuner
from optimizers.units import check_metric, units
from optimizers.watching import OnEvent, StoppableMeter
from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.detection import Tunable, build, entry_of
from spanlab.detection.building import OWN_PROMPT
from spanlab.models import Meter, ModelChoice, answer_cache, language_model
from spanlab.models.programs import ProgramRegistry
from spanlab.output.figures import counted
from spanlab.schema import Annotation, Item, Record, TunedPredictor
from spanlab.search.base import ensure
from spanlab.search.spec import retriever

if TYPE_CHECKING:
    from spanlab.storage import Store

DRAWING: Final = ("temperature", "top_p", "seed")  # how tokens are drawn
_AT_ONCE = 16  # items that passages are fetched for


@dataclass(frozen=True)
class _FetchedItem:
    """An item with the passages found for it, and no annotations, as the store saves findings."""

    item: Item
    annotations: tuple[Annotation, ...] = ()


def resolve(request: Optimisation) -> Optimisation:
    """Fill in the models that a request leaves open from the environment, the same for all workers.

    Raises:
        UsageError: nothing names a model, or the metric does not score what the detector is tuned
            on.
    """
    search = request.search
    spec = search.detector
    check_metric(search.metric, entry_of(spec.detector))
    task = spec.choice(next(iter(entry_of(spec.detector).roles), ""))
    # Instructions are drawn freely, whatever holds for the detector's answers.
    free = dict.fromkeys(DRAWING)
    prompt = search.prompt_model or task.model_copy(update=free)
    spec = spec.model_copy(
        update={
            "model": _with_temperature(task, TASK_TEMPERATURE),
            "program": spec.program or OWN_PROMPT,
        }
    )
    filled = {"detector": spec, "prompt_model": _with_temperature(prompt, PROMPT_TEMPERATURE)}
    return request.model_copy(update={"search": search.model_copy(update=filled)})


def build_tuner(
    request: Optimisation, settings: Settings, stopper: StoppableMeter, on_event: OnEvent
) -> PromptTuner:
    """Build the tuner that runs a resolved request.

    Args:
        request: what to tune, with models.
        settings: where the cache and the programs are.
        stopper: counts model calls, and ends the search.
        on_event: called with every trial and remark.

    Raises:
        UsageError: the detector has no prompts to tune, or a model cannot be built.
        NotFoundError: there is no program to begin from.
    """
    search = request.search
    subject = _build_subject(search, stopper, settings)
    if search.detector.model is None or search.prompt_model is None:
        raise UsageError("the models have to be named before the search is built")
    cache = answer_cache(settings, "models")
    return PromptTuner(
        request=search,
        subject=subject,
        task_lm=language_model(search.detector.model, stopper, cache=cache),
        prompt_lm=language_model(search.prompt_model, stopper, cache=cache),
        stopper=stopper,
        on_event=on_event,
        dataset=request.dataset,
        parent_predictors=_parent_predictors(search, settings),
    )


def _parent_predictors(search: PromptSearch, settings: Settings) -> Mapping[str, TunedPredictor]:
    name = search.detector.program
    if name is None or name == OWN_PROMPT:
        return {}
    return ProgramRegistry(settings.programs).load(name).predictors


def _build_subject(
    search: PromptSearch, stopper: StoppableMeter, settings: Settings
) -> TuningSubject:
    entry, spec = entry_of(search.detector.detector), search.detector
    detector: object
    if (made := units()[search.unit].build) is not None:
        detector, names = made(spec, stopper, settings), entry.generator_prompts
    else:
        detector, names = build(spec, stopper, settings), entry.prompts
    if search.unit == "items" and isinstance(detector, Tunable):
        return SpanSubject(detector, search.metric)
    if names and isinstance(detector, PartDetector):
        predictors = {name: getattr(detector.program, name) for name in names}
        return PartSubject(detector.try_with, predictors, search.metric)
    raise UsageError(f"{spec.detector!r} has no prompts of its own to tune")


def choose_examples(records: Iterable[Record], search: PromptSearch) -> list[LabelledItem]:
    """Return the labelled items, or parts of them, that a search uses, in order of the items' ids.

    Raises:
        UsageError: there are none.
    """
    unit = units()[search.unit]
    labelled = [
        example
        for example in unit.labelled(records, search.labels)
        if not search.languages or example.item.lang in search.languages
    ]
    judges_answers = search.metric in ANSWER_TARGETS
    items = [one for one in labelled if judges_answers or one.labels.verdict.is_placed]
    items.sort(key=lambda example: example.item.id)
    if search.limit is not None and search.limit < len(items):
        drawn = random.Random(search.seed).sample(range(len(items)), search.limit)
        items = [items[index] for index in sorted(drawn)]
    if labelled and not items:
        raise UsageError(
            f"{search.labels} labels say only whether the {counted(len(labelled), 'answer')} are "
            "hallucinated, not where; a metric that tunes on that (--metric) is "
            f"{next(iter(ANSWER_TARGETS))}"
        )
    if not items:
        raise UsageError(
            unit.missing.format(labels=search.labels)
            + (f" in {', '.join(search.languages)}" if search.languages else "")
            + "; review some, or choose other labels"
        )
    return items


async def fetch_passages(
    examples: Sequence[LabelledItem], request: Optimisation, meter: Meter, store: Store
) -> list[LabelledItem]:
    """Fetch passages for the examples' items by the detector's retriever, and store them.

    Raises:
        SpanlabError: something could not be retrieved.
    """
    spec = request.search.detector.retriever
    if spec is None or spec.kind == "given":
        return list(examples)
    source = retriever(spec, meter, Settings.read())
    turn = asyncio.Semaphore(_AT_ONCE)

    async def fetch(item: Item) -> Item:
        async with turn:
            return await ensure(item, source)

    items = {example.item.id: example.item for example in examples}  # several claims may be of one
    fetched = {item.id: item for item in await asyncio.gather(*map(fetch, items.values()))}
    await asyncio.to_thread(
        store.save_findings, request.dataset, [_FetchedItem(item) for item in fetched.values()]
    )
    return [replace(example, item=fetched[example.item.id]) for example in examples]


def _with_temperature(choice: ModelChoice, temperature: float) -> ModelChoice:
    if choice.temperature is not None:
        return choice
    return choice.model_copy(update={"temperature": temperature})
