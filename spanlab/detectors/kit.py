"""What a detector is built with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dspy

    from spanlab.detectors.spec import DetectorSpec
    from spanlab.lm import Meter
    from spanlab.programs import Predictor
    from spanlab.retrievers import Retriever


@dataclass(frozen=True)
class Kit:
    """What a detector works with: its choices, and what was built from them.

    ``models`` are language models by the roles of the detector's entry; a detector without roles
    gets none. ``prompts`` are those of a tuned program; None keeps the detector's own.
    """

    spec: DetectorSpec
    retriever: Retriever
    models: Mapping[str, dspy.LM]
    meter: Meter
    prompts: Mapping[str, Predictor] | None = None

    @property
    def lm(self) -> dspy.LM:
        """The language model of the entry's first role."""
        return next(iter(self.models.values()))

    def __deepcopy__(self, memo: object) -> Kit:
        """Return itself: the copy of a detector asks the same model, under the same meter."""
        return self
