"""Files that people name or upload."""

from __future__ import annotations

import io
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest

from spanlab.base.errors import InputError
from spanlab.data.import_files import estimate_items, in_folders, save_upload, unpack_contexts
from spanlab.formats.files import files_named
from spanlab.ui.server_files import ServerFiles


def test_globs_come_in_sorted_order(tmp_path: Path) -> None:
    for name in ("b.jsonl", "a.jsonl", "c.txt"):
        (tmp_path / name).touch()
    assert files_named([str(tmp_path / "*.jsonl")]) == [tmp_path / "a.jsonl", tmp_path / "b.jsonl"]


def test_a_name_with_brackets_is_a_name_where_it_exists(tmp_path: Path) -> None:
    (tmp_path / "a[1].jsonl").touch()
    assert files_named([str(tmp_path / "a[1].jsonl")]) == [tmp_path / "a[1].jsonl"]


def test_a_glob_without_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such file"):
        files_named([str(tmp_path / "*.jsonl")])


@pytest.mark.parametrize(
    "named", ["out/secret.jsonl", "../secret.jsonl", "*", "linked", "l*", "nested", "loop"]
)
def test_nothing_outside_a_root_is_named_through_links_globs_or_directories(
    tmp_path: Path, named: str
) -> None:
    root = tmp_path / "root"
    (root / "nested").mkdir(parents=True)
    (tmp_path / "secret.jsonl").touch()
    (root / "out").symlink_to(tmp_path)
    (root / "linked").symlink_to(tmp_path / "secret.jsonl")
    (root / "nested" / "b.context.txt").symlink_to(tmp_path / "secret.jsonl")
    (root / "loop").symlink_to(root / "loop")
    with pytest.raises(InputError, match="this path"):
        ServerFiles(root).named([named])


def test_below_a_root_paths_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").touch()
    files = ServerFiles(tmp_path.resolve())
    assert files.named(["*.jsonl"]) == files.named([str(tmp_path / "a.jsonl")])


@pytest.mark.parametrize(
    "name", ["../../evil.jsonl", "..\\..\\evil.jsonl", "/etc/evil.jsonl"], ids=repr
)
def test_an_upload_cannot_leave_its_directory(tmp_path: Path, name: str) -> None:
    assert save_upload(name, io.BytesIO(b"x"), tmp_path) == tmp_path / "evil.jsonl"


@pytest.mark.parametrize("name", ["", "..", "a/.."], ids=repr)
def test_an_upload_needs_a_file_name(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError, match="without a file name"):
        save_upload(name, io.BytesIO(b"x"), tmp_path)


def test_two_uploads_of_one_name_are_refused(tmp_path: Path) -> None:
    save_upload("a.jsonl", io.BytesIO(b"x"), tmp_path)
    with pytest.raises(InputError, match="two uploads have this name"):
        save_upload("a.jsonl", io.BytesIO(b"y"), tmp_path)


def archive(path: Path, *names: str) -> Path:
    with zipfile.ZipFile(path, "w") as packed:
        for name in names:
            packed.writestr(name, f"passage of {name}")
    return path


def test_an_archive_is_unpacked_to_its_context_files(tmp_path: Path) -> None:
    upload = archive(tmp_path / "c.zip", "ctx/en/a.context.txt", "b.context.txt", "readme.md")
    folder = unpack_contexts(upload, tmp_path / "out")
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {"en/a.context.txt", "contexts/b.context.txt"}


def test_an_archive_cannot_write_elsewhere(tmp_path: Path) -> None:
    upload = archive(tmp_path / "c.zip", "../../up.context.txt", "/abs/root.context.txt")
    folder = unpack_contexts(upload, tmp_path / "in" / "out")
    found = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.context.txt")}
    assert found == {"in/out/contexts/up.context.txt", "in/out/abs/root.context.txt"}
    assert folder == tmp_path / "in" / "out"


def test_no_member_of_an_archive_takes_the_place_of_another(tmp_path: Path) -> None:
    upload = archive(tmp_path / "c.zip", "val/en/a.context.txt", "test/en/a.context.txt")
    with pytest.raises(InputError, match=r"c\.zip: test/en/a.context.txt: two files in the arch"):
        unpack_contexts(upload, tmp_path / "out")


def test_an_archive_without_contexts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no context file in this archive"):
        unpack_contexts(archive(tmp_path / "c.zip", "readme.md"), tmp_path / "out")


@pytest.mark.parametrize(
    ("name", "size", "said"),
    [
        pytest.param("a.context.txt", 600_000, "a.context.txt in the archive is too large", id="1"),
        pytest.param("x" * 300 + ".context.txt", 9, "cannot be unpacked: .*too long", id="name"),
    ],
)
def test_overlong_members_of_an_archive_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, size: int, said: str
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", "1")
    upload = tmp_path / "c.zip"
    with zipfile.ZipFile(upload, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr(name, "x" * size)
    with pytest.raises(InputError, match=said):
        unpack_contexts(upload, tmp_path / "out")


def test_many_small_members_are_no_way_around_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPANLAB_RECORD_LIMIT", "1")
    upload = tmp_path / "c.zip"
    with zipfile.ZipFile(upload, "w", zipfile.ZIP_DEFLATED) as packed:
        for number in range(5):
            packed.writestr(f"{number}.context.txt", "x" * 500_000)
    with pytest.raises(InputError, match="unpacks to more than 100 times its size, is too large"):
        unpack_contexts(upload, tmp_path / "out")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_damaged_archive_is_said_so_whatever_byte_is_wrong(tmp_path: Path, method: int) -> None:
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", method) as packed:
        packed.writestr("a.context.txt", "a passage, and another one " * 20)
    data = whole.getvalue()
    for place in range(0, len(data), 3):
        upload = tmp_path / "c.zip"
        upload.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        with suppress(InputError):  # or it can be read in spite of that
            unpack_contexts(upload, tmp_path / f"out {place}")


def test_json_lines_of_passages_stay_as_they_are(tmp_path: Path) -> None:
    upload = tmp_path / "c.jsonl"
    upload.write_text('{"id": "a", "context": "x"}\n')
    assert unpack_contexts(upload, tmp_path / "out") == upload


def test_ragtruths_second_file_is_read_beside_the_first() -> None:
    response, sources = Path("response.jsonl"), Path("source_info.jsonl")
    assert in_folders([sources, response]) == [response]
    assert in_folders([sources]) == [sources]
    assert in_folders([response]) == [response]


def test_items_are_estimated_from_the_first_lines(tmp_path: Path) -> None:
    lines = tmp_path / "a.jsonl"
    lines.write_text('{"id": "a"}\n' * 200_000)
    found = estimate_items([lines, lines])
    assert found is not None
    assert abs(found - 400_000) < 400


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.json", b"{}"), ("a.jsonl", b"[{}]"), ("a.jsonl.gz", b"\x1f\x8b")],
    ids=["json", "array", "packed"],
)
def test_what_cannot_be_estimated_is_not(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert estimate_items([tmp_path / name]) is None
