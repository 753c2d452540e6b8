"""The settings of a run's detectors: compared with another run's, and kept with the dataset."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from hashlib import sha256
from importlib.metadata import version
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue, PydanticUserError, ValidationError

from spanlab.base.errors import UsageError
from spanlab.base.settings import Settings
from spanlab.detection import DetectorEntry, installed
from spanlab.detection.building import program_name
from spanlab.detection.common.fit_options import FITTED
from spanlab.detection.entry import entries, entry_of
from spanlab.detection.fits import find_fit, fit_named
from spanlab.detection.request import RunRequest
from spanlab.detection.spec import DetectorSpec
from spanlab.models.choice import OPENAI
from spanlab.models.programs import ProgramRegistry
from spanlab.models.refusals import recall
from spanlab.output.figures import counted
from spanlab.schema import DatasetSettings, DetectorFit, DetectorSetup, Status, answer_hash
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of

if TYPE_CHECKING:
    import dspy


# How endpoints are reached, and what they cost: no finding depends on it.
_REACHING = frozenset({"api_key_env", "base_url_env", "retries", "timeout", "price", "origins"})
_NONE = "none"


def settings_of(spec: DetectorSpec) -> dict[str, JsonValue]:
    """Return all settings that a detector's results depend on, by dotted names, with defaults."""
    entry = installed().get(spec.detector)
    written = spec.model_dump(mode="json")
    if isinstance(entry, DetectorEntry):
        read = entry.options.model_validate(spec.options)
        written["options"] = read.model_dump(mode="json")
    return dict(_flat(written, ""))


def differences(before: DetectorSpec, now: DetectorSpec) -> tuple[str, ...]:
    """Say in which settings two specifications of a detector differ.

    Args:
        before: the specification of an earlier run.
        now: the specification of a new one.

    Returns:
        A clause for each setting, such as "calibration learnt.json (it was none)"; empty if
        results do not depend on the difference.
    """
    settings_before, settings_now = settings_of(before), settings_of(now)
    return tuple(
        f"{name.removeprefix('options.')} {_in_words(settings_now.get(name))} (it was "
        f"{_in_words(settings_before.get(name))})"
        for name in dict.fromkeys((*settings_now, *settings_before))
        if settings_now.get(name) != settings_before.get(name)
    )


def covers(under_way: RunRequest, other: RunRequest) -> bool:
    """Say whether a run does all that another request asks for, whatever their pace and budgets."""
    if other.again and not under_way.again:
        return False
    if under_way.limit not in {None, other.limit} or under_way.items not in {None, other.items}:
        return False
    return _work_asked_for(under_way) == _work_asked_for(other)


def _work_asked_for(request: RunRequest) -> tuple[JsonValue, ...]:
    specs: list[JsonValue] = [settings_of(spec) for spec in request.specs]
    return request.dataset, list(request.annotators), request.retry_failed, specs


def _flat(value: JsonValue, name: str) -> Iterator[tuple[str, JsonValue]]:
    if not isinstance(value, dict):
        yield name, value
        return
    for key, inner in value.items():
        if key not in _REACHING:
            yield from _flat(inner, f"{name}.{key}".strip("."))


def _in_words(value: JsonValue) -> str:
    return _NONE if value in (None, "") else str(value)


def note_setups(store: Store, request: RunRequest, settings: Settings) -> None:
    """Keep the settings of a run's detectors with the dataset.

    Earlier ones stay beside them, unless the run annotates every item again.

    Raises:
        NotFoundError: there is no such dataset.
    """
    new_setups = [
        setup_of(spec, settings).model_copy(update={"learnt_from": seen})
        for spec, seen in zip(request.specs, _seen(store, request, settings), strict=True)
    ]
    anew = request.again and request.items is None and request.limit is None

    def add_setups(old: DatasetSettings) -> DatasetSettings:
        replaced = request.annotators if anew else ()
        kept_setups = [setup for setup in old.setups if setup.annotator not in replaced]
        added = (setup for setup in new_setups if setup not in kept_setups)
        return old.model_copy(update={"setups": (*kept_setups, *added)})

    store.change_settings(request.dataset, add_setups)


