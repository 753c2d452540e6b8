"""Soft and hard labels: merging, flattening, hardening, voting and trimming of spans.

Pure functions on sorted lists of intervals; their cost follows the number of spans, not the
number of characters. Offsets are code points, start inclusive, end exclusive. Touching intervals
cover the same characters as their union, so merged lists are a normal form: two lists are equal
exactly when they cover the same characters.
"""

from spanlab.labels._extents import (
    Covered,
    Extent,
    coverage,
    intersection,
    iou,
    length,
    merge,
    overlap,
    size,
)
from spanlab.labels._soft import (
    Labels,
    Soft,
    disagreement,
    flatten,
    hard_of,
    harden,
    labels_in,
    labels_of,
)
from spanlab.labels._trim import mushroom_extents, trim_space
from spanlab.labels._vote import vote

__all__ = [
    "Covered",
    "Extent",
    "Labels",
    "Soft",
    "coverage",
    "disagreement",
    "flatten",
    "hard_of",
    "harden",
    "intersection",
    "iou",
    "labels_in",
    "labels_of",
    "length",
    "merge",
    "mushroom_extents",
    "overlap",
    "size",
    "trim_space",
    "vote",
]
