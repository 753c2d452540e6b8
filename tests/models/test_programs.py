"""The registry keeps tuned programs as JSON, and takes nothing else for one."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from spanlab.base.errors import InputError, NotFoundError, UsageError
from spanlab.models.programs import ProgramRegistry
from spanlab.schema import HeldOut, HeldOutScore, TunedPredictor, TunedProgram, compare


def program(name: str = "short-spans", **changes: object) -> TunedProgram:
    values: dict[str, object] = {
        "name": name,
        "detector": "ucsc-extract",
        "strategy": "mipro",
        "metric": "iou",
        "task_model": "small",
        "prompt_model": "large",
        "dataset": "mine",
        "labels": "gold",
        "languages": ("en",),
        "items": 40,
        "fingerprint": "f" * 64,
        "created": "2026-11-20T12:00:00+00:00",
        "predictors": {
            "quote": TunedPredictor(
                instruction="Quote what is wrong.\nBe short.",
                demos=({"answer": "Oslo is big.", "lang": None, "quotes": [{"text": "big"}]},),
            )
        },
    }
    return TunedProgram.model_validate(values | changes)


def test_a_saved_program_comes_back_as_it_was(tmp_path: Path) -> None:
    held_out = HeldOut(
        items=40,
        folds=2,
        baseline=HeldOutScore(mean=0.4, low=0.3, high=0.5),
        tuned=HeldOutScore(mean=0.5, low=0.4, high=0.6),
        difference=HeldOutScore(mean=0.1, low=0.02, high=0.18),
        p=0.01,
        languages={"en": (0.4, 0.5)},
    )
    saved = program(held_out=held_out, search_score=0.55)
    ProgramRegistry(tmp_path / "new").save(saved)
    assert ProgramRegistry(tmp_path / "new").load("short-spans") == saved
    assert held_out.better


def test_a_difference_that_may_be_chance_is_not_better() -> None:
    score = HeldOutScore(mean=0.5, low=0.4, high=0.6)
    difference = HeldOutScore(mean=0.1, low=-0.01, high=0.2)
    values = HeldOut(
        items=9, folds=2, baseline=score, tuned=score, difference=difference, p=0.2, languages={}
    )
    assert not values.better


def test_programs_are_listed_newest_first_and_an_empty_registry_is_empty(tmp_path: Path) -> None:
    programs = ProgramRegistry(tmp_path)
    assert list(programs) == []
    programs.save(program("old"))
    programs.save(program("new", created="2026-11-21T12:00:00+00:00"))
    programs.choose("ucsc-extract", "old")
    assert [each.name for each in programs] == ["new", "old"]


def test_an_unknown_program_is_refused_with_those_there_are(tmp_path: Path) -> None:
    programs = ProgramRegistry(tmp_path)
    programs.save(program())
    with pytest.raises(NotFoundError, match=r"'long'.*available: short-spans"):
        programs.load("long")


def test_a_name_is_given_once(tmp_path: Path) -> None:
    programs = ProgramRegistry(tmp_path)
    programs.save(program())
    programs.save(program())
    with pytest.raises(UsageError, match="exists"):
        programs.save(program(items=41))
    assert programs.load("short-spans").items == 40


@pytest.mark.parametrize("name", ["../evil", "a/b", "", "Upper", ".hidden", "x" * 101, "a\nb"])
def test_a_name_stays_inside_the_directory(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="cannot name a tuned prompt"):
        ProgramRegistry(tmp_path).load(name)


def test_a_default_is_chosen_replaced_and_taken_back(tmp_path: Path) -> None:
    programs = ProgramRegistry(tmp_path)
    programs.save(program("one"))
    programs.save(program("two"))
    programs.choose("ucsc-extract", "one")
    programs.choose("ucsc-extract", "two")
    assert programs.default("ucsc-extract") == "two"
    assert programs.default("ucsc-revise") is None
    programs.remove("two")
    assert programs.default("ucsc-extract") is None
    assert [each.name for each in programs] == ["one"]


def test_a_default_fits_its_detector(tmp_path: Path) -> None:
    programs = ProgramRegistry(tmp_path)
    programs.save(program())
    with pytest.raises(UsageError, match="a tuned prompt of 'ucsc-extract', not 'ucsc-revise'"):
        programs.choose("ucsc-revise", "short-spans")


def test_an_exported_program_is_imported_elsewhere_under_another_name(tmp_path: Path) -> None:
    here, there = ProgramRegistry(tmp_path / "here"), ProgramRegistry(tmp_path / "there")
    here.save(program())
    here.give("short-spans", tmp_path / "given.json")
    taken = there.take(tmp_path / "given.json", "theirs")
    assert taken == there.load("theirs") == program("theirs")


def _valid() -> dict[str, object]:
    values: dict[str, object] = json.loads(program().model_dump_json())
    return values


HOSTILE: list[tuple[str, Callable[[], bytes], str]] = [
    ("pickle", lambda: b"\x80\x04\x95\x10\x00\x00\x00", "Invalid JSON"),
    ("empty", lambda: b"", "Invalid JSON"),
    ("list", lambda: b"[]", "object"),
    ("missing", lambda: b'{"name": "a"}', "detector"),
    ("path-name", lambda: json.dumps(_valid() | {"name": "../../evil"}).encode(), "name"),
    ("unknown-field", lambda: json.dumps(_valid() | {"__class__": "os"}).encode(), "__class__"),
    ("deep", lambda: b'{"predictors": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "recursion"),
    (
        "endless-instruction",
        lambda: json.dumps(
            _valid() | {"predictors": {"quote": {"instruction": "x" * 50_001}}}
        ).encode(),
        "predictors.quote.instruction",
    ),
    ("too-large", lambda: b" " * 4_000_001, "too large"),
]


@pytest.mark.parametrize(
    ("write", "said"), [pytest.param(write, said, id=name) for name, write, said in HOSTILE]
)
def test_a_hostile_file_is_refused_and_nothing_is_kept(
    tmp_path: Path, write: Callable[[], bytes], said: str
) -> None:
    hostile = tmp_path / "hostile.json"
    hostile.write_bytes(write())
    programs = ProgramRegistry(tmp_path / "programs")
    with pytest.raises(InputError, match=r"hostile\.json") as caught:
        programs.take(hostile)
    assert said in str(caught.value)
    assert list(programs) == []


def test_two_programs_are_compared_by_instruction_and_demonstrations() -> None:
    (demo,) = program().predictors["quote"].demos
    other = {"answer": "Rome is old."}
    tuned = program(
        "tuned",
        predictors={
            "quote": {"instruction": "Quote what is wrong.\nAt most 3 words.", "demos": [other]}
        },
    )
    (change,) = compare(program(), tuned)
    assert change.predictor == "quote"
    assert [line for line in change.diff if not line.startswith(("---", "+++", "@@"))] == [
        " Quote what is wrong.",
        "-Be short.",
        "+At most 3 words.",
    ]
    assert (change.removed, change.added) == ((demo,), (other,))
    assert compare(tuned, tuned) == ()
