"""Predictions against gold labels, file by file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from spanlab.base.errors import InputError, UsageError
from spanlab.base.inbound import brought, offered
from spanlab.formats import ReadOptions, Role, detect, read_placed, read_placed_labels
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
    column_of,
    columns_of,
    figures_of,
    several,
)
from spanlab.schema import AnnotatorKind, Status
from spanlab.scoring.answer_scores import AnswerEvaluation, evaluate_answers
from spanlab.scoring.comparison import MeanDifference, ReportComparison, compare, paired
from spanlab.scoring.report import ScoreMeans, ScoreReport, score, score_by
from spanlab.scoring.spans import METRICS, mark_all, mark_none, score_item
from spanlab.text.labels import AnswerVerdict, ItemLabels

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

    ``report``, ``everything`` and ``nothing`` are of the items of which both sides mark places, and
    None without any; of the other ``unplaced`` items a side says whether the answer is hallucinated
    and no more. ``answers`` has the scores of verdicts on all answers. ``missing`` are gold ids
    without a prediction, ``extra`` predicted ids without gold; neither takes part in the scores.
    ``against`` compares spans with a second prediction, if one was given, ``answers_against`` the
    shares of answers judged right. ``more`` are means of further metrics: by the metric's name,
    then by language or "macro". ``unfinished`` are gold ids whose prediction is there and was set
    aside, skipped or failed; they are not among ``missing``.
    """

    report: ScoreReport | None
    everything: ScoreReport | None
    nothing: ScoreReport | None
    answers: AnswerEvaluation
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    against: ReportComparison | None = None
    answers_against: MeanDifference | None = None
    more: Mapping[str, Mapping[str, MeanInterval]] = field(default_factory=dict)
    unplaced: int = 0
    unfinished: tuple[str, ...] = ()

    @property
    def macro(self) -> ScoreMeans:
        """The means over languages, every language counting the same.

        Raises:
            InputError: no item has marked places on both sides.
        """
        if self.report is None:
            raise InputError(
                "no item has marked places on both sides: there are scores of whole answers alone",
                expected="`answers` of this result",
            )
        return self.report.macro

    def tables(self) -> tuple[ResultTable, ...]:
        """Return scores by language and macro, the baselines, and the comparison, if any."""
        first, *others = self.answers.tables()
        if self.report is not None:
            first, others = self._span_table(self.report), [*self._baselines(), first, *others]
        if self.against is not None:
            others.append(difference_table(self.against))
        if self.answers_against is not None:
            others.append(right_table(self.answers_against, self.answers.total.n))
        return (first.model_copy(update={"remarks": self._remarks()}), *others)

    def _remarks(self) -> tuple[str, ...]:
        left_out = (
            (self.missing, "gold item", "without a prediction: not scored"),
            (
                self.unfinished,
                "gold item",
                "whose prediction was set aside, skipped or failed: not scored",
            ),
            (self.extra, "predicted item", "without gold labels: not scored"),
        )
        remarks = [
            f"{counted(len(ids), noun)} {why}: {named_ids(ids)}"
            for ids, noun, why in left_out
            if ids
        ]
        if self.unplaced:
            remarks.append(
                f"No IoU and Corr of {counted(self.unplaced, 'answer')} that one side judges as a "
                "whole, without a place."
            )
        return tuple(remarks)

    def _span_table(self, report: ScoreReport) -> ResultTable:
        return ResultTable(
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
                for lang, score_means in _by_language(report)
            ),
        )

    def figures(self) -> dict[str, Any]:
        """Return all figures, those of every item included."""
        more: dict[str, Any] = {"more": self.more} if self.more else {}
        if self.report is not None and self.everything is not None and self.nothing is not None:
            more |= {
                **_means(self.report),
                "items": {
                    item.id: item.model_dump(exclude={"id", "cluster"})
                    for item in self.report.items
                },
                "mark_all": _means(self.everything),
                "mark_none": _means(self.nothing),
            }
        if self.answers_against is not None:
            more["answers_against"] = self.answers_against
        return figures_of(
            **more,
            answers=self.answers.figures(),
            missing=self.missing,
            unfinished=self.unfinished,
            extra=self.extra,
            against=self.against,
        )

    def _baselines(self) -> tuple[ResultTable, ...]:
        if self.everything is None or self.nothing is None:
            return ()
        called = {"all": "All marked", "none": "None marked"}
        columns = [
            Column(key=f"{key}-{metric}", title=f"{title}: {SCORES[metric].title}", unit="score")
            for key, title in called.items()
            for metric in _MAIN
        ]
        means = zip(_by_language(self.everything), _by_language(self.nothing), strict=True)
        rows = tuple(
            (lang, *(getattr(side, metric).mean for side in (marked, unmarked) for metric in _MAIN))
            for (lang, marked), (_, unmarked) in means
        )
        columns = [LANGUAGE, *columns]
        return (ResultTable(key="baselines", title="Baselines", columns=columns, rows=rows),)


