"""The labels that spans get, as people choose them: quick to load, for entries of detectors."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from pydantic import Field, field_validator

from spanlab.base.errors import UsageError
from spanlab.detection.entry import DetectorOptions
from spanlab.schema import LABEL_SETS, SpanLabel

OF_DATASET: Final = "dataset"  # the labels that the dataset has, which a run over it fills in


class LabelOptions(DetectorOptions):
    """Which labels spans get."""

    labels: str = Field(
        "",
        description="Label each span, by one more call: dataset (those of the dataset), a "
        f"shipped set ({', '.join(name for name, labels in LABEL_SETS.items() if labels)}), or "
        "name: description; name: description.",
    )

    @field_validator("labels")
    @classmethod
    def _are_some(cls, text: str) -> str:
        try:
            labels_in(text if text != OF_DATASET else "")
        except UsageError as error:
            raise ValueError(str(error)) from None
        return text


def labels_in(text: str) -> tuple[SpanLabel, ...]:
    """Return the labels that an option names; none for "".

    Raises:
        UsageError: it is neither a shipped set nor two or more labels.
    """
    if text in LABEL_SETS:
        return LABEL_SETS[text]
    if text.startswith("["):
        return tuple(map(SpanLabel.model_validate, json.loads(text)))
    parts = [part.partition(":") for part in text.split(";") if part.strip()]
    if text == OF_DATASET or (text and len(parts) < 2):
        raise UsageError(
            f"labels={text!r} names no labels: give a shipped set ({', '.join(LABEL_SETS)}), or "
            "“name: description; name: description”; “dataset” is for runs over a dataset"
        )
    return tuple(
        SpanLabel(name=name.strip(), description=about.strip()) for name, _, about in parts
    )


def as_text(labels: Sequence[SpanLabel]) -> str:
    """Return labels as an option holds those of a dataset: as JSON."""
    rows = [label.model_dump(include={"name", "description"}) for label in labels]
    return json.dumps(rows, ensure_ascii=False)
