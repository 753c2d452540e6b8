"""What a benchmark is asked: detectors, datasets, controls, repeats; and what it may cost."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field, ValidationError

from spanlab.detectors import Spec, asks_models
from spanlab.detectors.spec import DetectorSpec
from spanlab.errors import UsageError
from spanlab.lm import Budget
from spanlab.options import problem
from spanlab.schema import FrozenModel, Item, Name
from spanlab.workflows.bench.cards import BenchItem, DatasetCard, FoundDataset, cards, find
from spanlab.workflows.detection.estimate import RunEstimate, estimate_items
from spanlab.workflows.detection.request import usual_concurrency
from spanlab.workflows.detection.selection import DetectorSelection, specs_in, with_seed
from spanlab.workflows.detection.specifications import specifications

Control = Literal["everything", "nothing", "shuffled", "no-passages", "annotator"]
CONTROLS: Final[Mapping[Control, str]] = {
    "everything": "mark everything",
    "nothing": "mark nothing",
    "annotator": "best single annotator",
    "shuffled": "another item's passages",
    "no-passages": "no passages",
}
_ALTERED: Final[tuple[Control, ...]] = ("shuffled", "no-passages")


class BenchSystem(FrozenModel):
    """A detector as a row of the table."""

    name: Name
    detector: Spec


class BenchDataset(FrozenModel):
    """A dataset by its card's name; ``metric`` is tested in place of the card's first."""

    name: Name
    metric: str | None = None
    limit: Annotated[int, Field(ge=1)] | None = None


class BenchPredictions(FrozenModel):
    """A file of somebody else's system, for the datasets whose items it has."""

    name: Name
    file: Path


class BenchPlan(FrozenModel):
    """A whole benchmark. Repeat ``n`` asks models with ``seed`` + n, from 0.

    ``output`` is the folder of the table; ``data`` are folders below which datasets are found,
    ``cards`` files of further cards, ``certificates`` those of measured detectors. ``retry_failed``
    runs cells again in which items failed.
    """

    output: Path
    systems: tuple[BenchSystem, ...] = ()
    datasets: tuple[BenchDataset, ...]
    data: tuple[Path, ...] = ()
    cards: tuple[Path, ...] = ()
    predictions: tuple[BenchPredictions, ...] = ()
    certificates: tuple[Path, ...] = ()
    controls: tuple[Control, ...] = tuple(CONTROLS)
    seed: int = 0
    repeats: Annotated[int, Field(ge=1, le=100)] = 1
    budget: Budget | None = None
    concurrency: Annotated[int, Field(ge=1, le=1024)] | None = None
    rate: Annotated[float, Field(gt=0)] | None = None
    retry_failed: bool = False

    def found(self) -> tuple[FoundDataset, ...]:
        """Return the datasets.

        Raises:
            UsageError: one has no card, or its files are not there.
        """
        known = cards(self.cards)
        return tuple(self._found(dataset, known) for dataset in self.datasets)

    def _found(self, wanted: BenchDataset, known: Mapping[str, DatasetCard]) -> FoundDataset:
        card = known.get(wanted.name)
        if card is None:
            raise UsageError(f"no card is called {wanted.name!r} (there are {', '.join(known)})")
        if wanted.metric is not None:
            card = card.with_metric(wanted.metric)
        dataset = find(card, self.data)
        if dataset is None:
            raise UsageError(f"{card.name} is not below --data: it can be had from {card.source}")
        return dataset

    def items(self, found: FoundDataset) -> list[BenchItem]:
        """Return a dataset's items, as many as the plan takes."""
        limits = {dataset.name: dataset.limit for dataset in self.datasets}
        return found.items(limits[found.card.name])


class BenchCell(NamedTuple):
    """One run of one system over one dataset; ``control`` says what is altered or done instead."""

    dataset: str
    system: str
    control: Control | None = None
    repeat: int = 0
    detector: Spec | None = None
    file: Path | None = None

    @property
    def row(self) -> str:
        """What the table calls it."""
        if self.detector is None or self.control is None:
            return self.system
        return f"{self.system}: {CONTROLS[self.control]}"

    @property
    def path(self) -> str:
        """Where it is kept below the output folder, without an ending."""
        parts = (self.system, self.control if self.detector else None, self.repeat or None)
        name = ".".join(str(part) for part in parts if part is not None)
        plain = "".join(char if char.isalnum() or char in "-_." else "_" for char in name)
        own = "" if plain == name else "." + sha256(name.encode()).hexdigest()[:8]
        return f"{self.dataset}/{plain}{own}"


