"""What a model or a package says wrongly costs its item at most, never the run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import run_here

from spanlab.schema import Item, Record, Status
from spanlab.storage import Store
from spanlab.testing import ModelServer, in_turn, say

CONTRACT = 'user = "{answer}"\nspans = "errors"\ntext = "quote"\nlabel = "kind"\nnote = "why"\n'


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("wrong\ndate", "wrong date"),
        (" wrong\t\x00 date\u2028", "wrong date"),
        ("d" * 300, "d" * 199 + "…"),
        ("\n", None),
    ],
)
def test_a_label_with_a_line_break_is_one_line_and_the_run_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, label: str | None
) -> None:
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SPANLAB_DATABASE_URL", raising=False)
    (tmp_path / "contract.toml").write_text(CONTRACT)
    marked = json.dumps({"errors": [{"quote": "1989", "kind": kind, "why": "no\x00 \ud83d"}]})
    nothing = json.dumps({"errors": []})
    with ModelServer(in_turn(say(marked), say(nothing))) as server, Store.open() as store:
        items = [Item(id=f"i{n}", answer=f"Built in 1989, {n}.") for n in range(2)]
        store.import_records("d", [Record(item=item) for item in items])
        done = run_here(
            [
                *("annotate", "d", "--detector", "span-model", "--model", "small"),
                *("--option", "contract=contract.toml"),
                *("--concurrency", "1"),
            ],
            tmp_path,
            {
                "SPANLAB_HOME": str(tmp_path / "home"),
                "OPENAI_API_KEY": "k",
                "OPENAI_BASE_URL": server.url,
            },
        )
        found = [record.by("span-model") for record in store.records("d")]
    assert done.returncode == 0, done.stderr
    assert [said and said.status for said in found] == [Status.DONE, Status.DONE]
    assert found[0]
    assert [span.label for span in found[0].spans] == [label]
