"""How pytest-xdist shares out the tests, whatever befalls a worker, and that a run always ends."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling
from xdist.workermanage import WorkerController

# Pytest ends a worker after half of it in one test, but not between tests or after a failure.
_SILENCE = 600.0


class Scheduler(LoadFileScheduling):
    """Gives whole files to workers in order, those for the browser to every second one first.

    A worker keeps its browser and its server while it is at them, and two browsers are as many as
    two cores can draw.
    """

    def _assign_work_unit(self, node: WorkerController) -> None:
        draws = int(node.gateway.id.removeprefix("gw")) % 2 == 0
        # A worker begins with a test when it knows the next one, or that there is none.
        while self.workqueue and self._pending_of(self.assigned_work[node]) < 2:
            for file in self.workqueue:
                if file.startswith("tests/full/browser/") == draws:
                    self.workqueue.move_to_end(file, last=False)
                    break
            with suppress(OSError):  # it has died too: what it was given goes to others in its turn
                super()._assign_work_unit(node)
        if not self.workqueue:
            node.shutdown()

    def _reschedule(self, node: WorkerController) -> None:
        if node in self.registered_collections:  # else it has not found its tests yet
            super()._reschedule(node)

    def remove_node(self, node: WorkerController) -> str | None:
        """Give others what a worker that died had before it; return the test that it died in.

        Xdist gives them that test and all files that the worker had done as well, so that the next
        one dies or waits for ever.
        """
        files = self.assigned_work.pop(node)
        waiting = [test for tests in files.values() for test, done in tests.items() if not done]
        for file, tests in files.items():
            if left := {test: False for test in tests if test in waiting[1:]}:
                self.workqueue[file] = left
        if self.workqueue:
            for other in self.nodes:
                self._reschedule(other)
        return waiting[0] if waiting else None


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Scheduler:
    """Share tests out as ``Scheduler`` does, whatever ``--dist`` says."""
    config.option.loadscopereorder = False  # the order is that of tests/conftest.py
    return Scheduler(config, log)


class _Watch:
    """Ends a run of workers of which nothing has been heard for long, and says what they are at."""

    def __init__(self) -> None:
        self._heard = time.monotonic()
        self._begun: set[str] = set()

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self._heard = time.monotonic()
        self._begun.add(nodeid)

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        self._heard = time.monotonic()
        self._begun.discard(nodeid)

    def watch(self) -> None:
        while (silent := time.monotonic() - self._heard) < _SILENCE:
            time.sleep(_SILENCE - silent)
        names = ", ".join(sorted(self._begun)) or "none"
        os.write(2, f"\nno test began or ended for {silent:.0f} s; begun: {names}\n".encode())
        os._exit(1)


def pytest_xdist_setupnodes(config: pytest.Config) -> None:
    """Watch over the workers that are about to start."""
    watch = _Watch()
    config.pluginmanager.register(watch)
    threading.Thread(target=watch.watch, daemon=True).start()
