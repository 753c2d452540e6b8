"""From a specification to a detector, with its models, its prompts and its memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager
from functools import cache, partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, cast

from spanlab import doors
from spanlab.base.errors import UsageError
from spanlab.base.inbound import brought, foreign
from spanlab.base.settings import Settings
from spanlab.detection.base import BatchDetector, Detector, DetectorKit, LocalDetector
from spanlab.detection.ensemble import Ensemble, EnsembleVote
from spanlab.detection.entry import asks_models, entry_of
from spanlab.detection.local import BatchCollector, in_executor
from spanlab.detection.spec import DetectorSpec, EnsembleSpec, Spec
from spanlab.models import Meter, answer_cache, language_model
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import Annotation, Item, TunedPredictor
from spanlab.schema.usage import Budget
from spanlab.search.base import GivenPassages
from spanlab.search.spec import AveritecSpec, GivenSpec, retriever

if TYPE_CHECKING:
    from spanlab.detection.memory import EvidenceMemory, MemoryChoice
    from spanlab.search.pages import PageReader
    from spanlab.tools.mcp_servers import ServerState


OWN_PROMPT = "none"  # as a program's name: the detector's own prompt, whatever is its default


def build(
    spec: Spec,
    meter: Meter | None = None,
    settings: Settings | None = None,
    executor: Executor | None = None,
    *,
    cached: bool = True,
) -> Detector:
    """Build what a specification describes.

    Args:
        spec: a detector or an ensemble.
        meter: counts the model calls and stops them at its budget; None counts for nobody.
        settings: where answers of models are cached and tuned prompts lie; None reads the
            environment.
        executor: does the work of detectors that ask no model; None takes a thread.
        cached: whether answers of models are looked up and kept; else each call is made.

    Returns:
        The detector, which may be shared by any number of tasks.

    Raises:
        UsageError: no detector has that name, or nothing names a model; then that of
            ``dspy.configure`` is asked, if there is one and no budget, which could not count it.
        MissingKeyError: the endpoint needs a key and none is set.
        NotFoundError: there is no such program.
        InputError: the program is damaged or another detector's.
    """
    if isinstance(spec, DetectorSpec) and not asks_models(spec.detector):
        local = detector(spec.model_copy(update={"name": None}))  # says so if it cannot be made
        if isinstance(local, BatchDetector):
            return BatchCollector(spec.signs, local)
        return in_executor(spec.signs, partial(_annotate, spec), executor)
    meter, settings = meter or Meter(), settings or Settings.read()
    if isinstance(spec, EnsembleSpec):
        members = [
            build(member, meter, settings, executor, cached=cached) for member in spec.members
        ]
        if any(asks_models(member.detector) for member in spec.members):
            from spanlab.detection.common.model_detector import EnsembleModule

            return EnsembleModule(spec.name, members)
        return Ensemble(
            members, (EnsembleVote(spec.name, tuple(member.name for member in members)),)
        )
    return _asking(spec, kit_of(spec, meter, settings, cached=cached))


def _annotate(spec: DetectorSpec, item: Item) -> Annotation:
    annotation = detector(spec.model_copy(update={"name": None})).annotate(item)
    return (
        annotation if spec.name is None else annotation.model_copy(update={"annotator": spec.name})
    )


def detector(chosen: str | DetectorSpec) -> LocalDetector:
    """Return a detector that asks no model, the same one every time in this process.

    One that needs an option is made again: the files that it names may have changed.

    Args:
        chosen: its name, or its specification with options.

    Raises:
        UsageError: no detector has that name, it asks models, or it cannot be made so.
    """
    spec = DetectorSpec(detector=chosen) if isinstance(chosen, str) else chosen
    if asks_models(spec.detector):
        raise UsageError(f"{spec.detector!r} asks models: build it from a specification")
    if spec.signs != spec.detector:
        raise UsageError(f"{spec.detector!r} signs with its own name, not {spec.name!r}")
    if entry_of(spec.detector).required:
        return _build_local(spec)
    return _local(spec.model_dump_json())


@cache
def _local(spec: str) -> LocalDetector:
    return _build_local(DetectorSpec.model_validate_json(spec))


def _build_local(spec: DetectorSpec) -> LocalDetector:
    kit = DetectorKit(spec, GivenPassages(), {}, Meter())
    with _making(spec):
        return cast(LocalDetector, _create(spec.detector)(kit))


def _asking(spec: DetectorSpec, kit: DetectorKit) -> Detector:
    create = _create(spec.detector)
    with _making(spec):
        return cast(Detector, create(kit))


def _making(spec: DetectorSpec) -> AbstractContextManager[None]:
    return foreign(f"the detector {spec.detector!r} cannot be made", UsageError)


def kit_of(
    spec: DetectorSpec, meter: Meter, settings: Settings, *, cached: bool = True
) -> DetectorKit:
    """Return what a detector that asks models works with.

    Args:
        spec: the detector.
        meter: counts the model calls.
        settings: where answers of models are cached and tuned prompts lie.
        cached: see ``build``.

    Raises:
        UsageError, MissingKeyError, NotFoundError, InputError: see ``build``.
    """
    spec = spec.model_copy(update={"reasoning": spec.thinks()})
    entry = entry_of(spec.detector)
    choices = spec.choices(leaves_to_dspy=meter.budget == Budget())  # which it could not count
    # What was found for a claim before its date is all that may be read of it.
    local = isinstance(spec.retriever, AveritecSpec)
    cache = answer_cache(settings, "models") if cached else None
    lms = {choice: language_model(choice, meter, cache=cache) for choice in set(choices.values())}
    return DetectorKit(
        spec=spec,
        retriever=retriever(spec.retriever or GivenSpec(), meter, settings),
        meter=meter,
        models={role: lms[choice] for role, choice in choices.items()},
        prompts=_prompts(spec, settings),
        pages=_pages(settings) if entry.reads_pages and not local else None,
        memory=partial(_memory, settings),
        tools=partial(_tools, settings),
    )


def _pages(settings: Settings) -> PageReader:
    from spanlab.search.pages import web_pages

    return web_pages(settings)


def _memory(settings: Settings, choice: MemoryChoice) -> EvidenceMemory:
    from spanlab.detection.memory import EvidenceMemory

    if doors.offer("kit", "memory") is None:
        return EvidenceMemory(None, choice)
    opened: EvidenceMemory = brought("kit", "memory")(settings, choice)
    return opened


async def _tools(settings: Settings, names: str) -> Sequence[ServerState]:
    from spanlab.tools.mcp_servers import server_states
    from spanlab.tools.toolbox import chosen_servers

    return await server_states(chosen_servers(settings, names))


def _create(name: str) -> Callable[[DetectorKit], Detector | LocalDetector]:
    create = entry_of(name).create
    if create is None:
        raise UsageError(f"{name!r} is an ensemble: a specification names its members")
    return cast(
        "Callable[[DetectorKit], Detector | LocalDetector]",
        resolve_name(create) if isinstance(create, str) else create,
    )


def _prompts(spec: DetectorSpec, settings: Settings) -> Mapping[str, TunedPredictor] | None:
    """Return the prompts of the program that a specification or the registry chooses."""
    name = program_name(spec, settings)
    if name is None:
        return None
    program = ProgramRegistry(settings.programs).load(name)
    if program.detector != spec.detector:
        raise UsageError(
            f"{name!r} is a tuned prompt of {program.detector!r}, not {spec.detector!r}"
        )
    return program.predictors


def program_name(spec: DetectorSpec, settings: Settings) -> str | None:
    """Return which tuned program a detector uses; None for its own prompt."""
    # A detector's guidance outweighs its default program; that of a member only stands in for one.
    guided = spec.guidance is not None and spec.signs == spec.detector
    default = None if guided else ProgramRegistry(settings.programs).default(spec.signs)
    name = spec.program or default
    return None if name == OWN_PROMPT else name
