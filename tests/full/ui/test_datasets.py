"""The Datasets page: import, counts, detector, votes, and what happens to whole datasets."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest
from trace_homes import KEYS, living

from spanlab.formats import known
from spanlab.jobs import Jobs, JobState
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    Item,
    Record,
    Span,
    Status,
)
from spanlab.storage import Store

OpenPage = Callable[..., AppTest]
ANSWER = "Marie Curie was born in Paris."


def item(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "lang": "en", "question": "Where?", "answer": ANSWER, **fields}


def lines(*records: dict[str, Any]) -> bytes:
    return "".join(f"{json.dumps(record)}\n" for record in records).encode()


def opened(app: AppTest) -> AppTest:
    """With the form for files, which is open where there is no dataset yet."""
    if not app.file_uploader:
        app.button(key="import-files").click().run()
    return app


def upload(app: AppTest, content: bytes, name: str = "answers.jsonl") -> AppTest:
    opened(app)
    app.file_uploader(key="import-files-0").upload(name, content).run()
    return app


def everything(app: AppTest) -> str:
    """All texts of the page, to look something up in."""
    parts = [
        *app.header,
        *app.markdown,
        *app.caption,
        *app.error,
        *app.success,
        *app.warning,
        *app.info,
    ]
    return "\n".join(part.value for part in parts)


def names(store: Store) -> list[str]:
    return [summary.name for summary in store.datasets()]


def test_an_empty_database_is_explained_and_offers_the_samples(open_page: OpenPage) -> None:
    app = open_page("datasets")
    assert "Look around first" in everything(app)
    assert app.button(key="load-samples").label == "Load the sample dataset"


def test_samples_come_imported_voted_and_with_a_job_that_detects(
    open_page: OpenPage, store: Store, working: None
) -> None:
    app = open_page("datasets").button(key="load-samples").click().run(timeout=120)
    assert "samples is ready" in app.success[0].value
    (view,) = Jobs().list()
    assert view.title == "offline on samples"
    Jobs().store.wait(view.id, timeout=120)
    app.run()
    assert "offline annotated 67 items of samples" in everything(app)
    (summary,) = store.datasets()
    kinds = {annotator.kind for annotator in summary.annotators}
    assert kinds == {
        AnnotatorKind.GOLD,
        AnnotatorKind.PERSON,
        AnnotatorKind.DETECTOR,
        AnnotatorKind.VOTE,
    }


def test_an_upload_becomes_a_dataset_named_after_its_file(
    open_page: OpenPage, store: Store
) -> None:
    app = upload(open_page("datasets"), lines(item("a"), item("b")))
    app.button(key="import").click().run()
    assert names(store) == ["answers"]
    assert "2 items imported into answers" in everything(app)
    assert [record.item.id for record in store.records("answers")] == ["a", "b"]


def test_a_file_in_another_encoding_opens_the_fold_where_its_encoding_is_chosen(
    open_page: OpenPage, store: Store
) -> None:
    app = upload(open_page("datasets"), lines(item("a")))
    (fold,) = (part for part in app.expander if part.label == "How the files are read")
    assert not fold.proto.expanded
    app = upload(app, "id,answer\n1,In Köln.\n".encode("windows-1252"), "umlauts.csv")
    told = app.error[0].value.replace("\\", "")
    assert "“Encoding” windows-1252 reads it as" in told
    assert "--" not in told
    assert app.button(key="import").disabled
    (fold,) = (part for part in app.expander if part.label == "How the files are read")
    assert fold.proto.expanded
    app.selectbox(key="spanlab.import-0.encoding").set_value("windows-1252").run()
    (fold,) = (part for part in app.expander if part.label == "How the files are read")
    assert fold.proto.expanded  # it does not close under people's hands
    app.button(key="import").click().run()
    (record,) = store.records("umlauts")
    assert record.item.answer == "In Köln."
    assert not opened(app).file_uploader[0].value


def test_a_recipe_beside_files_says_how_they_are_read(open_page: OpenPage, store: Store) -> None:
    rows = lines({"x": {"y": "Oslo."}, "z": "Capital?"})
    app = upload(open_page("datasets"), rows)
    assert "Choose below which column holds the answer" in everything(app)
    says = b'[columns]\nanswer = "x.y"\nquestion = "z"\n'
    both = [("answers.jsonl", rows, ""), ("ours.toml", says, "")]
    app.file_uploader(key="import-files-0").set_value(both).run()
    assert "Read by the recipe ours" in everything(app)
    assert not [box for box in app.selectbox if "import-column" in str(box.key)]
    app.button(key="import").click().run()
    (record,) = store.records("answers")
    assert (record.item.answer, record.item.question) == ("Oslo.", "Capital?")


def test_a_recipe_that_is_wrong_is_told_and_nothing_is_imported(open_page: OpenPage) -> None:
    app = open_page("datasets")
    both = [("answers.jsonl", lines(item("a")), ""), ("ours.toml", b"turns = 3", "")]
    app.file_uploader(key="import-files-0").set_value(both).run()
    assert "Field: turns" in everything(app)
    assert "import" not in [button.key for button in app.button if not button.disabled]


def test_an_upload_whose_first_line_is_longer_than_a_buffer_is_recognised(
    open_page: OpenPage, store: Store
) -> None:
    long = item("a", passages=[{"text": "word " * 1_000_000}])
    app = upload(open_page("datasets"), lines(long, item("b")))
    app.button(key="import").click().run()
    assert "2 items imported into answers" in everything(app)
    assert [record.item.id for record in store.records("answers")] == ["a", "b"]


def test_the_page_says_what_each_field_becomes_and_what_is_left_out(open_page: OpenPage) -> None:
    rows: list[dict[str, Any]] = [
        {"question": "Who?", "prediction": "Ada.", "answer": "Bo.", "run": 3},
        {"question": "Who?", "prediction": None, "answer": "Bo.", "error": "timeout"},
    ]
    app = upload(open_page("datasets"), lines(*rows))
    told = "Fields: question → question; prediction → answer; answer → reference; run → meta"
    assert told in everything(app).replace("\\", "")
    assert "its call failed: timeout" in everything(app).replace("\\", "")
    app.button(key="import").click().run()
    assert told in everything(app).replace("\\", "")
    assert "1 of 2 records have no answer and are left out" in everything(app)


def test_the_model_and_the_language_are_asked_for_where_records_do_not_state_them(
    open_page: OpenPage, store: Store
) -> None:
    app = upload(open_page("datasets"), lines({"id": "a", "answer": ANSWER}))
    assert "not clear from the text" in everything(app)
    app.text_input(key="spanlab.import-0.lang").input("english").run()
    assert "not a language tag" in everything(app)
    assert app.button(key="import").disabled
    app.text_input(key="spanlab.import-0.model").input("some-model")
    app.text_input(key="spanlab.import-0.lang").input("EN").run()
    app.button(key="import").click().run()
    (record,) = store.records("answers")
    assert (record.item.lang, record.item.meta) == ("en", {"model": "some-model"})


def test_a_name_that_exists_gets_the_items_behind_its_own(
    open_page: OpenPage, store: Store
) -> None:
    store.import_records("mine", [Record(item=Item(id="a", answer=ANSWER))])
    app = upload(open_page("datasets"), lines(item("b")))
    app.text_input(key="import-name-0").input("mine").run()
    app.button(key="import").click().run()
    assert [record.item.id for record in store.records("mine")] == ["a", "b"]


def test_an_import_error_names_its_place_and_leaves_nothing(
    open_page: OpenPage, store: Store
) -> None:
    span = {"start": 0, "end": 5, "text": "Paris", "prob": 1.0}
    wrong = item(
        "b",
        annotations=[{"annotator": "gold", "kind": "gold", "status": "done", "spans": [span]}],
    )
    app = upload(open_page("datasets"), lines(item("a"), wrong))
    assert app.button(key="import").disabled
    (error,) = app.error
    assert "answers\\.jsonl, line 2" in error.value
    assert "annotations\\.0\\.spans\\.0" in error.value
    assert "Nothing was imported" in error.value
    assert "tmp" not in error.value
    assert names(store) == []


def test_markup_in_an_error_is_shown_and_not_obeyed(open_page: OpenPage) -> None:
    app = upload(open_page("datasets"), lines({"id": "<b>**bold**</b>", "answer": 7}))
    (error,) = app.error
    assert "Found: 7" in error.value
    app = upload(open_page("datasets"), lines(item("a", lang="**EN**")))
    assert "\\*\\*EN\\*\\*" in app.error[0].value


def test_several_wrongs_are_told_together(open_page: OpenPage) -> None:
    wrong = item("c", annotations=[{"annotator": "x", "kind": "nobody"}])
    app = upload(open_page("datasets"), lines(item("a"), {"id": "b"}, wrong, {"id": "d"}))
    (error,) = app.error
    told = error.value.replace("\\", "")
    assert "2 records like this" in told
    assert "answers.jsonl, line 3, " in told
    assert "3 of 4 records are wrong" in told
    app.radio(key="spanlab.import-0.skip-bad").set_value(True).run()
    told = everything(app).replace("\\", "")
    assert "3 bad records" in told
    assert "2 records like this" in told


def test_bad_records_are_left_out_and_offered_with_reasons(
    open_page: OpenPage, store: Store
) -> None:
    app = upload(open_page("datasets"), lines(item("a"), {"id": "b"}, item("c")))
    app.radio(key="spanlab.import-0.skip-bad").set_value(True).run()
    app.button(key="import").click().run()
    assert [record.item.id for record in store.records("answers")] == ["a", "c"]
    assert "Left out: 1 bad record." in everything(app)
    (rejects,) = app.dataframe
    assert list(rejects.value["file"]) == ["answers.jsonl"]
    assert list(rejects.value["line"]) == [2]
    assert app.download_button(key="download-rejects").label.startswith("Download the rejects")


def test_a_path_on_the_server_is_imported_with_its_passages(
    open_page: OpenPage, store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "val"
    folder.mkdir()
    (folder / "one.jsonl").write_bytes(lines(item("a")))
    (folder / "two.jsonl").write_bytes(lines(item("b")))
    contexts = tmp_path / "contexts"
    contexts.mkdir()
    (contexts / "b.context.txt").write_text("She was born in Warsaw.")
    app = open_page("datasets")
    app.segmented_control(key="import-place").set_value("Path on the server").run()
    app.text_input(key="import-path-0").input(str(folder / "*.jsonl")).run()
    app.text_input(key="spanlab.import-0.contexts").input(str(contexts)).run()
    app.button(key="import").click().run()
    first, second = store.records("val")
    assert first.item.passages == ()
    assert second.item.passages[0].text == "She was born in Warsaw."


def test_traces_are_fetched_by_address_and_key_and_imported(
    open_page: OpenPage, store: Store
) -> None:
    with living() as homes:
        spans = Path(__file__).parents[2] / "cli" / "peers" / "phoenix_get_spans.json"
        homes.spans = json.loads(spans.read_text("utf-8"))
        app = open_page("datasets")
        app.segmented_control(key="import-place").set_value("Langfuse or Phoenix").run()
        key = "import-traces-0"
        app.radio(key=f"{key}-of").set_value("phoenix").run()
        app.text_input(key=f"{key}-url").input(homes.url)
        app.text_input(key=f"{key}-PHOENIX_API_KEY").input("wrong")
        app.button(key=f"{key}-fetch").click().run()
        assert "check PHOENIX" in app.error[0].value.replace("\\", "")
        app.text_input(key=f"{key}-PHOENIX_API_KEY").input(KEYS["PHOENIX_API_KEY"])
        app.button(key=f"{key}-fetch").click().run()
        assert not app.error
        app.button(key="import").click().run()
    assert not app.exception
    assert "It was built in 1989." in [one.item.answer for one in store.records("phoenix")]
    assert homes.calls


def test_results_of_a_batch_are_imported_with_their_requests(
    open_page: OpenPage, store: Store, tmp_path: Path
) -> None:
    asked = {"messages": [{"role": "user", "content": "Capital of Peru?"}]}
    replied = {"choices": [{"message": {"role": "assistant", "content": "Lima."}}]}
    requests, results = tmp_path / "requests.jsonl", tmp_path / "results.jsonl"
    requests.write_bytes(lines({"custom_id": "q1", "body": asked}))
    results.write_bytes(lines({"custom_id": "q1", "response": {"body": replied}}))
    app = open_page("datasets")
    app.segmented_control(key="import-place").set_value("Path on the server").run()
    app.text_input(key="import-path-0").input(str(results)).run()
    app.text_input(key="spanlab.import-0.requests").input(str(requests)).run()
    app.button(key="import").click().run()
    (record,) = store.records("results")
    assert (record.item.question, record.item.answer) == ("Capital of Peru?", "Lima.")


@pytest.mark.system("veritrail")
def test_options_that_a_format_alone_has_are_asked_where_it_is_found(
    open_page: OpenPage, tmp_path: Path
) -> None:
    index = tmp_path / "output"
    index.mkdir()
    (index / "text_units.parquet").write_bytes(b"")
    (tmp_path / "one.jsonl").write_bytes(lines(item("a")))
    app = open_page("datasets")
    app.segmented_control(key="import-place").set_value("Path on the server").run()
    for path, asked in ((index, ["Question", "Answer"]), (tmp_path / "one.jsonl", [])):
        app.text_input(key="import-path-0").input(str(path)).run()
        labels = [each.label for each in app.text_input]
        assert [label for label in labels if label in {"Question", "Answer"}] == asked


def test_a_file_that_a_format_of_others_reads_beside_its_own_is_asked_for(
    open_page: OpenPage, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "noted.py").write_text(
        "from pathlib import Path\n"
        "from spanlab.base.options import OptionModel, option\n"
        "from spanlab.formats.reader import FormatEntry, FormatReader\n"
        "from spanlab.schema import Item, Record\n"
        "class Options(OptionModel):\n"
        "    notes: Path | None = option(None, title='Notes', help='What was asked.')\n"
        "class Reader(FormatReader):\n"
        "    signatures = (frozenset({'noted'}),)\n"
        "    own_options = Options\n"
        "    def _record(self, row):\n"
        "        asked = self._own.notes.read_text() if self._own.notes else ''\n"
        "        return Record(item=Item(id='a', question=asked, answer=row.value['noted']))\n"
        "FORMAT = FormatEntry(name='noted', reader=Reader)\n"
    )
    monkeypatch.setattr(known, "__path__", [*known.__path__, str(tmp_path)])
    try:
        app = upload(open_page("datasets"), b'{"noted": "In Paris."}\n')
        app.file_uploader(key="import-notes-0").upload("notes.txt", b"Where?").run()
        app.button(key="import").click().run()
    finally:
        sys.modules.pop(f"{known.__name__}.noted", None)
    (record,) = store.records("answers")
    assert (record.item.question, record.item.answer) == ("Where?", "In Paris.")


def test_a_path_that_is_not_there_is_said(open_page: OpenPage, store: Store) -> None:
    app = open_page("datasets")
    app.segmented_control(key="import-place").set_value("Path on the server").run()
    app.text_input(key="import-path-0").input("/nowhere/*.jsonl").run()
    assert "There is no such file" in app.error[0].value
    assert app.button(key="import").disabled
    assert names(store) == []


def test_columns_of_a_table_are_guessed_and_can_be_chosen(
    open_page: OpenPage, store: Store
) -> None:
    table = b"key;what was asked;output\n1;Where?;In Paris.\n"
    app = upload(open_page("datasets"), table, "outputs.csv")
    assert app.selectbox(key="import-column-answer-0").value == "output (by its name)"
    app.selectbox(key="import-column-question-0").set_value("what was asked").run()
    app.selectbox(key="import-column-id-0").set_value("key").run()
    app.button(key="import").click().run()
    (record,) = store.records("outputs")
    assert (record.item.id, record.item.question) == ("1", "Where?")
    assert record.item.answer == "In Paris."


def test_json_of_other_fields_is_mapped_and_seen_before_it_is_imported(
    open_page: OpenPage, store: Store
) -> None:
    chat = [{"role": "user", "content": "Where?"}, {"role": "assistant", "content": "<b>Paris"}]
    records = [{"nr": n, "x": {"y": chat}, "z": ["Warsaw"][n:]} for n in range(2)]
    app = upload(open_page("datasets"), lines(*records))
    assert "which column holds the answer" in app.info[0].value
    assert app.button(key="import").disabled
    app.selectbox(key="import-column-messages-0").set_value("x.y").run()
    app.selectbox(key="import-column-passages-0").set_value("z").run()
    assert not app.error
    assert "Recognised as JSON" in everything(app)
    assert "1 of 2 items have no passages" in app.warning[0].value
    (table,) = (part.proto.body for part in app.get("html") if "import-preview" in part.proto.body)
    assert "&lt;b&gt;Paris" in table
    assert names(store) == []
    app.button(key="import").click().run()
    assert "1 of 2 items have no passages" in app.warning[0].value
    first, second = store.records("answers")
    assert (first.item.question, first.item.answer) == ("Where?", "<b>Paris")
    assert (first.item.passages[0].text, second.item.passages) == ("Warsaw", ())


def test_a_list_inside_an_object_is_found_shown_and_can_be_changed(
    open_page: OpenPage, store: Store
) -> None:
    rows = [{"User Prompt": "Where?", "LLM_output": "In Paris.", "source doc": "Warsaw it was."}]
    other = [{"said": "In Rome."}]
    written = json.dumps({"run": {"results": rows}, "more": other}).encode()
    app = upload(open_page("datasets"), written, "run.json")
    assert app.selectbox(key="spanlab.import-0.records").options == [
        "run.results",
        "more",
        "the file as one record",
    ]
    assert app.selectbox(key="import-column-answer-0").value == "LLM_output (by its name)"
    (shown,) = app.dataframe
    assert dict(shown.value.iloc[0]) == rows[0]
    app.selectbox(key="spanlab.import-0.records").set_value("more").run()
    assert app.button(key="import").disabled
    app.selectbox(key="import-column-answer-0").set_value("said").run()
    app.selectbox(key="spanlab.import-0.records").set_value("run.results").run()
    app.selectbox(key="import-column-answer-0").set_value("LLM_output (by its name)").run()
    app.button(key="import").click().run()
    (record,) = store.records("run")
    assert (record.item.question, record.item.answer) == ("Where?", "In Paris.")
    assert record.item.passages[0].text == "Warsaw it was."


def test_each_answer_of_a_chat_can_be_an_item(open_page: OpenPage, store: Store) -> None:
    chat = [{"role": role, "content": role} for role in ("user", "assistant") * 2]
    app = upload(open_page("datasets"), lines({"messages": chat}), "chats.jsonl")
    app.selectbox(key="spanlab.import-0.turns").set_value("all").run()
    app.button(key="import").click().run()
    assert [record.item.id for record in store.records("chats")] == ["chats-1-1", "chats-1-2"]


def test_who_the_model_is_in_a_log_of_names_can_be_said(open_page: OpenPage, store: Store) -> None:
    said = [{"thread": 1, "user": name, "text": f"{name}."} for name in ("anna", "max")]
    app = upload(open_page("datasets"), lines(*said), "log.jsonl")
    assert "who of these speakers is the model" in everything(app)
    app.text_input(key="spanlab.import-0.speaker").input("max").run()
    app.button(key="import").click().run()
    (record,) = store.records("log")
    assert (record.item.question, record.item.answer) == ("anna.", "max.")


def test_predictions_are_joined_to_a_dataset_s_items(open_page: OpenPage, store: Store) -> None:
    store.import_records("mine", [Record(item=Item(id="a", lang="en", answer=ANSWER))])
    span = {"start": 24, "end": 29, "prob": 0.9}
    made = [{"id": name, "soft_labels": [span], "hard_labels": [[24, 29]]} for name in "ab"]
    app = opened(open_page("datasets"))
    app.radio(key="import-kind-0").set_value("Predictions").run()
    upload(app, lines(*made), "preds.jsonl")
    app.text_input(key="spanlab.import-0.system").input("my-system").run()
    app.button(key="import").click().run()
    assert "1 item of mine annotated as my\\-system" in everything(app)
    assert "1 prediction left out" in app.warning[0].value
    (record,) = store.records("mine")
    (said,) = record.annotations
    assert (said.annotator, said.spans[0].text) == ("my-system", "Paris")


def test_a_person_s_marks_stay_a_person_s(open_page: OpenPage, store: Store) -> None:
    store.import_records("mine", [Record(item=Item(id="a", lang="en", answer=ANSWER))])
    made = {"id": "a", "soft_labels": [{"start": 24, "end": 29, "prob": 1}]}
    app = opened(open_page("datasets"))
    app.radio(key="import-kind-0").set_value("Predictions").run()
    upload(app, lines(made), "ben.jsonl")
    app.segmented_control(key="import-annotator-kind-0").set_value(AnnotatorKind.PERSON).run()
    app.button(key="import").click().run()
    (record,) = store.records("mine")
    (said,) = record.annotations
    assert (said.annotator, said.kind) == ("ben", AnnotatorKind.PERSON)


def test_annotations_from_elsewhere_are_joined(open_page: OpenPage, store: Store) -> None:
    store.import_records("mine", [Record(item=Item(id="a", lang="en", answer=ANSWER))])
    span = {"start": 24, "end": 29, "text": "Paris"}
    ben = {"annotator": "Ben", "kind": "person", "status": "done", "spans": [span]}
    app = opened(open_page("datasets"))
    app.radio(key="import-kind-0").set_value("Annotations").run()
    upload(app, lines(item("a", annotations=[ben]), item("b", annotations=[ben])), "ben.jsonl")
    app.button(key="import").click().run()
    assert "1 annotation joined to the items of mine" in everything(app)
    assert "1 record left out" in app.warning[0].value
    (record,) = store.records("mine")
    assert [(said.annotator, said.kind) for said in record.annotations] == [("Ben", "person")]


def annotated(store: Store, dataset: str = "mine") -> None:
    """Four items; Ann has finished one with a span and one without, failed one, left one."""
    mark = Span.of(ANSWER, 24, 29)
    said = [
        Annotation(annotator="Ann", kind=AnnotatorKind.PERSON, spans=(mark,)),
        Annotation(annotator="Ann", kind=AnnotatorKind.PERSON),
        Annotation(
            annotator="Ann", kind=AnnotatorKind.PERSON, status=Status.FAILED, note="no power"
        ),
        None,
    ]
    store.import_records(
        dataset,
        [
            Record(
                item=Item(id=f"i{index}", lang="en", answer=ANSWER),
                annotations=() if annotation is None else (annotation,),
            )
            for index, annotation in enumerate(said)
        ],
    )


def test_counts_tell_the_states_apart(open_page: OpenPage, store: Store) -> None:
    """Several annotators per item, each with its own states."""
    annotated(store)
    app = open_page("datasets")
    html = "".join(element.proto.body for element in app.get("html"))
    assert "Ann <span class='kind'>person" in html
    assert "2 of 4 done" in html
    assert "1 failed · 1 not annotated" in html


def test_a_hostile_annotator_name_stays_text(open_page: OpenPage, store: Store) -> None:
    evil = "<img src=x onerror=alert(1)>"
    record = Record(
        item=Item(id="a", answer=ANSWER),
        annotations=(Annotation(annotator=evil, kind=AnnotatorKind.PERSON),),
    )
    store.import_records("mine", [record])
    html = "".join(element.proto.body for element in open_page("datasets").get("html"))
    assert "<img" not in html
    assert "&lt;img src=x onerror=alert(1)&gt;" in html


def test_the_detector_runs_as_a_job_on_what_it_has_not_done(
    open_page: OpenPage, store: Store, working: None
) -> None:
    annotated(store)
    app = open_page("datasets").button(key="detect-mine").click().run()
    assert "4 items to do" in everything(app)
    app.button(key="start-detector").click().run(timeout=60)
    (view,) = Jobs().list()
    assert Jobs().store.wait(view.id, timeout=60).progress.done == 4
    app.run()
    assert "offline annotated 4 items of mine" in app.success[0].value.replace("\\", "")
    (summary,) = store.datasets()
    assert summary.annotators[-1].name == "offline"
    app.button(key="detect-mine").click().run()
    assert "offline has finished all 4 items" in everything(app)
    assert app.button(key="start-detector").disabled
    assert "offline annotated" not in everything(app)  # said once


def test_a_detection_under_way_is_seen_on_its_dataset_and_in_any_other_window(
    open_page: OpenPage, store: Store
) -> None:
    annotated(store)
    annotated(store, "yours")
    app = open_page("datasets").button(key="detect-mine").click().run()
    app.button(key="start-detector").click().run()
    (view,) = Jobs().list()
    assert everything(app).count("offline on mine") == 1
    app.button(key="detect-mine").click().run()
    assert "offline on mine is queued already" in everything(app)
    assert app.button(key="start-detector").disabled
    another = open_page("datasets")
    assert everything(another).count("offline on mine") == 1
    another.button(key=f"datasets-Cancel-{view.id}").click().run()
    assert Jobs().find(view.id).state is JobState.CANCELLED
    assert "offline on mine" not in everything(another)


def submit(app: AppTest, label: str) -> AppTest:
    (button,) = [button for button in app.button if button.label == label]
    return button.click().run()


def test_a_vote_of_chosen_annotators_is_stored(open_page: OpenPage, store: Store) -> None:
    annotated(store)
    app = ask(open_page, "vote")
    assert app.pills(key="spanlab.chosen.vote-mine.person.0").value == ["Ann"]
    app.text_input[-1].input("majority")
    submit(app, "Vote")
    votes = [record.by("majority") for record in store.records("mine")]
    assert [vote.voters if vote else None for vote in votes] == [("Ann",), ("Ann",), None, None]


def test_a_vote_cannot_vote_for_itself(open_page: OpenPage, store: Store) -> None:
    annotated(store)
    app = ask(open_page, "vote")
    app.text_input[-1].input("Ann")
    submit(app, "Vote")
    assert "cannot be one of its own voters" in app.error[0].value


def ask(open_page: OpenPage, action: str) -> AppTest:
    app = open_page("datasets")
    app.menu_button(key="more-mine").click(action).run()
    return app


def test_a_dataset_is_deleted_only_when_its_name_is_typed(
    open_page: OpenPage, store: Store
) -> None:
    annotated(store)
    app = ask(open_page, "delete")
    assert "the bin can bring it back" in app.error[0].value
    assert "4 items, with questions" in app.error[0].value
    assert "by 1 annotator" in app.error[0].value
    app.text_input[-1].input("min")
    submit(app, "Delete")
    assert "Nothing was deleted" in app.error[1].value
    assert names(store) == ["mine"]
    app.text_input[-1].input("mine")
    submit(app, "Delete")
    assert names(store) == []
    assert "mine** · 4 items · deleted" in everything(app)
    next(button for button in app.button if button.label == "Restore").click().run()
    assert names(store) == ["mine"]


def test_a_version_is_kept_and_stands_with_its_dataset(open_page: OpenPage, store: Store) -> None:
    annotated(store)
    app = ask(open_page, "snapshot")
    app.text_input[-1].input("v@1")
    submit(app, "Save version")
    assert "cannot name a version" in app.error[0].value
    app.text_input[-1].input("v1")
    submit(app, "Save version")
    assert names(store) == ["mine"]
    (version,) = (each for each in store.datasets(versions=True) if each.version_of == "mine")
    assert f"SHA-256 {(version.digest or '')[:12]}" in everything(app)


def test_a_copy_has_everything_under_another_name(open_page: OpenPage, store: Store) -> None:
    """Users ask to duplicate what was annotated."""
    annotated(store)
    app = ask(open_page, "duplicate")
    assert app.text_input[-1].value == "mine copy"
    submit(app, "Duplicate")
    assert names(store) == ["mine", "mine copy"]
    assert list(store.records("mine copy")) == list(store.records("mine"))


def test_a_taken_name_is_refused(open_page: OpenPage, store: Store) -> None:
    annotated(store)
    annotated(store, "other")
    app = ask(open_page, "rename")
    app.text_input[-1].input("other")
    submit(app, "Rename")
    assert "is taken" in app.error[0].value
    app.text_input[-1].input("ours")
    submit(app, "Rename")
    assert sorted(names(store)) == ["other", "ours"]


@pytest.mark.parametrize("count", [11], ids=["more-than-a-page"])
def test_many_datasets_are_searched(open_page: OpenPage, store: Store, count: int) -> None:
    for number in range(count):
        store.import_records(f"set-{number}", [Record(item=Item(id="a", answer=ANSWER))])
    app = open_page("datasets")
    assert "set\\-10" in everything(app)
    assert "set\\-0\n" not in everything(app)
    (find,) = [box for box in app.text_input if box.label == "Find"]
    find.input("set-0").run()
    assert [head.value for head in app.header] == ["set\\-0"]


def edit(open_page: OpenPage, annotator: str, act: str) -> AppTest:
    app = ask(open_page, "annotators")
    (choice,) = [box for box in app.selectbox if box.label == "Annotator"]
    assert choice.value is None
    choice.select_index([name.split(" (")[0] for name in choice.options].index(annotator)).run()
    app.radio(key="annotator-act").set_value(act).run()
    return app


def test_annotators_are_renamed_merged_marked_as_gold_and_removed(
    open_page: OpenPage, store: Store
) -> None:
    annotated(store)
    two = Annotation(annotator="Bea", kind=AnnotatorKind.PERSON)
    items = [record.item.id for record in store.records("mine")]
    store.save_annotations("mine", [(item, two) for item in items])

    def kinds() -> dict[str, str]:
        (summary,) = store.datasets()
        return {who.name: who.kind.value for who in summary.annotators}

    app = edit(open_page, "Ann", "Rename")
    app.text_input[-1].input("Bea")
    submit(app, "Rename")
    assert "merge the two instead" in app.error[0].value
    app.text_input[-1].input("Anna")
    submit(app, "Rename")
    assert {"Anna", "Bea"} <= set(kinds())
    submit(edit(open_page, "Anna", "Copy as gold labels"), "Copy as gold labels")
    assert {name: kinds()[name] for name in ("Anna", "gold of Anna")} == {
        "Anna": "person",
        "gold of Anna": "gold",
    }
    submit(edit(open_page, "gold of Anna", "Stop using as gold"), "Stop using as gold")
    assert set(kinds()) == {"Anna", "Bea"} | {name for name in kinds() if name[0] not in "ABg"}
    app = edit(open_page, "Anna", "Merge")
    submit(app, "Merge")
    assert "Choose whom to merge with" in app.error[0].value
    next(box for box in app.selectbox if box.label == "Into").select("Bea")
    submit(app, "Merge")
    assert "Anna" not in kinds()
    app = edit(open_page, "Bea", "Remove")
    assert "permanently deletes Bea's annotations of 4 items" in app.warning[0].value
    submit(app, "Remove")
    assert "Nothing was removed" in app.error[0].value
    app.text_input[-1].input("Bea")
    submit(app, "Remove")
    assert "Bea" not in kinds()
