"""Fits are kept with their datasets, found by name or id, and travel with copies."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from spanlab.base.errors import NotFoundError
from spanlab.detection.fits import (
    fit_every,
    fit_named,
    fit_state,
    keep_fit,
    options_with_fits,
    remove_fit,
)
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    DetectorFit,
    Item,
    Record,
    answer_hash,
)
from spanlab.schema.fits import FitFigure, FitReport
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of

_NO_REPORT = FitReport(
    answers=30, groups=30, folds=5, iou=FitFigure(), precision=FitFigure(), auroc=FitFigure(),
    right_marked=FitFigure(), calibration_error=FitFigure(),
)  # fmt: skip
_BEGIN = datetime(2026, 11, 1, tzinfo=UTC)


def _fit(numbers: str, day: int = 0, reviews: int = 30) -> DetectorFit:
    return DetectorFit(
        detector="offline",
        name="mine",
        base="ab" * 32,
        numbers=numbers,
        learnt_from=("0123456789abcdef",),
        annotators=("anna",),
        reviews=reviews,
        made=_BEGIN + timedelta(days=day),
        report=_NO_REPORT,
        in_use=bool(numbers),
    )


@pytest.fixture
def mine(store: Store) -> Store:
    done = [
        Annotation(annotator="anna", kind=AnnotatorKind.PERSON),
        Annotation(annotator="offline", kind=AnnotatorKind.DETECTOR),
    ]
    records = [
        Record(item=Item(id=str(number), answer=f"Answer {number}."), annotations=tuple(done))
        for number in range(31)
    ]
    store.import_records("mine", records)
    return store


@pytest.mark.system("offline")
def test_runs_use_the_fit_of_their_dataset_unless_an_option_says_otherwise(mine: Store) -> None:
    fit = _fit("one")
    keep_fit(mine, "mine", fit)
    mine.duplicate_dataset("mine", "copy")
    mine.rename_dataset("mine", "yours")

    def options(dataset: str | None, **chosen: str) -> object:
        return options_with_fits(mine, dataset, ["offline"], chosen).get("offline.fitted")

    assert options("yours") == options("copy") == fit.id
    assert options(None) is None
    assert options(None, fitted="copy") == options(None, fitted=fit.id) == fit.id
    assert options("yours", fitted="none") is None
    with pytest.raises(NotFoundError, match=f"available: {fit.id}"):
        options(None, fitted="mine")
    assert remove_fit(mine, "yours", "offline") == fit
    assert options("yours") is None
    assert fit_named(mine, fit.id, "offline") == fit  # the copy's


def test_the_last_three_fits_are_kept_and_the_newest_that_gained_is_used(mine: Store) -> None:
    for day, numbers in enumerate(("one", "two", "three", "four")):
        keep_fit(mine, "mine", _fit(numbers, day))
    kept = mine.settings("mine").fits
    assert [(fit.numbers, fit.in_use) for fit in kept] == [
        ("two", False),
        ("three", False),
        ("four", True),
    ]
    keep_fit(mine, "mine", _fit("", 5, reviews=31))
    settings = mine.settings("mine")
    in_use = settings.fit_in_use("offline")
    assert in_use is not None
    assert in_use.numbers == "four"
    state = fit_state(summary_of(mine, "mine"), "offline")
    assert (state.reviews, state.is_due, state.latest and state.latest.numbers) == (31, False, "")


def test_thirty_reviews_without_a_fit_are_due(mine: Store) -> None:
    assert fit_state(summary_of(mine, "mine"), "offline").is_due
    fit_every(mine, "mine", 30)
    assert mine.settings("mine").fit_every == 30


def test_a_renamed_reviewer_is_renamed_in_fits(mine: Store) -> None:
    keep_fit(mine, "mine", _fit("one"))
    mine.rename_annotator("mine", "anna", "eva")
    assert mine.settings("mine").fits[0].annotators == ("eva",)


def test_an_answer_is_recognised_by_its_question_and_exact_text() -> None:
    item = Item(id="a", question="Wo?", answer="In Köln 🙂")
    same = Item(id="b", lang="de", question="Wo?", answer="In Köln 🙂")
    # printf '["Wo?","In Köln 🙂"]' | sha256sum
    assert answer_hash(item) == answer_hash(same) == "1edefda1c88264d5"
    assert answer_hash(item) != answer_hash(same.model_copy(update={"answer": "In Köln 🙂 "}))
