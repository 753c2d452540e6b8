"""A cell: one system over one dataset, its predictions, its figures, and all that they rest on."""

from __future__ import annotations

import importlib
import json
import platform
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from shutil import which
from typing import Any, Final

from spanlab.datasets import read, read_labels
from spanlab.datasets.files import replacing
from spanlab.datasets.formats import claims as averitec
from spanlab.datasets.formats import mushroom
from spanlab.datasets.scoring import AnnotatorChooser
from spanlab.detectors.entry import entry_of
from spanlab.detectors.spec import Spec
from spanlab.errors import BudgetError
from spanlab.extents import iou
from spanlab.labels import ItemLabels, hard_of, labels_of
from spanlab.lm import Meter
from spanlab.schema import Annotation, AnnotatorKind, Interval, Item, Record, Span, Status
from spanlab.scorers import (
    JudgedClaim,
    MeanDifference,
    ScoreReport,
    compare,
    compare_macro_f1,
    score,
    score_claims,
)
from spanlab.settings import Settings
from spanlab.workflows.bench.cards import BenchItem, DatasetCard, FoundDataset
from spanlab.workflows.bench.plan import BenchCell, BenchPlan, altered, concurrency_of
from spanlab.workflows.certificates import read_certificate
from spanlab.workflows.choosing import specs_in
from spanlab.workflows.claim_scores import by_text
from spanlab.workflows.requesting import request_of
from spanlab.workflows.settings_used import settings_of
from spanlab.workflows.step_scores import step_pairs
from spanlab.workflows.streaming import FileRun

Judgements = dict[tuple[str, str], tuple[str | None, float | None]]  # by item and part of it
_PART: Final = "answer"
_REASONS: Final = 20  # of failures, that a cell keeps


@dataclass(frozen=True)
class ScoredCell:
    """The scores of predictions: of spans a report, else what was judged, by language."""

    n: int
    report: ScoreReport | None = None
    judged: tuple[JudgedClaim, ...] = ()
    languages: Mapping[str, tuple[JudgedClaim, ...]] = field(default_factory=dict)

    def figures(self, metrics: Sequence[str]) -> dict[str, Any]:
        """Return macro figures and those of each language, with intervals."""
        if not self.n:
            return {"macro": {"n": 0, **dict.fromkeys(metrics)}}
        if self.report is not None:
            named = {lang.lang: lang for lang in self.report.languages}
            sides: dict[str, Any] = {"macro": self.report.macro, **named}
        else:
            parts = {"macro": self.judged, **self.languages}
            sides = {lang: score_claims(c, keep_inconclusive=True) for lang, c in parts.items()}
        return {
            lang: {
                "n": side.n,
                **{name: (found := getattr(side, name)) and found.model_dump() for name in metrics},
            }
            for lang, side in sides.items()
        }

    def minus(self, other: ScoredCell, metric: str) -> MeanDifference | None:
        """Return how much better this is than another, on what both have; None if nothing is."""
        if self.report is not None and other.report is not None:
            ids = {item.id for item in other.report.items}
            if not any(item.id in ids for item in self.report.items):
                return None
            found = getattr(compare(self.report, other.report).macro, metric)
            assert found is None or isinstance(found, MeanDifference)
            return found
        theirs = {claim.item for claim in other.judged}
        both = {claim.item for claim in self.judged} & theirs
        sides = [[c for c in side.judged if c.item in both] for side in (self, other)]
        return compare_macro_f1(*sides).difference if both else None


