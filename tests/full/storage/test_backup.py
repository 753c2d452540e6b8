"""Backups: everything people made, from either database into either, written while they work."""

from __future__ import annotations

import fcntl
import gzip
import shutil
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from rebuilt import rebuilt

from spanlab.base.errors import InputError, StoreError
from spanlab.base.settings import Settings
from spanlab.data.backup import back_up, restore
from spanlab.memory.store import MemoryStore
from spanlab.oplog.operations import SentOperation, SetStatus
from spanlab.schema import Annotation, AnnotatorKind, QueueQuery, Record, Role, Status
from spanlab.schema.memory import MemoryEntry
from spanlab.storage import Store
from spanlab.worklists import check_items, drawing, entrances, paging, plans
from spanlab.worklists.entrances import Entrance
from spanlab.worklists.names import handle_of

MakeRecord = Callable[..., Record]
_STORED = Path(__file__).parent / "stored" / "spanlab-0016.db.gz"


@pytest.fixture
def reviewed(tmp_path: Path) -> Settings:
    """A database in which samples are under review, with tuned programs beside it."""
    home = tmp_path / "old"
    home.mkdir()
    (home / "spanlab.db").write_bytes(gzip.decompress(_STORED.read_bytes()))
    settings = Settings(home=home, database_url=f"sqlite:///{home / 'spanlab.db'}")
    settings.programs.mkdir()
    (settings.programs / "defaults.json").write_text('{"ucsc": "mine"}')
    (home / "tools.json").write_text('{"servers": {}}')
    memory = MemoryStore.open(settings)
    entry = MemoryEntry(text="The tower is 330 m tall.", entities=("tower",), tool="search", at=1.0)
    memory.keep("", [entry], {"tower": frozenset({"tow"})})
    memory.close()
    return settings


def test_a_backup_restores_everything_on_the_other_database_and_back(
    reviewed: Settings, empty: Settings, tmp_path: Path
) -> None:
    with Store.open(reviewed) as store:
        entrances.confirm_read(store, "samples", "Ann", 1)
        entrances.enter(
            store, "samples", Entrance("Ann", 1, 0.7, passed=True, at=datetime.now(UTC))
        )
        plans.take_back(store, "samples", "Ben")
        gold = {"kind": AnnotatorKind.GOLD, "annotator": "right"}
        said = store.record("d", next(store.records("d")).item.id)
        store.save_annotations("d", [(said.item.id, Annotation.model_validate(gold))])
        drawing.give_test(store, "d", "Zoe", 1, 1)
    back_up(tmp_path / "first.zip", reviewed)
    restore(tmp_path / "first.zip", empty)
    assert _everything(empty) == _everything(reviewed)
    assert (empty.programs / "defaults.json").read_text() == '{"ucsc": "mine"}'
    assert (empty.home / "tools.json").read_text() == '{"servers": {}}'
    with Store.open(empty) as store:  # numbers that the backup's rows have are not given again
        store.import_records("new", list(store.records("d"))[:1])
    back_up(tmp_path / "second.zip", empty)
    again = Settings(home=tmp_path / "again", database_url=f"sqlite:///{tmp_path / 'again.db'}")
    restore(tmp_path / "second.zip", again)
    assert _everything(again) == _everything(empty)