def takes_over(store: Store, request: RunRequest, settings: Settings) -> Iterator[str]:
    """Keep the settings of a run that another version began, too; yield what to say of that."""
    setups = summary_of(store, request.dataset).settings.setups
    ours = {setup.annotator for setup in setups if setup.version == version("spanlab")}
    if not ours.issuperset(request.annotators):
        rest = request.model_copy(update={"again": False})  # what it did before the upgrade stays
        yield from earlier_versions(store, rest)
        note_setups(store, rest, settings)


def earlier_versions(store: Store, request: RunRequest) -> Iterator[str]:
    """Yield what to say of finished items that other versions of spanlab have annotated."""
    setups = summary_of(store, request.dataset).settings.setups
    for name in () if request.again else dict.fromkeys(spec.signs for spec in request.specs):
        n_done = store.counts(request.dataset, name)[Status.DONE]
        versions = list(dict.fromkeys(s.version for s in setups if s.annotator == name))
        others = [each for each in versions if each != version("spanlab")]
        if n_done and others:
            some = "some of " if len(others) < len(versions) else ""
            yield (
                f"{some}{counted(n_done, 'item')} that {name} has finished: annotated by spanlab "
                f"{', '.join(others)}, and stay so; --again annotates them with this version"
            )


def _seen(store: Store, request: RunRequest, settings: Settings) -> Iterator[tuple[str, ...]]:
    """Yield for each detector of a run the hashes of the dataset's answers that it learnt from."""
    own: frozenset[str] = frozenset()
    for spec in request.specs:
        learnt = learnt_from(spec, settings, partial(fit_named, store))
        if learnt and not own:
            own = frozenset(
                answer_hash(record.item) for record in store.records(request.dataset, annotators=())
            )
        yield tuple(sorted(learnt & own))


def learnt_from(
    spec: DetectorSpec, settings: Settings, fit_of: Callable[[str, str], DetectorFit] = find_fit
) -> frozenset[str]:
    """Return the ``answer_hash`` of all answers that a detector learnt from, as far as is known.

    That is by its trained model, its fit, and its tuned prompt with those that it began from.

    Args:
        spec: the detector.
        settings: where tuned prompts are.
        fit_of: finds a fit by its name and its detector's.

    Raises:
        NotFoundError: it has no such fit or tuned prompt.
        InputError: its model or its tuned prompt is damaged.
    """
    entry = entry_of(spec.detector)
    options = entry.options.model_validate(spec.options)
    learnt = set(entry.learnt(options))
    if fitted := getattr(options, FITTED, ""):
        learnt.update(fit_of(fitted, spec.detector).learnt_from)
    programs, name = ProgramRegistry(settings.programs), program_name(spec, settings)
    while name is not None:
        program = programs.load(name)
        learnt.update(program.learnt_from)
        name = program.parent if program.parent in programs else None
    return frozenset(learnt)


def setup_of(spec: DetectorSpec, settings: Settings) -> DetectorSetup:
    """Return the settings and the prompts of a detector, as a dataset keeps them."""
    return DetectorSetup(
        annotator=spec.signs,
        version=version("spanlab"),
        settings={key: value for key, value in settings_of(spec).items() if key != "metric"},
        prompts=prompt_hash(spec, settings),
    )


def option_hash(setup: DetectorSetup) -> str:
    """Return a hash of a detector's options; they may name places that are nobody's business."""
    return sha256(json.dumps(setup.options, sort_keys=True).encode()).hexdigest()


