"""Scores of predicted labels: those of SemEval-2025 Task 3 and a few more.

IoU and Corr follow Vázquez et al. 2025, "SemEval-2025 Task 3: Mu-SHROOM, the Multilingual
Shared-task on Hallucinations and Related Observable Overgeneration Mistakes". Everything works on
intervals: the cost follows the number of spans, not the length of the answers.
"""

from spanlab.scoring.agreement import StageAgreement, stage_agreement, stage_shares
from spanlab.scoring.answers import (
    LABELS,
    MOST_PAIRS,
    AnswerScore,
    AveritecReport,
    GoldClaim,
    PredictedClaim,
    averitec,
    score_answer,
)
from spanlab.scoring.calibration import CalibrationBin, CalibrationReport, CalibrationSums, shares
from spanlab.scoring.claims import (
    RIGHT,
    ClaimReport,
    JudgedClaim,
    MacroF1s,
    VerdictScore,
    coarse,
    compare_claims,
    compare_macro_f1,
    decided,
    score_claims,
)
from spanlab.scoring.comparison import (
    LanguageDifferences,
    MeanDifference,
    ReportComparison,
    ScoreDifferences,
    compare,
    holm,
    paired,
)
from spanlab.scoring.report import (
    LanguageMeans,
    ScoreMeans,
    ScoreReport,
    interval,
    mean_of,
    score,
    weights,
)
from spanlab.scoring.spans import METRICS, ItemScore, mark_all, mark_none, score_item, score_items

__all__ = [
    "LABELS",
    "METRICS",
    "MOST_PAIRS",
    "RIGHT",
    "AnswerScore",
    "AveritecReport",
    "CalibrationBin",
    "CalibrationReport",
    "CalibrationSums",
    "ClaimReport",
    "GoldClaim",
    "ItemScore",
    "JudgedClaim",
    "LanguageDifferences",
    "LanguageMeans",
    "MacroF1s",
    "MeanDifference",
    "PredictedClaim",
    "ReportComparison",
    "ScoreDifferences",
    "ScoreMeans",
    "ScoreReport",
    "StageAgreement",
    "VerdictScore",
    "averitec",
    "coarse",
    "compare",
    "compare_claims",
    "compare_macro_f1",
    "decided",
    "holm",
    "interval",
    "mark_all",
    "mark_none",
    "mean_of",
    "paired",
    "score",
    "score_answer",
    "score_claims",
    "score_item",
    "score_items",
    "shares",
    "stage_agreement",
    "stage_shares",
    "weights",
]
