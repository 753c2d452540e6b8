"""What detectors there are, what each needs, and the ones that need nothing."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from spanlab.detectors.base import Detector
from spanlab.detectors.spec import DetectorSpec, EnsembleSpec, Spec
from spanlab.errors import UsageError

_HERE = Path(__file__).parent

# Each module has a function create() -> Detector.
_OFFLINE = {"offline": "spanlab.detectors.offline"}
# Each module has a function create(kit: Kit) -> ModelDetector.
_MODELLED = {
    "ucsc-extract": "spanlab.detectors.ucsc.extract",
    "ucsc-kg": "spanlab.detectors.ucsc.kg",
    "ucsc-revise": "spanlab.detectors.ucsc.revise",
}
_ENSEMBLES = {"ucsc": _HERE / "ucsc" / "ensemble.json"}

DETECTORS = tuple(_OFFLINE)
MODEL_DETECTORS = tuple(_MODELLED)
ENSEMBLES = tuple(_ENSEMBLES)


class About(NamedTuple):
    """A detector in two sentences: what it does, and what it needs beside the item."""

    name: str
    what: str
    needs: str


ABOUT = (
    About(
        "offline",
        "marks words that passages and question do not support",
        "nothing; passages help",
    ),
    About(
        "ucsc-extract",
        "a model quotes what the passages do not support",
        "a model, one call an item; passages or a retriever help",
    ),
    About(
        "ucsc-kg",
        "a model checks the answer's facts against a graph of the passages",
        "a model, 2 calls an item and 1 to 5 a fact; passages or a retriever",
    ),
    About(
        "ucsc-revise",
        "a model corrects the answer with the fewest changes",
        "a model (best a reasoning one), one call an item; passages or a retriever help",
    ),
    About(
        "ucsc",
        "five of these vote, as in the paper; --config FILE replaces the members",
        "the models of its members, five calls an item; passages or a retriever help",
    ),
)


def known(name: str) -> str:
    """Return ``name`` if a detector or ensemble is called so.

    Raises:
        UsageError: none is; the message lists those there are.
    """
    names = [about.name for about in ABOUT]
    if name not in names:
        close = get_close_matches(name, names, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"no detector is called {name!r}{hint} (known: {', '.join(names)})")
    return name


@cache
def detector(name: str) -> Detector:
    """Return the detector that is called ``name`` and needs no model.

    Args:
        name: one of ``DETECTORS``.

    Returns:
        The detector, the same one every time.

    Raises:
        UsageError: no detector has that name; the message lists those there are. Or it asks a
            model, and has to be built from a specification.
    """
    if known(name) not in _OFFLINE:
        raise UsageError(f"{name!r} asks models: build it from spec_of({name!r})")
    create: Callable[[], Detector] = import_module(_OFFLINE[name]).create
    return create()


def spec_of(name: str) -> Spec:
    """Return the specification that a name alone stands for.

    Args:
        name: any detector or ensemble.

    Returns:
        The detector with everything else left to its defaults, or the shipped ensemble.

    Raises:
        UsageError: no detector has that name.
    """
    if known(name) in _ENSEMBLES:
        return EnsembleSpec.read(_ENSEMBLES[name])
    return DetectorSpec(detector=name)


def factory(name: str) -> str:
    """Return the module whose ``create`` builds a detector that asks models.

    Raises:
        UsageError: no such detector has that name.
    """
    if known(name) not in _MODELLED:
        raise UsageError(f"{name!r} cannot be a member: it is no detector that asks a model")
    return _MODELLED[name]
