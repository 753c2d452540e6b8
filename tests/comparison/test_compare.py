"""The Compare page: annotators side by side, their scores and their agreement."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

import pytest
from other_package import install
from steps import step
from streamlit.testing.v1 import AppTest
from traced import traced_file

from spanlab.comparison import comparisons_panel
from spanlab.data.versions import snapshot
from spanlab.formats import read
from spanlab.oplog.operations import AddSpan, RemoveSpan, SentOperation
from spanlab.schema import Annotation, AnnotatorKind, Item, Record, Span, Status
from spanlab.scoring.annotators import compare_dataset
from spanlab.storage import Store

OpenPage = Callable[..., AppTest]
ANSWER = "Marie Curie was born in Paris in 1867."
HOSTILE = "<script>alert(1)</script> & <img src=x onerror=alert(2)> **bold**"


def says(name: str, kind: AnnotatorKind, answer: str, *marks: tuple[int, int]) -> Annotation:
    spans = tuple(Span.of(answer, start, end) for start, end in marks)
    return Annotation(annotator=name, kind=kind, spans=spans)


def record(name: str, lang: str, *annotations: Annotation, answer: str = ANSWER) -> Record:
    item = Item(id=name, lang=lang, question="Where?", answer=answer)
    return Record(item=item, annotations=annotations)


@pytest.fixture
def mine(store: Store) -> Store:
    """Two items: on "same" Ann and Ben agree with the gold labels, on "apart" Ben does not."""
    gold, person = AnnotatorKind.GOLD, AnnotatorKind.PERSON
    paris, year = (24, 29), (33, 37)
    store.import_records(
        "mine",
        [
            record(
                "same",
                "en",
                says("gold", gold, ANSWER, paris),
                says("Ann", person, ANSWER, paris),
                says("Ben", person, ANSWER, paris),
            ),
            record(
                "apart",
                "fr",
                says("gold", gold, ANSWER, paris),
                says("Ann", person, ANSWER, paris),
                says("Ben", person, ANSWER, year),
            ),
        ],
    )
    return store


def html(app: AppTest) -> str:
    return "".join(element.proto.body for element in app.get("html"))


def test_without_datasets_the_way_is_shown(open_page: OpenPage) -> None:
    assert "Import a dataset" in open_page("compare").info[0].value


def test_the_most_disagreed_item_comes_first(open_page: OpenPage, mine: Store) -> None:
    """Agreement is part of the app, down to the item."""
    app = open_page("compare")
    assert list(app.dataframe[0].value["Item"]) == ["apart", "same"]
    assert list(app.dataframe[0].value["Disagreement"]) == [100.0, 0.0]
    texts = [text.value.replace("\\", "") for text in (*app.caption, *app.markdown)]
    assert any("apart · fr" in text for text in texts)
    assert any("Disagreement: people 100.0 % (0 %: all mark the same" in text for text in texts)


def test_each_annotator_shows_the_same_answer_with_its_own_marks(
    open_page: OpenPage, mine: Store
) -> None:
    """Several annotators per item, side by side."""
    page = html(open_page("compare", dataset="mine", item="apart"))
    hard = "<mark class='hard' style='--p:1.000' title='100.0 %'>"
    assert page.count(f"born in {hard}Paris</mark> in 1867.") == 2
    assert page.count(f"born in Paris in {hard}1867</mark>.") == 1


def test_next_and_previous_follow_the_order(open_page: OpenPage, mine: Store) -> None:
    app = open_page("compare")
    assert app.button(key="compare-previous").disabled
    app.button(key="compare-next").click().run()
    assert app.query_params["item"] == "same"
    assert app.button(key="compare-next").disabled
    app.button(key="compare-previous").click().run()
    assert app.query_params["item"] == "apart"


def test_a_list_of_several_pages_is_turned(open_page: OpenPage, store: Store) -> None:
    gold = says("gold", AnnotatorKind.GOLD, ANSWER)
    store.import_records("many", [record(f"i{at:03}", "en", gold) for at in range(120)])
    app = open_page("compare", dataset="many")
    assert not app.exception
    first = list(app.dataframe[0].value["Item"])
    app.button(key="compare-items-next").click().run()
    assert not app.exception
    assert set(first).isdisjoint(app.dataframe[0].value["Item"])
    app.button(key="compare-items-previous").click().run()
    assert list(app.dataframe[0].value["Item"]) == first


def test_a_language_narrows_the_items(open_page: OpenPage, mine: Store) -> None:
    app = open_page("compare", item="apart")
    app.selectbox(key="compare-lang").set_value("en").run()
    assert list(app.dataframe[0].value["Item"]) == ["same"]
    assert app.query_params["item"] == "same"


def test_a_version_is_compared_as_it_was_kept(open_page: OpenPage, mine: Store) -> None:
    snapshot(mine, "mine", "v1")
    mine.apply("mine", "apart", "Ben", [SentOperation("tab", 1, 0, RemoveSpan(span="i0"))])
    hard = "<mark class='hard' style='--p:1.000' title='100.0 %'>"
    marked = f"born in Paris in {hard}1867</mark>."
    assert html(open_page("compare", dataset="mine@v1", item="apart")).count(marked) == 1
    assert html(open_page("compare", dataset="mine", item="apart")).count(marked) == 0


def test_hostile_texts_stay_text(open_page: OpenPage, store: Store) -> None:
    hostile = Annotation(
        annotator="<b>Eve</b>",
        kind=AnnotatorKind.PERSON,
        spans=(Span(start=0, end=8, text="<script>", label="<i>x</i>", note="<u>y</u>"),),
    )
    item = Item(id="<i>id</i>", question=HOSTILE, answer=HOSTILE)
    store.import_records("mine", [Record(item=item, annotations=(hostile,))])
    page = html(open_page("compare"))
    assert "<script" not in page
    assert "<img" not in page
    assert "<b>" not in page
    assert "<i>" not in page
    assert "<u>" not in page
    assert f"{escape('<script>')}</mark>{escape('alert(1)</script>')}" in page


def test_states_are_told_apart(open_page: OpenPage, store: Store) -> None:
    states = (
        Annotation(annotator="Ann", kind=AnnotatorKind.PERSON),
        Annotation(annotator="Ben", kind=AnnotatorKind.PERSON, status=Status.SKIPPED),
        Annotation(
            annotator="Cy", kind=AnnotatorKind.DETECTOR, status=Status.FAILED, note="no power"
        ),
    )
    other = record("b", "en", says("Dan", AnnotatorKind.PERSON, ANSWER))
    store.import_records("mine", [record("a", "en", *states), other])
    page = html(open_page("compare", item="a"))
    assert "Checked: no spans." in page
    assert "Skipped." in page
    assert "Failed: no power" in page
    assert "Dan" not in page


def test_the_score_table_has_the_workflows_numbers(open_page: OpenPage, mine: Store) -> None:
    app = open_page("compare", view="Scores")
    assert list(app.dataframe[0].value)[3:] == ["IoU", "F1", "Span F1"]
    app.toggle(key="spanlab.scores.more").set_value(True).run()
    table = app.dataframe[0].value.set_index("Annotator")
    expected = compare_dataset(mine, "mine", reference="gold")
    # the best first; baselines are ranked with people where there is nobody else
    assert list(table.index) == ["Ann", "Ben", "mark everything", "mark nothing"]
    for scored in expected.scores:
        for column, metric in {"IoU": "iou", "Corr": "corr", "F1": "f1"}.items():
            assert table.loc[scored.name, column] == getattr(scored.report.macro, metric).mean
    # Ben has the gold characters on one of two items.
    assert table.loc["Ann", "IoU"] == 1.0
    assert table.loc["Ben", "IoU"] == 0.5
    assert table.loc["mark nothing", "IoU"] == 0.0


def test_metrics_of_packages_are_scored_and_broken_ones_named(
    open_page: OpenPage,
    mine: Store,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(install(tmp_path_factory.mktemp("shouting"))))
    app = open_page("compare", view="Scores")
    shown = next(frame.value for frame in app.dataframe if "same" in frame.value)
    assert dict(zip(shown["Annotator"], shown["same"], strict=True)) == {
        "Ann": 1.0,
        "Ben": 0.5,
        "mark everything": 0.0,
        "mark nothing": 0.0,
    }
    assert any("nothing" in each.value and "cannot be loaded" in each.value for each in app.caption)


def test_an_edit_of_a_finished_annotation_is_scored_anew(open_page: OpenPage, mine: Store) -> None:
    def ben() -> float:
        table = open_page("compare", view="Scores").dataframe[0].value.set_index("Annotator")
        iou = table.loc["Ben", "IoU"]
        assert isinstance(iou, float)
        return iou

    assert ben() == 0.5
    edits: list[RemoveSpan | AddSpan] = [
        RemoveSpan(span="i0"),
        AddSpan(span="s", start=24, end=29),
    ]  # from "1867" to "Paris"
    writes = [SentOperation("tab", seq, seq - 1, edit) for seq, edit in enumerate(edits, start=1)]
    assert not mine.apply("mine", "apart", "Ben", writes).refused
    assert ben() == 1.0


def test_without_gold_labels_the_reference_can_be_chosen(open_page: OpenPage, store: Store) -> None:
    pair = (
        says("Ann", AnnotatorKind.PERSON, ANSWER, (0, 5)),
        says("Ben", AnnotatorKind.PERSON, ANSWER, (0, 5)),
    )
    store.import_records("mine", [record("a", "en", *pair)])
    app = open_page("compare", view="Scores")
    assert "no gold labels" in app.info[0].value
    app.selectbox(key="reference-mine").set_value("Ann").run()
    table = app.dataframe[0].value.set_index("Annotator")
    assert list(table.index) == ["Ben", "mark everything", "mark nothing"]
    assert table.loc["Ben", "F1"] == 1.0


def test_agreement_is_given_overall_and_per_language(open_page: OpenPage, mine: Store) -> None:
    """Users ask for agreement between annotators as a part of the tool."""
    table = open_page("compare", view="Agreement").dataframe[0].value
    expected = compare_dataset(mine, "mine").persons
    assert list(table["Agreement on"]) == ["characters", "characters, en", "characters, fr"]
    assert list(table["People"]) == [
        expected.alpha,
        1.0,
        *(each.alpha for each in expected.languages[1:]),
    ]


def test_a_sample_is_said_to_be_one(
    open_page: OpenPage, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A large dataset does not keep the page waiting."""
    monkeypatch.setattr(comparisons_panel, "_AT_ONCE", 200)
    monkeypatch.setattr(comparisons_panel, "_SIZES", (50, 200))
    pair = (
        says("Ann", AnnotatorKind.PERSON, ANSWER, (0, 5)),
        says("Ben", AnnotatorKind.PERSON, ANSWER, (0, 5)),
    )
    store.import_records("big", [record(f"i{n}", "en", *pair) for n in range(250)])
    app = open_page("compare", view="Agreement")
    assert len(app.dataframe) == 0
    app.select_slider(key="sample-big").set_value(50).run()
    app.button(key="compare").click().run()
    assert "A sample of 50 of the 250 items" in "".join(c.value for c in app.caption)
    assert list(app.dataframe[0].value["Items of people"]) == [50, 50]

    # An edit does not cost people what they have waited for; they say when to compare again.
    assert app.dataframe[0].value["People"][0] == 1.0
    assert not store.apply(
        "big", "i0", "Ben", [SentOperation("tab", 1, 0, RemoveSpan(span="i0"))]
    ).refused
    assert app.run().dataframe[0].value["People"][0] == 1.0
    app.button(key="compute-again").click().run()
    assert app.dataframe[0].value["People"][0] < 1.0


