"""Code in answers: what passages show of commands, options and names, and what they do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from offline_answers import LIGHTHOUSE, annotate, marked

from spanlab.formats import ReadOptions, read
from spanlab.systems.offline.code import check_code, pieces
from spanlab.systems.offline.features import question_of

MANUAL = (
    "`pack add NAME` adds a package and `pack sync` installs all; `--frozen` keeps the lock file, "
    "`-v` names the files. `pack.connect(url, retry_count=3)` returns a client; `client.fetch()` "
    "reads. In `/etc/pack/site.conf` the option `max_jobs` is 4. Variables begin with `PACK_`."
)


def fenced(language: str, code: str) -> str:
    return f"Do this:\n\n```{language}\n{code}\n```\n"


@pytest.mark.parametrize(
    ("answer", "wrong"),
    [
        pytest.param("Run `pack sync --locked`.", ["--locked"], id="flag"),
        pytest.param(fenced("sh", "pack sync --locked"), ["--locked"], id="flag-in-a-fence"),
        pytest.param("Run `pack drop httpx`.", ["drop"], id="subcommand"),
        pytest.param("Call `client.read_all()`.", ["read_all"], id="method"),
        pytest.param(
            fenced("python", "c = pack.connect(url, retries_most=3)"),
            ["retries_most"],
            id="argument",
        ),
        pytest.param(fenced("ini", "max-workers = 4\nmax_jobs = 2"), ["max-workers"], id="key"),
        pytest.param("Edit `~/.packrc`, not `max_jobs`.", ["~/.packrc"], id="path"),
        pytest.param("`max_jobs` is 8 by default.", ["8"], id="number-beside-code"),
        pytest.param("Set `max_tasks`, then `pack sync`.", ["max_tasks"], id="option"),
    ],
)
def test_what_no_passage_shows_is_made_up(answer: str, wrong: list[str]) -> None:
    annotation = annotate(answer, MANUAL)
    assert marked(annotation) == wrong
    assert [answer[part.start : part.end] for part in annotation.hard or ()] == wrong


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("Run `pack sync --frozen -v`.", id="shown"),
        pytest.param("See `/etc/pack/other.conf`, `PACK_HOME` and `max_jobs`.", id="alike"),
        pytest.param(fenced("sh", "set -e\nls --all\npack sync"), id="other-commands"),
        pytest.param(
            fenced(
                "python",
                "import json\n\ndef load_all(some_url):\n    my_client = pack.connect(some_url)\n"
                "    return json.loads(my_client.fetch().strip())\n\nload_all('x_y')",
            ),
            id="defined",
        ),
        pytest.param(fenced("python", "pack.connect('--no_such')  # or max_tasks"), id="strings"),
    ],
)
def test_what_is_shown_defined_or_the_users_own_is_right(answer: str) -> None:
    assert marked(annotate(answer, MANUAL)) == []


def test_a_manual_shows_commands_in_fences_too() -> None:
    manual = fenced("sh", "pack add NAME\npack sync --frozen")
    assert marked(annotate("Run `pack drop httpx`.", manual)) == ["drop"]


def test_the_closest_word_is_named_and_the_label_says_that_it_is_unsupported() -> None:
    (span,) = annotate("Run `pack sync --frozn`.", MANUAL).spans
    assert (span.label, span.note) == ("unsupported", "no passage has it; closest is “--frozen”")


def test_pieces_are_the_inner_characters_of_fences_and_quotes() -> None:
    answer = "Use `a b`:\n\n~~~sh\nx `y`\n~~~\nand ``c`d``.\n```py\nopen"
    assert [answer[piece.start : piece.end] for piece in pieces(answer)][:2] == ["a b", "x `y`\n"]
    assert [piece.language for piece in pieces(answer)] == [None, "sh", "py"]


def test_answers_in_prose_are_judged_as_prose(samples: Path) -> None:
    for record in read(samples, ReadOptions(on_warning=lambda message: None)):
        texts = [passage.text for passage in record.item.passages]
        assert check_code(record.item.answer, question_of(record.item), texts) is None
    assert check_code("It is `58` metres tall.", "", [LIGHTHOUSE]) is None
