"""What a detector learns from reviews, on the pages Detect and Review."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest
from towers import tower

from spanlab.detection import fits
from spanlab.schema import Annotation, AnnotatorKind, Item, Record
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of

OpenPage = Callable[..., AppTest]


@pytest.fixture
def reviewed(store: Store) -> Store:
    """36 reviewed answers, on which the detector has decided nothing."""
    detector = Annotation(annotator="offline", kind=AnnotatorKind.DETECTOR)
    records = []
    for number in range(36):
        item = tower(number)
        by_anna = [Annotation.model_validate(said) for said in item.pop("annotations")]
        records.append(Record(item=Item.model_validate(item), annotations=(*by_anna, detector)))
    store.import_records("mine", records)
    return store


def everything(app: AppTest) -> str:
    parts = [*app.markdown, *app.caption, *app.error, *app.success, *app.warning, *app.info]
    return "\n".join(part.value for part in parts).replace("\\", "")


def test_a_click_on_detect_lets_the_detector_learn_and_another_takes_it_away(
    reviewed: Store, open_page: OpenPage
) -> None:
    app = open_page("detect", dataset="mine")
    app.session_state["spanlab.detect.offline"] = True
    app.run()
    assert "Nothing yet. It needs 30 finished answers; this dataset has 36 reviews." in everything(
        app
    )
    app.button(key="fit-mine-offline").click().run(timeout=120)
    assert not app.exception
    fit = reviewed.settings("mine").fit_in_use("offline")
    assert fit is not None
    assert f"Runs use {fit.id}, learnt from 36 answers" in everything(app)
    assert "learnt from 36 answers by anna" in everything(app)

    app.checkbox(key="fit-every-mine").check().run()
    assert reviewed.settings("mine").fit_every == 30
    app.button(key="remove-fit-mine-offline").click().run()
    assert reviewed.settings("mine").fits == ()


def test_further_reviews_are_learnt_from_in_another_process(
    reviewed: Store, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = []

    class Pool:
        def __init__(self, count: int) -> None:
            assert count == 1

        def submit(self, function: Callable[..., None], *arguments: str) -> None:
            begun.append((function, arguments))

        def shutdown(self, *, wait: bool) -> None:
            assert not wait

    monkeypatch.setattr(fits, "ProcessPool", Pool)
    monkeypatch.setattr(fits, "_begun", {})
    fits.fit_every(reviewed, "mine", 30)
    for _ in range(2):
        assert "offline can learn" not in everything(open_page("review", dataset="mine"))
    assert begun == [(fits.learn_and_keep, ("offline", "mine"))]
    fits.learn_and_keep("offline", "mine")
    assert reviewed.settings("mine").fit_in_use("offline") is not None


def test_a_detector_that_marks_nearly_everything_is_named(reviewed: Store) -> None:
    assert fits.marked_remarks(reviewed, "mine", ["offline"]) == ()
    span = {"start": 0, "end": 3, "text": "Our", "prob": 0.9}
    marking = Annotation.model_validate(
        {"annotator": "offline", "kind": "detector", "spans": [span]}
    )
    reviewed.save_annotations("mine", [(f"t{number}", marking) for number in range(33)])
    (remark,) = fits.marked_remarks(reviewed, "mine", ["offline"])
    assert remark.startswith("offline marks 33 of 36 answers")
    assert "spanlab fit mine" in remark
    assert fits.learners(summary_of(reviewed, "mine")) == ("offline",)
