"""What every test may rely on: the shared data, and no network but this machine's own."""

from __future__ import annotations

import gc
import inspect
import ipaddress
import os
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from types import CodeType
from typing import Any

import hypothesis
import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

_ROOT = Path(__file__).resolve().parent.parent
_TESTS = str(_ROOT / "tests")


def _forbid_other_hosts(event: str, args: tuple[object, ...]) -> None:
    if event != "socket.connect":
        return
    address = args[1]
    if isinstance(address, tuple) and not _is_loopback(str(address[0])):
        raise ConnectionRefusedError(f"tests stay on this machine, but one connects to {address}")


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


sys.addaudithook(_forbid_other_hosts)

# A shell that puts the tests into the background has Ctrl+C ignored, by whatever they start, too.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No test judges time, which says more of the machine than of the code. The examples are the same
# in every run; of a changed test they are others.
hypothesis.settings.register_profile(
    "spanlab",
    deadline=None,
    derandomize=True,
    max_examples=25,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("spanlab")

# As in the command line: threads for small products of matrices cost more than they do.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# Neither workers nor the many processes that tests start shall compile all of spanlab each.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# What tests and benchmarks share.
sys.path[:0] = [str(_ROOT / "tests" / folder) for folder in ("model_server", "support")]
# Processes that a test starts import its classes, whatever directory another test has worked in.
sys.path.append(str(_ROOT))
# What needs gigabytes that nobody gets unasked: `make test-torch` installs them.
_TORCH = ["cli/test_trained_encoder.py", "cli/test_trained_questions.py"]
collect_ignore = [] if find_spec("torch") else _TORCH
if "SPANLAB_PICTURES" not in os.environ:  # `make pictures`, of which `make release` is one step
    collect_ignore += ["browser/test_pictures.py"]
if "SPANLAB_TEST_PYTHON" not in os.environ:  # `make test-pythons`, which asks the registry
    collect_ignore += ["test_wheel.py"]
collect_ignore += ["real_model"]  # `make test-model` runs these on a model that somebody has
collect_ignore += ["peers"]  # nor these: `make test-peers` runs them in an environment of their own
pytest_plugins = ["model_fixtures", "postgres"]

# Files of half a minute and more, the longest first.
_LONGEST = (
    "test_guide.py",
    "test_kills.py",
    "test_jobs.py",
    "test_cut_off.py",
    "test_limits.py",
    "test_mcp_servers.py",
    "test_upgrade.py",
    "test_push_verdicts.py",
    "test_queue.py",
    "test_server.py",
    "test_file_commands.py",
    "test_first_quarter.py",
    "test_offline.py",
)
_IN_BROWSER = (
    "test_login.py",
    "test_invited_team.py",
    "test_pursuit_whole_way.py",
    "test_accessibility.py",
    "test_nothing_lost.py",
    "test_optimise.py",
    "test_many_annotators.py",
)


# Whoever calls one of these starts a process, a browser or PostgreSQL.
_STARTERS = {
    *("Fork", "Popen", "check_output", "create_subprocess_exec", "run_forked", "subprocess"),
    *("chromium", "sync_playwright", "postgres", "Cluster"),
}


# What fixtures that serve either database are asked for where it is PostgreSQL.
_POSTGRESQL = {"postgresql", "shared_settings"}


class Scheduler(LoadFileScheduling):
    """Gives whole files to workers in order, those for the browser to every second one first.

    A worker keeps its browser and its server while it is at them, and two browsers are as many as
    two cores can draw.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        draws = int(node.gateway.id.removeprefix("gw")) % 2 == 0
        for file in self.workqueue:
            if file.startswith("tests/browser/") == draws:
                self.workqueue.move_to_end(file, last=False)
                break
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduler:
    """Share tests out as ``Scheduler`` does, whatever ``--dist`` says."""
    config.option.loadscopereorder = False  # the order is that of the next function
    return Scheduler(config, log)


@pytest.hookimpl(tryfirst=True)  # before tests are chosen by their marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker is left with it in the end.

    Those that start a process, a browser or PostgreSQL, by a fixture or themselves, are marked
    where tests are chosen by marks: to look for them takes seconds.
    """
    items.sort(key=lambda item: _turn(item.path))
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.needs_shared)
    known: dict[object, bool] = {}
    for item in items if config.option.markexpr else ():
        if isinstance(item, pytest.Function) and _is_slow(item, known):
            item.add_marker(pytest.mark.slow)


def _turn(path: Path) -> tuple[int, int]:
    files, group = (_IN_BROWSER, 0) if path.parent.name == "browser" else (_LONGEST, 1)
    name = path.name
    return (group, files.index(name)) if name in files else (2 if group else 0, len(files))


def _is_slow(item: pytest.Function, known: dict[object, bool]) -> bool:
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    if any(isinstance(param, str) and param in _POSTGRESQL for param in params):
        return True
    fixtures = item._fixtureinfo.name2fixturedefs.values()
    functions = [item.function, *(defined[-1].func for defined in fixtures)]
    return any(_starts(function, known) for function in functions)


def _starts(function: Callable[..., Any], known: dict[object, bool]) -> bool:
    """Whether a function of the tests calls a starter, or another one of theirs that does."""
    if function not in known:
        known[function] = False  # where it calls itself
        function, given = inspect.unwrap(function), function
        code = getattr(function, "__code__", None)
        if code is None or not code.co_filename.startswith(_TESTS):
            return False
        names = set(_names(code))
        values = [function.__globals__.get(name) for name in names]
        methods = [
            each for value in values if inspect.isclass(value) for each in vars(value).values()
        ]
        known[given] = known[function] = bool(names & _STARTERS) or any(
            _starts(each, known) for each in values + methods if inspect.isfunction(each)
        )
    return known[function]


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let the garbage collector pass over what all tests keep: a tenth of their processor time."""
    gc.disable()  # what is imported stays, and would be looked through again and again
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(20_000, 20)  # tests make much and keep little: another tenth
        gc.enable()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory of shared real data; tests that need it skip, saying so, where it is absent."""
    path = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"{_NO_SHARED} at {path}: set SPANLAB_SHARED")
    return path


_NO_SHARED = "no shared data"


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say in one line how many tests were skipped for want of the shared data."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = [report.longrepr[2] for report in skipped if _NO_SHARED in report.longreprtext]
    if reasons:
        reason = reasons[0].removeprefix("Skipped: ")
        terminalreporter.write_line(f"not run: {len(reasons)} tests that need real data ({reason})")


@pytest.fixture(scope="session")
def samples() -> Path:
    """The sample dataset that ships with the repository."""
    return _ROOT / "data" / "samples.jsonl"
