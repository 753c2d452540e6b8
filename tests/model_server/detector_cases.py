"""An item and its detection, for tests of detectors."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from spanlab.detection import Detector, DetectorResult
from spanlab.schema import Item, Passage

Make = Callable[..., Detector]  # of a detector's name and what its specification says

ANSWER = "The tower was built in 1989 by Ada Smith in Paris."
TOWER = Item(
    id="tower",
    lang="en",
    question="When was the tower built, and by whom?",
    answer=ANSWER,
    passages=(
        Passage(text="Paris is a city. It has many cafés.", title="Paris", date="2024-05-01"),
        Passage(text="Trees are green. The tower was built in 1889 by Gustave Eiffel in Paris."),
    ),
)


def detect(detector: Detector, item: Item = TOWER) -> DetectorResult:
    """Detect, and check that the annotation fits its item."""
    finding = asyncio.run(detector.detect(item))
    for annotation in finding.annotations:
        annotation.check(finding.item)
    return finding
