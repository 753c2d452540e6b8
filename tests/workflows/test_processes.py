"""Processes that share out work, and Ctrl+C while they start."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from spanlab.workflows.processes import Processes, uninterrupted


def test_ctrl_c_waits_until_a_process_was_told_what_to_do() -> None:
    """Whichever thread of a process hears it: one that draws a progress bar, say."""
    over = threading.Event()
    other = threading.Thread(target=over.wait)
    other.start()
    done = []
    try:
        with pytest.raises(KeyboardInterrupt), uninterrupted():
            assert other.ident is not None
            signal.pthread_kill(other.ident, signal.SIGINT)
            time.sleep(0.05)
            done.append("started")
    finally:
        over.set()
        other.join()
    assert done == ["started"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_processes_do_not_hear_ctrl_c() -> None:
    with Processes(1) as pool:
        assert pool.submit(signal.getsignal, signal.SIGINT).result(60) is signal.SIG_IGN
        assert pool.submit(divmod, 7, 2).result(60) == (3, 1)


def test_processes_hold_none_of_the_standard_streams() -> None:
    with Processes(1) as pool:
        held = [
            pool.submit(os.path.realpath, f"/proc/self/fd/{stream}").result(60)
            for stream in range(3)
        ]
    assert held == [os.devnull] * 3
