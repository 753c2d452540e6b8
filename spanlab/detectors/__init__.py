"""Detectors by name.

    offline                             words alone: no model, no network
    ucsc-extract, ucsc-kg, ucsc-revise  ask a language model
    ucsc                                an ensemble of five, and their vote

A detector is loaded when it is first asked for: naming them costs nothing. One that asks models
is chosen by a specification (``spec_of``, ``DetectorSpec``, ``EnsembleSpec``) and built with
``build``.
"""

from __future__ import annotations

from spanlab.detectors.base import Detector, Finding, ModelDetector, Tunable
from spanlab.detectors.building import build
from spanlab.detectors.registry import (
    ABOUT,
    DETECTORS,
    ENSEMBLES,
    MODEL_DETECTORS,
    About,
    detector,
    spec_of,
)
from spanlab.detectors.spec import DetectorSpec, EnsembleSpec, MapperOptions, Spec

__all__ = [
    "ABOUT",
    "DETECTORS",
    "ENSEMBLES",
    "MODEL_DETECTORS",
    "About",
    "Detector",
    "DetectorSpec",
    "EnsembleSpec",
    "Finding",
    "MapperOptions",
    "ModelDetector",
    "Spec",
    "Tunable",
    "build",
    "detector",
    "spec_of",
]
