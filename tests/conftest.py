"""What every test may rely on: the shared data, and no network but this machine's own."""

from __future__ import annotations

import gc
import ipaddress
import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path

import hypothesis
import pytest

_ROOT = Path(__file__).resolve().parent.parent


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
    max_examples=40,
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
collect_ignore = [] if find_spec("torch") else ["cli/test_trained_questions.py"]
collect_ignore += ["peers"]  # nor these: `make test-peers` runs them in an environment of their own
pytest_plugins = ["model_fixtures", "postgres"]

_LONGEST = {
    "test_accessibility.py",
    "test_many_annotators.py",
    "test_readme.py",
    "test_reasoning.py",
    "test_train_offline.py",
    "test_wheel.py",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest tests, so that no worker is left with them in the end."""
    items.sort(key=lambda item: item.path.name not in _LONGEST)


def pytest_collection_finish() -> None:
    """Let the garbage collector pass over what all tests keep: a tenth of their processor time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The directory of shared real data; tests that need it skip, saying so, where it is absent."""
    path = Path(os.environ.get("SPANLAB_SHARED", _ROOT.parent / "shared"))
    if not path.is_dir():
        pytest.skip(f"no shared data at {path}: set SPANLAB_SHARED")
    return path


@pytest.fixture(scope="session")
def samples() -> Path:
    """The sample dataset that ships with the repository."""
    return _ROOT / "data" / "samples.jsonl"
