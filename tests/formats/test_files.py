"""Files as they come: packed, marked, broken, missing; and files that are written whole."""

from __future__ import annotations

import fcntl
import gzip
import io
import os
import re
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, time, timedelta
from pathlib import Path
from typing import Any, BinaryIO

import openpyxl
import pytest

import spanlab
from spanlab.base.errors import InputError, UsageError
from spanlab.base.settings import Settings
from spanlab.data.backup import restore
from spanlab.formats import ReadOptions, detect, formats, known, read, writable, write
from spanlab.formats.files import replacing
from spanlab.formats.reader import FormatReader
from spanlab.formats.registry import reader_of
from spanlab.measure.certificates import read_certificate
from spanlab.schema import Item, Record

if sys.version_info >= (3, 14):
    zstd_zipfile = zipfile
else:
    from backports.zstd import zipfile as zstd_zipfile

LINE = b'{"id":"a","answer":"x"}\n'
RECORD = Record(item=Item(id="b", answer="y"))


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return packed.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(LINE, id="plain"),
        pytest.param(b"\xef\xbb\xbf" + LINE, id="with a byte order mark"),
        pytest.param(LINE.rstrip(), id="without a last line end"),
        pytest.param(LINE.replace(b"\n", b"\r\n"), id="with CRLF line ends"),
        pytest.param(b"\n\n" + LINE + b"\n  \n", id="with blank lines"),
        pytest.param(gzip.compress(LINE), id="packed"),
        pytest.param(zipped({"data/file.jsonl": LINE, "README.md": b"#"}), id="in an archive"),
        pytest.param(LINE.decode().encode("utf-16"), id="utf-16 that says so"),
        pytest.param(b"[" + LINE + b"]", id="a JSON array"),
        pytest.param(b'\n[\n  {\n  "id": "a",\n "answer": "x"}\n]', id="a pretty JSON array"),
    ],
)
@pytest.mark.parametrize("name", ["auto", "spanlab"])
def test_a_file_is_read_however_it_is_wrapped(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / "file.jsonl"
    path.write_bytes(content)
    (record,) = read(path, ReadOptions(format=name))
    assert record.item == Item(id="a", answer="x")


def test_a_file_in_another_encoding_is_read_if_it_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_bytes("id;answer\r\na;„Fünf €“\r\n".encode("windows-1252"))
    (record,) = read(path, ReadOptions(encoding="cp1252"))
    assert record.item == Item(id="a", answer="„Fünf €“")
    with pytest.raises(UsageError, match="no encoding 'klingon'"):
        list(read(path, ReadOptions(encoding="klingon")))
    with pytest.raises(InputError, match="not ascii"):
        list(read(path, ReadOptions(encoding="ascii")))


def test_an_archive_of_several_files_is_refused_with_their_names(tmp_path: Path) -> None:
    path = tmp_path / "files.zip"
    path.write_bytes(zipped({"a.jsonl": LINE, "b.csv": b"id,answer\n1,b\n"}))
    with pytest.raises(InputError, match=r"one file of data.*a\.jsonl, b\.csv"):
        list(read(path))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        pytest.param(b"", "the file is empty", id="empty"),
        pytest.param(b"\xef\xbb\xbf \n\n", "the file is empty", id="blank"),
        pytest.param(
            LINE.decode().encode("utf-16-le"), "--encoding utf-16-le reads it as '{", id="utf-16"
        ),
        pytest.param(
            "id,answer\n1,caf\xe9\n".encode("latin-1"),
            "not UTF-8.*--encoding windows-1252 reads it as 'id,answer",
            id="latin-1",
        ),
        pytest.param(bytes(range(256)) * 9, "not UTF-8 text", id="garbage"),
        pytest.param(b"abc\x00def\n", "the file is binary", id="zero bytes"),
        pytest.param(gzip.compress(LINE * 9)[:-9], "packed data is broken", id="half a gzip"),
        pytest.param(zipped({"a.jsonl": LINE * 9})[:-40], "packed data is broken", id="half a zip"),
        pytest.param(
            "id,質問\n1,高さは?です。\n".encode("cp932"),
            r"^(?!.*latin-1).*cp932 reads it as 'id,質問",
            id="cp932",
        ),
        pytest.param(
            "id,問題,回答\n1,長江有多長?,長江全長約六千三百公里,是亞洲第一長河。\n".encode("big5"),
            r"^(?!.*koi8).*big5 reads it as 'id,問題",
            id="big5",
        ),
        pytest.param("id,Ответ\n1,Да\n".encode("cp1251"), "1251 reads it as 'id,Ответ", id="1251"),
        pytest.param(b"once upon a time", "not recognised.*once upon a time", id="prose"),
        pytest.param(b"[]", "empty array; expected a record", id="no records"),
        pytest.param(b'{"a": 1', "not valid JSON: EOF", id="cut off"),
        pytest.param(b"[" * 100_000, "the file ends inside the array", id="nested, cut off"),
        pytest.param(
            b"[" * 10**5 + b"]" * 10**5, "not valid JSON: recursion limit", id="deeply nested"
        ),
    ],
)
def test_what_is_no_dataset_is_said_so(tmp_path: Path, content: bytes, said: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(InputError, match=said) as caught:
        list(read(path))
    assert caught.value.file == str(path)


@pytest.mark.parametrize("packing", ["deflate", "zstd", "lzma", "workbook"])
def test_an_archive_with_wrong_bytes_is_said_so_whatever_they_are(
    tmp_path: Path, packing: str
) -> None:
    raw = bytearray(_archive(packing))
    for number, place in enumerate(range(4, len(raw), max(len(raw) // 60, 1))):
        path = tmp_path / f"{number}"
        path.write_bytes(raw[:place] + bytes([raw[place] ^ 255]) + raw[place + 1 :])
        with suppress(InputError):
            list(read(path))


def _archive(packing: str) -> bytes:
    packed = io.BytesIO()
    if packing == "workbook":
        book = openpyxl.Workbook()
        book.active.append(["id", "answer"])
        book.active.append(["1", "It was built in 1901."])
        book.save(packed)
        return packed.getvalue()
    ways = {"deflate": zstd_zipfile.ZIP_DEFLATED, "lzma": zstd_zipfile.ZIP_LZMA}
    way = ways.get(packing, zstd_zipfile.ZIP_ZSTANDARD)
    with zstd_zipfile.ZipFile(packed, "w", way) as archive:
        lines = (f'{{"id":"{n}","answer":"It was built in {n}."}}' for n in range(50))
        archive.writestr("a.jsonl", "\n".join(lines))
    return packed.getvalue()


def test_a_cell_of_a_workbook_is_what_it_shows(tmp_path: Path) -> None:
    book, day = openpyxl.Workbook(), datetime(2024, 3, 5)
    book.active.append(["answer", "day", "midnight", "named", "clock", "time", "lasted"])
    book.active.append([day, day, day, day, day, time(8, 30), timedelta(hours=30, minutes=5)])
    formats = (
        "YYYY-MM-DD",
        "mm-dd-yy",
        "yyyy-mm-dd hh:mm",
        '[$-407]d. mmmm "sechs"',
        "d/m/y AM/PM H",
    )
    for cell, form in zip(book.active[2], formats, strict=False):
        cell.number_format = form
    book.save(tmp_path / "dates.xlsx")
    (record,) = read(tmp_path / "dates.xlsx")
    assert record.item.answer == "2024-03-05"
    assert list(record.item.meta.values()) == [
        *("2024-03-05", "2024-03-05T00:00:00", "2024-03-05", "2024-03-05T00:00:00"),
        *("08:30:00", "30:05:00"),
    ]


def test_a_missing_file_and_a_directory_are_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.jsonl: there is no such file"):
        read(tmp_path / "nowhere.jsonl")
    with pytest.raises(InputError, match="this is a directory; expected a file"):
        read(tmp_path, ReadOptions(format="spanlab"))


def test_an_unknown_format_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no format 'xml'; known are auto, spanlab, mushroom"):
        read(tmp_path / "x", ReadOptions(format="xml"))
    with pytest.raises(UsageError, match="'arrow' cannot be written; these can: spanlab, mushroom"):
        write([], tmp_path / "x", format="arrow")
    assert {"spanlab", "mushroom", "labelstudio", "claims"} <= set(writable()) & set(formats())


@pytest.mark.parametrize("name", formats())
def test_every_format_names_its_reader(name: str) -> None:
    assert issubclass(reader_of(name), FormatReader)


def test_one_file_is_a_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the guide shows, as a file in the folder of formats: nothing else is touched."""
    guide = (Path(known.__file__).parents[2] / "developers" / "adding.md").read_text(
        encoding="utf-8"
    )
    (code,) = (
        text for text in re.findall(r"```python\n(.*?)```", guide, re.DOTALL) if "FORMAT" in text
    )
    (tmp_path / "letters.py").write_text(code)
    monkeypatch.setattr(known, "__path__", [*known.__path__, str(tmp_path)])
    try:
        line = '{"asked": "How tall?", "said": "330 m", "wrong": "330"}\n'
        (tmp_path / "a.jsonl").write_text(line)
        assert detect(tmp_path / "a.jsonl") == "letters"
        (record,) = read(tmp_path / "a.jsonl")
        assert [span.text for span in record.annotations[0].spans] == ["330"]
        write([record], tmp_path / "b.jsonl", format="letters")
        assert (tmp_path / "b.jsonl").read_text() == '{"asked":"How tall?","said":"330 m"}\n'
        (tmp_path / "c.jsonl").write_text(line.replace('"330"', '"x"'))
        with pytest.raises(InputError, match=r"c\.jsonl, line 1, wrong: it is not in the answer"):
            list(read(tmp_path / "c.jsonl"))
    finally:
        sys.modules.pop(f"{known.__name__}.letters", None)


def test_an_option_of_one_format_is_refused_for_another_and_told_where_it_is_had(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text("question,answer\nHow?,So.\n")
    options = ReadOptions.checked({"records": "results"})
    with pytest.raises(UsageError, match=r"no option --records, only --h.*, --turns,.*; json has"):
        read(tmp_path / "a.csv", options)
    (tmp_path / "a.toml").write_text("records = 3\n")
    with pytest.raises(InputError, match=r"a\.toml, records: it should be a text"):
        ReadOptions.checked({"recipe": tmp_path / "a.toml"})
    with pytest.raises(UsageError, match="no option named 'nonsense'"):
        ReadOptions.checked({"nonsense": 1})


def records(n: int) -> Iterator[Record]:
    for index in range(n):
        yield Record(item=Item(id=str(index), answer="x"))


def broken(n: int) -> Iterator[Record]:
    yield from records(n)
    raise InputError("the source broke off")


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("x.jsonl", "spanlab"),
        ("x.JSONL.gz", "spanlab"),
        ("x", "spanlab"),
        ("x.csv", "csv"),
        ("x.csv.gz", "csv"),
        ("x.parquet", "parquet"),
        ("x.zip", "zip"),
    ],
)
def test_what_is_saved_has_the_format_that_its_name_ends_in(
    tmp_path: Path, name: str, found: str
) -> None:
    path = tmp_path / name
    assert spanlab.save([RECORD], path) == 1
    if found == "zip":
        assert zipfile.is_zipfile(path)
    else:
        assert detect(path) == found
        assert [record.item.answer for record in spanlab.load(path)] == ["y"]


@pytest.mark.parametrize("name", ["x.xlsx", "x.json", "x.pdf", "x.tsv.gz"])
def test_an_ending_of_no_format_is_refused_and_names_the_others(tmp_path: Path, name: str) -> None:
    known = r"these do: \.jsonl \(spanlab\), .*\.csv \(csv\), \.parquet \(parquet\), \.zip"
    with pytest.raises(UsageError, match=known):
        spanlab.save([RECORD], tmp_path / name)
    assert list(tmp_path.iterdir()) == []
    assert spanlab.save([RECORD], tmp_path / name, format="labelstudio") == 1  # named: whatever


def test_a_file_is_replaced_only_when_all_is_written(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("before")
    with pytest.raises(InputError, match="the source broke off"):
        write(broken(3), path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
    assert write(records(3), path) == 3
    assert len(path.read_bytes().splitlines()) == 3
    assert list(tmp_path.iterdir()) == [path]


def test_a_replaced_file_keeps_its_permissions(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    path.write_text("before")
    path.chmod(0o640)
    write(records(1), path)
    assert path.stat().st_mode & 0o777 == 0o640


def test_a_file_can_be_rewritten_from_itself(tmp_path: Path) -> None:
    path = tmp_path / "same.jsonl"
    write(records(5000), path)
    before = path.read_bytes()
    write(read(path), path)
    assert path.read_bytes() == before


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.jsonl").write_text("")
    (tmp_path / "link.jsonl").symlink_to("real.jsonl")
    write(records(1), tmp_path / "link.jsonl")
    assert (tmp_path / "link.jsonl").is_symlink()
    assert (tmp_path / "real.jsonl").read_bytes()


def test_a_device_is_written_to_and_not_replaced() -> None:
    assert write(records(2), Path("/dev/null")) == 2
    assert Path("/dev/null").is_char_device()


def test_a_packed_file_is_written_the_same_every_time(tmp_path: Path) -> None:
    write(records(3), tmp_path / "a.jsonl.gz")
    write(records(3), tmp_path / "b.jsonl.gz")
    assert (tmp_path / "a.jsonl.gz").read_bytes() == (tmp_path / "b.jsonl.gz").read_bytes()
    assert [record.item.id for record in read(tmp_path / "a.jsonl.gz")] == ["0", "1", "2"]


def test_a_directory_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"out\.jsonl: cannot be written: No such file"):
        write(records(1), tmp_path / "no" / "out.jsonl")


def test_records_can_be_written_to_a_stream() -> None:
    stream = io.BytesIO()
    assert write(records(2), stream) == 2
    assert stream.getvalue().count(b"\n") == 2


@pytest.mark.parametrize("name", ["auto", "spanlab", "mushroom"])
def test_lines_that_are_arrays_are_said_so(tmp_path: Path, name: str) -> None:
    path = tmp_path / "pairs.jsonl"
    path.write_text('["a", "x"]\n["b", "y"]\n')
    with pytest.raises(
        InputError, match=r"pairs.jsonl, line 1: the line is a JSON array"
    ) as caught:
        list(read(path, ReadOptions(format=name)))
    assert caught.value.expected is not None
    assert "a JSON object on every line" in caught.value.expected


def test_a_file_that_another_writer_took_for_left_over_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its making and its lock another writer may remove it."""
    lock, removed = fcntl.flock, list[Path]()

    def late(stream: BinaryIO, operation: int) -> None:
        if not removed:
            removed.append(Path(stream.name))
            removed[0].unlink()
        lock(stream, operation)

    monkeypatch.setattr("spanlab.formats.files.fcntl.flock", late)
    with replacing(tmp_path / "out.jsonl") as stream:
        stream.write(b"whole")
    assert (tmp_path / "out.jsonl").read_bytes() == b"whole"
    assert removed
    assert [path.name for path in tmp_path.iterdir()] == ["out.jsonl"]


@pytest.mark.parametrize("kind", ["device", "link to a device", "pipe"])
def test_what_may_never_end_is_no_file(tmp_path: Path, kind: str) -> None:
    path = Path("/dev/zero") if kind == "device" else tmp_path / "items.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind != "device":
        path.symlink_to("/dev/zero")
    settings = Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'spanlab.db'}")
    with pytest.raises(InputError, match="a pipe or a device"):
        next(read(path))
    with pytest.raises(InputError, match="a pipe or a device"):
        restore(path, settings)
    with pytest.raises(InputError, match="a pipe or a device"):
        read_certificate(path)


@pytest.mark.parametrize(("n", "times"), [(200, 1), (20_000, 2)])
def test_a_file_is_opened_once_or_twice_however_many_questions_its_reader_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, times: int
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text('{"prompt": "Capital?", "reply": "Oslo.", "ctx": ["It is Oslo."]}\n' * n)
    opened: list[Path] = []
    real = Path.open

    def counted(self: Path, *args: Any, **kwargs: Any) -> Any:
        opened.append(self)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Path, "open", counted)
    assert sum(1 for _ in read(path, ReadOptions(on_warning=lambda _: None))) == n
    assert opened.count(path) == times
