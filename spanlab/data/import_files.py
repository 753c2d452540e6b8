"""Files to import: those that people may name on the server, uploads, folders and archives."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from spanlab.base.errors import InputError
from spanlab.formats.containers import DAMAGE
from spanlab.formats.limits import UNPACKED, longest, most_unpacked, record_limit, too_large
from spanlab.formats.registry import folder_of, without_second

_CONTEXT = ".context.txt"
_HEAD = 1 << 20  # bytes looked at to estimate how many items follow


_DAMAGE = (*DAMAGE, OSError)  # of the system, for impossible names
_TABLES = (".arrow", ".parquet")
_CACHED = ("cache-", "tmp", ".")  # what `datasets` has computed from its files
_LINES = (".jsonl", ".ndjson", ".csv", ".tsv")


def in_folders(files: Iterable[Path]) -> list[Path]:
    """Replace folders by the tables in them: Arrow and parquet files in sorted order.

    Such a folder is what Hugging Face's ``datasets`` saves to disk, or a copy of a dataset from its
    Hub: one table in several files, maybe in a folder for each split. A folder that a format reads
    as a whole, such as GraphRAG's output, stays, also if its files are named one by one; a file
    that a format reads beside its others goes.

    Raises:
        InputError: there is neither in a folder.
    """
    paths = list(files)
    outputs = {folder for path in paths if (folder := folder_of(path)) is not None}
    paths_found = sorted(outputs)
    for file in paths:
        if file in outputs or file.parent in outputs:
            continue
        if not file.is_dir():
            paths_found.append(file)
            continue
        tables = [table for table in sorted(file.rglob("*")) if table.suffix in _TABLES]
        tables = [table for table in tables if not table.name.startswith(_CACHED)]
        if not tables:
            raise InputError(
                "there is no table in this folder",
                file=file,
                expected="the .arrow or .parquet files of a dataset, or the path of a file",
            )
        paths_found += tables
    return without_second(paths_found)


def save_upload(name: str, stream: BinaryIO, directory: Path) -> Path:
    """Copy an upload into ``directory`` under its own name, and return the copy's path.

    The name decides how the file is read; only its last part counts, so that it cannot lead to
    another directory.

    Raises:
        InputError: the name is no file name, or another upload has it.
    """
    last = name.replace("\\", "/").rpartition("/")[2]
    if last in {"", ".", ".."} or "\x00" in last:
        raise InputError("an upload without a file name", found=name, expected="a file")
    target = directory / last
    if target.exists():
        raise InputError("two uploads have this name", file=last, expected="every name once")
    with target.open("xb") as copy:
        shutil.copyfileobj(stream, copy, 1 << 20)
    return target


def unpack_contexts(upload: Path, directory: Path) -> Path:
    """Return the path of an upload's passages.

    A JSON Lines file is returned as it is. Of a zip archive, the ``<id>.context.txt`` files alone
    are unpacked into ``directory`` (which must not exist yet), under the last two parts of their
    path.

    Raises:
        InputError: the archive is broken, has no context file, or unpacks to more than a record,
            or a packed file, may hold.
    """
    if not zipfile.is_zipfile(upload):
        return upload
    try:
        with zipfile.ZipFile(upload) as archive:
            members = [m for m in archive.infolist() if m.filename.endswith(_CONTEXT)]
            _check_members(upload, members)
            for member in members:
                path = PurePosixPath(member.filename)
                parent = path.parent.name
                folder = directory / (parent if parent not in {"", "..", "."} else "contexts")
                folder.mkdir(parents=True, exist_ok=True)
                if (folder / path.name).exists():  # one answer's passages for another's, unsaid
                    file = f"{upload.name}: {member.filename}"
                    raise InputError(
                        "two files in the archive have this folder and name", file=file
                    )
                with archive.open(member) as source, (folder / path.name).open("wb") as copy:
                    shutil.copyfileobj(source, copy, 1 << 20)
    except _DAMAGE as error:
        raise InputError(f"the archive cannot be unpacked: {error}", file=upload.name) from error
    return directory


def estimate_items(files: Iterable[Path]) -> int | None:
    """Estimate how many items (1 or more) files hold, from their size and their first megabyte.

    None if one of the files cannot be estimated, such as a packed one or a JSON array.
    """
    total = 0.0
    for file in files:
        if not file.is_file() or file.suffix.lower() not in _LINES:
            return None
        with file.open("rb") as stream:
            head = stream.read(_HEAD)
        if head.lstrip().startswith(b"["):
            return None
        lines = max(head.count(b"\n"), 1)
        total += lines * file.stat().st_size / max(len(head), 1)
    return max(round(total), 1)


def _check_members(upload: Path, members: Sequence[zipfile.ZipInfo]) -> None:
    if not members:
        raise InputError(
            "no context file in this archive",
            file=upload.name,
            expected=f"files named <id>{_CONTEXT}",
        )
    limit = record_limit()
    for member in members:
        if member.file_size > longest(limit):
            raise too_large(f"{member.filename} in the archive", limit, file=upload.name)
    if sum(member.file_size for member in members) > most_unpacked(upload.stat().st_size, limit):
        raise too_large(UNPACKED, limit, file=upload.name)
