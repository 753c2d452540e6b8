"""A comparison of annotators as tables: scores, agreement of pairs, calibration, labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from spanlab.output.tables import (
    BASELINE,
    ITEMS,
    LANGUAGE,
    PERSON,
    Cell,
    Chart,
    Column,
    MeanInterval,
    ResultTable,
    column_of,
    columns_of,
    several,
    table_of,
)
from spanlab.schema import ADJUDICATED, AnnotatorKind
from spanlab.scoring.agreement import (
    AgreementReport,
    AlphaInterval,
    AnnotatorPair,
    LanguageAgreement,
)
from spanlab.scoring.answer_scores import (
    ANSWER_SCORES,
    HALLUCINATED_ANSWERS,
    AnswerAgreement,
    ScoredAnswers,
)
from spanlab.scoring.calibration import AnnotatorCalibration, Confusion
from spanlab.scoring.files import SCORES, package_metrics
from spanlab.scoring.raters import ResponseAgreement
from spanlab.scoring.report import ScoreMeans, ScoreReport
from spanlab.scoring.verdicts import MEASURES, ScoredClaims, VerdictAgreement

KINDS: Final = {
    AnnotatorKind.PERSON: PERSON,
    AnnotatorKind.DETECTOR: "detector",
    AnnotatorKind.VOTE: "vote",
    AnnotatorKind.GOLD: "gold labels",
    None: BASELINE,
}
_SEARCHES: Final = column_of(
    "count",
    "Tool calls",
    "searches",
    about="Calls of tools and searches for these items, as their traces tell.",
)
_RECALLED: Final = column_of(
    "count", "Recalled", about="Passages that a memory had for them, which may spare searches."
)
ANNOTATOR: Final = Column(key="annotator", title="Annotator")
KIND: Final = Column(key="kind", title="Kind")
MAIN_SCORES: Final = ("iou", "f1", "span_f1")  # the rest is shown on request
PAIR_SCORES: Final = ("iou", "f1")  # of two annotators
_ALPHA: Final = (
    "1 is perfect agreement, 0 what chance would give, below 0 systematic disagreement. Unknown "
    "where it is undefined: all marked everything, or all nothing."
)
AgreedOn = (
    AgreementReport
    | AlphaInterval
    | LanguageAgreement
    | AnswerAgreement
    | VerdictAgreement
    | ResponseAgreement
)


def reference_of(kinds: Mapping[str, AnnotatorKind]) -> str | None:
    """Return whose labels count as right by default: adjudicated, else the first gold labels."""
    gold = [name for name, kind in kinds.items() if kind is AnnotatorKind.GOLD]
    return ADJUDICATED if ADJUDICATED in gold else next(iter(gold), None)


@dataclass(frozen=True)
class ScoredAnnotator:
    """Scores of one annotator against the reference; ``kind`` is None for the two baselines.

    ``more`` are macro means of metrics that packages bring, by their names.
    """

    name: str
    kind: AnnotatorKind | None
    report: ScoreReport
    more: Mapping[str, MeanInterval] = field(default_factory=dict)


def score_table(
    scores: Sequence[ScoredAnnotator], metrics: Sequence[str], drawn: str, title: str = ""
) -> ResultTable:
    """Return the macro scores, a row per annotator in the order given; ``drawn`` is charted."""
    return table_of(
        f"{drawn}-scores",
        title,
        scores,
        (ANNOTATOR, lambda scored: scored.name),
        (KIND, lambda scored: KINDS[scored.kind]),
        (ITEMS, lambda scored: scored.report.macro.n),
        *(
            (SCORES[name], lambda scored, of=name: _cell(scored, getattr(scored.report.macro, of)))
            for name in metrics
        ),
        chart=Chart(kind="dots", x=drawn, y="annotator"),
    )


def more_table(scores: Sequence[ScoredAnnotator]) -> ResultTable:
    """Return the macro means of packages' metrics, a row per annotator; no rows without any."""
    names = dict.fromkeys(name for scored in scores for name in scored.more)
    return table_of(
        "package-metrics",
        "Metrics of packages",
        scores if names else (),
        (ANNOTATOR, lambda scored: scored.name),
        (KIND, lambda scored: KINDS[scored.kind]),
        (ITEMS, lambda scored: scored.report.macro.n),
        *(
            (column_of("score", name), lambda scored, of=name: _cell(scored, scored.more[of]))
            for name in names
        ),
        remarks=package_metrics()[1],
    )


def _cell(scored: ScoredAnnotator, mean: MeanInterval | None) -> Cell:
    return several(mean, scored.report.macro.n, groups=len(scored.report.languages))


def language_table(scores: Sequence[ScoredAnnotator], metric: str) -> ResultTable:
    """Return one metric with a row per annotator and language."""
    pairs: list[tuple[ScoredAnnotator, str, ScoreMeans]] = [
        (scored, means.lang, means) for scored in scores for means in scored.report.languages
    ]
    return ResultTable(
        key=f"{metric}-languages",
        title="",
        columns=(ANNOTATOR, KIND, LANGUAGE, ITEMS, SCORES[metric]),
        rows=tuple(
            (scored.name, KINDS[scored.kind], lang, means.n, several(value, means.n))
            for scored, lang, means in pairs
            if (value := getattr(means, metric)) is not None
        ),
        chart=Chart(kind="dots", x=metric, y="annotator", group="language"),
    )


