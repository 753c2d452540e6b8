"""What a file is packed in: an archive of one file, Inspect's log, or another encoding than UTF-8.

Readers go back and forth in a file, so what is packed so is made plain once, in a temporary file
that lasts as long as it is among the last few that were read. gzip alone is unpacked as it is read.
"""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import re
import shutil
import sys
import tempfile
import unicodedata
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import lru_cache
from itertools import chain
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import IO, Any, BinaryIO, Final, cast

from pydantic_core import from_json, to_json

from spanlab.base.errors import InputError, UsageError
from spanlab.formats.limits import UNPACKED, longest, most_unpacked, too_large

GZIP: Final = b"\x1f\x8b"
ZIP: Final = b"PK\x03\x04"
_UTF16: Final = (b"\xff\xfe", b"\xfe\xff")
_BOOK: Final = "xl/workbook.xml"  # what every workbook of Excel has in it
_SAMPLES: Final = "samples/"  # of an Inspect log
_DATA: Final = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow")
_LINES: Final = (".jsonl", ".ndjson")
_MARKED: Final = frozenset(("label", "labels", "entities"))  # of doccano
# What unpacking raises for damaged data, by the ways to pack.
DAMAGE: Final = (
    *(zipfile.BadZipFile, NotImplementedError, RuntimeError, ValueError, EOFError),
    *(zlib.error, lzma.LZMAError, gzip.BadGzipFile),
)
_ASIDE: Final = frozenset(("events", "events_data", "store", "attachments"))  # of a sample
_ATTACHED: Final = "attachment://"
_SHOWN: Final = 60  # characters of a file in an offer
_OFFERED: Final = 2  # encodings, of several that read a file
_NEARLY_ALL: Final = 0.9
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_LATIN: Final = "[A-Za-z\u00c0-\u024f]"
_CYRILLIC: Final = "[\u0400-\u042f\u0490]*[\u0430-\u045f\u0491]*"  # no capitals after small letters
# Words that texts in an encoding have, the commonest of those that read the same bytes first.
_WORDS_IN: Final = {
    "windows-1252": f"{_LATIN}*[A-Za-z]{_LATIN}*|{_LATIN}",  # one in other letters alone is none
    "cp932": "[\u3005-\u30ff\u4e00-\u9fff]+",
    "euc_kr": "[\uac00-\ud7a3]+",
    "gb18030": "[\u4e00-\u9fff]+",
    "euc_jp": "[\u3005-\u30ff\u4e00-\u9fff]+",
    "big5": "[\u4e00-\u9fff]+",
    "windows-1255": "[\u05d0-\u05ea]+",
    "windows-1251": _CYRILLIC,
    "koi8_r": _CYRILLIC,
    "windows-1253": "[\u0386-\u03ab]*[\u0390\u03ac-\u03ce]*",
    "windows-1256": "[\u0620-\u06d2]+",
}
_BUFFER: Final = 1 << 16


def plain_path(path: Path, head: bytes, name: str, limit: int, encoding: str | None) -> Path:
    """Return a file that holds in UTF-8 what is in ``path``: itself, or a temporary one.

    Args:
        path: a file that is there.
        head: its first four bytes.
        name: what messages call it.
        limit: bytes of memory that a record may take.
        encoding: that of a text; None for UTF-8, or what its byte order mark says.

    Raises:
        InputError: it cannot be unpacked, holds several files, or is not in this encoding.
        UsageError: there is no such encoding.
    """
    is_archive = head == ZIP and not is_workbook(path)
    is_recoded = head.startswith(_UTF16) or (encoding is not None and not _is_utf8(encoding))
    if not is_archive and not is_recoded:
        return path
    about = path.stat()
    stamp = (about.st_mtime_ns, about.st_size)
    return Path(_made_plain(path, stamp, name, limit, encoding).name)


def is_workbook(path: Path) -> bool:
    """Say whether a file is a workbook of Excel."""
    try:
        with zipfile.ZipFile(path) as archive:
            return _BOOK in archive.namelist()
    except DAMAGE:
        return False  # nor is it any other archive, which is said when it is unpacked


