"""Reviewing blind: what other people said of an item is left out before anybody sees it.

Left out are annotations of other people with their spans, status and comments, gold labels (as a
rule people's, too), votes with a person among the voters, and all traces of these. Queues of blind
reviewers know of no disagreement, labels and claims but those of detectors and their own, and find
by a search only what these said (``QueueQuery.blind``). That a second
annotator is needed stays known: it says who has finished an item, not what they said.
"""

from __future__ import annotations

from spanlab.schema import Annotation, Kind, Record


def without_others(record: Record, reviewer: str) -> Record:
    """Return ``record`` with what its detectors and ``reviewer`` said, and votes of detectors."""
    kept = tuple(
        each
        for each in record.annotations
        if each.annotator == reviewer or is_of_detectors(record, each)
    )
    return record.model_copy(update={"annotations": kept})


def is_of_detectors(record: Record, annotation: Annotation) -> bool:
    """Return whether only detectors are behind an annotation; a voter that is unknown is none."""
    if annotation.kind is not Kind.VOTE:
        return annotation.kind is Kind.DETECTOR
    kinds = {each.annotator: each.kind for each in record.annotations}
    return bool(annotation.voters) and all(
        kinds.get(voter) is Kind.DETECTOR for voter in annotation.voters
    )
