"""What every test may rely on: the shared data, and no network but this machine's own."""

from __future__ import annotations

import gc
import ipaddress
import os
import signal
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

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
_TORCH = [
    "full/systems/encoder/test_trained_encoder.py",
    "full/systems/papelo/test_trained_questions.py",
]
collect_ignore = [] if find_spec("torch") else _TORCH
if "SPANLAB_PICTURES" not in os.environ:  # `make pictures`, of which `make release` is one step
    names = ("test_pictures.py", "test_campaign_pictures.py")
    collect_ignore += [f"full/browser/{name}" for name in names]
if "SPANLAB_TEST_PYTHON" not in os.environ:  # `make test-pythons`, which asks the registry
    collect_ignore += ["full/test_wheel.py"]
collect_ignore += ["real_model"]  # `make test-model` runs these on a model that somebody has
collect_ignore += ["peers"]  # nor these: `make test-peers` runs them in an environment of their own
pytest_plugins = ["model_fixtures", "own_store", "postgres", "scheduling"]

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes longest, so that no worker is left with it in the end."""
    items.sort(key=lambda item: _turn(item.path))
    for item in items:
        needed = {name for mark in item.iter_markers("system") for name in mark.args}
        if missing := needed - _SYSTEMS:
            item.add_marker(pytest.mark.skip(f"taken out: {', '.join(sorted(missing))}"))
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.needs_shared)


_SYSTEMS = {path.parent.name for path in _ROOT.glob("spanlab/systems/*/__init__.py")}


def _turn(path: Path) -> tuple[int, int]:
    files, group = (_IN_BROWSER, 0) if path.parent.name == "browser" else (_LONGEST, 1)
    name = path.name
    return (group, files.index(name)) if name in files else (2 if group else 0, len(files))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Know ``--most-seconds``, which `make quick` holds tests to."""
    parser.addoption("--most-seconds", type=float, help="of processor time that a test may take")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Fail a test of the fast tier that takes longer: its place is tests/full."""
    most, before = item.config.getoption("--most-seconds"), os.times()
    result = yield
    took = sum(os.times()[:4]) - sum(before[:4])  # also of processes that it has waited for
    if most is not None and took > most:
        pytest.fail(f"took {took:.1f} s of processor time: move it to tests/full", pytrace=False)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Let the garbage collector pass over what all tests keep: a tenth of their processor time."""
    gc.disable()  # what is imported stays, and would be looked through again and again
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.set_threshold(200_000, 20)  # tests make much and keep little: a seventh
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
