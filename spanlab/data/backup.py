"""Backups: a database and the tuned programs in one file, checked by hash when it is read back.

The file is a zip: ``spanlab.db`` (see ``storage.copies``), ``programs/*.json``, ``tools.json``
(which names keys by their variables alone), and ``manifest.json`` with the SHA-256 of each. Keys
are in none of these: they are read from the environment when they are needed.
"""

from __future__ import annotations

import re
import shutil
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple
from zipfile import ZIP_DEFLATED, BadZipFile, ZipFile

from pydantic import ValidationError

from spanlab.base.errors import InputError, UsageError, unreadable
from spanlab.base.fields import FrozenModel
from spanlab.base.settings import LARGEST, Settings
from spanlab.formats.files import check_file, replacing
from spanlab.storage.copies import copies_folder, read_copy, write_copy
from spanlab.storage.upgrade import open_database

_DATABASE: Final = "spanlab.db"
_MANIFEST: Final = "manifest.json"
_PROGRAMS: Final = "programs/"
_TOOLS: Final = "tools.json"
_SMALL: Final = re.compile(r"programs/[a-z0-9][a-z0-9._-]*\.json|tools\.json")
_MOST: Final = 10_000  # files
_ENCRYPTED: Final = 1
_SPARE: Final = 64 * 1024 * 1024  # bytes of the disk that unpacking leaves free
_WHOLE: Final = "a file that spanlab backup wrote, whole"


class BackupManifest(FrozenModel):
    """When a backup was made (ISO 8601, UTC), by which version, and the SHA-256 of its files."""

    created: str
    spanlab: str
    files: dict[str, str]

    @property
    def n_programs(self) -> int:
        """How many files of programs it holds."""
        return sum(name.startswith(_PROGRAMS) for name in self.files)


class RestoredBackup(NamedTuple):
    """What a backup held, and whether its log of access came along."""

    manifest: BackupManifest
    has_log: bool


def back_up(file: Path, settings: Settings | None = None) -> BackupManifest:
    """Write a database, its programs and tools.json into one file, as they are, while people work.

    Args:
        file: appears whole or not at all, once it was read back; what it was before is replaced.
        settings: which database and programs; None for those of the environment.

    Raises:
        UsageError: the file's name would have it packed twice.
        InputError: the file cannot be written, or a program is larger than any can be.
        StoreError: the database, or the disk, refuses.
    """
    settings = settings or Settings.read()
    if file.suffix == ".gz":
        raise UsageError(f"{file}: a backup is packed already: name it .zip")
    with replacing(file) as stream, copies_folder(file.resolve().parent) as work:
        copy, packed = work / _DATABASE, work / "backup.zip"
        with closing(open_database(settings)) as database:
            write_copy(database, copy)
        members = {_DATABASE: copy, **_files_of(settings)}
        manifest = BackupManifest(
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            spanlab=version("spanlab"),
            files={name: _digest(path) for name, path in members.items()},
        )
        with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
            for name, path in members.items():
                archive.write(path, name)
            archive.writestr(_MANIFEST, manifest.model_dump_json(indent=1))
        with _unpack(packed, work):
            pass
        with packed.open("rb") as packed_stream:
            shutil.copyfileobj(packed_stream, stream)
    return manifest


