"""Plans of benchmarks: what a file asks for, and what is wrong with one."""

from __future__ import annotations

from pathlib import Path

import pytest

from spanlab.base.errors import InputError, UsageError
from spanlab.bench.plan import estimate_plan, read_plan

pytestmark = pytest.mark.system("offline")


def test_a_plan_names_its_files_from_where_it_lies(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(
        'data = ["sets"]\ncontrols = ["nothing"]\n[[detector]]\nname = "offline"\nas = "ours"\n'
        '[[dataset]]\nname = "samples"\nlimit = 2\n'
        '[[predictions]]\nname = "theirs"\nfile = "theirs.jsonl"\n'
    )
    read = read_plan(plan, tmp_path / "table", {"repeats": 2})
    assert read.title == "ours on samples"
    assert read.data == (tmp_path / "sets",)
    assert read.predictions[0].file == tmp_path / "theirs.jsonl"
    assert (read.repeats, read.datasets[0].limit) == (2, 2)


def test_a_plan_without_datasets_takes_the_samples_and_offline_costs_nothing(
    tmp_path: Path,
) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('controls = []\n[[detector]]\nname = "offline"\n')
    read = read_plan(plan, tmp_path / "table", {})
    assert [dataset.name for dataset in read.datasets] == ["samples"]
    estimate = estimate_plan(read)
    assert (estimate.cells, estimate.run.calls, estimate.run.cost) == (1, 0, 0.0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[[detector]]\n", "needs its name"),
        ('[[detector]]\nname = "offlien"\n', "offlien"),
        ('[[detector]]\nname = "offline"\n[[detector]]\nname = "offline"\n', "'offline'"),
        ('[[dataset]]\nname = "samples"\nlimit = 0\n', "limit"),
        ('controls = ["all"]\n', "controls"),
        ("repeats = 0\n", "repeats"),
        ("detector = \n", "plan.toml"),
    ],
    ids=["no-name", "unknown", "two-rows", "limit", "control", "repeats", "no-toml"],
)
def test_what_is_wrong_with_a_plan_is_named(tmp_path: Path, text: str, told: str) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    with pytest.raises((InputError, UsageError), match=told):
        read_plan(plan, tmp_path / "table", {})
    assert not (tmp_path / "table").exists()
