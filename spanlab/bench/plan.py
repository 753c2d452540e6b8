"""The plan of a benchmark: detectors, datasets, controls and repeats, with an estimate."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple

from pydantic import Field

from spanlab.base.errors import UsageError, unreadable
from spanlab.base.fields import FrozenModel
from spanlab.bench.cards import BenchItem, DatasetCard, FoundDataset, cards, find
from spanlab.detection import Spec, asks_models, specs_in
from spanlab.detection.estimate import RunEstimate, estimate_items
from spanlab.detection.selection import DetectorSelection, with_seed
from spanlab.detection.spec import DetectorSpec
from spanlab.detection.specifications import specifications
from spanlab.formats.files import check_file
from spanlab.schema import Item, Name
from spanlab.schema.job_request import JobRequest

if TYPE_CHECKING:
    from spanlab.base.settings import Settings

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


class BenchPlan(JobRequest):
    """A whole benchmark. Repeat ``n`` asks models with ``seed`` + n, from 0.

    ``output`` is the folder of the table; ``data`` are folders below which datasets are found,
    ``cards`` files of further cards, ``certificates`` those of measured detectors. ``limit`` counts
    for every dataset. ``retry_failed`` runs cells again in which items failed.
    """

    kind = "bench"
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
    concurrency: Annotated[int, Field(ge=1, le=1024)] | None = None
    retry_failed: bool = False
    limit: Annotated[int, Field(ge=1)] | None = None

    @property
    def title(self) -> str:
        """The detectors, and the datasets."""
        names = ", ".join(system.name for system in self.systems) or "controls"
        return f"{names} on {', '.join(dataset.name for dataset in self.datasets)}"

    def prepared(self, settings: Settings) -> BenchPlan:
        """Return the plan once it is kept in its folder; see ``write_plan``."""
        from spanlab.bench.files import write_plan

        write_plan(self)
        return self

    def find_datasets(self) -> tuple[FoundDataset, ...]:
        """Find the files of the plan's datasets below its folders.

        Raises:
            UsageError: one has no card, or its files are not there.
        """
        known_cards = cards(self.cards)
        return tuple(self._find(row.name, row.metric, known_cards) for row in self.datasets)

    def _find(
        self, name: str, metric: str | None, known: Mapping[str, DatasetCard]
    ) -> FoundDataset:
        card = known.get(name)
        if card is None:
            raise UsageError(f"no card named {name!r}; available: {', '.join(known)}")
        if metric is not None:
            card = card.with_metric(metric)
        dataset = find(card, self.data)
        if dataset is None:
            raise UsageError(f"{card.name} is not below --data: it can be had from {card.source}")
        return dataset

    def items(self, dataset: FoundDataset) -> list[BenchItem]:
        """Return a dataset's items, as many as the plan takes."""
        limits = {row.name: row.limit for row in self.datasets}
        return dataset.items(self.limit or limits[dataset.card.name])


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
        """The name of the cell's row in the table."""
        if self.detector is None or self.control is None:
            return self.system
        return f"{self.system}: {CONTROLS[self.control]}"

    @property
    def path(self) -> str:
        """The path of the cell's file below a folder, without an ending."""
        parts = (self.system, self.control if self.detector else None, self.repeat or None)
        name = ".".join(str(part) for part in parts if part is not None)
        plain = "".join(char if char.isalnum() or char in "-_." else "_" for char in name)
        suffix = "" if plain == name else "." + sha256(name.encode()).hexdigest()[:8]
        return f"{self.dataset}/{plain}{suffix}"


def cells_of(plan: BenchPlan, dataset: FoundDataset, items: Iterable[BenchItem]) -> list[BenchCell]:
    """Return the cells of a dataset: detectors with their repeats, files, then controls."""
    name, bench_items = dataset.card.name, list(items)
    has_passages = any(bench_item.item.passages for bench_item in bench_items)
    raters = max(len(bench_item.people) for bench_item in bench_items)
    cells: list[BenchCell] = []
    for system in plan.systems:
        asks = any(asks_models(spec.detector) for spec in specs_in(system.detector))
        for repeat in range(plan.repeats if asks else 1):
            spec = _with_seed(system.detector, plan.seed + repeat) if asks else system.detector
            cells.append(BenchCell(name, system.name, repeat=repeat, detector=spec))
    cells += [
        BenchCell(name, prediction.name, file=prediction.file) for prediction in plan.predictions
    ]
    for control in plan.controls:
        if control in _ALTERED:
            cells += [
                cell._replace(control=control)
                for cell in cells
                if cell.detector and not cell.control and not cell.repeat and has_passages
            ]
        elif control != "annotator" or (raters > 1 and dataset.card.level == "spans"):
            cells.append(BenchCell(name, CONTROLS[control], control))
    return cells


