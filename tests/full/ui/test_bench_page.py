"""Compare → Bench: tables of the benchmarks that jobs have run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from spanlab.bench.plan import BenchDataset, BenchPlan
from spanlab.jobs import Jobs, JobState
from spanlab.schema import Annotation, AnnotatorKind, Item, Passage, Record, Span
from spanlab.storage import Store

OpenPage = Callable[..., AppTest]


@pytest.fixture
def dataset(store: Store) -> None:
    said = Annotation(annotator="Ann", kind=AnnotatorKind.PERSON)
    store.import_records("mine", [Record(item=Item(id="a", answer="So."), annotations=(said,))])


@pytest.mark.usefixtures("dataset", "working")
def test_the_table_of_a_benchmark_is_shown_with_its_picture(
    open_page: OpenPage, tmp_path: Path
) -> None:
    empty = open_page("compare", view="Bench", dataset="mine")
    assert not [box for box in empty.selectbox if box.key == "bench-job"]
    limited = BenchDataset(name="samples", limit=20)
    plan = BenchPlan(output=tmp_path / "table", datasets=(limited,))
    job_id = Jobs().submit(plan)
    done = Jobs().store.wait(job_id, timeout=120)
    assert (done.state, done.progress.done, done.progress.total) == (JobState.DONE, 3, 3)
    app = open_page("compare", view="Bench", dataset="mine")
    assert not app.exception
    assert job_id in app.selectbox(key="bench-job").options[0]
    first = app.dataframe[0].value
    systems = ["mark everything", "mark nothing", "best single annotator"]
    assert list(first.iloc[:, 0]) == systems
    assert not {"MaxIoU", "p", "Failed"} & {*first}  # which the file has
    assert [*app.dataframe[2].value] == ["Dataset", "System", "Seconds"]  # nothing was asked
    assert len(app.get("vega_lite_chart")) == 1
    assert any("Samples of spanlab" in each.value for each in app.markdown)
    shown = open_page("jobs", job=job_id)
    titles = " ".join(each.value for each in shown.markdown).replace("\\", "")
    assert "Benchmark: controls on samples" in titles
    for file in (tmp_path / "table").glob("*"):
        if file.is_file():
            file.unlink()
    app = open_page("compare", view="Bench", dataset="mine")
    assert "it was stopped, or is on another machine" in app.info[0].value


@pytest.mark.usefixtures("dataset", "working")
def test_a_benchmark_is_chosen_started_and_seen_on_the_page(
    open_page: OpenPage, store: Store
) -> None:
    answer = "The tower was built in 1887 and is 330 metres tall."
    right = Annotation(
        annotator="gold", kind=AnnotatorKind.GOLD, spans=(Span.of(answer, 23, 27, label="Year"),)
    )
    passage = Passage(text="The tower was built in 1889. It is 330 metres tall.")
    item = Item(id="a", lang="en", answer=answer, passages=(passage,))
    store.import_records("samples", [Record(item=item, annotations=(right,))])
    app = open_page("compare", view="Bench", dataset="samples")
    app.multiselect(key="bench-datasets-samples").set_value([])
    app.button(key="start-bench").click().run()
    assert "Choose a detector and a dataset" in app.error[0].value
    assert not Jobs().list()
    app.multiselect(key="bench-datasets-samples").set_value(["samples", "mine"])
    app.button(key="start-bench").click().run()
    assert not app.exception
    (job,) = Jobs().list()
    done = Jobs().store.wait(job.id, timeout=120)
    assert (done.state, done.error) == (JobState.DONE, None)
    app.run()  # the page that was open all the time
    assert not app.exception
    shown = [list(table.value.iloc[:, 0]) for table in app.dataframe]
    assert all("offline" in rows and "mark everything" in rows for rows in shown[:2])
    titles = " ".join(each.value for each in app.markdown).replace("\\", "")
    assert "samples (licence not stated)" in titles
    assert "mine (licence not stated)" in titles
