"""What was responded to a dataset's questions, through files and back."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from spanlab.base.errors import UsageError
from spanlab.formats import ReadOptions, read, write
from spanlab.formats.known.labelstudio_writer import labeling_config, questions_in_config
from spanlab.schema import (
    Annotation,
    AnnotatorKind,
    DatasetSettings,
    Item,
    Question,
    Record,
    Span,
)

ANSWER = "👍 Oslo has 3 million."
SETTINGS = DatasetSettings(
    attributes=(
        Question(name="severity", options=("minor", "3"), labels=("other",), required=True),
        Question(name="why", title="Why, <b>exactly</b>?", kind="text"),
        Question(name="sure", kind="scale", low=1, high=7),
    ),
    questions=(
        Question(name="fluency", kind="scale", low=0, high=4),
        Question(name="topic", title="Topic", options=("3", "history")),
        Question(name="remark", kind="text"),
    ),
)


def _record() -> Record:
    given = {"severity": "3", "why": 'No "source"\nsays so, 👍', "sure": 7}
    span = Span.of(ANSWER, 2, 6, label="other").model_copy(update={"attributes": given})
    bare = Span.of(ANSWER, 11, 20, label="other")
    responses: dict[str, int | str] = {"fluency": 0, "topic": "3", "remark": '"quoted"'}
    return Record(
        item=Item(id="i", lang="en", answer=ANSWER),
        annotations=(
            Annotation(
                annotator="eva",
                kind=AnnotatorKind.PERSON,
                spans=(span, bare),
                responses=responses,
            ),
            Annotation(annotator="tom", kind=AnnotatorKind.PERSON),
        ),
    )


@pytest.mark.parametrize("format_", ["spanlab", "csv", "parquet", "labelstudio"])
def test_responses_come_back_from_every_format_that_keeps_them(
    tmp_path: Path, format_: str
) -> None:
    endings = {"spanlab": "jsonl", "labelstudio": "json"}
    path = tmp_path / f"out.{endings.get(format_, format_)}"
    write([_record()], path, format=format_, settings=SETTINGS)
    (back,) = read(path)
    assert back.annotations == _record().annotations


def test_a_table_has_a_column_for_each_question_numbers_as_numbers(tmp_path: Path) -> None:
    for ending in ("csv", "parquet"):
        write([_record()], tmp_path / f"t.{ending}", settings=SETTINGS)
    frame = pd.read_parquet(tmp_path / "t.parquet")
    assert frame.response_fluency.mean() == 0
    assert list(frame.columns)[-3:] == ["response_fluency", "response_topic", "response_remark"]
    assert json.loads(frame.spans[0][0]["attributes"])["sure"] == 7
    assert list(pd.read_csv(tmp_path / "t.csv").columns) == list(frame.columns)


def test_label_studio_has_them_per_region_and_per_task(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    write([_record()], path, format="labelstudio", settings=SETTINGS)
    (task,) = json.loads(path.read_text("utf-8"))
    region, severity, why, sure, _, fluency, *_ = task["annotations"][0]["result"]
    place = {"start": 2, "end": 6, "text": "Oslo"}
    assert severity == {
        "id": region["id"],
        "from_name": "severity",
        "to_name": "answer",
        "type": "choices",
        "value": {**place, "choices": ["3"]},
    }
    assert why["value"] == {"start": 2, "end": 6, "text": ['No "source"\nsays so, 👍']}
    assert (sure["type"], sure["value"]) == ("rating", {**place, "rating": 7})
    assert (fluency["type"], fluency["value"]) == ("number", {"number": 0})


def test_what_is_no_single_response_of_label_studio_is_left_out_and_said(tmp_path: Path) -> None:
    results = [
        {"id": "r", "from_name": "l", "type": "labels", "value": {"start": 0, "end": 3}},
        {"id": "r", "from_name": "sure", "type": "rating", "value": {"start": 0, "rating": 4.0}},
        {"id": "r", "from_name": "why", "type": "choices", "value": {"start": 0, "choices": ["x"]}},
        {"id": "n", "from_name": "why", "type": "choices", "value": {"start": 0, "choices": ["x"]}},
        {"from_name": "many", "type": "choices", "value": {"choices": ["x", "y"]}},
        {"from_name": "half", "type": "number", "value": {"number": 1.5}},
        {"from_name": "said", "type": "textarea", "value": {"text": ["one", "two"]}},
    ]  # fmt: skip
    path = tmp_path / "in.json"
    task = {"data": {"text": "one two"}, "annotations": [{"result": results}]}
    path.write_text(json.dumps([task]), "utf-8")
    said: list[str] = []
    (record,) = read(path, options=ReadOptions(on_warning=said.append))
    (annotation,) = record.annotations
    assert annotation.responses == {"said": "one\ntwo"}
    assert [span.attributes for span in annotation.spans] == [{"sure": 4, "why": "x"}]
    assert said == [f"{path}: left out what marks no span: 2 choices, 1 number"]


def test_a_labelling_configuration_is_written_and_read_back() -> None:
    config = labeling_config(SETTINGS, ["of a detector"])
    assert '<Label value="of a detector" />' in config
    assert 'perRegion="true" whenLabelValue="other" required="true"' in config
    assert questions_in_config(config) == {
        "attributes": SETTINGS.attributes,
        "questions": SETTINGS.questions,
    }


@pytest.mark.parametrize(
    ("config", "wrong"),
    [
        ("<View><Choices name='a'", "is not XML"),
        ("<!DOCTYPE v [<!ENTITY a 'b'>]><View>&a;</View>", "no document type and no entities"),
        ("<View><Choices name='a' choice='multiple'/></View>", "several choices at once"),
        ("<View><Choices name='a'><Choice value='x'/></Choices></View>", "two options or more"),
        ("<View><Number name='a b' min='1' max='2'/></View>", "<Number name='a b'>: name"),
    ],
)
def test_what_a_configuration_asks_that_we_cannot_is_said(config: str, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        questions_in_config(config)
