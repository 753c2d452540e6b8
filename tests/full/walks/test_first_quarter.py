"""The first quarter of an hour with the README alone: its lines, typed in an empty folder.

A researcher has a published file, a team of developers traces, a data scientist a notebook, and an
engineer tests, and a lead has three people. What the lead's team does in browsers is in
``tests/full/browser/test_invited_team.py``.
"""

from __future__ import annotations

import csv
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from functools import partial
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener, urlopen

import guide_blocks
import pytest
import readme
from commands import run_here, serving
from forks import run_forked
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from ports import free_port
from recorded_spans import RECORDED, recorded_spans
from trace_homes import KEYS, living

from spanlab import load
from spanlab.oplog.operations import FinishItem, SentOperation
from spanlab.people import logins
from spanlab.review.span_editor import EditorMessage, ReviewQueue, exchange
from spanlab.schema import QueueQuery
from spanlab.storage import Store
from spanlab.worklists.names import item_names

ROOT = Path(__file__).resolve().parents[3]
PHOENIX = "http://localhost:6006"  # as the README names it


@pytest.fixture
def around(tmp_path: Path) -> dict[str, str]:
    """All environment variables of somebody who has set none for spanlab."""
    ours = ("SPANLAB_", "OPENAI_", "OTEL_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"COLUMNS": "120"}


def typed(command: str, folder: Path, around: dict[str, str]) -> str:
    """Run a line of the README as it stands; return what it prints, errors and remarks first."""
    words = shlex.split(command, comments=True)
    assert words.pop(0) == "spanlab"
    done = run_here(words, folder, around)
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return f"{done.stderr}\n{done.stdout}"


def some_samples(folder: Path) -> list[str]:
    """Write every third sample where the README has them; return the lines."""
    lines = (ROOT / "data" / "samples.jsonl").read_text("utf-8").splitlines(keepends=True)[::3]
    (folder / "data").mkdir()
    (folder / "data" / "samples.jsonl").write_text("".join(lines), "utf-8")
    return lines


# A researcher --------------------------------------------------------------------------------


def published_file(folder: Path, shared: Path) -> None:
    """The real English validation set, with what a team retrieved for it."""
    name = "mushroom.en-val.v2.jsonl"
    (folder / name).symlink_to(shared / "mushroom" / "val" / name)
    contexts = shared / "mushroom" / "context" / "en-val.v2_perplexity-sonar-pro"
    (folder / "contexts").symlink_to(contexts)


def small_file(folder: Path) -> None:
    """Two items in the form of the published ones."""
    built, tall = "The tower was built in 1989.", "The tower is 330 metres tall."
    marks: dict[str, dict[str, Any]] = {
        built: {"hard_labels": [[23, 27]], "soft_labels": [{"start": 23, "end": 27, "prob": 1.0}]},
        tall: {"hard_labels": [], "soft_labels": []},
    }
    items: list[dict[str, Any]] = [
        {
            "id": f"val-en-{number}",
            "lang": "EN",
            "model_input": "What of the tower?",
            "model_output_text": answer,
            "model_id": f"maker/model-{number}",
            "annotations": {"first": labels["hard_labels"], "second": labels["hard_labels"]},
            **labels,
        }
        for number, (answer, labels) in enumerate(marks.items(), 1)
    ]
    lines = "".join(f"{json.dumps(item)}\n" for item in items)
    (folder / "mushroom.en-val.v2.jsonl").write_text(lines, "utf-8")
    (folder / "contexts").mkdir()
    for item in items:
        passage = "The tower was built in 1889. The tower is 330 metres tall."
        (folder / "contexts" / f"{item['id']}.context.txt").write_text(passage, "utf-8")


@pytest.mark.parametrize(
    ("source", "items", "iou"),
    [
        ("small", 2, (1.0, 1.0)),
        pytest.param("published", 50, (0.35, 0.6), marks=pytest.mark.needs_shared),
    ],
)
def test_a_researcher_scores_a_detector_on_mu_shroom(
    source: str,
    items: int,
    iou: tuple[float, float],
    tmp_path: Path,
    around: dict[str, str],
    request: pytest.FixtureRequest,
) -> None:
    if source == "published":
        published_file(tmp_path, request.getfixturevalue("shared"))
    else:
        small_file(tmp_path)
    imported, annotated, scored, rates, exported = (
        typed(command, tmp_path, around) for command in readme.commands("You have a file")
    )
    assert f"imported {items} items into 'en'" in imported
    for field in ("soft_labels", "hard_labels", "annotations"):
        assert f"; {field} → labels;" in imported
    assert "WARNING" not in imported  # the passages are there
    assert f"offline annotated {items} items of 'en'" in annotated
    figure = iou_of(scored)
    assert iou[0] <= figure <= iou[1]
    assert "Hallucinations by model according to gold" in rates
    assert f"wrote {items} items" in exported
    # Who sends it in is scored as here.
    submitted = "spanlab score submission.jsonl mushroom.en-val.v2.jsonl"
    assert iou_of(typed(submitted, tmp_path, around)) == figure


def iou_of(scores: str) -> float:
    """Return the first figure of the row of all languages."""
    (figure,) = re.findall(r"^macro +\d+ +([\d.]+)", scores, re.MULTILINE)[:1]
    return float(figure)


# A team whose pipeline is traced -------------------------------------------------------------


def test_a_team_sends_its_traces_and_gets_rates_and_verdicts(
    tmp_path: Path, around: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    serve, annotate, rates, push, export = readme.commands("You have traces")
    port = str(free_port())
    key, _, *words = shlex.split(serve.replace("8600", port))
    listening = around | dict([key.split("=")])
    spans = [
        span
        for name in ("openinference-lcel", "lli-rag", "pydantic")  # three programs
        for span in recorded_spans(RECORDED / f"{name}.console.json")
    ]
    with serving(words, tmp_path, listening) as said, living() as homes:
        await_server(f"http://127.0.0.1:{port}/readyz")
        (shown,) = (block for block in guide_blocks.blocks("api", "text") if "OTEL_" in block)
        assert shown.replace("8600", port) in said()
        for name, value in re.findall(r"^  (OTEL_\w+)=(.*)$", said(), re.MULTILINE):
            monkeypatch.setenv(name, value.replace("KEY", key.partition("=")[2]))
        exporter = OTLPSpanExporter()
        assert exporter.export(spans).name == "SUCCESS"
        exporter.shutdown()  # type: ignore[no-untyped-call]
        assert "offline annotated 3 items of 'rag'" in typed(annotate, tmp_path, around)
        marked = typed(rates, tmp_path, around)
        assert "Marked by offline by model" in marked
        assert "(none)" not in marked
        homes.known |= {f"{span.context.span_id:016x}" for span in spans if span.context}
        known = around | {"PHOENIX_API_KEY": KEYS["PHOENIX_API_KEY"]}
        pushed = typed(push.replace(PHOENIX, homes.url), tmp_path, known)
        assert "pushed verdicts of offline on 3 items to phoenix" in pushed
        labels = [each["result"]["label"] for each in homes.annotations.values()]
        assert labels == ["hallucinated"] * 3  # all three say 1989
    typed(export, tmp_path, around)
    assert "1989" in (tmp_path / "rag.html").read_text("utf-8")


def await_server(address: str) -> None:
    """Wait until a server that was started answers."""
    until = time.monotonic() + 60
    while True:
        try:
            urlopen(address, timeout=10).close()
        except URLError:
            assert time.monotonic() < until
            time.sleep(0.05)
        else:
            return


# A data scientist ----------------------------------------------------------------------------


def test_a_data_scientist_annotates_a_frame_in_a_notebook(
    tmp_path: Path, around: dict[str, str]
) -> None:
    lines = some_samples(tmp_path)
    (cell,) = readme.blocks("python", "You have a notebook")
    shown = "print(spanlab.plot(records[:5])._repr_html_(), spanlab.rates(records)._repr_html_())\n"
    script = tmp_path / "notebook.py"
    script.write_text(cell + shown, "utf-8")
    act = partial(runpy.run_path, str(script), run_name="__main__")
    done = run_forked([str(script)], around, tmp_path, act)
    assert done.returncode == 0, done.stderr
    assert "Hallucinations by language according to gold" in done.stdout  # the text
    assert "IoU" in done.stdout  # the frame
    assert "&lt;mark" in done.stdout and "<table" in done.stdout  # what a notebook shows
    with (tmp_path / "annotated.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["id"] for row in rows if row["annotator"] == "offline"} == {
        json.loads(line)["id"] for line in lines
    }


# An engineer ---------------------------------------------------------------------------------


def test_an_engineer_tests_answers_with_pytest(tmp_path: Path, around: dict[str, str]) -> None:
    (right,) = readme.blocks("python", "You have tests")
    (tmp_path / "test_right.py").write_text(right, "utf-8")
    wrong = right.replace("It was built in 1889", "It was built in 1989")
    assert wrong != right
    (tmp_path / "test_wrong.py").write_text(wrong, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env=around,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "1 failed, 1 passed" in done.stdout, done.stdout + done.stderr
    assert "It was built in ⟦1989⟧" in done.stdout
    assert "closest: “The tower was built in 1889.”" in done.stdout


# A lead with three people ----------------------------------------------------------------------


def test_a_lead_invites_three_people_and_gets_their_labels(
    tmp_path: Path, around: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    answers = shutil.copy(ROOT / "data" / "support.jsonl", tmp_path / "data")
    n_items = len(Path(answers).read_text("utf-8").splitlines())
    before, serve, after = around_serve(readme.commands("You have a team"))
    for command in before:
        typed(command, tmp_path, around)
    port = str(free_port())
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path / ".spanlab"))
    monkeypatch.setenv("SPANLAB_INVITE", "yes")
    monkeypatch.setenv("SPANLAB_URL", f"http://localhost:{port}")
    words = [*shlex.split(serve, comments=True)[1:], "--port", port]
    with serving(words, tmp_path, around) as said, Store.open() as store:
        while not (found := re.search(r"open this link once: (http\S+)", said())):
            time.sleep(0.05)
        lead = store.acting_as(logins.visitor(store, {}, opened(found[1])))
        end = datetime.now(UTC) + timedelta(days=7)
        links = re.findall(r"http\S+", logins.invite_all(lead, "mine", PEOPLE, end))
        assert len(links) == len(PEOPLE)
        for name, link in zip(PEOPLE, links, strict=True):
            guest = logins.visitor(store, {}, opened(link))
            finish_all(store.acting_as(guest, hides=True), name)  # as the app's store does
            assert opened(link) == ""  # a link is for one browser
    agreement, _, measured, *_ = [typed(command, tmp_path, around) for command in after]
    assert re.search(
        rf"^characters +– +{n_items} ",
        agreement,
        re.MULTILINE,  # nobody has marked anything
    )
    assert "95 %" in measured
    labelled = [said for record in load(tmp_path / "mine.jsonl") for said in record.annotations]
    assert sum(said.annotator in PEOPLE for said in labelled) == 2 * n_items


PEOPLE = ("Ada", "Ben", "Cleo")  # whom the README assigns


def around_serve(lines: list[str]) -> tuple[list[str], str, list[str]]:
    """Return the lines before the one that serves, that one, and those after it."""
    (at,) = (at for at, line in enumerate(lines) if line.startswith("spanlab serve"))
    return lines[:at], lines[at], lines[at + 1 :]


def opened(link: str) -> str:
    """Open a link in a browser of its own and go on; return the cookie, empty for a used link."""
    cookies = CookieJar()
    browser = build_opener(HTTPCookieProcessor(cookies))
    try:
        assert "Start" in browser.open(link, timeout=60).read().decode()
        sent = urlencode({"to": link.rpartition("=")[2]}).encode()
        browser.open(link.partition("?")[0], sent, timeout=60).close()
    except HTTPError as error:
        assert (error.code, error.read().count(b"no longer valid")) == (404, 1)
    return next((cookie.value or "" for cookie in cookies if cookie.name == logins.COOKIE), "")


def finish_all(mine: Store, name: str) -> None:
    """Finish what the editor offers a person, item by item, as the key for Done does."""
    settings = mine.settings("mine")
    own = QueueQuery(
        reviewer=name,
        unfinished=True,
        share=settings.share_of(name),
        listed=True,
        blind=True,
    )
    offered = partial(exchange, mine, ReviewQueue("mine", own, None), EditorMessage())
    while (handle := offered().open) is not None:
        item = item_names(mine, "mine", name).item(handle)
        done = SentOperation(f"{item}-{name}", 1, 0, FinishItem())
        assert not mine.apply("mine", item, name, [done]).refused
