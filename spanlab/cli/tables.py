"""Results as text tables and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from spanlab.lm.checks import ModelCheck
from spanlab.schema import DatasetSummary
from spanlab.storage import PlanProgress
from spanlab.workflows.wording import plan_in_words

_SHOWN = {  # metric → heading
    "iou": "IoU",
    "corr": "Corr",
    "max_iou": "MaxIoU",
    "precision": "P",
    "recall": "R",
    "f1": "F1",
    "span_f1": "span F1",
}
_IDS_SHOWN = 10


def plan(summary: DatasetSummary, progress: PlanProgress) -> str:
    """Return how far each person is with a dataset's plan, as a table."""
    head = f"{plan_in_words(summary.settings)}: "
    head += f"{progress.done:,} of {progress.needed:,} annotations done"
    rows = [["person", "assigned", "done", "skipped", "left", "done beyond"]]
    for person in progress.people:
        assigned = "-" if person.assigned is None else f"{person.assigned:,}"
        counts = (person.done, person.skipped, person.left, person.beyond)
        rows.append([person.annotator, assigned, *(f"{count:,}" for count in counts)])
    return "\n".join([head, aligned(rows)])


def datasets(summaries: Iterable[DatasetSummary]) -> str:
    """Return the datasets as a table, with one line for each annotator."""
    rows = [["dataset", "items", "languages", "annotator", "states"]]
    for summary in summaries:
        languages = " ".join(f"{lang}:{count}" for lang, count in summary.languages.items())
        settings = summary.settings
        setting = f"undecided suggestions: {settings.undecided}; labels: {len(settings.labels)}"
        setting += f"; people per item: {settings.overlap or 'any number'}"
        if settings.assigned_to:
            setting += f"; assigned to: {', '.join(settings.assigned_to)}"
        if settings.guidelines_now:
            setting += f"; guidelines: version {len(settings.guidelines)}"
        rows.append([summary.name, f"{summary.n_items:,}", languages, "", setting])
        for annotator in summary.annotators:
            states = ", ".join(f"{count:,} {state}" for state, count in annotator.counts.items())
            rows.append(["", "", "", f"{annotator.name} ({annotator.kind})", states])
    if len(rows) == 1:
        return "no datasets yet: spanlab import FILE --dataset NAME"
    return aligned(rows, left=5)


def checked(check: ModelCheck) -> str:
    """Return what an endpoint does for a model as a table, with its figures."""
    rows = [
        [f"  {trial.kind}", "yes" if trial.works else "no", trial.note] for trial in check.trials
    ]
    head = f"{check.model} at {check.endpoint}"
    return "\n".join([head, aligned(rows, left=3), f"  {check.figures}"])


def aligned(rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return rows as a table with the first ``left`` columns aligned left, the others right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if column < left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