def right_table(
    difference: MeanDifference, n: int, title: str = "PRED minus --against, paired"
) -> ResultTable:
    """Return by how much more of ``n`` answers a system judges right than another."""
    column = column_of("difference", "Judged right", "right")
    return ResultTable(
        key="answer-differences",
        title=f"Whole answers: {title}",
        columns=(ITEMS, column, P_VALUE),
        rows=((n, *difference_cells(difference)),),
    )


def difference_cells(difference: MeanDifference) -> tuple[Cell, Cell]:
    """Return a difference with its interval, and its p-value."""
    ends = MeanInterval(mean=difference.difference, low=difference.low, high=difference.high)
    return ends, difference.p


def unlike_p(differences: Iterable[MeanDifference | None]) -> tuple[str, ...]:
    """Return why intervals and p do not say the same, where they do not."""
    known = [(d.p < 0.05, d.low <= 0 <= d.high) for d in differences if d is not None]
    return (
        *((_CAREFUL,) if (True, True) in known else ()),
        *((_ALONE,) if (False, False) in known else ()),
    )


_CAREFUL: Final = (
    "Where an interval contains 0, no difference is shown, also with a small p: the interval "
    "allows for one more that differs as far as possible, which none of these does."
)
_ALONE: Final = (
    "Where p is .05 or more no difference is shown, also beside an interval without 0: that is of "
    "its comparison alone, p allows for all of them."
)


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
    sides = [*((row.lang, row) for row in against.languages), ("macro", against.macro)]
    return ResultTable(
        key="differences",
        title=title,
        columns=(LANGUAGE, ITEMS, *columns),
        rows=tuple(
            (
                lang,
                side.n,
                *(cell for name in _MAIN for cell in difference_cells(getattr(side, name))),
            )
            for lang, side in sides
        ),
        remarks=(
            *(("p of languages by Holm's correction.",) if len(against.languages) > 1 else ()),
            *unlike_p(getattr(side, name) for _, side in sides for name in _MAIN),
        ),
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
    second = _labels(against, annotator, "prediction")
    pairs = _pairs(predicted, gold, predictions, golds)
    others = _pairs(second, gold, against, golds) if against else None
    try:
        evaluation = evaluate(pairs, metrics=metrics, against=others)
    except InputError:
        for side in (predicted, second):
            for name in gold.keys() & side.keys():
                _check(gold[name], side[name])
        raise
    missing = [name for name in gold if name not in predicted]
    unfinished = _unfinished(predictions, annotator) if missing else set()
    return replace(
        evaluation,
        missing=tuple(name for name in missing if name not in unfinished),
        unfinished=tuple(name for name in missing if name in unfinished),
        extra=tuple(name for name in predicted if name not in gold),
    )


LabelPairs: TypeAlias = Sequence[tuple[ItemLabels, ItemLabels]]


def evaluate(
    pairs: LabelPairs,
    *,
    metrics: Iterable[SpanMetric | str] = (),
    against: LabelPairs | None = None,
) -> ScoreEvaluation:
    """Return all scores that labels allow.

    Args:
        pairs: gold labels and prediction of each item, at least one.
        metrics: further ones of spans, or their names in packages.
        against: the same of a second system, for a paired test.

    Raises:
        InputError: a pair does not fit (see ``score_item``), or an id is repeated.
        UsageError: no installed package has a metric of this name.
    """
    placed, second = placed_pairs(pairs), placed_pairs(against or ())
    report = score(placed) if placed else None
    named = named_metrics(metrics)
    is_compared = report is not None and bool(second)
    return ScoreEvaluation(
        report=report,
        everything=score((gold, mark_all(gold)) for gold, _ in placed) if placed else None,
        nothing=score((gold, mark_none(gold)) for gold, _ in placed) if placed else None,
        answers=evaluate_answers(verdict_pairs(pairs)),
        against=compare(report, score(second)) if report and is_compared else None,
        answers_against=None if against is None else _right_answers(pairs, against),
        more=more_means(placed, named) if placed else {},
        unplaced=len(pairs) - len(placed),
    )


def placed_pairs(pairs: LabelPairs) -> LabelPairs:
    """Return the pairs in which both sides mark places, or say that there are none to mark.

    An answer that is called right has none, unless its side calls others hallucinated without a
    place: then it judges whole answers.
    """
    has_places = [
        not any(labels.verdict.hallucinated and not labels.verdict.is_placed for labels in side)
        for side in zip(*pairs, strict=True)
    ]
    return [
        pair
        for pair in pairs
        if all(
            labels.verdict.is_placed or all_are
            for labels, all_are in zip(pair, has_places, strict=True)
        )
    ]


def verdict_pairs(pairs: LabelPairs) -> dict[str, list[tuple[AnswerVerdict, AnswerVerdict]]]:
    """Return the gold verdict and the predicted one of each answer, by language."""
    verdicts: dict[str, list[tuple[AnswerVerdict, AnswerVerdict]]] = {}
    for gold, predicted in pairs:
        verdicts.setdefault(gold.lang, []).append((gold.verdict, predicted.verdict))
    return verdicts


def _right_answers(pairs: LabelPairs, against: LabelPairs) -> MeanDifference | None:
    """Return how much more answers the first judges right; None if they share no item."""
    others = {gold.id: predicted for gold, predicted in against}
    right = [
        [said.verdict.hallucinated == gold.verdict.hallucinated for said in (one, others[gold.id])]
        for gold, one in pairs
        if gold.id in others
    ]
    return paired(*zip(*right, strict=True)) if right else None


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


def _pairs(
    predicted: Mapping[str, _FoundLabels],
    gold: Mapping[str, _FoundLabels],
    prediction_files: Sequence[Path],
    gold_files: Sequence[Path],
) -> LabelPairs:
    """Return the labels of both sides of the items that both have, each checked."""
    common = [name for name in gold if name in predicted]
    if not common:
        raise InputError(
            f"no item id is in both {_names(prediction_files)} and {_names(gold_files)}",
            found=f"{_example(predicted)} and {_example(gold)}",
            expected="predictions and gold labels of the same items, joined by their full id",
        )
    return [(gold[name].labels, predicted[name].labels) for name in common]


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
        for labels, line, unit, _ in read_placed_labels(
            file, annotator=annotator, role=role, on_wrong=wrongs.add
        ):
            found_labels = _FoundLabels(labels, file, line, unit)
            if labels.id in labels_by_item:
                twice = repeated_id(labels.id, "every id once over all files of one side")
                wrongs.add(found_labels.place(twice))
            labels_by_item[labels.id] = found_labels
    wrongs.check()
    if files and not labels_by_item:
        raise none_finished(files, annotator)
    return labels_by_item


def _unfinished(files: Sequence[Path], annotator: str | None) -> set[str]:
    """Return the ids of the items that whoever is scored has skipped or failed on."""
    open_states = (Status.SKIPPED, Status.FAILED)
    return {
        placed.record.item.id
        for file in files
        if detect(file) != "mushroom"  # which has no such states, and may lack answers
        for placed in read_placed(file, ReadOptions(on_warning=lambda _: None))
        for said in placed.record.annotations
        if said.status in open_states
        and (said.annotator == annotator if annotator else said.kind is not AnnotatorKind.GOLD)
    }


def none_finished(files: Sequence[Path], annotator: str | None) -> InputError:
    """Return the error of files without a finished annotation by whom is meant."""
    return InputError(
        f"{_names(files)}: there is no finished annotation"
        + (f" by {annotator!r}" if annotator else ""),
        expected="labels to score; --annotator and --gold say whose",
    )


def _names(files: Sequence[Path]) -> str:
    return ", ".join(str(file) for file in files[:3]) + (", …" if len(files) > 3 else "")


def _example(labels: Mapping[str, _FoundLabels]) -> str:
    return f"{next(iter(labels))!r}…" if labels else "no items"
