"""Pools of processes for work that keeps a processor busy."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from functools import partial
from multiprocessing import parent_process
from multiprocessing.context import SpawnContext, SpawnProcess
from types import FrameType, ModuleType
from typing import ParamSpec, TypeVar

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
