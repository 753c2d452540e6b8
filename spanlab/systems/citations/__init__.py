"""``citations``: each cited sentence is judged by what it cites, each quotation is looked up.

text.citations     markers and the stretches that they cover (for Review and figures, too)
text.quotations    what is quoted, and where a source has it
support            a judge of whole answers, restricted to one stretch and some passages
findings           what follows: labels, evidence, claims
detector           the detector that asks no model
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from spanlab.detection.entry import DetectorEntry, DetectorOptions, entry_of

NAME: Final = "citations"
JUDGE: Final = "offline"  # the detector that judges a stretch by passages


def _data(_options: DetectorOptions) -> Iterable[Path]:
    judge = entry_of(JUDGE)
    return judge.data(judge.options())


def _learnt(_options: DetectorOptions) -> Iterable[str]:
    judge = entry_of(JUDGE)
    return judge.learnt(judge.options())


ENTRY = DetectorEntry(
    name=NAME,
    title="Checks citations",
    what="compares each cited sentence with what it cites, and looks up each quotation",
    needs="nothing; passages that the answer cites",
    create="spanlab.systems.citations.detector:create",
    data=_data,
    learnt=_learnt,
)
