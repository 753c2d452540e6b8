"""The scripted endpoint, as a plain HTTP client and as the author of a detector sees it."""

from __future__ import annotations

import doctest
import gc
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from threading import Event, Thread
from typing import Any
from xml.etree import ElementTree

import pytest
from cable import Cable
from forks import run_forked

import spanlab.testing
from spanlab.schema import Annotation
from spanlab.testing import MODES, ModelRequest, ModelServer, fail, in_turn, rules, say, say_fields


def post(url: str, prompt: str) -> Any:
    """Ask and return the reply's JSON."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": prompt}]})
    request = urllib.request.Request(
        f"{url}/chat/completions",
        data=body.encode(),
        headers={"Content-Type": "application/json", "Authorization": "Bearer sk-1"},
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.loads(reply.read())


def test_the_example_of_its_documentation_runs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "SPANLAB_MODEL"):
        monkeypatch.setenv(name, "set by the example")
    monkeypatch.setenv("SPANLAB_HOME", str(tmp_path))
    assert doctest.testmod(spanlab.testing) == (0, 9)


def test_it_imports_nothing_that_only_developers_have() -> None:
    program = (
        "import sys\n"
        "for name in ('pytest', 'hypothesis', 'dspy', 'openai', 'httpx'):\n"
        "    sys.modules[name] = None  # not installed\n"
        "import spanlab.testing"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_a_reply_is_a_chat_completion_with_usage(model_server: ModelServer) -> None:
    model_server.script(lambda ask: say("four", cached=2, citations=["http://a"]))
    reply = post(model_server.url, "two and two?")
    assert reply["choices"][0]["message"]["content"] == "four"
    assert reply["usage"]["prompt_tokens_details"] == {"cached_tokens": 2}
    assert reply["citations"] == ["http://a"]


def test_requests_are_kept_without_the_key(model_server: ModelServer) -> None:
    post(model_server.url, "one")
    post(model_server.url, "one")
    post(model_server.url, "two")
    assert [ask.text for ask in model_server.requests] == ["one", "one", "two"]
    assert sorted(Counter(model_server.fingerprints()).values()) == [1, 2]
    assert not any("sk-1" in str(ask.headers) for ask in model_server.requests)


def test_rules_look_at_the_prompt_and_turns_at_the_order(model_server: ModelServer) -> None:
    model_server.script(rules(("cat", say("miaow")), otherwise=in_turn(say("first"), say("then"))))
    said = [
        post(model_server.url, prompt)["choices"][0]["message"]["content"]
        for prompt in ("a dog", "a cat", "a cow", "a hen")
    ]
    assert said == ["first", "miaow", "then", "then"]


def test_a_script_that_breaks_shows_it(model_server: ModelServer) -> None:
    def broken(ask: ModelRequest) -> Any:
        raise KeyError("oops")

    answer = model_server.answer("POST", "/", {}, b"{}")
    assert answer.reply.status == 200
    model_server.script(broken)
    assert "oops" in str(model_server.answer("POST", "/", {}, b"{}").reply.body)
    assert fail(429, retry_after=2).headers == {"Retry-After": "2"}


MEANT = say_fields(parts=[{"text": "1989", "reason": "it's 1889", "probability": 0.9}])
WRAPPED = {
    "as-meant": '[[ ## parts ## ]]\n[{"text": "1989", "reason": "it\'s 1889", "probability": 0.9}]',
    "json": '{"parts": [{"text": "1989", "reason": "it\'s 1889", "probability": 0.9}]}',
    "bare-list": '[{"text": "1989", "reason": "it\'s 1889", "probability": 0.9}]',
    "python-objects": "[Part(text='1989', reason=\"it's 1889\", probability=0.9)]",
    "bold-names": '**parts:** [{"text": "1989", "reason": "it\'s 1889", "probability": 0.9}]',
    "think-closed": "It is 42, I think.\n</think>\n\n[[ ## parts ## ]]",
}


@pytest.mark.parametrize("mode", WRAPPED)
def test_a_mode_wraps_what_the_script_means(model_server: ModelServer, mode: str) -> None:
    model_server.script(lambda ask: MEANT)
    model_server.mode = mode
    message = post(model_server.url, "?")["choices"][0]["message"]
    assert message["content"].startswith(WRAPPED[mode])


def test_every_mode_replies(model_server: ModelServer) -> None:
    """Whether to an answer or an error of the script; none breaks."""
    for mode in MODES:
        for meant in (MEANT, say("plain text"), say(None), fail(500)):
            model_server.mode = mode
            model_server.script(in_turn(meant))
            reply = model_server.answer("POST", "/", {}, b"{}")
            assert "the script failed" not in str(reply.reply.body), mode
            assert reply.encoded().startswith(b"HTTP/1.1 ")


def test_it_runs_as_a_process_of_its_own_and_logs(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    command = [
        sys.executable,
        str(Path(__file__).parents[2] / "model_server" / "serve.py"),
        "--log",
        str(log),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        post(url, "one")
        process.kill()
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [event["event"] for event in events] == ["asked", "answered"]
    assert events[0]["asked"] == events[1]["asked"]


def test_a_taken_port_is_an_error_where_the_block_begins(
    model_server: ModelServer, tmp_path: Path
) -> None:
    begun: list[BaseException | None] = []

    def begin() -> None:
        try:
            with ModelServer(port=model_server.port, log=tmp_path / "log.jsonl"):
                begun.append(None)
        except OSError as error:
            begun.append(error)

    caller = Thread(target=begin, daemon=True)
    caller.start()
    caller.join(30)
    assert [type(error) for error in begun] == [OSError]
    assert str(model_server.port) in str(begun[0])


def _in_one_go(port: int, over: Event) -> None:
    """Join a server and leave it at once, again and again."""
    while not over.is_set():
        try:
            socket.create_connection(("127.0.0.1", port), timeout=0.1).close()
        except OSError:
            time.sleep(0.001)


@pytest.mark.parametrize("serves", ["model", "cable"])
def test_who_joins_in_the_last_moment_leaves_nothing_open(
    model_server: ModelServer, serves: str
) -> None:
    def server() -> ModelServer | Cable:
        return Cable.to_port(model_server.port) if serves == "cable" else ModelServer()

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", ResourceWarning)
        for _ in range(20):
            over = Event()
            with server() as short_lived:
                caller = Thread(target=_in_one_go, args=(short_lived.port, over))
                caller.start()
                time.sleep(0.003)
            over.set()
            caller.join()
        gc.collect()
    assert [str(warning.message) for warning in said] == []


PIPELINE = """
from spanlab.testing import assert_grounded

