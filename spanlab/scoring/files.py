"""Predictions against gold labels, file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from spanlab.base.errors import InputError, UsageError
from spanlab.base.inbound import brought, offered
from spanlab.formats import Role, read_placed_labels
from spanlab.formats.wrongs import Wrongs, repeated_id
from spanlab.output.figures import counted, named_ids
from spanlab.output.tables import (
    ITEMS,
    LANGUAGE,
    P_VALUE,
    Cell,
    Column,
    MeanInterval,
    ResultTable,
    ResultViews,
    columns_of,
    figures_of,
    several,
)
from spanlab.scoring.comparison import MeanDifference, ReportComparison, compare
from spanlab.scoring.report import ScoreMeans, ScoreReport, score, score_by
from spanlab.scoring.spans import METRICS, mark_all, mark_none, score_item
from spanlab.text.labels import ItemLabels

SCORES: Final = {
    key: Column(key=key, title=metric.title, unit="score", about=metric.about)
    for key, metric in METRICS.items()
}
SpanMetric: TypeAlias = Callable[[ItemLabels, ItemLabels], float]
_METRICS: Final = "metrics"  # the kind under which packages offer them
_MAIN: Final = ("iou", "corr")  # which have intervals in a table of files


@dataclass(frozen=True)
class ScoreEvaluation(ResultViews):
    """Scores of a prediction, beside what marking everything and marking nothing would get.

    ``missing`` are gold ids without a prediction, ``extra`` predicted ids without gold; neither
    takes part in the scores. ``against`` compares with a second prediction, if one was given.
    ``more`` are means of further metrics: by the metric's name, then by language or "macro".
    """

    report: ScoreReport
    everything: ScoreReport
    nothing: ScoreReport
    missing: tuple[str, ...]
    extra: tuple[str, ...]
    against: ReportComparison | None = None
    more: Mapping[str, Mapping[str, MeanInterval]] = field(default_factory=dict)

    @property
    def macro(self) -> ScoreMeans:
        """The means over languages, every language counting the same."""
        return self.report.macro

    def tables(self) -> tuple[ResultTable, ...]:
        """Return scores by language and macro, the baselines, and the comparison, if any."""
        left_out = (
            (self.missing, "gold item", "without a prediction: not scored"),
            (self.extra, "predicted item", "without gold labels: not scored"),
        )
        scores = ResultTable(
            key="scores",
            title="Scores by language, with 95 % bootstrap intervals",
            columns=(LANGUAGE, ITEMS, *SCORES.values(), *columns_of("score", *self.more)),
            rows=tuple(
                (
                    *_cells(lang, score_means),
                    *(
                        several(mean_by_language[lang], score_means.n)
                        for mean_by_language in self.more.values()
                    ),
                )
                for lang, score_means in _by_language(self.report)
            ),
            remarks=tuple(
                f"{counted(len(ids), noun)} {why}: {named_ids(ids)}"
                for ids, noun, why in left_out
                if ids
            ),
        )
        differences = [] if self.against is None else [difference_table(self.against)]
        return (scores, self._baselines(), *differences)

    def figures(self) -> dict[str, Any]:
        """Return all figures, those of every item included."""
        more = {"more": self.more} if self.more else {}
        return figures_of(
            **_means(self.report),
            items={item.id: item.model_dump(exclude={"id"}) for item in self.report.items},
            mark_all=_means(self.everything),
            mark_none=_means(self.nothing),
            missing=self.missing,
            extra=self.extra,
            against=self.against,
            **more,
        )

    def _baselines(self) -> ResultTable:
        sides = {"all": "All marked", "none": "None marked"}
        columns = [
            Column(key=f"{key}-{metric}", title=f"{title}: {SCORES[metric].title}", unit="score")
            for key, title in sides.items()
            for metric in _MAIN
        ]
        baselines = zip(_by_language(self.everything), _by_language(self.nothing), strict=True)
        return ResultTable(
            key="baselines",
            title="Baselines",
            columns=(LANGUAGE, *columns),
            rows=tuple(
                (lang, marked.iou.mean, marked.corr.mean, unmarked.iou.mean, unmarked.corr.mean)
                for (lang, marked), (_, unmarked) in baselines
            ),
        )


def difference_cells(difference: MeanDifference) -> tuple[Cell, Cell]:
    """Return a difference with its interval, and its p-value."""
    ends = MeanInterval(mean=difference.difference, low=difference.low, high=difference.high)
    return ends, difference.p


def _by_language(report: ScoreReport) -> list[tuple[str, ScoreMeans]]:
    return [*((row.lang, row) for row in report.languages), ("macro", report.macro)]


def _cells(lang: str, score_means: ScoreMeans) -> tuple[Cell, ...]:
    estimates: dict[str, MeanInterval | None] = {
        name: getattr(score_means, name) for name in SCORES
    }
    figures = (
        several(mean, score_means.n) if name in _MAIN else mean and mean.mean
        for name, mean in estimates.items()
    )
    return (lang, score_means.n, *figures)


def difference_table(
    against: ReportComparison, title: str = "PRED minus --against, paired"
) -> ResultTable:
    """Return the paired differences of two systems by language and macro, with p-values."""
    columns = [
        column.model_copy(update={"key": f"{name}-{column.key}", "title": title})
        for name in _MAIN
        for column, title in (
            (SCORES[name].model_copy(update={"unit": "difference"}), SCORES[name].title),
            (P_VALUE, f"p of {SCORES[name].title}"),
        )
    ]
    rows = [*((row.lang, row) for row in against.languages), ("macro", against.macro)]
    return ResultTable(
        key="differences",
        title=title,
        columns=(LANGUAGE, ITEMS, *columns),
        rows=tuple(
            (lang, row.n, *difference_cells(row.iou), *difference_cells(row.corr))
            for lang, row in rows
        ),
        remarks=("p of languages by Holm's correction.",) if len(against.languages) > 1 else (),
    )


def _means(report: ScoreReport) -> dict[str, Any]:
    by_language = {row.lang: row.model_dump(exclude={"lang"}) for row in report.languages}
    return {"macro": report.macro, "languages": by_language}


class _FoundLabels(NamedTuple):
    """Labels and where they were found."""

    labels: ItemLabels
    file: Path
    line: int
    unit: str

    def place(self, error: InputError) -> InputError:
        return error.at(file=self.file, line=self.line, unit=self.unit)


def score_files(
    predictions: Sequence[Path],
    golds: Sequence[Path],
    *,
    annotator: str | None = None,
    gold_annotator: str | None = None,
    against: Sequence[Path] = (),
    metrics: Sequence[str] = (),
) -> ScoreEvaluation:
    """Score prediction files against gold files on the full item ids that both sides have.

    Args:
        predictions: files of any readable format, Mu-SHROOM submissions included.
        golds: files with gold labels.
        annotator: whose annotation is the prediction, where a file has several.
        gold_annotator: whose annotation is the gold, where it is not "gold".
        against: files of a second system, for a paired test.
        metrics: further ones, by their names in packages.

    Raises:
        InputError: a file is wrong, an id is repeated, or no id is common to both sides.
        UsageError: no installed package has a metric of this name.
    """
    gold = _labels(golds, gold_annotator, "gold")
    predicted = _labels(predictions, annotator, "prediction")
    report = _score(predicted, gold, predictions, golds)
    second = _labels(against, annotator, "prediction")
    common = [gold[name].labels for name in gold if name in predicted]
    return ScoreEvaluation(
        report=report,
        everything=score((labels, mark_all(labels)) for labels in common),
        nothing=score((labels, mark_none(labels)) for labels in common),
        missing=tuple(name for name in gold if name not in predicted),
        extra=tuple(name for name in predicted if name not in gold),
        against=compare(report, _score(second, gold, against, golds)) if against else None,
        more=more_means(
            [(gold[name].labels, predicted[name].labels) for name in gold if name in predicted],
            named_metrics(metrics),
        ),
    )


def more_means(
    pairs: Sequence[tuple[ItemLabels, ItemLabels]], metrics: Mapping[str, SpanMetric]
) -> dict[str, dict[str, MeanInterval]]:
    """Return means of further metrics by their names, then by language and "macro".

    Args:
        pairs: gold labels and prediction of each item, at least one.
        metrics: functions of both.
    """
    return {name: score_by(metric, pairs) for name, metric in metrics.items()}


def named_metrics(metrics: Iterable[SpanMetric | str]) -> dict[str, SpanMetric]:
    """Return metrics by name; a text is the name under which an installed package has one.

    Raises:
        UsageError: no package has a metric of this name, or it cannot be loaded.
    """
    return {
        metric if isinstance(metric, str) else getattr(metric, "__name__", type(metric).__name__): (
            brought(_METRICS, metric) if isinstance(metric, str) else metric
        )
        for metric in metrics
    }


def package_metrics() -> tuple[dict[str, SpanMetric], tuple[str, ...]]:
    """Return the metrics of all installed packages by name, and why others cannot be loaded."""
    found, broken = dict[str, SpanMetric](), list[str]()
    for name in offered(_METRICS):
        try:
            found |= named_metrics([name])
        except UsageError as error:
            broken.append(str(error))
    return found, tuple(broken)


def _score(
    predicted: Mapping[str, _FoundLabels],
    gold: Mapping[str, _FoundLabels],
    prediction_files: Sequence[Path],
    gold_files: Sequence[Path],
) -> ScoreReport:
    common = [name for name in gold if name in predicted]
    if not common:
        raise InputError(
            f"no item id is in both {_names(prediction_files)} and {_names(gold_files)}",
            found=f"{_example(predicted)} and {_example(gold)}",
            expected="predictions and gold labels of the same items, joined by their full id",
        )
    try:
        return score((gold[name].labels, predicted[name].labels) for name in common)
    except InputError:
        for name in common:
            _check(gold[name], predicted[name])
        raise


def _check(gold: _FoundLabels, predicted: _FoundLabels) -> None:
    """Raise the scorer's error on a pair, if it has one, with the place of the wrong labels."""
    try:
        score_item(gold.labels, predicted.labels)
    except InputError as error:
        # Gold labels were checked against their answer when they were read, if there is one.
        unsized = gold.labels.length is None and predicted.labels.length is None
        raise (gold if unsized else predicted).place(error) from None


def _labels(files: Sequence[Path], annotator: str | None, role: Role) -> dict[str, _FoundLabels]:
    labels_by_item: dict[str, _FoundLabels] = {}
    wrongs = Wrongs()
    for file in files:
        for labels, line, unit in read_placed_labels(
            file, annotator=annotator, role=role, on_wrong=wrongs.add
        ):
            found_labels = _FoundLabels(labels, file, line, unit)
            if labels.id in labels_by_item:
                twice = repeated_id(labels.id, "every id once over all files of one side")
                wrongs.add(found_labels.place(twice))
            labels_by_item[labels.id] = found_labels
    wrongs.check()
    if files and not labels_by_item:
        raise InputError(
            f"{_names(files)}: there is no finished annotation"
            + (f" by {annotator!r}" if annotator else ""),
            expected="labels to score; --annotator and --gold say whose",
        )
    return labels_by_item


def _names(files: Sequence[Path]) -> str:
    return ", ".join(str(file) for file in files[:3]) + (", …" if len(files) > 3 else "")


def _example(labels: Mapping[str, _FoundLabels]) -> str:
    return f"{next(iter(labels))!r}…" if labels else "no items"
