"""Datasets of which a judge's marks are measured by reviews, with planted truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from spanlab.measure.gating import MeasuredSide, check_change
from spanlab.measure.sample import MeasuredItems, measurement_queue, plan_measurement
from spanlab.schema import Annotation, AnnotatorKind, Item, MeasurementPlan, Record, Span
from spanlab.storage import Store

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


def two_models(n: int, rates: tuple[float, float], seed: int = 3) -> list[Record]:
    """Two models' answers to the same n questions, hard ones hard for both; the judge errs."""
    rng = np.random.default_rng(seed)
    hard, errs = rng.random(n), rng.random((2, n)) < 0.1
    records = []
    for model, rate in enumerate(rates):
        wrong = np.zeros(n, dtype=bool)
        wrong[np.argsort(hard + 0.1 * rng.random(n))[: round(rate * n)]] = True
        for at in range(n):
            item = Item(
                id=f"{model}-{at}",
                lang="en",
                question=f"q{at}",
                answer=ANSWER,
                meta={"model": ("old", "new")[model], "wrong": bool(wrong[at])},
            )
            judged = said("judge", bool(wrong[at] != errs[model][at]), 0.9)
            records.append(Record(item=item, annotations=(judged,)))
    return records


def reviewed(records: list[Record], plan: MeasurementPlan, n: int) -> MeasuredItems:
    """The sample after the first n reviews of its queue."""
    queue = {item.item_id for item in MeasuredItems(records, plan).items[:n]}
    return MeasuredItems((with_review(r) if r.item.id in queue else r for r in records), plan)


def with_review(record: Record) -> Record:
    truth = bool(record.item.meta["wrong"])
    return record.model_copy(update={"annotations": (*record.annotations, said("anna", truth))})


def passes(records: list[Record], n: int, seed: int, *, paired: bool) -> bool:
    """Whether the gate passes: of two groups of one dataset, or of two datasets' own seeds."""
    if paired:
        plan = MeasurementPlan(annotator="judge", by="meta.model", seed=seed)
        both = reviewed(records, plan, 2 * n)
        sides = MeasuredSide(both, "new"), MeasuredSide(both, "old")
    else:
        plans = [MeasurementPlan(annotator="judge", seed=seed + more) for more in (0, 1_000)]
        old, new = records[: len(records) // 2], records[len(records) // 2 :]
        sides = (
            MeasuredSide(reviewed(new, plans[0], n)),
            MeasuredSide(reviewed(old, plans[1], n)),
        )
    return check_change(*sides, "old").passed
