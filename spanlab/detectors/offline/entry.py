"""What the offline detector says of itself."""

from __future__ import annotations

from spanlab.detectors.base import DetectorKit, LocalDetector
from spanlab.detectors.entry import DetectorEntry


def _create(_kit: DetectorKit) -> LocalDetector:
    from spanlab.detectors.offline.detector import create

    return create()


ENTRY = DetectorEntry(
    name="offline",
    title="Compares words",
    what="marks words that passages and question do not support",
    needs="nothing; passages help",
    create=_create,
)