def restore(
    file: Path, settings: Settings | None = None, *, replace: bool = False
) -> RestoredBackup:
    """Put what a backup holds into a database, on SQLite or PostgreSQL alike.

    The database is filled by one transaction. Answers of models that it keeps stay.

    Args:
        file: a backup, of this version or an earlier one.
        settings: which database and programs; None for those of the environment.
        replace: whether what the database holds goes, and files that differ are overwritten.

    Raises:
        InputError: it is no backup, was changed since it was written, or holds another program
            under the name of one that is there. Nothing is stored then.
        StoreError: the database is not empty, or refuses.
    """
    settings = settings or Settings.read()
    settings.home.mkdir(parents=True, exist_ok=True)
    with _unpack(file, settings.home) as (folder, manifest):
        contents = {
            _place(settings, name): (folder / name).read_bytes()
            for name in manifest.files
            if name != _DATABASE
        }
        for path, content in contents.items():
            if not replace and path.exists() and path.read_bytes() != content:
                raise InputError(
                    "differs from the one in the backup", file=path, expected="--yes to replace it"
                )
        source = Settings(home=folder, database_url=f"sqlite:///{folder / _DATABASE}")
        with (
            closing(open_database(source)) as copy,
            closing(open_database(settings)) as database,
            copy.reading() as stored,
            database.writing() as connection,
        ):
            has_log = read_copy(stored, connection, replace=replace)
            for path, content in contents.items():  # if that fails, the database stays as it was
                path.parent.mkdir(parents=True, exist_ok=True)
                with replacing(path) as stream:
                    stream.write(content)
    return RestoredBackup(manifest, has_log)


def _files_of(settings: Settings) -> Mapping[str, Path]:
    paths = {_PROGRAMS + path.name: path for path in sorted(settings.programs.glob("*.json"))}
    paths[_TOOLS] = settings.home / _TOOLS
    registry_files = {
        name: path for name, path in paths.items() if _SMALL.fullmatch(name) and path.is_file()
    }
    for path in registry_files.values():
        if path.stat().st_size > LARGEST:
            raise InputError("too large", file=path, expected=f"at most {LARGEST:,} bytes")
    return registry_files


def _place(settings: Settings, name: str) -> Path:
    if name == _TOOLS:
        return settings.home / _TOOLS
    return settings.programs / name.removeprefix(_PROGRAMS)


@contextmanager
def _unpack(file: Path, beside: Path) -> Iterator[tuple[Path, BackupManifest]]:
    """Unpack a backup into a folder that goes when the block ends, and compare it by hash."""
    with copies_folder(beside) as work:
        yield work, _check_members(file, work)


def _check_members(file: Path, folder: Path) -> BackupManifest:
    check_file(file)
    try:
        with ZipFile(file) as archive:
            _check_sizes(archive, file, shutil.disk_usage(folder).free - _SPARE)
            manifest = BackupManifest.model_validate_json(archive.read(_MANIFEST))
            if _DATABASE not in manifest.files:
                raise InputError("names no database", file=file, expected=_WHOLE)
            (folder / _PROGRAMS).mkdir()
            for name, digest in manifest.files.items():
                if name != _DATABASE and not _SMALL.fullmatch(name):
                    raise InputError(f"names a file {name!r}", file=file, expected=_WHOLE)
                target = folder / name
                # As many bytes as were announced come out, whatever is packed.
                with archive.open(name) as packed, target.open("xb") as plain:
                    shutil.copyfileobj(packed, plain)
                if _digest(target) != digest:
                    raise InputError(f"{name} was changed or damaged", file=file, expected=_WHOLE)
            return manifest
    except FileNotFoundError:
        raise InputError("there is no such file", file=file) from None
    except (BadZipFile, KeyError, ValidationError, zlib.error, EOFError) as no:
        raise InputError("no backup, or a damaged one", file=file, expected=_WHOLE) from no
    except OSError as error:
        raise unreadable(file, error) from error


def _check_sizes(archive: ZipFile, file: Path, free: int) -> None:
    members = archive.infolist()
    if len(members) > _MOST:
        raise InputError(f"holds {len(members):,} files", file=file, expected=_WHOLE)
    for member in members:
        if member.compress_type != ZIP_DEFLATED or member.flag_bits & _ENCRYPTED:
            raise BadZipFile
        if member.filename != _DATABASE and member.file_size > LARGEST:
            raise InputError(f"{member.filename} is too large", file=file, expected=_WHOLE)
    size = sum(member.file_size for member in members)
    if size > free:
        raise InputError(
            f"needs {size:,} bytes unpacked, and {max(0, free):,} are free on the disk", file=file
        )


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return file_digest(stream, "sha256").hexdigest()
