"""Detectors are asked for by name."""

from __future__ import annotations

import subprocess
import sys
from pkgutil import resolve_name

import pytest

from spanlab.base.errors import InputError, UsageError
from spanlab.detection import detector, entries


@pytest.mark.system("offline")
def test_every_name_that_needs_nothing_gives_a_detector_of_that_name() -> None:
    local = [entry.name for entry in entries() if not entry.asks_models]
    assert local
    bare = {entry.name for entry in entries() if not entry.required}
    for name in bare & {*local}:
        assert detector(name).name == name
    for name in {*local} - bare:
        with pytest.raises(InputError, match="no checkpoint is named; expected model=FOLDER"):
            detector(name)


@pytest.mark.system("offline")
def test_the_same_name_gives_the_same_detector() -> None:
    assert detector("offline") is detector("offline")


def test_unknown_name_lists_the_known_ones_and_the_closest() -> None:
    name = next(iter(entries())).name
    with pytest.raises(UsageError, match=rf"; available: .*{name}.*; did you mean '{name}'"):
        detector(name[:-1])


def test_name_like_no_other_gets_no_suggestion() -> None:
    with pytest.raises(UsageError) as caught:
        detector("zzz")
    assert "did you mean" not in str(caught.value)


@pytest.mark.system("offline")
def test_asking_for_the_offline_detector_does_not_load_spacy() -> None:
    code = (
        "import sys; from spanlab.detection import detector; detector('offline');"
        "sys.exit('spacy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_what_builds_a_detector_is_there_where_its_entry_says() -> None:
    places = [entry.create for entry in entries() if isinstance(entry.create, str)]
    assert places
    for place in places:
        assert callable(resolve_name(place))