def test_a_correlation_that_rounds_to_zero_has_no_minus_sign(
    open_page: OpenPage, store: Store
) -> None:
    answer = "x" * 99  # 10 of 99 characters marked by each, one by both: Corr is -1/890
    gold = says("gold", AnnotatorKind.GOLD, answer, (0, 10))
    ann = says("Ann", AnnotatorKind.PERSON, answer, (9, 19))
    store.import_records("near", [record("one", "en", gold, ann, answer=answer)])
    scores = compare_dataset(store, "near", reference="gold").scores
    assert -0.005 < scores[0].report.macro.corr.mean < 0
    assert "Corr .00" in html(open_page("compare", dataset="near", item="one"))


def test_models_are_compared_by_a_field_of_the_items(store: Store, open_page: OpenPage) -> None:
    def answered(model: str, number: int, *marks: tuple[int, int]) -> Record:
        found = record(f"{model}-{number}", "en", says("gold", AnnotatorKind.GOLD, ANSWER, *marks))
        item = found.item.model_copy(
            update={"meta": {"model_id": model}, "question": f"Where {number}?"}
        )
        return found.model_copy(update={"item": item})

    store.import_records(
        "models",
        [answered(HOSTILE, n, (0, 19)) for n in (1, 2)] + [answered("careful", n) for n in (1, 2)],
    )
    app = open_page("measure", dataset="models")
    assert not app.exception
    rates, pairs = app.dataframe
    assert rates.value["meta.model_id"].tolist() == ["careful", HOSTILE]
    assert app.selectbox(key="rates-by-models").options[:2] == ["language", "model id"]
    assert rates.value["Share of an answer"].tolist() == [0.0, 0.5]
    assert pairs.value["Common questions"].tolist() == [2]
    assert not any("errors that" in each.value for each in app.caption)


