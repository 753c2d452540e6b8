"""How much uploaded files may hold in memory, and for how long.

Streamlit keeps a file in memory until Python's collector finds the closed session that it belongs
to, up to half an hour later, and counts none together.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from streamlit.runtime import Runtime
from streamlit.runtime.memory_uploaded_file_manager import MemoryUploadedFileManager

from spanlab.base.processes import most_memory
from spanlab.schema import OWNER, Actor, Permission

CERTIFICATES = 2 * 2**20  # bytes of people who only check certificates, which have a tenth of one
_UNKNOWN = 4.0  # GiB that a machine counts as having where the system does not say
_LEFT = 120.0  # seconds that a browser has to come back to its session, as Streamlit has it
_LOOK = 30.0  # seconds between two looks


class Uploads:
    """The uploaded files of a server, by whose they are.

    Args:
        most: bytes of all together; half of them for a lead who has logged in, and
            ``CERTIFICATES`` for those who import nothing. By default a third of the machine's
            memory: a file that is read is there twice.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most or int((most_memory() or _UNKNOWN) * 2**30 * 4 / 9)
        self._whose: dict[str, str] = {}  # subjects by session
        self._coming: Counter[str] = Counter()  # bytes on their way, by subject
        self._left: dict[str, float] = {}  # when a session was first seen without a browser
        self._watch: asyncio.Task[None] | None = None

    @contextmanager
    def admitted(self, actor: Actor, session: str, size: int) -> Iterator[bool]:
        """Hold room for a file while it comes; yields whether there is any.

        Args:
            actor: whose file it is.
            session: Streamlit's id of the session that gets it.
            size: its bytes.
        """
        held, subject = Counter(self._coming), actor.subject
        for known, files in list(_manager().file_storage.items()):
            held[self._whose.get(known, "")] += sum(len(one.data) for one in list(files.values()))
        imports = actor.may_somewhere(Permission.MANAGE)
        own = self._most // 2 if imports else min(CERTIFICATES, self._most // 2)
        own = self._most if subject == OWNER.subject else own
        fits = held.total() + size <= self._most and held[subject] + size <= own
        if fits:
            self._whose[session] = subject
            self._coming[subject] += size
            if self._watch is None or self._watch.done():
                self._watch = asyncio.get_running_loop().create_task(self._free())
        try:
            yield fits
        finally:
            if fits:
                self._coming[subject] -= size

    async def _free(self) -> None:
        """Free the files of sessions that have ended, as long as there are any files."""
        while self._coming.total() or _manager().file_storage:
            await asyncio.sleep(_LOOK)
            self.free_ended(time.monotonic())

    def free_ended(self, now: float) -> None:
        """Free the files of sessions that have had no browser for two minutes.

        Args:
            now: seconds of ``time.monotonic``.
        """
        for session in list(_manager().file_storage):
            if Runtime.instance().is_active_session(session):
                self._left.pop(session, None)
            elif self._left.setdefault(session, now) <= now - _LEFT:
                _manager().remove_session_files(session)
        known = _manager().file_storage.keys()
        self._left = {session: at for session, at in self._left.items() if session in known}
        if not self._coming.total():
            self._whose = {one: who for one, who in self._whose.items() if one in known}


def _manager() -> MemoryUploadedFileManager:
    manager = Runtime.instance().uploaded_file_mgr
    assert isinstance(manager, MemoryUploadedFileManager)  # Streamlit's only one
    return manager
