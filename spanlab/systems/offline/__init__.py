"""The offline detector: a trained checker of lexical evidence, for any language; see ``detector``.

What it says of itself; its model is loaded when it is built.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from spanlab.detection.common.fit_options import FitOptions
from spanlab.detection.entry import DetectorEntry

Judge = Literal["usual", "closed-book", "passages"]


class OfflineOptions(FitOptions):
    """What counts as wrong, and which reviews it has learnt from."""

    judge: Judge = Field(
        "usual",
        description="usual: mark what people would mark; closed-book: so, too, in an answer that "
        "was written without its passages; passages: also mark every name, number and rarer word "
        "that neither passages nor question have.",
    )


def _learnt(_options: OfflineOptions) -> frozenset[str]:
    from spanlab.systems.offline.model import installed  # which takes a while to load

    return installed().model.learnt_from


ENTRY = DetectorEntry(
    name="offline",
    title="Compares words",
    preset="Quick and offline",
    what="marks words that passages and question do not support",
    needs="nothing; passages help",
    create="spanlab.systems.offline.detector:create",
    options=OfflineOptions,
    fit="spanlab.systems.offline.fitting:fit_dataset",
    learnt=_learnt,
    data=lambda _: [Path(__file__).with_name(name) for name in ("model.json", "model.npz")],
)
