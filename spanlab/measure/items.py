"""What a measurement takes from one item: what the detector and the reviewers say of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from spanlab.measure.powered import PeopleSpread
from spanlab.schema import (
    HALLUCINATED,
    Annotation,
    AnnotatorKind,
    MeasurementPlan,
    Record,
    Relations,
    Status,
    answer_hash,
    placed_in,
)
from spanlab.text.labels import hard_of


class MeasuredItem(NamedTuple):
    """An item of the population: what the detector says (``f``; ``marked`` by its own decision).

    ``y`` of ``x`` is what people say, None where nobody has finished it; ``reviews`` are what each
    of them says, ``decided_by`` all who finished or skipped it. ``seen`` says that the detector
    learnt from this answer. ``verdict`` is what is said of the whole answer where nobody says which
    characters are hallucinated: True if somebody calls it so; None for other answers and units.
    """

    item_id: str
    key: str
    group: str
    f: float
    marked: float
    size: float
    doubt: float
    y: float | None
    x: float
    skipped: bool
    reviews: tuple[tuple[str, float], ...] = ()
    decided_by: frozenset[str] = frozenset()
    seen: bool = False
    relations: Relations = Relations()
    verdict: bool | None = None


def measure_item(
    record: Record,
    plan: MeasurementPlan,
    group: str,
    learnt: Collection[str] = (),
    relations: Relations = Relations(),  # noqa: B008 - it cannot change
) -> MeasuredItem | None:
    """Return what a plan measures of a record; None if the detector says nothing of the unit.

    Args:
        record: an item of the dataset.
        plan: of the measurement.
        group: that the item is in.
        learnt: the ``answer_hash`` of each answer that the detector learnt from.
        relations: what the answer has in common with others.
    """
    detector = record.by(plan.annotator)
    if detector is None or detector.status is not Status.DONE:
        return None
    if plan.unit == "characters" and detector.is_verdict_only:
        return None
    people = words_that_count(record, plan)
    finished = [person for person in people if person.status is Status.DONE]
    if plan.unit == "claims":
        finished = [person for person in finished if person.claims]
    placed = placed_in(finished) if plan.unit == "characters" else finished
    verdict = any(a.hallucinated for a in finished) if finished and not placed else None
    truths = [_unit(annotation, plan.unit, len(record.item.answer)) for annotation in placed]
    reviews = [(a.annotator, y) for a, (y, _) in zip(placed, truths, strict=True)]
    if verdict is False:
        reviews = [(a.annotator, 0.0) for a in finished]
    marked, size = _unit(detector, plan.unit, len(record.item.answer))
    prob = detector.hallucination_prob or 0.0
    expected = {
        "answers": prob,
        "characters": sum((span.end - span.start) * span.prob for span in detector.spans),
        "claims": marked,
    }
    item = record.item
    return MeasuredItem(
        item_id=item.id,
        key=f"{item.lang}\0{item.question}" if item.question else item.id,
        group=group,
        f=expected[plan.unit],
        marked=marked,
        size=size,
        doubt=prob,
        y=fmean(y for y, _ in truths) if truths else None,
        x=fmean(x for _, x in truths) if truths else size,
        skipped=not truths and any(person.status is not Status.NOT_ANNOTATED for person in people),
        reviews=tuple(reviews),
        decided_by=frozenset(
            annotation.annotator
            for annotation in record.annotations
            if is_reviewer(annotation, plan) and annotation.status is not Status.NOT_ANNOTATED
        ),
        relations=relations,
        verdict=verdict,
        seen=bool(learnt) and answer_hash(item) in learnt,
    )


def settled(items: Sequence[MeasuredItem], *, are_placed: bool) -> list[MeasuredItem]:
    """Return items of which those that are called right are reviewed, and have no mark.

    Args:
        items: what was measured.
        are_placed: whether no answer is called hallucinated without a place. Else people judge
            whole answers, so that marks without those would be too few, and nothing is changed.
    """
    return [
        item._replace(y=0.0, x=item.size, skipped=False)
        if are_placed and item.verdict is False
        else item
        for item in items
    ]


def words_that_count(record: Record, plan: MeasurementPlan) -> list[Annotation]:
    """Return the annotations of an item that say what is true of it, finished or not.

    Those of the plan's reviewers; where it names none, what was adjudicated, else what people say.
    """
    if not plan.reviewers:
        decided = [a for a in record.finished if a.kind is AnnotatorKind.GOLD and a.decided_by]
        if decided:
            return decided
    return [annotation for annotation in record.annotations if is_reviewer(annotation, plan)]


def is_reviewer(annotation: Annotation, plan: MeasurementPlan) -> bool:
    """Say whether an annotation counts as a review: of the plan's reviewers, or of any person."""
    if annotation.annotator == plan.annotator:
        return False
    if plan.reviewers:
        return annotation.annotator in plan.reviewers
    return annotation.kind is AnnotatorKind.PERSON


def spread_of_people(items: Sequence[MeasuredItem]) -> PeopleSpread | None:
    """Return how far the rates of those who reviewed these items differ; None for one person.

    Each person's rate is of what they reviewed themselves: who gets what is chance.
    """
    found: dict[str, list[tuple[float, float]]] = {}
    for item in items:
        for name, y in item.reviews:
            found.setdefault(name, []).append((y, item.x))
    rates = [np.sum(rows, axis=0) for rows in found.values()]
    if len(rates) < 2:
        return None
    variance = float(np.var([y / max(x, 1) for y, x in rates], ddof=1)) / len(rates)
    reviewed = sum(bool(item.reviews) for item in items)
    common = all(len(rows) == reviewed for rows in found.values())
    return PeopleSpread(variance, len(rates), common)


def _unit(annotation: Annotation, unit: str, length: int) -> tuple[float, float]:
    """Return how much of an answer an annotation marks, and its size, both in the plan's unit."""
    if unit == "claims":
        return sum(claim.verdict in HALLUCINATED for claim in annotation.claims), len(
            annotation.claims
        )
    if unit == "answers":
        return float(bool(annotation.hallucinated)), 1.0
    marked: Sequence[tuple[int, int]] = list(hard_of(annotation))
    return sum(end - start for start, end in marked), length
