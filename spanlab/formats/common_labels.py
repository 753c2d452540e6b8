"""The labels of published datasets in the words of the shipped set "common"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from spanlab.schema import Record

_CONTRADICTION: Final = "contradiction"
_ADDITION: Final = "unsupported addition"
# Niu et al., "RAGTruth" (2024), section 3.1; Bao et al., "FaithBench" (2024), section 3; Mishra et
# al., "FAVA" (2024), section 3, whose sentences contradict a text and whose inventions, opinions
# and unverifiable statements add to it. Mu-SHROOM has no labels.
COMMON_LABELS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("evident conflict", "subtle conflict"), _CONTRADICTION),
    **dict.fromkeys(("evident baseless info", "subtle baseless info"), _ADDITION),
    **{"unwanted.intrinsic": _CONTRADICTION, "unwanted.extrinsic": _ADDITION},
    **dict.fromkeys(("entity", "relation", "sentence", "contradictory"), _CONTRADICTION),
    **dict.fromkeys(("invented", "subjective", "unverifiable"), _ADDITION),
    **{"contradicted": _CONTRADICTION, "unsupported": _ADDITION},  # the set "spanlab"
}


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