def test_models_open_on_the_model_and_say_what_a_detectors_interval_lacks(
    store: Store, open_page: OpenPage
) -> None:
    found = record("a", "en", says("one", AnnotatorKind.DETECTOR, ANSWER, (0, 19)))
    item = found.item.model_copy(update={"meta": {"Run": 1, "Model": "careful"}})
    store.import_records("mine", [found.model_copy(update={"item": item})])
    app = open_page("measure", dataset="mine")
    assert app.selectbox(key="rates-by-mine").value == "meta.Model"
    told = "".join(each.value for each in app.caption)
    assert "not the errors that “one” makes" in told
    assert "No interval\\: only one item" in told
    assert "Share of an answer 95 %" not in app.dataframe[0].value


def test_where_the_reference_stands_alone_there_is_nobody_to_score(
    open_page: OpenPage, store: Store
) -> None:
    store.import_records(
        "mine", [record("a", "en", says("gold", AnnotatorKind.GOLD, ANSWER, (0, 5)))]
    )
    app = open_page("compare", view="Scores")
    assert "Nobody to score" in app.info[0].value
    assert not app.dataframe


@pytest.mark.system("veritrail")
def test_errors_are_counted_by_the_stage_at_which_they_came_in(
    store: Store, open_page: OpenPage, tmp_path: Path
) -> None:
    store.import_records("traced", read(traced_file(tmp_path / "traced.jsonl")))
    app = open_page("compare", view="Error stages", dataset="traced")
    assert not app.exception
    runs, shares, pairs = app.dataframe
    assert shares.value[["Stage", "Run", "Share of errors"]].values.tolist() == [
        ["summary", "first", 0.75],
        ["answer", "first", 0.25],
        ["summary", "second", 0.0],
        ["answer", "second", 1.0],
    ]
    assert pairs.value["Spearman"].tolist() == [-1.0]
    assert runs.value.astype(str).values.tolist() == [["first", "3", "2"], ["second", "1", "1"]]


