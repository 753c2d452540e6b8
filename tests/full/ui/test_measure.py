"""The Measure page: planning a measurement, its rate with pictures, its queue in Review."""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from spanlab.base.errors import UsageError
from spanlab.measure.certificates import certify
from spanlab.measure.sample import measurement_queue, plan_measurement
from spanlab.review import queue_panel
from spanlab.schema import Annotation, AnnotatorKind, Item, MeasurementPlan, Record, Span
from spanlab.storage import Store
from spanlab.storage.datasets import summary_of

OpenPage = Callable[..., AppTest]
ANSWER = "0123456789"


def said(who: str, marked: bool) -> Annotation:
    kind = AnnotatorKind.DETECTOR if who == "judge" else AnnotatorKind.PERSON
    spans = (Span.of(ANSWER, 2, 5, prob=0.9),) if marked else ()
    return Annotation(annotator=who, kind=kind, spans=spans)


@pytest.fixture
def judged(store: Store) -> Store:
    """200 answers of two models: every fourth is hallucinated, and the judge marks every third."""
    records = [
        Record(
            item=Item(
                id=f"i{at}", question=f"q{at}", answer=ANSWER, meta={"model": "ab"[at // 2 % 2]}
            ),
            annotations=(said("judge", at % 3 == 0),),
        )
        for at in range(200)
    ]
    store.import_records("d", records)
    return store


def review(store: Store, reviews: int) -> None:
    queue = measurement_queue(store, "d")[:reviews]
    store.save_annotations("d", [(name, said("anna", int(name[1:]) % 4 == 0)) for name in queue])


def test_no_other_queue_takes_the_place_of_a_sample_that_cannot_be_read(
    judged: Store, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_measurement(judged, "d", MeasurementPlan(annotator="judge"))

    def refuse(*_: object) -> None:
        raise UsageError("the sample cannot be read")

    monkeypatch.setattr(queue_panel, "measured_items", refuse)
    app = open_page("review", dataset="d", reviewer="anna")
    assert [error.value for error in app.main.error] == ["The sample cannot be read"]
    assert not [box for box in app.selectbox if box.label == "Your status"]


def test_review_goes_by_the_sample_and_says_what_it_has_come_to(
    open_page: OpenPage, judged: Store
) -> None:
    plan_measurement(judged, "d", MeasurementPlan(annotator="judge", reviewers=("anna",)))
    review(judged, 20)
    app = open_page("review", dataset="d", reviewer="ben", queue="measurement")
    assert not app.exception
    assert "Detectors' suggestions are hidden" in texts(app)
    assert "Only the reviews of anna count\\." in texts(app)
    assert "ben · suggestions hidden · Rate of these items so far\\: " in texts(app)
    app.checkbox[0].uncheck().run()
    assert "so far" not in texts(app)
    assert app.selectbox(key="spanlab.review.detector").value == "All"


def texts(app: AppTest) -> str:
    parts = (*app.header, *app.markdown, *app.caption, *app.info)
    return "\n".join(element.value for element in parts)


def test_without_a_detector_the_page_leads_to_one(open_page: OpenPage, store: Store) -> None:
    assert "nothing to measure yet" in open_page("measure").info[0].value
    store.import_records("d", [Record(item=Item(id="a", answer="So."))])
    assert "No detector has finished" in open_page("measure", dataset="d").info[0].value


def test_a_plan_says_how_many_reviews_it_takes_before_it_is_stored(
    open_page: OpenPage, judged: Store
) -> None:
    app = open_page("measure", dataset="d")
    assert not app.exception
    assert "**About 166** of 200 items must be reviewed for ± 3 points" in texts(app)
    app.number_input(key="measure-within-d").set_value(10.0).run()
    assert "**About 60** of 200 items must be reviewed for ± 10 points" in texts(app)
    assert summary_of(judged, "d").settings.measurement is None
    app.selectbox(key="measure-by-d").set_value("meta.model").run()
    app.button(key="measure-plan").click().run()
    assert not app.exception
    plan = summary_of(judged, "d").settings.measurement
    assert plan
    assert (plan.annotator, plan.by, plan.half_width) == ("judge", "meta.model", 0.1)
    assert "No reviews yet; about 60 for ± 10 points" in texts(app)

    app.number_input(key="measure-within-d").set_value(5.0).run()
    app.button(key="measure-replace").click().run()
    assert "Replace the plan?" in app.warning[0].value
    app.button(key="measure-keep").click().run()
    assert not app.warning
    app.button(key="measure-replace").click().run()
    app.button(key="measure-replace-now").click().run()
    plan = summary_of(judged, "d").settings.measurement
    assert plan
    assert plan.half_width == 0.05


def test_the_corrected_rate_is_shown_with_its_pictures(open_page: OpenPage, judged: Store) -> None:
    app = open_page("measure", dataset="d")
    app.selectbox(key="measure-by-d").set_value("meta.model").run()
    app.button(key="measure-plan").click().run()
    review(judged, 80)
    app.run()
    assert not app.exception
    assert "of 100 answers like these contain a hallucination" in texts(app)
    assert r"80 of 200 items reviewed · suggestions in review\: not recorded" in texts(app)
    assert "not recorded for" not in texts(app)  # which says of how many, where some are
    rates = app.dataframe[0].value
    assert list(rates["meta.model"]) == ["all", "a", "b"]
    columns = json.loads(app.dataframe[0].proto.columns)
    assert columns["meta.model"]["label"] == "Model"
    labels = [columns.get(name, {}).get("label") or name for name in rates]
    assert len(labels) == len(set(labels))
    assert app.selectbox(key="measure-by-d").options == ["no groups", "language", "model"]
    assert "Reviews only" not in rates
    assert rates["Reviews"][0] == 80
    assert rates["Marked by judge"][0] == pytest.approx(67 / 200)
    assert rates["Future answers"][0] == pytest.approx(0.25, abs=0.1)
    assert "is raw detector output" in texts(app)
    app.session_state["measure-how"] = True
    app.session_state["measure-certificate"] = True
    app.run()
    assert len(app.get("vega_lite_chart")) >= 3
    assert "Reliability of judge" in texts(app)
    assert "Reviews only" in app.dataframe[1].value
    assert len(app.get("download_button")) >= 2
    certificate = json.dumps(certify(judged, "d").figures()).encode()
    app.file_uploader(key="certificate").set_value(("c.json", certificate, "application/json"))
    assert "Still valid" in app.run().success[0].value
    app.text_input(key="measure-definition-d").set_value("contradicts a passage").run()
    app.button(key="measure-replace").click().run()
    app.button(key="measure-replace-now").click().run()
    assert "Out of date: the definition of hallucinated changed" in app.warning[0].value


def test_who_is_worse_is_said_first_and_the_method_and_certificate_on_request(
    open_page: OpenPage, store: Store
) -> None:
    """Model a hallucinates in 9 of 10 answers, b in 1 of 10; c as often as b."""
    wrong = {"a": range(9), "b": range(1), "c": range(1)}
    records = [
        Record(
            item=Item(id=f"i{at}", question=f"q{at}", answer=ANSWER, meta={"model": model}),
            annotations=(said("judge", at // 3 % 10 in wrong[model]),),
        )
        for at, model in enumerate("abc" * 100)
    ]
    store.import_records("d", records)
    plan_measurement(store, "d", MeasurementPlan(annotator="judge", by="meta.model"))
    for name in measurement_queue(store, "d"):
        at = int(name[1:])
        marked = at // 3 % 10 in wrong["abc"[at % 3]]
        store.save_annotations("d", [(name, said("anna", marked))])
    app = open_page("measure", dataset="d")
    assert not app.exception
    sentences = [text.value for text in app.markdown if text.value.startswith("- ")]
    assert len(sentences) == 3
    assert sentences[0].startswith("- “a” hallucinates more than “b”\\: with 95 % confidence")
    assert sentences[2].startswith("- “b” and “c” cannot be told apart yet")
    assert "Hájek" not in texts(app)
    assert not app.get("iframe")
    assert len(app.dataframe) == 1
    app.session_state["measure-how"] = True
    app.session_state["measure-certificate"] = True
    app.run()
    assert not app.exception
    assert "Hájek" in texts(app)
    (frame,) = app.get("iframe")
    page = b64decode(frame.proto.src.partition(",")[2]).decode()
    found = [page.index(text) for text in ("class='headline'", "“a” hallucinates more than “b”")]
    later = ("How it was measured", "Hájek", "What it is bound to", "This certificate")
    assert [*found, *(page.index(text) for text in later)] == sorted(
        [*found, *(page.index(text) for text in later)]
    )
    assert not re.search(r"\[([\d.]+), \1\]", page)
    assert "Whether reviewers saw the detector&#x27;s suggestions is not recorded." in page