@lru_cache(maxsize=4)
def _made_plain(
    path: Path, stamp: tuple[int, int], name: str, limit: int, encoding: str | None
) -> IO[bytes]:
    """Return the temporary file; ``stamp`` tells a file from what it was before it changed."""
    with ExitStack() as failing:
        target = cast(
            IO[bytes], failing.enter_context(tempfile.NamedTemporaryFile(prefix="spanlab-"))
        )
        try:
            with path.open("rb") as stream:
                if stream.read(len(ZIP)) == ZIP:
                    _unpack(path, target, name, limit)
                else:
                    _recode(path, target, name, encoding or "utf-16")
        except (*DAMAGE, _zstd()[0].BadZipFile, _zstd()[1]) as error:
            raise InputError(f"the packed data is broken: {error}", file=name) from error
        target.flush()
        failing.pop_all()  # it stays open
        return target


def _zstd() -> tuple[ModuleType, type[Exception]]:
    """Return zipfile as it knows Zstandard, by which Inspect packs, and what that raises.

    Before Python 3.14 that is a module of its own, whose errors are, too.
    """
    if sys.version_info >= (3, 14):
        from compression.zstd import ZstdError

        return zipfile, ZstdError
    from backports.zstd import ZstdError
    from backports.zstd import zipfile as zstd_zipfile

    return zstd_zipfile, ZstdError


def _unpack(path: Path, target: IO[bytes], name: str, limit: int) -> None:
    most = most_unpacked(path.stat().st_size, limit)
    with _zstd()[0].ZipFile(path) as archive:
        members = [m for m in archive.infolist() if _is_data(m.filename)]
        if sum(member.file_size for member in members) > most:
            raise too_large(UNPACKED, limit, file=name)
        samples = [member for member in members if member.filename.startswith(_SAMPLES)]
        if samples and "header.json" in archive.namelist():
            for member in samples:
                target.write(_sample(archive.read(member), name, limit))
            return
        if len(members) > 1 and all(m.filename.lower().endswith(_LINES) for m in members):
            for line in _lines_of(archive, members):
                target.write(line)
            return
        if len(members) != 1:
            raise InputError(
                "this archive does not hold one file of data",
                file=name,
                found=", ".join(member.filename for member in members[:5]) or "none",
                expected=f"one file ({', '.join(_DATA)}); unpack it and name the files",
            )
        with archive.open(members[0]) as source:
            shutil.copyfileobj(source, target, _BUFFER)


def _lines_of(archive: Any, members: Sequence[Any]) -> Iterator[bytes]:
    """Yield the lines of several files; with who annotated, where each has those of one person.

    So doccano writes them, by the names of its files.
    """
    files = {PurePosixPath(m.filename).stem: archive.open(m) for m in members}
    firsts = {name: stream.readline().rstrip() for name, stream in files.items()}
    texts = {name: _text_in(line) for name, line in firsts.items()}
    are_of_people = None not in texts.values() and len({*texts.values()}) < len(texts)
    for name, stream in files.items():
        said = b", " + to_json({"annotator": name})[1:] if are_of_people else b""
        for line in map(bytes.rstrip, chain([firsts[name]], stream)):
            yield (line[:-1] + said if said and line.endswith(b"}") else line) + b"\n"


def _text_in(line: bytes) -> str | None:
    """Return the text that a line of doccano marks; None for another line."""
    try:
        record = from_json(line)
    except ValueError:
        return None
    is_marked = isinstance(record, dict) and not _MARKED.isdisjoint(record)
    return record.get("text", record.get("data")) if is_marked else None


def _is_data(name: str) -> bool:
    path = PurePosixPath(name)
    hidden = any(part.startswith((".", "__")) for part in path.parts)
    return path.suffix.lower() in _DATA and not hidden


