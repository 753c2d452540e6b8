"""Soft and hard labels: merging, flattening, hardening, voting and trimming of spans.

Pure functions on sorted lists of intervals; their cost follows the number of spans, not the
number of characters. Offsets are code points, start inclusive, end exclusive. Touching intervals
cover the same characters as their union, so merged lists are a normal form: two lists are equal
exactly when they cover the same characters.
"""

from spanlab.labels._extents import (
    Extent,
    intersection,
    iou,
    length,
    merge,
    overlap,
    union,
)
from spanlab.labels._soft import (
    Labels,
    Soft,
    disagreement,
    flatten,
    hard_of,
    harden,
    labels_of,
)

__all__ = [
    "Extent",
    "Labels",
    "Soft",
    "disagreement",
    "flatten",
    "hard_of",
    "harden",
    "intersection",
    "iou",
    "labels_of",
    "length",
    "merge",
    "overlap",
    "union",
]