class CellRun:
    """Runs the cells of a plan; one that is there already is left as it is.

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
        self, found: FoundDataset, items: list[BenchItem], cell: BenchCell
    ) -> dict[str, Any] | None:
        """Return a cell's figures; None of one that was stopped, or of a file without its items.

        Raises:
            BudgetError: the budget is used up; what was answered is in the cache.
            UsageError, ConfigurationError, InputError: the cell cannot be run.
        """
        kept = self.kept(found, items, cell)
        if kept and not (self._plan.retry_failed and kept["failed"]):
            return kept
        rests_on = self._rests_on(found, items, cell)
        file = prediction_file(self._plan, found.card, cell)
        began, before = time.monotonic(), self._meter.usage
        said: list[Annotation | None] = []
        for annotation in self._said(found.card, items, cell):
            if self._stopped():
                return None
            said.append(annotation)
        if cell.file is not None and not any(said):
            return None
        failed = {
            each.item.id: annotation.note
            for each, annotation in zip(items, said, strict=True)
            if annotation is not None and annotation.status is Status.FAILED
        }
        write_predictions(found.card, items, said, file)
        scored = score_predictions(found, items, file)
        content = {
            "cell": 1,
            "key": _hash(rests_on),
            **rests_on,
            "row": cell.row,
            "predictions": _sha_of(file),
            "n": scored.n,
            "failed": len(failed),
            "reasons": dict(list(failed.items())[:_REASONS]),
            "figures": scored.figures(found.card.scores),
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

    def kept(
        self, found: FoundDataset, items: list[BenchItem], cell: BenchCell
    ) -> dict[str, Any] | None:
        """Return a cell that is there, None if it is not, or rests on something else."""
        content = read_cell(cell_file(self._plan, cell))
        if content is None or content["key"] != _hash(self._rests_on(found, items, cell)):
            return None
        sha = _sha_of(prediction_file(self._plan, found.card, cell))
        return content if content["predictions"] == sha else None

    def _said(
        self, card: DatasetCard, items: list[BenchItem], cell: BenchCell
    ) -> Iterator[Annotation | None]:
        if cell.file is not None:
            yield from _of_file(card, items, cell.file)
        elif cell.detector is not None:
            yield from self._detected(altered(items, cell.control), cell.detector)
        elif cell.control == "annotator":
            best = best_annotators(items)
            for each in items:
                yield next((a for a in each.people if a.annotator == best[each.item.lang]), None)
        else:
            for each in items:
                yield _marking(each.item, everything=cell.control == "everything")

    def _detected(self, items: Iterable[Item], spec: Spec) -> Iterator[Annotation | None]:
        request = request_of("bench", [spec], concurrency=concurrency_of(self._plan, spec))
        run = FileRun.of(request, self._settings, self._meter)
        for record in run.annotated(Record(item=item) for item in items):
            if run.spent is not None:
                raise BudgetError(str(run.spent))
            yield record.by(spec.signs)

    def _rests_on(
        self, found: FoundDataset, items: list[BenchItem], cell: BenchCell
    ) -> dict[str, Any]:
        """Return all that a cell's figures depend on: what is the same gives the same figures."""
        card = found.card
        about = card.model_dump(
            mode="json", include={"name", "title", "licence", "source", "split"}
        )
        shown = sha256()
        for each in items:
            shown.update(each.record.model_dump_json().encode())
        specs = specs_in(cell.detector) if cell.detector else ()
        return {
            "dataset": {**about, "sha256": dict(found.sha256), "items": shown.hexdigest()},
            "reading": card.model_dump(mode="json", exclude={*about, "about", "sha256"}),
            "system": cell.system,
            "control": cell.control,
            "repeat": cell.repeat,
            "seed": self._plan.seed + cell.repeat,
            "options": [settings_of(spec) for spec in specs],
            "prompts": {spec.signs: _prompt_hash(spec, self._settings) for spec in specs},
            "file": cell.file and _sha_of(cell.file),
            "certificates": [_sha_of(path) for path in self._plan.certificates],
            "versions": {"spanlab": version("spanlab"), "python": platform.python_version()},
            "commit": _commit(),
        }

    def _models(self, spec: Spec | None) -> list[dict[str, Any]]:
        from spanlab.lm.refusals import recall

        models = [m for s in specs_in(spec) for m in (s.model, *s.models.values())] if spec else []
        named = {(m.endpoint, m.model): m for m in models if m is not None}
        found = []
        for endpoint, model in named:
            check = recall(endpoint, model, self._settings)
            found.append({"model": model, "check": check and check.model_dump(mode="json")})
        return found

    def _certificate(self, cell: BenchCell) -> dict[str, Any] | None:
        """Return what the rate of a cell's detector is worth by a certificate of it."""
        if cell.detector is None or cell.control:
            return None
        for path in self._plan.certificates:
            content = read_certificate(path).content
            if content["binding"]["annotator"] == cell.detector.signs:
                names = ("binding", "answers", "characters", "sha256")
                return {name: content[name] for name in names}
        return None