def _sample(raw: bytes, name: str, limit: int) -> bytes:
    """Return a sample of an Inspect log as a line, without the log of its run."""
    if len(raw) > longest(limit):
        raise too_large("a sample", limit, file=name)
    try:
        sample = from_json(raw)
    except ValueError as error:
        raise InputError(f"a sample is not valid JSON: {error}", file=name) from None
    texts = sample.get("attachments") or {}
    kept = {key: value for key, value in sample.items() if key not in _ASIDE}
    return to_json(_attached(kept, texts), inf_nan_mode="null") + b"\n"


def _attached(value: Any, texts: dict[str, Any]) -> Any:
    """Return a value with long texts in their places, which Inspect keeps apart."""
    if isinstance(value, dict):
        return {key: _attached(inner, texts) for key, inner in value.items()}
    if isinstance(value, list):
        return [_attached(inner, texts) for inner in value]
    if isinstance(value, str) and value.startswith(_ATTACHED):
        return texts.get(value.removeprefix(_ATTACHED), value)
    return value


def _recode(path: Path, target: IO[bytes], name: str, encoding: str) -> None:
    with path.open("rb") as plain:
        packed = plain.read(len(GZIP)) == GZIP
        plain.seek(0)
        stream = cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if packed else plain
        try:
            with io.TextIOWrapper(stream, encoding=encoding, newline="") as text:
                while part := text.read(_BUFFER):
                    target.write(part.encode())
        except UnicodeError as error:
            raise InputError(f"not {encoding}: {error}", file=name, expected=encoding) from None


def _is_utf8(encoding: str) -> bool:
    try:
        return codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    except LookupError:
        raise UsageError(
            f"there is no encoding {encoding!r}; examples are utf-16, windows-1252, latin-1"
        ) from None


def check_utf8(head: bytes, name: str) -> None:
    """Check that the beginning of a file, which may end inside a character, is UTF-8 text.

    Raises:
        InputError: says in which encodings it would be text, and how it would begin.
    """
    try:
        is_text = "\x00" not in codecs.getincrementaldecoder("utf-8")().decode(head)
        problem = "the file is binary, or UTF-16"
    except UnicodeDecodeError:
        is_text, problem = False, "the file is not UTF-8 text"
    if not is_text:
        raise InputError(problem, file=name, expected="; ".join(("UTF-8", *_offers(head))))


def _offers(head: bytes) -> Sequence[str]:
    """Return how a file would begin in other encodings, and what to call them."""
    return [
        f"--encoding {encoding} reads it as {text[:_SHOWN]!r}"
        for encoding, text in _decoded(head)
        if not any(unicodedata.category(mark) == "Cc" and mark not in "\t\r\n" for mark in text)
    ]


def _decoded(head: bytes) -> Sequence[tuple[str, str]]:
    """Return the likeliest encodings of a beginning, and the text that it has in them.

    They are those in whose texts words are of one script; else the commonest one that has all
    its bytes.
    """
    if head.count(0) > len(head) // 4:  # a zero beside each letter of the Latin alphabet
        names = ["utf-16-be" if head[:1] == b"\0" else "utf-16-le"]
    else:
        names = list(_WORDS_IN)
    found = []
    for name in names:
        with suppress(UnicodeDecodeError):
            found.append((name, codecs.getincrementaldecoder(name)().decode(head)))
    likely = [pair for pair in found if pair[0] in _WORDS_IN and _has_words_of(*pair)]
    return likely[:_OFFERED] or [pair for pair in found if pair[0] in names[:1]]


def _has_words_of(encoding: str, text: str) -> bool:
    """Say whether words with letters outside of ASCII are nearly all such as its readers write."""
    words = [word for word in _LETTERS.findall(text) if not word.isascii()]
    others = [mark for mark in text if not mark.isascii()]
    fitting = sum(re.fullmatch(_WORDS_IN[encoding], word) is not None for word in words)
    are_letters = 2 * sum(map(str.isalpha, others)) > len(others)
    return are_letters and fitting >= _NEARLY_ALL * len(words)
