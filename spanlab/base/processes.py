"""Processes beside this one: pools for work, and sandboxes for what comes from outside.

A sandbox's process has limits of memory and, for each call, of processor time (where the system
knows such) and by the clock. One that passes a limit, crashes or meets what none of our errors
foresees is killed and replaced, and its call fails with the reason. The others stay warm.
"""

from __future__ import annotations

import math
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache, partial
from multiprocessing import parent_process
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext, SpawnProcess
from multiprocessing.reduction import ForkingPickler
from queue import LifoQueue
from types import FrameType, ModuleType
from typing import Any, Final, ParamSpec, TypeVar, TypeVarTuple, cast

from spanlab.base.errors import SandboxError, SpanlabError

P = ParamSpec("P")
T = TypeVar("T")


class ProcessPool(Executor):
    """Processes that leave Ctrl+C to this one, from their first moment on, and end when it ends.

    They hold none of this one's standard streams. If one ends by itself, what is under way fails
    with ``BrokenProcessPool``, and others start for what comes then.

    Args:
        count: how many at most, 1 or more; they start as they are needed.
        with_script: whether they import the script that runs here, which may define what they do.
    """

    def __init__(self, count: int, *, with_script: bool = False) -> None:
        context = SpawnContext() if with_script else ScriptlessContext()
        self._new_pool = partial(ProcessPoolExecutor, count, context, begin_child)
        self._pool = self._new_pool()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Let a process do something; starts one if none is free."""
        with uninterrupted():
            try:
                return self._pool.submit(fn, *args, **kwargs)
            except BrokenProcessPool:
                self._pool = self._new_pool()
                return self._pool.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take nothing more; see ``Executor``."""
        self._pool.shutdown(wait, cancel_futures=cancel_futures)


class _ScriptlessProcess(SpawnProcess):
    """A process that does not begin by running the script again that runs here.

    Python has every spawned process import the main module, so that a script without a main guard
    would start itself without end; and one that is read from standard input has no file to import.
    """

    def start(self) -> None:
        with _SCRIPT_HIDDEN:
            script = sys.modules["__main__"]
            sys.modules["__main__"] = ModuleType("__main__")
            try:
                super().start()
            finally:
                sys.modules["__main__"] = script


_SCRIPT_HIDDEN = threading.Lock()


class ScriptlessContext(SpawnContext):
    """Starts processes that do not run the script again that runs here."""

    Process = _ScriptlessProcess


def executor_of(processes: int, *, with_script: bool = False) -> Executor:
    """Return the executor of detectors that ask no model.

    Args:
        processes: how many, at most one for each processor; 0 is a thread of this process.
        with_script: whether the script that runs here defines what they do.
    """
    if processes:
        return ProcessPool(min(processes, os.cpu_count() or 1), with_script=with_script)
    return ThreadPoolExecutor(1, thread_name_prefix="spanlab-detector")


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let Ctrl+C wait until the block is done, and processes that start inside not hear it.

    A process that is interrupted while it starts, or whose parent is while it tells it what to do,
    would end in a traceback.
    """
    heard: list[tuple[int, FrameType | None]] = []
    before = None
    if threading.current_thread() is threading.main_thread():
        # Any thread may hear a signal, whatever this one's mask is; the main one acts on it.
        before = signal.signal(signal.SIGINT, lambda *said: heard.append(said))
    unmask = _mask(signal.SIGINT)
    try:
        yield
    finally:
        unmask()
        if before is not None:
            signal.signal(signal.SIGINT, before)
        if heard and callable(before):
            before(*heard[0])


def _mask(number: signal.Signals) -> Callable[[], object]:
    """Block a signal in this thread, and in processes that it starts; returns what ends that."""
    if sys.platform == "win32":
        return lambda: None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {number})
    return lambda: signal.pthread_sigmask(signal.SIG_SETMASK, before)


def begin_child() -> None:
    """Have this process, which another one started, leave Ctrl+C to it and end when it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Whoever reads the command's output waits for its end, and must not wait for this process's.
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    os.close(nothing)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


Ts = TypeVarTuple("Ts")
_CLOCK: Final = 3  # times the processor time: on a busy machine a process gets less than a core
_START: Final = 60.0  # seconds more by the clock for a process that starts
_ANSWER: Final = 64 * 2**20  # bytes of what a process may return
_GIB: Final = 2**30