def cells_of(plan: BenchPlan, dataset: FoundDataset, items: Iterable[BenchItem]) -> list[BenchCell]:
    """Return the cells of a dataset: detectors with their repeats, files, then controls."""
    name, given = dataset.card.name, list(items)
    has_passages = any(bench_item.item.passages for bench_item in given)
    raters = max(len(bench_item.people) for bench_item in given)
    made: list[BenchCell] = []
    for system in plan.systems:
        asks = any(asks_models(spec.detector) for spec in specs_in(system.detector))
        for repeat in range(plan.repeats if asks else 1):
            spec = _seeded(system.detector, plan.seed + repeat) if asks else system.detector
            made.append(BenchCell(name, system.name, None, repeat, spec))
    made += [
        BenchCell(name, prediction.name, file=prediction.file) for prediction in plan.predictions
    ]
    for control in plan.controls:
        if control in _ALTERED:
            made += [
                cell._replace(control=control)
                for cell in made
                if cell.detector and not cell.control and not cell.repeat and has_passages
            ]
        elif control != "annotator" or (raters > 1 and dataset.card.level == "spans"):
            made.append(BenchCell(name, CONTROLS[control], control))
    return made


def altered(items: list[BenchItem], control: Control | None) -> Iterator[Item]:
    """Yield items as a control has them: without passages, or with those of the next one."""
    for at, bench_item in enumerate(items):
        if control not in _ALTERED:
            yield bench_item.item
            continue
        order = (items[(at + step) % len(items)].item for step in range(1, len(items)))
        others = (
            [] if control == "no-passages" else (i for i in order if i.lang == bench_item.item.lang)
        )
        other = next((item.passages for item in others if item.passages), ())
        yield bench_item.item.model_copy(
            update={"passages": other, "retrievals": (), "process": None}
        )


@dataclass(frozen=True)
class BenchEstimate:
    """What a plan comes to at most: cells, and calls of models."""

    cells: int
    run: RunEstimate


def estimate_plan(plan: BenchPlan) -> BenchEstimate:
    """Estimate calls and cost of all cells, answers in the cache not counted.

    Raises:
        UsageError, InputError: as ``BenchPlan.found`` and ``FoundDataset.items``.
    """
    cells, runs = 0, []
    for dataset in plan.found():
        items = plan.items(dataset)
        of_dataset = cells_of(plan, dataset, items)
        cells += len(of_dataset)
        for cell in of_dataset:
            if cell.detector is not None:
                shown = list(altered(items, cell.control))
                runs.append(estimate_items(shown, len(shown), specs_in(cell.detector)))
    return BenchEstimate(cells, sum(runs, RunEstimate(0, 0, 0, 0, 0, 0.0)))


def read_plan(path: Path, output: Path, overrides: Mapping[str, Any]) -> BenchPlan:
    """Read a plan of TOML; file names in it are relative to it.

    Args:
        path: tables ``[[detector]]`` (``name``, ``as``, and what ``annotate`` takes),
            ``[[dataset]]``, ``[[predictions]]``, ``[budget]``, and the fields of ``BenchPlan``.
        output: the folder of the table.
        overrides: further fields; what is empty leaves the plan's.

    Raises:
        UsageError: it cannot be read, or something in it is wrong; names the field.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    detectors = content.pop("detector", [])
    datasets = content.pop("dataset", [])
    for field in ("data", "cards", "certificates"):
        if field in content:
            content[field] = [path.parent / name for name in content[field]]
    for prediction in content.get("predictions", []):
        prediction["file"] = path.parent / prediction.get("file", "")
    given = {key: value for key, value in overrides.items() if value}
    systems = [_system(dict(detector), path) for detector in detectors]
    return planned({**content, "output": output, "datasets": datasets, "systems": systems, **given})


def planned(fields: Mapping[str, Any]) -> BenchPlan:
    """Return a plan; without datasets all that are found below its data, else the samples.

    Raises:
        UsageError: a field is wrong, two rows have the same name, or there is nothing to run.
    """
    fields = dict(fields)
    if not fields.get("datasets"):
        roots = [Path(root) for root in fields.get("data", ())]
        known = cards(Path(file) for file in fields.get("cards", ())).values()
        usual = [card for card in known if card.builtin != bool(roots)]
        fields["datasets"] = [{"name": card.name} for card in usual if find(card, roots)]
        if not fields["datasets"]:
            raise UsageError("no dataset is found there; `spanlab bench --list` says where each is")
    try:
        plan = BenchPlan.model_validate(fields)
    except ValidationError as error:
        raise UsageError(problem(error)) from None
    rows: list[BenchSystem | BenchPredictions] = [*plan.systems, *plan.predictions]
    names = [*(row.name for row in rows), *CONTROLS.values()]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two rows are called {twice!r}: name one otherwise, in a plan by `as`")
    return plan


def _system(fields: dict[str, Any], path: Path) -> BenchSystem:
    label = fields.pop("as", fields.get("name"))
    try:
        selection = DetectorSelection.checked({"detector": [fields.pop("name")], **fields})
        (spec,) = specifications(selection)
    except KeyError:
        raise UsageError(f"{path}: a [[detector]] needs its name") from None
    return BenchSystem(name=label, detector=spec)


def _seeded(spec: Spec, seed: int) -> Spec:
    if isinstance(spec, DetectorSpec):
        return with_seed(spec, seed)
    members = tuple(with_seed(member, seed) for member in spec.members)
    return spec.model_copy(update={"members": members})


def concurrency_of(plan: BenchPlan, spec: Spec) -> int:
    """Return how many items of a cell are under way at once."""
    return plan.concurrency or usual_concurrency(member.detector for member in specs_in(spec))
