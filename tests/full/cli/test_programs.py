"""`spanlab programs` on a registry of two programs, one of them of doubtful worth."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tuned_programs import tuned_program

from spanlab.models.programs import ProgramRegistry
from spanlab.schema import TunedPredictor, TunedProgram

Run = Callable[..., subprocess.CompletedProcess[str]]


OSLO: dict[str, object] = {"answer": "Oslo"}


@pytest.fixture
def programs(tmp_path: Path) -> ProgramRegistry:
    registry = ProgramRegistry(tmp_path / "home" / "programs")
    registry.save(tuned_program("sure", "Quote it.\nBe short.", 0.02, demo=OSLO))
    registry.save(tuned_program("maybe", "Quote it.\nBe quick.", -0.02, demo=OSLO))
    return registry


def test_the_list_says_which_one_is_used_and_what_each_is_worth(
    spanlab: Run, programs: ProgramRegistry
) -> None:
    used = spanlab("programs", "use", "sure")
    assert (used.returncode, used.stderr) == (0, "ucsc-extract uses sure\n")
    _, maybe, sure = spanlab("programs", "list").stdout.splitlines()
    common = ["ucsc-extract", "iou", ".400", "→", ".500"]
    when = ["small", "2026-11-25", "12:00"]
    assert maybe.split() == ["maybe", *common[:-1], ".500,", "not", "significant", *when]
    assert sure.split() == ["*", "sure", *common, "small", "2026-11-24", "12:00"]
    assert programs.default("ucsc-extract") == "sure"
    assert spanlab("programs", "use", "--untuned", "ucsc-extract").returncode == 0
    assert programs.default("ucsc-extract") is None


def test_programs_lie_beside_the_database_or_where_the_environment_says(
    spanlab: Run, programs: ProgramRegistry, tmp_path: Path
) -> None:
    elsewhere = ProgramRegistry(tmp_path / "elsewhere")
    elsewhere.save(tuned_program("other", demo=OSLO))
    assert "sure" in spanlab("programs", "list").stdout
    listed = spanlab("programs", "list", SPANLAB_PROGRAMS=str(elsewhere.folder)).stdout
    assert "other" in listed
    assert "sure" not in listed


def test_a_program_is_shown_with_its_worth_and_prompt(
    spanlab: Run, programs: ProgramRegistry
) -> None:
    shown = spanlab("programs", "show", "maybe").stdout
    assert "is not significantly better than the untuned prompt: .400 → .500" in shown
    assert "difference +.100 [-.020, +.180], p = .123" in shown
    assert ["de", ".300", ".500", "+.200"] in [line.split() for line in shown.splitlines()]
    assert "extract, 1 example:\n\nQuote it.\nBe quick." in shown
    assert TunedProgram.model_validate_json(spanlab("programs", "show", "sure", "--json").stdout)


def test_two_programs_are_compared_line_by_line(spanlab: Run, programs: ProgramRegistry) -> None:
    compared = spanlab("programs", "compare", "sure", "maybe").stdout
    assert "-Be short.\n+Be quick.\n" in compared
    assert spanlab("programs", "compare", "sure", "sure").stdout == "the same prompts\n"


def test_a_program_goes_out_comes_in_and_is_removed(
    spanlab: Run, programs: ProgramRegistry, tmp_path: Path
) -> None:
    assert spanlab("programs", "export", "sure", "-o", "given.json").returncode == 0
    taken = spanlab("programs", "import", "given.json", "--name", "theirs")
    assert taken.stderr == "imported theirs, a tuned prompt for ucsc-extract\n"
    assert programs.load("theirs").predictors == programs.load("sure").predictors
    assert spanlab("programs", "remove", "theirs").returncode == 0
    assert [each.name for each in programs] == ["maybe", "sure"]


def test_what_is_wrong_is_said(spanlab: Run, programs: ProgramRegistry, tmp_path: Path) -> None:
    (tmp_path / "evil.json").write_bytes(b"\x80\x04.")
    refused = spanlab("programs", "import", "evil.json")
    assert (refused.returncode, refused.stderr[:31]) == (1, "spanlab: evil.json: not a tuned")
    assert "available: maybe, sure" in spanlab("programs", "show", "gone").stderr
    assert spanlab("programs", "use").returncode == 2


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        pytest.param({"detector": "nobody"}, "nobody", id="an unknown detector"),
        pytest.param({"detector": "offline"}, "no prompts", id="a detector without prompts"),
        pytest.param({"member": "ucsc-revise"}, "ucsc-revise", id="a member that is another"),
        pytest.param(
            {"predictors": {"quote": TunedPredictor(instruction="Quote.")}},
            "predictors.quote: ucsc-extract has no prompt of this name; expected extract",
            id="prompts of another detector",
        ),
    ],
)
def test_a_program_that_nothing_here_can_use_is_not_imported(
    spanlab: Run, programs: ProgramRegistry, tmp_path: Path, changes: dict[str, object], said: str
) -> None:
    other = programs.load("sure").model_copy(update=changes)
    (tmp_path / "given.json").write_text(other.model_dump_json())
    refused = spanlab("programs", "import", "given.json", "--name", "theirs")
    assert refused.returncode in {1, 2}
    assert said in refused.stderr
    assert [each.name for each in programs] == ["maybe", "sure"]


def test_a_broken_file_is_listed_as_broken_and_can_be_removed(
    spanlab: Run, programs: ProgramRegistry
) -> None:
    (programs.folder / "cut.json").write_text('{"name": "cut", "detec')
    (programs.folder / "defaults.json").write_text("[]")
    listed = spanlab("programs", "list")
    assert listed.returncode == 0
    assert "cut" in programs  # so that no search takes its name and cannot be saved in the end
    for each in (
        "maybe",
        "sure",
        "broken: ",
        "cut.json: not a tuned prompt of spanlab",
        "defaults.json",
    ):
        assert each in listed.stdout
    (programs.folder / "defaults.json").unlink()
    assert spanlab("programs", "remove", "cut").returncode == 0
    assert "broken" not in spanlab("programs", "list").stdout


def test_an_empty_registry_says_how_to_fill_it(spanlab: Run) -> None:
    assert (
        spanlab("programs", "list").stdout
        == "no tuned prompts yet; `spanlab optimize` makes them\n"
    )
