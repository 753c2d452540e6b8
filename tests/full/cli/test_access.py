"""Roles, keys and the log at the command line, by the owner of the database."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., subprocess.CompletedProcess[str]]


def test_roles_are_given_listed_and_taken_back(spanlab: Run) -> None:
    assert spanlab("roles", "grant", "Anna@example.org", "viewer").returncode == 0
    listed = spanlab("roles", "list").stdout
    assert "email:anna@example.org  viewer  all datasets" in listed
    assert spanlab("roles", "revoke", "anna@example.org", "viewer").returncode == 0
    again = spanlab("roles", "revoke", "anna@example.org", "viewer")
    assert (again.returncode, "have the role viewer for all datasets" in again.stderr) == (1, True)
    unknown = spanlab("roles", "grant", "Anna", "viewer")
    assert (unknown.returncode, "nobody called 'Anna' has logged in" in unknown.stderr) == (1, True)
    wrong = spanlab("roles", "grant", "a@b.org", "viewer", "--dataset", "none")
    assert (wrong.returncode, "no dataset named 'none'" in wrong.stderr) == (1, True)


def test_a_key_is_shown_once_and_the_log_never_has_it(spanlab: Run) -> None:
    made = spanlab("keys", "create", "--role", "viewer", "--label", "board", "--days", "2")
    key = made.stdout.strip()
    assert key.startswith("sl-")
    listed = spanlab("keys", "list").stdout
    (line,) = (line for line in listed.splitlines() if "board" in line)
    assert "valid" in line
    assert spanlab("keys", "revoke", line.split()[0]).returncode == 0
    assert "revoked" in spanlab("keys", "list").stdout
    log = spanlab("log").stdout
    assert "key made" in log
    assert "key revoked" in log
    assert key not in listed + log
    assert spanlab("keys", "revoke", "none").returncode == 1
    late = spanlab("keys", "create", "--role", "viewer", "--days", "0")
    assert (late.returncode, "--days" in late.stderr) == (2, True)


def test_a_name_that_exists_is_given_to_the_same_person_alone(spanlab: Run, tmp_path: Path) -> None:
    served = {"SPANLAB_INVITE": "yes", "SPANLAB_URL": "http://localhost:8501"}
    (tmp_path / "n.csv").write_text("id,answer,hallucinated_text\n1,Oslo is big.,big\n")
    assert spanlab("import", tmp_path / "n.csv", "--dataset", "n").returncode == 0
    by_ben = ("--as", "Ben", "--kind", "person")
    assert spanlab("import", tmp_path / "n.csv", "--dataset", "n", *by_ben).returncode == 0
    refused = spanlab("invitations", "create", "n", "--label", "Ben", **served)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "somebody is called “Ben” already: with --same-person" in refused.stderr
    made = spanlab("invitations", "create", "n", "--label", "Ben", "--same-person", **served)
    assert made.returncode == 0, made.stderr
    listed = spanlab("invitations", "list").stdout
    assert "Ben" in listed
    assert "Ben (2)" not in listed
    typo = spanlab("invitations", "create", "n", "--label", "Benn", "--same-person", **served)
    assert (typo.returncode, "nobody is called “Benn”" in typo.stderr) == (2, True)


def test_a_link_to_a_report_says_where_the_app_is_thought_to_be(
    spanlab: Run, tmp_path: Path
) -> None:
    (tmp_path / "n.csv").write_text("id,answer\n1,Oslo is big.\n")
    assert spanlab("import", tmp_path / "n.csv", "--dataset", "n").returncode == 0
    made = spanlab("reports", "create", "n")
    assert made.stdout.startswith("http://localhost:8501/")
    assert "SPANLAB_URL is not set: if the app is not at http://localhost:8501" in made.stderr
    told = spanlab("reports", "create", "n", SPANLAB_URL="http://localhost:9000/")
    assert told.stdout.startswith("http://localhost:9000/r")
    assert "SPANLAB_URL" not in told.stderr
