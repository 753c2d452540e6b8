"""Detectors by name.

    offline                             words alone: no model, no network
    encoder, encoder-nli                a classifier from a local folder
    ucsc-extract, ucsc-kg, ucsc-revise  ask a language model
    ucsc                                an ensemble of five, and their vote

Others come from installed packages (``registry``). A detector is loaded when it is first built:
naming it and reading its ``DetectorEntry`` costs nothing. It is chosen by a specification
(``spec_of``, ``DetectorSpec``, ``EnsembleSpec``) and built with ``build``.
"""

from __future__ import annotations

from spanlab.detection.base import (
    BatchDetector,
    Detector,
    DetectorKit,
    DetectorResult,
    LocalDetector,
    Tunable,
)
from spanlab.detection.building import build, detector
from spanlab.detection.entry import (
    INSTRUCTION,
    BrokenDetector,
    CallEstimate,
    DetectorEntry,
    DetectorOptions,
    PromptSize,
    asks_models,
    check_tunable,
    entries,
    entry_of,
    installed,
    tunable,
)
from spanlab.detection.local import BatchCollector, as_detector
from spanlab.detection.spec import DetectorSpec, EnsembleSpec, Spec, members, spec_of, specs_in

__all__ = [
    "INSTRUCTION",
    "BatchCollector",
    "BatchDetector",
    "BrokenDetector",
    "CallEstimate",
    "Detector",
    "DetectorEntry",
    "DetectorKit",
    "DetectorOptions",
    "DetectorResult",
    "DetectorSpec",
    "EnsembleSpec",
    "LocalDetector",
    "PromptSize",
    "Spec",
    "Tunable",
    "as_detector",
    "asks_models",
    "build",
    "check_tunable",
    "detector",
    "entries",
    "entry_of",
    "installed",
    "members",
    "spec_of",
    "specs_in",
    "tunable",
]
