"""Datasets of which a judge's marks are measured by reviews, with planted truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spanlab.schema import Annotation, AnnotatorKind, Item, MeasurementPlan, Record, Span
from spanlab.storage import Store
from spanlab.workflows.measuring.sample import measurement_queue, plan_measurement

ANSWER = "0123456789"
Truth = Callable[[int], bool]


def said(who: str, marked: bool, prob: float = 1.0) -> Annotation:
    kind = AnnotatorKind.DETECTOR if who == "judge" else AnnotatorKind.PERSON
    spans = (Span.of(ANSWER, 2, 5, prob=prob),) if marked else ()
    return Annotation(annotator=who, kind=kind, spans=spans)


def items(
    n: int, truth: Truth, reviewed: set[str] | None = None, noise: float = 0.1
) -> list[Record]:
    """Answers of two models; the judge errs in a tenth of them; some are reviewed by Anna."""
    wrong = np.random.default_rng(1).random(n) < noise
    records = []
    for at in range(n):
        item = Item(
            id=f"i{at}",
            lang="en",
            question=f"q{at}",
            answer=ANSWER,
            meta={"model": "a" if at % 2 else "b"},
        )
        by_people = (said("anna", truth(at)),) if reviewed and item.id in reviewed else ()
        records.append(
            Record(item=item, annotations=(said("judge", truth(at) != wrong[at], 0.9), *by_people))
        )
    return records


def filled(store: Store, name: str, truth: Truth, n: int, reviews: int, **plan: object) -> None:
    """A dataset of which the first reviews of its queue are done."""
    chosen = MeasurementPlan.model_validate({"annotator": "judge", **plan})
    store.import_records(name, items(n, truth))
    plan_measurement(store, name, chosen)
    done = set(measurement_queue(store, name)[:reviews])
    store.save_annotations(
        name,
        [(f"i{at}", said("anna", truth(at))) for at in range(n) if f"i{at}" in done],
    )
