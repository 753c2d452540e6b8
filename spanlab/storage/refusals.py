"""What it means when a database refuses, in words: above all a full disk."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

FULL = (
    "the disk is full; this change is not stored, everything stored before it is kept: free some "
    "space and do it again"
)
_PAGE = 65_536  # bytes: SQLite cannot extend its files with less
_PG_FULL = "53100"  # PostgreSQL's disk_full


def in_words(error: Exception, file: Path | None = None) -> str:
    """Return why a database refused.

    Args:
        error: of the database's driver, or SQLAlchemy's around it.
        file: the SQLite file; None for PostgreSQL.
    """
    cause = getattr(error, "orig", None) or error
    if _code(cause) == sqlite3.SQLITE_FULL or getattr(cause, "sqlstate", None) == _PG_FULL:
        return FULL
    # SQLite calls it an I/O error where it cannot extend the files beside the database.
    maybe_full = isinstance(cause, sqlite3.OperationalError | OSError) and not is_lock(cause)
    return FULL if maybe_full and file is not None and is_full(file) else str(cause).strip()


def is_lock(error: BaseException) -> bool:
    """Say whether SQLite refused because somebody else holds a lock, and for no other reason."""
    return _code(error) in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _code(error: BaseException) -> int:
    """Return SQLite's primary result code; 0 for what is no error of SQLite's."""
    code: int = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF


def is_full(file: Path) -> bool:
    """Say whether the disk is full on which a file is, or would be."""
    folder = next(each for each in file.absolute().parents if each.exists())
    return shutil.disk_usage(folder).free < _PAGE
