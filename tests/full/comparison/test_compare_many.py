"""Compare with many annotators: what is drawn is bounded, and all figures can be downloaded."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from crowd import crowd
from streamlit.testing.v1 import AppTest

from spanlab.comparison.scores_panel import matrix_html
from spanlab.output.figures import figure
from spanlab.schema import Annotation, AnnotatorKind, Claim, Item, Record, Span, Verdict
from spanlab.scoring.agreement import AnnotatorPair
from spanlab.scoring.annotator_tables import pair_table
from spanlab.scoring.annotators import compare_dataset
from spanlab.storage import Store

OpenPage = Callable[..., AppTest]


@pytest.fixture
def many(store: Store) -> Store:
    store.import_records("crowd", judged(crowd(40, 60, per_item=8)))
    return store


def judged(records: Iterator[Record]) -> Iterator[Record]:
    """Give gold labels, detectors and every fifth person verdicts on two claims."""
    for number, record in enumerate(records):
        said = tuple(
            one.model_copy(update={"claims": verdicts(number + place)})
            if one.annotator in {"gold", "one", "two"} or one.annotator[-1] in "05"
            else one
            for place, one in enumerate(record.annotations)
        )
        yield record.model_copy(update={"annotations": said})


def verdicts(number: int) -> tuple[Claim, ...]:
    second: Verdict = "refuted" if number % 3 else "supported"
    return Claim(text="claim 0", verdict="supported"), Claim(text="claim 1", verdict=second)


def specs(app: AppTest) -> list[dict[str, Any]]:
    return [json.loads(chart.proto.spec) for chart in app.get("vega_lite_chart")]


def rows(spec: dict[str, Any]) -> list[str]:
    """Names that a dot plot shows, from top to bottom."""
    layers = spec.get("spec", spec)["layer"]
    return list(layers[0]["encoding"]["y"]["sort"])


def test_a_chart_has_the_best_people_and_all_detectors_and_no_legend_of_names(
    open_page: OpenPage, many: Store
) -> None:
    (spec,) = specs(open_page("compare", view="Scores"))
    shown = rows(spec)
    assert sum(name.startswith("annotator") for name in shown) == 20
    assert {"one", "two", "vote"} <= set(shown)
    assert spec["layer"][1]["encoding"]["color"]["field"] == "kind"
    expected = compare_dataset(many, "crowd", reference="gold").scores
    means = {one.name: one.report.macro.iou.mean for one in expected}
    people = [name for name in shown if name.startswith("annotator")]
    others = shown[: -len(people)]
    assert set(others) == {"one", "two", "vote", "mark everything", "mark nothing"}
    for group in (others, people):
        assert [means[name] for name in group] == sorted((means[n] for n in group), reverse=True)


@pytest.mark.parametrize(
    ("view", "control", "measure", "column"),
    [
        pytest.param("Scores", "spanlab.metric", "iou", "IoU", id="scores"),
        pytest.param("Scores", "spanlab.metric", "span_f1", "Span F1", id="another-score"),
        pytest.param("Scores", "spanlab.metric.all", "corr", "Corr", id="on-request"),
        pytest.param("Claims", "spanlab.claims.measure", "accuracy", "Accuracy", id="claims"),
    ],
)
def test_a_table_of_scores_is_sorted_by_what_is_asked_for_and_people_come_last(
    open_page: OpenPage, many: Store, view: str, control: str, measure: str, column: str
) -> None:
    app = open_page("compare", view=view)
    assert not {"Corr", "MaxIoU", "Recall"} & {*app.dataframe[0].value.columns}
    if control.endswith(".all"):
        app.toggle(key="spanlab.scores.more").set_value(True).run()
    app.segmented_control(key=control).set_value(measure).run()
    table = app.dataframe[0].value
    is_person = table["Kind"] == "person"
    assert is_person.is_monotonic_increasing
    assert table[~is_person][column].is_monotonic_decreasing
    assert table[is_person][column].is_monotonic_decreasing


def test_languages_are_small_charts_beside_each_other(open_page: OpenPage, many: Store) -> None:
    app = open_page("compare", view="Scores")
    app.toggle(key="spanlab.per-language").set_value(True).run()
    (spec,) = specs(app)
    assert spec["facet"]["field"] == "group"
    assert spec["resolve"]["scale"]["y"] == "independent"
    people = [name for name in rows(spec) if name.startswith("annotator")]
    assert 5 <= len(people) <= 10  # five in each of two languages
    assert {"one", "two", "vote"} <= set(rows(spec))


def test_calibration_and_labels_are_drawn_on_request(open_page: OpenPage, many: Store) -> None:
    app = open_page("compare", view="Scores")
    app.toggle(key="spanlab.scores.Calibration of detectors").set_value(True)
    app.toggle(key="spanlab.scores.Labels against the reference").set_value(True).run()
    assert len(specs(app)) == 3
    captions = "".join(caption.value for caption in app.caption)
    assert "one: expected calibration error" in captions
    assert "Characters by the label of gold" in captions


def test_the_matrix_says_on_how_many_items_each_figure_stands(
    open_page: OpenPage, many: Store
) -> None:
    app = open_page("compare", view="Agreement")
    (matrix,) = [e.proto.body for e in app.get("html") if "class='pairs'" in e.proto.body]
    pair = next(p for p in compare_dataset(many, "crowd").everybody.pairs if p.n > 1)
    assert f"{figure(pair.iou, 2)}<small>{pair.n}</small>" in matrix
    assert "max-height" in matrix
    columns = re.findall("<th scope='col'><span title='([^']*)'", matrix)
    assert set(columns[:4]) == {"gold", "vote", "one", "two"}
    assert not specs(app)
    app.toggle(key="spanlab.pairs.picture").set_value(True).run()
    assert len(specs(app)) == 1


def test_a_hostile_name_stays_text_in_the_matrix() -> None:
    evil = "<img src=x onerror=alert(1)>"
    html = matrix_html(
        pair_table([AnnotatorPair(a="Ann", b=evil, n=1, iou=0.0, f1=0.0)]), "iou", ["Ann", evil]
    )
    assert "<img" not in html
    assert "&lt;img" in html
    assert ">.00<small>1</small>" in html


def test_verdicts_on_claims_are_scored_and_compared(open_page: OpenPage, many: Store) -> None:
    app = open_page("compare", view="Claims")
    found = compare_dataset(many, "crowd", reference="gold").claims
    table = app.dataframe[0].value.set_index("Annotator")
    for one in found.scores:
        assert table.loc[one.name, "Balanced accuracy"] == one.report.balanced_accuracy.mean
        assert table.loc[one.name, "Macro F1"] == one.report.macro_f1.mean
    assert "Krippendorff's alpha of verdicts" in app.markdown[-1].value
    app.selectbox(key="spanlab.claims.one").set_value("one").run()
    app.selectbox(key="spanlab.claims.two").set_value("two").run()
    assert "Accuracy of one minus two" in app.markdown[-1].value
    assert list(app.dataframe[-1].value["Verdict"]) == ["refuted", "supported"]


def test_a_dataset_without_claims_says_where_they_come_from(
    open_page: OpenPage, store: Store
) -> None:
    store.import_records("plain", crowd(3, 3))
    assert "Nobody has judged claims" in open_page("compare", view="Claims").info[0].value


def test_labels_of_answers_that_do_not_reason_are_no_errors_in_steps(
    open_page: OpenPage, many: Store
) -> None:
    app = open_page("compare", view="Reasoning")
    assert not specs(app)
    assert "No reasoning steps are verified yet" in app.info[0].value


def test_errors_in_steps_are_drawn_of_those_who_found_most(
    open_page: OpenPage, store: Store
) -> None:
    item = Item(id="a", answer="Step 1: So it is. (Logical)\nStep 2: So it was. (Logical)")
    said = [
        Annotation(
            annotator=f"annotator-{number:02}",
            kind=AnnotatorKind.PERSON,
            spans=tuple(
                Span.of(item.answer, start, start + 9, label="Redundancy")
                for start in (8, 36)[: 1 + number % 2]
            ),
        )
        for number in range(40)
    ]
    store.import_records("reasoned", [Record(item=item, annotations=tuple(said))])
    app = open_page("compare", view="Reasoning", dataset="reasoned")
    assert len(specs(app)) == 2
    told = "".join(each.value for each in app.caption).replace("\\", "")
    assert "The chart shows the 6 who found most errors, of 40" in told
    assert "annotator-01 100.0 %" in told
    assert "annotator-00" not in told