def test_no_key_is_in_a_backup(
    reviewed: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-environment")
    with Store.open(reviewed) as store:
        key = store.access.make_token("key", Role.VIEWER, None)
    back_up(tmp_path / "b.zip", reviewed)
    with zipfile.ZipFile(tmp_path / "b.zip") as archive:
        whole = b"".join(archive.read(name) for name in archive.namelist())
    assert b"tower" in whole
    assert b"sk-of-the-environment" not in whole
    assert key.encode() not in whole


def _everything(settings: Settings) -> object:
    """Return what people see: records, reviews with undo, queues, searches, settings, memory."""
    with Store.open(settings) as store, MemoryStore.open(settings) as memory:
        names = [summary.name for summary in store.datasets()]
        return [
            store.datasets(),
            [list(store.records(name)) for name in names],
            [store.settings(name) for name in names],
            [
                rebuilt(store, name, record.item.id, annotation.annotator, annotation.kind)
                for name in names
                for record in store.records(name)
                for annotation in record.annotations
                if annotation.kind != "detector"
            ],
            [store.n_operations(name) for name in names],
            [(entrances.entered(store, name), entrances.readings(store, name)) for name in names],
            [check_items.given_to(store, name, "Zoe") for name in names],
            [
                handle_of(store, "d", "Zoe", item.item_id)
                for item in check_items.given_to(store, "d", "Zoe").given
            ],
            [
                paging.positions(store, name, QueueQuery(reviewer="anna", text=word))
                for name in names
                for word in ("the", "in", "tower", "1889")
            ],
            [(kept.entry, kept.pinned) for kept in memory.page("", limit=10)],
        ]


def test_what_is_written_during_a_backup_is_in_it_whole_or_not_at_all(
    settings: Settings, record: MakeRecord, tmp_path: Path
) -> None:
    with Store.open(settings) as store:
        store.import_records("d", [record(f"i{number}") for number in range(50)])
        stop = threading.Event()
        started = threading.Event()

        def review() -> None:
            for number in range(50):
                for seq in range(4):
                    status = (Status.DONE, Status.SKIPPED)[seq % 2]
                    write = SentOperation(f"s{number}", seq + 1, seq, SetStatus(status=status))
                    store.apply("d", f"i{number}", "anna", [write])
                started.set()
                if stop.is_set():
                    return

        person = threading.Thread(target=review)
        person.start()
        assert started.wait(60)
        back_up(tmp_path / "b.zip", settings)
        stop.set()
        person.join()
    copy = Settings(home=tmp_path / "copy", database_url=f"sqlite:///{tmp_path / 'copy.db'}")
    restore(tmp_path / "b.zip", copy)
    with Store.open(copy) as restored:
        reviews = [restored.review("d", f"i{number}", "anna") for number in range(50)]
        assert restored.n_operations("d") == sum(review.version for review in reviews) > 0
        for number, stored in enumerate(reviews):
            assert rebuilt(restored, "d", f"i{number}", "anna") == stored.state


def test_only_yes_replaces_what_a_database_holds_and_programs_that_differ(
    reviewed: Settings, settings: Settings, record: MakeRecord, tmp_path: Path
) -> None:
    back_up(tmp_path / "b.zip", reviewed)
    with Store.open(settings) as store:
        store.import_records("mine", [record("a")])
        write = SentOperation("s", 1, 0, SetStatus(status=Status.DONE))
        store.apply("mine", "a", "anna", [write])
    with pytest.raises(StoreError, match="is not empty"):
        restore(tmp_path / "b.zip", settings)
    with Store.open(settings) as store:
        assert [summary.name for summary in store.datasets()] == ["mine"]
    assert not settings.programs.exists()
    settings.programs.mkdir(parents=True)
    (settings.programs / "defaults.json").write_text("{}")
    with pytest.raises(InputError, match=r"defaults\.json: differs from the one in the backup"):
        restore(tmp_path / "b.zip", settings)
    assert (settings.programs / "defaults.json").read_text() == "{}"
    restore(tmp_path / "b.zip", settings, replace=True)
    assert _everything(settings) == _everything(reviewed)
    assert (settings.programs / "defaults.json").read_text() == '{"ucsc": "mine"}'
    assert not list(settings.home.glob(".restore-*"))


def _repacked(
    file: Path,
    change: Callable[[dict[str, bytes]], object],
    packing: int = zipfile.ZIP_DEFLATED,
) -> None:
    with zipfile.ZipFile(file) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    change(files)
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


def _changed(file: Path) -> None:
    _repacked(file, lambda f: f.update({"spanlab.db": f["spanlab.db"].replace(b"tower", b"TOWER")}))


def _leads_elsewhere(file: Path) -> None:
    def rename(files: dict[str, bytes]) -> None:
        name = "programs/../../evil.json"
        files[name] = files.pop("programs/defaults.json")
        manifest = files["manifest.json"]
        files["manifest.json"] = manifest.replace(b"programs/defaults.json", name.encode())

    _repacked(file, rename)


def _is_a_bomb(file: Path) -> None:
    _repacked(file, lambda files: files.update({"manifest.json": b" " * 50_000_000}))


def _is_larger_than_the_disk(file: Path) -> None:
    with zipfile.ZipFile(file) as archive:
        size = archive.getinfo("spanlab.db").file_size.to_bytes(4, "little")
    packed = file.read_bytes()
    assert packed.count(size) == 2
    file.write_bytes(packed.replace(size, (2**32 - 2).to_bytes(4, "little")))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        pytest.param(_changed, "spanlab.db was changed or damaged", id="changed"),
        pytest.param(
            lambda file: file.write_bytes(file.read_bytes()[:9000]), "no backup", id="cut"
        ),
        pytest.param(lambda file: file.write_text("{}"), "no backup", id="another file"),
        pytest.param(_leads_elsewhere, "names a file", id="another directory"),
        pytest.param(_is_a_bomb, "manifest.json is too large", id="bomb"),
        pytest.param(lambda file: _repacked(file, len, zipfile.ZIP_LZMA), "no backup", id="lzma"),
        pytest.param(_is_larger_than_the_disk, "4,294,9.* are free on the disk", id="disk"),
        pytest.param(Path.unlink, "there is no such file", id="none"),
    ],
)
def test_a_damaged_backup_is_refused_and_nothing_is_stored(
    reviewed: Settings,
    tmp_path: Path,
    damage: Callable[[Path], object],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "b.zip"
    back_up(file, reviewed)
    damage(file)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=2**32 - 3))
    new = Settings(home=tmp_path / "new", database_url=f"sqlite:///{tmp_path / 'new.db'}")
    with pytest.raises(InputError, match=message):
        restore(file, new)
    assert not list(new.home.iterdir())
    assert not (tmp_path / "new.db").exists()


def test_what_a_killed_restore_left_is_swept_by_the_next_command_and_one_under_way_is_not(
    tmp_path: Path,
) -> None:
    killed = (
        "import fcntl, os, pathlib, signal, sys;"
        "folder = pathlib.Path(sys.argv[1]); folder.mkdir();"
        "held = (folder / 'in-use').open('xb'); fcntl.flock(held, fcntl.LOCK_EX);"
        "(folder / 'database').write_bytes(b'x' * 1000); os.kill(os.getpid(), signal.SIGKILL)"
    )
    left, used = tmp_path / ".restore-left", tmp_path / ".restore-used"
    subprocess.run([sys.executable, "-c", killed, str(left)], check=False)
    assert (left / "database").exists()
    used.mkdir()
    with (used / "in-use").open("xb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        Store.open(
            Settings(home=tmp_path, database_url=f"sqlite:///{tmp_path / 'mine.db'}")
        ).close()
    assert not left.exists()
    assert used.exists()