@pytest.mark.system("safe")
def test_ways_of_verifying_are_compared_on_the_same_questions(
    store: Store, open_page: OpenPage
) -> None:
    """Of q1 and q2 every way was tried; of q3 only one, which does not count."""

    def reasoned(question: str, way: str, answer: str, *errors: tuple[int, str]) -> Record:
        told = (
            step("reasoning", number=number, text="A step.", does="Logical", error=error)
            for number, error in errors
        )
        outcome: dict[str, object] = {
            "verification": way,
            "answer": answer,
            "forced": False,
            "unresolved": 0,
        }
        meta: dict[str, Any] = {"answers": ["Oslo"], "reasoning": {**outcome, "calls": 4}}
        item = Item(id=f"{question}/{way}", lang="en", question="?", answer="Step 1: …", meta=meta)
        said = Annotation(annotator=way, kind=AnnotatorKind.DETECTOR, trace=tuple(told))
        return Record(item=item, annotations=() if way == "none" else (said,))

    off, twice = "Off-topic", "Redundancy"
    store.import_records(
        "reasoned",
        [
            reasoned("q1", "none", "Rome"),
            reasoned("q1", "safe", "Oslo", (1, off), (4, twice)),
            reasoned("q2", "none", "Oslo"),
            reasoned("q2", "safe", "Oslo", (2, off), (3, off)),
            reasoned("q3", "safe", "Oslo"),
        ],
    )
    app = open_page("compare", view="Reasoning", dataset="reasoned")
    assert not app.exception
    table, pairs = app.dataframe
    columns = ["Method", "Questions", "Exact match", "Calls per question"]
    assert table.value[columns].values.tolist() == [
        ["No verification", 2, 0.5, 4.0],
        ["SAFE", 2, 1.0, 4.0],
    ]
    said = " ".join(each.value for each in app.caption)
    assert "1 question left out" in said
    assert pairs.value[["Method", "minus", "F1"]].values.tolist() == [
        ["SAFE", "No verification", 0.5]
    ]
    assert "In the first three steps: safe 75.0 %" in said.replace("\\", "")
