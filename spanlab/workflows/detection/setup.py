"""How detectors were set up when they annotated a dataset: what their marks depend on."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterable, Mapping
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

from spanlab.detectors import DetectorSpec
from spanlab.detectors.building import program_name
from spanlab.detectors.entry import entries, entry_of
from spanlab.lm.choice import OPENAI
from spanlab.lm.refusals import recall
from spanlab.schema import DatasetSettings, DetectorSetup
from spanlab.settings import Settings
from spanlab.storage import Store
from spanlab.workflows.detection.estimate import settings_of
from spanlab.workflows.detection.request import RunRequest


def note_setups(store: Store, request: RunRequest, settings: Settings) -> None:
    """Keep with a dataset how the detectors of a run are set up.

    What is there already stays, unless the run annotates every item anew.

    Raises:
        NotFoundError: there is no such dataset.
    """
    made = [setup_of(spec, settings) for spec in request.specs]
    anew = request.again and request.items is None and request.limit is None

    def noted(old: DatasetSettings) -> DatasetSettings:
        kept = [one for one in old.setups if not (anew and one.annotator in request.annotators)]
        return old.model_copy(update={"setups": (*kept, *(one for one in made if one not in kept))})

    store.change_settings(request.dataset, noted)


def setup_of(spec: DetectorSpec, settings: Settings) -> DetectorSetup:
    """Return how a detector is set up."""
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
    """Return in what a detector differs from the one that a certificate is bound to."""
    now = setup_of(spec, settings)
    values = {"models": now.models, "prompts": now.prompts, "options": option_hash(now)}
    then = {key: binding.get(key, {}).get(spec.signs) for key in values}
    return tuple(key for key in values if then[key] not in (None, [values[key]]))


def model_checks(setups: Iterable[DetectorSetup]) -> list[dict[str, Any]]:
    """Return what ``check-model`` found last of each model that detectors were set up with."""
    endpoints = {
        (one.settings.get(f"{key[:-5]}base_url") or OPENAI, name): None
        for one in setups
        for key, name in one.models.items()
        if key.endswith(".model") and not key.startswith("options.")
    }
    checks = ((model, recall(str(endpoint), str(model))) for endpoint, model in endpoints)
    return [{"model": model, "check": check and check.model_dump()} for model, check in checks]


def changed_prompts(
    setups: Iterable[DetectorSetup], settings: Settings | None = None
) -> tuple[str, ...]:
    """Return whose prompts differ from those that are in use now, such as by another default."""
    settings = settings or Settings.read()
    changed, known = [], {entry.name for entry in entries()}
    for one in setups:
        named = {key: one.settings.get(key) for key in ("detector", "name", "program", "guidance")}
        spec = DetectorSpec.model_validate(named)
        if spec.detector in known and one.prompts != prompt_hash(spec, settings):
            changed.append(one.annotator)
    return tuple(dict.fromkeys(changed))


def prompt_hash(spec: DetectorSpec, settings: Settings) -> str:
    """Return a hash of a detector's files, in which its prompts stand, and of its tuned one."""
    entry = entry_of(spec.detector)
    place = importlib.import_module(entry.module) if entry.module else None
    files = sorted(Path(place.__file__).parent.glob("*")) if place and place.__file__ else []
    program = settings.programs / f"{program_name(spec, settings)}.json"
    code = sha256()
    for path in (*files, program):
        if path.is_file():
            code.update(path.name.encode() + path.read_bytes())
    return code.hexdigest()
