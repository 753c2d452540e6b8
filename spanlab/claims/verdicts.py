"""Verdicts on claims, and which of them count as hallucinated.

"supported", "refuted", "not-enough-evidence" and "conflicting" are AVeriTeC's (Schlichtkrull et
al. 2023); "not-supported" is VeriTrail's "Not Fully Supported", refuted or not enough, which it
does not tell apart, and "inconclusive" is its word for evidence that favours neither.
"""

from __future__ import annotations

from typing import Final

from spanlab.schema import Verdict

HALLUCINATED: Final[frozenset[Verdict]] = frozenset(("refuted", "not-supported"))
