"""What tests of real programs share: the command, a place that receives traces, a question."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

import spanlab
from spanlab.schema import Record
from spanlab.testing import ModelServer, say

sys.path.append(str(Path(__file__).parents[1] / "support"))

# These programs tell their makers of each run or ask for prices, and wait for that without a
# network; MLflow's server also starts other servers.
os.environ |= {
    "ANONYMIZED_TELEMETRY": "false",
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DO_NOT_TRACK": "true",
    "LITELLM_LOCAL_MODEL_COST_MAP": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
    "PHOENIX_TELEMETRY_ENABLED": "false",
    "RAGAS_DO_NOT_TRACK": "true",
}
_STARTS = 600  # seconds, as Label Studio makes its database for minutes on a busy machine
KEY = "a-key-of-sixteen-characters"
BIN = Path(sys.executable).parent

Command = Callable[..., subprocess.CompletedProcess[str]]
Annotated = Callable[[], Record]
Served = Callable[..., AbstractContextManager[str]]


@pytest.fixture
def model() -> Iterator[ModelServer]:
    """A model that gives a wrong year."""
    with ModelServer(lambda ask: say("The Eiffel Tower was built in 1989.")) as server:
        yield server


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run a command of spanlab that succeeds."""

    def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [BIN / "spanlab", *words],
            cwd=tmp_path,
            env=environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done

    return run


def environment(folder: Path) -> dict[str, str]:
    """Return the variables of a program that keeps all it has in a folder."""
    own = {"SPANLAB_HOME": str(folder / "home"), "SPANLAB_API_KEY": KEY}
    return {k: v for k, v in os.environ.items() if not k.startswith("SPANLAB_")} | own


@pytest.fixture
def port() -> int:
    """A port that nobody listens on."""
    return free_port()


@pytest.fixture
def served(tmp_path: Path) -> Served:
    """Run a server of this environment for a block, which begins when its ``path`` answers.

    ``{port}`` in words and variables is a free one, or ``at``; the block gets the address.
    """

    @contextmanager
    def run(words: list[str], path: str, at: int | None = None, **variables: str) -> Iterator[str]:
        port = str(at or free_port())
        command = [str(BIN / words[0]), *(word.replace("{port}", port) for word in words[1:])]
        own = {name: value.replace("{port}", port) for name, value in variables.items()}
        url = f"http://127.0.0.1:{port}"
        with running(command, url + path, environment(tmp_path) | own, tmp_path):
            yield url

    return run


@pytest.fixture
def inbox(served: Served) -> Iterator[str]:
    """`spanlab api`, which receives traces into the dataset `traces`; yields its address."""
    words = ["spanlab", "api", "--detector", "offline", "--traces", "traces", "--port", "{port}"]
    with served(words, "/healthz") as url:
        yield url


@pytest.fixture
def provider(inbox: str) -> Iterator[TracerProvider]:
    """A tracer provider that sends spans to spanlab as they end."""
    headers = {"Authorization": f"Bearer {KEY}"}
    provider = TracerProvider()
    exporter = OTLPSpanExporter(f"{inbox}/v1/traces", headers=headers)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    yield provider
    provider.shutdown()


@pytest.fixture
def annotated(command: Command, tmp_path: Path) -> Annotated:
    """Return the one record of the dataset `traces`, as `offline` annotates it."""

    def act() -> Record:
        command("annotate", "traces", "--detector", "offline")
        command("export", "traces", "-o", "annotated.jsonl")
        (record,) = spanlab.load(tmp_path / "annotated.jsonl")
        return record

    return act


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        number: int = listener.getsockname()[1]
        return number


@contextmanager
def running(command: list[str], ready: str, around: dict[str, str], folder: Path) -> Iterator[None]:
    """Run a program until the block ends; it begins once the address ``ready`` answers."""
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(command, cwd=folder, env=around, stdout=output, stderr=output)
        try:
            until = time.monotonic() + _STARTS
            while not _answers(ready):
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < until, log.read_text()
                time.sleep(0.2)
            yield
        finally:
            process.terminate()
            process.wait(60)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except (urllib.error.URLError, OSError):
        return False
