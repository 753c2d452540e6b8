"""The labels of published datasets in the words of the shipped set "common"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spanlab.formats.vocabulary import named_by
from spanlab.schema import Record

COMMON_LABELS: Final[Mapping[str, str]] = named_by("common_labels")


def in_common_labels(record: Record) -> Record:
    """Return a record whose labels are those of the set, as far as they have one there."""
    annotations = tuple(
        annotation.model_copy(
            update={
                "spans": tuple(
                    span.model_copy(
                        update={"label": COMMON_LABELS.get(span.label.casefold(), span.label)}
                    )
                    if span.label
                    else span
                    for span in annotation.spans
                )
            }
        )
        for annotation in record.annotations
    )
    return record.model_copy(update={"annotations": annotations})
