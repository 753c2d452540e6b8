"""Compare → Bench: tables of the benchmarks that jobs have run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from spanlab.bench.plan import BenchDataset, BenchPlan
from spanlab.jobs import Jobs, JobState
from spanlab.schema import Annotation, AnnotatorKind, Item, Record
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
    assert "No benchmark has been run yet" in empty.info[0].value
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
    assert len(app.get("vega_lite_chart")) == 1
    assert any("Samples of spanlab" in each.value for each in app.markdown)
    shown = open_page("jobs", job=job_id)
    assert any("controls on samples" in each.value for each in shown.markdown)
    for file in (tmp_path / "table").glob("*"):
        if file.is_file():
            file.unlink()
    app = open_page("compare", view="Bench", dataset="mine")
    assert "it is running, or is on another machine" in app.info[0].value
