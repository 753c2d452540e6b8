"""The tour: a dataset of its own from the samples, and the rate by the visitor's reviews."""

from __future__ import annotations

import pytest

from spanlab.data.importing import DATASET, TOUR, prepare_samples, prepare_tour
from spanlab.measure.measurement import measure, measure_own
from spanlab.measure.sample import measurement_queue
from spanlab.schema import Annotation, AnnotatorKind
from spanlab.storage import Store


@pytest.fixture
def store(store: Store) -> Store:
    prepare_samples(store)
    return store


def _detect(store: Store) -> None:
    marks = Annotation(annotator="offline", kind=AnnotatorKind.DETECTOR)
    names = [record.item.id for record in store.records(DATASET)]
    store.save_annotations(DATASET, [(name, marks) for name in names])


def test_the_samples_bring_a_measurement(store: Store) -> None:
    _detect(store)
    measured = measure(store, DATASET)
    assert measured.rate.reviews == 67
    assert measured.sentence is not None


def test_the_interval_shrinks_with_each_of_one_s_own_reviews(store: Store) -> None:
    assert prepare_tour(store) is None  # nothing has marked the samples yet
    _detect(store)
    assert prepare_tour(store) == TOUR == prepare_tour(store)
    assert measure_own(store, TOUR, "ann") is None
    widths, reviews = [], 0
    for name in measurement_queue(store, TOUR)[:5]:
        said = (Annotation(annotator=who, kind=AnnotatorKind.PERSON) for who in ("ann", "ben"))
        store.save_annotations(TOUR, [(name, annotation) for annotation in said])
        own = measure_own(store, TOUR, "ann")
        assert own is not None
        assert own.rate.superpopulation is not None
        reviews = own.rate.reviews
        widths.append(own.rate.superpopulation.high - own.rate.superpopulation.low)
    assert reviews == 5
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] < widths[0]


def test_the_first_answer_of_the_tour_has_an_error_that_a_passage_refutes(store: Store) -> None:
    _detect(store)
    prepare_tour(store)
    first = measurement_queue(store, TOUR)[0]
    gold = store.record(DATASET, first).by("gold")
    assert gold is not None
    assert [quote.stance for span in gold.spans for quote in span.evidence] == ["refutes"] * 2
