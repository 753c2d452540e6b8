"""How far annotators agree on what they respond to questions, and on attributes of spans."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

import krippendorff
import numpy as np

from spanlab.schema import Annotation, Response, Span


@dataclass(frozen=True)
class ResponseAgreement:
    """Krippendorff's alpha on the ``n`` answers or spans with two or more responses.

    ``alpha`` is None where it is undefined: nothing has two responses, or all of them are one.
    """

    n: int
    alpha: float | None


def response_agreement(
    units: Iterable[Sequence[Response]], *, ordinal: bool = False
) -> ResponseAgreement:
    """Measure the agreement on one question.

    Args:
        units: for each answer or span the responses to it, one for each annotator.
        ordinal: whether responses are values of a scale, of which close ones differ less
            (Krippendorff 2011); else each differs from each other as much.
    """
    counts = [Counter(unit) for unit in units if len(unit) > 1]
    if ordinal:
        values: list[Response] = sorted(
            {value for c in counts for value in c if type(value) is int}
        )
    else:
        values = list(dict.fromkeys(value for count in counts for value in count))
    if len(values) < 2:
        return ResponseAgreement(len(counts), None)
    table = np.array([[count[value] for value in values] for count in counts])
    level: Literal["ordinal", "nominal"] = "ordinal" if ordinal else "nominal"
    alpha = krippendorff.alpha(value_counts=table, level_of_measurement=level)
    return ResponseAgreement(len(counts), float(alpha))


def matched_spans(annotations: Iterable[Annotation]) -> Iterator[Mapping[str, Span]]:
    """Match the spans of an item's annotators: those of one label that overlap are the same.

    Spans also match that overlap through others. Where several of one annotator do, the longest
    stands for them.

    Yields:
        For each such group the span of each annotator that has one in it.
    """
    marked = [
        (annotation.annotator, span) for annotation in annotations for span in annotation.spans
    ]
    marked.sort(key=lambda pair: (pair[1].label or "", pair[1].start))
    for _, same in groupby(marked, key=lambda pair: pair[1].label):
        group: dict[str, Span] = {}
        end = 0
        for name, span in same:
            if span.start >= end and group:
                yield group
                group = {}
            group[name] = max(group.get(name, span), span, key=_length)
            end = max(end, span.end)
        yield group


def _length(span: Span) -> int:
    return span.end - span.start
