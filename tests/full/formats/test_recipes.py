"""Recipes: a file is read as one says, and what a file was read by is one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from spanlab import formats
from spanlab.base.errors import InputError, SpanlabError
from spanlab.formats import ReadOptions, read, recipe_of
from spanlab.formats.recipes import columns_of_known, known_recipes
from spanlab.schema import Record

_CASES = Path(__file__).parents[2] / "cli" / "reading_cases.jsonl"
_SPANLAB = Path(formats.__file__).parents[1]
_DIALOGUES = (Path(__file__).parents[2] / "formats" / "test_dialogues.py").read_text("utf-8")


def _quiet(**options: object) -> ReadOptions:
    return ReadOptions.checked(options).model_copy(update={"on_warning": lambda _: None})


def _records(path: Path, **options: object) -> list[Record]:
    return list(read(path, _quiet(**options)))


def _saved(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, "utf-8")
    return path


def test_what_a_recipe_says_is_read_and_what_is_said_beside_it_goes_before(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    rows = [{"said": {"text": "Oslo."}, "draft": "Rome.", "asked": "Capital?", "ok": "bad"}]
    path.write_text(json.dumps({"run": 3, "results": {"items": rows}, "logs": rows * 3}), "utf-8")
    recipe = _saved(
        tmp_path,
        """
        records = "results.items"
        hallucinated_if = ["ok=bad"]
        [columns]
        answer = "said.text"
        question = "asked"
        """,
    )
    (record,) = _records(path, recipe=recipe)
    assert (record.item.answer, record.item.question) == ("Oslo.", "Capital?")
    assert record.annotations[0].answer_hallucinated is True
    (other,) = _records(path, recipe=recipe, column=["answer=draft"], hallucinated_if=["none"])
    assert (other.item.answer, other.item.question) == ("Rome.", "Capital?")
    assert not other.annotations


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("columns = 3", r"recipe\.toml, columns: .*found 3"),
        ("turns = 'each'", r"recipe\.toml, turns: .*'last' or 'all'"),
        ("skip_bad = true", r"recipe\.toml, skip_bad: a recipe has no such field; expected one of"),
        ("[columns\n", r"recipe\.toml: is not valid TOML: .*line 1"),
        ("[columns]\nansver = 'a'", r"no field 'ansver' to map a column to"),
        ("[columns]\nanswer = 'b'", r"a\.jsonl: there is no column 'b' for answer"),
    ],
)
def test_a_recipe_that_is_wrong_says_where(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": "Oslo."}\n', "utf-8")
    with pytest.raises(SpanlabError) as caught:
        _records(path, recipe=_saved(tmp_path, text))
    assert re.search(told, str(caught.value))
    with pytest.raises(InputError, match=r"none\.toml: cannot read this file"):
        _records(path, recipe=tmp_path / "none.toml")


def test_each_recipe_of_ours_reads_a_file_that_somebody_brought() -> None:
    used = set()
    for recipe, known in known_recipes().items():
        paths = sorted(known["has"])
        assert set(known) - {"judged"} == {"title", "has", "columns"}
        assert columns_of_known(paths).keys() <= known["columns"].keys()
        used |= {recipe for _, _, content in _cases() if all(_is_in(p, content) for p in paths)}
        used |= {recipe} if all(_is_in(path, _DIALOGUES) for path in paths) else set()
    assert used == known_recipes().keys()


def test_the_recipe_that_developers_are_shown_is_ours() -> None:
    shown = (_SPANLAB / "developers" / "adding.md").read_text("utf-8")
    assert (_SPANLAB / "formats" / "recipes" / "opencompass.toml").read_text("utf-8") in shown


def _is_in(path: str, content: str) -> bool:
    return all(f'"{name}"' in content for name in path.split("."))


def test_an_import_names_the_recipe_of_ours_that_it_went_by(tmp_path: Path) -> None:
    path, told = tmp_path / "a.jsonl", list[str]()
    path.write_text('{"origin_prompt": "Capital?", "prediction": "Oslo.", "gold": "Oslo"}\n')
    for options in ({}, {"column": ["answer=gold"]}):
        reading = ReadOptions.checked(options).model_copy(update={"on_warning": told.append})
        assert len(list(read(path, reading))) == 1
    assert told == [f"{path}: read by the recipe of OpenCompass"]


def test_a_recipe_of_ours_gives_way_to_what_people_say(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"origin_prompt": "Capital?", "prediction": "Oslo.", "draft": "Rome."}\n')
    assert [record.item.answer for record in _records(path)] == ["Oslo."]
    assert [record.item.question for record in _records(path)] == ["Capital?"]
    assert [record.item.answer for record in _records(path, column=["answer=draft"])] == ["Rome."]


def _cases() -> list[tuple[str, str, str]]:
    cases = map(json.loads, _CASES.read_text("utf-8").splitlines())
    plain = (case for case in cases if not {"files", "args", "steps", "python"} & _filled(case))
    return [(case["name"], case["file"], case["content"]) for case in plain if "content" in case]


def _filled(case: dict[str, object]) -> set[str]:
    return {name for name, value in case.items() if value}


def test_by_the_recipe_of_a_file_it_is_read_as_before(tmp_path: Path) -> None:
    by_columns = n_read = 0
    for name, file, content in _cases():
        path = tmp_path / name / file
        path.parent.mkdir()
        path.write_text(content, "utf-8")
        try:
            records = _records(path)
        except SpanlabError:
            continue
        text = recipe_of(path, _quiet())
        assert _records(path, recipe=_saved(tmp_path, text)) == records, name
        n_read += 1
        by_columns += "[columns]" in text
    assert n_read > 200
    assert by_columns > n_read / 2