class Sandbox:
    """A pool of processes for functions of modules that can be imported, with picklable arguments.

    Args:
        count: how many processes at most; they start as they are needed, the last used first.
        memory: GiB of addresses that each may have; 0 for no limit.
        cores: how many one computes on, for limits of processor time.
    """

    def __init__(self, count: int, memory: float, cores: int = 1) -> None:
        self._limits = int(memory * _GIB), cores
        self._free: LifoQueue[_SandboxProcess | None] = LifoQueue()
        for _ in range(count):
            self._free.put(None)
        self._threads = ThreadPoolExecutor(count, thread_name_prefix="spanlab-sandbox")

    def run(self, seconds: float, work: Callable[[*Ts], T], *args: *Ts) -> T:
        """Return what a function returns, called in a process of the pool.

        Args:
            seconds: of processor time on each core; by the clock it may take three times as long.
            work: the function.
            *args: what it is called with.

        Raises:
            SandboxError: it passed a limit, or broke the process; says which.
            SpanlabError: whatever of that kind it raised.
        """
        child, sound = self._free.get(), False
        try:
            if child is None or not child.process.is_alive():
                child = _SandboxProcess(*self._limits)
            answer = child.ask(seconds, work, args)
            sound = not isinstance(answer, SandboxError)
        finally:
            if not sound and child is not None:
                child.end()
            self._free.put(child if sound else None)
        if isinstance(answer, SpanlabError):
            raise answer
        return cast("T", answer)

    def submit(self, seconds: float, work: Callable[[*Ts], T], *args: *Ts) -> Future[T]:
        """Do as ``run`` without waiting for it, in threads that are the pool's own."""
        return self._threads.submit(partial(self.run, seconds, work, *args))


def parsers() -> Sandbox:
    """Return this process's pool for pages and tokenizers."""
    return _pool(os.getpid(), min(os.cpu_count() or 1, 4), min(4.0, most_memory()), 1)


def networks(*, limited: bool = True) -> Sandbox:
    """Return this process's pool for networks: one process, which has them all loaded.

    Args:
        limited: whether it may have three quarters of the machine's memory alone; graphics cards
            need more addresses than there is memory.
    """
    return _pool(os.getpid(), 1, most_memory() if limited else 0, os.cpu_count() or 1)


@cache
def _pool(_process: int, count: int, memory: float, cores: int) -> Sandbox:
    return Sandbox(count, memory, cores)


def most_memory() -> float:
    """Return three quarters of the machine's memory in GiB; 0 where it is not said."""
    if sys.platform == "win32":
        return 0.0
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 0.75 / _GIB


class _SandboxProcess:
    """A process of a pool, and the pipe to it."""

    def __init__(self, memory: int, cores: int) -> None:
        _end_at_exit()
        context = ScriptlessContext()
        self._pipe, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, memory, cores), daemon=True)
        with uninterrupted():
            self.process.start()
        theirs.close()
        self._started, self._owner = False, os.getpid()
        _CHILDREN.add(self)
        if _ENDING.is_set():
            self.end()

    def ask(self, seconds: float, work: Callable[..., object], args: tuple[object, ...]) -> object:
        """Return what the function returns, or as an error why it does not."""
        clock = seconds * _CLOCK
        start, self._started = 0.0 if self._started else _START, True
        try:
            self._pipe.send(seconds)
            self._pipe.send((work, args))
            if not self._pipe.poll(clock + start):
                return SandboxError(f"it takes more than {clock:g} s")
            return self._pipe.recv()
        except (EOFError, OSError):
            self.process.join(1)
            code = -(self.process.exitcode or 0)
        if code == getattr(signal, "SIGXCPU", None):
            return SandboxError(f"it takes more than {seconds:g} s of processor time")
        name = signal.Signals(code).name if code > 0 else f"exit status {-code}"
        return SandboxError(f"it ends the process that reads it ({name})")

    def end(self) -> None:
        """Kill the process, unless it is that of the process that this one is a fork of."""
        _CHILDREN.discard(self)
        if self._owner == os.getpid():
            self.process.kill()


_CHILDREN: Final[set[_SandboxProcess]] = set()
_ENDING: Final = threading.Event()


@cache
def _end_at_exit() -> None:
    # Threads of executors are waited for before atexit's functions run, and may wait for a child.
    threading._register_atexit(_end_children)  # type: ignore[attr-defined]  # as said above


def _end_children() -> None:
    _ENDING.set()
    for child in list(_CHILDREN):
        child.end()


def _serve(calls: Connection, memory: int, cores: int) -> None:
    """Answer calls until the other end is closed."""
    begin_child()
    _limit("RLIMIT_CORE", 0)
    if memory:
        _limit("RLIMIT_AS", memory)
    with suppress(EOFError, OSError):
        while True:
            _limit("RLIMIT_CPU", math.ceil(time.process_time() + calls.recv() * cores))
            calls.send_bytes(_answer(calls.recv_bytes(), memory))


def _answer(call: bytes, memory: int) -> bytes:
    answer: Any
    try:
        work, args = ForkingPickler.loads(call)
        answer = work(*args)
        packed = bytes(ForkingPickler.dumps(answer))
        if len(packed) <= _ANSWER:
            return packed
        answer = SandboxError(f"what is read of it takes more than {_ANSWER // 2**20} MiB")
    except MemoryError:
        answer = SandboxError(f"it takes more than {memory / _GIB:.3g} GiB of memory")
    except SpanlabError as error:
        answer = error
    except BaseException as error:  # noqa: BLE001 - a panic of Rust is no Exception
        answer = SandboxError(f"{type(error).__name__}: {str(error)[:300]}")
    return bytes(ForkingPickler.dumps(answer))


def _limit(name: str, most: int) -> None:
    """Set a limit of this process, where the system has it."""
    if sys.platform == "win32":
        return

    kind = getattr(resource, name)
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    with suppress(ValueError, OSError):  # macOS refuses some
        resource.setrlimit(kind, (most, hard))
