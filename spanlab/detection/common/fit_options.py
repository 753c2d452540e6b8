"""The option of detectors that learn from reviews: quick to load, for their entries."""

from __future__ import annotations

from typing import Final

from pydantic import Field, field_validator

from spanlab.detection.entry import DetectorOptions

FITTED: Final = "fitted"  # what the option is called
NO_FIT: Final = "none"


class FitOptions(DetectorOptions):
    """Which reviews a detector has learnt from."""

    fitted: str = Field(
        "",
        description="Use what `spanlab fit` learnt from a dataset's reviews: the dataset's name, "
        "or the id of a fit. By default, a dataset's own fit; none: the detector as it is shipped.",
    )

    @field_validator("fitted")
    @classmethod
    def _none_is_nothing(cls, name: str) -> str:
        return "" if name.strip() == NO_FIT else name.strip()
