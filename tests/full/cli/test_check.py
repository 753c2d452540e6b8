"""`spanlab check`: one answer is judged at once, with the evidence."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from pdf_files import pdf

import spanlab as library
from spanlab.base.errors import PageError
from spanlab.search.addresses import ALLOWED
from spanlab.testing import ModelServer, say_fields

Run = Callable[..., subprocess.CompletedProcess[str]]
PASSAGE = "The Eiffel Tower in Paris was finished in March 1889."
WRONG, RIGHT = (PASSAGE.replace("1889", year) for year in ("1925", "1889"))


@pytest.fixture
def passage(tmp_path: Path) -> Path:
    path = tmp_path / "eiffel.txt"
    path.write_text(PASSAGE, encoding="utf-8")
    return path


def test_what_is_wrong_is_marked_with_what_stands_instead(spanlab: Run, passage: Path) -> None:
    done = spanlab("check", WRONG, "--passage", passage, COLUMNS="200")
    assert done.returncode == 3, done.stderr
    marked, header, row = done.stdout.splitlines()
    assert marked == "The Eiffel Tower in Paris was finished in March ⟦1925⟧."
    assert header.split() == ["Text", "Probability", "Label", "Evidence"]
    assert row.startswith("1925 ")
    assert row.endswith(f"passage 1: {PASSAGE}")
    done = spanlab("check", RIGHT, "--passage", passage)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [RIGHT, "Nothing is marked."]


def test_an_answer_from_standard_input_becomes_a_record_that_import_reads(
    spanlab: Run, passage: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{WRONG}\n"))
    done = spanlab("check", "--passage", passage, "--question", "When?", "--lang", "en", "--json")
    assert done.returncode == 3, done.stderr
    record = json.loads(done.stdout)
    assert (record["answer"], record["question"], record["lang"]) == (WRONG, "When?", "en")
    assert record["passages"] == [{"text": PASSAGE}]
    (annotation,) = record["annotations"]
    assert annotation["annotator"] == "offline"
    assert annotation["spans"][0]["text"] == "1925"
    (tmp_path / "checked.jsonl").write_text(done.stdout, encoding="utf-8")
    assert spanlab("import", "checked.jsonl", "--dataset", "d").returncode == 0


def test_reasoning_before_an_answer_is_not_judged_and_this_is_said(
    spanlab: Run, passage: Path
) -> None:
    done = spanlab("check", f"<think>Was it in 1789?</think>\n\n{RIGHT}", "--passage", passage)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[:2] == [RIGHT, "Nothing is marked."]
    assert "the reasoning before the answer was not judged" in done.stderr
    done = spanlab("check", "<think>Was it in 1789?", "--passage", passage)
    assert done.returncode == 1
    assert "the model's reasoning does not end in an answer" in done.stderr


def test_a_saved_page_is_read_as_a_page_and_a_files_name_is_no_answer(
    spanlab: Run, tmp_path: Path
) -> None:
    page = f"<style>body {{width: 1925px}}</style><p>{PASSAGE}</p>"
    (tmp_path / "saved.html").write_text(page, encoding="utf-8")
    done = spanlab("check", WRONG, "--passage", tmp_path / "saved.html")
    assert done.returncode == 3, done.stderr
    assert "⟦1925⟧" in done.stdout
    assert "style" not in done.stdout
    (tmp_path / "answer.txt").write_text(WRONG, encoding="utf-8")
    done = spanlab("check", tmp_path / "answer.txt", "--passage", tmp_path / "saved.html")
    assert done.returncode == 2
    assert "is a file, and answers are texts: spanlab check - < " in done.stderr


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """The files of this test, served to whoever asks; gives host and port."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_a_pdf_and_a_web_page_are_passages(spanlab: Run, tmp_path: Path, site: str) -> None:
    (tmp_path / "eiffel.pdf").write_bytes(pdf(f"BT /F1 12 Tf 72 700 Td ({PASSAGE}) Tj ET".encode()))
    (tmp_path / "page.txt").write_text(PASSAGE, encoding="utf-8")
    page = f"http://{site}/page.txt"
    refused = spanlab("check", WRONG, "--passage", page)
    assert refused.returncode == 1
    assert "127.0.0.1, which is not public" in refused.stderr
    for source, about in (
        ("eiffel.pdf", {"title": "eiffel.pdf"}),
        (page, {"url": page}),
        (f"http://{site}/eiffel.pdf", {"url": f"http://{site}/eiffel.pdf"}),
    ):
        done = spanlab("check", WRONG, "--passage", source, "--json", **{ALLOWED: site})
        assert done.returncode == 3, done.stderr
        record = json.loads(done.stdout)
        assert record["passages"] == [{"text": PASSAGE, **about}]
        assert [span["text"] for span in record["annotations"][0]["spans"]] == ["1925"]


def test_in_python_files_and_pages_are_read_as_well(
    passage: Path, site: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path / "home"))
    page = f"http://{site}/{passage.name}"
    with pytest.raises(PageError, match="not public"):
        library.check(WRONG, page)
    monkeypatch.setenv(ALLOWED, site)
    several: list[str | Path] = ["Rome is old.", passage]
    for passages in (PASSAGE, passage, page, several):
        assert str(library.check(WRONG, passages)).endswith("March ⟦1925⟧.")
    assert library.check(RIGHT, PASSAGE).spans == ()
    with pytest.warns(UserWarning, match="is taken for a text, and is a file's name, too"):
        library.check(RIGHT, str(passage))
    empty: tuple[list[str] | None, ...] = (None, [])
    for nothing in empty:
        assert library.detect(WRONG, passages=nothing, question=None, lang=None).status == "done"


