"""Tests in several processes, all forked from one that has collected and imported everything.

Workers that collect by themselves, as those of pytest-xdist do, take fifteen seconds of a processor
each before their first test, and import again whatever tests import later.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import sys
import traceback
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing import connection, forkserver
from multiprocessing.connection import Connection
from typing import Any, NoReturn

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option."""
    parser.addoption("--workers", type=int, default=0, help="how many processes run the tests")


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Run all tests in forks, if there are to be some."""
    count = min(session.config.getoption("workers"), len(session.items))
    if not count or session.config.option.collectonly or session.testsfailed:
        return None
    capture = session.config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()  # each worker has files of its own for it
    folder = session.config._tmp_path_factory.getbasetemp()  # type: ignore[attr-defined]
    sys.stdout.flush()
    workers: list[_Worker] = []
    for number in range(count):
        ours, theirs = multiprocessing.Pipe()
        if not (pid := os.fork()):
            for other in (*(each.line for each in workers), ours):
                other.close()
            (folder / f"worker-{number}").mkdir()
            session.config._tmp_path_factory._basetemp = folder / f"worker-{number}"  # type: ignore[attr-defined]
            capture.start_global_capturing()
            _work(session, theirs)
        theirs.close()
        workers.append(_Worker(ours, pid))
    try:
        _hand_out(session, workers)
    except BaseException:
        for worker in workers:
            os.kill(worker.pid, signal.SIGINT)
        raise
    finally:
        for worker in workers:
            worker.line.close()
            os.waitpid(worker.pid, 0)
    return True


@dataclass
class _Worker:
    """One as its parent sees it: ``left`` of the file that it is at, and the test ``at``."""

    line: Connection
    pid: int
    left: deque[int] = field(default_factory=deque)
    at: int | None = None


def _hand_out(session: pytest.Session, workers: list[_Worker]) -> None:
    """Give each worker file after file, and in the end a half of what another one has left.

    Half of the workers take files from the beginning, where the browser's are, and half from the
    end: not all of them need a browser, and a server for it.
    """
    hook = session.config.hook
    paths = [item.path for item in session.items]
    files = deque(
        deque(numbers) for _, numbers in groupby(range(len(paths)), lambda number: paths[number])
    )

    def following(worker: _Worker) -> int | None:
        if not worker.left and files:
            from_the_end = workers.index(worker) % 2
            worker.left = files.pop() if from_the_end else files.popleft()
        elif not worker.left:
            richest = max((each.left for each in workers), key=len)
            worker.left.extendleft(richest.pop() for _ in range((len(richest) + 1) // 2))
        return worker.left.popleft() if worker.left else None

    at_work = {worker.line: worker for worker in workers}
    while at_work:
        for worker in [at_work[line] for line in connection.wait(at_work)]:  # type: ignore[index]
            try:
                said = worker.line.recv()
            except (EOFError, ConnectionError):
                del at_work[worker.line]
                if worker.at is not None:
                    hook.pytest_runtest_logreport(report=_died(session.items[worker.at]))
                continue
            if said is None:
                worker.at = following(worker)
                worker.line.send(worker.at)
                continue
            report = hook.pytest_report_from_serializable(config=session.config, data=said)
            if report.when == "setup":
                hook.pytest_runtest_logstart(nodeid=report.nodeid, location=report.location)
            hook.pytest_runtest_logreport(report=report)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    if files or any(worker.left for worker in workers):
        raise session.Interrupted("no worker is left")


def _died(item: pytest.Item) -> pytest.TestReport:
    said = "the worker that ran this test has ended"
    return pytest.TestReport(item.nodeid, item.location, {}, "failed", said, "call")


class _Following:
    """The test that follows, which is asked for when one has run and its fixtures may end."""

    def __init__(self, session: pytest.Session, line: Connection) -> None:
        self._session, self._line = session, line
        self._item: pytest.Item | None = None
        self._known = False

    def __bool__(self) -> bool:
        return self.item is not None

    @property
    def item(self) -> pytest.Item | None:
        """The test; None if there is none left."""
        if not self._known:
            self._line.send(None)
            at = self._line.recv()
            self._item, self._known = None if at is None else self._session.items[at], True
        return self._item

    def listchain(self) -> list[Any]:
        """Return what pytest asks of a test that follows: all that it is in."""
        return self.item.listchain() if self.item else []


class _Teller:
    def __init__(self, config: pytest.Config, line: Connection) -> None:
        self._config, self._line = config, line

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell the parent."""
        hook = self._config.hook
        said = hook.pytest_report_to_serializable(config=self._config, report=report)
        self._line.send(said)


def _work(session: pytest.Session, line: Connection) -> NoReturn:
    """Run the tests that the parent gives, and end without what it has to do at its end."""
    status = 1
    try:
        # A worker asks its parent's fork server, and random names are not the other workers'.
        forkserver._forkserver.ensure_running = lambda: None  # type: ignore[method-assign]
        random.seed()
        plugins = session.config.pluginmanager
        plugins.unregister(name="terminalreporter")
        plugins.register(_Teller(session.config, line))
        with suppress(EOFError, ConnectionError, KeyboardInterrupt):  # when nobody listens any more
            item = _Following(session, line).item
            while item is not None:
                following = _Following(session, line)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                item = following.item
        session._setupstate.teardown_exact(None)
        status = 0
    except BaseException:  # noqa: BLE001 — whatever it is, this process must not go on as pytest
        traceback.print_exc(file=sys.__stderr__)
    finally:
        os._exit(status)
