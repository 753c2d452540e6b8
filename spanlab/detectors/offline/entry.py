"""What the offline detector says of itself."""

from __future__ import annotations

from spanlab.detectors.entry import DetectorEntry

ENTRY = DetectorEntry(
    name="offline",
    title="Compares words",
    what="marks words that passages and question do not support",
    needs="nothing; passages help",
    create="spanlab.detectors.offline.detector:create",
)
