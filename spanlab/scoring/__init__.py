"""Scores of predicted labels: those of SemEval-2025 Task 3 and a few more.

IoU and Corr follow Vázquez et al. 2025, "SemEval-2025 Task 3: Mu-SHROOM, the Multilingual
Shared-task on Hallucinations and Related Observable Overgeneration Mistakes". Everything works on
intervals: the cost follows the number of spans, not the length of the answers.
"""

from spanlab import _former

__getattr__ = _former.found_in(
    __name__, "agreement", "answers", "calibration", "claims", "comparison", "report", "spans"
)
