"""A process at work on jobs: a command, or a thread of the app."""

from __future__ import annotations

import asyncio
import atexit
import logging
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from spanlab.base.errors import SpanlabError, UsageError
from spanlab.base.processes import executor_of
from spanlab.base.runtime import switch_threads_often
from spanlab.base.settings import Settings
from spanlab.jobs import database, job_store, leases, views
from spanlab.jobs.job_store import JOBS, PARTS
from spanlab.storage import Store

if TYPE_CHECKING:
    from dbos import WorkflowStatus


log = logging.getLogger(__name__)
NAME = "app"
_STARTED = threading.Event()
_LOCK = threading.Lock()


def start_embedded_worker(settings: Settings | None = None) -> None:
    """Let this process work on jobs in threads of its own; once is enough, and more do no harm.

    It returns at once; what goes wrong while the worker starts is in the process's log.
    """
    with _LOCK:
        if _STARTED.is_set():
            return
        _STARTED.set()
    thread = threading.Thread(
        target=_start, args=(settings or Settings.read(),), name="spanlab-worker", daemon=True
    )
    thread.start()


def _start(settings: Settings) -> None:
    switch_threads_often()
    # Detectors that ask no model compute: in a process of their own they leave the pages alone.
    role = WorkerRole(NAME, processes=1)
    try:
        start(settings, role)
    except SpanlabError as error:
        log.error("the app does not work on jobs: %s", error)
        _STARTED.clear()  # the next page tries again
    else:
        atexit.register(stop)


_GRACE_SECONDS = 150.0  # a model call may take that long; it is paid, so its answer is awaited
_NAME_LENGTH = 200  # of a worker, percent-encoded
_JOBS_AT_ONCE = 4  # jobs a worker follows; their parts are what is work
_OWN_AT_ONCE = 32  # jobs with keys of browser sessions, and their parts
_PARTS_AT_ONCE = 4  # enough that the next one is there while the last answers of one come in
_POLL_SECONDS_ALONE = 0.1  # for as long as a command runs


@dataclass(frozen=True)
class WorkerPace:
    """How often a worker looks at things, in seconds.

    ``watch`` is between two looks at its own lease and at the others'; ``sure`` after which it asks
    no model if the database has not heard it, less than the nine that the database waits; ``look``
    between two looks at whether the lease is lost; ``poll`` between two at the queues, of which
    each costs a processor some 4 ms and the database three queries.
    """

    watch: float = 2.0
    sure: float = 5.0
    look: float = 0.2
    poll: float = 0.25


@dataclass(frozen=True)
class WorkerRole:
    """How a worker works.

    ``name`` is what it is known by; a taken one gets a number. ``alone`` workers do nothing but
    the jobs that are given to them. ``processes`` do the work of detectors that ask no model,
    0 leaves it to a thread.
    """

    name: str
    alone: bool = False
    processes: int = 0
    pace: WorkerPace = WorkerPace()

    def __post_init__(self) -> None:
        """Refuse a name that a lease cannot have, which is a file of that name on SQLite.

        Raises:
            UsageError: it holds what cannot be printed, is too long, or of dots alone.
        """
        fits = self.name.isprintable() and len(quote(self.name)) <= _NAME_LENGTH
        if not fits or not self.name.strip(". "):
            raise UsageError(
                f"a worker cannot be called {self.name!r}: a name has 1 to {_NAME_LENGTH} "
                "characters that can be printed, and not dots alone"
            )


