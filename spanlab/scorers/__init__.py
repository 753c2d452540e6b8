"""Scores of predicted labels: those of SemEval-2025 Task 3 and a few more.

IoU and Corr follow Vázquez et al. 2025, "SemEval-2025 Task 3: Mu-SHROOM, the Multilingual
Shared-task on Hallucinations and Related Observable Overgeneration Mistakes". Everything works on
intervals: the cost follows the number of spans, not the length of the answers.
"""

from spanlab.scorers._averitec import (
    LABELS,
    MOST_PAIRS,
    AveritecReport,
    GoldClaim,
    PredictedClaim,
    averitec,
)
from spanlab.scorers._calibration import Calibration, CalibrationBin, CalibrationSums, shares
from spanlab.scorers._claims import (
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
from spanlab.scorers._compare import (
    Comparison,
    Difference,
    Differences,
    LanguageDifferences,
    compare,
    paired,
)
from spanlab.scorers._item import METRICS, ItemScore, mark_all, mark_none, score_item, score_items
from spanlab.scorers._report import LanguageMeans, Means, Report, mean_of, score
from spanlab.scorers._resample import interval, weights
from spanlab.scorers._short_answers import AnswerScore, score_answer
from spanlab.scorers._stages import StageAgreement, stage_agreement, stage_shares

__all__ = [
    "LABELS",
    "METRICS",
    "MOST_PAIRS",
    "RIGHT",
    "AnswerScore",
    "AveritecReport",
    "Calibration",
    "CalibrationBin",
    "CalibrationSums",
    "ClaimReport",
    "Comparison",
    "Difference",
    "Differences",
    "GoldClaim",
    "ItemScore",
    "JudgedClaim",
    "LanguageDifferences",
    "LanguageMeans",
    "MacroF1s",
    "Means",
    "PredictedClaim",
    "Report",
    "StageAgreement",
    "VerdictScore",
    "averitec",
    "coarse",
    "compare",
    "compare_claims",
    "compare_macro_f1",
    "decided",
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