def answer_table(
    scores: Sequence[ScoredAnswers], columns: Sequence[str] = tuple(ANSWER_SCORES)
) -> ResultTable:
    """Return a row per annotator with the scores of its verdicts on whole answers."""
    return table_of(
        "answer-scores",
        "Whole answers: hallucinated or not, with 95 % intervals",
        scores,
        (ANNOTATOR, lambda scored: scored.name),
        (KIND, lambda scored: KINDS[scored.kind]),
        (ITEMS, lambda scored: scored.scores.n),
        (HALLUCINATED_ANSWERS, lambda scored: scored.scores.hallucinated),
        *(
            (ANSWER_SCORES[name], lambda scored, of=name: _answer_cell(scored, of))
            for name in columns
        ),
    )


def _answer_cell(scored: ScoredAnswers, name: str) -> Cell:
    mean: MeanInterval | None = getattr(scored.scores, name)
    if mean is None or scored.kind is None:
        return mean and mean.mean
    return several(mean, scored.scores.n)


def claim_table(scores: Sequence[ScoredClaims], drawn: str = "accuracy") -> ResultTable:
    """Return a row per annotator: claims, searches if any, and each score that somebody has."""
    searched = any(scored.searches or scored.recalled for scored in scores)
    return table_of(
        "claims",
        "",
        scores,
        (ANNOTATOR, lambda scored: scored.name),
        (KIND, lambda scored: KINDS[scored.kind]),
        (ITEMS, lambda scored: scored.n_items),
        (column_of("count", "Claims", "n"), lambda scored: scored.report.n),
        (column_of("count", "Without a verdict", "unjudged"), lambda row: row.report.unjudged),
        (column_of("count", "Inconclusive"), lambda scored: scored.report.inconclusive),
        *(
            ((_SEARCHES, lambda row: row.searches), (_RECALLED, lambda row: row.recalled))
            if searched
            else ()
        ),
        *(
            (MEASURES[name], lambda row, of=name: several(getattr(row.report, of), row.n_items))
            for name in claim_measures(scores)
        ),
        chart=Chart(kind="dots", x=drawn, y="annotator"),
    )


def claim_measures(scores: Sequence[ScoredClaims]) -> list[str]:
    """Return the measures of verdicts that somebody has."""
    return [name for name in MEASURES if any(getattr(scored.report, name) for scored in scores)]


def alpha_table(
    lines: Sequence[tuple[str, AgreedOn | None, AgreedOn | None]],
    remarks: tuple[str, ...] = (),
    *,
    without_people: bool = False,
) -> ResultTable:
    """Return Krippendorff's alpha of people, and of people and detectors, a row for each line.

    ``without_people`` it is that of detectors alone.
    """
    of_people = (
        Column(key="people", title="People", unit="score", about=_ALPHA),
        Column(key="people-n", title="Items of people", unit="count"),
    )
    both = ("Detectors", "Items") if without_people else ("People and detectors", "Items of both")
    return ResultTable(
        key="agreement",
        title="Krippendorff's alpha",
        columns=(
            Column(key="of", title="Agreement on"),
            *(() if without_people else of_people),
            Column(key="both", title=both[0], unit="score", about=_ALPHA),
            Column(key="both-n", title=both[1], unit="count"),
        ),
        rows=tuple(
            (name, *(() if without_people else _alpha(people)), *_alpha(everybody))
            for name, people, everybody in lines
            if any(agreed and agreed.n for agreed in (people, everybody))
        ),
        remarks=remarks,
        empty="Agreement needs items that two or more people or detectors have finished; gold "
        "labels and votes do not count.",
    )


def _alpha(agreed: AgreedOn | None) -> tuple[Cell, Cell]:
    if isinstance(agreed, AlphaInterval) and agreed.low < agreed.high:
        return MeanInterval(mean=agreed.alpha, low=agreed.low, high=agreed.high), agreed.n
    return (None, 0) if agreed is None else (agreed.alpha, agreed.n)


def pair_table(pairs: Sequence[AnnotatorPair]) -> ResultTable:
    """Return a row per pair: both annotators, the number of common items, IoU and F1."""
    return ResultTable(
        key="pairs",
        title="Agreement of pairs",
        columns=(
            *columns_of("text", "A", "B"),
            *columns_of("count", "Common items"),
            *(SCORES[name] for name in PAIR_SCORES),
        ),
        rows=tuple(
            (pair.a, pair.b, pair.n, *(getattr(pair, name) for name in PAIR_SCORES))
            for pair in pairs
        ),
    )


def calibration_table(calibrations: Sequence[AnnotatorCalibration]) -> ResultTable:
    """Return a row per detector and bin of probability."""
    return ResultTable(
        key="calibration",
        title="",
        columns=(
            *columns_of("text", "Detector"),
            *columns_of("share", "Probability", "Share of people", "From", "To"),
            *columns_of("count", "Characters"),
        ),
        rows=tuple(
            (calibration.name, bin_.prob, bin_.share, bin_.low, bin_.high, bin_.characters)
            for calibration in calibrations
            for bin_ in calibration.calibration.bins
        ),
        chart=Chart(kind="calibration", x="probability", y="share-of-people", group="detector"),
    )


def label_table(reference: str, labels: Mapping[str, Confusion]) -> ResultTable:
    """Return characters by annotator, the reference's label and theirs."""
    return ResultTable(
        key="labels",
        title="",
        columns=(
            ANNOTATOR,
            Column(key="right", title=f"Label of {reference}"),
            Column(key="said", title="Label"),
            Column(key="characters", title="Characters", unit="count"),
        ),
        rows=tuple(
            (name, right, predicted, count)
            for name, confusion in labels.items()
            for (right, predicted), count in sorted(confusion.items())
        ),
        chart=Chart(kind="matrix", x="said", y="right"),
    )