def read_cell(path: Path) -> dict[str, Any] | None:
    """Return the cell that is in a file, None where there is none."""
    try:
        content: dict[str, Any] = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return content if content.get("cell") == 1 else None


def cell_file(plan: BenchPlan, cell: BenchCell) -> Path:
    """Return where a cell is kept."""
    return plan.output / "cells" / f"{cell.path}.json"


def prediction_file(plan: BenchPlan, card: DatasetCard, cell: BenchCell) -> Path:
    """Return where the predictions of a cell are kept."""
    ending = "json" if card.submission == "averitec" else "jsonl"
    return plan.output / "predictions" / f"{cell.path}.{ending}"


def write_predictions(
    card: DatasetCard, items: Sequence[BenchItem], said: Sequence[Annotation | None], path: Path
) -> None:
    """Write what was said in the dataset's own form of submissions; what failed is left out."""
    done = [
        (each, annotation)
        for each, annotation in zip(items, said, strict=True)
        if annotation is not None and annotation.status is Status.DONE
    ]
    lines: list[bytes] = []
    for each, annotation in done:
        if card.level == "spans":
            lines.append(mushroom.dumps(each.item.id, annotation))
        elif card.submission == "averitec":
            lines.append(averitec.dumps(each.item, _judging(each, annotation)))
        else:
            lines += [
                json.dumps({"id": item, "part": part, "verdict": verdict, "prob": prob}).encode()
                + b"\n"
                for (item, part), (verdict, prob) in judgements(card, each, annotation).items()
            ]
    text = b"[" + b",\n".join(lines) + b"]\n" if card.submission == "averitec" else b"".join(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as stream:
        stream.write(text)


def score_predictions(found: FoundDataset, items: Sequence[BenchItem], path: Path) -> ScoredCell:
    """Score a file of predictions; items that it lacks are not scored.

    Raises:
        InputError: it is damaged.
    """
    if not path.stat().st_size:  # all failed
        return ScoredCell(0)
    if found.card.level == "spans":
        said = {labels.id: labels for labels in read_labels(path, format="mushroom")}
        pairs = [(_labels(each), said[each.item.id]) for each in items if each.item.id in said]
        return ScoredCell(len(pairs), score(pairs) if pairs else None)
    given = _read_judgements(found.card, items, path)
    judged: dict[str, list[JudgedClaim]] = {}
    ids = {item for item, _ in given}
    for each in items:
        if each.item.id not in ids:
            continue
        for key, (gold, _) in judgements(found.card, each, each.reference).items():
            if gold is not None:
                verdict, prob = given.get(key, (None, None))
                claim = JudgedClaim(key[0], gold, found.verdict(verdict), prob)
                judged.setdefault(each.item.lang, []).append(claim)
    whole = tuple(claim for claims in judged.values() for claim in claims)
    languages = {lang: tuple(claims) for lang, claims in sorted(judged.items())}
    return ScoredCell(len(ids), judged=whole, languages=languages)


def judgements(card: DatasetCard, each: BenchItem, said: Annotation) -> Judgements:
    """Return what an annotation says of the parts of an item that its dataset asks about."""
    item = each.item
    if card.level == "steps":
        pairs = step_pairs(item, each.reference, said)
        return {(item.id, str(at)): (type_, None) for at, (_, type_) in enumerate(pairs, 1)}
    if card.level == "answers":
        worst = max((span.prob for span in said.spans), default=0.0)
        verdict = "refuted" if hard_of(said) else "supported"
        return {(item.id, _PART): (verdict, 1.0 - worst)}
    found: Judgements = {}
    for claim in _judging(each, said).claims:
        prob = claim.prob
        if prob is not None and claim.verdict != "supported":
            prob = 1.0 - prob
        found[item.id, " ".join(claim.text.split())] = (claim.verdict, prob)
    return found


def best_annotators(items: Sequence[BenchItem]) -> dict[str, str]:
    """Return whose marks agree best with the reference, by language.

    Only people who finished half as many items as the busiest one of their language count.
    """
    scores: dict[str, dict[str, list[float]]] = {}
    for each in items:
        of_lang = scores.setdefault(each.item.lang, {})
        for said in each.people:
            mine = iou(hard_of(each.reference), hard_of(said))
            of_lang.setdefault(said.annotator, []).append(mine)
    best = {}
    for lang, people in scores.items():
        most = max((len(found) for found in people.values()), default=0)
        means = {n: sum(f) / len(f) for n, f in people.items() if 2 * len(f) >= most}
        best[lang] = max(sorted(means), key=means.__getitem__, default="")
    return best


def _judging(each: BenchItem, said: Annotation) -> Annotation:
    """Return an annotation with a verdict on each claim of the reference.

    One that has other claims gives their worst verdict; one with spans alone refutes what it marks.
    """
    own = by_text(said.claims)
    worst = next((v for v in averitec.LABELS if v in {c.verdict for c in said.claims}), None)
    by_marks = "refuted" if hard_of(said) else "supported"
    claims = []
    for text, claim in by_text(each.reference.claims).items():
        given = own.get(text)
        verdict = given.verdict if given else worst if said.claims else by_marks
        prob = given.prob if given else None
        claims.append(claim.model_copy(update={"verdict": verdict, "prob": prob}))
    return said.model_copy(update={"claims": tuple(claims)})


def _marking(item: Item, *, everything: bool) -> Annotation:
    spans = (Span.of(item.answer, 0, len(item.answer)),) if everything and item.answer else ()
    return Annotation(annotator="control", kind=AnnotatorKind.DETECTOR, spans=spans)


def _labels(each: BenchItem) -> ItemLabels:
    return labels_of(each.record, each.reference.annotator)


def _of_file(
    card: DatasetCard, items: Sequence[BenchItem], file: Path
) -> Iterator[Annotation | None]:
    if card.level == "spans":
        labels = {each.id: each for each in read_labels(file, role="prediction")}
        for each in items:
            said = labels.get(each.item.id)
            yield None if said is None else _annotation(each.item, said)
        return
    chooser = AnnotatorChooser(None, "prediction")
    found = {record.item.id: chooser.done(record) for record in read(file)}
    for each in items:
        yield found.get(each.item.id) or found.get(averitec.claim_id(each.item))


def _annotation(item: Item, labels: ItemLabels) -> Annotation:
    return Annotation(
        annotator="file",
        kind=AnnotatorKind.DETECTOR,
        spans=tuple(Span.of(item.answer, s.start, s.end, prob=s.prob) for s in labels.soft),
        hard=tuple(Interval(start=start, end=end) for start, end in labels.hard),
    )


def _read_judgements(card: DatasetCard, items: Sequence[BenchItem], path: Path) -> Judgements:
    if card.submission == "averitec":
        ids = {averitec.claim_id(each.item): each for each in items}
        found: Judgements = {}
        for row in json.loads(path.read_bytes()):
            each = ids[str(row["claim_id"])]
            verdict = averitec.verdict_of(row["pred_label"], field="pred_label")
            for text in by_text(each.reference.claims):
                found[each.item.id, text] = (verdict, None)
        return found
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {(row["id"], row["part"]): (row["verdict"], row["prob"]) for row in rows}


def _hash(content: Mapping[str, Any]) -> str:
    return sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _sha_of(path: Path) -> str | None:
    return sha256(path.read_bytes()).hexdigest() if path.is_file() else None


def _prompt_hash(spec: Any, settings: Settings) -> str:
    """Return a hash of a detector's files, in which its prompts stand, and of its tuned one."""
    entry = entry_of(spec.detector)
    place = importlib.import_module(entry.create.__module__) if entry.create else None
    files = sorted(Path(place.__file__).parent.glob("*")) if place and place.__file__ else []
    program = settings.programs / f"{spec.program}.json"
    code = sha256()
    for path in (*files, program):
        if path.is_file():
            code.update(path.name.encode() + path.read_bytes())
    return code.hexdigest()


@cache
def _commit() -> str | None:
    """Return the commit of a checkout, None of an installed package."""
    root, git = Path(__file__).parents[3], which("git")
    if git is None or not (root / ".git").exists():
        return None
    asked = [git, "-C", str(root), "rev-parse", "HEAD"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False)
    return found.stdout.strip() or None