class Worker:
    """A worker between ``start`` and ``stop``; a process has one at most.

    ``cut_off`` grows when it loses its name, because the database could not be reached, and when
    it has it back: what was begun before belongs to others since then.
    """

    def __init__(self, settings: Settings, role: WorkerRole) -> None:
        self.settings = settings.model_copy(update={"home": settings.home.absolute()})
        self.role = role
        self.name = role.name
        self.jobs = job_store.shared_job_store(settings)
        self._local = self.jobs.is_local
        self.cut_off = 0
        self.stopping = False
        self._under_way: list[int] = []  # of each part and search, ``cut_off`` when it began
        self._heard = 0.0  # by the database, at least that late on the monotonic clock
        self._over = threading.Event()

    @property
    def own_queue(self) -> str:
        """The queue of jobs that this worker alone does: given to it, or with its own key."""
        return leases.own_queue(self.name)

    @property
    def jobs_queue(self) -> str:
        """The queue from which it takes jobs."""
        return self.own_queue if self.role.alone else JOBS

    @property
    def parts_queue(self) -> str:
        """The queue for the parts of its jobs, from which it takes parts, too."""
        return self.own_queue if self.role.alone else PARTS

    def is_sure(self) -> bool:
        """Say whether this worker's work cannot have been given to another one.

        The database gives a silent worker's name away after nine seconds at the earliest.
        """
        return self._local or time.monotonic() - self._heard < self.role.pace.sure

    @contextmanager
    def working(self) -> Iterator[None]:
        """Mark a block as work under way: the worker waits for it before it ends."""
        begun = self.cut_off
        self._under_way.append(begun)
        try:
            yield
        finally:
            self._under_way.remove(begun)

    async def has_lost_lease(self, cut_off: int) -> bool:
        """Say whether this worker was cut off, once that is clear.

        Args:
            cut_off: what ``cut_off`` was before the database refused something.
        """
        asked_at = time.monotonic()
        while not self._local and self.cut_off == cut_off and self._heard < asked_at:
            await asyncio.sleep(self.role.pace.look)
        return self.cut_off != cut_off

    def owns(self, row: WorkflowStatus) -> bool:
        """Say whether a job or part is this worker's to do, as its row has it."""
        return (row.status, row.executor_id) == ("PENDING", self.name)

    def start(self) -> None:
        """Take a name and begin to work, in threads of its own.

        Raises:
            StoreError: a database cannot be reached.
        """
        from dbos import DBOS

        views.load()
        database.prepare(self.settings)
        self.store = Store.open(self.settings)
        self._heard = time.monotonic()
        self.name, self._lease = leases.acquire_free(self.settings, self.role.name)
        leases.requeue(self.jobs, self.name)
        leases.requeue_abandoned(self.jobs, self.name)
        self.executor = executor_of(self.role.processes)
        DBOS(config=database.config(self.settings, self.name))
        queues = sorted({self.jobs_queue, self.parts_queue, self.own_queue})
        DBOS.listen_queues(queues)
        for queue in queues:  # before the launch: after it they would be found a second later
            self.jobs.client.register_queue(
                queue,
                worker_concurrency=self._at_once(queue),
                polling_interval_sec=_POLL_SECONDS_ALONE
                if self.role.alone
                else self.role.pace.poll,
                on_conflict="never_update",
            )
        DBOS.launch()
        self._watcher = threading.Thread(target=self._watch, name="spanlab-watch", daemon=True)
        self._watcher.start()

    def _at_once(self, queue: str) -> int:
        """Return how many jobs or parts of a queue are worked on at once."""
        if queue != self.own_queue:
            return _PARTS_AT_ONCE if queue == PARTS else _JOBS_AT_ONCE
        # Here jobs wait for parts of the same queue, for which there must be room beside them.
        return _JOBS_AT_ONCE + 1 if self.role.alone else _OWN_AT_ONCE

    def stop(self) -> None:
        """End after the model calls under way; what is left goes back to the queue."""
        from dbos import DBOS

        self.stopping = True
        self._let_calls_end(self.cut_off + 1)
        self._over.set()
        self._watcher.join()
        DBOS.destroy(workflow_completion_timeout_sec=0)
        self.executor.shutdown(wait=False, cancel_futures=True)
        try:
            leases.requeue(self.jobs, self.name)
        except SpanlabError as error:
            log.warning("%s could not requeue its jobs: %s", self.name, error)
        self._lease.release()
        self.store.close()

    def _let_calls_end(self, before: int) -> None:
        """Wait for work that began when ``cut_off`` was less than ``before``."""
        deadline = time.monotonic() + _GRACE_SECONDS
        while min(self._under_way, default=before) < before and time.monotonic() < deadline:
            if self._over.wait(0.02):
                return

    def _watch(self) -> None:
        last_error = ""
        while not self._over.wait(self.role.pace.watch):
            asked_at = time.monotonic()
            try:
                database.check_space(self.settings)
                if self._lease.is_held():
                    self._heard = asked_at
                    leases.requeue_abandoned(self.jobs, self.name)
                else:
                    self._come_back()
                last_error = ""
            except SpanlabError as error:
                if str(error) != last_error:
                    log.warning("%s: %s", self.name, error)
                last_error = str(error)

    def _come_back(self) -> None:
        self.cut_off += 1
        self._lease.release()
        while not self._over.is_set():
            lease = None
            try:
                lease = leases.acquire(self.settings, self.name)
                if lease is not None:
                    self._let_calls_end(self.cut_off)  # others would make them again
                    self.cut_off += 1  # what was begun meanwhile is handed back too
                    asked_at = time.monotonic()
                    leases.requeue(self.jobs, self.name)
                    self._lease, self._heard = lease, asked_at
                    log.warning("%s reconnected", self.name)
                    return
            except SpanlabError as error:
                log.warning("%s lost its database: %s", self.name, str(error).partition("\n")[0])
                if lease is not None:
                    lease.release()
            self._over.wait(self.role.pace.watch)


_CURRENT: list[Worker] = []
_STARTING = threading.Lock()


def start(settings: Settings, role: WorkerRole) -> Worker:
    """Start this process's worker.

    Raises:
        SpanlabError: it has one already.
        StoreError: a database cannot be reached.
    """
    with _STARTING:
        if _CURRENT:
            raise SpanlabError(f"this process works on jobs already, as {_CURRENT[0].name!r}")
        worker = Worker(settings, role)
        _CURRENT.append(worker)
        try:
            worker.start()
        except BaseException:
            _CURRENT.clear()
            raise
        return worker


def work(settings: Settings, role: WorkerRole, say: Callable[[str], object]) -> None:
    """Work in this process's main thread until SIGINT or SIGTERM, and say so in words.

    Raises:
        SpanlabError: this process has a worker already.
        StoreError: a database cannot be reached.
    """
    ended = threading.Event()
    stops = (signal.SIGINT, signal.SIGTERM)
    handlers = [signal.signal(stop_signal, lambda *_: ended.set()) for stop_signal in stops]
    try:
        me = start(settings, role)
        say(f"{me.name} works on jobs; Ctrl+C ends it after the calls under way")
        while not ended.wait(1.0):
            pass
        say("stopping after the calls under way")
        stop()
    finally:  # a name that is refused leaves the process as it was
        for stop_signal, handler in zip(stops, handlers, strict=True):
            signal.signal(stop_signal, handler)


def stop() -> None:
    """Stop this process's worker, if it has one."""
    with _STARTING:
        if _CURRENT:
            _CURRENT[0].stop()
            _CURRENT.clear()


def current() -> Worker:
    """Return this process's worker.

    Raises:
        SpanlabError: it has none.
    """
    if not _CURRENT:
        raise SpanlabError("this process does not work on jobs")
    return _CURRENT[0]
