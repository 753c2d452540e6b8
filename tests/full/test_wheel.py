"""The wheel is whole: what people install works without the repository and developers' packages.

`make test-pythons` runs these on every Python it finds; pip asks the registry for what it requires.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
import zipfile
from email import message_from_bytes
from pathlib import Path
from typing import Any

import pytest
import yaml
from ports import free_port

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("spanlab", "optimizers")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built without a network as the Dockerfile's first stage builds it."""
    tree = tmp_path_factory.mktemp("tree")
    for step, words in dockerfile()[0]:
        if step == "COPY":
            for name in tracked(*words[:-1]):
                (tree / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, tree / name, follow_symlinks=False)
    (build,) = (words for step, words in dockerfile()[0] if step == "RUN")
    assert build[:2] == ["pip", "wheel"]
    words = [word.replace("/wheels", str(tree / "wheels")) for word in build[1:]]
    run([sys.executable, "-m", "pip", *words, "--no-build-isolation", "--no-index"], tree)
    (built,) = (tree / "wheels").glob("*.whl")
    return built


def dockerfile() -> list[list[tuple[str, list[str]]]]:
    """Return the steps of the Dockerfile's stages, each with its words."""
    stages: list[list[tuple[str, list[str]]]] = []
    for line in (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines():
        step, _, rest = line.partition(" ")
        if step == "FROM":
            stages.append([])
        if step and step != "#":
            words = json.loads(rest) if rest.startswith("[") else shlex.split(rest)
            stages[-1].append((step, words))
    return stages


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
    for_developers = {"spanlab/README.md", *tracked("spanlab/developers")}
    assert set(tracked(*SHIPPED)) - for_developers - names == set()
    assert {"spanlab/py.typed", "spanlab/samples.jsonl", "spanlab/guide/README.md"} <= names


def test_pictures_and_links_of_its_description_lead_to_files_of_the_repository(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = message_from_bytes(packed.read(name))
    (repository,) = metadata.get_all("Project-URL", [])
    address = re.escape(repository.removeprefix("Repository, "))
    text = str(metadata.get_payload())
    links = re.findall(r"\]\(([^)]+)\)", text) + re.findall(r'\bsrc(?:set)?="([^"]+)', text)
    assert sum("/raw/main/" in link for link in links) == 4  # two pictures, light and dark
    ours = [re.fullmatch(rf"{address}/(?:raw|blob)/main/(.+)", link) for link in links]
    assert len(ours) > 4
    assert all(link and (ROOT / link[1]).is_file() for link in ours), links


def test_the_source_distribution_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """Packed and built again as `python -m build` does, without a network."""
    tree = wheel.parents[1]
    make = "from setuptools import build_meta; print(build_meta.build_{}({!r}))"
    folder = str(tmp_path)
    run([sys.executable, "-c", make.format("sdist", folder)], tree)
    (packed,) = tmp_path.glob("*.tar.gz")
    subprocess.run(["tar", "xf", packed, "-C", tmp_path], check=True)
    unpacked = tmp_path / packed.name.removesuffix(".tar.gz")
    run([sys.executable, "-c", make.format("wheel", folder)], unpacked)
    (again,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as first, zipfile.ZipFile(again) as second:
        contents = [
            {name: whole.read(name) for name in whole.namelist()} for whole in (first, second)
        ]
    for content in contents:
        content.pop(next(name for name in content if name.endswith("/RECORD")))
    assert contents[0] == contents[1]


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The commands of an environment with the wheel and what it requires, as the lock has it."""
    folder = tmp_path_factory.mktemp("installed")
    run([os.environ.get("SPANLAB_TEST_PYTHON", sys.executable), "-m", "venv", folder], folder)
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    pins = folder / "pins.txt"
    pins.write_text("\n".join(re.findall(r"^([a-z0-9].*) \\$", lock, re.MULTILINE)))
    into = ("--python", folder / "bin" / "python")
    words = ("install", "--quiet", "--no-compile", "--constraint", pins, wheel)
    run([sys.executable, "-m", "pip", *into, *words], folder)
    return folder / "bin"


def test_what_people_do_first_works_from_the_wheel_and_what_it_requires(
    installed: Path, tmp_path: Path
) -> None:
    def spanlab(*arguments: str) -> str:
        return run([installed / "spanlab", *arguments], tmp_path)

    (where, developers) = run([installed / "python", "-c", WHERE], tmp_path).splitlines()
    assert Path(where).parent.is_relative_to(installed.parent)
    assert developers == "[]"
    spanlab("demo", "--prepare-only")
    assert (tmp_path / ".spanlab" / "spanlab.db").is_file()
    few = Path(where).with_name("samples.jsonl").read_text(encoding="utf-8").splitlines()[:2]
    (tmp_path / "few.jsonl").write_text("\n".join(few), encoding="utf-8")
    spanlab("import", "few.jsonl", "--dataset", "mine")
    spanlab("annotate", "mine", "--detector", "offline")
    spanlab("export", "mine", "-o", "mine.parquet")
    spanlab("annotate", "few.jsonl", "--detector", "offline", "--concurrency", "2", "-o", "o.jsonl")
    assert run([installed / "python", "-c", BOTH], tmp_path).split() == ["2", "2", "2"]
    asked = ("--detector", "ucsc-extract", "--model", "m", "--dry-run")
    assert "calls" in spanlab("optimize", "samples", *asked)


def test_the_container_installs_the_lock_compiles_nothing_and_runs_as_nobody_in_particular() -> (
    None
):
    stages = dockerfile()
    kept = set((ROOT / ".dockerignore").read_text(encoding="utf-8").split())
    for step, words in (each for stage in stages for each in stage):
        names = [word for word in words[:-1] if not word.startswith("--")]
        if step == "COPY" and not words[0].startswith("--from"):
            assert all(tracked(name) and f"!{name}" in kept for name in names), words
    commands = [" ".join(words) for step, words in stages[1] if step == "RUN"]
    assert "--require-hashes --only-binary :all: -r /tmp/requirements.lock" in commands[0]
    assert "--no-deps --no-index" in commands[1]
    assert not any("apt-get" in command or "gcc" in command for command in commands)
    last = dict(stages[1])
    assert f"--uid 10001 {last['USER'][0]}" in " ".join(commands)
    assert f"mkdir {last['WORKDIR'][0]}" in " ".join(commands)


def test_what_compose_starts_exists_and_gets_its_secrets_from_files(installed: Path) -> None:
    plan = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    for name, service in plan["services"].items():
        for variable, value in service["environment"].items():
            assert not variable.endswith(("PASSWORD", "KEY", "DATABASE_URL")), name
            if value is None:  # passed on
                continue
            if variable.endswith("_FILE"):
                secret = value.removeprefix("/run/secrets/")
                assert secret in service["secrets"]
                optional = {"openai_api_key": "${OPENAI_API_KEY_FILE:-/dev/null}"}
                file = optional.get(secret, f"secrets/{secret}")
                assert plan["secrets"][secret] == {"file": file}
        mounted = {volume.partition(":")[0] for volume in service["volumes"]}
        assert mounted <= set(plan["volumes"])
        assert set(service.get("depends_on", ())) <= set(plan["services"])
    command = plan["services"]["worker"]["command"]
    assert command[-1] in run([installed / command[0], *command[1:-1], "--help"], ROOT)


def test_the_container_s_command_serves_with_secrets_of_files_and_says_that_it_is_ready(
    installed: Path, tmp_path: Path
) -> None:
    last = dict(dockerfile()[1])
    (entry,), command, port = last["ENTRYPOINT"], list(last["CMD"]), free_port()
    command[command.index("--port") + 1] = str(port)
    secret = tmp_path / "database_url"
    secret.write_text(f"sqlite:///{tmp_path / 'secret.db'}\n", encoding="utf-8")
    environment = {
        "PATH": f"{installed}:/usr/bin:/bin",
        "SPANLAB_HOME": str(tmp_path / "home"),
        "SPANLAB_DATABASE_URL_FILE": str(secret),
        "OPENAI_API_KEY_FILE": "/dev/null",
        "SPANLAB_ALLOWED_HOSTS": "spanlab.localhost",
    }
    options: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    with subprocess.Popen(["sh", ROOT / entry, *command], env=environment, **options) as process:
        try:
            assert process.stderr is not None
            first = json.loads(process.stderr.readline())
            assert "spanlab is at" in first["message"]
            answers = {}
            for path in ("/healthz", "/readyz", "/"):
                asked = urllib.request.Request(
                    f"http://127.0.0.1:{port}{path}", headers={"X-Request-ID": f"mine-{path[1:]}"}
                )
                with urllib.request.urlopen(asked, timeout=60) as answer:
                    answers[path] = (answer.status, answer.headers["X-Request-ID"])
            process.terminate()
            lines = [json.loads(line) for line in process.stderr]
        finally:
            process.kill()
    assert answers == {path: (200, f"mine-{path[1:]}") for path in answers}
    assert (tmp_path / "secret.db").is_file()
    ready = next(line for line in lines if line.get("path") == "/readyz")
    assert (ready["request_id"], ready["status"], ready["method"]) == ("mine-readyz", 200, "GET")
    assert lines[-1]["message"] == "stopped"


WHERE = """
import importlib.util, spanlab
print(spanlab.__file__)
print([name for name in ("pytest", "hypothesis", "nltk", "mcp") if importlib.util.find_spec(name)])
"""
BOTH = """
import spanlab
stored, written = spanlab.load("mine.parquet"), spanlab.load("o.jsonl")
print(len([record for record in stored if record.by("offline")]))
print(len([record for record in written if record.by("offline")]))
print(len([record for record in spanlab.annotate(written, "offline") if record.by("offline")]))
"""
