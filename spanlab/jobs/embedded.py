"""The worker inside the app's process: started once, however often the app's pages run."""

from __future__ import annotations

import atexit
import logging
import threading

from spanlab.errors import SpanlabError
from spanlab.jobs.worker import WorkerRole, start, stop
from spanlab.runtime import switch_threads_often
from spanlab.settings import Settings

NAME = "app"

log = logging.getLogger(__name__)

_STARTED = threading.Event()
_LOCK = threading.Lock()


def start_embedded(settings: Settings | None) -> None:
    """See ``spanlab.jobs.start_embedded_worker``."""
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
