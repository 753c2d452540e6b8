"""What tests and benches of jobs do alike: make a dataset, start workers, wait."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType

from forks import Fork

from spanlab.base.settings import Settings
from spanlab.cli import console
from spanlab.detection import DetectorSpec
from spanlab.detection.request import RunRequest
from spanlab.jobs.worker import WorkerPace, WorkerRole, start, stop, work
from spanlab.models import ModelChoice
from spanlab.schema import Item, Record, Status
from spanlab.storage import Store
from spanlab.testing import ModelServer

Process = subprocess.Popen[bytes] | Fork
NOTHING = "[[ ## parts ## ]]\n[]\n\n[[ ## completed ## ]]"  # ucsc-extract: nothing to mark
# Four times as often as people's workers look: what is waited for comes sooner.
QUICK = WorkerPace(watch=0.5, sure=1.5, look=0.05, poll=0.1)
SECONDS = 120  # that something may take before a test gives up


def key_of(name: str) -> str:
    """Return the key of the worker of this name; the model server tells callers apart by it."""
    return f"sk-a-key-of-{name}"


def environment(settings: Settings, name: str = "the-tests") -> dict[str, str]:
    """Return what a process needs to know of a database, and a key."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SPANLAB_")}
    return ours | {
        "SPANLAB_HOME": str(settings.home),
        "SPANLAB_DATABASE_URL": settings.database_url,
        "OPENAI_API_KEY": key_of(name),
    }


@contextmanager
def working(
    settings: Settings,
    name: str,
    inside: Sequence[str] = (),
    environ: Mapping[str, str] = MappingProxyType({}),
    *,
    pace: WorkerPace = QUICK,
) -> Iterator[Process]:
    """Let a `spanlab worker` run until the block ends, or it is killed there.

    ``inside`` is a command that runs it somewhere else, such as in a network namespace, and at its
    own pace; ``environ`` is added to its environment.
    """
    command = ["spanlab", "worker", "--name", name]
    variables = environment(settings, name) | dict(environ)
    log = settings.home / f"{name}.log"
    process: Process
    if inside:
        command[0] = str(Path(sys.executable).with_name("spanlab"))
        with log.open("ab") as out:
            process = subprocess.Popen([*inside, *command], env=variables, stderr=out, stdout=out)
    else:
        act = partial(_work, WorkerRole(name, pace=pace))
        process = Fork(command, variables, log, act=act)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                raise
        said = log.read_text()
        assert "Traceback" not in said, said


def _work(role: WorkerRole) -> None:
    work(Settings.read(), role, console.say)


@contextmanager
def working_here(settings: Settings) -> Iterator[None]:
    """Let this process work on jobs until the block ends.

    It is told so in a thread, as by the app: browser tests leave an event loop in this one.
    """
    with ThreadPoolExecutor(1) as thread:
        thread.submit(start, settings, WorkerRole("test", pace=QUICK)).result(SECONDS)
        try:
            yield
        finally:
            thread.submit(stop).result(SECONDS)


def fill(settings: Settings, count: int, first: int = 0) -> None:
    """Make the dataset ``d`` with items ``i0`` and so on, or add some from ``first`` on."""
    with Store.open(settings) as store:
        store.import_records(
            "d",
            [
                Record(item=Item(id=f"i{n}", lang="en", question="?", answer=f"Number {n} it is."))
                for n in range(first, first + count)
            ],
        )


def request(model: ModelServer, **options: object) -> RunRequest:
    """Ask for ucsc-extract on the dataset ``d``."""
    choice = ModelChoice(model="scripted", base_url=model.url, retries=0)
    spec = DetectorSpec(detector="ucsc-extract", model=choice)
    fields = {"dataset": "d", "detectors": (spec,), "concurrency": 8, **options}
    return RunRequest.model_validate(fields)


def states(settings: Settings, name: str = "ucsc-extract") -> dict[Status, int]:
    """Return how many items of ``d`` are in each state under a detector; zeros are left out."""
    with Store.open(settings) as store:
        return {status: n for status, n in store.counts("d", name).items() if n}


def wait_until(true: Callable[[], bool], what: str) -> None:
    """Wait until something holds, for a long time if need be."""
    deadline = time.monotonic() + SECONDS
    while not true():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {SECONDS} seconds for {what}")
        time.sleep(0.05)


def wait_until_ready(settings: Settings, *names: str) -> None:
    """Wait until the workers of these names have written that they are there."""
    logs = [settings.home / f"{name}.log" for name in names]
    wait_until(lambda: all(log.exists() and log.read_text() for log in logs), "the workers")


@contextmanager
def separate_server(latency: float) -> Iterator[str]:
    """Serve from another process, so that it does not compete for this one's interpreter."""
    program = Path(__file__).parent.parent / "model_server" / "serve.py"
    command = [sys.executable, str(program), "--latency", str(latency)]
    process = subprocess.Popen([*command, "--field", "parts"], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()
