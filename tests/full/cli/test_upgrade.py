"""What 1.0.0 left in its folder: database, certificate, tuned program and cached replies.

It imported six answers that "anna" had marked, let ``offline`` and ``ucsc-extract`` annotate them,
measured ``offline``, wrote the certificate, and kept a tuned program of ``ucsc-extract``.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from spanlab.testing import ModelServer, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
_STORED = Path(__file__).parent / "stored" / "home-1.0.0.tar.gz"


@pytest.fixture(autouse=True)
def _upgraded(tmp_path: Path) -> None:
    subprocess.run(["tar", "xf", _STORED, "-C", tmp_path], check=True)


def test_datasets_and_marks_of_1_0_0_are_there(spanlab: Run, tmp_path: Path) -> None:
    assert "anna" in spanlab("datasets").stdout
    done = spanlab("export", "mine", "--annotator", "anna", "-o", "anna.jsonl")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "anna.jsonl").read_text().count("1989") >= 3
    rates = spanlab("rates", "mine", "--annotators", "anna,offline", "--by", "meta.model")
    assert rates.returncode == 0, rates.stderr


def test_a_certificate_of_1_0_0_says_what_is_stale_and_what_to_do(spanlab: Run) -> None:
    stale = spanlab("measure", "mine", "--check", "certificate.json")
    assert stale.returncode == 1
    assert "the prompts or the training of offline changed" in stale.stdout
    assert "spanlab annotate mine --detector offline --again" in stale.stdout
    assert spanlab("annotate", "mine", "--detector", "offline", "--again").returncode == 0
    assert spanlab("measure", "mine", "--certificate", "new.json").returncode == 0
    assert spanlab("measure", "mine", "--check", "new.json").stdout.strip() == "still valid"


def test_a_program_of_1_0_0_is_used_and_replies_are_asked_for_once_more(spanlab: Run) -> None:
    assert "short-spans" in spanlab("programs", "list").stdout
    assert spanlab("programs", "use", "short-spans").returncode == 0
    wrong = {"text": "1989", "reason": "it was 1889", "probability": 0.9}
    words = ("annotate", "reviewed.jsonl", "--detector", "ucsc-extract", "-o", "out.jsonl")
    with ModelServer(lambda ask: say_fields(parts=[wrong])) as server:
        at = {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "any", "SPANLAB_MODEL": "scripted"}
        first = spanlab(*words, **at)
        assert "has replies to prompts of 1.0, which have changed" in first.stderr
        asked = len(server.requests)
        assert "Quote it." in server.requests[0].text  # the program's instruction
        assert "prompts of 1.0" not in spanlab(*words, **at).stderr
        assert len(server.requests) == asked > 0


def test_options_of_1_0_0_are_taken_and_say_what_to_type(spanlab: Run) -> None:
    assert spanlab("annotators", "gold", "mine", "anna", "--to", "known").returncode == 0
    words = ("--test-items", "1", "--pass-at=.5", "--retry")
    done = spanlab("campaign", "mine", *words)
    told = "--test-items is deprecated: type --known test_items=1"
    assert (done.returncode, told in done.stderr) == (0, True), done.stderr
    now = spanlab("campaign", "mine", "--known", "test_items=1")
    assert (now.returncode, "deprecated" in now.stderr) == (0, False), now.stderr
    key = spanlab("keys", "create", "--role", "lead", "--expires", "2w")
    assert (key.returncode, "--expires is deprecated: type --days 14" in key.stderr) == (0, True)


def test_invitations_and_the_table_of_people_are_written_as_in_1_0_0(spanlab: Run) -> None:
    at = {"SPANLAB_INVITE": "yes", "SPANLAB_URL": "http://localhost:8501"}
    words = ("create", "mine", "--expires", "7d", "--label", "Zoe")
    made = spanlab("invitations", *words, **at)
    assert "--expires is deprecated: type --days 7" in made.stderr
    assert made.stdout.startswith("http://localhost:8501/")
    listed = spanlab("invitations", "list").stdout
    (row,) = (line for line in listed.splitlines() if "Zoe" in line)
    assert spanlab("invitations", "revoke", row.split()[0]).returncode == 0
    assert "revoked" in spanlab("invitations", "list").stdout
    table = spanlab("campaign", "mine", "--csv")
    assert "--csv is deprecated" in table.stderr
    assert table.stdout.splitlines()[0].startswith('"Person","Needs attention"')