def test_a_source_without_text_and_a_broken_one_are_told_by_name(
    spanlab: Run, tmp_path: Path, passage: Path
) -> None:
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "broken.pdf").write_bytes(b"%PDF-1.4 nonsense")
    for name, why in (
        ("empty.txt", "this file has no text"),
        ("broken.pdf", "cannot read this PDF"),
    ):
        done = spanlab("check", WRONG, "--passage", str(passage), "--passage", name)
        assert done.returncode == 1 and f"{name}: {why}" in done.stderr, done.stderr


@pytest.mark.parametrize(
    ("content", "told"),
    [
        pytest.param(
            None,
            "there is no such file; expected a file or a public web address; put a text into a "
            "file",
            id="missing",
        ),
        pytest.param(b"caf\xe9", "neither PDF nor UTF-8 text", id="latin-1"),
    ],
)
def test_a_passage_that_cannot_be_read_is_told_in_words(
    spanlab: Run, tmp_path: Path, content: bytes | None, told: str
) -> None:
    if content is not None:
        (tmp_path / "p.txt").write_bytes(content)
    done = spanlab("check", WRONG, "--passage", "p.txt")
    assert done.returncode == 1
    assert done.stderr.strip() == f"spanlab: p.txt: {told}"


def test_a_model_may_judge_it(spanlab: Run, passage: Path, model_server: ModelServer) -> None:
    model_server.script(lambda ask: say_fields(parts=["Paris"]))
    environ = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    asking = ("--detector", "ucsc-extract", "--model", "scripted")
    done = spanlab("check", RIGHT, "--passage", passage, *asking, **environ)
    assert done.returncode == 3, done.stderr
    assert "in ⟦Paris⟧ was" in done.stdout
    assert model_server.count == 1
    model_server.script(lambda ask: say_fields(parts=["Rome"]))
    failed = spanlab("check", WRONG, "--passage", passage, *asking, **environ)
    assert failed.returncode == 1
    assert "ucsc-extract failed" in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("",), "there is no answer to check"),
        (("An answer.", "--passage", "nowhere.txt"), "nowhere.txt"),
        (("An answer.", "--passage", "picture.png"), "picture.png: neither PDF nor UTF-8 text"),
        (("An answer.", "--passage", "scan.pdf"), "scan.pdf: this PDF has no text"),
        (("An answer.", "--lang", "not a tag"), "lang"),
        (("An answer.", "--detector", "offline", "--detector", "ucsc"), "one detector"),
    ],
)
def test_what_cannot_be_checked_is_refused(
    spanlab: Run, tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    (tmp_path / "picture.png").write_bytes(b"\x89PNG\r\n")
    (tmp_path / "scan.pdf").write_bytes(pdf(b""))
    done = spanlab("check", *arguments)
    assert done.returncode in {1, 2}
    assert told in done.stderr
    assert not done.stdout


def test_sources_have_the_numbers_by_which_the_answer_cites_them(
    spanlab: Run, passage: Path, tmp_path: Path
) -> None:
    other = tmp_path / "bridge.txt"
    other.write_text("The bridge was opened in 1932 by the mayor of the town.", encoding="utf-8")
    answer = f"{RIGHT[:-1]} [3]. The bridge was opened in 1958 [1]. It is red [2]."
    sources = ("--source", f"3={passage}", "--source", f"1={other}")
    done = spanlab("check", answer, *sources, COLUMNS="200")
    assert done.returncode == 3, done.stderr
    marked, _, row = done.stdout.splitlines()
    assert marked == answer.replace("1958", "⟦1958⟧")
    assert "not in the cited source" in row
    assert "passage 1: The bridge was opened in 1932" in row
    assert "not judged, as the text of their sources is not given: 2" in done.stderr


@pytest.mark.parametrize(
    ("sources", "problem"),
    [
        (("report.txt",), "a number and a file are expected: 1=report.pdf"),
        (("0={}",), "the number 0 is not from 1 to 999"),
        (("1={}", "1={}"), "the number 1 is given twice"),
        (("x={}",), "a number and a file are expected"),
    ],
    ids=["no number", "zero", "twice", "a word"],
)
def test_a_source_without_a_number_of_its_own_is_refused(
    spanlab: Run, passage: Path, sources: tuple[str, ...], problem: str
) -> None:
    given = [part for source in sources for part in ("--source", source.format(passage))]
    done = spanlab("check", RIGHT, *given)
    assert done.returncode != 0
    assert problem in done.stderr
    both = spanlab("check", RIGHT, "--source", f"1={passage}", "--passage", passage)
    assert "by --source, with their numbers, or by --passage" in both.stderr


@pytest.mark.system("ucsc")
def test_a_budget_ends_it_with_the_status_of_a_budget(
    spanlab: Run, passage: Path, model_server: ModelServer
) -> None:
    model_server.script(lambda ask: say_fields(correction="Paris is old.", parts=["Paris"]))
    environ = {name: os.environ[name] for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY")}
    asking = ("--detector", "ucsc-kg", "--model", "scripted", "--max-calls", "0")
    done = spanlab("check", RIGHT, "--passage", passage, *asking, **environ)
    assert (done.returncode, done.stdout) == (3, "")
    assert "budget" in done.stderr


def test_a_number_without_passages_is_not_called_wrong(spanlab: Run) -> None:
    done = spanlab("check", "Paris has 3 million inhabitants, as of 1850.")
    assert done.returncode == 3, done.stderr
    assert "⟦" in done.stdout
    assert "wrong" not in done.stdout
