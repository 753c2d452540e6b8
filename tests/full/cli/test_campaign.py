"""How far people are with a dataset, at the command line."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_a_campaign_is_shown_and_steered(
    spanlab: Run,
    tmp_path: Path,
    write: Callable[..., Path],
    record: Callable[..., dict[str, object]],
) -> None:
    marked = {"start": 4, "end": 9, "text": "tower", "prob": 1.0}
    says = [
        {"annotator": name, "kind": kind, "status": "done", "spans": [marked]}
        for name, kind in (("gold", "gold"), ("anna", "person"))
    ]
    answer = "The tower leans."
    items = [record(n, answer, annotations=says if n < 3 else []) for n in range(1, 7)]
    path = write(tmp_path / "items.jsonl", *items)
    assert spanlab("import", path, "--dataset", "mine").returncode == 0
    assert "No review plan" in spanlab("campaign", "mine").stdout
    plan = ("--overlap", "1", "--assign", "anna", "--assign", "Ben")
    for n_people, words in ((2, "do not see other people's marks."), (1, "see other people's")):
        planned = spanlab("datasets", "mine", *plan, "--overlap", n_people)
        assert f"Reviewers {words}" in planned.stderr
    known = ("--known", "share=.25", "--known", "test_items=2", "--known", "retry=no")
    found = spanlab("campaign", "mine", *known, "--json")
    figures = json.loads(found.stdout)
    assert (figures["needed"], figures["done"]) == (4, 0)
    assert figures["people"][0]["known"] == 1.0
    assert "Check items" in spanlab("campaign", "mine").stdout
    rows = list(csv.DictReader(io.StringIO(spanlab("campaign", "mine", "--remind").stdout)))
    assert [(row["Person"], row["Remaining"]) for row in rows] == [("anna", "2"), ("Ben", "2")]
    exported = spanlab("export", "mine", "-o", "new.jsonl", "--no-known-items")
    assert "left out 2 items that are check items, and by the choice" in exported.stderr
    assert len((tmp_path / "new.jsonl").read_text().splitlines()) == 4
    assert spanlab("export", "mine", "-o", "all.jsonl").returncode == 0
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 6
    asked = spanlab("campaign", "mine", "--take-back", "Ben")
    assert asked.returncode == 2
    assert "2 items of Ben, assigned and not finished, will go to anna (2)" in asked.stderr
    assert "Add --yes" in asked.stderr
    taken = spanlab("campaign", "mine", "--take-back", "Ben", "--yes", "--json")
    assert [who["left"] for who in json.loads(taken.stdout)["people"]] == [4, 0]
    back = spanlab("campaign", "mine", "--give-back", "Ben", "--let-in", "Ben", "--json")
    assert [who["left"] for who in json.loads(back.stdout)["people"]] == [2, 2]
    assert "Ben gets 2 items of the plan again (anna -2)." in back.stderr
    stays = spanlab("campaign", "mine", "--give-back", "Ben")
    assert "no items of 'Ben' were reassigned in 'mine'; reassigned: none" in stays.stderr
    assert json.loads(back.stdout)["people"][1]["test"] == "waived"
    for value, said in (
        ("share=.9", "share: it should be less than or equal to 0.5"),
        (
            "shares=.1",
            "shares: there is no such field; available: labels, share, warn_below",
        ),
        ("share", "--known must be NAME=VALUE, got 'share'"),
    ):
        wrong = spanlab("campaign", "mine", "--known", value)
        assert (wrong.returncode, said in wrong.stderr) == (2, True), wrong.stderr
    refused = spanlab("campaign", "mine", "--blind", "ask")
    assert 'check items need "Other people\'s marks: Always hidden"' in refused.stderr
    mistyped = spanlab("campaign", "mine", "--known", "labels=gpld")
    assert mistyped.returncode == 2
    assert "there is no check item yet: nothing is labelled by “gpld”" in mistyped.stderr
    right = spanlab("campaign", "mine", "--known", "labels=gold")
    assert "2 check items, with labels of “gold”" in right.stderr
    assert "People who compare their lists" in right.stderr  # one person has each item
    assert spanlab("campaign", "mine", "--known", "none").returncode == 0
    assert spanlab("export", "mine", "-o", "all.jsonl").returncode == 0
    assert len((tmp_path / "all.jsonl").read_text().splitlines()) == 6
    for rule, words in (("ask", "if they ask for them"), ("never", "from the start")):
        said = f"Reviewers see other people's marks {words}"
        assert said in spanlab("campaign", "mine", "--blind", rule).stderr
    assert "no dataset named" in spanlab("campaign", "yours").stderr
