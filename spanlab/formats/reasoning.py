"""Reasoning in tags before an answer: it is kept beside the answer, which alone is judged.

"<think>Was it 1889? …</think>It was built in 1889." is the answer "It was built in 1889.", and the
reasoning is kept in ``meta``. Places in the answer move with it. Where a place in the reasoning is
marked, the text stays whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, TypeVar

from spanlab.formats.reader import NoAnswer
from spanlab.output.figures import counted, named_ids
from spanlab.schema import Annotation, Citation, Claim, Interval, Record, Span
from spanlab.text.extents import Extent
from spanlab.text.thoughts import REASONING, answer_after_thoughts

_NAMED: Final = 5  # ids that a remark names
_Place = TypeVar("_Place", Span, Interval, Citation)


class _MarkedError(Exception):
    """A place in the reasoning is marked."""


class ReasoningAside:
    """Puts the reasoning before the answers of a file aside, and says so once it is read."""

    def __init__(self) -> None:
        self._n = 0
        self._whole: list[str] = []  # ids of items whose reasoning is marked

    def taken_from(self, record: Record) -> Record:
        """Return a record without the reasoning before its answer, which is in ``meta`` then.

        Raises:
            NoAnswer: there is reasoning only, and nobody has said anything of it.
        """
        item = record.item
        place = answer_after_thoughts(item.answer)
        if place == Extent(0, len(item.answer)) or item.process is not None:
            return record
        try:
            if place.start == place.end and record.annotations:
                raise _MarkedError
            annotations = tuple(_moved(one, place) for one in record.annotations)
            citations = _all_moved(item.citations, place)
        except _MarkedError:
            self._whole.append(item.id)
            return record
        if place.start == place.end:
            raise NoAnswer("the model's reasoning does not end in an answer", field="answer")
        self._n += 1
        thoughts = {} if REASONING in item.meta else {REASONING: item.answer[: place.start]}
        update = {
            "answer": item.answer[place.start : place.end],
            "citations": citations,
            "meta": {**item.meta, **thoughts},
        }
        return Record.of_valid(item.model_copy(update=update), annotations)

    def remarks(self) -> Iterator[str]:
        """Yield of how many items the reasoning was put aside, and of which it was not."""
        if self._n:
            yield (
                f"the reasoning before the answers of {counted(self._n, 'item')} is not judged, "
                f"and kept in meta as {REASONING!r}"
            )
        if self._whole:
            yield (
                f"the reasoning before {counted(len(self._whole), 'answer')} stays there, as "
                f"people marked a part of it: {named_ids(self._whole, _NAMED)}"
            )


def _moved(annotation: Annotation, place: Extent) -> Annotation:
    """Return an annotation of a whole text as one of the answer in it."""
    if annotation.trace:
        raise _MarkedError  # whose steps have places, too
    update = {
        "spans": _all_moved(annotation.spans, place),
        "rejected": _all_moved(annotation.rejected, place),
        "hard": None if annotation.hard is None else _all_moved(annotation.hard, place),
        "claims": _claims_moved(annotation.claims, place),
        "rejected_claims": _claims_moved(annotation.rejected_claims, place),
    }
    return annotation.model_copy(update=update)


def _claims_moved(claims: Iterable[Claim], place: Extent) -> tuple[Claim, ...]:
    sources = ((claim, claim.source and (claim.source,)) for claim in claims)
    return tuple(
        claim.model_copy(update={"source": _all_moved(source, place)[0]}) if source else claim
        for claim, source in sources
    )


def _all_moved(places: Iterable[_Place], answer: Extent) -> tuple[_Place, ...]:
    if any(one.start < answer.start or one.end > answer.end for one in places):
        raise _MarkedError
    return tuple(
        one.model_copy(update={"start": one.start - answer.start, "end": one.end - answer.start})
        for one in places
    )
