"""A variable that is nearly named as one of ours is told of: it would count for nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run_here
from guide_parts import variables, variables_of_roles

from spanlab.base.settings import misspelt


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("SPANLAB_DATABASE", "SPANLAB_DATABASE_URL"),
        ("SPANLAB_MODLE", "SPANLAB_MODEL"),
        ("SPANLAB_ALOWED_HOSTS", "SPANLAB_ALLOWED_HOSTS"),
        ("SPANLAB_HOMES", "SPANLAB_HOME"),
        ("SPANLAB_DATABASE_FILE", "SPANLAB_DATABASE_URL_FILE"),
    ],
)
def test_the_variable_that_was_meant_is_named(tmp_path: Path, given: str, meant: str) -> None:
    done = run_here(["datasets"], tmp_path, {given: "x", "SPANLAB_HOME": str(tmp_path)})
    assert done.returncode == 0
    assert f"spanlab: {given} is not read; {meant} is\n" in done.stderr


def test_others_are_not_told_of() -> None:
    own = {*variables(), *variables_of_roles()}
    assert len(own) > 60
    others = {
        "SPANLAB_SHARED",
        "SPANLAB_HOST",
        "SPANLAB_PICTURES",
        "DATABASE",
        "SPANLAB_API_KEY_FILE",
    }
    assert list(misspelt(dict.fromkeys(own | others, "x"))) == []
