"""Recipes: how files of one kind are read, in TOML.

    records = "results.items"
    turns = "all"
    hallucinated_if = ["verdict=bad"]

    [columns]
    answer = "output.text"
    passages = "docs.content"

A recipe has options of reading that say what a file's fields mean, by their names in
``ReadOptions``; what is said beside it goes before. ``spanlab import --dry-run`` writes one.

Those in this folder also say what their files are called (``title``) and which paths these have
and others lack (``has``): such files are read by their ``columns`` without a word. ``judged`` names
the form in which parts of their answers are judged, or lists of them that stand beside each other:

    [judged]
    texts = "sentences"   # the first that is named
    verdicts = "correct"
    right = ["true"]      # words of verdicts that are not wrong
    labels = "types"      # of what is wrong, and notes; other columns are read as well
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

from spanlab.base.errors import InputError

# Which files are beside one, and what becomes of wrong records, is said for each import.
PARTS: Final = (
    *("format", "encoding", "records", "speaker", "turns", "hallucinated_if", "common_labels"),
    "columns",
)
_ABOUT: Final = ("title", "has", "judged")  # which files it is for, how their parts are judged


def known_for(paths: Collection[str]) -> Mapping[str, Any]:
    """Return the recipe in this folder whose files have such paths; an empty one for none."""
    recipes = (recipe for recipe in known_recipes().values() if recipe["has"] <= {*paths})
    return next(recipes, {})


def columns_of_known(paths: Collection[str]) -> Mapping[str, str]:
    """Return the columns of the recipe whose files have such paths; none if there is none."""
    columns = known_for(paths).get("columns", {})
    return {field: column for field, column in columns.items() if column in paths}


@cache
def known_recipes() -> Mapping[str, dict[str, Any]]:
    """Return the recipes in this folder by the names of their files."""
    known = {}
    for path in sorted(Path(__file__).parent.glob("*.toml")):
        recipe = tomllib.loads(path.read_text("utf-8"))
        known[path.stem] = recipe | {"has": frozenset(recipe["has"])}
    return known


def recipe_in(content: bytes, name: str) -> dict[str, Any]:
    """Return the options that a recipe has, of which ``checked_recipe`` looks at the values.

    Args:
        content: the recipe.
        name: what to call it in messages.

    Raises:
        InputError: it is no TOML, or has something else than options; names the field.
    """
    try:
        recipe = tomllib.loads(content.decode())
    except ValueError as error:
        raise InputError(f"is not valid TOML: {error}", file=name) from None
    for field in recipe:
        if field not in (*PARTS, *_ABOUT):
            raise InputError(
                "a recipe has no such field",
                file=name,
                field=field,
                expected=f"one of {', '.join(PARTS)}",
            )
    return {name: value for name, value in recipe.items() if name in PARTS}


def as_toml(
    options: Mapping[str, Any], remark: str = "", why: Mapping[str, str] | None = None
) -> str:
    """Return options as a recipe, with a remark above, and behind columns why they were guessed."""
    behind = {field: f"  # {told}" for field, told in (why or {}).items()}
    lines = [f"# {remark}"] if remark else []
    lines += [
        f"{name} = {_value(options[name])}"
        for name in PARTS
        if name in options and name != "columns"
    ]
    if columns := options.get("columns"):
        lines += [""] * bool(lines) + ["[columns]"]
        named = columns.items()
        lines += [f"{field} = {_value(column)}{behind.get(field, '')}" for field, column in named]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    """Return a text, a truth value or a list of texts as TOML, which has JSON's escapes."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
