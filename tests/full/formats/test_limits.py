"""Files made to take more memory than they look: refused, in memory that is bounded."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from forks import run_forked

from spanlab.base.errors import InputError, UsageError
from spanlab.base.settings import Settings
from spanlab.data.importing import ImportOptions, import_files
from spanlab.formats import ReadOptions, RejectedRecord, read
from spanlab.storage import Store

LIMIT = 16  # MiB
MIB = 1 << 20
ITEM = b'{"id":"a","answer":"x"}\n'


def _line(tail: bytes) -> bytes:
    return b'{"id":"b","answer":"y","question":"' + tail + b'"}\n'


def _table(path: Path, answer: pa.Array) -> None:
    ids = [str(number) for number in range(len(answer))]
    pq.write_table(pa.table({"id": ids, "answer": answer}), path, compression="zstd")


def _repeated(size: int) -> Callable[[Path], object]:
    """One text of ``size`` MiB, once in the file and in each of 1,000 rows."""
    text = pa.array(["x" * size * MIB])
    indices = pa.array([0] * 1000, pa.int32())
    return lambda path: _table(path, pa.DictionaryArray.from_arrays(indices, text))


def _lists(path: Path) -> None:
    pq.write_table(pa.table({"answer": ["x"], "tags": [[1] * 3_000_000]}), path)


def _lying(path: Path) -> None:
    """A long text, of which the metadata says that it takes 1,000 bytes."""
    table = pa.table({"id": ["a"], "answer": ["x" * 75 * MIB]})
    pq.write_table(table, path, compression="zstd", use_dictionary=False, write_statistics=False)
    group = pq.ParquetFile(path).metadata.row_group(0)
    raw = path.read_bytes()
    for size in (group.column(1).total_uncompressed_size, group.total_byte_size):
        said = _varint(size)
        assert raw.count(said) == 1
        raw = raw.replace(said, _varint(1000, len(said)))
    path.write_bytes(raw)


def _varint(number: int, length: int = 0) -> bytes:
    """Return a number as Thrift's compact protocol writes it, in at least so many bytes."""
    rest, out = number << 1, bytearray()
    while rest or len(out) < length or not out:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out[-1] &= 0x7F
    return bytes(out)


def _fine_array(path: Path) -> None:
    path.write_bytes(
        b"[" + b",".join([ITEM.strip()[:-1] + b',"meta":{"m":[1,2,3]}}'] * 75_000) + b"]"
    )


FILES: dict[str, tuple[str, Callable[[Path], object], str]] = {
    "a long line": (
        "a.jsonl",
        lambda path: path.write_bytes(ITEM + _line(b"x" * 30 * MIB)),
        r"a.jsonl, line 2: the record is too large; expected at most 16 MiB of memory; "
        "SPANLAB_RECORD_LIMIT=32 in the environment",
    ),
    "a line of many values": (
        "b.jsonl",
        lambda path: path.write_bytes(
            ITEM + b'{"id":"b","answer":"y","meta":{"m":[' + b"{}," * 1_000_000 + b"{}]}}"
        ),
        "b.jsonl, line 2: the record is too large",
    ),
    "a line of wide characters": (
        "c.jsonl",
        lambda path: path.write_bytes(ITEM + _line(b"x" * 7 * MIB + b"\\ud83d\\ude00")),
        "c.jsonl, line 2: the record is too large",
    ),
    "the longest line that is read": (
        "d.jsonl",
        lambda path: path.write_bytes(ITEM + _line(b"\\n" * 4_190_000)),
        "",
    ),
    "the longest line of wide characters": (
        "e.jsonl",
        lambda path: path.write_bytes(ITEM + _line("😀".encode() + b"x" * 3_350_000)),
        "",
    ),
    "a long array of short records": ("f.json", _fine_array, ""),
    "a long list inside an object on one line": (
        "l.json",
        lambda path: path.write_bytes(
            b'{"run": 1, "results": ['
            + b",".join([b'{"question":"q","answer":"' + b"x" * 10_000 + b'"}'] * 2000)
            + b"]}"
        ),
        "",
    ),
    "an array with a long record": (
        "g.json",
        lambda path: path.write_bytes(b"[" + ITEM + b"," + _line(b"x" * 30 * MIB) + b"]"),
        "record 2: the record is too large",
    ),
    "a file that is one JSON object": (
        "h.json",
        lambda path: path.write_bytes(b'{"samples":[' + b"{}," * 1_000_000 + b"{}]}"),
        "h.json: the file is too large",
    ),
    "a long cell": (
        "i.csv",
        lambda path: path.write_bytes(b"id,answer\n1,x\n2," + b"x" * 30 * MIB + b"\n"),
        r"i.csv, line 3: the row \(is a quote closed\?\) is too large",
    ),
    "a quote that never ends": (
        "j.csv",
        lambda path: path.write_bytes(b'id,answer\n1,x\n2,"' + b"x\n" * 15 * MIB),
        "j.csv, line 3: the row",
    ),
    "a text that every row repeats": (
        "k.parquet",
        _repeated(3),
        "k.parquet, row .: the row is too large",
    ),
    "a longer one": ("q.parquet", _repeated(7), "q.parquet: a text that rows repeat is too large"),
    "a shorter one": ("n.parquet", _repeated(1), "n.parquet, row .*unpacks to more than 100 times"),
    "metadata that lies": ("m.parquet", _lying, "m.parquet: the file, which unpacks to more"),
    "a list in a cell": ("l.parquet", _lists, "l.parquet: a group of rows, by its lists, is too"),
    "a packed file": (
        "m.jsonl.gz",
        lambda path: path.write_bytes(gzip.compress(ITEM.replace(b"x", b"x" * 1000) * 60_000)),
        "m.jsonl.gz.*unpacks to more than 100 times its size, is too large",
    ),
}