def alter_items(items: list[BenchItem], control: Control | None) -> Iterator[Item]:
    """Yield the items that a control runs on.

    Args:
        items: the items of the dataset.
        control: "no-passages" takes them away, "shuffled" gives those of the next item of the same
            language; any other leaves items as they are.
    """
    for at, bench_item in enumerate(items):
        if control not in _ALTERED:
            yield bench_item.item
            continue
        following = (items[(at + step) % len(items)].item for step in range(1, len(items)))
        same_language = (item for item in following if item.lang == bench_item.item.lang)
        candidates = () if control == "no-passages" else same_language
        passages = next((item.passages for item in candidates if item.passages), ())
        yield bench_item.item.model_copy(
            update={"passages": passages, "retrievals": (), "citations": (), "process": None}
        )


@dataclass(frozen=True)
class BenchEstimate:
    """Upper bounds of a plan: the number of cells, and the calls and cost of models."""

    cells: int
    run: RunEstimate


def estimate_plan(plan: BenchPlan) -> BenchEstimate:
    """Estimate calls and cost of all cells, answers in the cache not counted.

    Raises:
        UsageError, InputError: as ``BenchPlan.find_datasets`` and ``FoundDataset.items``.
    """
    cells, runs = 0, []
    for dataset in plan.find_datasets():
        items = plan.items(dataset)
        dataset_cells = cells_of(plan, dataset, items)
        cells += len(dataset_cells)
        for cell in dataset_cells:
            if cell.detector is not None:
                altered = list(alter_items(items, cell.control))
                runs.append(estimate_items(altered, len(altered), specs_in(cell.detector)))
    nothing = RunEstimate(items=0, sampled=0, calls=0, input_tokens=0, output_tokens=0, cost=0.0)
    return BenchEstimate(cells, sum(runs, nothing))


def read_plan(path: Path, output: Path, overrides: Mapping[str, Any]) -> BenchPlan:
    """Read a plan of TOML; file names in it are relative to it.

    Args:
        path: tables ``[[detector]]`` (``name``, ``as``, and what ``annotate`` takes),
            ``[[dataset]]``, ``[[predictions]]``, ``[budget]``, and the fields of ``BenchPlan``.
        output: the folder of the table.
        overrides: further fields, which count over the plan's.

    Raises:
        InputError: it cannot be read.
        UsageError: something in it is wrong; names the field.
    """
    check_file(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    detectors = content.pop("detector", [])
    datasets = content.pop("dataset", [])
    for field in ("data", "cards", "certificates"):
        if field in content:
            content[field] = [path.parent / name for name in content[field]]
    for prediction in content.get("predictions", []):
        prediction["file"] = path.parent / prediction.get("file", "")
    systems = [_system(dict(detector), path) for detector in detectors]
    return make_plan(
        {**content, "output": output, "datasets": datasets, "systems": systems, **overrides}
    )


def make_plan(fields: Mapping[str, Any]) -> BenchPlan:
    """Make a plan from its fields.

    Args:
        fields: the fields of ``BenchPlan``. Without ``datasets`` it takes all that are found below
            its ``data``; without that, too, the samples.

    Raises:
        UsageError: a field is wrong, two rows have the same name, or there is nothing to run.
    """
    fields = dict(fields)
    if not fields.get("datasets"):
        roots = [Path(root) for root in fields.get("data", ())]
        known_cards = cards(Path(file) for file in fields.get("cards", ())).values()
        chosen = [card for card in known_cards if card.builtin != bool(roots)]
        fields["datasets"] = [{"name": card.name} for card in chosen if find(card, roots)]
        if not fields["datasets"]:
            raise UsageError("no dataset is found there; `spanlab bench --list` says where each is")
    plan = BenchPlan.of(**fields)
    rows: list[BenchSystem | BenchPredictions] = [*plan.systems, *plan.predictions]
    names = [*(row.name for row in rows), *CONTROLS.values()]
    repeated_name = next((name for name in names if names.count(name) > 1), None)
    if repeated_name is not None:
        raise UsageError(
            f"two rows are called {repeated_name!r}: name one otherwise, in a plan by `as`"
        )
    return plan


def _system(fields: dict[str, Any], path: Path) -> BenchSystem:
    label = fields.pop("as", fields.get("name"))
    try:
        selection = DetectorSelection.checked({"detector": [fields.pop("name")], **fields})
        (spec,) = specifications(selection)
    except KeyError:
        raise UsageError(f"{path}: a [[detector]] needs its name") from None
    return BenchSystem(name=label, detector=spec)


def _with_seed(spec: Spec, seed: int) -> Spec:
    if isinstance(spec, DetectorSpec):
        return with_seed(spec, seed)
    members = tuple(with_seed(member, seed) for member in spec.members)
    return spec.model_copy(update={"members": members})
