"""Pools of processes for work that keeps a processor busy."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context, parent_process
from types import FrameType
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Processes(ProcessPoolExecutor):
    """Processes that leave Ctrl+C to this one, from their first moment on, and end when it ends.

    They hold none of this one's standard streams.

    Args:
        count: how many at most, 1 or more; they start as they are needed.
    """

    def __init__(self, count: int) -> None:
        super().__init__(count, mp_context=get_context("spawn"), initializer=_begin)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Let a process do something; starts one if none is free."""
        with uninterrupted():
            return super().submit(fn, *args, **kwargs)


def executor_of(processes: int) -> Executor:
    """Return the executor of detectors that ask no model.

    Args:
        processes: how many, at most one for each processor; 0 is a thread of this process.
    """
    if processes:
        return Processes(min(processes, os.cpu_count() or 1))
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


def _begin() -> None:
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