def _read_in_a_process_of_its_own() -> None:
    """Read the last file after the small ones, and print by how much its memory has grown."""

    def most() -> int:
        status = Path("/proc/self/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024

    *small, path = map(Path, sys.argv[1:])
    for each in small:
        list(read(each))
    before, said, count = most(), "", 0
    try:
        for _ in read(path):
            count += 1
    except InputError as error:
        said = str(error)
    print(json.dumps([most() - before, said, count]))


@pytest.mark.parametrize("name", FILES)
def test_memory_while_reading_stays_below_three_times_the_limit(tmp_path: Path, name: str) -> None:
    file, make, said = FILES[name]
    small = [tmp_path / "s.jsonl", tmp_path / "s.csv", tmp_path / "s.parquet", tmp_path / "s.json"]
    small[0].write_bytes(ITEM)
    small[1].write_text("id,answer\n1,x\n")
    _table(small[2], pa.array(["x"]))
    small[3].write_bytes(b"[" + ITEM + b"]")
    make(tmp_path / file)
    ran = run_forked(
        ["read", *map(str, small), str(tmp_path / file)],
        {**os.environ, "SPANLAB_RECORD_LIMIT": str(LIMIT)},
        tmp_path,
        _read_in_a_process_of_its_own,
    )
    assert ran.returncode == 0, ran.stderr
    grown, message, count = json.loads(ran.stdout)
    assert grown < 3 * LIMIT * MIB
    if said:
        with pytest.raises(InputError, match=said):
            raise InputError(message)
    else:
        assert (message, count > 0) == ("", True)


def test_a_record_that_is_too_large_can_be_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", "1")
    path = tmp_path / "a.jsonl"
    path.write_bytes(ITEM + _line(b"x" * 2 * MIB) + ITEM)
    left_out: list[RejectedRecord] = []

    kept = list(read(path, ReadOptions(on_reject=left_out.append)))

    assert len(kept) == 2
    assert [(reject.line, reject.raw[:20]) for reject in left_out] == [(2, '{"id":"b","answer":"')]


def test_what_an_import_leaves_out_is_not_kept_without_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", "1")
    path = tmp_path / "a.jsonl"
    path.write_bytes(ITEM + (b'{"id":"b","question":"' + b"x" * 1000 + b'"}\n') * 600)
    with (
        Store.open(Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path}/a.db")) as store,
        pytest.raises(
            InputError, match=r"what was left out up to here \(\d+ records\) is too large"
        ),
    ):
        import_files(store, [path], "mine", ImportOptions(skip_bad=True))


@pytest.mark.parametrize("name", ["c.jsonl", "c.jsonl.gz", "folder"])
def test_a_context_has_the_limit_of_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", "1")
    path, contexts = tmp_path / "a.jsonl", tmp_path / name
    path.write_bytes(ITEM)
    if name == "folder":
        contexts.mkdir()
        (contexts / "a.context.txt").write_bytes(b"x" * MIB)
    else:
        line = b'{"id":"a","context":"' + os.urandom(MIB // 2).hex().encode() + b'"}\n'
        contexts.write_bytes(gzip.compress(line) if name.endswith(".gz") else line)
    with pytest.raises(InputError, match="is too large"):
        list(read(path, ReadOptions(contexts=contexts)))


@pytest.mark.parametrize("limit", ["0", "-1", "much"])
def test_the_limit_is_a_number_of_mebibytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", limit)
    with pytest.raises(UsageError, match=f"SPANLAB_RECORD_LIMIT={limit}: it is a number of MiB"):
        read(tmp_path / "a.jsonl")
