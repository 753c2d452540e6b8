"""Detectors' probabilities against the share of people that marked the same characters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spanlab.labels import SoftLabel, flatten, hard_of
from spanlab.schema import Annotation, AnnotatorKind, Record, Status
from spanlab.scorers import CalibrationReport, CalibrationSums, shares

__all__ = ["AnnotatorCalibration", "CalibrationReport", "CalibrationTally", "marked_shares"]


@dataclass(frozen=True)
class AnnotatorCalibration:
    """The calibration of one annotator on ``n`` items, against people or against gold labels."""

    name: str
    n: int
    calibration: CalibrationReport


class CalibrationTally:
    """Gathers the calibration of detectors, and of votes that people took no part in."""

    def __init__(self, kinds: Mapping[str, AnnotatorKind]) -> None:
        self._kinds = kinds
        self._sums: dict[str, CalibrationSums] = {}
        self._items: dict[str, int] = {}

    def add(self, record: Record) -> None:
        """Add an item; where no person has finished it, gold labels say how many people marked."""
        done = [one for one in record.annotations if one.status is Status.DONE]
        marked = marked_shares(done)
        if marked is None:
            return
        for one in done:
            if one.annotator in self._kinds and self._is_machine(one):
                sums = self._sums.setdefault(one.annotator, CalibrationSums())
                sums.add(flatten(one.spans), marked, len(record.item.answer))
                self._items[one.annotator] = self._items.get(one.annotator, 0) + 1

    def result(self) -> tuple[AnnotatorCalibration, ...]:
        """Return the calibrations, in the order of the annotators."""
        return tuple(
            AnnotatorCalibration(name, self._items[name], found)
            for name in self._kinds
            if name in self._sums and (found := self._sums[name].result()) is not None
        )

    def _is_machine(self, one: Annotation) -> bool:
        if one.kind is AnnotatorKind.VOTE:
            voters = {self._kinds.get(name) for name in one.voters}
            return voters == {AnnotatorKind.DETECTOR}
        return one.kind is AnnotatorKind.DETECTOR


def marked_shares(done: Sequence[Annotation]) -> list[SoftLabel] | None:
    """Return the share of people who marked each stretch of an answer.

    Args:
        done: finished annotations of an item.

    Returns:
        The shares of persons, else the gold labels' probabilities; None where there are neither.
    """
    people = [hard_of(one) for one in done if one.kind is AnnotatorKind.PERSON]
    if people:
        return shares(people)
    gold = next((one for one in done if one.kind is AnnotatorKind.GOLD), None)
    return None if gold is None else flatten(gold.spans)
