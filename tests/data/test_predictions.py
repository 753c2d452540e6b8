"""Predictions of a system are put beside the items that are there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run_here

from spanlab.base.errors import InputError, StoreError
from spanlab.data.predictions import import_predictions
from spanlab.formats import write
from spanlab.schema import Annotation, AnnotatorKind, Evidence, Item, Passage, Record, Span
from spanlab.storage import Store

ANSWER = "Oslo has 3 million people."
PASSAGE = Passage(text="Oslo has 700,000 people.")
QUOTE = Evidence(passage=0, start=9, end=16, text="700,000")


def item(name: str, *passages: Passage) -> Item:
    return Item(id=name, lang="en", answer=ANSWER, passages=passages)


@pytest.fixture
def store(store: Store) -> Store:
    ann = Annotation(annotator="ann", kind=AnnotatorKind.PERSON)
    store.import_records("en", [Record(item=item("a"), annotations=(ann,)), Record(item=item("b"))])
    return store


def submission(tmp_path: Path, *lines: dict[str, object]) -> Path:
    path = tmp_path / "submission.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def marks(name: str, end: int = 18) -> dict[str, object]:
    return {
        "id": name,
        "soft_labels": [{"start": 9, "end": end, "prob": 0.4}],
        "hard_labels": [[9, end]],
    }


def test_a_submission_without_answers_joins_items_by_id(store: Store, tmp_path: Path) -> None:
    path = submission(tmp_path, marks("a"), marks("elsewhere"))
    done = import_predictions(store, [path], "en", "mine")
    assert (done.items, done.unmatched) == (1, ("elsewhere",))
    a, b = store.records("en")
    assert b.annotations == ()
    said = a.by("mine")
    assert said is not None
    assert (said.kind, [(span.text, span.prob) for span in said.spans]) == (
        AnnotatorKind.DETECTOR,
        [("3 million", 0.4)],
    )
    assert [(each.start, each.end) for each in said.hard or ()] == [(9, 18)]
    assert a.by("ann") is not None


def test_a_second_import_replaces_the_first(store: Store, tmp_path: Path) -> None:
    import_predictions(store, [submission(tmp_path, marks("a"))], "en", "mine")
    import_predictions(store, [submission(tmp_path, marks("a", 10))], "en", "mine")
    said = next(store.records("en")).by("mine")
    assert said is not None
    assert [span.text for span in said.spans] == ["3"]


def test_whole_annotations_keep_notes_and_lose_quotes_of_other_passages(
    store: Store, tmp_path: Path
) -> None:
    span = Span.of(ANSWER, 9, 18, evidence=(QUOTE,)).model_copy(update={"note": "too many"})
    said = Annotation(annotator="theirs", kind=AnnotatorKind.DETECTOR, spans=(span,))
    path = tmp_path / "theirs.jsonl"
    write([Record(item=item("b", PASSAGE), annotations=(said,))], path)
    import_predictions(store, [path], "en", "mine")
    found = list(store.records("en"))[1].by("mine")
    assert found is not None
    assert [(each.note, each.evidence) for each in found.spans] == [("too many", ())]


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        pytest.param(
            [marks("a"), marks("a")],
            "submission.jsonl, line 2, id: an item with this id",
            id="twice",
        ),
        pytest.param(
            [marks("a", 99)],
            "submission.jsonl, line 1, soft_labels: the prediction was made",
            id="long",
        ),
        pytest.param([marks("z")], "none of these predictions is of an item in 'en'", id="none"),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_stored(
    store: Store, tmp_path: Path, lines: list[dict[str, object]], said: str
) -> None:
    with pytest.raises(InputError) as refused:
        import_predictions(store, [submission(tmp_path, *lines)], "en", "mine")
    assert said in str(refused.value)
    assert all(record.by("mine") is None for record in store.records("en"))


def test_predictions_do_not_replace_a_person(store: Store, tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        import_predictions(store, [submission(tmp_path, marks("a"))], "en", "ann")


def test_the_command_reports_what_did_not_match(store: Store, tmp_path: Path) -> None:
    path = submission(tmp_path, marks("a"), marks("b"), marks("elsewhere"))
    done = run_here(
        ["import", str(path), "--dataset", "en", "--as", "mine"],
        tmp_path,
        {"SPANLAB_HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
    assert "1 id 'en' does not have: elsewhere" in done.stderr
    assert "2 items of 'en' annotated as 'mine'" in done.stderr


PUBLISHED = json.dumps(
    {"id": "a", "model_output_text": "Sydney is in Norway, I think.", **marks("a", 12)}
)


@pytest.mark.parametrize(
    ("name", "text", "line", "given"),
    [
        pytest.param(
            "new.csv",
            'id,question,answer,hallucinated_text\na,?,"Sydney is in Norway, I think.",Sydney\n',
            2,
            "Sydney is in Norway, I think.",
            id="csv",
        ),
        pytest.param("new.jsonl", PUBLISHED, 1, "Sydney is in Norway, I think.", id="mushroom"),
    ],
)
def test_marks_in_another_answer_are_refused(
    store: Store, tmp_path: Path, name: str, text: str, line: int, given: str
) -> None:
    (tmp_path / name).write_text(text)
    command = ["import", name, "--dataset", "en", "--as", "ann", "--kind", "person"]
    done = run_here(command, tmp_path, {"SPANLAB_HOME": str(tmp_path / "home")})
    assert done.returncode == 1, done.stderr
    assert (
        f"{name}, line {line}, answer: item 'a' has another answer in the dataset, “{ANSWER}”; "
        f"expected the same answers under the same ids, found '{given}'"
    ) in " ".join(done.stderr.split())
    kept = next(store.records("en")).by("ann")
    assert kept is not None
    assert not kept.spans


def test_predictions_are_read_as_people_say(store: Store, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(
        f"key,text,reply,wrong\na,seen,{ANSWER},3 million\nb,seen,{ANSWER},\n", "latin-1"
    )
    named = [f"--column={each}" for each in ("id=key", "answer=reply", "spans=wrong")]
    command = ["import", "own.csv", "--dataset", "en", "--as", "mine", *named]
    environment = {"SPANLAB_HOME": str(tmp_path / "home")}
    done = run_here(command, tmp_path, environment)
    assert "2 items of 'en' annotated as 'mine'" in done.stderr
    said = next(store.records("en")).by("mine")
    assert said is not None
    assert [span.text for span in said.spans] == ["3 million"]
    refused = run_here([*command, "--contexts", "."], tmp_path, environment)
    assert refused.returncode == 2
    assert "--contexts is about items, and --as adds none" in refused.stderr


def test_how_many_finished_reviews_were_replaced_is_said(store: Store, tmp_path: Path) -> None:
    (tmp_path / "own.csv").write_text(
        f"id,answer,hallucinated_text\na,{ANSWER},3 million\nb,{ANSWER},\n"
    )
    command = ["import", "own.csv", "--dataset", "en", "--as", "ann", "--kind", "person"]
    environment = {"SPANLAB_HOME": str(tmp_path / "home")}
    first = run_here(command, tmp_path, environment)
    assert "This replaced 1 finished review that the dataset had" in first.stderr
    assert "This replaced 2 finished reviews" in run_here(command, tmp_path, environment).stderr
    said = next(store.records("en")).by("ann")
    assert said is not None
    assert [span.text for span in said.spans] == ["3 million"]


def test_answers_that_begin_alike_are_shown_where_they_differ(store: Store, tmp_path: Path) -> None:
    begin = "All of them have said the same for years, and nobody has asked why: "
    item = Item(id="c", lang="en", answer=f"{begin}nobody.")
    store.import_records("en", [Record(item=item)])
    (tmp_path / "own.csv").write_text(f'id,answer,hallucinated_text\nc,"{begin}everybody.",said\n')
    with pytest.raises(InputError) as refused:
        import_predictions(store, [tmp_path / "own.csv"], "en", "mine")
    assert "“…" in str(refused.value)
    assert "nobody.”" in str(refused.value)
    assert "everybody.'" in str(refused.value)


@pytest.mark.parametrize(
    "line",
    [
        {"spans": [{"start": 4, "end": 9, "label": "wrong date", "prob": 0.7, "note": "hm"}]},
        {"label": [[4, 9, "wrong date"]], "text": "The tower."},
    ],
    ids=["marks", "doccano"],
)
def test_labels_and_notes_of_spans_are_kept(
    store: Store, tmp_path: Path, line: dict[str, object]
) -> None:
    """Also of files that are somebody's marks beside answers, as doccano writes one a person."""
    record = Record(item=Item(id="1", lang="en", answer="The tower."))
    store.import_records("kept", [record])
    file = tmp_path / "bo.jsonl"
    file.write_text(json.dumps({"id": "1", "answer": "The tower."} | line) + "\n")
    if "text" in line:
        file.write_text(json.dumps({"id": 1, **line}) + "\n")
    done = run_here(
        ["import", str(file), "--dataset", "kept", "--as", "bo", "--kind", "person"],
        tmp_path,
        {"SPANLAB_HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
    (annotation,) = store.record("kept", "1").annotations
    (span,) = annotation.spans
    assert (span.text, span.label) == ("tower", "wrong date")
    assert span.note == ("hm" if "spans" in line else None)
