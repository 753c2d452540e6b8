"""Detectors by name.

    offline                             words alone: no model, no network
    encoder, encoder-nli                a classifier from a local folder
    ucsc-extract, ucsc-kg, ucsc-revise  ask a language model
    ucsc                                an ensemble of five, and their vote

Others come from installed packages (``registry``). A detector is loaded when it is first built:
naming it and reading its ``Entry`` costs nothing. It is chosen by a specification (``spec_of``,
``DetectorSpec``, ``EnsembleSpec``) and built with ``build``.
"""

from __future__ import annotations

from spanlab.detectors.base import (
    BatchDetector,
    Detector,
    Finding,
    Gathered,
    Kit,
    LocalDetector,
    Tunable,
    as_detector,
)
from spanlab.detectors.building import build, detector
from spanlab.detectors.entry import (
    INSTRUCTION,
    Broken,
    Calls,
    Entry,
    Options,
    Size,
    asks_models,
    check_tunable,
    entries,
    entry_of,
    installed,
    tunable,
)
from spanlab.detectors.spec import DetectorSpec, EnsembleSpec, Spec, members, spec_of

__all__ = [
    "INSTRUCTION",
    "BatchDetector",
    "Broken",
    "Calls",
    "Detector",
    "DetectorSpec",
    "EnsembleSpec",
    "Entry",
    "Finding",
    "Gathered",
    "Kit",
    "LocalDetector",
    "Options",
    "Size",
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
    "tunable",
]
