"""What other versions of spanlab have annotated is told of before the rest is done."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import run_here

from spanlab.schema import DatasetSettings, Item, Record
from spanlab.storage import Store

pytestmark = pytest.mark.system("offline")


def _by_an_earlier_one(settings: DatasetSettings) -> DatasetSettings:
    setups = tuple(each.model_copy(update={"version": "0.9.1"}) for each in settings.setups)
    return settings.model_copy(update={"setups": setups})


def test_items_of_an_earlier_version_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = {"SPANLAB_HOME": str(tmp_path / "home")}
    monkeypatch.setenv("SPANLAB_HOME", home["SPANLAB_HOME"])
    monkeypatch.delenv("SPANLAB_DATABASE_URL", raising=False)
    items = (Item(id=f"i{n}", lang="en", answer=f"Oslo has {n} hills.") for n in range(6))
    with Store.open() as store:
        store.import_records("d", (Record(item=item) for item in items))

    def annotate(*words: str) -> str:
        done = run_here(["annotate", "d", "--detector", "offline", *words], tmp_path, home)
        assert done.returncode == 0, done.stderr
        return " ".join(done.stderr.split())

    assert "annotated by spanlab" not in annotate("--limit", "2")
    assert "annotated by spanlab" not in annotate("--limit", "1")
    with Store.open() as store:
        store.change_settings("d", _by_an_earlier_one)
    said = "3 items that offline has finished: annotated by spanlab 0.9.1, and stay so; --again"
    assert said in annotate("--limit", "1")
    assert "some of 4 items that offline has finished: annotated by" in annotate()
    assert "annotated by spanlab" not in annotate("--again")
    assert "annotated by spanlab" not in annotate()
