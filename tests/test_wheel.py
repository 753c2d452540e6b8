"""The wheel is whole: what people install works without the repository and developers' packages.

`make test` tries it on its own Python, without a network; `make test-pythons` has pip install it
from the registry on every other Python that it finds.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from email import message_from_bytes
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
SHIPPED = ("spanlab", "optimizers")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network from a copy of what is in the repository."""
    tree = tmp_path_factory.mktemp("tree")
    for name in tracked():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    options = ("--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", tree / "wheels")
    run([sys.executable, "-m", "pip", "wheel", "--quiet", *options, tree], tree)
    (built,) = (tree / "wheels").glob("*.whl")
    return built


def run(command: list[str | Path], where: Path, **environment: str) -> str:
    """Run a command, which must succeed, and return what it printed."""
    ours = {name: value for name, value in os.environ.items() if not name.startswith("SPANLAB_")}
    done = subprocess.run(
        command,
        cwd=where,
        env=ours | environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def tracked(*folders: str) -> list[str]:
    """Return the paths of the files in the repository."""
    command: list[str | Path] = ["git", "-c", "core.quotepath=off", "ls-files", "--", *folders]
    return [name for name in run(command, ROOT).splitlines() if (ROOT / name).is_file()]


def test_every_file_of_the_packages_is_in_the_wheel(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    documents = {name for name in tracked(*SHIPPED) if name.endswith(".md")}
    assert set(tracked(*SHIPPED)) - documents - names == set()
    assert {"spanlab/py.typed", "spanlab/samples.jsonl"} <= names


def test_pictures_and_links_of_its_description_lead_to_files_of_the_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(packed.read(name))
    (repository,) = metadata.get_all("Project-URL", [])
    address = re.escape(repository.removeprefix("Repository, "))
    links = re.findall(r"\]\(([^)]+)\)", str(metadata.get_payload()))
    ours = [re.fullmatch(rf"{address}/(?:raw|blob)/main/(.+)", link) for link in links]
    assert len(ours) > 4
    assert all(link and (ROOT / link[1]).is_file() for link in ours), links


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel and what it requires, as the lock has it."""
    folder = tmp_path_factory.mktemp("installed")
    options: tuple[str | Path, ...] = ("--no-deps", "--no-index")
    python = os.environ.get("SPANLAB_TEST_PYTHON")
    if python is None:
        venv.create(folder, symlinks=True)
        for name in required(wheel):
            copy_distribution(name, folder / "lib" / LIBRARY / "site-packages")
    else:
        run([python, "-m", "venv", folder], folder)
        pins = folder / "pins.txt"
        pins.write_text("\n".join(map(str, locked())))
        options = ("--constraint", pins)
    into = ("--python", folder / "bin" / "python")
    words = ("install", "--quiet", "--no-compile", *options, wheel)
    run([sys.executable, "-m", "pip", *into, *words], folder)
    return folder / "bin"


LIBRARY = f"python{sys.version_info.major}.{sys.version_info.minor}"


def locked() -> list[Requirement]:
    """Return every package of the lock; one that differs between Pythons is there twice."""
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    return [Requirement(line) for line in re.findall(r"^([a-z0-9].*) \\$", lock, re.MULTILINE)]


def required(wheel: Path) -> set[str]:
    """Return the packages that a wheel requires in its plain form, directly or not."""
    with zipfile.ZipFile(wheel) as packed:
        (metadata,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        lines = message_from_bytes(packed.read(metadata)).get_all("Requires-Dist", [])
    todo = [Requirement(line) for line in lines if "extra ==" not in line]
    extras = dict[str, set[str]]()
    while todo:
        wanted = todo.pop()
        known = extras.setdefault(canonicalize_name(wanted.name), set())
        asked = {"", *wanted.extras} - known
        known |= asked
        for line in distribution(wanted.name).requires or () if asked else ():
            needed = Requirement(line)
            if any(not needed.marker or needed.marker.evaluate({"extra": e}) for e in asked):
                todo.append(needed)
    here = (pin for pin in locked() if not pin.marker or pin.marker.evaluate())
    versions = {pin.name: str(pin.specifier) for pin in here}
    installed = {name: f"=={distribution(name).version}" for name in extras}
    assert installed == {name: versions.get(name) for name in extras}, "not the lock's environment"
    return set(extras)


def copy_distribution(name: str, target: Path) -> None:
    """Link the files of a package of this environment into another one, without its commands."""
    packed = distribution(name)
    for file in packed.files or ():
        source, copy = Path(str(packed.locate_file(file))), target / file
        if ".." in file.parts or not source.is_file():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        try:
            copy.hardlink_to(source)
        except FileExistsError:
            continue  # of a namespace that packages share
        except OSError:  # another file system
            shutil.copy2(source, copy)


def test_what_people_do_first_works_from_the_wheel_and_what_it_requires(
    installed: Path, tmp_path: Path
) -> None:
    def spanlab(*arguments: str) -> str:
        return run([installed / "spanlab", *arguments], tmp_path)

    (where, developers) = run([installed / "python", "-c", WHERE], tmp_path).splitlines()
    assert Path(where).parent.is_relative_to(installed.parent)
    assert developers == "[]"
    spanlab("demo", "--prepare-only")
    assert "67" in spanlab("datasets")
    assert (tmp_path / ".spanlab" / "spanlab.db").is_file()
    few = Path(where).with_name("samples.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    (tmp_path / "few.jsonl").write_text("\n".join(few), encoding="utf-8")
    spanlab("import", "few.jsonl", "--dataset", "mine")
    spanlab("annotate", "mine", "--detector", "offline")
    people = ",".join(f"synthetic-annotator-{number}" for number in (1, 2, 3))
    spanlab("vote", "mine", "--annotators", people, "--name", "ours")
    spanlab("export", "mine", "-o", "mine.parquet")
    spanlab("annotate", "few.jsonl", "--detector", "offline", "--concurrency", "2", "-o", "o.jsonl")
    assert run([installed / "python", "-c", BOTH], tmp_path).split() == ["2", "2", "2"]
    asked = ("--detector", "ucsc-extract", "--model", "m", "--dry-run")
    assert "calls" in spanlab("optimize", "samples", *asked)


WHERE = """
import importlib.util, spanlab
print(spanlab.__file__)
print([name for name in ("pytest", "sklearn", "nltk", "mcp") if importlib.util.find_spec(name)])
"""
BOTH = """
import spanlab
stored, written = spanlab.load("mine.parquet"), spanlab.load("o.jsonl")
print(len([record for record in stored if record.by("offline") and record.by("ours")]))
print(len([record for record in written if record.by("offline")]))
print(len([record for record in spanlab.annotate(written, "offline") if record.by("offline")]))
"""