def setup_changes(
    binding: Mapping[str, Any], spec: DetectorSpec, settings: Settings
) -> tuple[str, ...]:
    """Return in what a detector differs from the one that a certificate is bound to.

    Returns:
        Some of "models", "prompts" and "options"; empty if the certificate holds.
    """
    setup = setup_of(spec, settings)
    values = {"models": setup.models, "prompts": setup.prompts, "options": option_hash(setup)}
    bound_values = {key: binding.get(key, {}).get(spec.signs) for key in values}
    return tuple(key for key in values if bound_values[key] not in (None, [values[key]]))


def model_checks(setups: Iterable[DetectorSetup]) -> list[dict[str, Any]]:
    """Return the last result of ``check-model`` for each model of detectors, as JSON."""
    endpoints = {
        (setup.settings.get(f"{key[:-5]}base_url") or OPENAI, name): None
        for setup in setups
        for key, name in setup.models.items()
        if key.endswith(".model") and not key.startswith("options.")
    }
    checks = ((model, recall(str(endpoint), str(model))) for endpoint, model in endpoints)
    return [{"model": model, "check": check and check.model_dump()} for model, check in checks]


def changed_prompts(
    setups: Iterable[DetectorSetup], settings: Settings | None = None
) -> tuple[str, ...]:
    """Return the annotators whose prompts have changed since, such as by another default."""
    settings = settings or Settings.read()
    changed, installed_names = [], {entry.name for entry in entries()}
    for setup in setups:
        named = {
            key: setup.settings.get(key) for key in ("detector", "name", "program", "guidance")
        }
        options = {
            key.removeprefix("options."): value
            for key, value in setup.settings.items()
            if key.startswith("options.")
        }
        try:
            spec = DetectorSpec.model_validate({**named, "options": options})
            now = prompt_hash(spec, settings) if spec.detector in installed_names else setup.prompts
        except (ValidationError, UsageError):  # it has no such option any more
            now = ""
        if setup.prompts != now:
            changed.append(setup.annotator)
    return tuple(dict.fromkeys(changed))


def prompt_hash(spec: DetectorSpec, settings: Settings) -> str:
    """Return a hash of what a detector asks and of what it learnt.

    That is the instructions and fields of its signatures, wherever they stand, and the texts that
    its prompts have beside them; its tuned program, demonstrations included, if it uses one; and
    the data of its entry, such as a trained model.
    """
    entry = entry_of(spec.detector)
    module = importlib.import_module(entry.module) if entry.module else None
    texts = set(_signatures(module)) if module and entry.asks_models else set()
    program = settings.programs / f"{program_name(spec, settings)}.json"
    options = entry.options.model_validate(spec.options)
    data = (*entry.data(options), *([entry.members] if entry.members else []), program)
    texts |= {path.read_bytes() for path in data if path.is_file()}
    digests = sorted(sha256(text).digest() for text in texts)
    return sha256(b"".join(digests)).hexdigest()


def _signatures(module: ModuleType) -> Iterator[bytes]:
    """Yield the prompts of a module and of what it imports from its package and from spanlab."""
    import dspy  # which takes a second to load, and detectors that ask models have loaded

    from spanlab.models.adapters import PromptText

    package = module.__package__ or module.__name__
    names = {module.__name__}
    queue = [module.__name__]
    while queue:
        name = queue.pop()
        is_own = _is_in(name, package)
        for value in vars(sys.modules[name]).values():
            if isinstance(value, type) and issubclass(value, dspy.Signature):
                yield _signature_text(value)
            texts = value.values() if isinstance(value, dict) else (value,)
            yield from (text.encode() for text in texts if isinstance(text, PromptText))
            origin = getattr(value, "__module__", None)
            is_followed = _is_in(str(origin), "spanlab") or _is_in(str(origin), package)
            if is_own and is_followed and origin in sys.modules and origin not in names:
                names.add(origin)
                queue.append(origin)


def _is_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def _signature_text(signature: type[dspy.Signature]) -> bytes:
    fields: object
    try:
        fields = signature.model_json_schema()
    except PydanticUserError:  # a type without a schema, which a detector of others may have
        fields = list(signature.fields)
    return json.dumps([signature.instructions, fields], sort_keys=True).encode()
