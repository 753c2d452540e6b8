"""Results as text tables and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from spanlab.lm.checks import ModelCheck
from spanlab.schema import DatasetSummary
from spanlab.scorers import Comparison, Difference, MeanInterval, Means, Report
from spanlab.storage import PlanProgress
from spanlab.workflows.averitec import AveritecEvaluation
from spanlab.workflows.claim_scores import ClaimEvaluation
from spanlab.workflows.evaluating import Evaluation
from spanlab.workflows.wording import figure, plan_in_words

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


def as_text(evaluation: Evaluation | ClaimEvaluation | AveritecEvaluation) -> str:
    """Return an evaluation as a table: languages as rows, then macro and the two baselines.

    One of claims has verdicts as rows.
    """
    if isinstance(evaluation, ClaimEvaluation):
        return _claims(evaluation)
    if isinstance(evaluation, AveritecEvaluation):
        return _averitec(evaluation)
    rows = [["", "n", *_SHOWN.values(), "mark all", "mark none"]]
    baselines = {row.lang: row for row in evaluation.everything.languages}
    nothing = {row.lang: row for row in evaluation.nothing.languages}
    rows.extend(
        _row(row.lang, row, baselines[row.lang], nothing[row.lang])
        for row in evaluation.report.languages
    )
    macro = evaluation.report.macro
    rows.append(_row("macro", macro, evaluation.everything.macro, evaluation.nothing.macro))
    parts = [aligned(rows), "IoU and Corr with 95 % bootstrap intervals; baselines are IoU/Corr."]
    if evaluation.against is not None:
        parts.append(_comparison(evaluation.against))
    parts += _missing_and_extra(evaluation)
    return "\n".join(parts)


def as_json(evaluation: Evaluation | ClaimEvaluation | AveritecEvaluation) -> str:
    """Return all figures of an evaluation, those of every item included, as JSON."""
    if isinstance(evaluation, AveritecEvaluation):
        return json.dumps(
            {
                **evaluation.report.model_dump(),
                "missing": evaluation.missing,
                "others": evaluation.others,
            },
            indent=1,
        )
    if isinstance(evaluation, ClaimEvaluation):
        difference = evaluation.against and evaluation.against.model_dump()
        figures = evaluation.report.model_dump()
        return json.dumps(
            {**figures, "missing": evaluation.missing, "against": difference}, indent=1
        )
    against = evaluation.against
    return json.dumps(
        {
            "macro": evaluation.report.macro.model_dump(),
            "languages": _by_language(evaluation.report),
            "items": {item.id: item.model_dump(exclude={"id"}) for item in evaluation.report.items},
            "mark_all": _baseline(evaluation.everything),
            "mark_none": _baseline(evaluation.nothing),
            "missing": evaluation.missing,
            "extra": evaluation.extra,
            "against": None if against is None else against.model_dump(),
        },
        ensure_ascii=False,
        indent=1,
    )


def _averitec(evaluation: AveritecEvaluation) -> str:
    report = evaluation.report
    rows = [["label", "F1"], *([label, figure(f1)] for label, f1 in report.f1.items())]
    rows += [["macro", figure(report.macro_f1)], ["accuracy", figure(report.accuracy)]]
    rows += [["questions, METEOR", figure(report.questions)]]
    rows += [["questions and answers, METEOR", figure(report.evidence)]]
    rows += [[f"AVeriTeC score at {level}", figure(of)] for level, of in report.score.items()]
    lines = [aligned(rows), f"over {len(report.items):,} claims"]
    if evaluation.missing:
        shown = ", ".join(evaluation.missing[:_IDS_SHOWN])
        lines.append(f"{len(evaluation.missing):,} gold claims have no prediction: {shown}")
    if evaluation.others:
        shown = ", ".join(evaluation.others[:_IDS_SHOWN])
        lines.append(
            f"{len(evaluation.others):,} predictions quote another claim than the gold file has "
            f"under their claim_id: {shown}"
        )
    return "\n".join(lines)


def _claims(evaluation: ClaimEvaluation) -> str:
    report = evaluation.report
    rows = [["verdict", "gold", "predicted", "P", "R", "F1"]]
    rows += [
        [each.verdict, str(each.gold), str(each.predicted)]
        + [figure(value) for value in (each.precision, each.recall, each.f1)]
        for each in report.verdicts
    ]
    means = {
        "accuracy": report.accuracy,
        "balanced accuracy": report.balanced_accuracy,
        "macro F1": report.macro_f1,
        "AUROC": report.auroc,
    }
    lines = [f"{name} {_figure(mean, 'iou')}" for name, mean in means.items()]
    lines.append(f"over {report.n:,} claims, with 95 % bootstrap intervals")
    if report.inconclusive:
        lines.append(
            f"{report.inconclusive:,} claims that one side calls inconclusive are left out "
            "(--keep-inconclusive)"
        )
    if report.auroc is not None and report.soft < report.n:
        lines.append(f"AUROC over the {report.soft:,} claims with a soft score")
    if report.unjudged:
        lines.append(f"{report.unjudged:,} claims without a verdict count as wrong")
    if evaluation.missing:
        lines.append(f"{evaluation.missing:,} gold claims are of items without a prediction")
    if evaluation.against is not None:
        difference, p = _difference(evaluation.against)
        lines.append(f"accuracy of PRED minus --against, paired: {difference}, p {p}")
    return "\n".join([aligned(rows), *lines])


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


def _row(name: str, means: Means, everything: Means, nothing: Means) -> list[str]:
    figures = [_figure(getattr(means, metric), metric) for metric in _SHOWN]
    trivial = [
        f"{figure(base.iou.mean)}/{figure(base.corr.mean)}" for base in (everything, nothing)
    ]
    return [name, str(means.n), *figures, *trivial]


def _figure(estimate: MeanInterval | None, metric: str) -> str:
    if estimate is None:
        return "-"
    if metric in {"iou", "corr"}:
        return f"{figure(estimate.mean)} [{figure(estimate.low)}, {figure(estimate.high)}]"
    return figure(estimate.mean)


def _comparison(comparison: Comparison) -> str:
    rows = [["difference", "n", "IoU", "p", "Corr", "p"]]
    named = [(row.lang, row) for row in comparison.languages]
    for name, row in [*named, ("macro", comparison.macro)]:
        cells = [cell for each in (row.iou, row.corr) for cell in _difference(each)]
        rows.append([name, str(row.n), *cells])
    return f"\nPRED minus --against, paired:\n{aligned(rows)}"


def _difference(found: Difference) -> tuple[str, str]:
    mean, low, high = (
        figure(value, signed=True) for value in (found.difference, found.low, found.high)
    )
    return f"{mean} [{low}, {high}]", figure(found.p)


def _missing_and_extra(evaluation: Evaluation) -> list[str]:
    lines = []
    for ids, what in (
        (evaluation.missing, "gold items have no prediction and were not scored"),
        (evaluation.extra, "predicted items have no gold labels and were not scored"),
    ):
        if ids:
            shown = ", ".join(ids[:_IDS_SHOWN]) + (", …" if len(ids) > _IDS_SHOWN else "")
            lines.append(f"{len(ids)} {what}: {shown}")
    return lines


def _by_language(report: Report) -> dict[str, object]:
    return {row.lang: row.model_dump(exclude={"lang"}) for row in report.languages}


def _baseline(report: Report) -> dict[str, object]:
    return {"macro": report.macro.model_dump(), "languages": _by_language(report)}


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
