"""Looking for garbage less often while many calls are under way.

Python looks for objects that only refer to each other after every 700 new ones that stay. With a
hundred calls under way that is once in a few calls, finds next to nothing, because what is under
way is no garbage, and takes an eighth of a run's processor time.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

_OBJECTS = 10_000  # that stay, between two looks: some megabytes of garbage at most


class _Rarely:
    """How many runs of this process want it so, and what was so before the first of them."""

    def __init__(self) -> None:
        self.lock = Lock()
        self.runs = 0
        self.before = (0, 0, 0)


_RARELY = _Rarely()


@contextmanager
def rarely_collected() -> Iterator[None]:
    """Look for garbage rarely until the last such block of the process is over."""
    with _RARELY.lock:
        _RARELY.runs += 1
        if _RARELY.runs == 1:
            _RARELY.before = gc.get_threshold()
            if 0 < _RARELY.before[0] < _OBJECTS:  # 0 is never
                gc.set_threshold(_OBJECTS, *_RARELY.before[1:])
    try:
        yield
    finally:
        with _RARELY.lock:
            _RARELY.runs -= 1
            if not _RARELY.runs:
                gc.set_threshold(*_RARELY.before)