PASSAGE = "The tower was built in 1889 by Gustave Eiffel in Paris."


def test_a_right_answer():
    assert_grounded("The tower was built in 1889.", PASSAGE)


def test_a_wrong_answer():
    assert_grounded("The tower was built in 1989 by Ada Smith.", [PASSAGE], question="When?")


def test_a_lenient_one():
    assert_grounded("The tower was built in 1989.", PASSAGE, detector="offline", at_most=0.9)
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run pytest on a pipeline's tests, as its author does."""
    (tmp_path / "test_pipeline.py").write_text(PIPELINE, encoding="utf-8")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        options = ["-q", "--rootdir", str(tmp_path), *arguments]
        act = partial(pytest.main, options)
        return run_forked(["pytest", *options], os.environ, tmp_path, act)

    return run


def test_what_is_not_grounded_fails_with_its_spans_in_the_report(
    pipeline: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    done = pipeline("--junit-xml", "report.xml")
    assert done.returncode == 1
    assert "1 failed, 2 passed" in done.stdout
    assert "spans by offline" in done.stdout
    assert re.search(r"23-27 '1989' 0?[.]\d\d", done.stdout)
    assert "of the answer, more than 10.0 %: The tower was built in ⟦1989" in done.stdout
    assert "grounding.py" not in done.stdout  # the traceback ends where the test asserts
    (failed,) = ElementTree.parse(tmp_path / "report.xml").iterfind(".//property")
    annotation = Annotation.model_validate_json(failed.get("value", ""))
    assert (failed.get("name"), annotation.spans[0].text) == ("spanlab", "1989")


HOSTILE = r"""
from spanlab.schema import Annotation, Span
from spanlab.testing import assert_grounded

CONTROLS = "\x1b[2J\x1b]0;title\x07 ]]> <!-- \x9b31m \x00 \ufffe \u202e"


class Marks:
    name = "marks"

    def annotate(self, item):
        span = Span(start=0, end=2, text=item.answer[:2], note=CONTROLS)
        return Annotation(annotator="marks", kind="detector", spans=(span,))


class Fails(Marks):
    def annotate(self, item):
        return Annotation(annotator="fails", kind="detector", status="failed", note=CONTROLS)


def test_marked():
    assert_grounded("It" + CONTROLS, CONTROLS, detector=Marks(), at_most=0)


def test_failed():
    assert_grounded("It", CONTROLS, detector=Fails())
"""


def test_what_models_say_controls_no_terminal_and_breaks_no_xml(
    pipeline: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    (tmp_path / "test_pipeline.py").write_text(HOSTILE, encoding="utf-8")
    done = pipeline("--junit-xml", "report.xml")
    assert "2 failed" in done.stdout
    assert not re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", done.stdout)
    marked, failed = (
        Annotation.model_validate_json(found.get("value", ""))
        for found in ElementTree.parse(tmp_path / "report.xml").iterfind(".//property")
    )
    assert str(marked.spans[0].note).startswith("\x1b[2J")
    assert str(failed.note).startswith("\x1b[2J")


def test_pytest_names_the_detector_where_a_test_names_none(
    pipeline: Callable[..., subprocess.CompletedProcess[str]],
    model_server: ModelServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    named = ("--spanlab-detector", "ucsc-extract")
    model_server.script(lambda ask: fail(402, "no funds"))
    assert "ucsc-extract could not check it: credits" in pipeline(*named, "-k", "right").stdout
    model_server.script(lambda ask: say_fields(parts=["The tower was built"]))
    done = pipeline(*named)
    assert "2 failed, 1 passed" in done.stdout
    assert "0-19 'The tower was built'" in done.stdout
    monkeypatch.delenv("SPANLAB_MODEL")
    unnamed = pipeline(*named).stdout
    assert "no language model is named: set SPANLAB_MODEL" in unnamed
    assert "--model" not in unnamed
    refused = pipeline("--spanlab-detector", "ucsc-extrakt")
    assert refused.returncode == 4
    assert "did you mean 'ucsc-extract'" in refused.stderr


def test_pytest_loads_nothing_for_tests_that_do_not_ask(tmp_path: Path) -> None:
    code = "import sys\n\ndef test_it():\n    assert 'pydantic' not in sys.modules"
    (tmp_path / "test_other.py").write_text(code, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--rootdir", str(tmp_path)]
    command += ["-p", "no:hypothesispytest", "-p", "no:playwright"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
