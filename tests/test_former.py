"""Packages that were written for 1.0 find what they import, and are told its name of now."""

import importlib
import pkgutil
import sys
import warnings

import pytest

import spanlab

# What the guide of 1.0 tells authors of detectors, formats, retrievers and metrics to import, and
# what programs take from the rooms of scores and search.
FORMER = {
    "spanlab.datasets.reader": "FormatEntry",
    "spanlab.detectors": "build",
    "spanlab.detectors.base": "Detector",
    "spanlab.detectors.common.claim_detector": "ClaimJudgement",
    "spanlab.detectors.entry": "DetectorEntry",
    "spanlab.detectors.networks.classifier": "OnnxClassifier",
    "spanlab.errors": "UsageError",
    "spanlab.labels": "ItemLabels",
    "spanlab.options": "option",
    "spanlab.results": "ResultTable",
    "spanlab.retrievers": "retrieve",
    "spanlab.retrievers.base": "Retriever",
    "spanlab.scorers": "score_items",
    "spanlab.settings": "Settings",
}


@pytest.mark.parametrize("module", FORMER)
def test_a_module_of_1_0_is_found_under_its_name_of_then(module: str) -> None:
    name = FORMER[module]
    sys.modules.pop(module, None)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found = getattr(importlib.import_module(module), name)
    assert any(str(one.message).startswith(f"{module} is called spanlab.") for one in said)
    now = sys.modules[found.__module__]
    assert getattr(now, name) is found
    assert now.__spec__ is not None
    assert now.__spec__.name == found.__module__  # it can be loaded anew, and found in a pickle


def test_no_room_takes_the_name_of_a_function() -> None:
    rooms = {module.name for module in pkgutil.iter_modules(spanlab.__path__)}
    assert not rooms & set(spanlab.__all__)
