"""A cell: one system over one dataset, with its predictions, figures and all they depend on."""

from __future__ import annotations

import json
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from shutil import which
from typing import Any, Final

from spanlab.base.errors import BudgetError, InputError
from spanlab.base.settings import Settings
from spanlab.bench.cards import BenchItem, DatasetCard, FoundDataset
from spanlab.bench.plan import BenchCell, BenchPlan, alter_items, cells_of
from spanlab.bench.scoring import best_annotators, score_predictions, write_predictions
from spanlab.detection.file_run import FileRun
from spanlab.detection.request import RunRequest
from spanlab.detection.setup import learnt_from, prompt_hash, settings_of, setup_changes
from spanlab.detection.spec import Spec, specs_in
from spanlab.formats import read, read_labels
from spanlab.formats.files import replacing
from spanlab.formats.scoring import AnnotatorChooser
from spanlab.measure.certificates import read_certificate
from spanlab.models import Meter
from spanlab.models.refusals import recall
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Interval,
    Item,
    Record,
    Span,
    Status,
    answer_hash,
)
from spanlab.scoring.averitec_files import claim_id
from spanlab.text.labels import ItemLabels

_REASONS: Final = 20  # of failures, that a cell keeps


class CellRun:
    """Runs the cells of a plan; one that was run before stays as it is.

    Args:
        plan: the benchmark.
        meter: counts the calls of all cells, and stops them at the budget.
        settings: where answers of models are cached; None reads the environment.
        stopped: asked between items; the cell is left undone once it says so.
    """

    def __init__(
        self,
        plan: BenchPlan,
        meter: Meter,
        settings: Settings | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self._plan = plan
        self._meter = meter
        self._settings = settings or Settings.read()
        self._stopped = stopped

    def run(
        self, dataset: FoundDataset, items: list[BenchItem], cell: BenchCell
    ) -> dict[str, Any] | None:
        """Run a cell and write its file, unless it was run before.

        Args:
            dataset: the dataset of the cell.
            items: the dataset's items.
            cell: what to run.

        Returns:
            The content of the cell's file; None if it was stopped, or has no predictions.

        Raises:
            BudgetError: the budget is used up; what was answered is in the cache.
            UsageError, ConfigurationError, InputError: the cell cannot be run.
        """
        cell_content = self.read_kept(dataset, items, cell)
        if cell_content and not (self._plan.retry_failed and cell_content["failed"]):
            return cell_content
        depends_on = self._dependencies(dataset, items, cell)
        file = prediction_file(self._plan, dataset.card, cell)
        began, before = time.monotonic(), self._meter.usage
        taught = self._taught(items, cell)
        annotations: list[Annotation | None] = []
        for annotation in self._annotations_of(dataset.card, items, cell, taught):
            if self._stopped():
                return None
            annotations.append(annotation)
        if cell.file is not None and not any(annotations):
            return None
        failed = {
            item.item.id: annotation.note
            for item, annotation in zip(items, annotations, strict=True)
            if annotation is not None and annotation.status is Status.FAILED
        }
        write_predictions(dataset.card, items, annotations, file)
        scored = score_predictions(dataset, items, file)
        content = {
            "cell": 1,
            "key": _hash(depends_on),
            **depends_on,
            "row": cell.row,
            "predictions": _sha_of(file),
            "n": scored.n,
            "failed": len(failed),
            "learnt": sum(taught),
            "reasons": dict(list(failed.items())[:_REASONS]),
            "figures": scored.figures(dataset.card),
            "models": self._models(cell.detector),
            "certificate": self._certificate(cell),
            "usage": asdict(self._meter.usage - before),
            "seconds": round(time.monotonic() - began, 3),
        }
        target = cell_file(self._plan, cell)
        target.parent.mkdir(parents=True, exist_ok=True)
        with replacing(target) as stream:
            stream.write(json.dumps(content, ensure_ascii=False, indent=1).encode() + b"\n")
        return content

    def read_kept(
        self, dataset: FoundDataset, items: list[BenchItem], cell: BenchCell
    ) -> dict[str, Any] | None:
        """Read a cell that was run before; None if there is none, or it depended on other data."""
        content = read_cell(cell_file(self._plan, cell))
        if content is None or content["key"] != _hash(self._dependencies(dataset, items, cell)):
            return None
        sha = _sha_of(prediction_file(self._plan, dataset.card, cell))
        return content if content["predictions"] == sha else None

    def _taught(self, items: list[BenchItem], cell: BenchCell) -> list[bool]:
        """Say of each item whether a cell's detector learnt from it."""
        specs = specs_in(cell.detector) if cell.detector else ()
        learnt = frozenset[str]().union(*(learnt_from(spec, self._settings) for spec in specs))
        return [bool(learnt) and answer_hash(bench_item.item) in learnt for bench_item in items]

    def _annotations_of(
        self, card: DatasetCard, items: list[BenchItem], cell: BenchCell, taught: list[bool]
    ) -> Iterator[Annotation | None]:
        if cell.file is not None:
            yield from _read_annotations(card, items, cell.file)
        elif cell.detector is not None:
            altered = alter_items(items, cell.control)
            others = (item for item, is_one in zip(altered, taught, strict=True) if not is_one)
            found = self._detect(others, cell.detector)
            for is_one in taught:
                yield None if is_one else next(found)
        elif cell.control == "annotator":
            best = best_annotators(items)
            for item in items:
                yield next((a for a in item.people if a.annotator == best[item.item.lang]), None)
        else:
            for item in items:
                yield _control_annotation(item.item, marks_all=cell.control == "everything")

    def _detect(self, items: Iterable[Item], spec: Spec) -> Iterator[Annotation | None]:
        request = RunRequest.of(self._plan, detectors=(spec,))
        run = FileRun.of(request, self._settings, self._meter)
        for record in run.annotate(Record(item=item) for item in items):
            if run.spent is not None:
                raise BudgetError(str(run.spent))
            yield record.by(spec.signs)

    def _dependencies(
        self, dataset: FoundDataset, items: list[BenchItem], cell: BenchCell
    ) -> dict[str, Any]:
        """Return all that a cell's figures depend on, as JSON; equal values give equal figures."""
        card = dataset.card
        description = card.model_dump(
            mode="json", include={"name", "title", "licence", "source", "split"}
        )
        items_digest = sha256()
        for item in items:
            items_digest.update(item.record.model_dump_json().encode())
        specs = specs_in(cell.detector) if cell.detector else ()
        return {
            "dataset": {
                **description,
                "sha256": dict(dataset.sha256),
                "items": items_digest.hexdigest(),
            },
            "reading": card.model_dump(mode="json", exclude={*description, "about", "sha256"}),
            "system": cell.system,
            "control": cell.control,
            "repeat": cell.repeat,
            "seed": self._plan.seed + cell.repeat,
            "options": [settings_of(spec) for spec in specs],
            "prompts": {spec.signs: prompt_hash(spec, self._settings) for spec in specs},
            "file": cell.file and _sha_of(cell.file),
            "certificates": [_sha_of(path) for path in self._plan.certificates],
            "versions": {"spanlab": version("spanlab"), "python": platform.python_version()},
            "commit": _commit(),
        }

    def _models(self, spec: Spec | None) -> list[dict[str, Any]]:
        models = [m for s in specs_in(spec) for m in (s.model, *s.models.values())] if spec else []
        model_names = {(m.endpoint, m.model): m for m in models if m is not None}
        checks = []
        for endpoint, model in model_names:
            check = recall(endpoint, model, self._settings)
            checks.append({"model": model, "check": check and check.model_dump(mode="json")})
        return checks

    def _certificate(self, cell: BenchCell) -> dict[str, Any] | None:
        """Return the measured quality of a cell's detector, from a certificate, if there is one."""
        if cell.detector is None or cell.control:
            return None
        for path in self._plan.certificates:
            content = read_certificate(path).content
            if content["binding"]["annotator"] == cell.detector.signs:
                names = ("binding", "answers", "characters", "sha256")
                figures = {name: content[name] for name in names}
                stale = [
                    change
                    for spec in specs_in(cell.detector)
                    for change in setup_changes(content["binding"], spec, self._settings)
                ]
                return {**figures, "stale": stale}
        return None


def run_dataset(
    plan: BenchPlan,
    number: int,
    meter: Meter,
    *,
    settings: Settings | None = None,
    stopped: Callable[[], bool] = lambda: False,
    on_cell: Callable[[str, int], None] = lambda row, failed: None,
) -> bool:
    """Run the cells of one of a plan's datasets; cells that were run before stay as they are.

    Args:
        plan: the benchmark.
        number: which of its datasets, from 0.
        meter: counts the calls of all cells, and stops them at the budget.
        settings: where answers of models are cached; None reads the environment.
        stopped: called between items; True stops the run.
        on_cell: called after each cell with its name in the table, and the number of failed items.

    Returns:
        Whether it was done; False if it was stopped.

    Raises:
        BudgetError: the budget is used up.
        UsageError, ConfigurationError, InputError: a cell cannot be run.
    """
    plan_of_dataset = plan.model_copy(update={"datasets": plan.datasets[number : number + 1]})
    (dataset,) = plan_of_dataset.find_datasets()
    items = plan_of_dataset.items(dataset)
    runner = CellRun(plan_of_dataset, meter, settings, stopped)
    for cell in cells_of(plan_of_dataset, dataset, items):
        content = runner.run(dataset, items, cell)
        if content is None and stopped():
            return False
        on_cell(f"{cell.row} on {cell.dataset}", 0 if content is None else content["failed"])
    return True


def count_cells(plan: BenchPlan) -> int:
    """Return how many cells a plan has.

    Raises:
        UsageError, InputError: a dataset is not there, or wrong.
    """
    return sum(
        len(cells_of(plan, dataset, plan.items(dataset))) for dataset in plan.find_datasets()
    )


def read_cell(path: Path) -> dict[str, Any] | None:
    """Read a cell from its file; None if there is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if content.get("cell") == 1 else None


def cell_file(plan: BenchPlan, cell: BenchCell) -> Path:
    """Return the path of a cell's file."""
    return plan.output / "cells" / f"{cell.path}.json"


def prediction_file(plan: BenchPlan, card: DatasetCard, cell: BenchCell) -> Path:
    """Return the path of the file with a cell's predictions."""
    ending = "json" if card.submission == "averitec" else "jsonl"
    return plan.output / "predictions" / f"{cell.path}.{ending}"


def _control_annotation(item: Item, *, marks_all: bool) -> Annotation:
    spans = (Span.of(item.answer, 0, len(item.answer)),) if marks_all and item.answer else ()
    return Annotation(annotator="control", kind=AnnotatorKind.DETECTOR, spans=spans)


def _read_annotations(
    card: DatasetCard, items: Sequence[BenchItem], file: Path
) -> Iterator[Annotation | None]:
    if card.level == "spans":
        labels = {read_label.id: read_label for read_label in read_labels(file, role="prediction")}
        for item in items:
            item_labels = labels.get(item.item.id)
            if item_labels is not None and any(
                s.end > len(item.item.answer) for s in item_labels.soft
            ):
                raise InputError(f"{file}: the labels of {item.item.id!r} end past its answer")
            yield None if item_labels is None else _annotation(item.item, item_labels)
        return
    chooser = AnnotatorChooser(None, "prediction")
    by_item = {record.item.id: chooser.done(record) for record in read(file)}
    for item in items:
        yield by_item.get(item.item.id) or by_item.get(claim_id(item.item))


def _annotation(item: Item, labels: ItemLabels) -> Annotation:
    return Annotation(
        annotator="file",
        kind=AnnotatorKind.DETECTOR,
        spans=tuple(Span.of(item.answer, s.start, s.end, prob=s.prob) for s in labels.soft),
        hard=tuple(Interval(start=start, end=end) for start, end in labels.hard),
    )


def _hash(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sha_of(path: Path) -> str | None:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else None


@cache
def _commit() -> str | None:
    """Return the commit of a checkout, None of an installed package."""
    root, git = Path(__file__).parents[2], which("git")
    if git is None or not (root / ".git").exists():
        return None
    command = [git, "-C", str(root), "rev-parse", "HEAD"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    return finished.stdout.strip() or None
