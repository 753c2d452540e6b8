"""What is parsed in a sandbox ends its process at worst, and the next call finds another one."""

from __future__ import annotations

import os
import signal
import time

import pytest

from spanlab.base.errors import InputError, SandboxError
from spanlab.base.processes import Sandbox


def refuse() -> None:
    raise InputError("not a page", file="a.html", line=3)


@pytest.fixture(scope="module")
def pool() -> Sandbox:
    return Sandbox(1, memory=1)


def test_an_error_of_ours_arrives_whole_and_the_process_stays(pool: Sandbox) -> None:
    before = pool.run(1, os.getpid)
    with pytest.raises(InputError, match=r"^a\.html, line 3: not a page$"):
        pool.run(1, refuse)
    assert pool.run(1, os.getpid) == before


def test_what_only_waits_is_ended_by_the_clock(pool: Sandbox) -> None:
    pool.run(1, os.getpid)
    with pytest.raises(SandboxError, match=r"it takes more than 0\.3 s$"):
        pool.run(0.1, time.sleep, 3600)


def test_a_process_that_ended_while_it_was_idle_is_replaced(pool: Sandbox) -> None:
    before = pool.run(1, os.getpid)
    os.kill(before, signal.SIGKILL)
    os.waitid(os.P_PID, before, os.WEXITED | os.WNOWAIT)
    assert pool.run(1, os.getpid) != before
