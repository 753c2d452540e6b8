"""A project of Label Studio comes in with what it asks, and goes back as it came."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]

PROJECT = Path(__file__).with_name("label_studio")
SHOWN = {  # what the responses of the export show, and what its configuration says
    "severity": (["major", "minor"], ["minor", "major", "dangerous"]),
    "topic": (["trains", "visas", "weather"], ["trains", "visas", "weather"]),
    "fluency": ((1, 5), (1, 5)),
    "minutes": ((3, 12), (0, 60)),
}


def _asked(spanlab: Run, dataset: str, tmp_path: Path) -> dict[str, object]:
    """Return options, or the ends of a scale, by name; None for a text."""
    from spanlab.formats.known.labelstudio_writer import questions_in_config

    asked = questions_in_config(spanlab("datasets", dataset, "--config").stdout)
    ends = {"choice": lambda one: list(one.options), "scale": lambda one: (one.low, one.high)}
    return {
        one.name: ends.get(one.kind, lambda one: None)(one)
        for one in (*asked["attributes"], *asked["questions"])
    }


@pytest.mark.parametrize("at", [0, 1], ids=["from responses", "from the configuration"])
def test_a_project_comes_in_with_its_questions_and_goes_back(
    spanlab: Run, tmp_path: Path, at: int
) -> None:
    more = ("--questions", PROJECT / "config.xml") if at else ()
    done = spanlab("import", PROJECT / "export.json", "--dataset", "trips", *more)
    assert done.returncode == 0, done.stderr
    names = "severity, why, fluency, minutes, topic, remark"
    assert f"'trips' now asks: {names}" in done.stderr
    wanted = {name: pair[at] for name, pair in SHOWN.items()}
    assert _asked(spanlab, "trips", tmp_path) == {**wanted, "why": None, "remark": None}
    shown = spanlab("datasets", "trips").stdout
    assert "attributes: severity, why; questions: fluency, minutes, topic, remark" in shown

    spanlab("export", "trips", "--format", "labelstudio", "-o", tmp_path / "out.json")
    again = spanlab("import", tmp_path / "out.json", "--dataset", "again", *more)
    assert again.returncode == 0, again.stderr
    assert _asked(spanlab, "again", tmp_path) == _asked(spanlab, "trips", tmp_path)
    for dataset in ("trips", "again"):
        spanlab("export", dataset, "-o", tmp_path / f"{dataset}.jsonl")
    trips, back = (
        [
            json.loads(line)["annotations"]
            for line in (tmp_path / name).read_text().splitlines()
            if "answer" in json.loads(line)  # and not what the dataset asks
        ]
        for name in ("trips.jsonl", "again.jsonl")
    )
    assert back == trips
    mia = trips[0][0]
    assert mia["responses"] == {
        "fluency": 4, "minutes": 12, "topic": "trains", "remark": "Two claims,\none source."
    }  # fmt: skip
    assert [span["attributes"] for span in mia["spans"]] == [
        {"severity": "major", "why": "The timetable says 22:10."},
        {"severity": "minor"},
    ]


def test_what_a_dataset_asks_already_stays(spanlab: Run, tmp_path: Path) -> None:
    spanlab(
        "import", PROJECT / "export.json", "--dataset", "d", "--questions", PROJECT / "config.xml"
    )
    tasks = json.loads((PROJECT / "export.json").read_text("utf-8"))
    for task in tasks:
        task["id"] += 1000
    (tmp_path / "more.json").write_text(json.dumps(tasks))
    more = spanlab("import", tmp_path / "more.json", "--dataset", "d")
    assert more.returncode == 0, more.stderr
    assert "now asks" not in more.stderr
    assert _asked(spanlab, "d", tmp_path)["minutes"] == (0, 60)


def test_what_responses_do_not_show_whole_is_said_and_the_dataset_asks_the_rest(
    spanlab: Run, tmp_path: Path
) -> None:
    """One option alone is no choice, nor is one number a scale."""
    results = [
        {"from_name": "kind", "type": "choices", "value": {"choices": ["only"]}},
        {"from_name": "count", "type": "number", "value": {"number": 5000}},
        {"from_name": "rate it", "type": "rating", "value": {"rating": 2}},
        {"from_name": "sure", "type": "rating", "value": {"rating": 2}},
    ]
    (tmp_path / "in.json").write_text(
        json.dumps([{"id": 1, "data": {"text": "one two"}, "annotations": [{"result": results}]}])
    )
    done = spanlab("import", "in.json", "--dataset", "d", "--format", "labelstudio")
    assert done.returncode == 0, done.stderr
    assert "'d' now asks: sure" in done.stderr
    assert "its responses do not show what these ask: kind, count, rate it" in done.stderr


def test_a_wrong_configuration_imports_nothing(spanlab: Run, tmp_path: Path) -> None:
    (tmp_path / "config.xml").write_text("<View><Choices name='a'/></View>")
    wrong = spanlab(
        "import", PROJECT / "export.json", "--dataset", "d", "--questions", "config.xml"
    )
    assert wrong.returncode != 0
    assert "<Choices name='a'>" in wrong.stderr
    assert "two options or more" in wrong.stderr
    assert "d" not in spanlab("datasets").stdout.split()
